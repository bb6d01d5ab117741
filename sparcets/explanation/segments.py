"""Segments: contiguous changed steps of a feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sparcets.arrays import BoolArray, IntArray

if TYPE_CHECKING:
    import pandas as pd

    from sparcets.explanation.result import Explanation


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


def segments_frame(explanation: Explanation) -> pd.DataFrame:
    """Return the changed segments of all answers as a tidy table; see :meth:`Explanation.to_frame`."""
    import pandas as pd

    found = find_segments(explanation.changed)
    delta = explanation.counterfactual.astype(np.float64) - explanation.query
    # One sum per segment, without a loop: reduceat sums from each edge to the next.
    flat = np.append(delta.transpose(0, 2, 1).ravel(), 0.0)  # (answers * features * time + 1,)
    row = (found.series * explanation.info.n_features + found.feature) * explanation.query.shape[1]
    edges = np.stack([row + found.start, row + found.end], axis=1).ravel()
    change = np.add.reduceat(flat, edges)[::2] if len(found) else np.zeros(0)
    units = np.array(explanation.info.units or [""] * explanation.info.n_features, dtype=object)
    frame: pd.DataFrame = pd.DataFrame(
        {
            "query": explanation.query_index[found.series],
            "feature": np.array(explanation.feature_names, dtype=object)[found.feature],
            "start": found.start,
            "end": found.end,
            "mean_change": change / (found.end - found.start),
            "units": units[found.feature],
            "answer": found.series,
            "valid": explanation.valid[found.series],
            "believed": explanation.believed[found.series],
        }
    )
    return frame
