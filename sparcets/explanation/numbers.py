"""Numbers: what a regressor predicts before and after the change, and between which numbers the target lies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparcets.arrays import BoolArray, FloatArray, IntArray
from sparcets.errors import ShapeError

PREFIX = "numbers_"  # of the arrays in a file
FIELDS = ("before", "after", "bounds")


@dataclass(frozen=True, kw_only=True, eq=False)
class Numbers:
    """Predicted numbers of answers, and what counts as their target.

    Attributes
    ----------
    before, after
        The regressor's numbers for query and counterfactual (answers, outputs).
    bounds
        Smallest and largest number within the target (answers, outputs, 2), infinite where any counts.

    Examples
    --------
    >>> Numbers(before=np.array([[1.0]]), after=np.array([[3.0]]), bounds=np.array([[[3.0, np.inf]]])).reached.tolist()
    [True]
    """

    before: FloatArray
    after: FloatArray
    bounds: FloatArray

    def __post_init__(self) -> None:
        if self.before.shape != self.after.shape or self.bounds.shape != (*self.before.shape, 2):
            shapes = ", ".join(f"{name} {getattr(self, name).shape}" for name in FIELDS)
            raise ShapeError(
                f"numbers need before, after (answers, outputs) and bounds (answers, outputs, 2); {shapes}."
            )

    @property
    def reached(self) -> BoolArray:
        """Whether every number after the change is within its bounds (answers,)."""
        return is_within(self.after, self.bounds)

    def __len__(self) -> int:
        return len(self.before)

    def __getitem__(self, rows: slice | IntArray | BoolArray) -> Numbers:
        """Select answers by slice, mask or indices."""
        return Numbers(**{name: getattr(self, name)[rows] for name in FIELDS})

    @classmethod
    def join(cls, parts: Sequence[Numbers]) -> Numbers:
        """Concatenate."""
        return cls(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in FIELDS})

    def to_arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return everything as plain arrays by name, for a file."""
        return {f"{PREFIX}{name}": getattr(self, name) for name in FIELDS}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Numbers | None:
        """Build from :meth:`to_arrays`'s output, among other arrays; None if there is none among them."""
        if not any(name.startswith(PREFIX) for name in arrays):
            return None
        return cls(**{name: arrays[f"{PREFIX}{name}"] for name in FIELDS})


def is_within(numbers: FloatArray, bounds: FloatArray) -> BoolArray:
    """Return whether all numbers (batch, outputs) are within their bounds (batch, outputs, 2) or (outputs, 2)."""
    return np.asarray(((numbers >= bounds[..., 0]) & (numbers <= bounds[..., 1])).all(1))
