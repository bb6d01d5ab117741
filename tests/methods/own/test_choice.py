"""The choice between candidates: the same as if everybody were asked about everything, with fewer questions."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import sparcets as sp
from sparcets.core.info import SeriesInfo
from sparcets.methods.own.candidates import choose, rank_answers, row_of
from sparcets.methods.own.ensemble import Ensemble, Selector
from sparcets.testing.data import make_series

INFO = SeriesInfo.from_series(make_series(36, n_steps=4)[0], ("calm", "brisk", "wild"))
ENTRIES = 4 * INFO.n_features


class Reader(torch.nn.Module):
    """A classifier that finds the probability of class 1 written in the first step of the first feature."""

    def forward(self, x):
        one = x[:, 0, 0].clamp(0.001, 0.999)
        return torch.stack([1 - one, one, torch.full_like(one, 1e-6)], dim=1).log()


class Judge:
    """A family that finds its verdict on class 1 written in a later step, and counts what it is asked about."""

    def __init__(self, family, step, asked):
        self.family, self.step, self.asked = family, step, asked

    def votes(self, x):
        self.asked[self.family] += len(x)
        one = x[:, self.step, 0].clamp(0, 1)
        return torch.stack([1 - one, one, torch.zeros_like(one)], dim=1)[None]


def ensemble_of(*families):
    """Return an ensemble whose explained classifier and families read their verdicts, and what they were asked."""
    asked = Counter()
    judges = [Judge(name, step + 1, asked) for step, name in enumerate(families)]
    unit = replace(INFO.scaler, center=np.zeros(INFO.n_features), scale=np.ones(INFO.n_features))
    made = Ensemble(
        explained=sp.wrap(Reader(), n_classes=3),
        networks=(),
        families=(),
        levels=torch.zeros(1, 3),
        explained_accuracy=1.0,
        selector=Selector(networks=(), judges=judges),
        scaler=unit,
        device=torch.device("cpu"),
    )
    return made, asked


FAMILIES = ("convolutions", "quantiles", "intervals")


def candidates_of(rng, n_candidates, n_queries):
    """Return series with verdicts drawn at random, and shares of changed entries."""
    made = torch.zeros(n_candidates, n_queries, 4, INFO.n_features)
    made[..., 0] = torch.as_tensor(rng.uniform(size=made.shape[:3]), dtype=torch.float32)
    share = torch.as_tensor(rng.integers(1, ENTRIES + 1, made.shape[:2]) / ENTRIES, dtype=torch.float32)
    return made, share


def ranks(ensemble, made, share):
    """Return the ranks of all candidates (candidates, queries), with everybody asked about everything."""
    flat, target = made.flatten(0, 1), torch.ones(share.numel(), dtype=torch.int64)
    proba = ensemble.explained_log_proba(flat).exp()
    belief = ensemble.believe(flat, target)
    return rank_answers(proba[:, 1], proba.argmax(1) == 1, belief, share.flatten()).reshape(share.shape)


@given(st.integers(0, 10_000), st.integers(1, 20), st.integers(1, 4), st.integers(1, 3))
def test_the_best_is_the_one_that_asking_everybody_about_everything_finds(seed, n_candidates, n_queries, n_families):
    ensemble, _ = ensemble_of(*FAMILIES[:n_families])
    made, share = candidates_of(np.random.default_rng(seed), n_candidates, n_queries)
    target = torch.ones(n_queries, dtype=torch.int64)
    best, belief = choose(ensemble, made, target, share, 1)
    rank = ranks(ensemble, made, share)
    np.testing.assert_allclose(rank.gather(0, best)[0], rank.amax(0))
    whole = ensemble.believe(made.flatten(0, 1)[row_of(best)], target)
    assert torch.equal(belief.support, whole.support) and torch.equal(belief.margin, whole.margin)


@given(st.integers(0, 10_000), st.integers(2, 4))
def test_of_several_believed_candidates_the_best_are_chosen_in_order(seed, n):
    ensemble, _ = ensemble_of(*FAMILIES)
    made, share = candidates_of(np.random.default_rng(seed), 30, 2)
    made[..., 0] = 0.4 + 0.6 * made[..., 0]  # most are believed
    best, _ = choose(ensemble, made, torch.ones(2, dtype=torch.int64), share, n)
    rank = ranks(ensemble, made, share)
    wanted = rank.sort(dim=0, descending=True).values[:n]
    believed = wanted >= 2
    np.testing.assert_allclose(rank.gather(0, best)[believed], wanted[believed])


def test_the_dearest_family_is_asked_about_few():
    ensemble, asked = ensemble_of(*FAMILIES)
    made, share = candidates_of(np.random.default_rng(0), 60, 5)
    made[0, ..., 0], share[0] = 1.0, 1 / ENTRIES  # believed by all, and the sparsest
    best, _ = choose(ensemble, made, torch.ones(5, dtype=torch.int64), share, 1)
    assert best.tolist() == [[0] * 5]
    assert asked["intervals"] == 300 and asked["quantiles"] < 200 and asked["convolutions"] <= 20


def test_where_nothing_is_believed_all_valid_ones_are_asked_about():
    ensemble, asked = ensemble_of(*FAMILIES)
    made, share = candidates_of(np.random.default_rng(1), 12, 1)
    made[:, :, 3, 0] = 0.0  # the family that is asked first refuses all
    choose(ensemble, made, torch.ones(1, dtype=torch.int64), share, 1)
    n_valid = int((made[:, 0, 0, 0] > 0.5).sum())
    assert asked["intervals"] == 12 and asked["convolutions"] == asked["quantiles"] == n_valid


@pytest.mark.parametrize("n", [1, 5])
def test_no_more_are_chosen_than_there_are(n):
    ensemble, _ = ensemble_of(*FAMILIES)
    made, share = candidates_of(np.random.default_rng(3), 3, 2)
    best, _ = choose(ensemble, made, torch.ones(2, dtype=torch.int64), share, n)
    assert best.shape == (min(n, 3), 2)
