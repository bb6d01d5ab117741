"""Tables in their three forms: by hand, equivalence, and the messages for malformed ones."""

import dataclasses
import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sparcets.core.errors import ConfigError, FileFormatError, LabelError
from sparcets.data.dataset import Dataset
from sparcets.data.load import load_file


def assert_same(one, two, *, but=("oracle",)):
    for field in dataclasses.fields(Dataset):
        if field.name not in but:
            a, b = getattr(one, field.name), getattr(two, field.name)
            assert type(a) is type(b), field.name
            if isinstance(a, np.ndarray):
                assert a.dtype.kind == b.dtype.kind, field.name
                np.testing.assert_array_equal(a, b, err_msg=field.name)
            else:
                assert a == b, field.name


@pytest.fixture(params=[True, False], ids=["str", "object"])
def string_dtype(request):
    """Text as pandas 3 holds it (str) and as pandas 2 does (object)."""
    with pd.option_context("future.infer_string", request.param):
        yield


TIDY = "series,time,feature,value,label\n"
LONG = """\
series,time,label,acc,gyro
b,0,walk,1,10
b,1,walk,2,20
a,1,sit,4,40
a,0,sit,3,30
d,0,sit,7,70
c,0,walk,5,50
c,1,walk,6,60
d,1,sit,8,80
"""


def frames(X, labels, *, names, split):
    """Return the same series in the three forms."""
    about = [{"series": f"s{s}", "label": labels[s], "split": split[s]} for s in range(len(X))]
    rows = [(s, t) for s in range(len(X)) for t in range(X.shape[1])]
    long = [{**about[s], "time": t, **dict(zip(names, X[s, t].tolist(), strict=True))} for s, t in rows]
    about_steps = [(s, t, f, name) for s, t in rows for f, name in enumerate(names)]
    tidy = [{**about[s], "time": t, "feature": name, "value": X[s, t, f].item()} for s, t, f, name in about_steps]
    steps = [(f"{name}_{t}", f, t) for f, name in enumerate(names) for t in range(X.shape[1])]
    wide = [{**one, **{column: x[t, f].item() for column, f, t in steps}} for one, x in zip(about, X, strict=True)]
    return {"long": pd.DataFrame(long), "tidy": pd.DataFrame(tidy), "wide": pd.DataFrame(wide)}


def read(frame, path, **options):
    frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path, index=False)
    return load_file(path, **options)


def test_long_form_by_hand(write, string_dtype):
    ds = load_file(write(LONG), test_size=0.5, seed=3)
    assert (ds.name, ds.split, ds.feature_names, ds.class_names) == ("mine", "random", ("acc", "gyro"), ("sit", "walk"))
    assert ds.sampling_rate is None and ds.lengths_train is None and ds.X_train.dtype == np.float32
    X, y = np.concatenate([ds.X_train, ds.X_test]), np.concatenate([ds.y_train, ds.y_test])
    found = {tuple(x.ravel().tolist()): int(label) for x, label in zip(X, y, strict=True)}
    # The rows of "a" and "d" are not in order of time in the file.
    assert found == {(1, 10, 2, 20): 1, (3, 30, 4, 40): 0, (5, 50, 6, 60): 1, (7, 70, 8, 80): 0}
    assert sorted(np.bincount(ds.y_test).tolist()) == [1, 1]


@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_the_three_forms_are_equivalent(data, tmp_path_factory):
    n = data.draw(st.integers(4, 7), label="series")
    shape = (n, data.draw(st.integers(1, 5), label="steps"), data.draw(st.integers(1, 3), label="features"))
    finite = st.floats(width=32, allow_nan=False, allow_infinity=False)
    X = data.draw(hnp.arrays(np.float32, shape, elements=finite))
    # Names that resemble other columns, and labels that resemble numbers or missing values.
    plausible = st.sampled_from(["x", "x_1", "x_1_0", "a.b", "temp (°C)", "value", "7", "NA", 'quo"te', "com,ma"])
    names = data.draw(st.lists(plausible, min_size=shape[2], max_size=shape[2], unique=True))
    words = data.draw(st.sampled_from([("NA", "nan"), ("1", "2"), ("-3", "10"), ("01", "1"), ("True", "é,b")]))
    labels = [words[i % 2] for i in range(n)]
    part = ["train", "train", *data.draw(st.lists(st.sampled_from(["train", "test"]), min_size=n - 3, max_size=n - 3))]
    forms = frames(X, labels, names=names, split=[*part, "test"])
    shuffle = data.draw(st.randoms(use_true_random=False))
    folder = tmp_path_factory.mktemp("forms")
    loaded = []
    for form, frame in forms.items():
        order = list(range(len(frame)))
        # The first rows of the series determine their order; later rows may come in any order.
        first = frame.drop_duplicates("series").index.tolist()
        rest = [i for i in order if i not in first]
        shuffle.shuffle(rest)
        if form == "tidy":  # features are in order of first appearance
            rest, first = [], order
        loaded += [read(frame.loc[first + rest], folder / f"mine.{kind}") for kind in ("csv", "parquet")]
    for other in loaded[1:]:
        assert_same(loaded[0], other)
    assert set(loaded[0].class_names) == set(words)
    in_train = np.array([*part, "test"]) == "train"
    np.testing.assert_array_equal(loaded[0].X_train, X[in_train])
    np.testing.assert_array_equal(loaded[0].X_test, X[~in_train])


