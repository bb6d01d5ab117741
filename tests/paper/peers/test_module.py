"""Conversion of series to the form of the peers and back."""

import numpy as np

from sparcets.core.info import SeriesInfo
from sparcets_paper.peers.cfts import from_peer, to_peer

X = np.random.default_rng(0).normal(5.0, 2.0, (20, 6, 3))
INFO = SeriesInfo.from_series(X, ("a", "b"))


def test_unchanged_entries_equal_the_query_exactly() -> None:
    query = np.full((6, 3), 1e6 + 1 / 3)  # the third is lost in float32, which peers compute in
    given = to_peer(query[None], INFO, longest_is_time=True)[0]
    found = given.astype(np.float64)
    found[1, 2] = 0.0
    answer = from_peer(found, given, query, INFO)
    expected = query.copy()
    expected[2, 1] = INFO.scaler.center[1]
    np.testing.assert_array_equal(answer, expected)


def test_round_trip() -> None:
    given = to_peer(X, INFO, longest_is_time=True)
    assert given.shape == (20, 3, 6) and given.dtype == np.float32
    back = from_peer(given[4].astype(np.float64), given[0], X[0], INFO)
    np.testing.assert_allclose(back, X[4], rtol=1e-6)
