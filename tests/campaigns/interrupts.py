"""Ctrl-C at random moments of every long command: it ends within seconds, with one line and nothing broken."""

from __future__ import annotations

import json
import re
import shutil
import signal
import time
import urllib.request
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from sparcets.core.errors import SparcetsError
from tests.archive import ARCHIVE, Server

from .processes import Ended, Process, Task
from .registry import campaign
from .site import site

TRIALS, DOSE, PARTS = 100, 2, 4
SECONDS, SECONDS_DOSE = 5.0, 20.0  # to the end; the tests share a machine with others
IMPORTS = 4.0  # seconds within which the imports of a command take place
REAL = 4  # every fourth process is started from nothing
DONE = 0
Rng = np.random.Generator
Command = Callable[[Path, Rng], tuple[Task, Callable[[], str]]]


def interrupted(
    name: str,
    *,
    seconds: float,
    ends: bool = True,
    begin: Callable[[Process, Rng], None] | None = None,
    ready: Callable[[], object] = site,
    trials: int = TRIALS,
    dose: int = DOSE,
    parts: int = PARTS,
) -> Callable[[Command], Command]:
    """Register a campaign that interrupts a command at random moments.

    The function is called with a fresh folder, and returns the command that writes into it, and a function that returns
    what is wrong with the folder afterwards, or "".

    Parameters
    ----------
    seconds
        The moments are chosen from this time after the start; imports come on top of it.
    ends
        Whether the command may be faster than the signal.
    begin
        Called with the forked process before the time begins.
    ready
        Called before any trial.
    """

    def register(command: Command) -> Command:
        @campaign(f"Ctrl-C in {name}", trials=trials, dose=dose, parts=parts)
        def run(trials: int, rng: Rng, folder: Path) -> Iterator[str]:
            ready()
            limit = SECONDS_DOSE if trials <= dose else SECONDS
            for i in range(trials):
                (own := folder / str(i)).mkdir()
                fork, group = i % REAL != 1, bool(rng.random() < 0.7)
                # Imports differ in duration from machine to machine: rather too early than too late.
                after = float(rng.uniform(0, seconds) if fork else rng.uniform(0, seconds + IMPORTS) * rng.random())
                what, check = command(own, rng)
                process = Process(what, folder, fork=fork)
                if fork and begin is not None:
                    begin(process, rng)
                time.sleep(after)
                process.signal(signal.SIGINT, group=group)
                failure = _judge(process.wait(survivors_seconds=limit), limit, ends=ends) or _problem(check)
                how = f"{'group' if group else 'process'} after {after:.3f} s, {'forked' if fork else 'started'}"
                yield f"trial {i}: sparcets {' '.join(what.arguments)}: {how}: {failure}" if failure else ""
                shutil.rmtree(own, ignore_errors=True)

        return command

    return register


def _judge(ended: Ended, limit: float, *, ends: bool) -> str:
    if ended.survivors:
        return f"processes {ended.survivors} are left"
    if ended.seconds > limit:
        return f"it ended {ended.seconds:.1f} s after the signal: {ended.err!r}"
    if ended.code == DONE and ends:
        return "" if "sparcets: stopped" not in ended.err else f"exit code 0, but {ended.err!r}"
    lines = ended.err.splitlines()
    stopped = [line for line in lines if line.startswith("sparcets: stopped")]
    odd = [word for word in ("Traceback", "Exception", "Error", "leaked") if word in ended.err]
    if ended.code != 130 or len(stopped) != 1 or lines[-1] != stopped[0] or odd:
        return f"exit code {ended.code}, {ended.err[-1500:]!r}"
    return ""


def _problem(check: Callable[[], str]) -> str:
    try:
        return check()
    except SparcetsError as error:
        return f"{type(error).__name__}: {error}"


def _loads(path: Path, load: Callable[[Path], object]) -> Callable[[], str]:
    """Return what loads something if it is there: an error says what is wrong."""

    def check() -> str:
        if path.exists():
            load(path)
        return ""

    return check


@interrupted("fit", seconds=2.0)
def fit(own: Path, rng: Rng) -> tuple[Task, Callable[[], str]]:
    from sparcets.methods.folder import load_fit

    methods = (["-m", "nearest"], ["-m", "countergan", "--set", "train.epochs=2"], ["-m", "sparcets"])
    force = ["--force"] if rng.random() < 0.5 else []
    if force:
        shutil.copytree(site().other, own / "model")
    task = site().fit(own / "model", *methods[rng.integers(len(methods))], *force)
    return task, _loads(own / "model", lambda path: load_fit(path, device="cpu"))


