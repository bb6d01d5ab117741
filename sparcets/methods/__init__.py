"""Explainers: one method, one file, one class."""

from sparcets.core.registry import Registry

EXPLAINERS = Registry(
    "explainer",
    {
        "countergan": "sparcets.methods.adversarial:CounterGan",
        "gan": "sparcets.methods.adversarial:Gan",
        "ics": "sparcets.methods.ics:Ics",
        "nearest": "sparcets.methods.nearest:Nearest",
        "sparce": "sparcets.methods.adversarial:Sparce",
        "sparcets": "sparcets.methods.own.explainer:Explainer",
    },
    about={
        "countergan": "generator of dense residuals, trained against a discriminator (CounteRGAN)",
        "gan": "generator of whole series, trained against a discriminator",
        "ics": "search by gradient descent, one query at a time in one batch (after Wachter et al.)",
        "nearest": "nearest real series of the target class that the classifier accepts; needs no training",
        "sparce": "generator of sparse residuals, trained against a discriminator (the paper's SPARCE)",
        "sparcets": "our own: sparse residuals that convince an ensemble of classifiers, not the explained one alone",
    },
    entry_point_group="sparcets.explainers",
)
