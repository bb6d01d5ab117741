"""Ctrl-C at random moments of every long command: it ends within seconds, with one line and nothing broken."""

from __future__ import annotations

import json
import re
import shutil
import signal
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from sparcets.core.errors import SparcetsError

from .processes import Ended, Process, Task
from .registry import OK, Trial, campaign
from .site import ARCHIVE, Server, site

TRIALS, DOSE, PARTS = 100, 2, 4
SECONDS, SECONDS_DOSE = 5.0, 20.0  # to the end; the tests share a machine with others
IMPORTS = 4.0  # seconds within which the imports of a command take place
REAL = 4  # every fourth process is started from nothing
DONE = 0
Begin = Callable[[Process, np.random.Generator], None]


def interrupt(
    trials: int,
    rng: np.random.Generator,
    folder: Path,
    *,
    task: Callable[[Path, np.random.Generator], Task],
    check: Callable[[Path], str],
    seconds: float,
    ends: bool = True,
    begin: Begin | None = None,
) -> Iterator[Trial]:
    """Interrupt a command at random moments.

    Parameters
    ----------
    trials, rng, folder
        As of every campaign.
    task
        Returns the command that writes into a folder.
    check
        Returns what is wrong with the folder afterwards, or "".
    seconds
        The moments are chosen from this time after the start; imports come on top of it.
    ends
        Whether the command may be faster than the signal.
    begin
        Called with the forked process before the time begins.
    """
    limit = SECONDS_DOSE if trials <= DOSE else SECONDS
    for i in range(trials):
        (own := folder / str(i)).mkdir()
        fork, group = i % REAL != 1, bool(rng.random() < 0.7)
        # Imports differ in duration from machine to machine: rather too early than too late.
        after = float(rng.uniform(0, seconds) if fork else rng.uniform(0, seconds + IMPORTS) * rng.random())
        what = task(own, rng)
        process = Process(what, folder, fork=fork)
        if fork and begin is not None:
            begin(process, rng)
        time.sleep(after)
        process.signal(signal.SIGINT, group=group)
        ended = process.wait(survivors_seconds=limit)
        failure = _judge(ended, limit, ends=ends) or check(own)
        how = f"{'group' if group else 'process'} interrupted after {after:.3f} s, {'forked' if fork else 'started'}"
        yield Trial(f"trial {i}: sparcets {' '.join(what.arguments)}: {how}: {failure}") if failure else OK
        shutil.rmtree(own, ignore_errors=True)


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


def _problem(load: Callable[[], Any]) -> str:
    try:
        load()
    except SparcetsError as error:
        return f"{type(error).__name__}: {error}"
    return ""


@campaign("Ctrl-C in fit", trials=TRIALS, dose=DOSE, parts=PARTS)
def fit(trials: int, rng: np.random.Generator, folder: Path) -> Iterator[Trial]:
    from sparcets.methods.fit_folder import load_fit

    methods = (["-m", "nearest"], ["-m", "countergan", "--set", "train.epochs=2"], ["-m", "sparcets"])

    def task(own: Path, rng: np.random.Generator) -> Task:
        force = rng.random() < 0.5
        if force:
            shutil.copytree(site().other, own / "model")
        more = methods[rng.integers(len(methods))]
        return site().fit(own / "model", *more, *(["--force"] if force else []))

    def check(own: Path) -> str:
        return _problem(lambda: load_fit(own / "model", device="cpu")) if (own / "model").exists() else ""

    yield from interrupt(trials, rng, folder, task=task, check=check, seconds=2.0)


@campaign("Ctrl-C in explain", trials=TRIALS, dose=DOSE, parts=PARTS)
def explain(trials: int, rng: np.random.Generator, folder: Path) -> Iterator[Trial]:
    from sparcets.io.explanations import load_explanation

    def task(own: Path, rng: np.random.Generator) -> Task:
        return Task(["explain", str(site().model), "--out", str(own / "run.npz"), "--plots", str(own / "plots")])

    def check(own: Path) -> str:
        return _problem(lambda: load_explanation(own / "run.npz")) if (own / "run.npz").exists() else ""

    yield from interrupt(trials, rng, folder, task=task, check=check, seconds=2.0)


def _check_results(own: Path) -> str:
    from sparcets_paper.benchmark.store import RESULTS, ResultStore

    failed = [row["error"] for row in ResultStore(own / "out" / RESULTS).rows() if "error" in row]
    return f"rows with errors: {failed}" if failed else ""


