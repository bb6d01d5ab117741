"""Choosing: the answer of most worth, within the cap, louder only where something was left out."""

import math

import numpy as np
import pytest
import torch

import sparcets as sp
from sparcets.explainers import choosing as module
from sparcets.explainers.sparcets.choose import choose, worth
from sparcets.explainers.sparcets.model import LOUDER, Recipe
from sparcets.explanation.series_info import SeriesInfo
from sparcets.testing.data import make_series
from sparcets.testing.mocks import Lifting, MeanModule
from sparcets.explainers.sparcets.operating_point import PRICE

X, Y = make_series(36, n_steps=12)
INFO = SeriesInfo.measure(X, ("a", "b", "c"))
ROWS = np.flatnonzero(Y == 0)[:5]
QUERY = torch.tensor(INFO.scaler.transform(X[ROWS]), dtype=torch.float32)
TARGET = torch.ones(len(ROWS), dtype=torch.int64)


class Always(torch.nn.Module):
    """Says one class, always equally sure of it."""

    def __init__(self, k, p=0.8):
        super().__init__()
        said = torch.full((3,), (1 - p) / 2)
        said[k] = p
        self.register_buffer("said", said.log())

    def forward(self, x):
        return self.said + 0 * x[:, 0, :3]


def recipe(*voices, referee=None, strengths=(0.5, 1.0, 2.0), guided=False, louder=LOUDER):
    return Recipe(
        generator=Lifting(guided).eval(),
        voices=[sp.wrap(v, n_classes=3) for v in voices or (MeanModule(),)],
        referee=sp.wrap(referee or MeanModule(), n_classes=3),
        guides=QUERY.numpy(),
        guide_class=Y[ROWS],
        strengths=tuple(math.log(s) for s in strengths),
        louder=LOUDER[:1] if guided else louder,
        level=0.9,
        scaler=INFO.scaler,
    )


def chosen(made, *, at_most=None, guides=(None,)):
    cap = None if at_most is None else torch.full((len(QUERY),), at_most)
    return choose(made, QUERY, TARGET, guides=guides, hold=lambda x, d: d, at_most=cap, entries=48)


def test_worth_by_hand():
    delta = torch.zeros_like(QUERY)
    delta[:, :6, 1] = 1.0
    made = recipe(Always(1, 0.8), Always(1, 0.4), referee=Always(2, 0.6))
    expected = ((0.8 + 0.4) / 2 + 0.2) / 2 - PRICE * 6 / 48
    np.testing.assert_allclose(worth(made, QUERY, delta, TARGET, 48), expected, atol=1e-6)


def test_what_the_classifier_does_not_accept_comes_after_everything_that_it_does():
    everything, nothing = torch.ones_like(QUERY), torch.zeros_like(QUERY)
    refused = worth(recipe(Always(0), Always(1, 0.99), referee=Always(1, 0.99)), QUERY, nothing, TARGET, 48)
    accepted = worth(recipe(Always(1, 0.4), Always(0), referee=Always(0)), QUERY, everything, TARGET, 48)
    assert (refused < accepted).all()


def test_the_best_strength_by_brute_force():
    made = recipe(strengths=(0.2, 1.0, 4.0))
    every = torch.stack([f * made.propose(QUERY, TARGET, s) for s in made.strengths for f in LOUDER])
    best = torch.stack([worth(made, QUERY, delta, TARGET, 48) for delta in every]).argmax(0)
    assert torch.equal(chosen(made), every[best, torch.arange(len(QUERY))])


@pytest.mark.parametrize("cap", [0, 1, 5, 48])
def test_never_more_than_the_cap(cap):
    found = chosen(recipe(), at_most=cap)
    assert ((found != 0).sum((1, 2)) <= cap).all()


def test_under_a_cap_what_is_left_may_speak_up():
    few = chosen(recipe(strengths=(1.0,)), at_most=4)
    assert few.amax((1, 2)).tolist() == pytest.approx([max(LOUDER)] * 5)  # a mean needs all that it can get


def test_real_series_are_never_exaggerated():
    real = torch.tensor(INFO.scaler.transform(X[Y == 1][:5]), dtype=torch.float32)
    found = chosen(recipe(guided=True), at_most=9, guides=[QUERY, real])
    there = found != 0
    assert there.any((1, 2)).all()
    torch.testing.assert_close((QUERY + found)[there], real[there])


@pytest.mark.parametrize("guided", [False, True])
def test_where_room_is_short_queries_come_in_parts_with_the_same_result(guided, monkeypatch):
    real = torch.tensor(INFO.scaler.transform(X[Y == 1][:5]), dtype=torch.float32)
    ask = {"at_most": 7, "guides": [QUERY, real] if guided else (None,)}
    whole = chosen(recipe(guided=guided), **ask)
    monkeypatch.setattr(module, "ROOM", 2 * 9 * 48)  # two queries at a time, then one
    torch.testing.assert_close(chosen(recipe(guided=guided), **ask), whole)


def test_constraints_hold_what_is_louder_too():
    made = recipe(strengths=(1.0,))
    cap = torch.full((5,), 4)
    found = choose(
        made, QUERY, TARGET, guides=[None], hold=lambda x, d: d.clamp(max=1.1), at_most=cap, entries=48
    )  # fmt: skip
    assert found.amax((1, 2)).tolist() == pytest.approx([1.1] * 5)
