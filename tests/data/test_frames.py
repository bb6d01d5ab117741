"""Frames of pandas, columns of other names, other separators, and sampling rates found by themselves."""

import numpy as np
import pandas as pd
import pytest

import sparcets as sp
from sparcets.core.errors import ConfigError, FileFormatError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(10, 4, 2)).round(3)
LABELS = ["sick", "well"] * 5
OWN = {"series": "id", "time": "t", "label": "y"}


def long_frame(*, seconds=0.02, **columns):
    """Return the series in the long form, with the columns id, t, y, acc and gyro."""
    rows = [(f"p{s}", t * seconds, LABELS[s], *X[s, t]) for s in range(len(X)) for t in range(X.shape[1])]
    return pd.DataFrame(rows, columns=["id", "t", "y", "acc", "gyro"]).assign(**columns)


def series_by_id(ds):
    ids, series = (np.concatenate([a, b]) for a, b in ((ds.ids_train, ds.ids_test), (ds.X_train, ds.X_test)))
    return dict(zip(ids.tolist(), series, strict=True))


WIDE = long_frame().assign(t=lambda f: (f["t"] / 0.02).round().astype(int))
WIDE = WIDE.pivot(index=["id", "y"], columns="t", values=["acc", "gyro"])  # two levels of columns
TIDY = long_frame().melt(id_vars=["id", "t", "y"], var_name="channel", value_name="v")


@pytest.mark.parametrize(
    ("frame", "columns", "rate"),
    [
        (long_frame().sample(frac=1, random_state=0), OWN, 50.0),
        (long_frame().set_index(["id", "t"]), OWN, 50.0),
        (WIDE, {"series": "id", "label": "y"}, None),
        (TIDY, {"feature": "channel", "value": "v", **OWN}, 50.0),
        *(((separator, decimal), OWN, 50.0) for separator in ";\t" for decimal in ".,"),
    ],
    ids=["long", "index", "wide", "tidy", "; .", "; ,", "tab .", "tab ,"],
)
def test_the_same_series_by_every_road(frame, columns, rate, tmp_path):
    if isinstance(frame, tuple):
        long_frame().to_csv(tmp_path / "mine.csv", index=False, sep=frame[0], decimal=frame[1])
        ds = sp.load_dataset(tmp_path / "mine.csv", **columns)
    else:
        before = frame.copy()
        ds = sp.Dataset.from_frame(frame, **columns)
        pd.testing.assert_frame_equal(frame, before)
    assert ds.feature_names == ("acc", "gyro") and ds.class_names == ("sick", "well") and ds.sampling_rate == rate
    found = series_by_id(ds)
    assert sorted(found) == [f"p{s}" for s in range(10)]
    for s in range(10):
        np.testing.assert_allclose(found[f"p{s}"], X[s], rtol=1e-6)


def test_subjects_and_further_metadata():
    frame = long_frame(who=np.repeat([f"w{s // 2}" for s in range(10)], 4))
    ds = sp.Dataset.from_frame(frame, subject="who", units="m", name="mine", sampling_rate=7.0, **OWN)
    assert (ds.split, ds.units, ds.name, ds.sampling_rate) == ("subject", ("m", "m"), "mine", 7.0)
    assert not set(ds.subjects_train) & set(ds.subjects_test)


@pytest.mark.parametrize(
    ("times", "rate"),
    [
        ([0, 1, 2, 3], None),  # steps
        ([0.0, 0.5, 1.0, 1.5], 2.0),
        ([0.0, 0.5, 1.0, 2.5], 2.0),  # with a gap
        ([0.0, 0.5, 1.0, 2.3], None),
        (pd.date_range("2024-01-01", periods=4, freq="10ms"), 100.0),
        (pd.date_range("2024-01-01", periods=4, freq="10ms").astype(str), 100.0),
    ],
)
def test_the_sampling_rate_is_found(times, rate):
    assert sp.Dataset.from_frame(long_frame(t=list(times) * 10), **OWN).sampling_rate == rate


def test_close_times_stay_apart():
    start = pd.Timestamp("2024-01-01")
    times = [start + pd.Timedelta(days=900 * (t > 2), nanoseconds=t) for t in range(4)]
    ds = sp.Dataset.from_frame(long_frame(t=times * 10), **OWN)
    np.testing.assert_allclose(series_by_id(ds)["p3"], X[3])


@pytest.mark.parametrize(
    ("frame", "columns", "message"),
    [
        (long_frame(), {**OWN, "label": "yy"}, "the frame: no column 'yy', given as label; there are: id, t, y, acc,"),
        (long_frame(), {**OWN, "label": "id"}, "one column is given as two of series, time, label"),
        (long_frame(), {"series": "id", "time": "t"}, "no column 'label', which the long form needs"),
        (long_frame(), {**OWN, "subject": "time"}, "no column 'time', given as subject"),
        (long_frame(label=1), OWN, "'y' is given as label, but there is a column 'label' too"),
        (
            long_frame(y=["odd" if i == 5 else LABELS[i // 4] for i in range(40)]),
            OWN,
            r"row 6, column 'y': series 'p1' has 'odd', but 'well' in row 5",
        ),
        (
            long_frame(age=[20 + i // 4 + (i == 13) for i in range(40)]),
            {**OWN, "side": ["age"]},
            r"column 'age': series 'p3' has '24', but '23' in row 13",
        ),
        (long_frame(), {**OWN, "side": ["ages"]}, "no column 'ages', given as side ages"),
    ],
)
def test_messages_use_the_names_of_the_user(frame, columns, message, tmp_path):
    with pytest.raises(FileFormatError, match=message):
        sp.Dataset.from_frame(frame, **columns)
    (tmp_path / "a.npz").write_bytes(b"")
    with pytest.raises(ConfigError, match=r"label: names of columns are for \.csv and \.parquet files"):
        sp.load_dataset(tmp_path / "a.npz", label="y")


@pytest.mark.parametrize("form", ["long", "wide", "csv", "parquet"])
def test_columns_of_side_inputs(form, tmp_path):
    rows = [(i, t, "ab"[i % 2], 20.5 + i, i % 3, 1.0 * i + t) for i in range(10) for t in range(2)]
    frame = pd.DataFrame(rows, columns=["series", "time", "label", "age", "ward", "pulse"])
    if form == "wide":
        wide = frame.pivot(index=["series", "label", "age", "ward"], columns="time", values="pulse")
        frame = wide.add_prefix("pulse_").reset_index()
    path = tmp_path / f"mine.{form}"
    if form in ("csv", "parquet"):
        frame.to_csv(path, index=False) if form == "csv" else frame.to_parquet(path)
        ds = sp.load_dataset(path, side=["age", "ward"])
    else:
        ds = sp.Dataset.from_frame(frame, side=["age", "ward"])
    assert ds.feature_names == ("pulse",)
    assert ds.side_test["age"].tolist() == (20.5 + ds.X_test[:, 0, 0]).tolist()
    assert ds.side_test["ward"].dtype == np.int64 and len(ds.side_train["ward"]) == 8
    if form == "long":
        assert sp.Dataset.from_frame(frame, side="ward").feature_names == ("age", "pulse")
