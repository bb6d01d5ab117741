"""Thinking ahead: what may be asked next is worked out in a process of its own while nobody waits.

A slider has a dozen stops, and the tightest take the longest. The page says which questions may come next; a helper
process (``python -m sparcets.studio.ahead WORKSPACE DEVICE``) answers them one by one, on another core and politely.
It reads questions as lines of JSON and writes answers as lines of JSON, and ends when stdin is closed.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sparcets.errors import SparcetsError
from sparcets.studio.errors import ApiError
from sparcets.studio.models import Answers, Question

log = logging.getLogger(__name__)
POLITE = 5  # niceness: what is asked now comes first
NOTHING = "null"  # for a question that has no answer: the reason is told when it is really asked


class Ahead:
    """The questions that may come next, and the process that works on them.

    Parameters
    ----------
    workspace
        Folder of the studio.
    device
        Where the models run.
    keep
        Takes a question, as JSON, and its answers.
    """

    def __init__(self, workspace: Path, device: str, keep: Callable[[str, Answers], None]) -> None:
        self._command = [sys.executable, "-m", "sparcets.studio.ahead", str(workspace), device]
        self._keep = keep
        self._changed = threading.Condition()
        self._coming: list[str] = []
        self._now: str | None = None  # being worked on
        self._process: subprocess.Popen[str] | None = None
        self._over = False

    def think(self, questions: Sequence[str]) -> None:
        """Work on these, the likeliest first, and no longer on others that have not been begun."""
        with self._changed:
            self._coming = list(questions)
            self._next()

    def wait_for(self, question: str, seconds: float) -> None:
        """Wait for an answer that is being worked on; what has not been begun is left to whoever asks."""
        with self._changed:
            if question in self._coming:
                self._coming.remove(question)
            self._changed.wait_for(lambda: self._now != question, seconds)

    def close(self) -> None:
        """End the process."""
        with self._changed:
            self._over, self._coming = True, []
            process = self._process
        if process is not None and process.poll() is None:
            process.terminate()
            process.wait()

    def _next(self) -> None:
        if self._now is not None or not self._coming or self._over:
            return
        try:
            if self._process is None:
                self._process = self._start()
            assert self._process.stdin is not None
            self._process.stdin.write(self._coming[0] + "\n")
            self._process.stdin.flush()
            self._now = self._coming.pop(0)
        except OSError as error:  # the studio answers all the same, only not ahead of time
            log.warning("the studio no longer thinks ahead: %s", error)
            self._over = True

    def _start(self) -> subprocess.Popen[str]:
        process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self._listen, args=(process,), name="ahead", daemon=True).start()
        return process

    def _listen(self, process: subprocess.Popen[Any]) -> None:
        for line in process.stdout or ():
            with self._changed:
                if self._now is not None and line.strip() != NOTHING:
                    self._keep(self._now, Answers.model_validate_json(line))
                self._now = None
                self._next()
                self._changed.notify_all()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
        with self._changed:
            self._over, self._now = True, None
            self._changed.notify_all()


def main(workspace: str, device: str) -> None:
    """Answer the questions on stdin until it is closed."""
    import torch

    from sparcets.studio.desk import Desk
    from sparcets.studio.limits import Limits
    from sparcets.studio.workspace import Workspace

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the studio's to deal with
    if hasattr(os, "nice"):
        os.nice(POLITE)
    torch.set_num_threads(1)
    stdout, sys.stdout = sys.stdout, sys.stderr  # whatever else prints does not stand in the way of the answers
    desk = Desk(Workspace(Path(workspace)), Limits(), device)
    for line in sys.stdin:
        try:
            said = desk.answer(Question.model_validate_json(line)).model_dump_json()
        except (SparcetsError, ApiError):
            said = NOTHING
        stdout.write(said + "\n")
        stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
