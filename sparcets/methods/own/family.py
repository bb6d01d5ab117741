"""Families: features of one kind with heads on them, that an answer is optimised against or judged by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sparcets.core.arrays import FloatArray, IntArray
from sparcets.core.seeding import generator, spawn
from sparcets.core.series import rows_by_length
from sparcets.methods.own.convolutions import RandomConvolutions
from sparcets.methods.own.forest import Forest
from sparcets.methods.own.intervals import IntervalQuantiles, IntervalStatistics
from sparcets.methods.own.ridge import RidgeHead
from sparcets.models.views import Goal

if TYPE_CHECKING:
    from typing_extensions import Self


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
    """Features of one family, computed once, with one or more heads on them.

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
        Of a regressor: root mean square error of its predictions, by output (outputs,).
    """

    spread: Tensor

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
        if spread is not None:
            self.register_buffer("spread", spread)
        self.family, self.features, self.stumps, self.forest = family, features, stumps, forest
        self.ridges = nn.ModuleList(head for _, head in ridges or [])
        for i, (inputs, _) in enumerate(ridges or []):
            self.register_buffer(f"inputs_{i}", inputs)

    @property
    def accuracy(self) -> float:
        """Of the best head on the training series, by leave-one-out or out of bag."""
        return max(float(head.accuracy) for head in self._heads())

    @property
    def n_heads(self) -> int:
        """Number of heads."""
        return len(list(self._heads()))

    def at_length(self, n_steps: int, of: int) -> Self:
        """Return the same model for series of ``n_steps`` steps, if those that it knows are padded to ``of``.

        It shares all weights; its intervals are the same parts of a series, whatever its length.
        """
        assert isinstance(self.features, (RandomConvolutions, IntervalQuantiles, IntervalStatistics))
        ridges = [(self.get_buffer(f"inputs_{i}"), head) for i, head in enumerate(self.ridges)]
        return type(self)(
            self.family,
            self.features.at_length(n_steps, of),
            stumps=self.stumps,
            ridges=ridges,  # type: ignore[arg-type]
            forest=self.forest,
            spread=getattr(self, "spread", None),
        )

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
    def from_arrays(cls, family: str, arrays: Mapping[str, np.ndarray[Any, Any]]) -> Self:
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


class FamilyClassifier(Family):
    """A classifier of a family."""

    @classmethod
    def fit_member(
        cls,
        family: str,
        X: Tensor,
        y: IntArray,
        n_classes: int,
        seed: int,
        *,
        scale: FloatArray | None = None,
        lengths: IntArray | None = None,
    ) -> FamilyClassifier:
        """Fit one that answers are optimised against: a linear head and, on intervals, smooth trees.

        Parameters
        ----------
        family
            One of ``FEATURES``.
        X, y
            Standardised training series (batch, time, features) and labels (batch,).
        n_classes
            Number of classes.
        seed
            Same seed, same classifier.
        scale
            Units of the features (features,): their values are so many times the standardised ones.
        lengths
            True lengths of padded series, or None.
        """
        features, values = draw_features(family, X, seed, scale=scale, sharp=False, lengths=lengths)
        if family == "convolutions":
            return cls(family, features, ridges=_ridges(features, values, y, n_classes))
        stumps = Stumps.draw(values, seed)
        forest = Forest.fit(values, y, n_classes, n_trees=SOFT_TREES, max_depth=SOFT_DEPTH, seed=seed)
        ridge = (torch.arange(STUMPS, device=values.device), RidgeHead.fit(stumps(values), y, n_classes))
        return cls(family, features, stumps=stumps, ridges=[ridge], forest=forest)

    @classmethod
    def fit_judge(
        cls,
        family: str,
        X: Tensor,
        y: IntArray,
        n_classes: int,
        seed: int,
        *,
        scale: FloatArray | None = None,
        lengths: IntArray | None = None,
    ) -> FamilyClassifier:
        """Fit one that answers are chosen by: a linear head, or sharp trees; see :meth:`fit_member`."""
        features, values = draw_features(family, X, seed, scale=scale, sharp=True, lengths=lengths)
        if family == "convolutions":
            return cls(family, features, ridges=_ridges(features, values, y, n_classes))
        return cls(
            family, features, forest=Forest.fit(values, y, n_classes, n_trees=SHARP_TREES, max_depth=None, seed=seed)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return log-probabilities (heads, batch, classes) of standardised series, bounded, with gradients."""
        values = self.features(x)
        outputs = [logits.log_softmax(-1) for logits in self._linear(values)]
        if self.forest is not None:
            outputs.append(self.forest.log_proba(values))
        return torch.stack(outputs)

    @torch.no_grad()
    def votes(self, x: Tensor) -> Tensor:
        """Return the probabilities that each of its voters gives (voters, batch, classes), without gradients."""
        values = self.features(x)
        outputs = [logits.softmax(-1) for logits in self._linear(values)]
        if self.forest is not None:
            by_tree = self.forest.votes(values)  # (B, trees, K)
            size = max(1, by_tree.shape[1] // 5)
            outputs += [part.mean(1) for part in torch.split(by_tree, size, dim=1)]  # five small forests
        return torch.stack(outputs)


def _ridges(features: nn.Module, values: Tensor, y: IntArray, n_classes: int) -> list[tuple[Tensor, RidgeHead]]:
    """Return a linear head for each set of convolutions, and the columns of the features that it sees."""
    assert isinstance(features, RandomConvolutions)
    return [(columns, RidgeHead.fit(values[:, columns], y, n_classes)) for columns in features.columns()]


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
    family: str, X: Tensor, seed: int, *, scale: FloatArray | None, sharp: bool, lengths: IntArray | None
) -> tuple[nn.Module, Tensor]:
    """Return a module that computes the features of a family, and those of the training series."""
    drawn = FEATURES[family].draw(X, spawn(seed, family), scale=scale, sharp=sharp, lengths=lengths)
    with torch.no_grad():
        if lengths is None:
            return drawn, torch.cat([drawn(part) for part in torch.split(X, BATCH)])
        parts, order = [], []
        for n_steps, rows in rows_by_length(lengths):
            features = drawn.at_length(n_steps, X.shape[1])
            series = X[torch.as_tensor(rows, device=X.device), :n_steps]
            parts += [features(part) for part in torch.split(series, BATCH)]
            order.append(rows)
        return drawn, torch.cat(parts)[torch.as_tensor(np.argsort(np.concatenate(order)), device=X.device)]


