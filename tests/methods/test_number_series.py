"""Regressors and series as they come: of unequal length, with missing values, long; and fits that were cut off."""

import numpy as np
import pytest
import torch
from torch import nn

import sparcets as sp
from sparcets.methods.own import explainer as method
from sparcets.methods.own import grid
from sparcets.methods.own import grid as long_fit
from sparcets.testing.data import make_series

N, STEPS = 72, 20
X, _ = make_series(N, n_steps=STEPS)
LENGTHS = np.random.default_rng(0).integers(12, STEPS + 1, N)
LENGTHS[:3] = (12, 15, STEPS)
INSIDE = np.arange(STEPS)[None] < LENGTHS[:, None]
PADDED = np.where(INSIDE[..., None], X, 0)
GAPS = (np.random.default_rng(1).random(X.shape) < 0.15) & (np.arange(STEPS) > 0)[None, :, None]
TINY = sp.ExplainerConfig(families=("intervals",))


class Level(nn.Module):
    """The mean of the first feature over the steps that a series has."""

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        assert not x.isnan().any()
        mask = torch.arange(x.shape[1], device=x.device)[None] < lengths[:, None]
        return (x[:, :, 0] * mask).sum(1) / lengths


def level(series):
    """The same of a list of series."""
    assert isinstance(series, list) and not any(np.isnan(one).any() for one in series)
    return np.array([one[:, 0].mean() for one in series])


def forward(series):
    """Fill gaps by the last value before, the rule that is tested, written anew."""
    filled = series.copy()
    for one in filled:
        for t in range(1, len(one)):
            one[t] = np.where(np.isnan(one[t]), one[t - 1], one[t])
    return filled


WITH_GAPS = np.where(GAPS & INSIDE[..., None], np.nan, PADDED)
NUMBERS = np.array([one[:n, 0].mean() for one, n in zip(forward(WITH_GAPS), LENGTHS, strict=True)])
GOAL = sp.AtLeast(float(np.quantile(NUMBERS, 0.8)))
LOW = np.flatnonzero(np.median(NUMBERS) > NUMBERS)[:5]
METHODS = {
    "explainer": lambda: sp.Explainer(sp.wrap(Level(), task="regression", missing="forward"), TINY),
    "black box": lambda: sp.Nearest(sp.wrap(level, task="regression", lengths="list", missing="forward")),
    "ics": lambda: sp.Ics(sp.wrap(Level(), task="regression", missing="forward"), sp.IcsConfig.tiny()),
}


@pytest.fixture(scope="module", params=METHODS)
def fitted(request):
    return METHODS[request.param]().fit(WITH_GAPS, NUMBERS, lengths=LENGTHS, progress=False)


def test_padding_and_gaps_stay_and_do_not_count(fitted):
    e = fitted.explain(WITH_GAPS[LOW], target=GOAL, lengths=LENGTHS[LOW], progress=False)
    assert e.valid.any()
    inside = INSIDE[LOW]
    assert not e.counterfactual[~inside].any()
    np.testing.assert_array_equal(np.isnan(e.counterfactual), np.isnan(WITH_GAPS[LOW]))
    assert not e.changed[~inside].any() and not e.changed[np.isnan(WITH_GAPS[LOW])].any()
    cut = [one[:n] for one, n in zip(forward(e.counterfactual), LENGTHS[LOW], strict=True)]
    np.testing.assert_allclose(e.prediction[:, 0], level(cut), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(e.valid, e.prediction[:, 0] >= GOAL.value)


def test_saved(fitted, tmp_path):
    asked = {"target": sp.Change(0.2), "lengths": LENGTHS[LOW[:2]], "progress": False}
    e = fitted.explain(WITH_GAPS[LOW[:2]], **asked)
    fitted.save(tmp_path / "explainer")
    again = sp.load(tmp_path / "explainer", fitted.classifier).explain(WITH_GAPS[LOW[:2]], **asked)
    np.testing.assert_array_equal(again.counterfactual, e.counterfactual)
    np.testing.assert_array_equal(again.prediction, e.prediction)


@pytest.fixture(scope="module")
def small():
    """Series of more than 15 steps are long, and become at most 10 points of 2 steps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(method, "LONGEST", 15)
        patch.setattr(grid, "MAX_POINTS", 10)
        patch.setattr(long_fit, "SURROGATE_STEPS", 100)
        yield


def test_long_series_are_worked_on_by_their_averages(small, tmp_path):
    def whole(series):
        assert series.shape[1] == STEPS
        return np.asarray(series)[:, :, 0].mean(1)

    numbers = whole(X)
    goal, low = float(np.quantile(numbers, 0.8)), np.flatnonzero(numbers < np.median(numbers))[:4]
    model = sp.wrap(whole, task="regression")
    fitted = sp.Explainer(model, TINY).fit(X, numbers, progress=False)
    assert "see averages of 2 steps; the model sees whole series" in fitted.summary()
    e = fitted.explain(X[low], target=sp.AtLeast(goal), constraints=sp.Constraints(frozen=[(0, 3)]), progress=False)
    assert e.valid.all() and not e.changed[:, :3].any()
    np.testing.assert_allclose(e.prediction[:, 0], whole(e.counterfactual))
    assert e.believed.any() and np.isfinite(e.plausibility["distance"]).all()
    curved = fitted.explain(X[low[:1]], target=sp.AtLeast(goal), curve=True, progress=False)
    assert np.isfinite(curved.curve["share"]).any()
    fitted.save(tmp_path)
    again = sp.load(tmp_path, model).explain(
        X[low], target=sp.AtLeast(goal), constraints=sp.Constraints(frozen=[(0, 3)]), progress=False
    )
    np.testing.assert_array_equal(again.counterfactual, e.counterfactual)


def test_a_fit_that_was_cut_off_is_resumed_and_a_finished_one_not_repeated(tmp_path, monkeypatch):
    series, numbers, model = X[:24], X[:24, :, 0].mean(1), sp.wrap(Level(), task="regression")

    def fit(numbers, **settings):
        return sp.Explainer(model, TINY).fit(series, numbers, **settings, progress=False)

    def refuse(*args, **kwargs):
        raise AssertionError("cut off")

    with monkeypatch.context() as patched:
        patched.setattr(method, "measure_numbers", refuse)  # the last step of a fit
        with pytest.raises(AssertionError, match="cut off"):
            fit(numbers, checkpoint=tmp_path)
    resumed, whole = fit(numbers, checkpoint=tmp_path), fit(numbers)
    monkeypatch.setattr(method, "fit_number_model", refuse)
    again = fit(numbers, checkpoint=tmp_path)
    goal = sp.AtLeast(float(np.quantile(numbers, 0.8)))
    one, *others = (fitted.explain(X[:4], target=goal, progress=False) for fitted in (whole, resumed, again))
    for other in others:
        np.testing.assert_array_equal(one.counterfactual, other.counterfactual)
    assert again.history_ == resumed.history_ == whole.history_
    with pytest.raises(AssertionError, match="cut off"):  # of other numbers it is another fit
        fit(numbers + 1, checkpoint=tmp_path)
