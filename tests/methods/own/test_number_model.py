"""What is fitted to numbers, seen as two classes for a goal."""

import numpy as np
import pytest

import sparcets as sp
from sparcets.core.target import is_within
from sparcets.models.views import WITHIN, Goal
from sparcets.testing.data import make_series


@pytest.fixture(scope="module")
def fitted():
    X, _ = make_series(90)
    y = X[:, :, 0].mean(1)
    black_box = sp.wrap(lambda Z: np.asarray(Z)[:, :, 0].mean(1), task="regression")
    return sp.Explainer(black_box, sp.ExplainerConfig.tiny()).fit(X, y), X, y


def test_prototypes_and_references_are_within_the_goal(fitted):
    explainer, _, y = fitted
    goal = Goal(np.array([[np.quantile(y, 0.7), np.inf]]), ("high", "low"))
    view = explainer._number_model.within(goal)
    series = explainer.info_.scaler.inverse(view.prototypes.series.values)
    assert is_within(explainer.classifier.predict(series), goal.bounds - 1e-5).all()
    assert len(series) == is_within(y[:, None], goal.bounds).sum()
    assert len(view.reference.series) == len(series) and (view.prototypes.classes == WITHIN).all()


def test_where_no_series_is_within_the_closest_ones_are_taken(fitted):
    explainer, _, y = fitted
    view = explainer._number_model.within(Goal(np.array([[y.max() + 1, np.inf]]), ("higher", "other")))
    series = explainer.info_.scaler.inverse(view.prototypes.series.values)
    assert np.sort(series[:, :, 0].mean(1))[0] >= np.sort(y)[-len(series)] - 1e-5 and 1 <= len(series) < 10
    assert not len(view.reference.series)


def test_levels_are_those_of_real_series_within_the_goal(fitted):
    explainer, _, y = fitted
    easy, hard = (
        explainer._number_model.within(Goal(np.array([[np.quantile(y, q), np.inf]]), ("in", "out"))).ensemble.levels
        for q in (0.2, 0.98)
    )
    assert ((easy[:, WITHIN] >= hard[:, WITHIN]) & (hard[:, WITHIN] >= 0.5)).all()
    assert (easy[:, WITHIN] > hard[:, WITHIN]).any()
