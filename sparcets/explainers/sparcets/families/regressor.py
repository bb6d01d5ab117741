"""FamilyRegressor: a model of a family that predicts numbers, and its view as a classifier of two classes."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sparcets.arrays import FloatArray, IntArray
from sparcets.classifiers.within import Goal
from sparcets.explainers.sparcets.families.classifier import (
    SHARP_TREES,
    SOFT_DEPTH,
    SOFT_TREES,
    STUMPS,
    Family,
    Stumps,
    draw_features,
)
from sparcets.explainers.sparcets.families.convolutions import RandomConvolutions
from sparcets.explainers.sparcets.families.forest import Forest
from sparcets.explainers.sparcets.families.ridge import RidgeHead


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
