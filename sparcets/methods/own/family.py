"""Families: features of one kind with heads on them, that an answer is optimised against or judged by."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sparcets.core.seeding import generator, spawn
from sparcets.core.series import FloatArray, IntArray, Series
from sparcets.methods.own.convolutions import RandomConvolutions
from sparcets.methods.own.forest import Forest
from sparcets.methods.own.intervals import IntervalQuantiles, IntervalStatistics
from sparcets.models.views import Goal

PENALTIES = 10.0 ** np.arange(-4, 2.5, 0.5)
TEMPERATURES = 10.0 ** np.arange(0, 1.6, 0.1)  # factors of the logits


class RidgeHead(nn.Module):
    """Ridge regression, to numbers or to ±1 per class; of classes its outputs, scaled by a temperature, are logits.

    Parameters
    ----------
    shift, scale
        Standardise the inputs (inputs,).
    weight, bias
        Of the linear map, (inputs, outputs) and (outputs,).
    accuracy
        By leave-one-out, a tensor without dimensions.
    """

    shift: Tensor
    scale: Tensor
    weight: Tensor
    bias: Tensor
    accuracy: Tensor

    def __init__(self, *, shift: Tensor, scale: Tensor, weight: Tensor, bias: Tensor, accuracy: Tensor) -> None:
        super().__init__()
        named = {"shift": shift, "scale": scale, "weight": weight, "bias": bias, "accuracy": accuracy}
        for name, tensor in named.items():
            self.register_buffer(name, tensor)

    @classmethod
    def fit(cls, inputs: Tensor, y: np.ndarray[Any, Any], n_classes: int | None = None) -> tuple[RidgeHead, FloatArray]:
        """Fit by one eigendecomposition; return the head and its leave-one-out outputs (batch, outputs).

        The penalty is the one with the least leave-one-out error, the temperature of classes the one with the best
        leave-one-out likelihood, so that a head on few series is not surer than it should be. Without ``n_classes``,
        ``y`` are numbers (batch, outputs), and the accuracy is the share of their variance that the leave-one-out
        predictions explain.

        Examples
        --------
        >>> inputs = torch.tensor([[0.0], [0.1], [0.9], [1.0]])
        >>> head, _ = RidgeHead.fit(inputs, np.array([0, 0, 1, 1]), 2)
        >>> head(inputs).argmax(1).tolist()
        [0, 0, 1, 1]
        >>> head, left_out = RidgeHead.fit(inputs, 3 * inputs.double().numpy())
        >>> head(torch.tensor([[0.5]])).round(decimals=2).tolist(), left_out.shape
        ([[1.5]], (4, 1))
        """
        Y: FloatArray = y if n_classes is None else 2.0 * np.eye(n_classes)[y] - 1
        shift, spread = inputs.mean(0), inputs.std(0)
        scale = torch.where(spread > 1e-6, 1 / spread, 0.0) / inputs.shape[1] ** 0.5  # constant inputs are left out
        values, U, to_weight = _decompose(((inputs - shift) * scale).double().cpu().numpy())
        rotated = U.T @ (Y - Y.mean(0))  # (rank, outputs)
        penalty, left_out = min(
            ((p, _leave_one_out(values, U, rotated, Y, p)) for p in PENALTIES),
            key=lambda tried: float(((Y - tried[1]) ** 2).mean()),
        )
        weight = to_weight(rotated / (values + penalty)[:, None])
        if n_classes is None:
            factor, accuracy = 1.0, 1 - ((Y - left_out) ** 2).sum() / max(((Y - Y.mean(0)) ** 2).sum(), 1e-12)
        else:
            factor = float(min(TEMPERATURES, key=lambda factor: _log_loss(factor * left_out, y)))
            accuracy = np.mean(left_out.argmax(1) == y)
        of_device = {
            name: torch.as_tensor(array, dtype=torch.float32, device=shift.device)
            for name, array in (("weight", factor * weight), ("bias", factor * Y.mean(0)), ("accuracy", accuracy))
        }
        return cls(shift=shift, scale=scale, **of_device), factor * left_out

    def forward(self, inputs: Tensor) -> Tensor:
        """Return logits (batch, classes), or numbers (batch, outputs)."""
        return ((inputs - self.shift) * self.scale) @ self.weight + self.bias


def _decompose(Z: FloatArray) -> tuple[FloatArray, FloatArray, Callable[[FloatArray], FloatArray]]:
    """Return eigenvalues, left singular vectors, and the map from rotated targets to the weights of the inputs.

    Of the Gram matrix or of the covariance, whichever is smaller.
    """
    n, d = Z.shape
    if n <= d:
        values, U = np.linalg.eigh(Z @ Z.T)
        return values.clip(0), U, lambda rotated: Z.T @ (U @ rotated)
    values, V = np.linalg.eigh(Z.T @ Z)
    values = values.clip(1e-12)
    root = np.sqrt(values)
    return values, Z @ V / root, lambda rotated: V @ (root[:, None] * rotated)


def _leave_one_out(values: FloatArray, U: FloatArray, rotated: FloatArray, Y: FloatArray, penalty: float) -> FloatArray:
    """Return the prediction of each series (batch, outputs) by a fit without it."""
    shrink = values / (values + penalty)
    predicted = U @ (shrink[:, None] * rotated) + Y.mean(0)
    leverage = (U**2 * shrink).sum(1) + 1 / len(Y)
    left_out: FloatArray = Y - (Y - predicted) / (1 - leverage).clip(1e-6)[:, None]
    return left_out


def _log_loss(logits: FloatArray, y: IntArray) -> float:
    top = logits.max(1, keepdims=True)
    normaliser = top[:, 0] + np.log(np.exp(logits - top).sum(1))
    return float((normaliser - logits[np.arange(len(y)), y]).mean())


FEW = 10  # series of a class that a model of a family learns from, if there are so many
STUMPS = 1200  # random thresholds on the features, which let a linear head follow trees
STUMP_WIDTH = 0.25  # of a smooth threshold, in standard deviations of its feature
SOFT_TREES, SOFT_DEPTH = 30, 9  # trees that an answer is optimised against
SHARP_TREES = 100  # trees of a judge
BATCH = 128  # series per pass while features of training series are computed
FEATURES: Mapping[str, Any] = {
    "convolutions": RandomConvolutions,
    "quantiles": IntervalQuantiles,
    "intervals": IntervalStatistics,
}


class Stumps(nn.Module):
    """Features (batch, features) to smooth thresholds of random ones of them (batch, stumps)."""

    feature: Tensor
    threshold: Tensor
    width: Tensor

    def __init__(self, *, feature: Tensor, threshold: Tensor, width: Tensor) -> None:
        super().__init__()
        for name, tensor in {"feature": feature, "threshold": threshold, "width": width}.items():
            self.register_buffer(name, tensor)

    @classmethod
    def draw(cls, features: Tensor, seed: int) -> Stumps:
        """Draw thresholds from the features of training series (batch, features)."""
        rng = generator(seed, "stumps")
        feature = torch.as_tensor(rng.integers(0, features.shape[1], STUMPS), device=features.device)
        row = torch.as_tensor(rng.integers(0, len(features), STUMPS), device=features.device)
        return cls(
            feature=feature,
            threshold=features[row, feature],
            width=STUMP_WIDTH * features.std(0)[feature] + 1e-6,
        )

    def forward(self, features: Tensor) -> Tensor:
        """Return values between 0 and 1 (batch, stumps)."""
        return torch.sigmoid((features[:, self.feature] - self.threshold) / self.width)


class Family(nn.Module):
    """Features of one family, computed once, with one or more heads on them: a classifier, or a regressor.

    Parameters
    ----------
    family
        One of ``FEATURES``.
    features
        From standardised series (batch, time, features) to features (batch, values).
    stumps
        Thresholds between the features and the linear heads, or None.
    ridges
        Linear heads, with the inputs of each.
    forest
        Trees on the features, or None.
    spread
        Of a regressor: root mean square error of its standardised predictions, by output (outputs,); else None.
    """

    spread: Tensor | None

    def __init__(
        self,
        family: str,
        features: nn.Module,
        *,
        stumps: Stumps | None = None,
        ridges: list[tuple[Tensor, RidgeHead]] | None = None,
        forest: Forest | None = None,
        spread: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.register_buffer("spread", spread)
        self.family, self.features, self.stumps, self.forest = family, features, stumps, forest
        self.ridges = nn.ModuleList(head for _, head in ridges or [])
        for i, (inputs, _) in enumerate(ridges or []):
            self.register_buffer(f"inputs_{i}", inputs)

    @classmethod
    def fit(
        cls,
        family: str,
        series: Series,
        y: np.ndarray[Any, Any],
        n_classes: int | None,
        seed: int,
        *,
        judges: bool = False,
        scale: FloatArray | None = None,
        device: torch.device | str = "cpu",
    ) -> Family:
        """Fit a model that answers are optimised against, or one that ``judges`` them.

        On convolutions there are linear heads; on intervals a linear head and smooth trees, or sharp trees of a judge.
        The series are standardised, in float32, and without gaps; ``scale`` (features,) are the units of their
        features. Without ``n_classes``, ``y`` are standardised numbers (batch, outputs).
        """
        features, values = draw_features(family, series, seed, scale=scale, sharp=judges, device=device)
        stumps = forest = None
        left_out: list[Any] = []
        columns, inputs = [], values
        if isinstance(features, RandomConvolutions):
            columns = features.columns()  # each set of convolutions has a head of its own
        else:
            size = (SHARP_TREES, None) if judges else (SOFT_TREES, SOFT_DEPTH)
            forest, by_trees = Forest.fit(values, y, n_classes, n_trees=size[0], max_depth=size[1], seed=seed)
            left_out.append(by_trees)
            if not judges:
                stumps = Stumps.draw(values, seed)
                inputs, columns = stumps(values), [torch.arange(STUMPS, device=values.device)]
        ridges = []
        for own in columns:
            head, by_head = RidgeHead.fit(inputs[:, own], y, n_classes)
            ridges.append((own, head))
            left_out.append(by_head)
        spread = None
        if n_classes is None:
            errors = np.mean([((y - one) ** 2).mean(0) for one in left_out], axis=0)
            spread = torch.as_tensor(np.sqrt(errors), dtype=torch.float32, device=values.device).clamp(0.05, 1.0)
        return cls(family, features, stumps=stumps, ridges=ridges, forest=forest, spread=spread)

    @property
    def accuracy(self) -> float:
        """Of the best head on the training series, by leave-one-out or out of bag."""
        return max(float(head.accuracy) for head in self._heads())

    @property
    def n_heads(self) -> int:
        """Number of heads."""
        return len(list(self._heads()))

    def at_length(self, n_steps: int, of: int) -> Family:
        """Return the same model for series of ``n_steps`` steps, if those that it knows are padded to ``of``.

        It shares all weights; its intervals are the same parts of a series, whatever its length.
        """
        if n_steps == of:
            return self
        assert isinstance(self.features, (RandomConvolutions, IntervalQuantiles, IntervalStatistics))
        ridges = [(self.get_buffer(f"inputs_{i}"), head) for i, head in enumerate(self.ridges)]
        return Family(
            self.family,
            self.features.at_length(n_steps, of),
            stumps=self.stumps,
            ridges=ridges,  # type: ignore[arg-type]
            forest=self.forest,
            spread=self.spread,
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return log-probabilities (heads, batch, classes) of standardised series, bounded, with gradients.

        Of a regressor, standardised numbers (heads, batch, outputs).
        """
        values = self.features(x)
        if self.spread is not None:
            return torch.stack([*self._linear(values), *([self.forest.mean(values)] if self.forest else [])])
        outputs = [logits.log_softmax(-1) for logits in self._linear(values)]
        return torch.stack([*outputs, *([self.forest.log_proba(values)] if self.forest else [])])

    @torch.no_grad()
    def votes(self, x: Tensor) -> Tensor:
        """Return the probabilities, or numbers, that each of its voters gives (voters, batch, outputs)."""
        values = self.features(x)
        outputs = [logits if self.spread is not None else logits.softmax(-1) for logits in self._linear(values)]
        if self.forest is not None:
            by_tree = self.forest.votes(values)  # (B, trees, outputs)
            size = max(1, by_tree.shape[1] // 5)
            outputs += [part.mean(1) for part in torch.split(by_tree, size, dim=1)]  # five small forests
        return torch.stack(outputs)

    def _linear(self, values: Tensor) -> Iterator[Tensor]:
        inputs = values if self.stumps is None else self.stumps(values)
        for i, ridge in enumerate(self.ridges):
            yield ridge(inputs[:, self.get_buffer(f"inputs_{i}")])

    def _heads(self) -> Iterator[RidgeHead | Forest]:
        for head in (*self.ridges, self.forest):
            if isinstance(head, (RidgeHead, Forest)):
                yield head

    def to_arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return all tensors by name; :meth:`from_arrays` restores the model."""
        return {name: tensor.cpu().contiguous().numpy() for name, tensor in self.state_dict().items()}

    @classmethod
    def from_arrays(cls, family: str, arrays: Mapping[str, np.ndarray[Any, Any]]) -> Family:
        """Return a model from the output of :meth:`to_arrays`."""
        parts: dict[str, dict[str, Tensor]] = {}
        for name, array in arrays.items():
            part, _, rest = name.rpartition(".")
            parts.setdefault(part, {})[rest] = torch.tensor(array)
        own = parts.get("", {})
        n_ridges = sum(name.startswith("inputs_") for name in own)
        ridges = [(own[f"inputs_{i}"], RidgeHead(**parts[f"ridges.{i}"])) for i in range(n_ridges)]
        return cls(
            family,
            FEATURES[family](**parts["features"]),
            stumps=Stumps(**parts["stumps"]) if "stumps" in parts else None,
            ridges=ridges,
            forest=Forest(**parts["forest"]) if "forest" in parts else None,
            spread=own.get("spread"),
        )


def choose_series(y: IntArray, seed: int, most: int) -> IntArray:
    """Return the rows of ``most`` training series, at random, and of a few more of classes that would be too rare.

    >>> y = np.repeat([0, 1], [98, 2])
    >>> y[choose_series(y, seed=0, most=20)].tolist() == [0] * 20 + [1] * 2
    True
    """
    order = generator(seed, "series of a family").permutation(len(y))
    chosen, left = order[:most], order[most:]
    further = [left[y[left] == k][: max(0, FEW - np.count_nonzero(y[chosen] == k))] for k in np.unique(y[left])]
    return np.concatenate([chosen, *further])


def draw_features(
    family: str, series: Series, seed: int, *, scale: FloatArray | None, sharp: bool, device: torch.device | str
) -> tuple[nn.Module, Tensor]:
    """Return a module that computes the features of a family, and those of the training series."""
    X = torch.as_tensor(series.values, device=device)
    drawn = FEATURES[family].draw(X, spawn(seed, family), scale=scale, sharp=sharp, lengths=series.lengths)

    def compute(part: Series) -> Tensor:
        features = drawn if part.n_steps == series.n_steps else drawn.at_length(part.n_steps, series.n_steps)
        return torch.cat([features(some) for some in torch.split(torch.as_tensor(part.values, device=device), BATCH)])

    with torch.no_grad():
        return drawn, by_length(series, compute)


def by_length(series: Series, compute: Callable[[Series], Tensor], dim: int = 0) -> Tensor:
    """Return what is computed of the series of each length, without padding, joined in the order of all of them."""
    parts = [(rows, compute(part)) for rows, part in series.by_length()]
    if len(parts) == 1:
        return parts[0][1]
    order = np.argsort(np.concatenate([rows for rows, _ in parts]))
    joined = torch.cat([part for _, part in parts], dim)
    return joined.index_select(dim, torch.as_tensor(order, device=joined.device))


class FamilyWithin(nn.Module):
    """A regressor of a family as a classifier of two classes, within the bounds of a goal and beyond them.

    The goal is of standardised numbers.
    """

    def __init__(self, regressor: Family, goal: Goal) -> None:
        super().__init__()
        assert regressor.spread is not None
        self.regressor, self.family, self.n_heads = regressor, regressor.family, regressor.n_heads
        self.accuracy = regressor.accuracy
        self.spread = regressor.spread.double().cpu().numpy()
        self.goal = goal.widened(self.spread)

    def at_length(self, n_steps: int, of: int) -> FamilyWithin:
        """Return the same view for series of ``n_steps`` steps; see :meth:`Family.at_length`."""
        return FamilyWithin(self.regressor.at_length(n_steps, of), self.goal)

    def forward(self, x: Tensor) -> Tensor:
        """Return log-probabilities (heads, batch, 2) of standardised series, with gradients."""
        depth = self.goal.depth(self.regressor(x), self.spread)
        return torch.stack([F.logsigmoid(depth), F.logsigmoid(-depth)], dim=-1)

    @torch.no_grad()
    def votes(self, x: Tensor) -> Tensor:
        """Return the probabilities that each of its voters gives (voters, batch, 2)."""
        depth = self.goal.depth(self.regressor.votes(x), self.spread)
        return torch.stack([torch.sigmoid(depth), torch.sigmoid(-depth)], dim=-1)
