"""Parquet and Arrow files in, Parquet files out: the answers of explain, each once, whatever happens."""

from datetime import datetime, timedelta, timezone

import numpy as np
import pytest

import sparcets as sp
from sparcets.core.errors import (
    CapabilityError,
    ConfigError,
    DataError,
    DataNotFoundError,
    FeatureMismatchError,
    FileFormatError,
    StorageError,
)
from sparcets.data.queries import plan_shards, read_queries
from sparcets.methods import archive as driver

from .queries import NAMES, STEPS, content, fit, lists, long, nested, parts, read, series, write

pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("parquet")


@pytest.fixture(scope="module")
def fitted(place):
    return fit(place / "model")


def explain(explainer, table, folder, **asked):
    """Write a table of series and explain it; return what became of it, and the rows of the answers."""
    write(table, folder / "q.parquet")
    result = sp.explain_parquet(explainer, folder / "q.parquet", folder / "out", **{"target": 1, **asked})
    return result, read(folder / "out")


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    monkeypatch.setattr(driver, "queries_per_shard", lambda *_: 16)


@pytest.fixture(scope="module")
def source(place, fitted):
    """Return a folder with the first 60 series in all forms, in partitions."""
    X, folder = fitted[1], place / "queries"
    write(lists(X[:30], range(30)), folder / "ward=1" / "a.parquet", rows=7)
    write(long(X[30:40], range(30, 40)), folder / "ward=2" / "b.parquet", rows=35)
    write(nested(X[40:50], range(40, 50)), folder / "ward=2" / "c.parquet")
    write(lists(X[50:60], range(50, 60)), folder / "d.arrow", rows=3)
    (folder / "_temporary").mkdir()
    (folder / "_temporary" / "e.parquet").write_text("not read")
    return folder


@pytest.fixture(scope="module")
def answers(place, source, fitted):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "queries_per_shard", lambda *_: 16)
        result = sp.explain_parquet(place / "model", source, place / "answers", target=1)
    assert (result.queries, result.answers, result.errors, result.shards, result.computed) == (60, 60, 0, 5, 5)
    return place / "answers"


def test_answers_are_those_of_explain(answers, fitted):
    explainer, X = fitted
    rows = {row["id"]: row for row in read(answers)}
    e = explainer.explain(X[:60], 1, progress=False)
    assert sorted(rows) == list(range(60))
    for i in range(60):
        row = rows[i]
        assert np.array_equal(series(row).astype(X.dtype), e.counterfactual[i])
        assert np.array_equal(series(row, "changed"), e.changed[i])
        said = {"status": e.status[i], "verdict": e.verdict[i], "target": e.target_names[i], "valid": bool(e.valid[i])}
        assert {name: row[name] for name in said} == said
        assert row["predicted"] == e.class_names[e.predicted[i]] and row["error"] is None and row["answer"] == 0
        assert row["share_changed"] == pytest.approx(e.share_changed[i])
        assert row["probability"] == pytest.approx(e.probability[i], abs=1e-6)

    files = ["d.arrow-0000000000", "ward=1/a-0000000000", "ward=1/a-0000000016", "ward=2/b-0000000000"]
    assert parts(answers) == [f"{name}.parquet" for name in (*files, "ward=2/c-0000000000")]
    assert [row["id"] for row in read(answers)] == [*range(50, 60), *range(50)], "order and partitions are kept"


def test_several_processes_give_the_same_bytes(place, source, answers):
    result = sp.explain_parquet(place / "model", source, place / "two", target=1, workers=2)
    assert result.computed == 5 and content(place / "two") == content(answers)


def test_a_second_call_computes_what_is_missing_or_damaged(place, source, answers, monkeypatch):
    before = content(answers)
    names = parts(answers)
    (answers / names[0]).unlink()
    (answers / names[1]).write_bytes(before[names[1]][:-100])
    (answers / names[2]).write_bytes(before[names[3]])  # whole, but of other rows
    result = sp.explain_parquet(place / "model", source, answers, target=1)
    assert (result.computed, result.queries) == (3, 60) and content(answers) == before
    monkeypatch.setattr(driver, "write_part", lambda *_: pytest.fail("computed again"))
    assert sp.explain_parquet(place / "model", source, answers, target=1).computed == 0


