"""Pruning: windows rank before points, as few changes as are enough, never more than there were."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sparcets.explainers.sparcets import prune as module
from sparcets.explainers.sparcets.prune import NEGLIGIBLE, TOLERANCE, drop_negligible, keep_first, prune, rank_changes


def count(delta):
    return (delta != 0).sum((1, 2)).tolist()


def by_number(needed, size=1.0):
    """Return an agreement that grows with the number of changes up to ``size``, from ``needed`` changes on."""
    return lambda delta, required: ((delta != 0).sum((1, 2)) / torch.as_tensor(needed)).clamp(max=1.0) * size


# What is negligible.


def test_a_negligible_window_is_dropped_and_the_small_end_of_a_large_one_is_kept():
    delta = torch.zeros(1, 60, 2)
    delta[0, 5:30, 0] = 0.09  # a little less than a tenth, for long
    delta[0, 10:30, 1] = 0.8
    delta[0, 30, 1] = 0.01  # next to large changes
    kept = drop_negligible(delta)
    assert not kept[..., 0].any() and torch.equal(kept[..., 1], delta[..., 1])


@given(st.integers(1, 80), st.integers(0, 1000), st.floats(0.01, 1.0))
def test_what_is_not_negligible_keeps_its_bits(n_steps, seed, size):
    delta = size * torch.randn(3, n_steps, 4, generator=torch.Generator().manual_seed(seed))
    kept = drop_negligible(delta)
    dropped = (kept == 0) & (delta != 0)
    assert torch.equal(kept[~dropped], delta[~dropped])
    width = max(3, n_steps // 5) | 1
    assert not dropped[delta.abs() >= NEGLIGIBLE * width].any()


# Ranks.


def test_a_window_outranks_a_larger_point():
    delta = torch.zeros(1, 12, 2)
    delta[0, 3:8, 0] = 1.0
    delta[0, 10, 1] = 2.0  # alone: with its neighbours it is 2/3
    rank = rank_changes(delta)[0]
    assert rank[10, 1] == 5 and sorted(rank[3:8, 0].tolist()) == [0, 1, 2, 3, 4]
    assert set(rank[4:7, 0].tolist()) == {0, 1, 2}  # its middle is kept longest
    delta[0, 10, 1] = 4.0
    assert rank_changes(delta)[0, 10, 1] == 0


def test_ranks_number_every_entry_and_unchanged_entries_come_last():
    delta = torch.randn(3, 7, 4, generator=torch.Generator().manual_seed(0))
    delta[:, :, 1] = 0
    rank = rank_changes(delta)
    assert all(sorted(r.flatten().tolist()) == list(range(28)) for r in rank)
    assert (rank[..., 1] >= 21).all() and (rank[..., [0, 2, 3]] < 21).all()


def test_the_rank_does_not_depend_on_the_sign_of_a_change():
    delta = torch.randn(2, 9, 3, generator=torch.Generator().manual_seed(0))
    assert torch.equal(rank_changes(delta), rank_changes(delta.abs())) and delta.min() < 0


def test_the_window_grows_with_the_series():
    delta = torch.zeros(1, 25, 2)  # a fifth: five steps wide
    delta[0, 10:15, 0] = 1.0
    delta[0, 18:21, 1] = 1.5  # 0.9 with its neighbours within five steps, 1.5 within three
    rank = rank_changes(delta)[0]
    assert rank[12, 0] == 0 and rank[18:21, 1].min() > 0
    short = rank_changes(delta[:, 6:])[0]  # 19 steps: three wide
    assert short[13, 1] == 0 and short[4:9, 0].min() > 0
    assert rank_changes(delta, divisor=40)[0, 19, 1] == 0  # a 40th, three wide at least
    long = torch.zeros(1, 100, 2)  # 21 wide
    long[0, 20:41, 0] = 1.0
    long[0, 60:80, 1] = 1.04  # 20 of 21 steps: 0.99 with its neighbours
    assert rank_changes(long)[0, 30, 0] == 0
    long[0, 60:80, 1] = 1.06  # 1.01
    assert rank_changes(long)[0, 30, 0] > 0


def test_the_first_by_rank_are_kept_as_they_are():
    delta = torch.tensor([[[3.0], [-2.0], [1.0]], [[1.0], [1.0], [1.0]]])
    rank = torch.tensor([[[0], [1], [2]], [[2], [1], [0]]])
    kept = keep_first(delta, rank, torch.tensor([2, 1]))
    assert kept[..., 0].tolist() == [[3.0, -2.0, 0.0], [0.0, 0.0, 1.0]]


# The bisection.


@pytest.mark.parametrize("needed", [1, 2, 7, 19, 40])
def test_as_few_changes_as_are_enough_are_kept(needed):
    delta = torch.randn(3, 20, 2, generator=torch.Generator().manual_seed(0))
    kept = prune(delta, by_number(needed), min_agreement=1.0)
    assert count(kept) == [needed] * 3
    assert torch.equal(kept, keep_first(delta, rank_changes(delta), torch.full((3,), needed)))


def test_each_query_is_pruned_to_its_own_need():
    assert count(prune(torch.ones(4, 10, 3), by_number([1, 5, 12, 30]), min_agreement=1.0)) == [1, 5, 12, 30]


def test_no_more_agreement_is_kept_than_the_level():
    assert count(prune(torch.ones(2, 10, 3), by_number(20), min_agreement=0.5)) == [
        10,
        10,
    ]  # half the changes, half agreement


def test_an_answer_below_the_level_keeps_the_agreement_it_has():
    assert count(prune(torch.ones(2, 10, 3), by_number(30, 0.4), min_agreement=0.9)) == [30, 30]


def test_changes_without_effect_are_dropped():
    assert count(prune(torch.ones(2, 10, 3), lambda d, required: torch.full((len(d),), 0.1), min_agreement=0.9)) == [
        0,
        0,
    ]


def test_the_cap_is_never_exceeded():
    kept = prune(torch.ones(4, 10, 3), by_number([1, 5, 12, 30]), min_agreement=1.0, at_most=torch.tensor([3, 3, 3, 0]))
    assert count(kept) == [1, 3, 3, 0]


def test_entries_of_low_rank_may_be_the_ones_that_matter():
    delta = torch.zeros(1, 12, 2)
    delta[0, 2:5, 0], delta[0, 8:11, 1] = 1.0, 2.0  # the second window ranks first, but the first convinces

    def agreement(d, required):
        return (d[:, 2:5, 0] != 0).all(1).float()

    assert count(prune(delta, agreement, min_agreement=0.9)) == [6]
    assert count(prune(delta.flip(1).flip(2), agreement, min_agreement=0.9)) == [0]  # nothing convinces at all


def test_the_result_has_no_gradient():
    delta = torch.ones(1, 4, 1, requires_grad=True)
    assert not prune(delta, lambda d, required: d.sum((1, 2)), min_agreement=0.9).requires_grad


RESIDUALS = hnp.arrays(
    np.float32,
    st.tuples(st.integers(1, 3), st.integers(1, 14), st.integers(1, 3)),
    elements=st.sampled_from([0.0, 0.0, 0.1, -0.5, 1.0, 2.0]),
)


@given(RESIDUALS, st.integers(0, 2**16), st.floats(0.05, 0.95), st.none() | st.integers(0, 20))
def test_a_pruned_answer_is_part_of_the_whole_and_keeps_its_agreement(values, seed, level, cap):
    delta = torch.tensor(values)
    weight = torch.rand(delta.shape[1:], generator=torch.Generator().manual_seed(seed)) - 0.3

    def agreement(d, required=None):  # some entries convince, some do the opposite: nothing is monotone here
        return torch.sigmoid((d.abs() * weight).sum((1, 2)))

    at_most = None if cap is None else torch.full((len(delta),), cap)
    kept = prune(delta, agreement, level, at_most)
    assert ((kept == delta) | (kept == 0)).all()
    most = (delta != 0).sum((1, 2)) if cap is None else torch.minimum((delta != 0).sum((1, 2)), at_most)
    assert ((kept != 0).sum((1, 2)) <= most).all()
    before = agreement(keep_first(delta, rank_changes(delta), most))
    assert (agreement(kept) >= before.clamp(max=level) - 2 * TOLERANCE).all()


@pytest.mark.parametrize("batch", [1, 2, 3, 8, 30])
def test_several_bisections_at_once_give_the_same_result_in_fewer_calls(batch, monkeypatch):
    random = torch.Generator().manual_seed(batch)
    draw = {"size": (batch, 20, 9), "generator": random}
    delta = torch.randn(**draw) * (torch.rand(**draw) < 0.7)
    weight = torch.rand(**draw) - 0.2  # more changes may convince less

    results, calls = {}, {}
    for look_ahead in (1, 2, 8, 64, 4096):
        sizes = []

        def agreement(kept, required, sizes=sizes):
            sizes.append(len(kept))
            return torch.sigmoid((kept.abs() * weight.repeat(len(kept) // batch, 1, 1)).sum((1, 2)) / 5)

        monkeypatch.setattr(module, "SERIES_PER_PASS", {"cpu": look_ahead * batch})
        results[look_ahead] = prune(delta, agreement, 0.9)
        calls[look_ahead] = len(sizes)
    assert all(torch.equal(results[1], other) for other in results.values())
    assert calls[1] == calls[2] == 8 and calls[8] <= 4 and calls[4096] <= 2


@pytest.mark.parametrize("batch", [1, 30], ids=["several bisections at once", "one after the other"])
def test_agreement_below_what_is_required_need_not_be_exact(batch):
    delta = torch.randn(batch, 10, 3, generator=torch.Generator().manual_seed(0))

    def exact(d, required):
        return ((d != 0).sum((1, 2)) / 40).clamp(max=1.0)  # never enough for the level

    def cheap(d, required):
        agreement = exact(d, required)
        return agreement if required is None else torch.where(agreement < required, 0.99 * agreement, agreement)

    assert torch.equal(prune(delta, cheap, 0.9), prune(delta, exact, 0.9))
