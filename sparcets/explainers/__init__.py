"""Explainers: one method, one file, one class."""

from sparcets.registry import Registry

EXPLAINERS = Registry(
    "explainer",
    {
        "nearest": "sparcets.explainers.nearest:Nearest",
    },
    entry_point_group="sparcets.explainers",
)
