"""Explainers: one method, one file, one class."""

from sparcets.registry import Registry

EXPLAINERS = Registry(
    "explainer",
    {
        "nearest": "sparcets.explainers.nearest:Nearest",
    },
    about={
        "nearest": "nearest real series of the target class that the classifier accepts; needs no training",
    },
    entry_point_group="sparcets.explainers",
)
