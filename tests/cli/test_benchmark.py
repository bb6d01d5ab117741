"""``sparcets benchmark`` as a user types it."""

import json

import pytest

from .conftest import run, save_series, user_error


@pytest.fixture(autouse=True)
def no_judges(monkeypatch):
    monkeypatch.setattr("sparcets_paper.benchmark.cell.find_judges", lambda *_, **__: {})  # they take seconds


@pytest.fixture
def own_data(tmp_path):
    return save_series(tmp_path / "own.npz", 60)


def quick(data, out):
    settings = ["--preset", "tiny", "--set-classifier", "epochs=5", "--queries", "4", "--device", "cpu"]
    return ["run", "-d", data, "--out", str(out), "-t", "brisk", *settings]


def test_run_resume_and_show(capsys, own_data, tmp_path):
    out = tmp_path / "out"
    command = [*quick(own_data, out), "-m", "nearest", "-m", "ics", "--seed-count", "2", "--keep", "2"]
    code, table, err = run(capsys, "benchmark", *command)
    assert code == 0 and err.count(", seed 0: valid ") == 2 and err.count(", seed 1: valid ") == 2
    header, *lines = [line.split("\t") for line in table.splitlines()]
    assert header[:4] == ["data", "classifier", "method", "target"] and header[-1] == "runs"
    assert {"valid", "transfer", "oracle", "universality", "similarity", "sparsity", "smoothness"} <= set(header)
    assert [line[1:4] for line in lines] == [["bilstm", "nearest", "brisk"], ["bilstm", "ics", "brisk"]]
    assert [line[-1] for line in lines] == ["2", "2"] and "±" in lines[0][header.index("sparsity")]
    assert len(list(out.glob("explanations/*.npz"))) == 4

    code, again, err = run(capsys, "benchmark", *command)
    assert code == 0 and again == table and err == ""  # no cell was pending
    assert run(capsys, "benchmark", "show", str(out))[1] == table
    rows = json.loads(run(capsys, "benchmark", "show", str(out), "--json")[1])
    assert len(rows) == 4 == len(json.loads(run(capsys, "benchmark", *command, "--json")[1]))
    assert {row["config"]["classifier"]["epochs"] for row in rows} == {5}
    assert {row["config"]["classifier"]["hidden"] for row in rows} == {8}  # of the preset tiny


def test_runs_that_fail_are_named_and_tried_again(capsys, own_data, tmp_path):
    arguments = [*quick(own_data, tmp_path / "out"), "-m", "nearest", "-c", "fcn"]
    failing = [argument if argument != "brisk" else "brusk" for argument in arguments]
    code, table, err = run(capsys, "benchmark", *arguments, "-t", "brusk")
    assert code == 0 and "Did you mean 'brisk'?" in err and "1 of 2 runs failed" in err
    lines = [line.split("\t") for line in table.splitlines()[1:]]
    assert lines[1][3] == "brusk" and lines[1][-1] == "0 + 1 failed" and lines[1][4] == "–"
    assert "Did you mean 'brisk'?" in run(capsys, "benchmark", "show", str(tmp_path / "out"))[2]
    code, _, err = run(capsys, "benchmark", *failing)
    assert code == 1 and "1 of 1 runs failed" in err  # it was tried again
    assert run(capsys, "benchmark", *failing, "--json")[0] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--out", "x"], "--dataset"),
        (["run", "-d", "catching"], "--out"),
        (["run", "-d", "catching", "--out", "x", "--sparsity", "0"], "'sparsity' must be in (0, 1] or None, got 0.0"),
        (["run", "-d", "catching", "--out", "x", "--set", "seed=1"], "must not contain seed=1"),
        (["run", "-d", "catching", "--out", "x", "--set", "ics:steps=3"], "'ics', which is not in this benchmark"),
        (["show", "/no/such/folder"], "has no results.jsonl"),
    ],
)
def test_a_user_error_is_one_line(capsys, arguments, message):
    assert message in user_error(capsys, "benchmark", *arguments)
