"""What a search goes through: windows of time, courses that groups may follow in them, states and candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

import numpy as np

from sparcets.core.edits import fade
from sparcets.core.series import BoolArray, FloatArray, IntArray

KNOTS = 12  # borders of windows are multiples of this part of a series
RISE = 1 / 8  # of a series, in which an edit fades in or out
SHRINK = (1 / 2, 1 / 4, 1 / 8)  # of a window, that are given up at a time


class Windows:
    """Windows between the knots of a series of ``n_steps`` steps, with their weights; ``borders`` are knots as well."""

    def __init__(self, n_steps: int, borders: Sequence[int] = ()) -> None:
        parts = max(1, min(KNOTS, n_steps // 2))
        knots = np.linspace(0, n_steps, parts + 1).round().astype(int)
        self.knots: list[int] = np.unique([*knots.tolist(), *borders]).tolist()
        self.n_steps, self.rise = n_steps, max(1, round(n_steps * RISE))
        self._weights: dict[tuple[int, int], FloatArray] = {}

    @property
    def n_parts(self) -> int:
        """Number of parts between knots."""
        return len(self.knots) - 1

    def longest(self, free: BoolArray) -> tuple[int, int]:
        """Return the first and last knot of the longest window all of whose steps are free (time,)."""
        pairs = list(combinations(range(len(self.knots)), 2))
        fits = [(i, k) for i, k in pairs if free[self.knots[i] : self.knots[k]].all()]
        return max(fits, key=lambda pair: self.knots[pair[1]] - self.knots[pair[0]], default=(0, 0))

    def rises(self, first: int, last: int) -> tuple[int, int]:
        """Return in how many steps a window between two knots fades in and out: not at the ends of the series."""
        start, end = self.knots[first], self.knots[last]
        rise = min(self.rise, max(1, (end - start) // 2))
        return (rise if start else 0, rise if end < self.n_steps else 0)

    def weights(self, first: int, last: int) -> FloatArray:
        """Return the weight of each step (time,)."""
        if (first, last) not in self._weights:
            start, end = self.knots[first], self.knots[last]
            weights = np.zeros(self.n_steps)
            weights[start:end] = fade(end - start, *self.rises(first, last))
            self._weights[first, last] = weights
        return self._weights[first, last]


class Course(NamedTuple):
    """What groups may follow: a real series, or the query itself made higher, larger, later or smoother.

    Attributes
    ----------
    kind, amount
        As of an :class:`~sparcets.core.edits.Edit`.
    values
        Coordinates (time, features) where the edit acts fully.
    row
        Number of the training series, or None.
    unit
        Of a level, one standard deviation of each coordinate, with its sign (features,).
    """

    kind: str
    amount: float
    values: FloatArray
    row: int | None = None
    unit: FloatArray | None = None


ALL = -1  # instead of the number of a group


class Move(NamedTuple):
    """Another window of one group, between two knots; or another amount of ``ALL`` groups."""

    group: int
    first: int
    last: int
    amount: float = 1.0


class State(NamedTuple):
    """Which part of a course each group follows.

    Attributes
    ----------
    windows
        First and last knot of each group (groups, 2); equal where it follows nothing.
    amount
        Share of the way to the course.
    """

    windows: IntArray
    amount: float = 1.0

    @property
    def followers(self) -> list[int]:
        """Groups that follow."""
        return [int(group) for group in np.flatnonzero(self.windows[:, 1] > self.windows[:, 0])]

    @property
    def n_edits(self) -> int:
        """Number of groups that follow."""
        return len(self.followers)

    def alone(self) -> list[State]:
        """Return states in which only one of the groups follows."""
        numbers = np.arange(len(self.windows))[:, None]
        return [self._replace(windows=np.where(numbers == group, self.windows, 0)) for group in self.followers]

    def moves(self, narrowest: int) -> list[Move]:
        """Return what can be given up: all that a group follows, or a part of its window."""
        moves = []
        for group, (first, last) in enumerate(self.windows.tolist()):
            width = last - first
            options = {(0, 0)} if width else set()
            for share in SHRINK:
                given_up = max(1, round(width * share))
                if width - given_up >= narrowest:
                    options |= {(first + given_up, last), (first, last - given_up)}
            moves += [Move(group, *option) for option in sorted(options)]
        return moves

    def moved(self, move: Move) -> State:
        """Return the state with another window of one group, or with another amount."""
        if move.group == ALL:
            return self._replace(amount=move.amount)
        windows = self.windows.copy()
        windows[move.group] = move.first, move.last
        return self._replace(windows=windows)


@dataclass(eq=False)
class Candidate:
    """A state that follows a course, the series it makes, and what models say of it.

    Attributes
    ----------
    state, course
        Where it comes from.
    series
        Counterfactual (time, features).
    score, margin
        How convinced the least convinced head is, relative to real series; and by how much the explained model prefers
        the target.
    price
        Visible changes, and edits.
    real
        Whether it keeps the limits of recordings and the laws.
    n_edits
        Number of edits, those of the constraints too.
    needs
        Who needs the edit of each group.
    """

    state: State
    course: Course
    series: FloatArray
    score: float
    margin: float
    price: float
    real: bool
    n_edits: int = 0
    needs: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    valid: bool = False
    believed: bool = False
    proba: FloatArray | None = None
    support: FloatArray | None = None

    @property
    def standing(self) -> tuple[bool, bool, bool]:
        """Better ones are larger: valid, believed and real, believed."""
        return self.valid, self.believed and self.real, self.believed

    @property
    def good(self) -> bool:
        """Whether it is valid, believed and real."""
        return self.standing[:2] == (True, True)

    @property
    def rank(self) -> tuple[bool, bool, bool, float]:
        """Better ones are larger: by standing, and then by fewer changes."""
        return *self.standing, -self.price if self.valid else self.margin
