"""Standardisation per feature, fitted on training series."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sparcets.arrays import BoolArray, FloatArray, IntArray, length_mask
from sparcets.errors import DataError


@dataclass(frozen=True, eq=False)
class Scaler:
    """Centre and scale of each feature.

    Attributes
    ----------
    center, scale
        Mean and standard deviation per feature over all training series and steps, shape (features,).
        A constant feature has scale 1.

    Examples
    --------
    >>> scaler = Scaler.fit(np.array([[[1.0], [3.0]]]))
    >>> scaler.transform(np.array([[[3.0]]])).item(), scaler.inverse(np.array([[[1.0]]])).item()
    (1.0, 3.0)
    """

    center: FloatArray
    scale: FloatArray

    @classmethod
    def fit(cls, X: FloatArray, lengths: IntArray | None = None) -> Scaler:
        """Fit on training series of shape (batch, time, features), ignoring padding and missing entries."""
        flat = X.reshape(-1, X.shape[2])
        rows = flat if lengths is None else flat[length_mask(lengths, len(X), X.shape[1]).ravel()]  # (steps, features)
        center = rows.mean(0, dtype=np.float64)
        if np.isnan(center).any():  # entries are missing
            return cls._fit_with_gaps(rows)
        return cls._of(center, rows.std(0, dtype=np.float64), rows.min(0) == rows.max(0), _float_type(X))

    @classmethod
    def _fit_with_gaps(cls, rows: FloatArray) -> Scaler:
        """Fit on steps (steps, features) of which entries are missing."""
        empty = np.flatnonzero(np.isnan(rows).all(0))
        if len(empty):
            more = f", nor of {len(empty) - 1} more" if len(empty) > 1 else ""
            raise DataError(f"no training series has a value of feature {int(empty[0])}{more}. Leave it out.")
        constant = np.nanmin(rows, axis=0) == np.nanmax(rows, axis=0)
        center, scale = (np.asarray(f(rows, axis=0, dtype=np.float64)) for f in (np.nanmean, np.nanstd))
        return cls._of(center, scale, constant, _float_type(rows))

    @classmethod
    def _of(cls, center: FloatArray, scale: FloatArray, constant: BoolArray, kind: np.dtype[Any]) -> Scaler:
        # A standard deviation within rounding error counts as constant: dividing by it would amplify that error.
        constant = constant | (scale <= np.finfo(kind).eps * np.abs(center))
        return cls(center=center, scale=np.where(constant, 1.0, scale))

    def exact_from(self, first: int) -> Scaler:
        """Return a scaler with powers of two as scales from a feature on, and multiples of them as centres.

        So ordinary values come back from :meth:`transform` bit for bit, and a model gets them as they were given.
        """
        center, scale = self.center.copy(), self.scale.copy()
        scale[first:] = 2.0 ** np.round(np.log2(scale[first:]))
        center[first:] = np.round(center[first:] / scale[first:]) * scale[first:]
        return Scaler(center, scale)

    def transform(self, X: FloatArray) -> FloatArray:
        """Return standardised series, of the same dtype (integers become floats)."""
        return ((X - self.center) / self.scale).astype(_float_type(X), copy=False)

    def inverse(self, X: FloatArray) -> FloatArray:
        """Return series in their original units."""
        return (X * self.scale + self.center).astype(_float_type(X), copy=False)

    def add_delta(self, X: FloatArray, delta: FloatArray) -> FloatArray:
        """Add standardised residuals to series in original units; entries with zero delta stay bit-identical."""
        return np.where(delta == 0, X, X + delta * self.scale.astype(X.dtype))

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists for JSON."""
        return {"center": self.center.tolist(), "scale": self.scale.tolist()}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Scaler:
        """Build from :meth:`to_dict`'s output."""
        return cls(np.asarray(data["center"], dtype=np.float64), np.asarray(data["scale"], dtype=np.float64))


def _float_type(X: FloatArray) -> np.dtype[Any]:
    return np.result_type(X.dtype, np.float32)
