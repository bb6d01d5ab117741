"""The two-sample test: recordings cannot be told from recordings, and what has a trace can."""

from dataclasses import replace

import numpy as np
import pytest

import sparcets as sp
from sparcets.evaluation import outliers
from sparcets.evaluation.outliers import MIN_COMPARED, c2st
from tests.evaluation.conftest import build_explanation


def smooth_series(n: int, seed: int) -> np.ndarray:
    """Return series (n, 24, 2) that move little from step to step."""
    return np.random.default_rng(seed).normal(size=(n, 24, 2)).cumsum(1).astype(np.float32)


def data(**changes) -> sp.Dataset:
    ds = sp.Dataset.from_arrays(smooth_series(160, 0), np.arange(160) % 2, test_size=0.5, seed=0)
    return replace(ds, **changes)


def answers(ds: sp.Dataset, counterfactual: np.ndarray, **known):
    """Return answers of class 1 to test series of class 0, and their rows."""
    rows = np.flatnonzero(ds.y_test == 0)[: len(counterfactual)]
    query = ds.X_test[rows]
    e = build_explanation(counterfactual - query, query=query, **known)
    return replace(e, counterfactual=counterfactual), rows


def _with(ds: sp.Dataset, counterfactual: np.ndarray, **known):
    e, rows = answers(ds, counterfactual, **known)
    return e, ds, rows


@pytest.mark.parametrize("missing", [(), ("convolutions",)], ids=["aeon", "without aeon"])
def test_recordings_cannot_be_told_apart_and_noise_can(missing, monkeypatch):
    monkeypatch.setattr(outliers, "missing_families", lambda: missing)
    ds, fresh = data(), smooth_series(35, 5)
    like, n = c2st(*_with(ds, fresh))
    assert n == 35 and 0.3 < like < 0.75
    noisy = fresh + np.random.default_rng(1).normal(scale=2.0, size=fresh.shape).astype(np.float32)
    assert c2st(*_with(ds, noisy))[0] > 0.95


def test_only_changed_valid_answers_count_and_20_are_needed(monkeypatch):
    monkeypatch.setattr(outliers, "_scores", lambda X, is_made, asked: np.zeros((2, len(asked))))
    ds, made = data(), smooth_series(30, 5)
    valid = np.arange(30) < MIN_COMPARED
    e, _, rows = _with(ds, made, valid=valid)
    assert c2st(e, ds, rows) == (0.5, MIN_COMPARED)
    assert np.isnan(c2st(e, replace(ds, y_test=np.zeros_like(ds.y_test)), rows)[0])  # no recordings of class 1
    made[0] = e.query[0]  # valid, but not changed
    area, n = c2st(*_with(ds, made, valid=valid))
    assert np.isnan(area) and n == MIN_COMPARED - 1


def test_features_that_cannot_change_are_left_out(monkeypatch):
    shapes = set()
    monkeypatch.setattr(outliers, "_scores", lambda X, _, asked: shapes.add(X.shape[1:]) or np.zeros((2, len(asked))))
    c2st(*_with(data(mutable=np.array([True, False])), smooth_series(35, 5)))
    assert shapes == {(1, 24)}


def test_answers_from_one_training_series_are_in_one_fold(monkeypatch):
    ds = data()
    source = ds.X_train[ds.y_train == 1]
    made = np.repeat(source[:7], 5, axis=0) + np.random.default_rng(2).normal(scale=1e-3, size=(35, 24, 2))
    asked = []

    def record(X, is_made, others):
        asked.append(is_made.sum())
        return np.zeros((2, len(others)))

    monkeypatch.setattr(outliers, "_scores", record)
    c2st(*_with(ds, made.astype(np.float32)))
    assert all(n % 5 == 0 for n in asked) and len(asked) == 5
    alike = np.repeat(source[:1], 35, axis=0)
    alike[:, 0, 0] += np.arange(35, dtype=np.float32) * 1e-3
    assert np.isnan(c2st(*_with(ds, alike))[0])  # one group: no folds


def test_a_query_and_its_answers_are_in_one_group():
    query, donor = np.array([3, 4, 5, 3, 3, 9]), np.array([0, 1, 2])
    assert outliers._components(query, donor).tolist() == [0, 1, 2, 0, 0, 3]


def test_lengths_and_gaps_are_taken():
    ds, made = data(), smooth_series(35, 5)
    lengths = np.full(80, 20)
    X = ds.X_test.copy()
    X[:, 20:] = 0.0
    X[:, 5, 0] = np.nan
    ds = replace(ds, X_test=X, X_train=X[::-1].copy(), lengths_train=lengths, lengths_test=lengths)
    made[:, 20:] = 0.0
    made[:, 5, 0] = np.nan
    area, n = c2st(*_with(ds, made, lengths=np.full(35, 20)))
    assert n == 35 and 0.3 < area < 0.75


def test_it_is_a_measure_of_evaluate(monkeypatch):
    ds = data()
    e, rows = answers(ds, smooth_series(35, 5))
    info = replace(e.info, class_names=ds.class_names or ("0", "1"))
    e = replace(e, info=info)
    scores = sp.evaluate(e, ds, judges={})
    assert (scores.summary["c2st"]["mean"], scores.summary["c2st"]["n"]) == c2st(e, ds, rows)  # the same at every call
    monkeypatch.setattr("sparcets.evaluation.evaluate.missing_families", lambda: ("convolutions",))
    monkeypatch.setattr("sparcets.evaluation.evaluate.c2st", lambda *_: (0.5, 35))
    assert any(note.startswith("c2st is that of one classifier") for note in sp.evaluate(e, ds, judges={}).notes)
    assert "c2st" not in sp.evaluate(e, judges={}).summary
