"""Pruning: windows rank before points, and what is negligible is dropped."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from sparcets.methods.own.candidates import NEGLIGIBLE, drop_negligible, keep_first, rank_changes

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
