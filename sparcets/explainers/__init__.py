"""Explainers: one method, one file, one class."""

from sparcets.registry import Registry

EXPLAINERS = Registry(
    "explainer",
    {
        "countergan": "sparcets.explainers.countergan:CounterGan",
        "gan": "sparcets.explainers.gan:Gan",
        "ics": "sparcets.explainers.ics:Ics",
        "nearest": "sparcets.explainers.nearest:Nearest",
        "sparce": "sparcets.explainers.sparce:Sparce",
        "sparcets": "sparcets.explainers.sparcets.explainer:Explainer",
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
