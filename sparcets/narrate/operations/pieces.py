"""Pieces: the changed stretches of several features, as flat arrays that operations are fitted to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from sparcets.arrays import FloatArray, IntArray

MAX_ENTRIES = 300  # of a stretch; of a longer one, evenly spaced steps are looked at
FADES = (0.0, 0.1, 0.2)  # shares of a stretch in which an operation may fade in, and out


@dataclass(frozen=True)
class Stretch:
    """Steps ``start`` to ``end`` (half-open) of one feature, within which it changes."""

    feature: int
    start: int
    end: int


@dataclass(frozen=True, eq=False)
class Pieces:
    """Stretches of one query and its counterfactual that one operation may explain.

    Attributes
    ----------
    query, made
        The series (time, features) in the data's own units, without padding.
    scale
        Standard deviation of each feature.
    stretches
        The stretches; every step of them counts, also unchanged ones.
    step, feature, owner
        Of every step of every stretch (entries,): the step, the feature, and the index of the stretch; of very long
        ones, of some steps.
    before, delta
        Values of the query, and the changes there (entries,).
    weight
        1 / scale² of every entry: changes of several features are compared in standard deviations.
    fades
        Factors (fades, entries) by which an operation may fade in at the beginning of a stretch, and out at its end;
        the first ones are all 1.
    """

    query: FloatArray
    made: FloatArray
    scale: FloatArray
    stretches: tuple[Stretch, ...]
    step: IntArray = field(init=False)
    feature: IntArray = field(init=False)
    owner: IntArray = field(init=False)
    before: FloatArray = field(init=False)
    delta: FloatArray = field(init=False)
    weight: FloatArray = field(init=False)
    fades: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        steps = [np.arange(s.start, s.end, -(-(s.end - s.start) // MAX_ENTRIES)) for s in self.stretches]
        sizes = [len(of_stretch) for of_stretch in steps]
        owner = np.repeat(np.arange(len(sizes)), sizes)
        step = np.concatenate(steps)
        feature = np.array([s.feature for s in self.stretches])[owner]
        before = self.query[step, feature]
        values = {
            "step": step,
            "feature": feature,
            "owner": owner,
            "before": before,
            "delta": self.made[step, feature] - before,
            "weight": 1 / self.scale[feature] ** 2,
            "fades": np.stack([np.concatenate([_fade(n, share) for n in sizes]) for share in FADES]),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def energy(self) -> FloatArray:
        """Size of the change of each stretch (stretches,): squared, in standard deviations."""
        return self.sum_by_stretch(self.weight * self.delta**2)

    def sum_by_stretch(self, values: FloatArray) -> FloatArray:
        """Sum values (entries,) within each stretch (stretches,)."""
        return np.asarray(np.bincount(self.owner, values, minlength=len(self.stretches)), dtype=np.float64)

    def select(self, chosen: Sequence[int]) -> Pieces:
        """Return some of the stretches, by index."""
        return Pieces(self.query, self.made, self.scale, tuple(self.stretches[k] for k in chosen))

    def at(self, steps: FloatArray) -> FloatArray:
        """Return the query's values at other steps (…, entries), between steps by linear interpolation.

        Before the first and after the last step, their values are held.
        """
        steps = np.clip(steps, 0, len(self.query) - 1)
        left = np.minimum(steps.astype(np.int64), max(len(self.query) - 2, 0))
        part = steps - left
        right = np.minimum(left + 1, len(self.query) - 1)
        return np.asarray(self.query[left, self.feature] * (1 - part) + self.query[right, self.feature] * part)

    def explained(self, guess: FloatArray) -> FloatArray:
        """Return the share of the change that guesses (…, entries) explain: 1 is all, below 0 is worse than none."""
        left = (self.weight * (self.delta - guess) ** 2).sum(-1)
        return np.asarray(1 - left / (self.weight * self.delta**2).sum())

    def explained_of_each(self, guess: FloatArray) -> FloatArray:
        """Return the share of the change of every stretch (stretches,) that a guess (entries,) explains."""
        left = self.sum_by_stretch(self.weight * (self.delta - guess) ** 2)
        return np.asarray(1 - left / np.maximum(self.energy, 1e-300))


def _fade(n: int, share: float) -> FloatArray:
    """Return factors (n,) that rise to 1 and fall again, each over a share of the steps.

    >>> _fade(6, 0.4).round(2).tolist()
    [0.33, 0.67, 1.0, 1.0, 0.67, 0.33]
    """
    steps = np.arange(1, n + 1)
    width = int(share * n) + 1
    return np.asarray(np.minimum(1.0, np.minimum(steps, steps[::-1]) / width))