@interrupted("explain", seconds=2.0)
def explain(own: Path, rng: Rng) -> tuple[Task, Callable[[], str]]:
    from sparcets.io.explanations import load_explanation

    task = Task(["explain", str(site().model), "--out", str(own / "run.npz"), "--plots", str(own / "plots")])
    return task, _loads(own / "run.npz", load_explanation)


def _check_results(own: Path) -> str:
    from sparcets_paper.benchmark.store import RESULTS, ResultStore

    failed = [row["error"] for row in ResultStore(own / "out" / RESULTS).rows() if "error" in row]
    return f"rows with errors: {failed}" if failed else ""


@interrupted("benchmark run", seconds=4.0)
def benchmark(own: Path, rng: Rng) -> tuple[Task, Callable[[], str]]:
    plan = ["-d", str(site().data), "-m", "nearest", "-m", "ics", "-c", "fcn", "--preset", "tiny", "--queries", "3"]
    how = ["--workers", "2" if rng.random() < 0.75 else "1", "--device", "cpu", "--out", str(own / "out")]
    task = Task(["benchmark", "run", *plan, *how], environment={"XDG_CACHE_HOME": str(own / "cache")})
    return task, lambda: _check_results(own)


@cache
def _server(seconds: float) -> Server:
    return Server(seconds=seconds)


@interrupted("data fetch", seconds=1.5, ready=lambda: (_server(1.0), _server(60.0)))
def fetch(own: Path, rng: Rng) -> tuple[Task, Callable[[], str]]:
    # A command started from nothing expects the whole archive of the authors, and does not come to its end.
    server, file = _server(60.0 if int(own.name) % REAL == 1 else 1.0), own / "motionsense" / ARCHIVE
    arguments = ["data", "fetch", "motionsense", "--folder", str(own), "--url", server.url]
    whole = _server(1.0).content
    return (
        Task(arguments, setup="tests.campaigns.site:expect_small_archive"),
        lambda: "the file is not whole" if file.exists() and file.read_bytes() != whole else "",
    )


def _begin_studio(process: Process, rng: Rng) -> None:
    """Often wait for the studio, upload data, and mostly have it train a classifier on them."""
    if rng.random() < 0.3:
        return
    address, token = _address(process)
    sent = _post(f"{address}/api/v1/datasets/upload?filename=own.npz", site().data.read_bytes(), token)
    if rng.random() < 0.8:
        _post(f"{address}/api/v1/classifiers", {"dataset": sent["id"], "architecture": "bilstm"}, token)


@interrupted("studio", seconds=1.5, ends=False, begin=_begin_studio)
def studio(own: Path, rng: Rng) -> tuple[Task, Callable[[], str]]:
    from sparcets.studio.workspace import KIND_OF, Workspace

    def check() -> str:
        if not (own / "w").exists():
            return ""
        workspace = Workspace(own / "w")
        listed = [record.id for model in KIND_OF for record in workspace.records(model)]
        found = [path.name for kind in ("datasets", "classifiers") for path in (own / "w" / kind).iterdir()]
        whole = [name for name in found if not name.startswith(".")]
        return "" if sorted(listed) == sorted(whole) else f"the studio lists {listed} of {whole}"

    return Task(["studio", "--port", "0", "--workspace", str(own / "w"), "--device", "cpu"]), check


def _address(process: Process) -> tuple[str, str]:
    """Return the address and the token of a studio."""
    end = time.monotonic() + 60
    while "Ctrl-C" not in (text := process.err()):
        assert time.monotonic() < end and process.running(), text
        time.sleep(0.02)
    address, file = re.search(r"studio: (\S+)/login", text), re.search(r"token: in the file (.+)", text)
    assert address is not None and file is not None, text
    return address[1], Path(file[1]).read_text().strip()


def _post(url: str, body: bytes | dict[str, Any], token: str) -> Any:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    kind = "application/octet-stream" if isinstance(body, bytes) else "application/json"
    headers = {"Content-Type": kind, "Authorization": f"Bearer {token}"}
    with urllib.request.urlopen(urllib.request.Request(url, content, headers), timeout=60) as response:
        return json.loads(response.read())
