"""Stability: equal answers if nothing varies, and measured differences otherwise."""

import math
from typing import Any

import numpy as np
import pytest

import sparcets as sp
from sparcets.testing.data import make_series
from sparcets.testing.mocks import mean_proba
from sparcets_paper.benchmark.properties import measure_stability

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


def test_the_first_queries_are_compared(data: sp.Dataset, explainer: sp.Nearest) -> None:
    e = explainer.explain(data.X_test, target=1)
    answered = e[e.status != "unchanged"]
    model = sp.wrap(mean_proba)
    some = measure_stability(explainer, data, e, retrained=model, at_most=3)
    assert some == measure_stability(explainer, data, answered[:3], retrained=model)
    assert some != measure_stability(explainer, data, e, retrained=model)


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
