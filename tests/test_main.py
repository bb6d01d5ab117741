"""The command as a process: interruption, and messages where no progress bar is drawn."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sparcets.__main__ import main
from sparcets.testing.data import make_series

RESUME = "; finished runs are kept, run the same command again to continue"


@pytest.mark.parametrize(
    ("arguments", "function", "hint"),
    [
        (["fit", "-d", "catching", "--out", "x"], "sparcets.data.load.load_dataset", ""),
        (["benchmark", "run", "-d", "catching", "--out", "x"], "sparcets_paper.benchmark.runner.run_plan", RESUME),
        (["reproduce", "table1", "--out", "x"], "sparcets_paper.reproduce.run.reproduce", RESUME),
        (["--debug", "reproduce", "table1", "--out", "x"], "sparcets_paper.reproduce.run.reproduce", RESUME),
    ],
)
def test_ctrl_c_prints_one_line(arguments, function, hint, capsys, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(function, interrupted)
    assert main(arguments) == 130
    assert capsys.readouterr() == ("", f"sparcets: stopped{hint}\n")


FULL = ("2>&-", ">/dev/full")


def in_shell(arguments, streams, folder):
    command = f'set -o pipefail; "$@" {streams}'
    given = ["bash", "-c", command, "bash", sys.executable, "-m", "sparcets", *arguments]
    return subprocess.run(given, capture_output=True, cwd=folder)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize(
    ("streams", "code", "wrong_code"),
    [("2>&-", 0, 2), (">&-", 0, 2), (">/dev/full", 2, 2), ("2>/dev/full", 0, 2), ("<&- >&- 2>&-", 0, 2)],
)
def test_what_cannot_be_printed_is_no_crash(streams, code, wrong_code, tmp_path):
    fine, wrong = (in_shell([word], streams, tmp_path) for word in ("list", "nothing"))
    assert (fine.returncode, wrong.returncode) == (code, wrong_code)
    assert fine.stderr == (b"sparcets: stdout cannot be written: No space left on device.\n" if code else b"")
    assert wrong.stderr == (b"" if "2>" in streams else b"sparcets: No such command 'nothing'.\n")


def test_a_reader_that_has_seen_enough(tmp_path):
    result = in_shell(["list", "--archive"], "| head -c1", tmp_path)
    assert result.stdout == b"k" and result.stderr == b"" and result.returncode in (0, 1)


def commands(prefix):
    """Return commands that fit, explain and report with files whose names begin so, and what each of them makes."""
    X, y = make_series(60)
    np.savez(os.fsdecode(prefix + b"own.npz"), X=X, y=y)
    fit = ["--method", "nearest", "--set-classifier", "epochs=1", "--out", prefix + b"model"]
    explain = ["--target", "1", "--rows", "0:2", "--out", prefix + b"run.npz"]
    return [
        (["fit", "-d", prefix + b"own.npz", *fit], prefix + b"model/run.json"),
        (["explain", prefix + b"model", *explain], prefix + b"run.npz"),
        (["report", prefix + b"run.npz", "--out", prefix + b"report.html"], prefix + b"report.html"),
    ]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("streams", ["<&- >&- 2>&-", *(pytest.param(s, marks=pytest.mark.long) for s in FULL)])
def test_work_is_finished_though_nothing_can_be_printed(streams, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for arguments, made in commands(b""):
        result = in_shell(arguments, streams, tmp_path)
        assert b"Traceback" not in result.stderr + result.stdout
        assert (tmp_path / os.fsdecode(made)).stat().st_size > 100, result.stderr
