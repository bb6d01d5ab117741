"""Refining: a descent that convinces the voices, moves only what is free, and treats each query by itself."""

import numpy as np
import torch

import sparcets as sp
from sparcets.explainers.sparcets.model import Recipe
from sparcets.explainers.sparcets.refine import refine
from sparcets.explainers.sparcets.generator import GatedGenerator
from sparcets.explanation.series_info import SeriesInfo
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule
from sparcets.training.projection import Projection

X, Y = make_series(36, n_steps=9)
INFO = SeriesInfo.measure(X, ("a", "b", "c"))
ROWS = np.flatnonzero(Y != 1)[:8]
QUERY = torch.tensor(INFO.scaler.transform(X[ROWS]), dtype=torch.float32)
TARGET = torch.ones(len(ROWS), dtype=torch.int64)
FREE = torch.ones_like(QUERY, dtype=torch.bool)


def recipe(*sharpness):
    return Recipe(
        generator=GatedGenerator(
            n_features=4, mutable=[0, 1, 2, 3], n_targets=3, backbone="lstm", hidden=2, layers=1, gate="none",
            guided=False,
        ),
        voices=[sp.wrap(MeanModule(sharpness=s), n_classes=3) for s in sharpness or (10.0,)],
        referee=sp.wrap(MeanModule(), n_classes=3),
        guides=QUERY.numpy(),
        guide_class=Y[ROWS],
        strengths=(0.0,),
        louder=(1.0,),
        level=0.9,
        scaler=INFO.scaler,
    )  # fmt: skip


def projection(**constraints):
    return Projection(sp.Constraints(**constraints).bind(INFO), INFO.scaler)


def test_it_convinces_all_voices_from_nothing():
    r = recipe(10.0, 4.0)
    delta = refine(r, projection(), QUERY, torch.zeros_like(QUERY), TARGET, FREE)
    assert (r.agreement(QUERY, TARGET) < 0.2).all()
    assert (r.agreement(QUERY + delta, TARGET) > 0.5).all()
    assert not delta.requires_grad and delta.shape == QUERY.shape


def test_only_free_entries_move():
    free = FREE.clone()
    free[:, :3] = False
    free[0, :, 1] = False
    start = torch.randn(QUERY.shape, generator=torch.Generator().manual_seed(0))
    delta = refine(recipe(), projection(), QUERY, start, TARGET, free)
    assert (delta[~free] == 0).all() and (delta[free] != 0).any()


def test_what_is_not_free_is_not_counted_on():
    free = torch.zeros_like(FREE)
    free[:, 2:8, 1] = True
    start = torch.where(free, 0.0, 9.0 * torch.tensor([0.0, 1.0, 0.0, 0.0]))  # would convince, but may not stay
    delta = refine(recipe(), projection(), QUERY, start, TARGET, free)
    assert (recipe().agreement(QUERY + delta, TARGET) > 0.5).all() and (delta[~free] == 0).all()


def test_the_constraints_hold_and_are_learnt_under():
    delta = refine(
        recipe(), projection(immutable=["f3"], direction={"f1": "up"}), QUERY, torch.zeros_like(QUERY), TARGET, FREE
    )
    assert (delta[..., 3] == 0).all() and (delta[..., 1] >= 0).all()
    assert (recipe().agreement(QUERY + delta, TARGET) > 0.5).all()


def test_each_query_is_refined_by_itself():
    start = torch.zeros_like(QUERY)
    together = refine(recipe(), projection(), QUERY, start, TARGET, FREE)
    alone = refine(recipe(), projection(), QUERY[2:3], start[2:3], TARGET[2:3], FREE[2:3])
    torch.testing.assert_close(together[2:3], alone, atol=1e-5, rtol=0)


def test_a_start_that_convinces_becomes_smaller_and_stays_convincing():
    start = torch.zeros_like(QUERY)
    start[..., 1] = 8.0
    start[..., 3] = 1.0  # of no use at all
    delta = refine(recipe(), projection(), QUERY, start, TARGET, FREE)
    assert (recipe().agreement(QUERY + delta, TARGET) > 0.9).all()
    assert (delta[..., 3].abs() < 0.5).all() and (delta[..., 1] < 8.0).all()
    assert (start[..., 1] == 8.0).all()  # what was given is left alone


def test_gradients_are_not_left_in_the_voices():
    r = recipe()
    refine(r, projection(), QUERY, torch.zeros_like(QUERY), TARGET, FREE)
    assert all(p.grad is None and p.requires_grad for voice in r.voices for p in voice.module.parameters())
