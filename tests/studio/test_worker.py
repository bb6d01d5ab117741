"""The process that trains: what it says on stdout, and that it ends with the studio."""

import json
import subprocess
import sys
from typing import Any

from sparcets.studio.worker import reporter

from .conftest import Made


def run(made: Made, request: dict[str, Any], *, stay: bool = False) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "sparcets.studio.worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    asked = {"workspace": str(made.folder), "id": "new", "seed": 0, "device": "cpu", **request}
    assert process.stdin is not None
    process.stdin.write(json.dumps(asked) + "\n")
    process.stdin.flush()
    return process


def test_it_tells_its_stages_and_a_mistake_in_words(made: Made) -> None:
    (made.folder / "datasets" / "own" / "own.npz").write_bytes(b"broken")
    request = {"dataset": "own", "architecture": "fcn", "preset": "tiny"}
    process = run(made, {"kind": "classifier", "request": request})
    assert process.stdout is not None and process.stdin is not None
    (line,) = process.stdout.read().splitlines()
    assert process.wait() == 2
    process.stdin.close()
    process.stdout.close()
    told = json.loads(line)
    assert told["code"] == "file_format" and "own.npz" in told["message"]
    assert not (made.folder / "classifiers" / "new").exists()


def test_it_ends_when_the_studio_is_gone(made: Made) -> None:
    request = {"dataset": "own", "architecture": "bilstm", "preset": "default"}
    process = run(made, {"kind": "classifier", "request": request})
    assert process.stdout is not None and process.stdin is not None
    assert json.loads(process.stdout.readline())["stage"] == "training bilstm"
    process.stdin.close()
    assert process.wait(20) == 1
    process.stdout.close()
    assert not (made.folder / "classifiers" / "new").exists()


def test_stages_are_reported_at_once_and_steps_not_too_often() -> None:
    told: list[Any] = []
    tell = reporter(lambda **event: told.append((event["stage"], event["done"])))
    for stage in ("a", "b"):
        for done in range(101):
            tell(stage, done, 100, "")
    assert told[0] == ("a", 0) and ("b", 0) in told and told[-1] == ("b", 100)
    assert len(told) < 60
