"""Small series with a known answer."""

import numpy as np
import pytest

from sparcets.core.errors import DataError
from sparcets.testing.data import make_series


def test_made_series_lift_the_feature_of_their_class_in_the_middle():
    series, labels = make_series(300, n_steps=9, n_features=5, n_classes=2, seed=4)
    assert series.shape == (300, 9, 5) and series.dtype == np.float32 and np.bincount(labels).tolist() == [150, 150]
    for k in range(2):
        means = series[labels == k].mean(0)
        expected = np.zeros((9, 5))
        expected[3:6, k] = 2
        np.testing.assert_allclose(means, expected, atol=0.2)
    np.testing.assert_array_equal(make_series(9, seed=4)[0], make_series(9, seed=4)[0])
    assert not np.array_equal(make_series(9, seed=4)[0], make_series(9, seed=5)[0])
    with pytest.raises(DataError, match="3 classes need more than as many features, got n_features=3"):
        make_series(n_features=3)