def test_a_changed_file_is_explained_again(place, tmp_path, fitted):
    X = fitted[1]
    write(lists(X[:5], range(5)), tmp_path / "q" / "a.parquet")
    write(lists(X[5:9], range(5, 9)), tmp_path / "q" / "b.parquet")
    sp.explain_parquet(place / "model", tmp_path / "q", tmp_path / "out", target=1)
    write(lists(X[20:25], range(20, 25)), tmp_path / "q" / "a.parquet")
    assert sp.explain_parquet(place / "model", tmp_path / "q", tmp_path / "out", target=1).computed == 1
    assert [row["id"] for row in read(tmp_path / "out")] == [*range(20, 25), *range(5, 9)]


def test_a_series_that_cannot_be_explained_is_a_row_with_its_error(tmp_path, fitted):
    import pyarrow as pa

    explainer, X = fitted
    bad = X[:20].copy()
    bad[7, 3, 1] = np.nan
    columns = {name: [list(one) for one in bad[:, :, i]] for i, name in enumerate(NAMES)}
    columns["f0"][2] = None
    columns["f2"][4] = columns["f2"][4][:-1]
    for name in NAMES:
        columns[name][11] = [*columns[name][11], 1.0]
    result, rows = explain(explainer, pa.table({"id": [f"p{i}" for i in range(20)], **columns}), tmp_path)
    assert (result.queries, result.answers, result.errors) == (20, 20, 4)
    assert [row["id"] for row in rows] == [f"p{i}" for i in range(20)]
    errors = {i: row["error"] for i, row in enumerate(rows) if row["error"] is not None}
    assert sorted(errors) == [2, 4, 7, 11] and errors[2] == "the feature 'f0' has no values."
    assert errors[4] == f"the feature 'f2' has {STEPS - 1} steps, but 'f0' has {STEPS}."
    assert "missing values" in errors[7] or "NaN" in errors[7]
    assert f"{STEPS + 1} steps" in errors[11]
    assert all(rows[i]["status"] == "error" and rows[i]["counterfactual"] is None for i in errors)
    e = explainer.explain(X[:20].astype(np.float64), 1, progress=False)
    good = [i for i in range(20) if i not in errors]
    assert all(np.array_equal(series(rows[i]), e.counterfactual[i]) for i in good)


def test_a_shard_of_errors_alone_has_the_columns_of_the_others(tmp_path, fitted):
    import pyarrow.parquet as pq

    X = fitted[1][:20].copy()
    X[16:] = np.nan
    result, _ = explain(fitted[0], lists(X, range(20)), tmp_path)
    assert (result.shards, result.errors) == (2, 4)
    first, last = (pq.read_schema(tmp_path / "out" / name) for name in parts(tmp_path / "out"))
    assert first.equals(last, check_metadata=False)


def test_rows_of_a_series_must_stand_together(tmp_path, fitted):
    X = fitted[1]
    table = long(X[:3], ["a", "b", "c"]).to_pylist()
    mixed = [*table[:STEPS], *table[STEPS : 2 * STEPS][::-1], *table[2 * STEPS :]]  # b is there in reverse
    doubled = [*mixed, {**mixed[-1], "id": "d"}, {**mixed[-1], "id": "d"}]
    import pyarrow as pa

    with pytest.raises(FileFormatError, match=rf"q.parquet, row {3 * STEPS + 3}: the id 'a' is in row 1 already, with"):
        explain(fitted[0], pa.Table.from_pylist([*doubled, *mixed[:3]]), tmp_path)
    result, rows = explain(fitted[0], pa.Table.from_pylist(doubled), tmp_path)
    assert [row["id"] for row in rows] == ["a", "b", "c", "d"] and result.errors == 1
    e = fitted[0].explain(X[:3], 1, progress=False)
    assert all(np.array_equal(series(rows[i]), e.counterfactual[i]) for i in range(3))
    assert "same time" in rows[3]["error"]


