"""Numbers that a model predicts: their names and units, and what a regressor says of queries and answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparcets.core.config import Record
from sparcets.core.errors import ShapeError
from sparcets.core.series import BoolArray, FloatArray, IntArray
from sparcets.core.words import distinct, missing_amount


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome(Record):
    """Names, units and spread of the numbers that a model predicts, by output."""

    names: tuple[str, ...]
    units: tuple[str, ...] | None
    center: FloatArray  # mean and standard deviation of the training labels; a scale of 1 where they are all equal
    scale: FloatArray

    @classmethod
    def of_labels(
        cls, y: FloatArray, names: tuple[str, ...] | None = None, units: tuple[str, ...] | None = None
    ) -> Outcome:
        """Describe training labels (batch, outputs).

        >>> Outcome.of_labels(np.array([[0.0, 1.0], [2.0, 1.0]]), units=("m", "s")).to_dict()
        {'names': ['output 0', 'output 1'], 'units': ['m', 's'], 'center': [1.0, 1.0], 'scale': [1.0, 1.0]}
        """
        spread = y.std(0)
        names = names or default_output_names(y.shape[1])
        return cls(names=names, units=units, center=y.mean(0), scale=np.where(spread > 0, spread, 1.0))

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return len(self.names)

    def summary(self) -> str:
        """Say what is predicted.

        >>> Outcome(names=("pressure",), units=("mmHg",), center=np.zeros(1), scale=np.ones(1)).summary()
        'numbers pressure (mmHg)'
        """
        units = self.units or [""] * self.n_outputs
        return f"numbers {', '.join(f'{n} ({u})' if u else n for n, u in zip(self.names, units, strict=True))}"

    def unit(self, output: int) -> str:
        """Return the unit of an output, with a space before it; empty where it is unknown."""
        return f" {self.units[output]}" if self.units is not None and self.units[output] else ""

    def say(
        self,
        numbers: FloatArray,
        outputs: Sequence[int] | None = None,
        bounds: FloatArray | None = None,
        beside: FloatArray | None = None,
    ) -> str:
        """Return numbers (outputs,), or those of some outputs, as text with units.

        A number that is not within its ``bounds`` (outputs, 2), or that is told ``beside`` another one (outputs,), has
        as many digits as show the difference.

        >>> pressure = Outcome(names=("p",), units=("mmHg",), center=np.zeros(1), scale=np.ones(1))
        >>> pressure.say(np.array([41.23456])), pressure.say(np.array([29.99999]), bounds=np.array([[30, np.inf]]))
        ('41.23 mmHg', '29.99999 mmHg')
        """
        chosen = range(self.n_outputs) if outputs is None else outputs
        texts = []
        for k in chosen:
            text = _number(float(numbers[k]), None if bounds is None else bounds[k])
            if beside is not None and numbers[k] != beside[k] and text == f"{beside[k]:.4g}":
                text = distinct(float(numbers[k]), float(beside[k]), style=".4g")[0]
            texts.append(f"{text}{self.unit(k)}")
        return ", ".join(texts)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Outcome:
        """Build from :meth:`to_dict`'s output; raise ValueError where values do not fit together."""
        made = super().from_dict(data)
        n, numbers = made.n_outputs, np.array([made.center, made.scale])
        fits = n > 0 and numbers.shape == (2, n) and np.isfinite(numbers).all() and (made.scale > 0).all()
        if not fits or len(made.units or made.names) != n:
            raise ValueError(f"names, units, center and scale of {n} outputs do not fit together")
        return made


def _number(value: float, bounds: FloatArray | None) -> str:
    if bounds is None or bounds[0] <= value <= bounds[1]:
        return f"{value:.4g}"
    return missing_amount(value, lambda written: bool(bounds[0] <= written <= bounds[1]), style=".4g")


PREFIX = "numbers_"  # of the arrays in a file
FIELDS = ("before", "after", "bounds")


@dataclass(frozen=True, kw_only=True, eq=False)
class Numbers:
    """Predicted numbers of answers, and what counts as their target.

    Examples
    --------
    >>> Numbers(before=np.array([[1.0]]), after=np.array([[3.0]]), bounds=np.array([[[3.0, np.inf]]])).reached.tolist()
    [True]
    """

    before: FloatArray  # the regressor's numbers for query and counterfactual (answers, outputs)
    after: FloatArray
    bounds: FloatArray  # smallest and largest number within the target (answers, outputs, 2), infinite where any counts

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


def default_output_names(n_outputs: int) -> tuple[str, ...]:
    """Return names for the numbers that a model predicts, where none are known.

    >>> default_output_names(1), default_output_names(2)
    (('number',), ('output 0', 'output 1'))
    """
    return ("number",) if n_outputs == 1 else tuple(f"output {k}" for k in range(n_outputs))
