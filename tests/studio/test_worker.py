"""The worker process: its reports on stdout, its errors, and its end when the studio exits."""

import json
import subprocess
from typing import Any

from sparcets.studio.processes import command, throttled

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


def test_stages_are_reported_at_once_and_steps_are_throttled() -> None:
    events: list[Any] = []
    report = throttled(lambda **event: events.append((event["stage"], event["done"])))
    for stage in ("a", "b"):
        for done in range(101):
            report(stage, done, 100, "")
    assert events[0] == ("a", 0) and ("b", 0) in events and events[-1] == ("b", 100)
    assert len(events) < 60
