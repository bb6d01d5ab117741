"""Validation of user input: accepted values, and the messages for invalid ones."""

import numpy as np
import pandas as pd
import pytest

from sparcets.core.errors import (
    DataError,
    FeatureMismatchError,
    LabelError,
    NonFiniteError,
    ShapeError,
    TargetError,
    UnknownNameError,
)
from sparcets.core.series import check_lengths, check_padded, check_series
from sparcets.core.target import check_target
from sparcets.core.validation import check_ids, check_labels, check_mutable, check_names, check_units

X = np.arange(24.0).reshape(2, 4, 3)
STRING = np.dtypes.StringDType() if hasattr(np.dtypes, "StringDType") else str  # of NumPy 2


class Tensor:
    """A tensor that cannot be converted to an array."""

    def __array__(self, *args, **options):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")


@pytest.mark.parametrize("dtype", [">f4", ">f8", "float16", "longdouble", ">i2", "uint8", "bool", "object"])
def test_numbers_become_native_floats_and_floats_stay_as_they_are(dtype):
    given_ = X.astype(dtype)
    checked = check_series(given_)
    assert checked.dtype == (np.float32 if dtype in (">f4", "float16") else np.float64) and checked.dtype.isnative
    np.testing.assert_array_equal(checked, given_.astype(np.float64))
    np.testing.assert_array_equal(check_series(X.tolist()), X)
    for series in (X, X.astype(np.float32)):
        assert check_series(series, n_features=3, n_steps=4) is series


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (X[0], ShapeError, r"X must be \(batch, time, features\), got shape \(4, 3\). One feature\? Pass X\[..., No"),
        (X[:0], ShapeError, r"X is empty: shape \(0, 4, 3\). Pass at least one series"),
        ([[[1.0], [2.0]], [[1.0]]], ShapeError, "rows of unequal length. Pass a list of arrays .time, features., or"),
        (X.astype(str), DataError, r"X must hold real numbers, got dtype <U32. Convert text by X.astype\(float\)"),
        (np.where(X == 7, "7", X.astype(object)), DataError, r"X must hold real numbers, got '7' at \[0, 2, 1\]"),
        (np.where(X == 7, np.datetime64("2024"), X.astype(object)), DataError, "got .*date"),
        (np.finfo(np.longdouble).max * np.ones((1, 1, 1), np.longdouble), NonFiniteError, "X holds infinity"),
        (np.ma.masked_equal(X, 7), NonFiniteError, r"X holds NaN at \[0, 2, 1\]"),
        (X.astype(complex), DataError, "X must hold real numbers, got dtype complex128"),
        (Tensor(), DataError, r"X cannot be read as a NumPy array: .*detach\(\)"),
    ],
)
def test_invalid_series(bad, error, message):
    with pytest.raises(error, match=message):
        check_series(bad)


@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_position_of_non_finite_values(value, word):
    bad = X.astype(np.float32)
    bad[1, 3] = np.finfo(np.float32).max  # whose square is none
    assert check_series(bad) is bad
    bad[1, 2, 0] = value
    with pytest.raises(NonFiniteError, match=rf"queries holds {word} at \[1, 2, 0\] \(series 1, step 2, feature 0\)\."):
        check_series(bad, name="queries")
    bad[1, 3] = np.nan
    with pytest.raises(NonFiniteError, match=rf"{word} at \[1, 2, 0\].*; 4 such values in all"):
        check_series(bad)


def test_series_of_another_size_and_values_beyond_float32():
    with pytest.raises(FeatureMismatchError, match=r"^Sparce was fitted on 12 features, X has 3\.$"):
        check_series(X, owner="Sparce", n_features=12)
    with pytest.raises(FeatureMismatchError, match=r"Sparce was fitted on series of 9 steps, X has 4\. Cut, pad"):
        check_series(X, owner="Sparce", n_steps=9)
    huge = X.copy()
    huge[1, 2, 0] = -1e154
    with pytest.raises(DataError, match=r"queries holds -1e\+154 at \[4, 2, 0\], beyond float32's 3.4e\+38"):
        check_series(huge, name="queries", first=3)
    huge[0, 0] = np.nan
    with pytest.raises(DataError, match=r"X holds -1e\+154"):
        check_series(huge, gaps=True)
    assert check_padded(huge, [4, 2], gaps=True)[0][1, 2:].sum() == 0, "padding may hold anything"


ODD = {"\ud800": "half of a surrogate pair", "a\nb": "line break", "a\x07": "control", "a\u2028b": "line"}
ODD |= {" ": "blank", "": "blank"}


@pytest.mark.parametrize("name", ODD)
def test_names_units_labels_and_ids_are_one_line_of_text(name):
    calls = {
        "names": lambda: check_names(["a", name], what="names"),
        "y": lambda: check_labels(["a", name], n_samples=2),
        "ids": lambda: check_ids(["a", name], what="ids", n=2),
    }
    if name.strip():
        calls["units"] = lambda: check_units(["m", name], what="units", n=2, each="feature")
    for what, call in calls.items():
        with pytest.raises(DataError, match=rf"{what} holds .*, which (is|has) .*{ODD[name]}"):
            call()


