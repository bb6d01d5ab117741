"""Evidence: derived values by hand, selecting, joining, files, and how an explanation keeps it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparcets.core.errors import DataError, ShapeError
from sparcets.core.evidence import CURVE, PLAUSIBILITY, REAL, Evidence
from sparcets.core.explanation import join
from sparcets.core.info import SeriesInfo
from sparcets.io.explanations import load_explanation
from tests.made import answers

NAN = float("nan")
LOOKS = {"distance": 0.5, "outside": 0.0, "jumps": 0.0, "stretch": NAN}  # of a real series
KINDS = ("intervals", "shapelets", "kernels")


def evidence(support, families=KINDS, **looks):
    rows = np.array(support, dtype=float).reshape(-1, len(families))
    plausibility = {name: np.resize(looks.get(name, LOOKS[name]), len(rows)) for name in PLAUSIBILITY}
    return Evidence(families=families, support=rows, plausibility=plausibility)


def curve(share, support, valid):
    return {name: np.array(values, dtype=float) for name, values in zip(CURVE, (share, support, valid), strict=True)}


def explanation(known, **changes):
    """Return valid answers with this evidence."""
    query = np.zeros((len(known), 2, 1), dtype=np.float32)
    made = query + np.arange(1, len(known) + 1, dtype=np.float32)[:, None, None]
    info = SeriesInfo.from_series(np.array([[[0.0], [1.0]]]), ("sick", "well"))
    flipped = {"proba_before": [0.9, 0.1], "proba_after": [0.2, 0.8]}
    return answers(query, made, info, **{**flipped, "evidence": known, **changes})


def assert_same(one, two):
    a, b = one.to_arrays(), two.to_arrays()
    assert list(a) == list(b)
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)


def test_believed_needs_the_majority_of_every_family_and_some_evidence():
    known = evidence([[1, 1, 1], [0.6, 0.51, 1], [1, 1, 0.5], [0, 0, 0], [1, 1, NAN]])
    assert explanation(known).believed.tolist() == [True, True, False, False, False]
    none = explanation(Evidence.none(2))
    assert none.families == () and none.support.shape == (2, 0) and none.believed.tolist() == [False, False]
    assert list(none.plausibility) == list(PLAUSIBILITY) and list(none.curve) == list(CURVE)
    assert all(np.isnan(values).all() for values in none.evidence.plausibility.values())
    assert all(values.shape == (2, 0) for values in none.curve.values())
    assert np.isnan([none.least_believed, none.flips_at]).all() and none.fragile.tolist() == [False, False]


def test_least_believed_and_flips_at_are_the_smallest_shares_in_any_order():
    points = curve(
        share=[[0.4, 0.2, 0.1, 0.02], [0.3, 0.2, 0.1, NAN], [0.3, 0.2, NAN, NAN], [0.2, 0.05, NAN, NAN]],
        support=[[1.0, 0.6, 0.5, 0.0], [0.4, 0.5, 0.2, NAN], [0.9, 0.8, NAN, NAN], [0.9, 0.1, NAN, NAN]],
        valid=[[1, 1, 1, 1], [1, 0, 1, NAN], [0, 0, NAN, NAN], [1, 1, NAN, NAN]],
    )
    known = evidence(np.zeros((4, 3))).with_curve(points, np.arange(4))
    e = explanation(known)
    np.testing.assert_array_equal(e.least_believed, [0.2, NAN, 0.2, 0.2])
    np.testing.assert_array_equal(e.flips_at, [0.02, 0.1, NAN, 0.05])
    assert e.fragile.tolist() == [True, False, False, False], "0.02 < 0.2 / 4; unknown is not fragile"
    assert e.families == known.families and e.support is known.support and e.curve is known.curve
    with pytest.raises(ShapeError, match=r"one row per answer in every array.*'evidence': 2"):
        replace(e, evidence=Evidence.none(2))


@pytest.mark.parametrize(
    ("support", "looks", "expected"),
    [
        ([1, 1, 1], {}, "believed"),
        ([1, 1, 1], {"distance": 1.0, "stretch": 0.1}, "believed"),  # discriminators are asked instead of distances
        ([1, 1, 1], {"distance": NAN}, "believed"),
        ([1, 1, 1], {"outside": 1}, "doubtful"),
        ([1, 1, 1], {"jumps": 1}, "doubtful"),
        ([1, 1, 1], {"stretch": 0.11}, "doubtful"),
        ([1, 1, 0.5], {}, "doubtful"),
        ([1, 0, 0], {}, "trick"),
        ([0, 0, 0], {"outside": 3}, "trick"),
        ([NAN, NAN, NAN], {}, "doubtful"),
        ([1, 0], {}, "doubtful"),  # half of the families are not few
        ([1, 1], {}, "doubtful"),  # fewer than three kinds
    ],
)
def test_verdicts_on_valid_answers(support, looks, expected):
    known = evidence([[*support, 1]], (*KINDS[: len(support)], REAL), **looks)
    assert explanation(known).verdict.tolist() == [expected]


@pytest.mark.parametrize(
    ("support", "believed", "expected"),
    [
        ([1, 1, 1, 1], True, "believed"),
        ([1, 1, 1, 0.5], False, "doubtful"),  # one of two kinds of discriminators recognises it
        ([1, 1, 1, 0], False, "doubtful"),
        ([1, 0, 0, 1], False, "trick"),  # discriminators have no say in whether it is one
        ([1, 1, 0, 0], False, "doubtful"),
        ([0, 0, 0, NAN], False, "doubtful"),
    ],
)
def test_discriminators_have_a_column_and_no_say_in_tricks(support, believed, expected):
    e = explanation(evidence([support], (*KINDS, REAL)))
    assert (e.believed.tolist(), e.verdict.tolist()) == ([believed], [expected])


def test_without_discriminators_or_with_fewer_than_three_other_kinds_nothing_is_believed():
    for families in (KINDS, (*KINDS, "forest"), (*KINDS[:2], REAL), (REAL,)):
        e = explanation(evidence(np.ones((1, len(families))), families))
        assert (e.believed.tolist(), e.verdict.tolist()) == ([True], ["doubtful"]), families


def test_status_and_validity_come_first():
    known = evidence(np.ones((3, 4)), (*KINDS, REAL))
    status = np.array(["unchanged", "not_found", "generated"])
    e = explanation(known, status=status, proba_after=np.array([[0.2, 0.8], [0.9, 0.1], [0.2, 0.8]]))
    assert e.verdict.tolist() == ["unchanged", "not reached", "believed"]
    without = replace(e, evidence=Evidence.none(3))
    assert without.verdict.tolist() == ["unchanged", "not reached", "doubtful"]
    assert e[[]].verdict.tolist() == []


@given(st.lists(st.integers(-4, 3), max_size=6))
def test_selecting_and_joining_answers_selects_and_joins_their_evidence(rows):
    share = np.arange(8.0).reshape(4, 2)
    known = evidence(np.arange(12.0), distance=np.arange(4.0)).with_curve(curve(share, share, share), np.arange(4))
    whole, index = explanation(known), np.array(rows, dtype=np.int64)
    part = whole[rows].evidence
    np.testing.assert_array_equal(part.support, known.support[index])
    np.testing.assert_array_equal(part.plausibility["distance"], np.arange(4.0)[index])
    np.testing.assert_array_equal(part.curve["valid"], share[index])
    assert part.families == known.families
    assert_same(join([whole[:1], whole[1:1], whole[1:]]).evidence, known)


def test_joining_fills_with_nan_what_a_part_does_not_have():
    families = (*KINDS, REAL)
    short = evidence([[1] * 4], families).with_curve(curve([[0.2]], [[0.9]], [[1]]), np.array([0]))
    long = evidence([[1] * 4], families).with_curve(curve([[0.3, 0.1]], [[0.9, 0.8]], [[1, 1]]), np.array([0]))
    joined = Evidence.join([Evidence.none(1), short, long])
    np.testing.assert_array_equal(joined.support, [[NAN] * 4, [1] * 4, [1] * 4])
    np.testing.assert_array_equal(joined.curve["share"], [[NAN, NAN], [0.2, NAN], [0.3, 0.1]])
    assert explanation(joined).believed.tolist() == [False, True, True]
    assert explanation(joined).verdict.tolist() == ["doubtful", "believed", "believed"]
    with pytest.raises(DataError, match=r"different families cannot be joined.*Join answers of the same explainer"):
        Evidence.join([short, evidence([[1]], families=("kernels",))])


@pytest.mark.parametrize(
    "wrong",
    [
        {"support": np.ones((2, 3))},
        {"plausibility": {"distance": np.ones(2)}},
        {"plausibility": {name: np.ones(3) for name in PLAUSIBILITY}},
        {"curve": curve([[1.0]], [[1.0]], [[1.0]])},
        {"curve": curve([[1.0], [1.0]], [[1.0, 2.0], [1.0, 2.0]], [[1.0], [1.0]])},
        {"curve": {"share": np.ones((2, 1))}},
    ],
    ids=str,
)
def test_wrong_shapes(wrong):
    with pytest.raises(ShapeError, match=r"evidence needs support \(answers, 2 families\), distance, outside"):
        Evidence(**{"families": ("a", "b"), "support": np.ones((2, 2)), **wrong})


KNOWN = evidence(np.arange(12.0) / 12, families=("Intervalle – größer", "核", "kernels"), jumps=[0, 1, 2, NAN])
KNOWN = KNOWN.with_curve(curve([[0.5, 0.1]] * 2, [[1, 0]] * 2, [[1, 1]] * 2), np.array([1, 3]))


@pytest.mark.parametrize("known", [KNOWN, KNOWN[:0], Evidence.none(4)], ids=["known", "no answers", "none"])
def test_a_file_keeps_the_evidence(tmp_path, known):
    e = explanation(known)
    e.save(tmp_path / "run.npz")
    loaded = load_explanation(tmp_path / "run.npz")
    assert_same(loaded.evidence, known)
    assert loaded.verdict.tolist() == e.verdict.tolist()
    with np.load(tmp_path / "run.npz", allow_pickle=False) as stored:
        assert all(stored[name].dtype.kind in "fiubU" for name in stored.files)


def test_arrays_of_a_damaged_file_that_are_not_floats_are_refused():
    arrays = evidence([[1, 1, 1]]).to_arrays()
    assert_same(Evidence.from_arrays(arrays), evidence([[1, 1, 1]]))
    name = next(name for name in arrays if name.endswith("curve_share"))
    with pytest.raises(DataError, match=f"{name} must be floats, got int64"):
        Evidence.from_arrays({**arrays, name: arrays[name].astype(np.int64)})
