"""Constraints like real series: limbs keep their lengths, values and steps those of the training series."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import sparcets as sp
from sparcets.core.arrays import FloatArray
from sparcets.core.errors import CapabilityError, NotFittedError, OutOfRangeError
from sparcets.core.evidence import limb_length, shape_of
from sparcets.core.info import SeriesInfo
from sparcets.motion.limbs import keep_limbs, like_real
from sparcets.motion.skeleton import find_skeleton

ARM = tuple(f"{point}_{axis}" for point in ("LeftShoulder", "LeftElbow", "LeftWrist") for axis in "xy")


def arms(n: int, rng: np.random.Generator) -> FloatArray:
    """Return series (n, 20, 6) of an arm whose limbs are 1 long, and which swings slowly about a still shoulder."""
    t = np.linspace(0, 2, 20)
    angles = rng.uniform(0.5, 1.5, (n, 2, 1)) * np.sin(t + rng.uniform(0, 6, (n, 2, 1)))  # (n, 2, time)
    points = np.stack([np.cos(angles), np.sin(angles)], axis=-1).cumsum(1)  # (n, 2, time, 2)
    still = np.zeros((n, 1, 20, 2))
    return np.concatenate([still, points], axis=1).transpose(0, 2, 1, 3).reshape(n, 20, 6)


def test_limbs_keep_their_lengths_and_directions_and_take_the_next_along() -> None:
    query = arms(3, np.random.default_rng(0))
    made = query.copy()
    made[:, 5:9, 2:4] *= 1.5  # the elbow further away, the wrist stays
    keep = keep_limbs(ARM, tolerance=0.05)
    kept = keep(made, query)
    skeleton = find_skeleton(ARM)
    assert skeleton is not None
    for limb in skeleton.limbs:
        ratio = limb_length(kept, skeleton, limb) / limb_length(query, skeleton, limb)
        assert ratio.min() >= 0.95 - 1e-9 and ratio.max() <= 1.05 + 1e-9
    np.testing.assert_allclose(kept[:, 5:9, 2:4], 1.05 * query[:, 5:9, 2:4])
    assert (kept[:, 5:9, 4:] != query[:, 5:9, 4:]).any() and (kept[:, :5] == query[:, :5]).all()
    np.testing.assert_allclose(keep(kept, query), kept, atol=1e-12)  # nothing is left to do
    assert (keep(query, query) == query).all()


def test_a_limb_without_a_length_gets_the_direction_of_the_query() -> None:
    query = np.array([[[0.0, 0.0, 1.0, 0.0, 2.0, 0.0]]])
    made = np.array([[[0.0, 0.0, 0.0, 0.0, 2.0, 0.0]]])
    assert keep_limbs(ARM, tolerance=0.0)(made, query).tolist() == [[[0.0, 0.0, 1.0, 0.0, 2.0, 0.0]]]


def test_several_steps_in_a_row_are_no_larger_than_in_real_series() -> None:
    """To and fro by 1, real series move no further than that: two steps of 1 in a row would be twice as far."""
    X = (np.arange(20.0) % 2)[None, :, None] * [[[1.0]], [[-1.0]]]
    info = SeriesInfo.from_series(X, ("a", "b"))
    assert like_real(info).max_step == {0: pytest.approx(1.25 / 6)}
    smooth = SeriesInfo.from_series(np.arange(20.0)[None, :, None], ("a", "b"))
    assert like_real(smooth).max_step == {0: 1.0}, "as far as single steps go"


def test_changes_are_made_like_real_ones() -> None:
    """A stretch taken from another arm leaves limbs too long and jumps at its ends; not so with these constraints."""
    X = arms(60, np.random.default_rng(1))
    info = replace(SeriesInfo.from_series(X, ("a", "b")), feature_names=ARM, units=("m",) * 6)
    query, made = X[:20], X[:20].copy()
    made[:, 6:14, 2:4] = X[20:40, 6:14, 2:4]
    before, after = (
        shape_of(SimpleNamespace(query=query, counterfactual=series, lengths=None), info)
        for series in (made, like_real(info).bind(info).enforce(query, made))
    )
    assert (before["jumps"] > 0).mean() > 0.5 and (before["stretch"] > 0.1).mean() > 0.5
    assert (after["outside"] == 0).all() and (after["jumps"] == 0).all() and (after["stretch"] <= 0.1).all()
    changed = (like_real(info).bind(info).enforce(query, made) != query).any((1, 2))
    assert changed.sum() >= 5, "and something still changes"


def test_other_constraints_hold_as_well() -> None:
    """The tighter limit of both; a range that real series never reach, and a function, are the user's."""
    info = replace(
        SeriesInfo.from_series(arms(9, np.random.default_rng(0)), ("a", "b")), feature_names=ARM, units=("m",) * 6
    )
    alone, own = like_real(info), np.add
    low, high = alone.ranges[2]
    given = sp.Constraints(
        immutable=[ARM[0]], ranges={ARM[2]: (low - 1, high - 0.01), ARM[3]: (50, 60)}, max_step={2: 1e-3, 3: 9.0}
    )
    both = like_real(info, given)
    assert list(both.immutable) == [ARM[0]] and both.ranges[2] == (low, high - 0.01) and both.ranges[3] == (50, 60)
    assert both.ranges[4] == alone.ranges[4] and both.max_step == {**alone.max_step, 2: 1e-3}
    assert both.project is not None and like_real(info, replace(given, project=own)).project is own


def test_what_cannot_be_kept_is_an_error() -> None:
    with pytest.raises(CapabilityError, match="LeftElbow_x"):
        keep_limbs(("a", "b"))
    with pytest.raises(OutOfRangeError, match=r"at least 0 and below 1, got 1\.5"):
        keep_limbs(ARM, tolerance=1.5)
    info = SeriesInfo.from_series(arms(3, np.random.default_rng(0)), ("a", "b"))
    assert like_real(info).project is None, "without names there are no limbs"
    with pytest.raises(NotFittedError, match="call fit first"):
        like_real(None)
