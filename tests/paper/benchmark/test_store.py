"""Results on disk: no finished row is lost when a process is killed."""

import errno
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from sparcets.core.errors import FileFormatError, StorageError
from sparcets.io.files import to_plain
from sparcets_paper.benchmark.cell import cell_fields
from sparcets_paper.benchmark.plan import Cell
from sparcets_paper.benchmark.store import ResultStore, variant

ROW = {"key": "a", "name": "zweite Übung", "value": 0.5}


@pytest.fixture
def store(tmp_path):
    return ResultStore(tmp_path / "deep" / "results.jsonl")


def test_rows_come_back(store):
    assert store.rows() == [] and store.done() == set()
    store.append(ROW)
    store.append({"key": "b"})
    assert store.rows() == [ROW, {"key": "b"}] and store.done() == {"a", "b"}


def test_lines_are_json_without_nan(store):
    odd = {"key": "a", "x": np.float32(0.5), "nan": float("nan"), "inf": [np.inf], "n": np.int64(3), "y": np.arange(2)}
    store.append(odd)

    def refuse(name):
        raise AssertionError(f"{name} is not JSON")

    line = json.loads(store.path.read_text(encoding="utf-8"), parse_constant=refuse)
    assert len(line.pop("sha256")) == 64
    assert line == {"key": "a", "x": 0.5, "nan": None, "inf": [None], "n": 3, "y": [0, 1]}


def test_of_several_rows_of_a_cell_the_last_counts(store):
    rows = [{"key": "a", "error": "no"}, {"key": "b", "error": "no"}, {"key": "a", "value": 1}]
    for row in rows:
        store.append(row)
    assert store.all_rows() == rows
    assert store.rows() == [{"key": "a", "value": 1}, {"key": "b", "error": "no"}] and store.done() == {"a"}


@pytest.mark.parametrize("middle", ["{", "[1]", '{"value": 1}', ""])
def test_a_damaged_line_in_the_middle_raises(store, middle):
    store.append(ROW)
    with store.path.open("a") as file:
        file.write(f'{middle}\n{{"key": "b"}}\n')
    with pytest.raises(FileFormatError, match=r"line 2 of .*results.jsonl is not a result"):
        store.rows()


def test_a_full_disk_leaves_the_file_as_it_was(store, monkeypatch):
    store.append(ROW)
    before = store.path.read_bytes()

    def fail(_):
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StorageError, match="Nothing was overwritten"):
        store.append({"key": "b"})
    monkeypatch.undo()
    assert store.path.read_bytes() == before
    assert [path.name for path in store.path.parent.iterdir()] == [store.path.name]


def test_several_processes_append_at_once(store):
    code = (
        "import sys; from sparcets_paper.benchmark.store import ResultStore\n"
        "store = ResultStore(sys.argv[1]); sys.stdin.read()\n"
        "for i in range(20): store.append({'key': f'{sys.argv[2]}-{i}', 'content': sys.argv[2] * 5000})"
    )
    command = [sys.executable, "-c", code, str(store.path)]
    writers = [subprocess.Popen([*command, str(n)], stdin=subprocess.PIPE) for n in range(4)]
    for writer in writers:
        writer.stdin.close()  # now
    assert [writer.wait() for writer in writers] == [0] * 4
    rows = store.rows()
    assert {row["key"] for row in rows} == {f"{n}-{i}" for n in range(4) for i in range(20)}
    assert all(row["content"] == row["key"][0] * 5000 for row in rows)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"options": {"n": 3, "m": 2}}, ("m=2", "n=3")),
        ({"classifier_config": {"epochs": 3}}, ("classifier.epochs=3",)),
        ({"preset": "tiny", "settings": ("a=1", "b=2")}, ("preset=tiny", "a=1", "b=2")),
        ({"queries": 5, "seconds_per_query": 1.5}, ("queries=5", "seconds_per_query=1.5")),
        ({"curve": True}, ("curve=True",)),
        ({"method": "ics"}, ()),  # the label is the method
        ({"method": "ics", "label": "A"}, ("method=ics",)),
        ({"seed": 3, "keep": 3, "experiment": "x"}, ()),  # repetitions, and fields that do not change the result
    ],
)
def test_variant_lists_the_settings_that_are_not_defaults(changes, expected):
    row = to_plain({**cell_fields(Cell(dataset="catching", **changes)), "queries": 17, "keep": 2})
    assert variant(row) == expected


@pytest.mark.parametrize("content", [b"notes", b"[1, 2", b'{"a": 1}', b"notes\n", b'{ "a"'])
def test_the_file_of_somebody_else_is_left_alone(tmp_path, content):
    (file := tmp_path / "results.jsonl").write_bytes(content)
    with pytest.raises(FileFormatError, match=r"line 1 of .* is not a result"):
        ResultStore(file).rows()
    with pytest.raises(FileFormatError, match=r"line 1 of .* is not a result"):
        ResultStore(file).append({"key": "a"})
    assert file.read_bytes() == content


def test_a_link_is_followed_and_a_pipe_is_refused(tmp_path):
    (tmp_path / "link").symlink_to("there.jsonl")
    ResultStore(tmp_path / "link").append({"key": "a"})
    assert (tmp_path / "link").is_symlink() and ResultStore(tmp_path / "there.jsonl").done() == {"a"}
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileFormatError, match="neither a file nor a folder, but a pipe"):
        ResultStore(tmp_path / "pipe").append({"key": "a"})
