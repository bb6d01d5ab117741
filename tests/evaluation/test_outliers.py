"""Outlier scores relative to real series: near 1 for real ones, higher for noise; padding does not count."""

from dataclasses import replace

import numpy as np
import pytest

from sparcets.core.errors import FeatureMismatchError
from sparcets.core.series import Scaler
from sparcets.data.dataset import Dataset
from sparcets.evaluation.outliers import RATIOS, Plausibility
from sparcets.testing.data import make_series


@pytest.fixture(scope="module")
def ds():
    X, y = make_series(300)
    return Dataset.from_arrays(X * np.array([1, 10, 100, 5], dtype=np.float32), y, test_size=0.4)


@pytest.fixture(scope="module")
def scaler(ds):
    return Scaler.fit(ds.X_train, ds.lengths_train)


@pytest.fixture(scope="module")
def fitted(ds, scaler):
    return Plausibility(ds, scaler)


@pytest.fixture(scope="module")
def answers(make_explanation):
    """Return a maker of answers whose counterfactuals are given."""

    def make(counterfactual, target, lengths=None):
        counterfactual = np.asarray(counterfactual)
        known = {"query": counterfactual, "target": target, "lengths": lengths, "n_classes": 3}
        return make_explanation(np.zeros_like(counterfactual), **known)

    return make


def noisy(X, scaler, size=1.5):
    return (X + size * scaler.scale * np.random.default_rng(0).normal(size=X.shape)).astype(np.float32)


@pytest.mark.parametrize("name", RATIOS)
def test_real_series_are_near_one_and_noise_is_above(ds, scaler, fitted, answers, name):
    real = fitted.ratios(answers(ds.X_test, ds.y_test))[name]
    for label in range(3):
        assert real[ds.y_test == label].mean() == pytest.approx(1, abs=1e-9)
    assert real == pytest.approx(np.ones(len(real)), abs=0.25)
    noise = fitted.ratios(answers(noisy(ds.X_test, scaler), ds.y_test))[name]
    assert noise.min() > real.max() and noise.mean() > real.mean() + 0.1


def test_nearest_neighbours_by_a_plain_loop(ds, scaler, fitted, answers):
    def flat(X):
        return ((X - scaler.center) / scaler.scale).reshape(len(X), -1)

    train, test = flat(ds.X_train[ds.y_train == 2]), flat(ds.X_test[ds.y_test == 2])
    queries = noisy(ds.X_test[:7], scaler)

    def score(series):
        return np.mean(sorted(np.sqrt(((series - other) ** 2).sum()) for other in train)[:5])

    expected = [score(series) / np.mean([score(other) for other in test]) for series in flat(queries)]
    np.testing.assert_allclose(fitted.ratios(answers(queries, 2))["knn_ratio"], expected, rtol=1e-6)


def test_distance_to_the_centre_of_the_svm_by_its_kernel(ds, scaler, fitted, answers):
    from sklearn.svm import OneClassSVM

    def flat(X):
        return ((X - scaler.center) / scaler.scale).reshape(len(X), -1)

    def kernel(a, b):
        return np.exp(-((a[:, None] - b[None]) ** 2).sum(2) / (train.shape[1] * train.var()))

    train, test = flat(ds.X_train[ds.y_train == 0]), flat(ds.X_test[ds.y_test == 0])
    queries = noisy(ds.X_test[:5], scaler)
    svm = OneClassSVM(nu=0.1).fit(train)
    weights, support = svm.dual_coef_[0] / (0.1 * len(train)), svm.support_vectors_
    assert weights.sum() == pytest.approx(1)

    def distance(x):  # ‖φ(x) − Σ wᵢ φ(sᵢ)‖²
        return 1 - 2 * kernel(x, support) @ weights + weights @ kernel(support, support) @ weights

    expected = distance(flat(queries)) / distance(test).mean()
    # The solver stops at 1e-3, and where it stops depends on the order of the series.
    np.testing.assert_allclose(fitted.ratios(answers(queries, 0))["svm_ratio"], expected, rtol=1e-3)


def test_padding_does_not_count(answers):
    X, y = make_series(240)
    rng = np.random.default_rng(0)
    lengths = rng.integers(16, 21, len(X))
    padding = np.arange(20)[None] >= lengths[:, None]
    results = []
    for filler in (0.0, 50.0):
        filled = np.where(padding[..., None], np.float32(filler), X)
        ds = Dataset.from_arrays(filled, y, test_size=0.4, lengths=lengths)
        e = answers(ds.X_test, ds.y_test, lengths=ds.lengths_test)
        results.append(Plausibility(ds, Scaler.fit(ds.X_train, ds.lengths_train)).ratios(e))
    for name in RATIOS:
        np.testing.assert_allclose(results[0][name], results[1][name], rtol=1e-5)
        assert results[0][name] == pytest.approx(np.ones(len(e)), abs=0.4)
    beyond = (np.arange(20) >= e.lengths[:, None])[..., None]
    filled = {name: np.where(beyond, np.float32(50), getattr(e, name)) for name in ("query", "counterfactual")}
    ignorant = replace(e, lengths=None, **filled)  # without lengths, the filler counts as data
    assert Plausibility(ds, Scaler.fit(ds.X_train, ds.lengths_train)).ratios(ignorant)["knn_ratio"].mean() > 5


def few(ds, n_train, n_test):
    """Return the data with so many series of class 0 in training and test."""
    rows = {}
    for part, n in (("train", n_train), ("test", n_test)):
        y = getattr(ds, f"y_{part}")
        rows[part] = np.concatenate([np.flatnonzero(y == 0)[:n], np.flatnonzero(y != 0)])
    parts = {f"{name}_{part}": getattr(ds, f"{name}_{part}")[rows[part]] for part in rows for name in "Xy"}
    return replace(ds, **parts)


@pytest.mark.parametrize(("n_train", "n_test", "known"), [(6, 1, True), (5, 9, False), (0, 9, False), (9, 0, False)])
def test_too_few_series_of_a_class(ds, scaler, answers, n_train, n_test, known):
    ratios = Plausibility(few(ds, n_train, n_test), scaler).ratios(answers(ds.X_test[:4], [0, 1, 2, 0]))
    for values in ratios.values():
        assert np.isfinite(values).tolist() == [known, True, True, known]


def test_repeated_series_count_once(ds, scaler, answers):
    often = replace(ds, X_train=np.tile(ds.X_train, (25, 1, 1)), y_train=np.tile(ds.y_train, 25))
    e = answers(noisy(ds.X_test[:5], scaler), 0)
    one, many = Plausibility(ds, scaler).ratios(e), Plausibility(often, scaler).ratios(e)
    for name in RATIOS:
        np.testing.assert_array_equal(one[name], many[name])
    same = replace(ds, X_train=np.zeros_like(ds.X_train))
    assert np.isnan(Plausibility(same, scaler).ratios(e)["lof_ratio"]).all()


def test_another_data_set_is_refused(ds, fitted, answers):
    with pytest.raises(FeatureMismatchError, match=r"series of \(20, 4\) steps and features, the explanation of \(20"):
        fitted.ratios(answers(ds.X_test[..., :3], 0))
