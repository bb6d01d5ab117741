"""The command as a process: how it ends when it is stopped, and what it says where no bar can be drawn."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparcets.__main__ import main
from sparcets.testing.data import make_series

GO_ON = "; finished runs are kept, run the same command again to go on"


@pytest.mark.parametrize(
    ("arguments", "work", "more"),
    [
        (["fit", "-d", "catching", "--out", "x"], "sparcets.datasets.load.load_dataset", ""),
        (["benchmark", "run", "-d", "catching", "--out", "x"], "sparcets.benchmark.runner.run_plan", GO_ON),
        (["reproduce", "table1", "--out", "x"], "sparcets.reproduce.run.reproduce", GO_ON),
        (["--debug", "reproduce", "table1", "--out", "x"], "sparcets.reproduce.run.reproduce", GO_ON),
    ],
)
def test_ctrl_c_is_told_in_a_line(
    arguments: list[str], work: str, more: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(work, interrupted)
    assert main(arguments) == 130
    assert capsys.readouterr() == ("", f"sparcets: stopped{more}\n")


def test_a_benchmark_that_is_interrupted_says_what_it_was_at(tmp_path: Path) -> None:
    X, y = make_series(60)
    np.savez(tmp_path / "own.npz", X=X, y=y)
    settings = ["--set-classifier", "epochs=100000", "--set-classifier", "patience=100000", "--workers", "2"]
    command = ["benchmark", "run", "-d", str(tmp_path / "own.npz"), "--out", str(tmp_path / "out"), "-m", "nearest"]
    process = subprocess.Popen(
        [sys.executable, "-m", "sparcets", *command, *settings, "--device", "cpu"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    rescue = threading.Timer(300, process.kill)
    rescue.start()
    assert process.stderr is not None
    begun = process.stderr.readline()
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does it
    out, told = process.communicate()
    rescue.cancel()
    assert begun == f"{tmp_path / 'own.npz'}: preparing classifier and judges\n"
    assert process.returncode == 130 and out == ""
    assert told == f"sparcets: stopped{GO_ON}\n"