@pytest.mark.parametrize("nothing", [None, np.nan, pd.NA])
def test_what_is_missing_is_no_name(nothing):
    with pytest.raises(DataError, match=r"names holds .*, which is no name"):
        check_names(["a", nothing], what="names")
    with pytest.raises(DataError, match=r"ids holds .* for series 1, which is no id"):
        check_ids(np.array(["a", nothing], dtype=object), what="ids")


def test_names_and_ids():
    names = ("größe (°C)", "左腕", "a\u00a0b", "👩\u200d⚕️", "7")
    assert check_names(names, what="names") == names
    assert check_names([0, 1], n=2, what="names") == ("0", "1") and check_names(None, what="names") is None
    assert check_units(["", None, "m/s²"], what="units", n=3, each="feature") == ("", "", "m/s²")
    for bad, error, message in [
        (["a"], ShapeError, "names must be 2 names, got 1"),
        (["a", "a"], DataError, "names must be distinct, but 'a' appears 2 times"),
        ("ab", DataError, "names must be a list of names, got 'ab'"),
        (5, DataError, None),
    ]:
        with pytest.raises(error, match=message):
            check_names(bad, n=2, what="names")
    as_objects = np.array([1, "b"], dtype=object)
    for ids, kind in (([1, 2], "i"), (["a", "b"], "U"), (np.array([1, 2], dtype=object), "i"), (as_objects, "U")):
        found = check_ids(ids, what="ids", n=2)
        assert found.dtype.kind == kind
        assert found.tolist() == ([str(one) for one in ids] if kind == "U" else list(ids))


def masked(values):
    return np.ma.masked_array(values, np.isin(values, [5, 20]), fill_value=999)


@pytest.mark.parametrize(
    "given",
    [
        masked(X),
        masked(X.astype(int)),
        masked(X.astype(object)),
        [masked(one) for one in X],
        [[list(step) for step in one] for one in masked(X)],
        np.where(np.isin(X, [5, 20]), None, X.astype(object)),
        np.where(np.isin(X, [5, 20]), pd.NA, X.astype(object)),
        [pd.DataFrame(one).where(~np.isin(one, [5, 20])).astype("Float64") for one in X],
    ],
    ids=["floats", "whole", "objects", "list", "nested", "None", "NA", "nullable"],
)
def test_masked_entries_are_missing(given):
    expected = np.where(np.isin(X, [5, 20]), np.nan, X)
    np.testing.assert_array_equal(check_series(given, gaps=True), expected)
    np.testing.assert_array_equal(check_padded(given, None, gaps=True)[0], expected)
    padded, lengths = check_padded(given, [4, 3], gaps=True)
    np.testing.assert_array_equal(padded[1], [*expected[1, :3], [0, 0, 0]])
    assert lengths.tolist() == [4, 3]


def test_masks_are_refused_where_nothing_may_be_missing():
    for what, call in {
        r"y .* at \[5\]": lambda: check_labels(masked(np.arange(8)), n_samples=8),
        r"ids .* at \[1\]": lambda: check_ids(np.ma.masked_array([1, 2], [False, True]), what="ids"),
        r"target .* at \[0\]": lambda: check_target(
            np.ma.masked_array([1, 0], [True, False]), n_queries=2, class_names=["a", "b"]
        ),
    }.items():
        with pytest.raises(DataError, match=what.replace(".*", "has masked entries, the first")):
            call()


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([4], r"lengths must be 2 whole numbers, one per series, got shape \(1,\)"),
        ([0, 4], r"lengths must lie in 1..4, got 0 for series 0\."),
        ([5, 9], r"lengths must lie in 1..4, got 5 for series 0 and 1 more\."),
        (np.array([4, 2**63], dtype=np.uint64), "got 9223372036854775808 for series 1"),
        ([[1], [1, 2]], "lengths is a nested list with rows of unequal length. Pass one whole number per series"),
    ],
)
def test_invalid_lengths(bad, message):
    checked = check_lengths([4, 1], X)
    assert checked.tolist() == [4, 1] and checked.dtype == np.int64
    with pytest.raises(ShapeError, match=message):
        check_lengths(bad, X)


@pytest.mark.parametrize(
    ("y", "labels", "names"),
    [
        ([0, 1, 1], [0, 1, 1], ("0", "1")),
        ([True, False, True], [1, 0, 1], ("0", "1")),
        ([0.0, 2.0, 1.0], [0, 2, 1], ("0", "1", "2")),
        (["well", "sick", "well"], [1, 0, 1], ("sick", "well")),
        (np.array(["well", "sick", "well"], dtype=object), [1, 0, 1], ("sick", "well")),
        (np.array(["well", "sick", "well"], dtype=STRING), [1, 0, 1], ("sick", "well")),
    ],
)
def test_labels(y, labels, names):
    found, found_names = check_labels(y, n_samples=3)
    assert found.tolist() == labels and found.dtype == np.int64 and found_names == names


