"""Segments: contiguous changed steps of a feature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparcets.arrays import BoolArray, IntArray


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


def find_segments(changed: BoolArray) -> Segments:
    """Find the contiguous changed steps of each feature.

    Parameters
    ----------
    changed
        Changed entries (batch, time, features).

    Examples
    --------
    >>> found = find_segments(np.array([[1, 1, 0, 1]], dtype=bool)[..., None])
    >>> list(zip(found.start.tolist(), found.end.tolist()))
    [(0, 2), (3, 4)]
    """
    by_feature = changed.transpose(0, 2, 1)  # (batch, features, time)
    padded = np.pad(by_feature, ((0, 0), (0, 0), (1, 1))).astype(np.int8)
    edges = np.diff(padded, axis=2)  # (batch, features, time + 1): +1 where a segment starts, -1 after its end
    series, feature, start = np.nonzero(edges == 1)
    end = np.nonzero(edges == -1)[2]
    return Segments(series=series, feature=feature, start=start, end=end)
