"""Processes of the studio: each gets its task as a line of JSON on stdin, and exits when the studio does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

NICENESS = 10  # requests have priority
TERMINATE_TIMEOUT = 3.0  # seconds from terminate to kill


def command(module: str) -> list[str]:
    """Return the command that runs ``main`` of a module, which is found where this process finds it.

    With ``python -m``, Python would look for modules in the current folder first, in which others may be able to write.
    """
    return [
        sys.executable,
        "-c",
        f"import sys; sys.path[:] = {sys.path!r}; from {module} import main; sys.exit(main())",
    ]


def start(command: Sequence[str], task: Mapping[str, Any], environment: Mapping[str, str]) -> subprocess.Popen[str]:
    """Start a process, in a thread in which Ctrl-C is blocked; its stdout can be read."""
    process = subprocess.Popen(
        list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}
    )
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # it has ended, which its exit code tells
        process.stdin.write(json.dumps(task) + "\n")
        process.stdin.flush()  # not closed: the process exits when stdin closes
    return process


def block_interrupts() -> None:
    """Block Ctrl-C in this thread and in the processes that it starts: it is for the studio, which ends them."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def close(process: subprocess.Popen[str]) -> None:
    """Close the pipes of a process that has ended."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(BrokenPipeError):  # the task was not read
                pipe.close()


def stop(process: subprocess.Popen[str] | None) -> None:
    """End a process, and wait until it has ended."""
    if process is None or process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(TERMINATE_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def begin() -> dict[str, Any]:
    """Return the task of this process, which steps back behind requests and exits when the studio does."""
    task: dict[str, Any] = json.loads(sys.stdin.readline())
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    return task


def _exit_with_parent() -> None:
    sys.stdin.read()
    os._exit(1)