@pytest.mark.parametrize("form", [lists, long, nested])
def test_every_series_has_an_id_of_its_own(form, tmp_path, fitted):
    X, step = fitted[1], STEPS if form is long else 1

    def explain_ids(path, ids):
        column = [[name for name in ids for _ in range(step)]]
        write(form(X[:4], ["0", "1", "2", "3"]).set_column(0, "id", column), path, rows=2)
        sp.explain_parquet(fitted[0], path, tmp_path / "out", target=1)

    for path in (tmp_path / "q.parquet", tmp_path / "q.arrow"):
        with pytest.raises(FileFormatError, match=rf"q.*, row {2 * step + 1}: the column 'id' is empty. Every series"):
            explain_ids(path, ["a", "b", None, "c"])
        with pytest.raises(FileFormatError, match=rf"q.*, row {3 * step + 1}: the id 'a' is in row 1 already"):
            explain_ids(path, ["a", "b", "c", "a"])


@pytest.mark.parametrize("kind", ["int", "float", "date", "text", "zones", "numbers as text"])
def test_a_missing_row_is_a_gap(kind, tmp_path):
    import pyarrow as pa

    def times(steps):
        dates = [datetime(2024, 1, 1, tzinfo=timezone.utc) + timedelta(hours=n) for n in steps]
        there = {"int": steps, "float": [0.02 * n for n in steps], "date": dates}
        there |= {"text": [f"{date:%Y-%m-%dT%H:%M}" for date in dates], "numbers as text": [str(n) for n in steps]}
        zones = [timezone(timedelta(hours=n % 3)) for n in steps]
        there["zones"] = [date.astimezone(zone).isoformat() for date, zone in zip(dates, zones, strict=True)]
        return list(there[kind])

    steps = {"a": [0, 1, 2, 5, 11, 10, 7, 8, 9], "b": [3, 4, 5], "c": [0, 1, 4, 40]}
    rows = [(name, t, float(n)) for name, own in steps.items() for t, n in zip(times(own), own, strict=True)]
    columns = dict(zip(("id", "time", "f0"), map(list, zip(*rows, strict=True)), strict=True))
    write(pa.table(columns), tmp_path / "q.arrow")
    (shard,) = plan_shards(tmp_path / "q.arrow", ["f0"], 10)
    found = [one if isinstance(one, str) else one[:, 0].tolist() for one in read_queries(shard).series]
    gap = pytest.approx(np.nan, nan_ok=True)
    assert found == [[0, 1, 2, gap, gap, 5, gap, 7, 8, 9, 10, 11], [3, 4, 5], [0, 1, 4, 40]]


def test_times_that_cannot_be_read(tmp_path):
    import pyarrow as pa

    times = ["2024-01-01", "2024-01-02", "2024-01-01", "noon", "2024-01-01", None]
    times += ["2024-01-01T00:00Z", "2024-01-01T01:00"]
    write(pa.table({"id": [*"aabbccdd"], "time": times, "f0": np.arange(8.0)}), tmp_path / "q.parquet")
    (shard,) = plan_shards(tmp_path / "q.parquet", ["f0"], 10)
    first, *others = read_queries(shard).series
    assert isinstance(first, np.ndarray) and first.tolist() == [[0], [1]]
    assert "'noon', are not all numbers or ISO dates" in others[0] and "has no time" in others[1]
    assert "'2024-01-01T01:00', are not all numbers or ISO dates of one kind" in others[2]


def test_a_full_disk_is_tried_again_and_then_reported(place, source, answers, tmp_path, monkeypatch):
    write_part, refused = driver.write_part, []

    def full(path, *rest):
        if path.name.startswith("c-") or not refused:
            refused.append(path.name)
            raise StorageError(f"cannot write {path}: No space left on device.")
        write_part(path, *rest)

    monkeypatch.setattr(driver, "write_part", full)
    result = sp.explain_parquet(place / "model", source, tmp_path / "out", target=1)
    assert list(result.unfinished) == ["ward=2/c-0000000000.parquet"] and result.queries == 50
    assert "No space left" in result.unfinished["ward=2/c-0000000000.parquet"] and len(refused) == 4
    monkeypatch.undo()
    monkeypatch.setattr(driver, "queries_per_shard", lambda *_: 16)
    assert sp.explain_parquet(place / "model", source, tmp_path / "out", target=1).computed == 1
    assert content(tmp_path / "out") == content(answers)


