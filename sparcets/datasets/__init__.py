"""Data sets: one module per source, all loaded through :func:`load_dataset`."""

from sparcets.datasets.base import Dataset
from sparcets.datasets.load import load_dataset
from sparcets.datasets.scaling import Scaler

__all__ = ["Dataset", "Scaler", "load_dataset"]
