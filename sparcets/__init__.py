"""sparcets: what would have to be different in this recording for the model to say something else?

Public names are resolved when they are first used, so that ``import sparcets`` loads neither torch nor matplotlib.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # as typing has it; `sparcets` must start to handle Ctrl-C before it imports much
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.2.0"

# Name -> module that holds it.
_WHERE = {
    "AtLeast": "sparcets.core.target",
    "AtMost": "sparcets.core.target",
    "BaseExplainer": "sparcets.methods.base",
    "Between": "sparcets.core.target",
    "Change": "sparcets.core.target",
    "ClassifierConfig": "sparcets.core.settings",
    "Constraints": "sparcets.core.constraints",
    "CounterGan": "sparcets.methods.adversarial",
    "CounterGanConfig": "sparcets.core.settings",
    "Dataset": "sparcets.data.dataset",
    "Explainer": "sparcets.methods.own.explainer",
    "ExplainerConfig": "sparcets.core.settings",
    "Explanation": "sparcets.core.explanation",
    "Gan": "sparcets.methods.adversarial",
    "GanConfig": "sparcets.core.settings",
    "Ics": "sparcets.methods.ics",
    "IcsConfig": "sparcets.core.settings",
    "LossTerm": "sparcets.training.losses",
    "LossWeights": "sparcets.core.settings",
    "Nearest": "sparcets.methods.nearest",
    "NearestConfig": "sparcets.core.settings",
    "Not": "sparcets.core.target",
    "Scaler": "sparcets.core.series",
    "Scores": "sparcets.evaluation.scores",
    "Sparce": "sparcets.methods.adversarial",
    "SparceConfig": "sparcets.core.settings",
    "ModelWarning": "sparcets.core.errors",
    "SparcetsError": "sparcets.core.errors",
    "TorchClassifier": "sparcets.models.network",
    "apply_edits": "sparcets.core.edits",
    "compare": "sparcets.evaluation.statistics",
    "evaluate": "sparcets.evaluation.evaluate",
    "explain_parquet": "sparcets.methods.archive",
    "find_judges": "sparcets.evaluation.judges",
    "load": "sparcets.methods.folder",
    "load_classifier": "sparcets.models.network",
    "load_dataset": "sparcets.data.load",
    "load_explanation": "sparcets.io.explanations",
    "wrap": "sparcets.models.wrap",
}

__all__ = sorted([*_WHERE, "__version__"])

if TYPE_CHECKING:
    from sparcets.core.constraints import Constraints as Constraints
    from sparcets.core.edits import apply_edits as apply_edits
    from sparcets.core.errors import ModelWarning as ModelWarning, SparcetsError as SparcetsError
    from sparcets.core.explanation import Explanation as Explanation
    from sparcets.core.series import Scaler as Scaler
    from sparcets.core.settings import (
        ClassifierConfig as ClassifierConfig,
        CounterGanConfig as CounterGanConfig,
        ExplainerConfig as ExplainerConfig,
        GanConfig as GanConfig,
        IcsConfig as IcsConfig,
        LossWeights as LossWeights,
        NearestConfig as NearestConfig,
        SparceConfig as SparceConfig,
    )
    from sparcets.core.target import (
        AtLeast as AtLeast,
        AtMost as AtMost,
        Between as Between,
        Change as Change,
        Not as Not,
    )
    from sparcets.data.dataset import Dataset as Dataset
    from sparcets.data.load import load_dataset as load_dataset
    from sparcets.evaluation.evaluate import evaluate as evaluate
    from sparcets.evaluation.judges import find_judges as find_judges
    from sparcets.evaluation.scores import Scores as Scores
    from sparcets.evaluation.statistics import compare as compare
    from sparcets.io.explanations import load_explanation as load_explanation
    from sparcets.methods.adversarial import CounterGan as CounterGan, Gan as Gan, Sparce as Sparce
    from sparcets.methods.archive import explain_parquet as explain_parquet
    from sparcets.methods.base import BaseExplainer as BaseExplainer
    from sparcets.methods.folder import load as load
    from sparcets.methods.ics import Ics as Ics
    from sparcets.methods.nearest import Nearest as Nearest
    from sparcets.methods.own.explainer import Explainer as Explainer
    from sparcets.models.network import TorchClassifier as TorchClassifier, load_classifier as load_classifier
    from sparcets.models.wrap import wrap as wrap
    from sparcets.training.losses import LossTerm as LossTerm


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'sparcets' has no attribute {name!r}")
    value = getattr(importlib.import_module(_WHERE[name]), name)
    globals()[name] = value  # looked up once
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
