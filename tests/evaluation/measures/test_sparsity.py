"""Sparsity and segments: values computed by hand, invariants, and compared with find_segments."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparcets.core.evidence import find_segments
from sparcets.evaluation.measures import (
    changed_within,
    features_touched,
    segment_length,
    segments,
    segments_per_feature,
    sparsity,
    steps_touched,
)

MEASURES = [sparsity, steps_touched, features_touched, segments, segment_length, segments_per_feature]
SHARES = [sparsity, steps_touched, features_touched, segments]  # 0 where nothing changed; the others are NaN

# Feature 0 changes at steps 0, 2 and 3; feature 1 at step 2; feature 2 never. Second answer: nothing but step 1.
DELTA = np.array(
    [
        [[1, 0, 0], [0, 0, 0], [2, 5, 0], [-1, 0, 0]],
        [[0, 0, 0], [1, 1, 1], [0, 0, 0], [0, 0, 0]],
    ]
)


def values(e):
    return {measure.__name__: measure(e).tolist() for measure in MEASURES}


def test_by_hand(make_explanation):
    assert values(make_explanation(DELTA)) == {
        "sparsity": [4 / 12, 3 / 12],
        "steps_touched": [3 / 4, 1 / 4],
        "features_touched": [2 / 3, 3 / 3],
        "segments": [3, 3],
        "segment_length": [4 / 3, 1],
        "segments_per_feature": [3 / 2, 1],
    }


def test_shares_are_of_what_may_change(make_explanation):
    e = make_explanation(DELTA[:1], mutable=[True, True, False])
    assert sparsity(e) == 4 / 8
    assert features_touched(e) == 2 / 2
    assert steps_touched(e) == 3 / 4


def test_frozen_entries_do_not_count(make_explanation):
    frozen = np.array([[True, True, True], [False, True, False], [False, True, False], [True, True, False]])
    delta = np.zeros((1, 4, 3))
    delta[0, 1, 0] = delta[0, 1, 2] = delta[0, 2, 0] = 1.0
    e = make_explanation(delta, frozen=frozen)
    assert sparsity(e) == 3 / 5
    assert features_touched(e) == 2 / 2  # one is frozen throughout
    assert steps_touched(e) == 2 / 3  # the first is frozen for all features


def test_padding_does_not_count(make_explanation):
    assert values(make_explanation(DELTA, lengths=[3, 2])) == {
        "sparsity": [3 / 9, 3 / 6],
        "steps_touched": [2 / 3, 1 / 2],
        "features_touched": [2 / 3, 3 / 3],
        "segments": [3, 3],
        "segment_length": [1, 1],
        "segments_per_feature": [3 / 2, 1],
    }


def test_no_change_has_no_segments(make_explanation):
    e = make_explanation(np.zeros((2, 3, 2)))
    for measure in MEASURES:
        if measure in SHARES:
            assert measure(e).tolist() == [0, 0]
        else:
            assert np.isnan(measure(e)).all()


def test_no_mutable_feature(make_explanation):
    e = make_explanation(np.zeros((2, 3, 2)), mutable=False)
    assert sparsity(e).tolist() == features_touched(e).tolist() == [0, 0]


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n_steps=st.integers(1, 8), share=st.sampled_from([0.0, 0.2, 0.6, 1.0]))
def test_invariants(make_explanation, seed, n_steps, share):
    rng = np.random.default_rng(seed)
    delta = np.where(rng.random((4, n_steps, 3)) < share, 1.0, 0.0)
    lengths = rng.integers(1, n_steps + 1, 4)
    e = make_explanation(delta, lengths=lengths)
    order = [2, 0, 3, 1]
    for measure in MEASURES:
        value = measure(e)
        assert value.dtype == np.float64
        np.testing.assert_array_equal(measure(e[order]), value[order])
        for i, n in enumerate(lengths):  # values in the padding do not matter
            np.testing.assert_array_equal(measure(make_explanation(delta[i : i + 1, :n])), value[i : i + 1])
    found = find_segments(changed_within(e))
    np.testing.assert_array_equal(segments(e), np.bincount(found.series, minlength=4))
    for i in np.flatnonzero(segments(e)):
        mine = found.series == i
        assert segment_length(e)[i] == pytest.approx((found.end - found.start)[mine].mean())
        assert segments_per_feature(e)[i] == pytest.approx(mine.sum() / len(np.unique(found.feature[mine])))
    assert (sparsity(e) <= np.minimum(steps_touched(e), features_touched(e))).all()


def test_sparsity_equals_share_changed(make_explanation):
    e = make_explanation(DELTA, mutable=[True, True, False])
    np.testing.assert_array_equal(sparsity(e), e.share_changed)


def test_loss_and_measure_agree(make_explanation):
    import torch

    from sparcets.training import losses

    np.testing.assert_allclose(sparsity(make_explanation(DELTA)), losses.count_changed(torch.tensor(DELTA), 3))


@pytest.mark.parametrize("measure", MEASURES)
def test_no_answers(make_explanation, measure):
    assert measure(make_explanation(np.zeros((0, 4, 2)))).shape == (0,)
