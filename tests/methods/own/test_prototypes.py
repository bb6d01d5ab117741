"""Prototypes: which series are kept, as they were recorded, and which are nearest."""

import numpy as np
import torch

import sparcets as sp
from sparcets.core.series import Scaler, Series
from sparcets.methods.own import prototypes as module
from sparcets.methods.own.prototypes import Prototypes
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule

X, Y = make_series(48, n_steps=12)
CLASSIFIER = sp.wrap(MeanModule(), n_classes=3)
QUERIES = torch.tensor(make_series(5, n_steps=12, seed=1)[0])
SCALER = Scaler(np.array([1.0, 0.0, 0.0, -2.0]), np.array([1.0, 2.0, 0.5, 1.0]))
NO_CLASS_2 = Prototypes(Series(X[Y != 2]), Y[Y != 2], np.flatnonzero(Y != 2), SCALER)


def test_they_are_series_that_are_labelled_and_predicted_as_their_class(fit_job):
    wrong = X.copy()
    wrong[np.flatnonzero(Y == 0)[:5], :, 0] -= 5  # labelled 0, predicted otherwise
    chosen = Prototypes.choose(fit_job(wrong, Y), CLASSIFIER, seed=0)
    assert len(chosen) == 48 - 5 and np.bincount(chosen.classes).tolist() == [11, 16, 16]
    right = np.flatnonzero(CLASSIFIER.predict(wrong) == Y)
    assert chosen.series.values.dtype == wrong.dtype and chosen.rows.tolist() == right.tolist()
    np.testing.assert_array_equal(chosen.series.values, wrong[right])
    np.testing.assert_array_equal(chosen.classes, Y[right])


def test_a_limited_number_per_class_is_drawn_by_the_seed(fit_job, monkeypatch):
    monkeypatch.setattr(module, "PER_CLASS", 3)
    monkeypatch.setattr(module, "MAX_ENTRIES", 0)
    job = fit_job(X, Y)
    one, same, other = (Prototypes.choose(job, CLASSIFIER, seed=seed) for seed in (0, 0, 1))
    assert np.bincount(one.classes).tolist() == [3, 3, 3] and np.array_equal(one.series.values, X[one.rows])
    assert np.array_equal(one.rows, same.rows) and not np.array_equal(one.rows, other.rows)
    monkeypatch.setattr(module, "MAX_ENTRIES", 3 * 5 * X[0].size)  # more of short series
    assert np.bincount(Prototypes.choose(job, CLASSIFIER, seed=0).classes).tolist() == [5, 5, 5]


def test_the_nearest_in_standardised_units_by_brute_force_and_minus_one_if_there_are_no_more():
    target, scaled = np.array([0, 1, 2, 1, 0]), SCALER.transform(NO_CLASS_2.series.values)
    rows = NO_CLASS_2.nearest(QUERIES, target, 3)
    for i, k in enumerate(target):
        series = [(row, one) for row, one in enumerate(scaled) if NO_CLASS_2.classes[row] == k]
        distance = [(float(((one - QUERIES[i].numpy()) ** 2).sum()), row) for row, one in series]
        assert rows[i].tolist() == ([row for _, row in sorted(distance)[:3]] if k != 2 else [-1, -1, -1])
    many = NO_CLASS_2.nearest(QUERIES, target, 20)
    assert ((many[target != 2] >= 0).sum(1) == 16).all() and (many[:, 16:] == -1).all()