class FamilyRegressor(Family):
    """A regressor of a family; its numbers are standardised."""

    @classmethod
    def fit_member(
        cls,
        family: str,
        X: Tensor,
        y: FloatArray,
        seed: int,
        *,
        scale: FloatArray | None = None,
        lengths: IntArray | None = None,
    ) -> FamilyRegressor:
        """Fit one that answers are optimised against: a linear head and, on intervals, smooth trees.

        Parameters
        ----------
        family
            One of ``FEATURES``.
        X, y
            Standardised training series (batch, time, features) and standardised labels (batch, outputs).
        seed
            Same seed, same model.
        scale
            Units of the features (features,): their values are so many times the standardised ones.
        lengths
            True lengths of padded series, or None.
        """
        features, values = draw_features(family, X, seed, scale=scale, sharp=False, lengths=lengths)
        if family == "convolutions":
            return cls._on_convolutions(features, values, y)
        stumps = Stumps.draw(values, seed)
        forest, by_trees = Forest.fit_numbers(values, y, n_trees=SOFT_TREES, max_depth=SOFT_DEPTH, seed=seed)
        ridge, by_ridge = RidgeHead.fit_numbers(stumps(values), y)
        inputs = torch.arange(STUMPS, device=values.device)
        spread = _spread(y, [by_trees, by_ridge], X.device)
        return cls(family, features, stumps=stumps, ridges=[(inputs, ridge)], forest=forest, spread=spread)

    @classmethod
    def fit_judge(
        cls,
        family: str,
        X: Tensor,
        y: FloatArray,
        seed: int,
        *,
        scale: FloatArray | None = None,
        lengths: IntArray | None = None,
    ) -> FamilyRegressor:
        """Fit one that answers are chosen by: a linear head, or sharp trees; see :meth:`fit_member`."""
        features, values = draw_features(family, X, seed, scale=scale, sharp=True, lengths=lengths)
        if family == "convolutions":
            return cls._on_convolutions(features, values, y)
        forest, left_out = Forest.fit_numbers(values, y, n_trees=SHARP_TREES, max_depth=None, seed=seed)
        return cls(family, features, forest=forest, spread=_spread(y, [left_out], X.device))

    @classmethod
    def _on_convolutions(cls, features: nn.Module, values: Tensor, y: FloatArray) -> FamilyRegressor:
        assert isinstance(features, RandomConvolutions)
        columns = features.columns()
        heads, left_out = zip(*(RidgeHead.fit_numbers(values[:, own], y) for own in columns), strict=True)
        spread = _spread(y, list(left_out), values.device)
        return cls("convolutions", features, ridges=list(zip(columns, heads, strict=True)), spread=spread)

    def forward(self, x: Tensor) -> Tensor:
        """Return standardised numbers (heads, batch, outputs) of standardised series, with gradients."""
        values = self.features(x)
        outputs = list(self._linear(values))
        if self.forest is not None:
            outputs.append(self.forest.mean(values))
        return torch.stack(outputs)

    @torch.no_grad()
    def votes(self, x: Tensor) -> Tensor:
        """Return the standardised numbers that each of its voters gives (voters, batch, outputs)."""
        values = self.features(x)
        outputs = list(self._linear(values))
        if self.forest is not None:
            by_tree = self.forest.votes(values)  # (B, trees, outputs)
            size = max(1, by_tree.shape[1] // 5)
            outputs += [part.mean(1) for part in torch.split(by_tree, size, dim=1)]  # five small forests
        return torch.stack(outputs)


class FamilyWithin(nn.Module):
    """A regressor of a family as a classifier of two classes, within the bounds of a goal and beyond them.

    Parameters
    ----------
    regressor
        The model.
    goal
        The standardised numbers that count.
    """

    def __init__(self, regressor: FamilyRegressor, goal: Goal) -> None:
        super().__init__()
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


def _spread(y: FloatArray, left_out: list[FloatArray], device: torch.device) -> Tensor:
    """Return the root mean square error of predictions of series that were left out, averaged over heads (outputs,)."""
    errors = np.mean([((y - one) ** 2).mean(0) for one in left_out], axis=0)
    return torch.as_tensor(np.sqrt(errors), dtype=torch.float32, device=device).clamp(0.05, 1.0)