def test_what_does_not_fit_the_folder_is_refused(place, source, answers, tmp_path):
    before, model = content(answers), place / "model"
    in_memory = sp.load(model / "explainer", sp.load_classifier(model / "classifier"))
    for queries, out, error, message, asked in (
        (source, answers, StorageError, "another question: target differs", {"target": 2}),
        (source, answers, StorageError, r"another question: sparsity, n differ\.", {"sparsity": 0.5, "n": 2}),
        (source / "ward=1", answers, StorageError, "belongs to other queries", {}),
        (source, source / "answers", ConfigError, "within that of the queries", {}),
        (source, tmp_path / "y", ConfigError, "the engine local has no address", {"address": "10.0.0.1:6379"}),
    ):
        with pytest.raises(error, match=message):
            sp.explain_parquet(model, queries, out, **{"target": 1, **asked})
    assert content(answers) == before
    with pytest.raises(ConfigError, match=r"pass 'm'\."):
        sp.explain_parquet(in_memory, source, tmp_path / "x", target=1, workers=2)


def test_files_of_other_forms_are_refused(place, tmp_path, fitted):
    import pyarrow as pa

    X, good = fitted[1], lists(fitted[1][:3], range(3))
    for table, error, message in (
        (good.drop_columns(["id"]), FileFormatError, "no column 'id' with the name of each series; there are: f0, f1"),
        (good.drop_columns(["f3"]), FeatureMismatchError, "no column 'f3', a feature that the explainer was fitted on"),
        (good.set_column(1, "f0", pa.array([*"abc"])), FileFormatError, "'f0' is of type string, expected a list of"),
        (long(X[:2], range(2)).drop_columns(["time"]), FileFormatError, "Rows of single steps need a column 'time'"),
        (good.slice(0, 0), DataError, "holds no series at all"),
        (lists(X[:3, :5], range(3)), DataError, r"none of the first 3 series .* can be explained: it has 5 steps"),
    ):
        with pytest.raises(error, match=message):
            explain(fitted[0], table, tmp_path)
    (file := tmp_path / "q.parquet").write_text("text")
    for path, error, message in (
        (file, FileFormatError, r"q\.parquet cannot be read"),
        (tmp_path / "none", DataNotFoundError, "no file or folder"),
        (place / "model", DataNotFoundError, "holds no file that ends in"),
    ):
        with pytest.raises(error, match=message):
            sp.explain_parquet(fitted[0], path, tmp_path / "out", target=1)


def test_other_names_of_columns(tmp_path, fitted):
    table = long(fitted[1][:2], ["x", "y"]).rename_columns(["patient", "when", *NAMES])
    names = {"id_column": "patient", "time_column": "when"}
    assert explain(fitted[0], table, tmp_path, **names)[0].answers == 2
    with pytest.raises(FileFormatError, match=r"no column 'whn', given as time; .*Did you mean 'when'"):
        explain(fitted[0], table, tmp_path, **{**names, "time_column": "whn"})


def test_series_of_unequal_length_and_several_answers(tmp_path):
    import pyarrow as pa

    rng = np.random.default_rng(0)
    data = [rng.normal(size=(5 + i % 4, 2)).astype(np.float32) + 3 * (i % 2) for i in range(24)]
    model = sp.TorchClassifier("fcn", sp.ClassifierConfig.tiny()).fit(data, np.arange(24) % 2, progress=False)
    explainer = sp.Nearest(model).fit(data, np.arange(24) % 2)
    table = pa.table({"id": range(24), **{f"f{k}": [one[:, k] for one in data] for k in (0, 1)}})
    _, rows = explain(explainer, table, tmp_path, n=2)
    assert [(row["id"], row["answer"]) for row in rows] == [(i, k) for i in range(24) for k in (0, 1)]
    assert all(len(row["counterfactual"]["f0"]) == len(data[row["id"]]) for row in rows)


