"""Segments: contiguous changed steps of a feature, of either direction or of one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparcets.core.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Segments:
    """Contiguous changed steps, as parallel arrays sorted by series, feature and start.

    Attributes
    ----------
    series, feature
        Indices of the series and of the feature.
    start, end
        Half-open range of steps.
    """

    series: IntArray
    feature: IntArray
    start: IntArray
    end: IntArray

    def __len__(self) -> int:
        return len(self.start)


def find_segments(changed: BoolArray | FloatArray) -> Segments:
    """Find the contiguous steps of each feature that hold one value other than 0.

    Parameters
    ----------
    changed
        Changed entries (batch, time, features); or the signs of changes, for segments that only rise or only fall.

    Examples
    --------
    >>> found = find_segments(np.array([[1, 1, 0, 1]], dtype=bool)[..., None])
    >>> list(zip(found.start.tolist(), found.end.tolist()))
    [(0, 2), (3, 4)]
    >>> found = find_segments(np.sign([[0.5, 0.1, -0.2, 0.0]])[..., None])
    >>> list(zip(found.start.tolist(), found.end.tolist()))
    [(0, 2), (2, 3)]
    """
    by_feature = changed.transpose(0, 2, 1).astype(np.int8)  # (batch, features, time)
    padded = np.pad(by_feature, ((0, 0), (0, 0), (1, 1)))
    other = padded[:, :, 1:] != padded[:, :, :-1]  # (batch, features, time + 1): than the step before
    series, feature, start = np.nonzero(other[:, :, :-1] & (by_feature != 0))
    end = np.nonzero(other[:, :, 1:] & (by_feature != 0))[2] + 1
    return Segments(series=series, feature=feature, start=start, end=end)
