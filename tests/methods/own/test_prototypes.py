"""Prototypes: which series are kept, which are nearest, and what a query without one gets."""

import numpy as np
import pytest
import torch
from sparcets.methods.own.candidates import Prototypes

import sparcets as sp
from sparcets.core.series import Series
from sparcets.methods.own import candidates as module
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule

X, Y = make_series(48, n_steps=12)
CLASSIFIER = sp.wrap(MeanModule(), n_classes=3)
QUERIES = torch.tensor(make_series(5, n_steps=12, seed=1)[0])
NO_CLASS_2 = Prototypes(Series(X[Y != 2]), Y[Y != 2])


def test_they_are_series_that_are_labelled_and_predicted_as_their_class(fit_job):
    wrong = X.copy()
    wrong[np.flatnonzero(Y == 0)[:5], :, 0] -= 5  # labelled 0, predicted otherwise
    job = fit_job(wrong, Y)
    chosen = Prototypes.choose(job, CLASSIFIER, seed=0)
    assert len(chosen) == 48 - 5 and np.bincount(chosen.classes).tolist() == [11, 16, 16]
    right = CLASSIFIER.predict(wrong) == Y
    np.testing.assert_array_equal(chosen.series.values, job.info.scaler.transform(wrong[right]).astype(np.float32))
    np.testing.assert_array_equal(chosen.classes, Y[right])


def test_a_limited_number_per_class_is_drawn_by_the_seed(fit_job, monkeypatch):
    monkeypatch.setattr(module, "PER_CLASS", 3)
    monkeypatch.setattr(module, "MAX_ENTRIES", 0)
    job = fit_job(X, Y)
    one, same, other = (Prototypes.choose(job, CLASSIFIER, seed=seed) for seed in (0, 0, 1))
    assert np.bincount(one.classes).tolist() == [3, 3, 3]
    assert np.array_equal(one.series.values, same.series.values) and not np.array_equal(
        one.series.values, other.series.values
    )
    monkeypatch.setattr(module, "MAX_ENTRIES", 3 * 5 * X[0].size)  # more of short series
    assert np.bincount(Prototypes.choose(job, CLASSIFIER, seed=0).classes).tolist() == [5, 5, 5]


def test_the_nearest_by_brute_force_and_minus_one_if_there_are_no_more():
    target = np.array([0, 1, 2, 1, 0])
    rows = NO_CLASS_2.nearest(QUERIES, target, 3)
    for i, k in enumerate(target):
        distance = [
            (float(((series - QUERIES[i].numpy()) ** 2).sum()), row)
            for row, series in enumerate(NO_CLASS_2.series.values)
            if NO_CLASS_2.classes[row] == k
        ]
        assert rows[i].tolist() == ([row for _, row in sorted(distance)[:3]] if k != 2 else [-1, -1, -1])
    many = NO_CLASS_2.nearest(QUERIES, target, 20)
    assert ((many[target != 2] >= 0).sum(1) == 16).all() and (many[:, 16:] == -1).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_prototypes_by_row_and_the_query_itself_for_minus_one(dtype):
    x = QUERIES[:3].to(dtype)
    selected = NO_CLASS_2.select(np.array([4, -1, 0]), x)
    torch.testing.assert_close(selected[[0, 2]], torch.tensor(NO_CLASS_2.series.values[[4, 0]], dtype=dtype))
    assert torch.equal(selected[1], x[1]) and selected.dtype == dtype


def test_without_any_the_query_itself_is_selected():
    none = Prototypes(Series(np.zeros((0, 12, 4), dtype=np.float32)), np.zeros(0, dtype=np.int64))
    rows = none.nearest(QUERIES, np.zeros(5, dtype=np.int64), 2)
    assert len(none) == 0 and (rows == -1).all()
    assert torch.equal(none.select(rows[:, 0], QUERIES), QUERIES)
