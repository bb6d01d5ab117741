"""Frames of pandas, columns of other names, semicolons with decimal commas, and sampling rates found by themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sparcets as sp
from sparcets.core.errors import ConfigError, FileFormatError
from sparcets.data.load import save_dataset

RNG = np.random.default_rng(0)
X = RNG.normal(size=(10, 4, 2)).round(3)
LABELS = ["sick", "well"] * 5
OWN = {"series": "id", "time": "t", "label": "y"}


def long_frame(*, seconds: float = 0.02, **columns: Any) -> pd.DataFrame:
    """Return the series in the long form, with the columns id, t, y, acc and gyro."""
    rows = [(f"p{s}", t * seconds, LABELS[s], *X[s, t]) for s in range(len(X)) for t in range(X.shape[1])]
    return pd.DataFrame(rows, columns=["id", "t", "y", "acc", "gyro"]).assign(**columns)


def series_by_id(ds: sp.Dataset) -> dict[str, Any]:
    ids, series = (np.concatenate([a, b]) for a, b in ((ds.ids_train, ds.ids_test), (ds.X_train, ds.X_test)))
    return dict(zip(ids.tolist(), series, strict=True))


def check(ds: sp.Dataset, *, rate: float | None = 50.0) -> None:
    assert ds.feature_names == ("acc", "gyro") and ds.class_names == ("sick", "well") and ds.sampling_rate == rate
    found = series_by_id(ds)
    assert sorted(found) == [f"p{s}" for s in range(10)]
    for s in range(10):
        np.testing.assert_allclose(found[f"p{s}"], X[s], rtol=1e-6)


def test_a_long_frame_with_own_names() -> None:
    frame = long_frame().sample(frac=1, random_state=0)
    before = frame.copy()
    check(sp.Dataset.from_frame(frame, **OWN))
    pd.testing.assert_frame_equal(frame, before)


def test_an_index_of_series_and_time() -> None:
    check(sp.Dataset.from_frame(long_frame().set_index(["id", "t"]), **OWN))


def test_a_wide_frame_with_two_levels_of_columns() -> None:
    wide = long_frame().assign(t=lambda f: (f["t"] / 0.02).round().astype(int))
    wide = wide.pivot(index=["id", "y"], columns="t", values=["acc", "gyro"])
    check(sp.Dataset.from_frame(wide, series="id", label="y"), rate=None)


def test_a_tidy_frame() -> None:
    tidy = long_frame().melt(id_vars=["id", "t", "y"], var_name="channel", value_name="v")
    check(sp.Dataset.from_frame(tidy, feature="channel", value="v", **OWN))


def test_subjects_and_further_metadata() -> None:
    frame = long_frame(who=np.repeat([f"w{s // 2}" for s in range(10)], 4))
    ds = sp.Dataset.from_frame(frame, subject="who", units="m", name="mine", sampling_rate=7.0, **OWN)
    assert (ds.split, ds.units, ds.name, ds.sampling_rate) == ("subject", ("m", "m"), "mine", 7.0)
    assert not set(ds.subjects_train) & set(ds.subjects_test)


@pytest.mark.parametrize("separator", [";", "\t"])
@pytest.mark.parametrize("decimal", [".", ","])
def test_other_separators(separator: str, decimal: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    long_frame().to_csv(path, index=False, sep=separator, decimal=decimal)
    check(sp.load_dataset(path, **OWN))


def test_commas_in_a_comma_separated_file_are_not_decimal(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text('series,time,label,a\nx,0,b,"1,5"\n')
    with pytest.raises(FileFormatError, match="line 2, column 'a': '1,5' is not a number"):
        sp.load_dataset(path)


@pytest.mark.parametrize(
    ("times", "rate"),
    [
        ([0, 1, 2, 3], None),  # steps
        ([0, 20, 40, 60], None),  # steps, or milliseconds: not known
        ([0.0, 0.5, 1.0, 1.5], 2.0),
        ([10.01, 10.02, 10.03, 10.04], 100.0),
        ([0.0, 0.5, 1.0, 2.5], 2.0),  # with a gap
        ([0.0, 0.5, 1.0, 2.3], None),
        (pd.date_range("2024-01-01", periods=4, freq="10ms"), 100.0),
        (pd.date_range("2024-01-01", periods=4, freq="10ms").astype(str), 100.0),
    ],
)
def test_the_sampling_rate_is_found(times: Any, rate: float | None) -> None:
    assert sp.Dataset.from_frame(long_frame(t=list(times) * 10), **OWN).sampling_rate == rate


def test_close_times_stay_apart() -> None:
    start = pd.Timestamp("2024-01-01")
    times = [start + pd.Timedelta(days=900 * (t > 2), nanoseconds=t) for t in range(4)]
    ds = sp.Dataset.from_frame(long_frame(t=times * 10), **OWN)
    np.testing.assert_allclose(series_by_id(ds)["p3"], X[3])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({**OWN, "label": "yy"}, "the frame: no column 'yy', given as label; there are: id, t, y, acc, gyro. Did you"),
        ({**OWN, "label": "id"}, "one column is given as two of series, time, label"),
        ({"series": "id", "time": "t"}, "no column 'label', which the long form needs"),
        ({**OWN, "subject": "time"}, "no column 'time', given as subject"),
    ],
)
def test_names_that_are_not_there(columns: dict[str, str], message: str) -> None:
    with pytest.raises(FileFormatError, match=message):
        sp.Dataset.from_frame(long_frame(), **columns)


def test_messages_use_the_names_of_the_user() -> None:
    frame = long_frame()
    frame.loc[5, "y"] = "odd"
    with pytest.raises(
        FileFormatError, match=r"the frame, row 6, column 'y': series 'p1' has 'odd', but 'well' in row 5"
    ):
        sp.Dataset.from_frame(frame, **OWN)
    with pytest.raises(FileFormatError, match="'y' is given as label, but there is a column 'label' too"):
        sp.Dataset.from_frame(long_frame(label=1), **OWN)


def test_names_of_columns_are_for_tables(tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_bytes(b"")
    with pytest.raises(ConfigError, match=r"label: names of columns are for \.csv and \.parquet files"):
        sp.load_dataset(tmp_path / "a.npz", label="y")


def test_ids_are_saved(tmp_path: Path) -> None:
    from sparcets.data.load import save_dataset

    ds = sp.Dataset.from_frame(long_frame(), **OWN)
    again = sp.load_dataset(save_dataset(ds, tmp_path / "a.npz"))
    assert again.ids_test.tolist() == ds.ids_test.tolist() and again.ids_train.tolist() == ds.ids_train.tolist()


@pytest.mark.parametrize("form", ["long", "wide", "csv", "parquet"])
def test_columns_of_side_inputs(form: str, tmp_path: Path) -> None:
    rows = [(i, t, "ab"[i % 2], 20.5 + i, i % 3, 1.0 * i + t) for i in range(10) for t in range(2)]
    frame = pd.DataFrame(rows, columns=["series", "time", "label", "age", "ward", "pulse"])
    if form == "wide":
        wide = frame.pivot(index=["series", "label", "age", "ward"], columns="time", values="pulse")
        frame = wide.add_prefix("pulse_").reset_index()
    if form == "parquet":
        pytest.importorskip("pyarrow")
    if form in ("csv", "parquet"):
        path = tmp_path / f"mine.{form}"
        frame.to_csv(path, index=False) if form == "csv" else frame.to_parquet(path)
        ds = sp.load_dataset(path, side=["age", "ward"])
    else:
        ds = sp.Dataset.from_frame(frame, side=["age", "ward"])
    assert ds.feature_names == ("pulse",) and ds.side_test is not None and ds.side_train is not None
    assert ds.side_test["age"].tolist() == (20.5 + ds.X_test[:, 0, 0]).tolist()
    assert ds.side_test["ward"].dtype == np.int64 and len(ds.side_train["ward"]) == 8
    if form == "long":
        assert sp.Dataset.from_frame(frame, side="ward").feature_names == ("age", "pulse")


def test_a_series_has_one_value_of_a_side_input() -> None:
    rows = [(i, t, "ab"[i % 2], 20 + i + (i == 3) * t, 1.0) for i in range(10) for t in range(2)]
    frame = pd.DataFrame(rows, columns=["series", "time", "label", "age", "pulse"])
    with pytest.raises(FileFormatError, match=r"column 'age': series '3' has '24', but '23' in row 7"):
        sp.Dataset.from_frame(frame, side=["age"])
    with pytest.raises(FileFormatError, match="no column 'ages', given as side ages"):
        sp.Dataset.from_frame(frame, side=["ages"])


def test_side_inputs_are_saved(tmp_path: Path) -> None:
    X, y = np.random.default_rng(0).normal(size=(10, 3, 1)), np.arange(10) % 2
    side = {"age": np.linspace(20, 90, 10), "dose": np.ones((10, 2), dtype=np.int64)}
    ds = sp.Dataset.from_arrays(X, y, side=side)
    again = sp.load_dataset(save_dataset(ds, tmp_path / "mine.npz"))
    for name in side:
        assert ds.side_test is not None and again.side_test is not None
        assert np.array_equal(again.side_test[name], ds.side_test[name])
    np.savez(tmp_path / "whole.npz", X=X, y=y, side_age=side["age"])
    assert set(sp.load_dataset(tmp_path / "whole.npz").side_train or {}) == {"age"}
    np.savez(tmp_path / "half.npz", X_train=X, y_train=y, X_test=X, y_test=y, side_age_train=side["age"])
    with pytest.raises(FileFormatError, match="holds no array 'side_age_test'"):
        sp.load_dataset(tmp_path / "half.npz")
