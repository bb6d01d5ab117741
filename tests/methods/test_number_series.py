"""Regressors and series as they come: of unequal length, and with missing values."""

import numpy as np
import pytest
import torch
from torch import nn

import sparcets as sp
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

    def forward(self, x, lengths):
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
