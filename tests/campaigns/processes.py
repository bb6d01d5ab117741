"""Processes for campaigns that interrupt and kill: ``sparcets`` as a command, or a function of a campaign.

Most are forked from a server that has imported everything, so that a trial takes about a second. Some are commands
started from nothing, so that imports are interrupted too.
"""

import atexit
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from itertools import count
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
MARK = "SPARCETS_TRIAL"  # in the environment of every process of a trial, with a value of its own
DEADLINE = 120.0  # seconds after which a trial that should have ended long ago is given up
PREPARED = b"."  # written when a process may be disturbed

# Imported by the server, once for all trials.
IMPORTED = """
torch torch._dynamo matplotlib.figure typer pandas sklearn.ensemble scipy.stats uvicorn sparcets.__main__
sparcets.cli.main sparcets_paper.reproduce.run sparcets_paper.benchmark.runner sparcets.methods.own.explainer
sparcets.methods.nearest sparcets.methods.ics sparcets.studio.app sparcets.server.app sparcets.data.fetch
sparcets.testing.mocks sparcets.models.network sparcets.methods.folder sparcets.data.load tests.campaigns.processes
""".split()
# What changes files, as audit events name it. A process is killed before the n-th of them.
FILE_EVENTS = frozenset(
    f"os.{name}" for name in ("rename", "remove", "mkdir", "rmdir", "link", "chmod", "truncate")
) | {"open", "fcntl.flock", "ctypes.dlsym", "tempfile.mkstemp", "tempfile.mkdtemp", "shutil.rmtree"}

# Before the command handles signals, there is Python's own start, in which it would end by a traceback.
REAL = """
import os, sys
from sparcets.__main__ import Interruption, command
ready, install = int(sys.argv.pop(1)), Interruption.install
def install_and_say(self):
    install(self)
    os.write(ready, b".")
Interruption.install = install_and_say
command()
"""
_numbers = count()


@dataclass(frozen=True)
class Task:
    """What a process does: ``sparcets`` with these arguments, or a function with these arguments.

    Attributes
    ----------
    arguments
        Of the command line, or of the function; plain values.
    function
        ``"module:name"``; None for the command line.
    setup
        ``"module:name"`` of a function without arguments that is called first, in forked processes.
    at_event
        Kill the process before this change of a file; None does not.
    """

    arguments: Sequence[Any]
    function: str | None = None
    setup: str | None = None
    at_event: int | None = None
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Ended:
    """A process that has ended, and what it left."""

    code: int
    out: str
    err: str
    seconds: float  # since the signal, or since the start if there was none
    survivors: tuple[int, ...]
    events: int