@campaign("Ctrl-C in benchmark run", trials=TRIALS, dose=DOSE, parts=PARTS)
def benchmark(trials: int, rng: np.random.Generator, folder: Path) -> Iterator[Trial]:
    def task(own: Path, rng: np.random.Generator) -> Task:
        workers = "2" if rng.random() < 0.75 else "1"
        plan = ["-d", str(site().data), "-m", "nearest", "-m", "ics", "-c", "fcn", "--preset", "tiny", "--queries", "3"]
        arguments = ["benchmark", "run", *plan, "--workers", workers, "--device", "cpu", "--out", str(own / "out")]
        return Task(arguments, environment={"XDG_CACHE_HOME": str(own / "cache")})

    yield from interrupt(trials, rng, folder, task=task, check=_check_results, seconds=4.0)


@campaign("Ctrl-C in reproduce", trials=TRIALS, dose=DOSE, parts=PARTS)
def reproduce(trials: int, rng: np.random.Generator, folder: Path) -> Iterator[Trial]:
    from sparcets_paper.reproduce.page import RUN, read_run

    def task(own: Path, rng: np.random.Generator) -> Task:
        part = ["table1", "figures", "timing"][rng.integers(3)]
        arguments = ["reproduce", part, "--scale", "small", "--device", "cpu", "--out", str(own / "out")]
        return Task(arguments, environment={"XDG_CACHE_HOME": str(own / "cache")})

    def check(own: Path) -> str:
        begun = (own / "out" / RUN).exists()
        return (_problem(lambda: read_run(own / "out")) if begun else "") or _check_results(own)

    yield from interrupt(trials, rng, folder, task=task, check=check, seconds=4.0, ends=False)


@campaign("Ctrl-C in data fetch", trials=TRIALS, dose=DOSE, parts=PARTS)
def fetch(trials: int, rng: np.random.Generator, folder: Path) -> Iterator[Trial]:
    from sparcets.data.fetch import content_digest

    with Server(seconds=1.0) as fast, Server(seconds=60.0) as slow:
        archive = folder / "archive.zip"
        archive.write_bytes(fast.content)
        expected = content_digest(archive)

        def task(own: Path, rng: np.random.Generator) -> Task:
            # A command started from nothing expects the whole archive of the authors, and does not come to its end.
            url = fast.url if own.name.isdigit() and int(own.name) % REAL != 1 else slow.url
            arguments = ["data", "fetch", "motionsense", "--folder", str(own), "--url", url]
            return Task(arguments, setup="tests.campaigns.site:expect_small_archive")

        def check(own: Path) -> str:
            file = own / "motionsense" / ARCHIVE
            return "the file is not whole" if file.exists() and content_digest(file) != expected else ""

        yield from interrupt(trials, rng, folder, task=task, check=check, seconds=1.5)
        fast.shutdown()
        slow.shutdown()


@campaign("Ctrl-C in studio", trials=TRIALS, dose=DOSE, parts=PARTS)
def studio(trials: int, rng: np.random.Generator, folder: Path) -> Iterator[Trial]:
    from sparcets.studio.workspace import Workspace

    here = site()  # before any trial: the nursery makes one thing at a time

    def task(own: Path, rng: np.random.Generator) -> Task:
        return Task(["studio", "--port", "0", "--workspace", str(own / "w"), "--device", "cpu"])

    def begin(process: Process, rng: np.random.Generator) -> None:
        """Often wait for the studio, upload data, and mostly have it train a classifier on them."""
        if rng.random() < 0.3:
            return
        address, token = _address(process)
        sent = _post(f"{address}/api/v1/datasets/upload?filename=own.npz", here.data.read_bytes(), token)
        if rng.random() < 0.8:
            _post(f"{address}/api/v1/classifiers", {"dataset": sent["id"], "architecture": "bilstm"}, token)

    def check(own: Path) -> str:
        if not (own / "w").exists():
            return ""
        workspace = Workspace(own / "w")
        listed = [record.id for record in (*workspace.datasets(), *workspace.classifiers(), *workspace.explainers())]
        whole = [
            path.name for kind in ("datasets", "classifiers") for path in (own / "w" / kind).iterdir()
            if not path.name.startswith(".")
        ]  # fmt: skip
        return "" if sorted(listed) == sorted(whole) else f"the studio lists {listed} of {whole}"

    yield from interrupt(trials, rng, folder, task=task, check=check, seconds=1.5, ends=False, begin=begin)


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
