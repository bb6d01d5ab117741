"""Processes of the studio: their reports, their errors, their end; one bar for a whole training."""

import json
import subprocess
from typing import Any

import pytest

from sparcets.studio.jobs import MAX_POINTS, TrainingProgress
from sparcets.studio.processes import command

from .conftest import Sample


def run(sample: Sample, request: dict[str, Any]) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        command("sparcets.studio.processes", "train"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    task = {"workspace": str(sample.folder), "id": "new", "seed": 0, "device": "cpu", **request}
    assert process.stdin is not None
    process.stdin.write(json.dumps(task) + "\n")
    process.stdin.flush()
    return process


def test_an_error_is_reported(sample: Sample) -> None:
    (sample.folder / "datasets" / "own" / "own.npz").write_bytes(b"broken")
    request = {"dataset": "own", "architecture": "fcn", "preset": "tiny"}
    process = run(sample, {"kind": "classifier", "request": request})
    assert process.stdout is not None and process.stdin is not None
    (line,) = process.stdout.read().splitlines()
    assert process.wait() == 2
    process.stdin.close()
    process.stdout.close()
    problem = json.loads(line)
    assert problem["code"] == "file_format" and "own.npz" in problem["message"]
    assert not (sample.folder / "classifiers" / "new").exists()


def test_the_worker_exits_when_stdin_is_closed(sample: Sample) -> None:
    request = {"dataset": "own", "architecture": "bilstm", "preset": "default"}
    process = run(sample, {"kind": "classifier", "request": request})
    assert process.stdout is not None and process.stdin is not None
    assert json.loads(process.stdout.readline())["stage"] == "training bilstm"
    process.stdin.close()
    assert process.wait(120) == 1
    process.stdout.close()
    assert not (sample.folder / "classifiers" / "new").exists()


def test_stages_count_by_the_time_they_take() -> None:
    progress = TrainingProgress("fitting sparcets")
    shares = []
    for stage, done, total in (
        ("fitting models of other kinds", 0, 7), ("training fcn", 5, 10), ("training fcn", 10, 10),
        ("fitting models of other kinds", 3, 7), ("training resnet", 10, 10), ("fitting models of other kinds", 7, 7),
    ):  # fmt: skip
        progress.update(stage, done, total, "")
        shares.append(progress.share)
    assert shares == sorted(shares) and shares[0] == 0 and shares[-1] == pytest.approx(1)
    assert progress.left(60.0) == pytest.approx(0, abs=1e-9)


def test_learning_curves_hold_one_value_per_epoch() -> None:
    progress = TrainingProgress("fitting sparce")
    for epoch in range(1, 4):
        for _ in range(2):  # the same epoch is reported twice
            progress.update("training fcn", epoch, 9, f"loss {1 / epoch:.3g}  validation_loss nan")
    progress.update("fitting models of other kinds", 1, 7, "convolutions")
    assert progress.curves == {"fcn loss": [1.0, 0.5, 0.333], "fcn validation_loss": [None] * 3}
    for epoch in range(5 * MAX_POINTS):
        progress.update("training sparce", epoch + 1, 5 * MAX_POINTS, f"loss {epoch}")
    points = progress.curves["sparce loss"]
    assert len(points) <= MAX_POINTS + 1 and points[0] == 0 and points[-1] == 5 * MAX_POINTS - 1
