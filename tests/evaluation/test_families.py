"""Judges that are no networks: they learn, ignore padding, and leave threads and random state as they found them."""

import sys
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
import torch

import sparcets as sp
from sparcets.core.errors import FeatureMismatchError, MissingExtraError
from sparcets.evaluation import families
from sparcets.testing.data import make_series

needs_aeon = pytest.mark.skipif(find_spec("aeon") is None, reason="needs aeon: pip install 'sparcets[uea]'")
EACH = [
    pytest.param(name, marks=needs_aeon) if name in families.AEON else name
    for name in families.FAMILIES
    if name != "neural"
]
DATA = sp.Dataset.from_arrays(*make_series(60, n_features=3, n_classes=2))
PADDED = replace(DATA, lengths_train=np.full(len(DATA.X_train), 14), lengths_test=np.full(len(DATA.X_test), 14))


@pytest.fixture(scope="module")
def judge():
    """Return a function that fits each judge once."""
    made = {}

    def fit(family):
        if family not in made:
            made[family] = families.FamilyJudge(family).fit(PADDED)
        return made[family]

    return fit


@pytest.mark.parametrize("family", EACH)
def test_every_family_learns_the_task(judge, family):
    fitted = judge(family)
    assert fitted.name == family and fitted.class_names == DATA.class_names
    assert (fitted.predict(PADDED.X_test, PADDED.lengths_test) == DATA.y_test).mean() > 0.8
    proba = fitted.predict_proba(PADDED.X_test, PADDED.lengths_test)
    assert proba.shape == (12, 2)
    np.testing.assert_allclose(proba.sum(1), 1)


@pytest.mark.parametrize("family", EACH)
def test_padding_makes_no_difference(judge, family):
    noisy = PADDED.X_test.copy()
    noisy[:, 14:] = 50.0
    first, second = (judge(family).predict_proba(X, PADDED.lengths_test) for X in (PADDED.X_test, noisy))
    np.testing.assert_array_equal(first, second)


def random_state():
    """Return the position and the numbers of NumPy's global random state."""
    _, numbers, position, *_ = np.random.get_state()  # noqa: NPY002
    return [position, *numbers.tolist()]


@pytest.mark.parametrize("family", EACH)
def test_threads_and_random_state_are_left_as_they_were(family):
    assert torch.get_num_threads() == 1  # tests/conftest.py
    before = random_state()
    fitted = families.FamilyJudge(family).fit(DATA)
    assert torch.get_num_threads() == 1 and random_state() == before
    proba = fitted.predict_proba(DATA.X_test)
    assert torch.get_num_threads() == 1 and random_state() == before
    np.testing.assert_array_equal(families.FamilyJudge(family).fit(DATA).predict_proba(DATA.X_test), proba)


@needs_aeon
@pytest.mark.parametrize(
    ("version", "seed"), [("1.3.0", families.SEED % 2**31), ("1.5.0", families.SEED), ("2.0", families.SEED)]
)
def test_versions_of_aeon_that_take_small_seeds_only_are_given_one(version, seed, monkeypatch):
    monkeypatch.setattr(families, "version", {"aeon": version}.get)
    with families.preserve_global_state():
        assert families.make_estimator("convolutions", "classification").random_state == seed
    assert families.SEED >= 2**31


@needs_aeon
def test_the_threads_of_numba_are_restored():
    import numba

    if numba.config.NUMBA_NUM_THREADS < 2:
        pytest.skip("there is one thread only")
    numba.set_num_threads(2)
    with families.preserve_global_state():
        numba.set_num_threads(1)
    assert numba.get_num_threads() == 2 and torch.get_num_threads() == 1


@pytest.mark.parametrize("family", EACH)
def test_series_shorter_than_a_convolution(family):
    X, y = DATA.X_train[:, 8:11], DATA.y_train
    fitted = families.FamilyJudge(family).fit(replace(DATA, X_train=X, X_test=DATA.X_test[:, 8:11]))
    assert (fitted.predict(X) == y).mean() > 0.8
    with pytest.raises(FeatureMismatchError):
        fitted.predict(X[:, :2])


@needs_aeon
def test_distances_compare_with_few_series_of_every_class(monkeypatch):
    assert families.MAX_REFERENCES == 200
    monkeypatch.setattr(families, "MAX_REFERENCES", 10)
    rare = np.r_[np.flatnonzero(DATA.y_train == 0), np.flatnonzero(DATA.y_train == 1)[:5]]
    estimator = families.FamilyJudge("distances").fit(
        replace(DATA, X_train=DATA.X_train[rare], y_train=DATA.y_train[rare])
    )
    assert np.bincount(estimator._estimator.y_).tolist() == [5, 5]


def test_statistics_and_chosen_rows_by_hand():
    X = np.array([[1.0, 2.0, 4.0, 9.0], [3.0, 3.0, 3.0, np.nan], [5.0, np.nan, np.nan, np.nan]])[..., None]
    first, constant, single = families.summary_statistics(X)
    mean, std = 4.0, np.sqrt((9 + 4 + 0 + 25) / 4)
    lagged = (-3 * -2 + -2 * 0 + 0 * 5) / (9 + 4 + 0 + 25)
    np.testing.assert_allclose(first, [mean, std, 1, 9, 1.75, 3, 5.25, (1 + 2 + 5) / 3, lagged])
    assert constant.tolist() == [3, 0, 3, 3, 3, 3, 3, 0, 0]
    assert single.tolist() == [5, 0, 5, 5, 5, 5, 5, 0, 0]
    assert families.summary_statistics(np.zeros((2, 5, 3))).shape == (2, 27)
    y = np.random.default_rng(0).permutation(np.repeat([0, 1, 2], (700, 290, 10)))
    rows = families.choose_rows(y, 100)
    assert np.bincount(y[rows]).tolist() == [70, 29, 1] and (np.diff(rows) > 0).all()
    assert np.bincount(y[families.choose_rows(y, 100, balanced=True)]).tolist() == [45, 45, 10]
    assert families.choose_rows(y, 2000).tolist() == list(range(1000))
    np.testing.assert_array_equal(rows, families.choose_rows(y, 100))
    assert set(y[families.choose_rows(y, 3)]) == {0, 1, 2}  # one of each at least


def test_without_aeon_its_families_are_missing(monkeypatch):
    assert families.check_families(["statistics", "neural"]) == ("neural", "statistics")
    monkeypatch.setattr(families, "find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "aeon", None)
    assert families.missing_families() == families.AEON and families.check_families(None) == ("neural", "statistics")
    with pytest.raises(MissingExtraError, match=r"convolutions.* needs? aeon.*pip install 'sparcets\[uea\]'"):
        families.check_families(["quantiles"])
