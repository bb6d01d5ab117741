"""sparcets: what would have to be different in this recording for the model to say something else?

Public names are resolved when they are first used, so that ``import sparcets`` loads neither torch nor matplotlib.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Name -> module that holds it. `__all__` and this table are compared by a test.
_WHERE = {
    "BaseExplainer": "sparcets.explainers.base",
    "ClassifierConfig": "sparcets.config.models",
    "Constraints": "sparcets.constraints",
    "Dataset": "sparcets.datasets.base",
    "Explanation": "sparcets.explanation",
    "Nearest": "sparcets.explainers.nearest",
    "NearestConfig": "sparcets.config.explainers",
    "Scaler": "sparcets.datasets.scaling",
    "SparcetsError": "sparcets.errors",
    "TorchClassifier": "sparcets.classifiers.torch_classifier",
    "load": "sparcets.explainers.load",
    "load_classifier": "sparcets.classifiers.torch_classifier",
    "load_dataset": "sparcets.datasets.load",
    "load_explanation": "sparcets.explanation",
    "wrap": "sparcets.classifiers.wrap",
}

__all__ = [
    "BaseExplainer",
    "ClassifierConfig",
    "Constraints",
    "Dataset",
    "Explanation",
    "Nearest",
    "NearestConfig",
    "Scaler",
    "SparcetsError",
    "TorchClassifier",
    "__version__",
    "load",
    "load_classifier",
    "load_dataset",
    "load_explanation",
    "wrap",
]

if TYPE_CHECKING:
    from sparcets.classifiers.torch_classifier import TorchClassifier, load_classifier
    from sparcets.classifiers.wrap import wrap
    from sparcets.config.explainers import NearestConfig
    from sparcets.config.models import ClassifierConfig
    from sparcets.constraints import Constraints
    from sparcets.datasets.base import Dataset
    from sparcets.datasets.load import load_dataset
    from sparcets.datasets.scaling import Scaler
    from sparcets.errors import SparcetsError
    from sparcets.explainers.base import BaseExplainer
    from sparcets.explainers.load import load
    from sparcets.explainers.nearest import Nearest
    from sparcets.explanation import Explanation, load_explanation


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'sparcets' has no attribute {name!r}")
    value = getattr(importlib.import_module(_WHERE[name]), name)
    globals()[name] = value  # looked up once
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