def test_labels_with_names_keep_their_order():
    assert check_labels(["a", "b"], n_samples=2, class_names=["b", "a"])[0].tolist() == [1, 0]
    assert check_labels([1, 0], n_samples=2, class_names=["b", "a"])[1] == ("b", "a")
    assert check_labels([1, 0], n_samples=2, class_names=[7, 8])[1] == ("7", "8")
    assert check_labels([0, 2], n_samples=2, class_names=["a", "b", "c", "d"])[1] == ("a", "b", "c", "d")


@pytest.mark.parametrize(
    ("y", "names", "error", "message"),
    [
        ([0, 1], None, LabelError, r"y must be 3 labels, one per series, got shape \(2,\)\.$"),
        (np.eye(3), None, LabelError, r"got shape \(3, 3\). It looks one-hot: pass y.argmax\(1\)"),
        ([[0], [0, 1], [1]], None, ShapeError, "y is a nested list with rows of unequal length. Pass one label"),
        ([0, 0, 0], None, LabelError, "y holds one class only .'0'.; at least two are needed"),
        ([0, 2, 2], None, LabelError, "class 1 .'1'. has no sample in y. Labels are class indices 0..2"),
        ([3, 0, 0], None, LabelError, "3 series cannot fill classes 0..3, so one has no sample"),
        ([1, 1, 1], ["a", "b", "c"], LabelError, "y holds one class only .'b'.; at least two are needed"),
        ([0, 1, 2], ["a", "b"], LabelError, r"y holds the label 2, but there are 2 classes \(a, b\)"),
        (np.array([0, 1, 2**63], dtype=np.uint64), None, LabelError, "the label 9223372036854775808,"),
        ([-1, 0, 1], None, LabelError, "y holds the label -1; class indices start at 0"),
        ([0.5, 0, 1], None, LabelError, "y must hold whole numbers or strings, got 0.5"),
        (np.zeros(3, dtype=complex), None, LabelError, "class indices or strings, got dtype complex128"),
        ([b"a", b"b", b"b"], None, LabelError, r"y holds bytes; decode the labels first: y.astype\(str\)"),
        (np.array(["a", 1, 1], dtype=object), None, LabelError, "y mixes labels of several types, among them 1"),
        (["Sick", "well", "well"], ["sick", "well"], UnknownNameError, "no class 'Sick'. Did you mean 'sick'"),
    ],
)
def test_invalid_labels(y, names, error, message):
    with pytest.raises(error, match=message):
        check_labels(y, n_samples=3, class_names=names)


@pytest.mark.parametrize("huge", [4, 2**32 + 1, 2**63 - 1, 2**64, 2**80])
def test_labels_never_wrap_around_to_another_class(huge):
    with pytest.raises(LabelError, match=f"the label {huge}, but"):
        check_labels(np.array([0, 1, huge]), n_samples=3, class_names=["a", "b"])
    with pytest.raises(LabelError, match=f"the label -{huge};"):
        check_labels(np.array([0, 1, -huge], dtype=object), n_samples=3)


@pytest.mark.parametrize(
    ("target", "classes"),
    [
        ("well", [1, 1]),
        (1, [1, 1]),
        ([0, 1], [0, 1]),
        (["well", "sick"], [1, 0]),
        ([1, "sick"], [1, 0]),
        (np.array(["well", "sick"]), [1, 0]),
    ],
)
def test_targets(target, classes):
    found = check_target(target, n_queries=2, class_names=["sick", "well"])
    assert found.tolist() == classes and found.dtype == np.int64


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("wel", r"no target class 'wel'. Did you mean 'well'\? Known: sick, well\."),
        (2, "target 2 is not a class index: there are 2 classes, sick, well"),
        (True, "target must be a class name or index, got True"),
        ([0, 1, 1], "one class, or one per query: 2 queries came with 3 targets"),
        ([0, "x"], "no target class 'x'"),
        ([[0], [1, 0]], r"got \[0\]"),
    ],
)
def test_invalid_targets(target, message):
    with pytest.raises(TargetError, match=message):
        check_target(target, n_queries=2, class_names=["sick", "well"])


def test_mutable_by_flag_name_or_index():
    assert check_mutable(None, feature_names=None, n_features=3) is None
    for mutable in ([True, False, True], np.array([1, 0, 1], dtype=bool), ["f0", 2], (0, "f2")):
        found = check_mutable(mutable, feature_names=None, n_features=3)
        assert found.tolist() == [True, False, True]
    for wrong, error, message in (
        ([], DataError, "mutable names no feature, so nothing could be changed"),
        ([True, False], ShapeError, "mutable must be 3 flags, one per feature, got 2"),
        ("f0", DataError, "mutable must be a list of flags, names or indices, got 'f0'"),
        (["F0"], UnknownNameError, "no feature 'F0'. Did you mean 'f0'"),
        ([3], UnknownNameError, "no feature 3. Known: f0, f1, f2"),
    ):
        with pytest.raises(error, match=message):
            check_mutable(wrong, feature_names=None, n_features=3)
