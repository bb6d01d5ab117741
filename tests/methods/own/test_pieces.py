"""The search over pieces: constraints, independence of the rows, and what a piece is."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import sparcets as sp
from sparcets.core.info import SeriesInfo
from sparcets.core.series import Series
from sparcets.methods.own import search as module
from sparcets.methods.own.family import FEATURES, Family
from sparcets.methods.own.search import Pieces, Starts, cut_pieces, search_pieces
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule
from sparcets.training.projection import Projection

X, Y = make_series(48, n_steps=12)
X = 3 * X + 5  # units of its own
INFO = SeriesInfo.from_series(X, ("a", "b", "c"))
Z = torch.tensor(INFO.scaler.transform(X), dtype=torch.float32)
QUERIES, REAL = Z[Y != 1][:6], Z[Y == 1][:6]
TARGET = torch.ones(6, dtype=torch.int64)


@pytest.fixture(scope="module")
def ensemble(build_ensemble):
    """Return an ensemble of all families but the neural one, around a module."""
    families = [Family.fit(family, Series(Z.numpy()), Y, 3, seed=0) for family in FEATURES]
    return build_ensemble(INFO, [MeanModule(sharpness=2.0)], families=families)


@pytest.fixture(scope="module")
def alone(build_ensemble):
    """Return the explained classifier without any families, as for ``believed_by="model"``."""
    return build_ensemble(INFO, [MeanModule(sharpness=2.0)])


def starts(change=None, *, x=QUERIES, deviates=True, most=1.0):
    change = REAL - QUERIES if change is None else change
    n = len(x)
    return Starts(
        x=x,
        change=change,
        target=TARGET[:n],
        deviates=torch.full((n,), deviates),
        most=torch.full((n,), most),
    )


def search(of, given, **constraints):
    return search_pieces(of, Projection(sp.Constraints(**constraints).bind(INFO), INFO.scaler), given)


@pytest.fixture(scope="module")
def candidates(ensemble):
    return search(ensemble, starts())


def convinced(of, delta):
    """Return the share of heads and queries that predict the target."""
    with torch.no_grad():
        return (of.log_proba(QUERIES + delta).argmax(2) == 1).float().mean().item()


def test_there_is_a_candidate_per_round_and_per_step_of_the_ladder(candidates):
    assert len(candidates) == len(module.FIRST) - 1 + len(module.STEPS) + len(module.LADDER)
    for delta in candidates:
        assert delta.shape == QUERIES.shape and torch.isfinite(delta).all() and not delta.requires_grad


def test_candidates_convince_the_ensemble_by_parts_of_the_change(ensemble, candidates):
    assert convinced(ensemble, torch.zeros_like(QUERIES)) < 0.2
    best = max(candidates, key=lambda delta: convinced(ensemble, delta))
    assert convinced(ensemble, best) > 0.8 and (best != 0).float().mean() < 0.9


def test_fewer_entries_are_kept_after_rounds_that_convince(alone):
    changes = [(delta != 0).float().mean().item() for delta in search(alone, starts())]
    first, last = changes[1], changes[len(module.FIRST) - 2 + len(module.STEPS)]
    assert last < first / 2  # one classifier is convinced by few changes


def test_a_classifier_without_families_is_convinced_by_fewer_changes(alone, candidates):
    by_model = search(alone, starts())
    assert all(convinced(alone, delta) > 0.9 for delta in by_model[:3])
    few, more = (sum((delta != 0).sum().item() for delta in found) for found in (by_model, candidates))
    assert few < more


def test_the_explained_classifier_can_be_convinced_alone(ensemble, alone):
    projection = Projection(sp.Constraints().bind(INFO), INFO.scaler)
    alike = search_pieces(ensemble, projection, starts(), explained_alone=True)
    usual = len(module.FIRST) - 1 + len(module.STEPS)
    for one, other in zip(alike[:usual], search(alone, starts())[:usual], strict=True):
        torch.testing.assert_close(one, other)
    assert len(alike) == usual + len(module.FURTHER) + len(module.LADDER)


def test_within_few_entries_further_rounds_convince_the_explained_classifier(ensemble, alone):
    projection = Projection(sp.Constraints().bind(INFO), INFO.scaler)
    found = search_pieces(ensemble, projection, starts(most=0.1), explained_alone=True)
    assert max((delta != 0).sum((1, 2)).max().item() for delta in found) <= 0.1 * QUERIES[0].numel()
    usual = len(module.FIRST) - 1 + len(module.STEPS)
    assert convinced(alone, found[0]) < 0.5 < 0.9 < convinced(alone, found[usual + len(module.FURTHER) - 1])


@pytest.mark.parametrize("rows", [slice(2, 3), slice(1, 6)])
def test_the_number_of_rows_does_not_matter(ensemble, candidates, rows, monkeypatch):
    some = starts((REAL - QUERIES)[rows], x=QUERIES[rows])
    for one, other in zip(candidates, search(ensemble, some), strict=True):
        torch.testing.assert_close(one[rows], other, atol=1e-6, rtol=0)
    monkeypatch.setattr(module, "ROWS", {"cpu": 4})  # in two parts
    for one, other in zip(candidates, search(ensemble, starts()), strict=True):
        torch.testing.assert_close(one, other, atol=0.05, rtol=0)  # other sums, amplified


def test_the_same_search_gives_the_same_candidates_and_leaves_no_trace(ensemble, candidates):
    state = torch.get_rng_state()
    again = search(ensemble, starts())
    assert all(torch.equal(one, other) for one, other in zip(candidates, again, strict=True))
    assert torch.equal(state, torch.get_rng_state())
    explained = ensemble.explained.module
    assert all(p.grad is None and p.requires_grad for p in explained.parameters())


LIMITS = {
    "immutable": {"immutable": ["f3"]},
    "frozen": {"frozen": [(0, 3)]},
    "ranges": {"ranges": {"f1": (4.0, 8.0)}},
    "direction": {"direction": {"f1": "up", "f0": "down"}},
    "max_step": {"max_step": {"f1": 1.0}},
    "together": {"immutable": ["f3"], "frozen": [(0, 3)], "ranges": {"f1": (4.0, 8.0)}, "direction": {"f0": "down"}},
}


@pytest.mark.parametrize("name", LIMITS)
def test_every_candidate_obeys_the_constraints(alone, name):
    limits = LIMITS[name]
    query = INFO.scaler.inverse(QUERIES.numpy())
    found = search(alone, starts(), **limits)
    assert any((delta != 0).any() for delta in found)
    for delta in found:
        series, delta = INFO.scaler.inverse((QUERIES + delta).numpy()), delta.numpy()
        if "immutable" in limits:
            assert not delta[..., 3].any()
        if "frozen" in limits:
            assert not delta[:, :3].any()
        if "direction" in limits:
            assert (delta[..., 0] <= 0).all() and (name != "direction" or (delta[..., 1] >= 0).all())
        if "ranges" in limits:
            moved = series[..., 1][delta[..., 1] != 0]
            assert (moved >= 4.0 - 1e-4).all() and (moved <= 8.0 + 1e-4).all()
        if "max_step" in limits:
            steps, own = (np.abs(np.diff(values[..., 1], axis=1)) for values in (series, query))
            assert (steps <= np.maximum(1.0, own) + 1e-4).all()


def test_without_deviation_a_candidate_is_a_part_of_its_start(ensemble):
    change = REAL - QUERIES
    for delta in search(ensemble, starts(deviates=False)):
        assert torch.equal(delta, torch.where(delta != 0, change, 0.0))
    nothing = torch.zeros_like(QUERIES)
    assert not any(delta.any() for delta in search(ensemble, starts(nothing, deviates=False)))
    assert any(delta.any() for delta in search(ensemble, starts(nothing)))


@pytest.mark.parametrize("n_steps", [1, 3, 30])
def test_series_of_any_length(build_ensemble, n_steps):
    series, _ = make_series(24, n_steps=max(n_steps, 3))
    series = series[:, :n_steps]
    info = SeriesInfo.from_series(series, ("a", "b", "c"))
    x = torch.tensor(info.scaler.transform(series), dtype=torch.float32)
    given = Starts(
        x=x[:2],
        change=x[2:4] - x[:2],
        target=torch.tensor([0, 1]),
        deviates=torch.ones(2, dtype=bool),
        most=torch.ones(2),
    )
    projection = Projection(sp.Constraints().bind(info), info.scaler)
    assert all(
        d.shape == (2, n_steps, 4) for d in search_pieces(build_ensemble(info, [MeanModule()]), projection, given)
    )


# Pieces.


def bound(**constraints):
    return Projection(sp.Constraints(**constraints).bind(INFO), INFO.scaler)


@given(seed=st.integers(0, 10_000), n_steps=st.integers(1, 60))
def test_pieces_follow_each_other_and_none_is_short(seed, n_steps):
    change = torch.randn(2, n_steps, 3, generator=torch.Generator().manual_seed(seed))
    piece = cut_pieces(change)
    assert (piece[:, 0] == 0).all() and ((piece[:, 1:] - piece[:, :-1]).abs() <= 1).all()
    assert (piece[:, 1:] >= piece[:, :-1]).all() and piece.max() < module.PARTS
    shortest = max(2, -(-n_steps // module.PARTS))
    for row in piece.permute(0, 2, 1).reshape(-1, n_steps):
        sizes = torch.bincount(row)
        assert len(sizes) == 1 or sizes.min() >= shortest


def test_a_piece_ends_where_the_change_crosses_zero():
    time = torch.arange(40.0)
    wave = torch.sin(2 * torch.pi * (time + 0.5) / 20)[None, :, None]  # crosses zero every ten steps
    assert cut_pieces(wave).flatten().tolist() == [i for i in range(4) for _ in range(10)]
    assert not cut_pieces(wave + 2).any()  # never


def test_the_pieces_that_contribute_most_per_entry_are_kept():
    change = torch.ones(1, 12, 4)
    pieces = Pieces(change, change, bound(immutable=["f3"]))
    gain = torch.zeros(1, 12, 4)
    gain[..., 1], gain[..., 2], gain[..., 3] = 2.0, 1.0, 9.0
    pieces.credit(gain)
    assert pieces.n_entries.tolist() == [36]
    for n, features in ((12, [1]), (24, [1, 2])):
        mask = pieces.keep(torch.tensor([n / 36]).log())
        assert mask.sum() == n and mask[0, :, features].all()


def test_features_that_change_together_only_are_kept_together():
    change = torch.randn(3, 12, 4, generator=torch.Generator().manual_seed(0))
    pieces = Pieces(change, change, bound(groups={"pair": ["f0", "f2"]}))
    assert torch.equal(pieces.piece[..., 0], pieces.piece[..., 2])
    pieces.credit(torch.randn(3, 12, 4, generator=torch.Generator().manual_seed(1)))
    score = pieces.keep(torch.full((3,), 0.5).log())
    assert (score[..., 0] != score[..., 2]).sum() <= 3  # but for the last entry of a row, where the number ends