def test_numbers_instead_of_classes(tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 6, 4)).astype(np.float32)
    model = sp.wrap(lambda X: X[:, :, 0].mean(1), task="regression")
    explainer = sp.Nearest(model).fit(X, X[:, :, 0].mean(1))
    _, rows = explain(explainer, lists(X[:5], range(5)), tmp_path, target=sp.AtLeast(0.2))
    assert all(row["prediction"][0] >= 0.2 for row in rows if row["valid"]) and any(row["valid"] for row in rows)
    assert "predicted" not in rows[0] and "at least 0.2" in rows[0]["target"]


def test_side_inputs_are_refused(tmp_path):
    X = np.random.default_rng(0).normal(size=(12, 5, 2)).astype(np.float32)
    side = {"age": np.arange(12.0)}

    def model(X, age):
        return np.eye(2)[(X[:, 0, 0] + 0 * np.asarray(age).reshape(-1) > 0).astype(int)]

    explainer = sp.Nearest(sp.wrap(model)).fit(X, (X[:, 0, 0] > 0).astype(int), side=side)
    with pytest.raises(CapabilityError, match="side inputs are not read from Parquet files"):
        sp.explain_parquet(explainer, tmp_path, tmp_path / "out", target=1)


KILLER = """
import os
import numpy as np

def predict(X):
    if (np.asarray(X) == 666).any():
        os._exit(9)
    return np.eye(3)[(np.asarray(X)[:, 0, 0] * 10).astype(int) % 3]

def model():
    return predict
"""


def test_a_series_that_kills_its_worker_costs_its_shard(tmp_path, monkeypatch):
    from sparcets.__main__ import main
    from sparcets.testing.data import make_series

    X, y = make_series(60, n_steps=STEPS)
    (tmp_path / "own.py").write_text(KILLER)
    np.savez(tmp_path / "own.npz", X=X, y=y)
    options = ["--dataset", str(tmp_path / "own.npz"), "--method", "nearest", "--out", str(tmp_path / "m")]
    assert main(["fit", *options, "--model", f"{tmp_path / 'own.py'}:model"]) == 0
    bad = X.copy()
    bad[20, 0, 0] = 666
    monkeypatch.setattr(driver, "TRIES", 1)  # else three workers die
    with pytest.raises(ConfigError, match=r"names Python code, .*own.py:model'.* name it: own_model='.*own.py:model'"):
        explain(tmp_path / "m", lists(bad, range(60)), tmp_path, workers=2)
    monkeypatch.chdir(tmp_path)  # workers are given the whole path
    result, rows = explain(tmp_path / "m", lists(bad, range(60)), tmp_path, own_model="own.py:model", workers=2)
    assert [row["id"] for row in rows] == list(range(60)) and (result.queries, result.errors) == (60, 16)
    lost = {row["id"]: row["error"] for row in rows if row["error"] is not None}
    assert list(lost) == list(range(16, 32)) and "exit code 9" in lost[16]
    assert explain(tmp_path / "m", lists(X, range(60)), tmp_path, own_model="own.py:model")[0].errors == 0


def test_the_command(place, source, tmp_path, capsys):
    from sparcets.__main__ import main
    from sparcets.testing.data import make_series

    X, y = make_series(60, n_steps=STEPS)
    np.savez(tmp_path / "own.npz", X=X, y=y)
    data = ["--dataset", str(tmp_path / "own.npz"), "--method", "nearest", "--preset", "tiny"]
    assert main(["fit", *data, "--out", str(tmp_path / "m")]) == 0
    capsys.readouterr()
    asked = ["explain", str(tmp_path / "m"), "--queries", str(source), "--target", "1"]
    assert main([*asked, "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("60 series explained: 60 answers in ") and said.err == ""
    assert main([*asked, "--out", str(tmp_path / "out"), "--json"]) == 0
    assert '"computed": 0' in capsys.readouterr().out
    for wrong, message in (
        (asked, "--queries needs --out"),
        ([*asked, "--out", str(tmp_path / "o"), "--rows", "3"], "--queries cannot be combined with --rows"),
        ([*asked[:2], "--engine", "ray"], "--engine: only for Parquet or Arrow files, by --queries"),
        ([*asked, "--out", str(tmp_path / "o"), "--engine", "rey"], "no engine 'rey'. Did you mean 'ray'?"),
    ):
        assert main(wrong) == 2
        assert message in capsys.readouterr().err
