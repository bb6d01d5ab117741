"""What a model that predicts numbers predicts: their names, units and usual spread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparcets.arrays import FloatArray
from sparcets.datasets.labels import default_output_names


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome:
    """Names, units and spread of the numbers that a model predicts.

    Attributes
    ----------
    names
        Of the outputs, by index.
    units
        Of the outputs, or None.
    center, scale
        Mean and standard deviation of the training labels, by output; a scale of 1 where they are all equal.
    """

    names: tuple[str, ...]
    units: tuple[str, ...] | None
    center: FloatArray
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

    def say(self, numbers: FloatArray, outputs: Sequence[int] | None = None) -> str:
        """Return numbers (outputs,), or those of some outputs, as text with units.

        >>> Outcome(names=("p",), units=("mmHg",), center=np.zeros(1), scale=np.ones(1)).say(np.array([41.23456]))
        '41.23 mmHg'
        """
        chosen = range(self.n_outputs) if outputs is None else outputs
        return ", ".join(f"{float(numbers[k]):.4g}{self.unit(k)}" for k in chosen)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        units = None if self.units is None else list(self.units)
        numbers = {"center": self.center.tolist(), "scale": self.scale.tolist()}
        return {"names": list(self.names), "units": units, **numbers}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Outcome:
        """Build from :meth:`to_dict`'s output; raise ValueError where values do not fit together."""
        units = None if data["units"] is None else tuple(data["units"])
        center, scale = (np.asarray(data[name], dtype=np.float64) for name in ("center", "scale"))
        made = cls(names=tuple(data["names"]), units=units, center=center, scale=scale)
        texts = (*made.names, *(made.units or ()))
        fits = center.shape == scale.shape == (made.n_outputs,) and np.isfinite([center, scale]).all()
        if not made.names or not fits or not (scale > 0).all() or not all(isinstance(text, str) for text in texts):
            raise ValueError(f"names, units, center and scale of {made.n_outputs} outputs do not fit together")
        if units is not None and len(units) != made.n_outputs:
            raise ValueError(f"{len(units)} units are not those of {made.n_outputs} outputs")
        return made
