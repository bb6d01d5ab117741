"""Edits: each kind by hand, what stays as it is, values as edits, and lists of edits as arrays."""

import json
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from sparcets.core.edits import FREE, KINDS, PREFIX, Coordinates, Edit, EditLists, Limb, apply_edits, fade, free_edits
from sparcets.core.errors import DataError, ShapeError

QUERY = np.array([[0.0, 10.0], [1.0, 20.0], [2.0, 30.0], [7.0, 40.0]])
PLAIN = Coordinates(tolerance=np.full(2, 1e-9))


def edit(kind, amount, *, columns=(0,), start=0, end=4, **more):
    names = tuple(f"f{column}" for column in columns)
    known = {"coordinates": None if kind == FREE else PLAIN, **more}
    return Edit(features=names, start=start, end=end, kind=kind, amount=amount, columns=columns, **known)


# Each kind.


def test_a_fade_by_hand():
    quarter = np.sin(np.pi / 8) ** 2  # a quarter of the way up, smoothly
    assert fade(3, 0, 0).tolist() == [1, 1, 1]
    np.testing.assert_allclose(fade(5, 2, 0), [quarter, 1 - quarter, 1, 1, 1])
    np.testing.assert_allclose(fade(5, 0, 2), [1, 1, 1, 1 - quarter, quarter])
    np.testing.assert_allclose(fade(2, 1, 1), [0.5, 0.5])
    assert (np.diff(fade(20, 20, 0)) > 0).all()


