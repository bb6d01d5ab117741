"""Precision in its three readings, by hand."""

import math

import numpy as np

from sparcets.datasets.scaling import Scaler
from sparcets.explanation import Explanation
from sparcets.metrics.validity import error_rate, index_distance, probability_distance
from sparcets.series_info import SeriesInfo


def explanation(target, proba):
    target, proba = np.array(target), np.array(proba)
    B, K = proba.shape
    info = SeriesInfo(
        feature_names=("a",),
        class_names=tuple("wxyz"[:K]),
        units=None,
        sampling_rate=None,
        mutable=np.array([True]),
        n_steps=1,
        scaler=Scaler(np.zeros(1), np.ones(1)),
        span=np.ones(1),
    )
    return Explanation(
        query=np.zeros((B, 1, 1)),
        counterfactual=np.ones((B, 1, 1)),
        target=target,
        status=np.full(B, "generated"),
        reason=np.full(B, ""),
        query_index=np.arange(B),
        proba_before=proba,
        proba_after=proba,
        info=info,
        mutable=np.array([True]),
    )


E = explanation([3, 3, 1, 0], [[0, 0, 0, 1.0], [1.0, 0, 0, 0], [0.1, 0.6, 0.3, 0], [0.2, 0.2, 0.6, 0.0]])


def test_error_rate_is_one_minus_validity():
    assert error_rate(E).tolist() == [0, 1, 0, 1]
    assert error_rate(E).mean() == 1 - E.valid.mean()


def test_index_distance_is_between_class_numbers():
    assert index_distance(E).tolist() == [0, 3, 0, 2]


def test_probability_distance_is_l2_to_certainty():
    third = math.sqrt(0.1**2 + 0.4**2 + 0.3**2)
    fourth = math.sqrt(0.8**2 + 0.2**2 + 0.6**2)
    np.testing.assert_allclose(probability_distance(E), [0, math.sqrt(2), third, fourth])
