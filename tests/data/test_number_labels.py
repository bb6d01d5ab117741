"""Numbers as labels, in frames and in files of every kind: the same data by every road."""

import numpy as np
import pandas as pd
import pytest

import sparcets as sp
from sparcets.core.errors import ConfigError, FileFormatError, LabelError
from sparcets.data.load import save_dataset
from tests.data.test_tables import assert_same

RNG = np.random.default_rng(0)
X = RNG.normal(size=(10, 4, 2)).round(3)
LOW, HIGH = RNG.normal(70, 8, 10).round(2), RNG.normal(120, 8, 10).round(2)
NAMES = {"series": "id", "time": "t", "task": "regression", "seed": 3}
ROWS = [(f"p{s}", t, LOW[s], HIGH[s], *X[s, t]) for s in range(10) for t in range(4)]
LONG = pd.DataFrame(ROWS, columns=["id", "t", "diastolic", "systolic", "acc", "gyro"])
LONG = LONG.astype({"acc": np.float32, "gyro": np.float32})


def expected(y, **known):
    about = {"name": "mine", "feature_names": ["acc", "gyro"], "ids": [f"p{s}" for s in range(10)]}
    return sp.Dataset.from_arrays(X.astype(np.float32), y, seed=3, task="regression", **about, **known)


@pytest.mark.parametrize("kind", ["csv", "semicolons", "parquet", "frame"])
def test_tables_with_one_number_and_with_two(tmp_path, kind):
    for label, y in (("diastolic", LOW), (["systolic", "diastolic"], np.stack([HIGH, LOW], 1))):
        frame = LONG.drop(columns="systolic" if label == "diastolic" else [])
        known = {"label": label, "output_units": "mmHg", **NAMES}
        if kind == "frame":
            found = sp.Dataset.from_frame(frame, name="mine", **known)
        else:
            path = tmp_path / ("mine.parquet" if kind == "parquet" else "mine.csv")
            commas = {"sep": ";", "decimal": ","} if kind == "semicolons" else {}
            frame.to_parquet(path, index=False) if kind == "parquet" else frame.to_csv(path, index=False, **commas)
            found = sp.load_dataset(path, **known)
        assert_same(found, expected(y, output_names=label, output_units="mmHg"))
        assert found.y_train.dtype == np.float64 and found.y_train.shape == (8, *y.shape[1:])


def test_a_column_called_label_names_nothing_and_a_wide_table_may_have_two():
    ds = sp.Dataset.from_frame(LONG.drop(columns="systolic").rename(columns={"diastolic": "label"}), **NAMES)
    assert ds.output_names is None and sorted(ds.y_train) == sorted(set(LOW) - set(ds.y_test))
    wide = pd.DataFrame({"a": LOW, "b": HIGH, **{f"acc_{t}": X[:, t, 0] for t in range(4)}})
    ds = sp.Dataset.from_frame(wide, label=["a", "b"], task="regression")
    assert ds.output_names == ("a", "b") and ds.X_train.shape == (8, 4, 1) and ds.y_test.shape == (2, 2)


@pytest.mark.parametrize("y", [LOW, np.stack([LOW, HIGH], 1)])
def test_npz_round_trip(tmp_path, y):
    ds = expected(y, output_units="mmHg")
    assert_same(sp.load_dataset(save_dataset(ds, tmp_path / "mine.npz")), ds)
    np.savez(tmp_path / "plain.npz", X=X.astype(np.float32), y=y)
    plain = sp.load_dataset(tmp_path / "plain.npz", task="regression", output_units="mmHg", seed=3)
    np.testing.assert_array_equal(plain.y_test, ds.y_test)
    assert plain.output_units == ds.output_units


def test_a_ts_file_says_itself_that_its_labels_are_numbers(tmp_path):
    pytest.importorskip("aeon")
    rows = [":".join(",".join(map(str, x[:, f])) for f in range(2)) + f":{y}" for x, y in zip(X, LOW, strict=True)]
    head = "@problemName mine\n@timeStamps false\n@univariate false\n@equalLength true\n@targetLabel true\n@data\n"
    (tmp_path / "mine.ts").write_text(head + "\n".join(rows) + "\n")
    ds = sp.load_dataset(tmp_path / "mine.ts", seed=3, output_names="diastolic")
    one = expected(LOW, output_names="diastolic")
    np.testing.assert_array_equal(ds.y_test, one.y_test)
    np.testing.assert_array_equal(ds.X_test, one.X_test)
    assert ds.task == "regression" and ds.output_names == ("diastolic",)
    with pytest.raises(FileFormatError, match="is for regression, by its line @targetLabel, not for classification"):
        sp.load_dataset(tmp_path / "mine.ts", task="classification")


EMPTY = LONG.assign(systolic=LONG.systolic.where(LONG.index != 5))
OTHER = LONG.assign(diastolic=LONG.diastolic.where(LONG.index != 1, 1.0))
ONE = {"label": "diastolic", "task": "classification"}


@pytest.mark.parametrize(
    ("frame", "options", "error", "message"),
    [
        (EMPTY, {}, FileFormatError, "row 6, column 'systolic': the cell is empty"),
        (OTHER, {}, FileFormatError, "row 2, column 'diastolic': series 'p0' has '1.0', but .* A series has one dias"),
        (LONG.assign(diastolic="a lot"), {}, FileFormatError, "column 'diastolic': 'a lot' is not a number"),
        (LONG, {"task": "classification"}, ConfigError, "label must be one column, got .* task='regression'"),
        (LONG, {"label": ()}, ConfigError, "label must be one column, got ()"),
        (LONG, {"task": "forecasting"}, ConfigError, "task must be 'classification' or 'regression'"),
        (LONG.drop(columns="systolic"), ONE, LabelError, "labels of 10 series are 10 different numbers, .* say task="),
    ],
)
def test_mistakes_are_named(frame, options, error, message, tmp_path):
    with pytest.raises(error, match=message):
        sp.Dataset.from_frame(frame, **{**NAMES, "label": ["diastolic", "systolic"], **options})
    np.savez(tmp_path / "plain.npz", X=X, y=np.stack([LOW, HIGH], 1))
    with pytest.raises(LabelError, match="y must be 10 labels, one per series"):
        sp.load_dataset(tmp_path / "plain.npz")
