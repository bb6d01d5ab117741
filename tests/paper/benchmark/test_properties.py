"""Properties of answers: stability under variations, and the numbers behind the figures, by hand."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import sparcets as sp
from sparcets.core.explanation import Explanation
from sparcets.testing.data import make_series
from sparcets.testing.mocks import mean_proba
from sparcets_paper.benchmark.properties import (
    figure_numbers,
    measure_stability,
    places,
    residual_distance,
    stays_in_place,
    stays_valid,
)
from tests.evaluation import conftest as explanations

WHAT = ("noise", "seed", "retrained")


@pytest.fixture(scope="module")
def data() -> sp.Dataset:
    return sp.Dataset.from_arrays(*make_series(90))


@pytest.fixture(scope="module")
def explainer(data: sp.Dataset) -> sp.Nearest:
    return sp.Nearest(sp.wrap(mean_proba)).fit(data)


def test_nothing_varied_gives_the_same_answers(data: sp.Dataset, explainer: sp.Nearest) -> None:
    e = explainer.explain(data.X_test, target=1)
    found = measure_stability(explainer, data, e, retrained=sp.wrap(mean_proba), noise=0.0)
    # The search has no seed of its own, and the second model is the first: nothing may differ anywhere.
    expected: dict[str, float] = {f"{what}_valid": 1.0 for what in WHAT} | {f"{what}_place": 1.0 for what in WHAT}
    assert found == expected | {f"{what}_distance": 0.0 for what in WHAT} | {"retrained_accepts": 1.0}


def test_noise_moves_the_answer_by_about_as_much(data: sp.Dataset, explainer: sp.Nearest) -> None:
    e = explainer.explain(data.X_test, target=1)
    small = measure_stability(explainer, data, e, retrained=sp.wrap(mean_proba))["noise_distance"]
    # The nearest series stays the same for most queries; then δ moves by the noise alone: mean |N(0, 0.05)| = 0.04.
    assert 0.03 < small < 0.2
    assert measure_stability(explainer, data, e, retrained=sp.wrap(mean_proba), noise=0.5)["noise_distance"] > 3 * small


def test_another_model_may_refuse(data: sp.Dataset, explainer: sp.Nearest) -> None:
    def doubting(X: Any) -> np.ndarray:
        """Accept every second counterfactual of class 1, by the sign of a feature that never matters."""
        proba = mean_proba(X)
        proba[X[:, 0, 3] > 0] = [0.9, 0.05, 0.05]
        return proba

    e = explainer.explain(data.X_test, target=1)
    found = measure_stability(explainer, data, e, retrained=sp.wrap(doubting))
    valid = e[(e.status != "unchanged") & e.valid]
    assert found["retrained_accepts"] == pytest.approx((valid.counterfactual[:, 0, 3] <= 0).mean())
    assert 0 < found["retrained_accepts"] < 1 and found["retrained_distance"] > 0


def test_queries_that_are_in_the_target_class_already_do_not_count(data: sp.Dataset, explainer: sp.Nearest) -> None:
    def certain(X: Any) -> np.ndarray:
        return np.tile([0.0, 1.0, 0.0], (len(X), 1))

    e = explainer.explain(data.X_test, target=1)
    assert (e.status == "unchanged").any()
    model = sp.wrap(certain, n_classes=3)
    already = sp.Nearest(model).fit(data).explain(data.X_test, target=1)
    assert (already.status == "unchanged").all()  # nothing to explain for it
    found = measure_stability(explainer, data, e, retrained=model)
    assert all(math.isnan(found[f"retrained_{name}"]) for name in ("valid", "place", "distance"))
    assert found["retrained_accepts"] == 1.0 and found["seed_valid"] == 1.0


def test_a_trained_method_is_fitted_again(data: sp.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[int] = []
    fit = sp.Nearest._fit

    def watched(self: Any, job: Any) -> None:
        seeds.append(self.config.seed)
        fit(self, job)

    monkeypatch.setattr(sp.Nearest, "_fit", watched)
    explainer = sp.Nearest(sp.wrap(mean_proba), sp.NearestConfig(seed=7)).fit(data)
    e = explainer.explain(data.X_test[:6], target=1)
    measure_stability(explainer, data, e, retrained=sp.wrap(mean_proba))
    assert seeds == [7, 8, 7]


@pytest.fixture(scope="module")
def short() -> sp.Dataset:
    return sp.Dataset.from_arrays(*make_series(60, n_steps=10))


@pytest.fixture(scope="module")
def e(short: sp.Dataset) -> Explanation:
    e = sp.Nearest(sp.wrap(mean_proba)).fit(short).explain(short.X_test, target=1)
    return e[e.status != "unchanged"]


def test_places_by_hand(e: Explanation) -> None:
    scale = e.info.scaler.scale
    delta = np.zeros(e.query.shape)
    salient = np.zeros(e.query.shape, dtype=bool)
    salient[:, 4:6, :2] = True
    delta[:, 4:6, 0] = 2 * scale[0]  # half of the box
    delta[:, 0, 3] = scale[3]  # one of 12 entries of the first three steps
    changed = replace(e, counterfactual=e.query + delta)
    found = places(changed, salient)
    expected = {
        "inside": (1.0, 0.5),
        "first": (1 / 12, 1 / 12),
        "last": (0, 0),
        "between": (0, 0),
        "outside": (1 / 36,) * 2,
    }
    for name, (size, share) in expected.items():
        assert found[name]["size"] == pytest.approx(size, abs=1e-6), name
        assert found[name]["changed"] == pytest.approx(share), name
    np.testing.assert_allclose(found["profile"], [0.25, *[0] * 9], atol=1e-6)


def test_only_what_the_data_have(e: Explanation, short: sp.Dataset) -> None:
    rows = np.arange(len(short.X_test))
    found = figure_numbers(e, short, rows)
    assert set(found) == {"map", "space"} and sum(found["space"].values()) == pytest.approx(1)
    # The counterfactuals of the nearest neighbour are real series of the training part.
    assert found["space"]["queries"] < found["space"]["targets"]
    assert figure_numbers(e[:0], short, rows) == {}


def test_limbs_of_catching() -> None:
    ds = sp.load_dataset("catching")
    middle = np.median(ds.X_train[:, 0, 0])
    clf = sp.wrap(lambda X: np.eye(3)[np.where(X[:, 0, 0] > middle, 2, 0)])
    queries = ds.X_test[ds.X_test[:, 0, 0] <= middle][:3]
    e = sp.Nearest(clf).fit(ds).explain(queries, target="Control")
    found = figure_numbers(replace(e, counterfactual=2 * e.query), ds, np.arange(3))
    for limb in found["limbs"].values():
        np.testing.assert_allclose(limb["answers"], 2 * np.array(limb["queries"]), rtol=1e-5)


make_explanation = explanations.make_explanation  # a fixture

# Four answers of 3 steps × 2 features; the second feature's standard deviation is 2.
ONE = np.tile([[1, 2], [0, 0], [0, 0]], (4, 1, 1))
OTHER = np.tile([[1, 0], [0, 0], [3, 0]], (4, 1, 1))
SCALE = [1.0, 2.0]


@pytest.fixture
def two(make_explanation):
    def make(**known):
        e = make_explanation(ONE, scale=SCALE, valid=[True, True, False, False], **known)
        other = make_explanation(OTHER, query=0.5, scale=99.0, valid=[True, False, True, False], **known)
        return e, other

    return make


def test_by_hand(two):
    e, other = two()
    np.testing.assert_array_equal(stays_valid(e, other), [1, 0, np.nan, np.nan])
    np.testing.assert_allclose(stays_in_place(e, other), [1 / 3, np.nan, np.nan, np.nan])
    # Standardised by the scaler of the first: |0 - 3| + |1 - 0|.
    np.testing.assert_allclose(residual_distance(e, other), [4 / 6, np.nan, np.nan, np.nan])


def test_padding_does_not_count(two):
    e, other = two(lengths=[2, 2, 2, 2])
    np.testing.assert_allclose(stays_in_place(e, other)[0], 1 / 2)
    np.testing.assert_allclose(residual_distance(e, other)[0], 1 / 4)
