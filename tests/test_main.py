"""The command as a process: interruption, and messages where no progress bar is drawn."""

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

RESUME = "; finished runs are kept, run the same command again to continue"


@pytest.mark.parametrize(
    ("arguments", "function", "hint"),
    [
        (["fit", "-d", "catching", "--out", "x"], "sparcets.datasets.load.load_dataset", ""),
        (
            ["benchmark", "run", "-d", "catching", "--out", "x"],
            "sparcets.experiments.benchmark.runner.run_plan",
            RESUME,
        ),
        (["reproduce", "table1", "--out", "x"], "sparcets.experiments.reproduce.run.reproduce", RESUME),
        (["--debug", "reproduce", "table1", "--out", "x"], "sparcets.experiments.reproduce.run.reproduce", RESUME),
    ],
)
def test_ctrl_c_prints_one_line(
    arguments: list[str], function: str, hint: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(function, interrupted)
    assert main(arguments) == 130
    assert capsys.readouterr() == ("", f"sparcets: stopped{hint}\n")


def test_interrupted_benchmark(tmp_path: Path) -> None:
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
    timeout = threading.Timer(300, process.kill)
    timeout.start()
    assert process.stderr is not None
    first_line = process.stderr.readline()
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does it
    out, err = process.communicate()
    timeout.cancel()
    assert first_line == f"{tmp_path / 'own.npz'}: preparing classifier and judges\n"
    assert process.returncode == 130 and out == ""
    assert err == f"sparcets: stopped{RESUME}\n"
