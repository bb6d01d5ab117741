"""Cutting: stretches before points, the fewest entries that are enough, never more than there were."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sparcets.explainers.sparcets.prune import FAINT, SLACK, cut, keep_first, rank_changes, without_faint


def count(delta):
    return (delta != 0).sum((1, 2)).tolist()


def by_number(needed, size):
    """Return an agreement that grows with the number of kept entries and is 1 from ``needed`` on."""
    return lambda delta, enough: ((delta != 0).sum((1, 2)) / torch.as_tensor(needed)).clamp(max=1.0) * size


def test_a_faint_stretch_is_left_out_and_the_weak_end_of_a_strong_one_is_kept():
    delta = torch.zeros(1, 60, 2)
    delta[0, 5:30, 0] = 0.09  # a little less than a tenth, for long
    delta[0, 10:30, 1] = 0.8
    delta[0, 30, 1] = 0.01  # seven steps are judged together
    kept = without_faint(delta)
    assert not kept[..., 0].any() and torch.equal(kept[..., 1], delta[..., 1])


@given(st.integers(1, 80), st.integers(0, 1000), st.floats(0.01, 1.0))
def test_what_is_not_faint_keeps_its_bits(n_steps, seed, size):
    delta = size * torch.randn(3, n_steps, 4, generator=torch.Generator().manual_seed(seed))
    kept = without_faint(delta)
    gone = (kept == 0) & (delta != 0)
    assert torch.equal(kept[~gone], delta[~gone])
    width = max(3, n_steps // 5) | 1
    assert not gone[delta.abs() >= FAINT * width].any()


def test_a_stretch_outranks_a_larger_point():
    delta = torch.zeros(1, 12, 2)
    delta[0, 3:8, 0] = 1.0
    delta[0, 10, 1] = 2.0  # alone: with its neighbours it is 2/3
    rank = rank_changes(delta)[0]
    assert rank[10, 1] == 5 and sorted(rank[3:8, 0].tolist()) == [0, 1, 2, 3, 4]
    assert set(rank[4:7, 0].tolist()) == {0, 1, 2}  # its middle is kept longest
    delta[0, 10, 1] = 4.0
    assert rank_changes(delta)[0, 10, 1] == 0


def test_ranks_number_every_entry_and_what_is_unchanged_comes_last():
    delta = torch.randn(3, 7, 4, generator=torch.Generator().manual_seed(0))
    delta[:, :, 1] = 0
    rank = rank_changes(delta)
    assert all(sorted(r.flatten().tolist()) == list(range(28)) for r in rank)
    assert (rank[..., 1] >= 21).all() and (rank[..., [0, 2, 3]] < 21).all()


def test_the_sign_of_a_change_does_not_matter_to_its_rank():
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


@pytest.mark.parametrize("needed", [1, 2, 7, 19, 40])
def test_the_fewest_entries_that_are_enough_are_kept(needed):
    delta = torch.randn(3, 20, 2, generator=torch.Generator().manual_seed(0))
    kept = cut(delta, by_number(needed, 1.0), level=1.0)
    assert count(kept) == [needed] * 3
    rank = rank_changes(delta)
    assert torch.equal(kept, keep_first(delta, rank, torch.full((3,), needed)))


def test_each_query_is_cut_to_its_own_need():
    delta = torch.ones(4, 10, 3)
    assert count(cut(delta, by_number([1, 5, 12, 30], 1.0), level=1.0)) == [1, 5, 12, 30]


def test_what_lies_above_the_level_is_given_away():
    delta = torch.ones(2, 10, 3)
    assert count(cut(delta, by_number(20, 1.0), level=0.5)) == [10, 10]  # half of what is needed agrees by a half


def test_an_answer_below_the_level_keeps_what_it_has():
    delta = torch.ones(2, 10, 3)
    assert count(cut(delta, by_number(30, 0.4), level=0.9)) == [30, 30]


def test_what_moves_nobody_is_dropped():
    assert count(cut(torch.ones(2, 10, 3), lambda d, enough: torch.full((len(d),), 0.1), level=0.9)) == [0, 0]


def test_at_most_holds_whatever_it_costs():
    delta = torch.ones(4, 10, 3)
    kept = cut(delta, by_number([1, 5, 12, 30], 1.0), level=1.0, at_most=torch.tensor([3, 3, 3, 0]))
    assert count(kept) == [1, 3, 3, 0]


def test_only_some_entries_matter():
    delta = torch.zeros(1, 12, 2)
    delta[0, 2:5, 0], delta[0, 8:11, 1] = 1.0, 2.0  # the second is ranked first, but the first convinces

    def agreement(d, enough):
        return (d[:, 2:5, 0] != 0).all(1).float()

    assert count(cut(delta, agreement, level=0.9)) == [6]
    assert count(cut(delta.flip(1).flip(2), agreement, level=0.9)) == [0]  # nobody is convinced at all


def test_no_gradient_is_kept():
    delta = torch.ones(1, 4, 1, requires_grad=True)
    assert not cut(delta, lambda d, enough: d.sum((1, 2)), level=0.9).requires_grad


RESIDUALS = hnp.arrays(
    np.float32,
    st.tuples(st.integers(1, 3), st.integers(1, 14), st.integers(1, 3)),
    elements=st.sampled_from([0.0, 0.0, 0.1, -0.5, 1.0, 2.0]),
)


@given(RESIDUALS, st.integers(0, 2**16), st.floats(0.05, 0.95), st.none() | st.integers(0, 20))
def test_a_cut_answer_is_part_of_the_whole_and_agrees_as_far(values, seed, level, cap):
    delta = torch.tensor(values)
    weight = torch.rand(delta.shape[1:], generator=torch.Generator().manual_seed(seed)) - 0.3

    def agreement(d, enough=None):  # some entries convince, some do the opposite: nothing is monotone here
        return torch.sigmoid((d.abs() * weight).sum((1, 2)))

    at_most = None if cap is None else torch.full((len(delta),), cap)
    kept = cut(delta, agreement, level, at_most)
    assert (((kept == delta) | (kept == 0)).all()) and (kept[delta == 0] == 0).all()
    most = (delta != 0).sum((1, 2)) if cap is None else torch.minimum((delta != 0).sum((1, 2)), at_most)
    assert ((kept != 0).sum((1, 2)) <= most).all()
    before = agreement(keep_first(delta, rank_changes(delta), most))
    assert (agreement(kept) >= before.clamp(max=level) - 2 * SLACK).all()


@pytest.mark.parametrize("batch", [1, 2, 3, 8, 30])
def test_looking_ahead_finds_the_same_cut(batch, monkeypatch):
    """Few queries ask about several halvings at once; the answers are those of one halving after the other."""
    torch.manual_seed(batch)
    delta = torch.randn(batch, 20, 9) * (torch.rand(batch, 20, 9) < 0.7)
    weight = torch.rand(batch, 20, 9) - 0.2  # more changes may convince less

    def agreement(kept, enough):
        return torch.sigmoid((kept.abs() * weight.repeat(len(kept) // batch, 1, 1)).sum((1, 2)) / 5)

    sizes = {}
    found = {}
    for ahead in (1, 2, 8, 64, 4096):
        monkeypatch.setattr("sparcets.explainers.sparcets.prune.AHEAD", {"cpu": ahead * batch})
        asked = []
        found[ahead] = cut(
            delta, lambda kept, enough, asked=asked: (asked.append(len(kept)), agreement(kept, enough))[1], 0.9
        )
        sizes[ahead] = len(asked)
    assert all(torch.equal(found[1], other) for other in found.values())
    assert [sizes[ahead] for ahead in (1, 2)] == [8, 8] and sizes[8] <= 4 and sizes[4096] <= 2
