"""Random data, models and explainers for the campaigns: each follows from one seed, so that it can be repeated."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import sparcets as sp
from sparcets.core.series import FloatArray, IntArray
from sparcets.methods import EXPLAINERS
from sparcets.methods.base import BaseExplainer
from sparcets.models.base import Classifier

MODELS = ("module", "channels first", "sigmoid", "classifier", "function")
# Settings for fits in a moment: what is promised holds for any settings, and for bad answers too.
QUICK: dict[str, list[dict[str, Any]]] = {
    "sparcets": [{"believed_by": "model"}, {"families": ["intervals"]}, {"families": ["quantiles", "convolutions"]}],
    "ics": [{"steps": 5, "max_lambdas": 3}],
    "nearest": [{"candidates": 10}],
}


class Means(nn.Module):
    """The class is that of the first features whose standardised mean is highest."""

    def __init__(self, center: FloatArray, scale: FloatArray, n_classes: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.register_buffer("center", torch.tensor(center[:n_classes], dtype=dtype))
        self.register_buffer("scale", torch.tensor(scale[:n_classes], dtype=dtype))
        self.sharpness = nn.Parameter(torch.tensor(6.0, dtype=dtype))
        self.drop = nn.Dropout(0.3)

    def forward(self, x: Tensor) -> Tensor:
        return self.drop(self.sharpness * ((x[..., : len(self.center)] - self.center) / self.scale).mean(1))


class ChannelsFirst(Means):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.swapaxes(1, 2))


class Sigmoid(Means):
    """Of two classes, the probability of the second."""

    def forward(self, x: Tensor) -> Tensor:
        h = super().forward(x)
        return torch.sigmoid(h[:, 1:] - h[:, :1])


@dataclass(frozen=True)
class Material:
    """Series, a model of them, and how explainers are fitted.

    Attributes
    ----------
    seed
        Decides everything.
    X, y, queries
        Training series (batch, time, features), their labels, and queries.
    classifier
        The model.
    kind
        Which of ``MODELS``.
    names
        Of the features.
    """

    seed: int
    X: FloatArray
    y: IntArray
    queries: FloatArray
    classifier: Classifier
    kind: str
    names: list[str]
    _fitted: dict[Any, BaseExplainer[Any]] = field(default_factory=dict)

    def methods(self) -> list[str]:
        """Return the methods that can explain the model."""
        return [name for name in EXPLAINERS if self.kind != "function" or not EXPLAINERS.load(name).needs_gradients]

    def build(self, method: str) -> BaseExplainer[Any]:
        """Return an explainer with quick settings."""
        rng = np.random.default_rng([self.seed, 1])
        setting = int(rng.integers(len(QUICK.get(method, [{}]))))
        return quick(method, self.classifier, setting=setting, batch_size=int(rng.choice([1, 5, 256])))

    def fitted(self, method: str, **options: Any) -> BaseExplainer[Any]:
        """Return an explainer that was fitted once, for all calls."""
        if method not in self._fitted:
            self._fitted[method] = self.build(method).fit(self.dataset(), progress=False, **options)
        return self._fitted[method]

    def dataset(self) -> sp.Dataset:
        """Return the training series with names."""
        rows = np.arange(len(self.X))
        return sp.Dataset.from_arrays(self.X, self.y, split=(rows, rows[:6]), feature_names=self.names)


def quick(method: str, classifier: Classifier, *, setting: int = 0, **changes: Any) -> BaseExplainer[Any]:
    """Return an explainer that is fitted in a moment, however bad its answers are."""
    kind = EXPLAINERS.load(method)
    values = kind.config_class.tiny().to_dict() | QUICK.get(method, [{}])[setting] | changes
    if "train" in values:
        values["train"]["epochs"] = 2
    return kind(classifier, kind.config_class.from_dict(values))


def draw_material(seed: int) -> Material:
    """Draw series of any size, type, offset and scale, and a model of them."""
    rng = np.random.default_rng([seed, 0])
    kind = str(rng.choice(MODELS, p=[0.4, 0.15, 0.1, 0.2, 0.15]))
    n_classes = 2 if kind == "sigmoid" else int(rng.integers(2, 4))
    T = int(rng.choice([1, 2, 3, 8, 12, 20]))
    F = int(rng.integers(n_classes, 7))
    dtype = rng.choice([np.float32, np.float64])
    y = rng.permutation(np.arange(36) % n_classes).astype(np.int64)
    scale = 10.0 ** (rng.choice([0, 3, 12]) * rng.uniform(-1, 1, F))
    offset = 0.0
    if rng.random() < 0.4:  # numbers that are large beside what they vary by
        offset = 1e9
        scale = np.full(F, 1.0 if dtype == np.float64 else 1e4)
    center = np.full(F, offset)
    decimals = int(rng.choice([0, 1, 9]))  # rounded numbers are often equal to each other, or -0.0

    def series(labels: IntArray) -> FloatArray:
        X = rng.normal(0, 0.5, (len(labels), T, F))
        X[np.arange(len(labels)), :, labels % F] += 1.5
        if constant is not None:
            X[..., constant] = 0.25
        X = X.round(decimals) * scale
        return np.asarray(X + center if offset else X, dtype=dtype)  # the sum of -0.0 and 0.0 would be 0.0

    constant = int(rng.integers(n_classes, F)) if n_classes < F and rng.random() < 0.5 else None
    X, queries = series(y), series(rng.integers(0, n_classes, 24))
    exact = dtype == np.float64 and (offset > 0 or rng.random() < 0.5)
    weights = torch.float64 if exact else torch.float32
    classifier = _model(kind, center, scale, n_classes, weights, X, y)
    return Material(seed, X, y, queries, classifier, kind, [f"feature {f}" for f in range(F)])


def _model(
    kind: str, center: FloatArray, scale: FloatArray, n_classes: int, dtype: torch.dtype, X: FloatArray, y: IntArray
) -> Classifier:
    if kind == "classifier":
        config = sp.ClassifierConfig.tiny().override("epochs=6")
        return sp.TorchClassifier("fcn", config).fit(X, y, progress=False)
    if kind == "sigmoid":
        return sp.wrap(Sigmoid(center, scale, 2, dtype), output="sigmoid")
    if kind == "channels first":
        return sp.wrap(ChannelsFirst(center, scale, n_classes, dtype), n_classes=n_classes, layout="bft")
    if kind == "module":
        return sp.wrap(Means(center, scale, n_classes, dtype), n_classes=n_classes)

    def black_box(x: FloatArray) -> FloatArray:
        logits = 6 * ((x[..., :n_classes].astype(np.float64) - center[:n_classes]) / scale[:n_classes]).mean(1)
        weights = np.exp(logits - logits.max(1, keepdims=True))
        return np.asarray(weights / weights.sum(1, keepdims=True))

    return sp.wrap(black_box)