def test_wide_columns_in_any_order_and_from_one(write):
    text = "b.2,label,a.10,a.2,a.1,b.1,b.10,split\n" + "".join(
        f"{i},{i % 2},{i + 10},{i + 2},{i + 1},{i + 0.5},{i - 1},{'test' if i > 3 else 'train'}\n" for i in range(8)
    )
    with pytest.raises(FileFormatError):
        load_file(write(text))
    ds = load_file(write(text.replace(".10", ".003")))
    assert ds.feature_names == ("b", "a")
    np.testing.assert_array_equal(ds.X_train[0], [[0.5, 1], [0, 2], [-1, 10]])


def test_time_may_be_numbers_or_dates(write):
    def times(*moments):
        rows = [f"{s},{m},{s % 2},{v}" for s in range(4) for v, m in enumerate(moments)]
        return load_file(write("series,time,label,x\n" + "\n".join(rows))).X_train[0, :, 0].tolist()

    assert times("10", "9", "1e300", "-2.5") == [3, 1, 0, 2]
    assert times("2024-01-02", "2024-01-01T12:00:00", "2024-01-01") == [2, 1, 0]
    assert times("2024-01-01T02:00Z", "2024-01-01T02:00+01:00", "2024-01-01T00:30-01:00") == [1, 2, 0]
    for message, moments in (
        (r"'2024-01-02' in line 3 has none. Give it for all times or for", ("2024-01-01T00:00+01:00", "2024-01-02")),
        (r"mine.csv, line 3, column 'time': 'noon' is not a time. Times are all", ("0", "noon")),
        (r"line 3, column 'time': '-inf' is not a time", ("0", "-inf", "1")),
        ("'12h'", ("2024-01-02", "12h")),
        (r"line 4, column 'time': the cell is empty", ("1", "2", "")),
    ):
        with pytest.raises(FileFormatError, match=message):
            times(*moments)


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["0", "1", "2"], ("0", "1", "2")),
        (["1", "10", "2"], ("1", "2", "10")),
        (["1.0", "10.0", "2.0"], ("1", "2", "10")),
        (["b", "10", "9"], ("10", "9", "b")),
        (["01", "02", "1"], ("01", "02", "1")),
        (["1", "2", "9" * 5000], ("1", "2", "9" * 5000)),
        (["None", "NA", "sick "], ("NA", "None", "sick")),
    ],
)
def test_labels_become_names(write, labels, names):
    ds = load_file(write("label,x_0\n" + "".join(f"{labels[i % 3]},{i % 3}\n" for i in range(9))))
    assert ds.class_names == names
    for x, y in zip(ds.X_train[:, 0, 0], ds.y_train, strict=True):
        assert names[y] in {labels[int(x)].strip(), labels[int(x)].removesuffix(".0")}


