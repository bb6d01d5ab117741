"""The server disturbed at random moments: by Ctrl-C, and by the death of its worker while requests wait."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from .interrupts import interrupted
from .processes import Process, Task
from .registry import OK, Trial, UnavailableError, campaign
from .site import site

TOKEN = "token-of-the-campaign"
SECONDS = 0.5  # of the moments after the requests were sent


def _available() -> None:
    try:
        import fastapi  # noqa: F401
        import prometheus_client  # noqa: F401
    except ImportError as error:
        raise UnavailableError("needs the extra sparcets[serve]") from error


def _arguments() -> list[str]:
    return ["serve", str(site().model), "--port", "0", "--device", "cpu", "--token", TOKEN]


def _ask(address: str, series: Any) -> Any:
    content = json.dumps({"series": series.tolist(), "text": False}).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"}
    request = urllib.request.Request(f"{address}/explain", content, headers)
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.loads(response.read())["answers"]


def _series(rng: np.random.Generator) -> Any:
    X = np.load(site().data)["X"].astype(np.float64)
    return X[rng.choice(len(X), int(rng.integers(1, 5)), replace=False)]


def _begin(process: Process, rng: np.random.Generator) -> None:
    """Often wait for the server, and ask it something."""
    if rng.random() < 0.3:
        return
    end = time.monotonic() + 60
    while "Ctrl-C" not in (text := process.err()):
        assert time.monotonic() < end and process.running(), text
        time.sleep(0.02)
    address, series = text.split("server: ")[1].split("\n")[0], _series(rng)
    threading.Thread(target=_ask_perhaps_in_vain, args=(address, series), daemon=True).start()


@interrupted(
    "serve", seconds=SECONDS, ends=False, begin=_begin, ready=lambda: (_available(), site()), trials=60, dose=1, parts=2
)
def stopped(own: Path, rng: np.random.Generator) -> tuple[Task, Callable[[], str]]:
    """The server ends with one line and no process left, and what it answers is whole."""
    return Task(_arguments()), lambda: ""


def _ask_perhaps_in_vain(address: str, series: Any) -> None:
    try:
        answers = _ask(address, series)
    except OSError:  # it was not taken any more
        return
    assert len(answers) == len(series)


@campaign("kill of a worker in serve", trials=40, dose=1, parts=2)
def killed(trials: int, rng: np.random.Generator, folder: Path) -> Iterator[Trial]:
    """Every request is answered as by an undisturbed server, whenever the worker is killed."""
    _available()
    if not Path("/proc/self/task").exists():
        raise UnavailableError("finds the worker in /proc")
    command = [sys.executable, "-m", "sparcets", *_arguments()]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    said = [server.stderr.readline() for _ in range(4)]
    address = said[1].partition(": ")[2].strip()
    try:
        with ThreadPoolExecutor(4) as pool:
            for i in range(trials):
                sent = [_series(rng) for _ in range(4)]
                expected = [_ask(address, series) for series in sent]
                worker, after = _worker(server.pid), float(rng.uniform(0, 0.02))
                asked = [pool.submit(_ask, address, series) for series in sent]
                time.sleep(after)
                os.kill(worker, signal.SIGKILL)
                found = [future.exception() or future.result() for future in asked]
                wrong = [one for one, right in zip(found, expected, strict=True) if not _equal(one, right)]
                how = f"trial {i}: worker killed {after:.4f} s after the requests"
                entries = sum(series.size for series in sent)
                yield Trial(f"{how}: {str(wrong[0])[:300]}", entries) if wrong else Trial(entries=entries)
        server.send_signal(signal.SIGTERM)
        code = server.wait(20)
        yield OK if code == 0 else Trial(f"exit code {code} after SIGTERM")
    finally:
        server.kill()
        server.communicate()


def _equal(found: Any, expected: list[dict[str, Any]]) -> bool:
    """Whether answers are equal; the probabilities may differ by rounding with the size of a batch."""
    if isinstance(found, BaseException) or len(found) != len(expected):
        return False
    return all(
        abs(one["probability"] - right["probability"]) <= 1e-6
        and {**one, "probability": 0} == {**right, "probability": 0}
        for one, right in zip(found, expected, strict=True)
    )


def _worker(server: int) -> int:
    """Return the number of the worker, once it has started."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        children = Path(f"/proc/{server}/task").glob("*/children")
        for pid in [int(pid) for file in children for pid in file.read_text().split()]:
            if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes():
                return pid
        time.sleep(0.02)
    raise AssertionError("no worker")
