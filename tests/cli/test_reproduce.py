"""``sparcets reproduce`` as a user types it."""

import pytest

from sparcets_paper.reproduce.run import Reproduction
from sparcets_paper.table import Table

from .conftest import run, user_error


@pytest.fixture
def given(monkeypatch, tmp_path):
    """Replace the reproduction; return the arguments it was called with."""
    seen = {}

    def fake(part, *, on_note, on_row, **arguments):
        seen.update(arguments, part=part)
        on_note("motionsense is left out: not here")
        failed = {"dataset": "catching", "label": "ICS", "target": "Control", "seed": 0, "error": "E: x"}
        on_row(failed)  # printed, since stderr is not a terminal
        return Reproduction(
            page=tmp_path / "README.md",
            tables={"datasets": table("Data"), "table1": table("Table 1")},
            figures=(tmp_path / "a.png", tmp_path / "a.svg"),
            rows=({"key": "k"}, {"key": "bad", "error": "E: x"}),
            computed=2,
            left_out={"motionsense": "not here"},
            seconds=1.23,
        )

    monkeypatch.setattr("sparcets_paper.reproduce.run.reproduce", fake)
    return seen


def table(title):
    return Table(title, ("data", "valid"), ((title, "**0.9**"),))


def test_options_arrive(capsys, given, tmp_path):
    sources = ["--source", "motionsense=/data/ms.npz", "--source", "catching=c.npz"]
    options = ["--scale", "full", "--repetitions", "3", "--out", str(tmp_path), "--workers", "4", "--device", "cpu"]
    where = ["--engine", "ray", "--address", "10.0.0.1:6379"]
    assert run(capsys, "reproduce", "ablation", *options, *where, *sources, "--seed", "5")[0] == 0
    plain = {"part": "ablation", "scale": "full", "repetitions": 3, "out": tmp_path, "workers": 4, "device": "cpu"}
    cluster = {"engine": "ray", "address": "10.0.0.1:6379"}
    assert given == {**plain, **cluster, "sources": {"motionsense": "/data/ms.npz", "catching": "c.npz"}, "seed": 5}


def test_results_on_stdout_notes_on_stderr(capsys, given):
    code, out, err = run(capsys, "reproduce", "table1")
    assert code == 0
    assert err.splitlines() == ["motionsense is left out: not here", "catching ICS → Control, seed 0: E: x"]
    assert "Table 1\t0.9" in out and "Data\t" not in out  # only the given table
    assert "2 of 2 runs are new, 1 failed" in out and "1 figures" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tabel1"], "tabel1"),
        (["all", "--scale", "huge"], "huge"),
        (["all", "--repetitions", "0"], "--repetitions"),
        (["all", "--source", "catching"], "name=path"),
        (["all", "--source", "cat=x.npz"], "no data set of the paper 'cat'"),
    ],
)
def test_a_user_error_is_one_line(capsys, arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert message in user_error(capsys, "reproduce", *arguments)
    assert list(tmp_path.iterdir()) == []
