"""Segments of change, against a plain loop."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sparcets.core.evidence import find_segments


def by_loop(changed: Any) -> list[tuple[int, int, int, int]]:
    found = []
    for i, f in np.ndindex(changed.shape[0], changed.shape[2]):
        start, value = 0, 0
        for t in range(changed.shape[1] + 1):
            now = int(changed[i, t, f]) if t < changed.shape[1] else 0
            if now != value:
                if value:
                    found.append((i, f, start, t))
                start, value = t, now
    return found


SHAPES = hnp.array_shapes(min_dims=3, max_dims=3, min_side=0, max_side=6)


@given(hnp.arrays(bool, SHAPES) | hnp.arrays(np.float64, SHAPES, elements=st.sampled_from([-1.0, 0.0, 1.0])))
def test_segments_equal_those_of_a_loop(changed: Any) -> None:
    found = find_segments(changed)
    rows = list(zip(found.series, found.feature, found.start, found.end, strict=True))
    assert rows == by_loop(changed) and len(found) == len(rows)
