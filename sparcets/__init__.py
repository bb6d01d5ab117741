"""sparcets: what would have to be different in this recording for the model to say something else?

Public names are resolved when they are first used, so that ``import sparcets`` loads neither torch nor matplotlib.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # as typing has it; `sparcets` must start to handle Ctrl-C before it imports much
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.2.0"

# Name -> module that holds it. `__all__` and this table are compared by a test.
_WHERE = {
    "AtLeast": "sparcets.targets",
    "AtMost": "sparcets.targets",
    "BaseExplainer": "sparcets.explainers.base",
    "Between": "sparcets.targets",
    "Change": "sparcets.targets",
    "ClassifierConfig": "sparcets.config.models",
    "Constraints": "sparcets.constraints.spec",
    "CounterGan": "sparcets.explainers.countergan",
    "CounterGanConfig": "sparcets.config.explainers",
    "Dataset": "sparcets.datasets.base",
    "Explainer": "sparcets.explainers.sparcets.explainer",
    "ExplainerConfig": "sparcets.config.explainers",
    "Explanation": "sparcets.explanation.result",
    "Gan": "sparcets.explainers.gan",
    "GanConfig": "sparcets.config.explainers",
    "Ics": "sparcets.explainers.ics",
    "IcsConfig": "sparcets.config.explainers",
    "LossTerm": "sparcets.training.losses",
    "LossWeights": "sparcets.config.explainers",
    "Nearest": "sparcets.explainers.nearest",
    "NearestConfig": "sparcets.config.explainers",
    "Not": "sparcets.targets",
    "Scaler": "sparcets.datasets.scaling",
    "Scores": "sparcets.evaluation.scores",
    "Sparce": "sparcets.explainers.sparce",
    "SparceConfig": "sparcets.config.explainers",
    "SparcetsError": "sparcets.errors",
    "TorchClassifier": "sparcets.classifiers.torch_classifier",
    "compare": "sparcets.evaluation.statistics",
    "evaluate": "sparcets.evaluation.evaluate",
    "explain_parquet": "sparcets.engines.parquet",
    "find_judges": "sparcets.evaluation.judges",
    "like_real": "sparcets.constraints.realistic",
    "load": "sparcets.explainers.files",
    "load_classifier": "sparcets.classifiers.torch_classifier",
    "load_dataset": "sparcets.datasets.load",
    "load_explanation": "sparcets.explanation.files",
    "wrap": "sparcets.classifiers.wrap",
}

__all__ = [
    "AtLeast",
    "AtMost",
    "BaseExplainer",
    "Between",
    "Change",
    "ClassifierConfig",
    "Constraints",
    "CounterGan",
    "CounterGanConfig",
    "Dataset",
    "Explainer",
    "ExplainerConfig",
    "Explanation",
    "Gan",
    "GanConfig",
    "Ics",
    "IcsConfig",
    "LossTerm",
    "LossWeights",
    "Nearest",
    "NearestConfig",
    "Not",
    "Scaler",
    "Scores",
    "Sparce",
    "SparceConfig",
    "SparcetsError",
    "TorchClassifier",
    "__version__",
    "compare",
    "evaluate",
    "explain_parquet",
    "find_judges",
    "like_real",
    "load",
    "load_classifier",
    "load_dataset",
    "load_explanation",
    "wrap",
]

if TYPE_CHECKING:
    from sparcets.classifiers.torch_classifier import TorchClassifier, load_classifier
    from sparcets.classifiers.wrap import wrap
    from sparcets.config.explainers import (
        CounterGanConfig,
        ExplainerConfig,
        GanConfig,
        IcsConfig,
        LossWeights,
        NearestConfig,
        SparceConfig,
    )
    from sparcets.config.models import ClassifierConfig
    from sparcets.constraints.realistic import like_real
    from sparcets.constraints.spec import Constraints
    from sparcets.datasets.base import Dataset
    from sparcets.datasets.load import load_dataset
    from sparcets.datasets.scaling import Scaler
    from sparcets.engines.parquet import explain_parquet
    from sparcets.errors import SparcetsError
    from sparcets.evaluation.evaluate import evaluate
    from sparcets.evaluation.judges import find_judges
    from sparcets.evaluation.scores import Scores
    from sparcets.evaluation.statistics import compare
    from sparcets.explainers.base import BaseExplainer
    from sparcets.explainers.countergan import CounterGan
    from sparcets.explainers.files import load
    from sparcets.explainers.gan import Gan
    from sparcets.explainers.ics import Ics
    from sparcets.explainers.nearest import Nearest
    from sparcets.explainers.sparce import Sparce
    from sparcets.explainers.sparcets.explainer import Explainer
    from sparcets.explanation.files import load_explanation
    from sparcets.explanation.result import Explanation
    from sparcets.targets import AtLeast, AtMost, Between, Change, Not
    from sparcets.training.losses import LossTerm


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'sparcets' has no attribute {name!r}")
    value = getattr(importlib.import_module(_WHERE[name]), name)
    globals()[name] = value  # looked up once
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