class Process:
    """A running trial.

    Parameters
    ----------
    task
        What it does.
    folder
        For its output; a fresh one.
    fork
        Whether it is forked from the nursery, or a command started from nothing.
    """

    def __init__(self, task: Task, folder: Path, *, fork: bool = True) -> None:
        self.mark = f"{os.getpid()}-{next(_numbers)}"
        self.files = [folder / f"trial-{self.mark}.{name}" for name in ("out", "err", "events")]
        environment = {MARK: self.mark, **task.environment}
        self._command: subprocess.Popen[bytes] | None = None
        if fork:
            ready, write = multiprocessing.Pipe(duplex=False)
            arguments = (task, environment, self.files, write)
            self._forked = _server().Process(target=_become, args=arguments, daemon=True)  # ended with the campaign
            self._forked.start()
            write.close()
            with suppress(EOFError):  # it has ended
                assert ready.recv_bytes() == PREPARED
            self.pid = int(self._forked.pid or 0)
        else:
            self._start(task, environment)
        self.started = self._signalled = time.monotonic()

    def _start(self, task: Task, environment: dict[str, str]) -> None:
        ready, write = os.pipe()
        with self.files[0].open("wb") as out, self.files[1].open("wb") as err:
            self._command = subprocess.Popen(
                [sys.executable, "-c", REAL, str(write), *task.arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env={**_environment(), **environment},
                pass_fds=[write],
                start_new_session=True,
            )
        os.close(write)
        assert os.read(ready, 1) == PREPARED
        os.close(ready)
        self.pid = self._command.pid

    def signal(self, number: int, *, group: bool) -> None:
        """Send a signal, to all processes of the group as a terminal does it, or to the first alone."""
        with suppress(ProcessLookupError):  # it was faster
            (os.killpg if group else os.kill)(self.pid, number)
        self._signalled = time.monotonic()

    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self._command.poll() is None if self._command else self._forked.is_alive()

    def err(self) -> str:
        """Return what it has written to stderr so far."""
        return self.files[1].read_text(encoding="utf-8")

    def wait(self, seconds: float = DEADLINE, survivors_seconds: float = 5.0) -> Ended:
        """Wait for the end; a process that takes too long is killed, and reported by its duration."""
        code = self._wait(seconds)
        lasted = time.monotonic() - self._signalled
        end = time.monotonic() + survivors_seconds
        while (survivors := self.survivors()) and time.monotonic() < end:
            time.sleep(0.02)
        for pid in survivors:
            os.kill(pid, signal.SIGKILL)
        out, err = (file.read_text(encoding="utf-8") for file in self.files[:2])
        events = int(self.files[2].read_text()) if self.files[2].exists() else 0
        for file in self.files:
            file.unlink(missing_ok=True)
        return Ended(code, out, err, lasted, survivors, events)

    def _wait(self, seconds: float) -> int:
        end = time.monotonic() + seconds
        while self.running() and time.monotonic() < end:
            time.sleep(0.005)
        if self.running():
            os.killpg(self.pid, signal.SIGKILL)
        if self._command:
            return self._command.wait()
        self._forked.join()
        return int(self._forked.exitcode or 0)

    def survivors(self) -> tuple[int, ...]:
        """Return the processes that the trial has started and that are still alive."""
        marked = f"{MARK}={self.mark}\0".encode()
        return tuple(pid for pid in _processes() if _session(pid) == self.pid or marked in _read(pid, "environ"))


def run(task: Task, folder: Path, *, fork: bool = True) -> Ended:
    """Run a task to its end, undisturbed."""
    return Process(task, folder, fork=fork).wait()


def killed(task: Task, folder: Path, rng: np.random.Generator, undisturbed: Ended) -> tuple[str, Ended]:
    """Kill a task at a random moment: mostly before one of its changes of files, else at any time; say when."""
    if undisturbed.events and rng.random() < 0.7:
        at = int(rng.integers(1, undisturbed.events + 1))
        return f"killed before change {at} of a file", run(Task(**{**vars(task), "at_event": at}), folder)
    after = float(rng.uniform(0, 1.05 * undisturbed.seconds))
    process = Process(task, folder)
    time.sleep(max(0.0, process.started + after - time.monotonic()))
    process.signal(signal.SIGKILL, group=False)
    return f"killed after {after:.3f} s", process.wait()


@cache
def _server() -> Any:
    """Return the context of processes that are forked from a server that has imported everything."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(IMPORTED)
    before = dict(os.environ)
    os.environ.update(_environment())
    try:
        forkserver.ensure_running()
    finally:
        os.environ.clear()
        os.environ.update(before)
    return context


def _environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}


def _processes() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""  # it has ended, or is another user's


def _session(pid: int) -> int | None:
    fields = _read(pid, "stat").rpartition(b")")[2].split()
    return int(fields[3]) if fields and fields[0] != b"Z" else None  # a zombie has ended


def _become(task: Task, environment: dict[str, str], files: Sequence[Path], ready: Connection) -> NoReturn:
    """Carry out a task in this process, as if it had been started for that."""
    gc.freeze()  # else the first collection would copy all that the server has imported
    os.setsid()
    out, err, events = files
    for number, name, flags in ((0, os.devnull, os.O_RDONLY), (1, out, os.O_WRONLY), (2, err, os.O_WRONLY)):
        os.dup2(os.open(name, flags | os.O_CREAT), number)
    vars(multiprocessing.current_process())["_config"]["daemon"] = False  # it may start processes of its own,
    vars(resource_tracker._resource_tracker)["_fd"] = None  # and a tracker, which writes to its stderr
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.modules["__main__"] = import_module("sparcets.__main__")  # which processes that it spawns import
    if task.setup:
        _named(task.setup)()
    _count_file_events(task.at_event, events)
    code: Any = 1
    try:
        if task.function:
            ready.send_bytes(PREPARED)
            code = _named(task.function)(*task.arguments)
        else:
            _say_when_installed(ready)
            sys.argv = ["sparcets", *task.arguments]
            _named("sparcets.__main__:command")()
    except SystemExit as stop:
        code = stop.code
    except BaseException:
        traceback.print_exc()
    # Without the end of the interpreter, which would copy all that it shares with the server.
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(int(code or 0))


def _say_when_installed(ready: Connection) -> None:
    from sparcets.interrupts import Interruption

    install = Interruption.install

    def install_and_say(self: Interruption) -> None:
        install(self)
        ready.send_bytes(PREPARED)

    Interruption.install = install_and_say  # type: ignore[method-assign]


def _named(name: str) -> Any:
    module, _, function = name.partition(":")
    return getattr(import_module(module), function)


def _count_file_events(at: int | None, file: Path) -> None:
    seen = 0

    def hook(event: str, arguments: Any) -> None:
        nonlocal seen
        if event not in FILE_EVENTS or (event == "open" and not (arguments[2] & (os.O_WRONLY | os.O_RDWR))):
            return
        seen += 1
        if seen == at:
            os.kill(os.getpid(), signal.SIGKILL)

    def write() -> None:
        nonlocal at
        at, number = None, seen
        file.write_text(str(number))

    atexit.register(write)
    sys.addaudithook(hook)
