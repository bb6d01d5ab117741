"""Plausibility of single answers: by hand, and laws that hold for any data."""

from dataclasses import replace

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sparcets.core.evidence import PlausibilityReference
from sparcets.core.info import SeriesInfo
from sparcets.core.series import Series
from tests.made import answers


def fit(X, y, *, names=None, **more):
    X, y = np.asarray(X, dtype=float), np.asarray(y)
    info = SeriesInfo.from_series(X, tuple(f"class {k}" for k in range(int(y.max()) + 1)), **more)
    info = info if names is None else replace(info, feature_names=names)
    return PlausibilityReference.fit(Series(X, more.get("lengths")), y, info)


def measured(reference, query, made):
    """Return what is measured of answers towards the first class."""
    return reference.measure(answers(query, made, reference.info, target=0))


def constant(*values):
    """Return series of two steps and one feature with these values."""
    return np.array(values, dtype=float)[:, None, None].repeat(2, axis=1)


def test_distance_by_hand():
    # Distances of the six series of class 0 to their five others, on average: 3, 2.2, 1.8, 1.8, 2.2, 3 (in units).
    reference = fit(constant(0, 1, 2, 3, 4, 5, 100), [0] * 6 + [1])
    unit = reference.info.scaler.scale[0]
    np.testing.assert_allclose(reference.own_distance[:6] * unit, [3, 2.2, 1.8, 1.8, 2.2, 3], rtol=1e-4)
    # 2.5 is 0.5, 0.5, 1.5, 1.5, 2.5 away from the nearest five: 1.3. And 5.5: 2.5; 7: 4; 2: 0 + 1 + 1 + 2 + 2.
    made = constant(2.5, 5.5, 7.0, 2.0)
    assert np.isnan(measured(reference, made, made)["stretch"]).all(), "there is no skeleton"
    np.testing.assert_allclose(measured(reference, made, made)["distance"], [0, 4 / 6, 1, 0])
    # The one series of class 1 has no neighbour to compare with.
    assert np.isnan(reference.measure(answers(made, made, reference.info, target=1))["distance"]).all()


def test_distance_over_the_steps_that_both_series_have():
    X = np.array([[[0.0], [0.0]], [[2.0], [99.0]], [[4.0], [0.0]]])
    reference = fit(X, [0, 0, 0], lengths=np.array([2, 1, 2]))
    between = np.sqrt((4**2 + 0**2) / 2)  # the first and the last; the second has one step, 2 from both
    expected = np.array([(2 + between) / 2, 2, (2 + between) / 2]) / reference.info.scaler.scale[0]
    np.testing.assert_allclose(reference.own_distance, expected, rtol=1e-5)


def test_outside_counts_changed_entries_beyond_the_range_of_their_feature():
    reference = fit([[[0, 0], [4, 9]], [[1, 2], [2, 3]]], [0, 0])  # ranges 0 to 4 and 0 to 9
    query = np.array([[[5.0, 5.0], [1.0, 1.0]]])
    made = np.array([[[5.0, 9.5], [-0.5, 5.0]]])  # 5.0 is outside, but unchanged
    e = answers(query, made, reference.info, target=0)
    assert reference.measure(e)["outside"].tolist() == [2]
    assert reference.measure(replace(e, lengths=np.array([1])))["outside"].tolist() == [1], "padding does not count"
    rounded = np.array([[[4.0 + 1e-7, 9.0], [0.0, 0.0]]])
    assert measured(reference, query, rounded)["outside"].tolist() == [0]


def test_jumps_count_steps_next_to_a_change_that_are_larger_than_any_in_training():
    reference = fit([[[0], [2], [3], [5], [4]]], [0])  # at most 2
    of_steps = {"max_moves": np.full((4, 1), np.inf), "max_bends": np.full((5, 1), np.inf)}  # steps alone are asked
    reference = replace(reference, info=replace(reference.info, **of_steps))
    query = np.array([[[0.0], [9.0], [0.0], [0.0], [0.0]]])  # its own jumps are at steps 0-1 and 1-2
    assert measured(reference, query, query)["jumps"].tolist() == [0]
    made = query.copy()
    made[0, 2] = 2.0  # 1-2 is now next to a change; 2-3 is as large as one in training; 0-1 is not next to the change
    assert measured(reference, query, made)["jumps"].tolist() == [1]
    made[0, 2] = 3.0
    e = answers(query, made, reference.info, target=0)
    assert reference.measure(e)["jumps"].tolist() == [2]
    assert reference.measure(replace(e, lengths=np.array([3])))["jumps"].tolist() == [1], "padding does not count"