def test_parquet_of_other_types_equals_the_csv(tmp_path):
    text = pd.read_csv(io.StringIO(LONG))
    frame = text.assign(
        label=text["label"].map({"walk": 1.0, "sit": 2.0}).astype("Int64"),
        series=text["series"].astype("category"),
        acc=text["acc"].astype("Float32"),
        time=text["time"].astype("Int8"),
        gyro=text["gyro"] > 35,
        subject=text["series"].map({"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}),
    )
    path = tmp_path / "mine.parquet"
    frame.set_index(["series", "time"]).to_parquet(path)
    plain = text.assign(label=frame["label"], gyro=frame["gyro"].astype(int), subject=frame["subject"].astype(int))
    plain.to_csv(tmp_path / "mine.csv", index=False)
    ds = load_file(path, test_size=0.25)
    assert ds.class_names == ("1", "2") and set(ds.subjects_train.tolist()) < {"1", "2", "3", "4"}
    assert_same(ds, load_file(tmp_path / "mine.csv", test_size=0.25))


def test_errors_in_parquet_name_the_row(tmp_path, string_dtype):
    path, frame = tmp_path / "mine.parquet", pd.read_csv(io.StringIO(LONG))
    for message, changed in (
        (r"row 1, column 'acc': '1' is not a number within ±3.4e.38 but", frame.assign(acc=frame["acc"].astype(str))),
        (r"row 1, column 'acc': '2024-01-01 00:00:00' is not a", frame.assign(acc=pd.Timestamp("2024-01-01"))),
        (
            "row 2, column 'time': the cell is empty",
            frame.assign(time=pd.to_datetime(frame["time"], unit="s").where(frame["acc"] != 2)),
        ),
        ("holds column names but no rows", frame.iloc[:0]),
    ):
        with pytest.raises(FileFormatError, match=message):
            read(changed, path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(FileFormatError, match=r"mine.parquet is not a valid .parquet file"):
        load_file(path)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\n\r\r "])
def test_excel_and_hand_written_csv(tmp_path, write, end):
    def slowly(text):
        return text.replace("walk", '"walk, slowly"')

    path = tmp_path / "spaced" / "mine.csv"
    path.parent.mkdir()
    spaced = LONG.strip().replace(",", ", ").replace("\n", end)
    path.write_bytes(("\ufeff" + slowly(spaced)).encode())
    assert_same(load_file(path, test_size=0.5), load_file(write(slowly(LONG)), test_size=0.5))


@pytest.mark.parametrize("name", ["mine.csv", "mine.parquet"])
def test_an_empty_cell_is_missing(tmp_path, name, write):
    frame = pd.read_csv(io.StringIO(LONG))
    whole = read(frame, tmp_path / name)
    gap = read(frame.assign(acc=frame["acc"].where(frame["acc"] != 4)), tmp_path / name)
    assert gap.n_missing == 1 and repr(gap).endswith(", 1 values missing)") and gap.X_train.dtype == np.float32
    for X, known in ((gap.X_train, whole.X_train), (gap.X_test, whole.X_test)):
        assert np.array_equal(np.isnan(X), known == 4) and np.array_equal(X[known != 4], known[known != 4])
    assert "missing: 1 values (6.2 %)" in gap._repr_html_() and "missing" not in whole._repr_html_()
    rows = [f"{s},{t},x,{'' if (s, t) == (1, 0) else s},{'uv'[s % 2]}" for s in range(4) for t in range(2)]
    for text in ("label,x_0,x_1\nu,1,2\nv,,1\nu,3,4\nv,5,6\n", TIDY + "\n".join(rows) + "\n"):
        assert load_file(write(text), test_size=0.5).n_missing == 1


WIDE_ENDS = "label,x_0,x_1,x_2,x_3,y_0,y_1,y_2,y_3\nu,1,2,,,5,,7,\nv,3,,,,4,,,\nu,,6,,,,,,\nv,7,8,,,9,1,,\n"


@pytest.mark.parametrize("name", ["mine.csv", "mine.parquet"])
def test_a_wide_row_that_ends_in_empty_cells_is_a_shorter_series(tmp_path, write, name):
    ds = read(pd.read_csv(io.StringIO(WIDE_ENDS)).assign(split=["train", "train", "test", "test"]), tmp_path / name)
    gap = np.nan
    np.testing.assert_array_equal(ds.X_train, [[[1, 5], [2, gap], [gap, 7]], [[3, 4], [0, 0], [0, 0]]])
    np.testing.assert_array_equal(ds.X_test, [[[gap, gap], [6, gap], [0, 0]], [[7, 9], [8, 1], [0, 0]]])
    assert ds.lengths_train.tolist() == [3, 1] and ds.lengths_test.tolist() == [2, 2]
    alike = load_file(write("label,x_0,x_1,x_2\nu,1,2,\nv,3,4,\nu,5,6,\nv,7,8,\n"), test_size=0.5)
    assert alike.lengths_train is None and alike.X_train.shape == (2, 2, 1) and alike.n_missing == 0


def gap_table(steps, form="long"):
    """Return series whose values are 0, 1, … in the order of their rows."""
    rows = [(name, t, name[0], float(n)) for name, own in steps.items() for n, t in enumerate(own)]
    frame = pd.DataFrame(rows, columns=["series", "time", "label", "x"]).assign(y=lambda f: f["x"] * 2)
    return frame if form == "long" else frame.melt(["series", "time", "label"], var_name="feature")


def series_of(ds):
    """Return the first feature of every series, without padding and with None where it is missing."""
    found = {}
    for part in ("train", "test"):
        X, ids, lengths = (getattr(ds, f"{name}_{part}") for name in ("X", "ids", "lengths"))
        ends = [X.shape[1]] * len(X) if lengths is None else lengths
        for one, name, n in zip(X, ids, ends, strict=True):
            assert np.array_equal(one[:, 1], 2 * one[:, 0], equal_nan=True)
            found[str(name)] = [None if np.isnan(v) else v for v in one[:n, 0].tolist()]
    return found


HOURS = pd.date_range("2024-03-30 22:00", periods=12, freq="h")
TIMES = {
    "steps": (list(range(12)), None),
    "every third step": ([3 * n for n in range(12)], None),
    "nanoseconds": ([1_700_000_000_000_000_000 + 20_000_000 * n for n in range(12)], None),
    "seconds": ([5 + 0.02 * n for n in range(12)], 50.0),
    "seconds with jitter": ([0.02 * n + 1e-4 * (n % 2) for n in range(12)], 50.0),
    "dates": (list(HOURS), 1 / 3600),
    "dates as text": (list(HOURS.strftime("%Y-%m-%d %H:%M")), 1 / 3600),
    "dates with a zone": (list(HOURS.tz_localize("UTC").tz_convert("Europe/Berlin")), 1 / 3600),  # summer time begins
    "durations": (list(HOURS - HOURS[0]), 1 / 3600),
}


@pytest.mark.parametrize("form", ["long", "tidy"])
@pytest.mark.parametrize("kind", TIMES)
@pytest.mark.parametrize("name", ["mine.csv", "mine.parquet", "frame"])
def test_a_missing_row_is_a_gap(tmp_path, name, kind, form):
    times, rate = TIMES[kind]
    if kind == "durations" and name != "frame":
        pytest.skip("files hold no durations")
    steps = {"u1": times, "v1": [*times[:4], *times[6:]], "u2": times[3:], "v2": times[:5]}
    frame = gap_table(steps, form).sample(frac=1, random_state=0).sort_values("series", kind="stable")
    ds = Dataset.from_frame(frame, test_size=0.5) if name == "frame" else read(frame, tmp_path / name, test_size=0.5)
    split = [0, 1, 2, 3, None, None, 4, 5, 6, 7, 8, 9]
    assert series_of(ds) == {"u1": [*range(12)], "v1": split, "u2": [*range(9)], "v2": [*range(5)]}
    assert ds.sampling_rate == (rate if rate is None else pytest.approx(rate, rel=1e-12 if rate < 1 else 0.02))


@pytest.mark.parametrize(
    "times",
    [[0, 3, 4, 11, 17, 30], [0.0, 0.31, 0.5, 1.1, 2.0, 3.2], ["2024-01-31", "2024-02-29", "2024-03-31", "2024-05-31"]],
)
def test_irregular_times_are_told(times, caplog):
    steps = dict.fromkeys(("u1", "u2", "v1", "v2"), times)
    ds = Dataset.from_frame(gap_table(steps), test_size=0.5)
    assert ds.n_missing == 0 and ds.sampling_rate is None and ds.n_steps == len(times)
    assert "the frame: the times are irregular, so that missing rows cannot be told" in caplog.text
    where = f"series 'u1' between '{times[-2]}' in row {len(times) - 1} and '{times[-1]}'"
    assert f"The largest gap is in {where}" in caplog.text


def test_a_time_far_from_the_others_is_an_error():
    steps = {"u1": list(range(6)), "v1": [0, 1, 2, 3, 4, 5000], "u2": [0, 1, 3], "v2": [4]}
    message = r"4995 steps are missing in series 'v1' between '4' in row 11 and '5000' in"
    with pytest.raises(FileFormatError, match=message):
        Dataset.from_frame(gap_table(steps), test_size=0.5)
    one = {name: [3] for name in ("u1", "u2", "v1", "v2")}
    assert Dataset.from_frame(gap_table(one), test_size=0.5).n_steps == 1


MALFORMED = [
    ("label,x_0,x_1\nu,1,2\nv,,\n", "line 3 holds no value. Drop it"),
    ("", "mine.csv is empty. Known forms: long .series, time, label"),
    (LONG.replace("a,1,sit,4,40", "a,1,sit,4,40,9"), "line 4: 6 values, more than there are columns"),
    (LONG.replace("a,1,sit,4,40", "a,1,sit,4"), "line 4: 4 values, none for column 'gyro'"),
    (LONG.replace("4,40", "4,4o"), "line 4, column 'gyro': '4o' is not a number within"),
    (LONG.replace("4,40", "4e39,40"), "line 4, column 'acc': '4e.39' is not a number within ±3.4e.38"),
    (LONG.replace("sit,4", ",4"), "line 4, column 'label': the cell is empty"),
    (LONG.replace("a,0,sit", "a,0,run"), "line 5, column 'label': series 'a' has 'run', but 'sit' in line 4"),
    (LONG.replace("c,1", "c,0"), "line 8, column 'time': series 'c', time '0' is already in line 7"),
    (LONG.replace("series", "id"), "no column 'series', which the long form needs; there are: id, time, label"),
    (LONG.replace("series,time,label", "trial,seconds,dx"), "no columns 'series', 'time', 'label', .*-o series=id"),
    (LONG.replace("label", "lable"), "no column 'label', which the long form.* Did you mean 'lable'.*Known forms"),
    (LONG.replace("series", ",series"), "column 1 has no name.*index=False"),
    (LONG.replace("gyro", '"gy\nro"'), "column 5 is called 'gy.nro', which has a line break.*Rename it"),
    (LONG.replace("sit", '"si\nt"'), "line 5, column 'label': 'si.nt' has a line break or another control character"),
    (LONG.replace("gyro", "acc"), "the column 'acc' appears 2 times"),
    ("series,time,label\na,0,1\n", "no column holds a feature; there are: series, time, label"),
    (TIDY + "a,0,x,1,1\na,0,x,2,1\n", "line 3, column 'feature': series 'a', time '0', feature 'x' is already in l"),
    (TIDY + "a,0,x,1,1\na,0,y,2,1\na,1,x,3,1\n", "line 4, column 'feature': .*'a' at time '1' has no value of 'y'"),
    (TIDY.replace("label", "label,x") + "a,0,x,1,1,1\n", "tidy form has no column 'x'"),
    ("label,x_0,x_1,y_0\nu,1,2,3\n", "no column 'y_1'. Every feature needs the steps 0..1"),
    ("label,x_0,x1\nu,1,2\n", "the column 'x1' is not of the kind <feature>_<step>. Known forms"),
    ("label,x_1,x_01\nu,1,2\n", "the columns 'x_1' and 'x_01' hold the same step"),
    ("series,label,x_0\na,u,1\na,v,1\n", "line 3, column 'series': series 'a' is already in line 2"),
    ("label,x_0,split\nu,1,train\nv,1,val\n", "line 3, column 'split': 'val' is neither 'train' nor 'test'"),
    (LONG.replace("\nd,0", '\n"d,0'), "line 9: 1 values, none for column 'time'"),
    (LONG.replace("d,1,sit,8,80", 'd,1,sit,8,"80'), "EOF inside string"),
    ("label,x_0\n" + "a,1\nb,2\n" * 5 + "a,1\x002\n", r"line 12 holds a NUL byte.*Save it again"),
    ('series,time,label,a\nx,0,b,"1,5"\n', "line 2, column 'a': '1,5' is not a number"),
]


@pytest.mark.parametrize(("text", "message"), MALFORMED)
def test_malformed_tables(write, text, message, string_dtype):
    with pytest.raises((FileFormatError, LabelError), match=message) as caught:
        load_file(write(text))
    assert "mine.csv" in str(caught.value) and "\n" not in str(caught.value)


def test_other_encodings_units_and_the_order_of_classes(write):
    path = write(LONG)
    ds = load_file(path, units=["g", "°/s"], class_names=["walk", "sit"])
    plain = load_file(path)
    assert ds.units == ("g", "°/s") and ds.class_names == ("walk", "sit") and plain.class_names == ("sit", "walk")
    assert [ds.class_names[k] for k in ds.y_train] == [plain.class_names[k] for k in plain.y_train]
    with pytest.raises(ConfigError, match=r"it has the classes sit, walk, got \['walk'\]"):
        load_file(path, class_names=["walk"])
    path.write_bytes("label,größe_0\nu,1\n".encode("latin-1"))
    with pytest.raises(FileFormatError, match=r"mine.csv is not comma-separated UTF-8 text"):
        load_file(path)