BY_HAND = {
    "follow": (edit("follow", 0.5, start=1, end=3, course=np.array([[5.0], [6.0]])), [0, 3, 4, 7]),
    "follow, beyond": (edit("follow", 2.0, start=3, course=np.array([[8.0]])), [0, 1, 2, 9]),
    "follow, into a gap": (edit("follow", 1.0, start=1, end=3, course=np.array([[np.nan], [6.0]])), [0, 1, 6, 7]),
    "follow, fading in": (edit("follow", 1.0, start=2, rise=(1, 0), course=np.array([[4.0], [4.0]])), [0, 1, 3, 4]),
    "level": (edit("level", -1.5, end=2, course=np.array([[2.0]])), [-3, -2, 2, 7]),
    "size": (edit("size", 2.0, start=2), [0, 1, 1.5, 11.5]),  # around the mean of all steps, 2.5
    "size, smaller": (edit("size", 0.5), [1.25, 1.75, 2.25, 4.75]),
    "shift, later": (edit("shift", 1.0), [0, 0, 1, 2]),
    "shift, earlier": (edit("shift", -0.5), [0.5, 1.5, 4.5, 7]),
    "shift, in a window": (edit("shift", -1.0, start=2), [0, 1, 7, 7]),
    "smooth": (edit("smooth", 1.0), [1 / 3, 1, 10 / 3, 16 / 3]),
    "smooth, in a window": (edit("smooth", 1.0, start=1, end=3), [0, 1, 10 / 3, 7]),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_each_kind_by_hand(name):
    one, expected = BY_HAND[name]
    made = apply_edits(QUERY, [one])
    assert made[:, 0].tolist() == pytest.approx(expected, abs=1e-12)
    assert np.array_equal(made[:, 1], QUERY[:, 1])  # what no edit moves


def test_every_kind_is_tested():
    assert {one.kind for one, _ in BY_HAND.values()} == set(KINDS)


def test_edits_follow_one_another_and_act_on_several_columns():
    unit = np.array([[1.0, 10.0]])
    higher, doubled = edit("level", 1.0, columns=(0, 1), course=unit), edit("size", 2.0, columns=(0, 1), start=2)
    made = apply_edits(QUERY, [higher, doubled])  # means 3.5 and 35 after the first
    assert made.tolist() == [[1, 20], [2, 30], [2.5, 45], [12.5, 65]]
    values = edit(FREE, 0.0, start=1, end=2, course=np.array([[99.0]]))
    for edits in ([values, higher], [higher, values]):  # values come last wherever they stand
        assert apply_edits(QUERY, edits)[:, 0].tolist() == [1, 99, 3, 8]


# What stays.


def test_gaps_and_changes_below_the_tolerance_keep_their_bits_and_others_are_rounded_once():
    gaps = QUERY.copy()
    gaps[1, 0] = np.nan
    made = apply_edits(gaps, [edit("level", 1.0, course=np.array([[1.0]]))])
    assert np.isnan(made[1, 0]) and made[[0, 2, 3], 0].tolist() == [1, 3, 8]
    coarse = Coordinates(tolerance=np.array([0.5, 0.5]))
    ramp = edit("level", 1.0, rise=(4, 0), course=np.array([[0.6]]), coordinates=coarse)
    assert apply_edits(QUERY, [ramp])[:3].tobytes() == QUERY[:3].tobytes()
    query = np.ones((4, 2), dtype=np.float32)
    half = edit("level", 1.0, course=np.array([[4e-8]]), coordinates=Coordinates(tolerance=np.zeros(2)))
    assert np.array_equal(apply_edits(query, [half]), query)  # less than half a bit
    made = apply_edits(query, [half, half])
    assert made.dtype == np.float32 and (made[:, 0] == np.nextafter(np.float32(1), np.float32(2))).all()
    assert apply_edits(query.astype(np.float64), [half])[0, 0] == 1 + 4e-8


def test_the_query_stays_as_it_is_and_wrong_ones_are_errors():
    before = QUERY.copy()
    made = apply_edits(QUERY, [edit("level", 1.0, course=np.array([[1.0]]))])
    again = apply_edits(QUERY, [])
    again += 1
    assert np.array_equal(QUERY, before) and not np.shares_memory(made, QUERY)
    with pytest.raises(ShapeError, match=r"takes one query \(time, features\), got shape \(1, 4, 2\)"):
        apply_edits(QUERY[None], [])
    with pytest.raises(ShapeError, match=r"steps 0 to 4\) does not fit into"):
        apply_edits(QUERY[:3], [edit("size", 2.0)])
    with pytest.raises(DataError, match="course of training series 7 was not"):
        apply_edits(QUERY, [edit("follow", 1.0, row=7)])


# Values as edits.


@st.composite
def pairs(draw):
    """Return a query with gaps, and a counterfactual that has its bits except for some entries."""
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    shape = draw(st.tuples(st.integers(1, 9), st.integers(1, 4)))
    values = st.floats(allow_nan=False, width=32)
    query, other = (draw(arrays_of.arrays(dtype, shape, elements=values)) for _ in range(2))
    changed, gaps = (draw(arrays_of.arrays(bool, shape)) for _ in range(2))
    query[gaps] = np.nan
    return query, np.where(changed & ~gaps & (query != other), other, query)


@given(pairs())
def test_any_counterfactual_is_given_back_bit_for_bit(pair):
    query, made = pair
    edits = free_edits(query, made, [f"f{i}" for i in range(query.shape[1])])
    assert apply_edits(query, edits).tobytes() == made.tobytes()
    assert sum((one.end - one.start) * len(one.columns) for one in edits) == ((query != made) & ~np.isnan(query)).sum()


def test_a_segment_of_a_feature_is_an_edit():
    made = QUERY.copy()
    made[1:3, 1] += 4
    made[[0, 3], 0] -= 2
    told = [(one.features, one.start, one.end, one.kind, one.amount) for one in free_edits(QUERY, made, ["a", "b"])]
    assert told == [(("a",), 0, 1, FREE, -2.0), (("a",), 3, 4, FREE, -2.0), (("b",), 1, 3, FREE, 4.0)]


# Lists.

ARM = Coordinates(
    tolerance=np.array([0.1, 0.0, 1e-7, 0.3]), limbs=(Limb(start=(0, 1), end=(2, 3), bend=(-0.1, 1 / 3)),), whole=(0,)
)
SOME = EditLists(
    (
        (
            edit("level", 1 / 3, course=np.array([[0.1, 1e-300]]), columns=(0, 1), needed_by=("model", "families")),
            edit("size", 2.0, coordinates=ARM, rise=(1, 2), text="f0: 2 times as large"),
        ),
        (),
        (
            edit(FREE, 1.0, course=np.array([[1.5], [np.float32(0.1)]], dtype=np.float32), end=2),
            edit("follow", 0.7, row=12, course=np.array([[np.nan], [np.pi]]), start=2),
            edit("follow", 1.0, row=3),  # whose course is not stored
        ),
    )
)


def assert_same(one, other):
    assert [len(edits) for edits in one.lists] == [len(edits) for edits in other.lists]
    for a, b in zip(sum(one.lists, ()), sum(other.lists, ()), strict=True):
        for field in fields(Edit):
            mine, others = getattr(a, field.name), getattr(b, field.name)
            if field.name == "coordinates":
                mine, others = mine and mine.to_dict(), others and others.to_dict()
            elif field.name == "course" and mine is not None:
                assert (mine.dtype, mine.shape) == (others.dtype, others.shape)
                mine, others = mine.tobytes(), others.tobytes()
            assert mine == others, field.name


def test_arrays_and_back(tmp_path):
    arrays = SOME.to_arrays()
    assert all(name.startswith(PREFIX) for name in arrays)
    stored_as = arrays
    np.savez(tmp_path / "edits.npz", **stored_as)
    with np.load(tmp_path / "edits.npz", allow_pickle=False) as stored:
        again = EditLists.from_arrays(dict(stored))
    assert_same(again, SOME)
    none = EditLists(((), ())).to_arrays()
    assert len(EditLists.from_arrays(none) or ()) == 2 and EditLists.from_arrays({"query": QUERY}) is None


def test_slices_masks_joins_and_shared_coordinates():
    table = json.loads(str(SOME.to_arrays()[f"{PREFIX}table"]))
    assert len(table["coordinates"]) == 2
    assert_same(EditLists.join([(1, SOME[:1]), (len(SOME) - 1, SOME[1:])]), SOME)
    assert_same(SOME[np.array([True, False, True])], SOME[np.array([0, 2])])
    assert [len(edits) for edits in SOME[np.array([2, 0])].lists] == [3, 2] and len(SOME[:0]) == 0


def damaged(change):
    arrays = SOME.to_arrays()
    table = json.loads(str(arrays[f"{PREFIX}table"]))
    change(table, arrays)
    return {**arrays, f"{PREFIX}table": np.array(json.dumps(table))}


DAMAGES = {
    "an unknown kind": lambda table, arrays: table["edits"][0].update(kind="teleport"),
    "a window that ends before it begins": lambda table, arrays: table["edits"][0].update(start=3, end=2),
    "a course of another size": lambda table, arrays: table["edits"][0].update(shape=[2, 2]),
    "an edit without a course": lambda table, arrays: table["edits"].pop(),
    "other answers": lambda table, arrays: table["answers"].append(1),
    "a map that is not there": lambda table, arrays: table["edits"][0].update(map=7),
    "a field that is not there": lambda table, arrays: table["edits"][0].pop("columns"),
    "limbs of other features": lambda table, arrays: table["coordinates"][1].update(limbs=[[[0, 1], [2, 9], None]]),
    "weights of other features": lambda table, arrays: table["coordinates"][0].update(dependent=[0], weights=[[1]]),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_tables_are_errors(name):
    with pytest.raises((ValueError, LookupError)):  # readers of files turn them into FileFormatError
        EditLists.from_arrays(damaged(DAMAGES[name]))