def test_several_large_steps_in_a_row_are_a_jump():
    t = np.arange(20.0)
    real = (t % 2)[None, :, None] * [[[1.0]], [[-1.0]]]  # to and fro by 1, never further
    reference = fit(real, [0, 0])
    assert reference.info.largest_step.tolist() == [1] and reference.info.max_moves.tolist() == [[1.0]] * 4
    query = np.zeros((1, 20, 1))
    made = query.copy()
    made[0, 5:, 0] = 1.0
    assert measured(reference, query, made)["jumps"].tolist() == [0], "as large as real ones"
    made[0, 4, 0] = -0.3  # from -0.3 to 1 within one step, and within the next two
    low = np.clip(made, -0.2, 1.0)
    assert measured(reference, query, low)["jumps"].tolist() == [1], "a quarter more is allowed over several"
    made[0, 4:, 0] = [0.5, *[-0.49] * 15]
    made[0, 3, 0] = 1.0  # 1, 0.5, -0.49: no step is larger than 1
    assert measured(reference, query, made)["jumps"].tolist() == [4], "within 2, 3, 4 and 6 steps"
    assert measured(reference, made, made)["jumps"].tolist() == [0], "nothing has changed"
    same = made.copy()
    same[0, 4] = 0.6
    assert measured(reference, made, same)["jumps"].tolist() == [1], "no further than the query, but a step"


NAMES = ("elbow_x", "elbow_y", "wrist_x", "wrist_y")


def test_stretch_is_the_largest_relative_change_of_a_limb_at_any_step():
    query = np.array([[[0.0, 0.0, 3.0, 4.0], [0.0, 0.0, 10.0, 0.0], [0.0, 0.0, 0.0, 1.0]]])
    reference = fit(np.concatenate([query, query + 1]), [0, 0], names=NAMES)
    made = query + 7  # the arm moves as a whole
    assert measured(reference, query, made)["stretch"].tolist() == [0]
    made[0, 0, 2:] = [13.0, 15.0]  # 6 and 8 from the elbow: 10 instead of 5
    made[0, 1, 2] = 18.0  # 11 instead of 10
    made[0, 2, 3] = 11.0  # 4 instead of 1
    e = answers(query, made, reference.info, target=0)
    np.testing.assert_allclose(reference.measure(e)["stretch"], [3.0])
    np.testing.assert_allclose(reference.measure(replace(e, lengths=np.array([2])))["stretch"], [1.0])


def test_a_limb_without_length_that_gets_one_is_stretched_without_limit():
    query = np.zeros((2, 1, 4))
    reference = fit(np.concatenate([query, query + 1]), [0, 0, 0, 0], names=NAMES)
    made = query.copy()
    made[1, 0, 3] = 0.5
    assert measured(reference, query, made)["stretch"].tolist() == [0, np.inf]


def padded(seed, n=30):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6, 2)).cumsum(1).astype(np.float32)
    return X, np.arange(n) % 2, rng.integers(1, 7, n)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.floats(-1e3, 1e3))
def test_padding_changes_nothing(seed, filler):
    X, y, lengths = padded(seed)
    filled = X.copy()
    filled[np.arange(6)[None] >= lengths[:, None]] = filler
    references = [fit(series, y, lengths=lengths) for series in (X, filled)]
    np.testing.assert_equal(references[0].to_arrays(), references[1].to_arrays())
    measured = [
        reference.measure(answers(series[::-1], series, reference.info, target=y, lengths=lengths))
        for reference, series in zip(references, (X, filled), strict=True)
    ]
    np.testing.assert_equal(measured[0], measured[1])


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.permutations(range(12)))
@example(251, [1, 6, 2, 3, 4, 5, 7, 8, 0, 9, 10, 11])  # a distance among others differed in its last bits
def test_laws(seed, order):
    """Answers do not depend on each other; training series look real; ``distance`` is a share."""
    X, y, _ = padded(seed)
    reference = fit(X, y)
    made = np.concatenate([X[:6], 4 * X[6:12]])
    query = np.zeros_like(made)
    e = answers(query, made, reference.info, target=np.arange(12) % 2)
    whole = reference.measure(e)
    assert list(whole) == ["distance", "outside", "jumps", "stretch"]
    assert all(values.shape == (12,) and values.dtype == np.float64 for values in whole.values())
    assert ((whole["distance"] >= 0) & (whole["distance"] <= 1)).all()
    assert (whole["outside"][:6] == 0).all() and (whole["jumps"][:6] == 0).all()
    assert (whole["distance"][:6] < 1).all(), "a real series is as close as itself"
    permuted = reference.measure(e[order])
    for name, values in whole.items():
        np.testing.assert_array_equal(permuted[name], values[order])


def test_at_most_500_series_of_each_class_evenly_spaced():
    X = np.arange(2200.0)[:, None, None]
    y = np.repeat([0, 1], [1998, 202])
    reference = fit(X, y)
    values = reference.info.scaler.inverse(reference.series.values.astype(float))[:, 0, 0].round().astype(int)
    assert np.bincount(reference.labels).tolist() == [500, 202]
    first = values[:500]
    assert first[0] == 0 and first[-1] == 1997 and set(np.diff(first)) == {4, 5}
    assert reference.series.values.dtype == np.float32
