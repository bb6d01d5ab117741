"""Ctrl-C ends the command: soon, with one line, and with no process left behind.

Python raises KeyboardInterrupt in the main thread, which is not enough for that: an import may turn it into another
error, a finaliser drops it, a long call into C delays it, and so does the wait for another thread. What an exception
cannot end within a few seconds is ended by a thread that watches. Files are safe, as they are if the process is killed.

Imports next to nothing, because Ctrl-C is handled only after this module was loaded.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

TYPE_CHECKING = False  # as typing has it, which takes longer to import than all of this
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, NoReturn

INTERRUPTED = 130  # exit code after Ctrl-C
GRACE = 3.0  # seconds from Ctrl-C to the end of a process that has not stopped by itself
_grace = GRACE
_installed: Interruption | None = None


class Interruption:
    """What Ctrl-C does to this process: an exception first and, where that is not enough, the end.

    Parameters
    ----------
    line
        Written to stderr when the process ends.
    """

    def __init__(self, line: str) -> None:
        self.requested = False
        self._lines = [f"{line}\n".encode()]  # taken by the one that writes it

    def install(self) -> None:
        """Handle Ctrl-C from now on; not if this process was started to ignore it, as by nohup."""
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            return
        global _installed
        _installed = self
        signal.signal(signal.SIGINT, self._interrupt)
        sys.unraisablehook = self._unraisable
        # The signal's number is written to a pipe at once, whatever the main thread is doing.
        woken, wake = os.pipe()
        if hasattr(os, "set_blocking"):  # required where it exists
            os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        threading.Thread(target=self._watch, args=(woken,), daemon=True).start()

    def close(self) -> None:
        """Ignore Ctrl-C from now on: everything is done, and Python's own end must not be disturbed."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def end(self) -> NoReturn:
        """End this process and those it has started, at once and without waiting for threads."""
        _kill_children()
        try:
            os.write(2, self._lines.pop())
        except IndexError:
            time.sleep(0.2)  # another thread is writing it
        except OSError:
            pass  # nobody reads stderr
        os._exit(INTERRUPTED)

    def _interrupt(self, _: int, frame: FrameType | None) -> None:
        # Extension modules do not survive an exception in their import. A second Ctrl-C means: at once.
        if self.requested or _importing(frame):
            self.end()
        self.requested = True
        if warnings := sys.modules.get("warnings"):
            warnings.simplefilter("ignore")  # what is left half done warns, for instance coroutines
        raise KeyboardInterrupt

    def _unraisable(self, dropped: Any) -> None:
        if issubclass(dropped.exc_type, KeyboardInterrupt):
            self.end()
        if not self.requested:  # afterwards, objects that were interrupted in their making fail to be deleted
            sys.__unraisablehook__(dropped)

    def _watch(self, woken: int) -> None:
        while signal.SIGINT not in os.read(woken, 64):
            pass  # another signal
        # Threads that are still at work may fail on what the main thread takes away; their messages would mislead.
        threading.excepthook = lambda _: None
        if logging := sys.modules.get("logging"):
            logging.disable(logging.CRITICAL)
        time.sleep(_grace)
        self.end()


def allow(seconds: float) -> None:
    """Let this process take so long to stop by itself after Ctrl-C, from now on."""
    global _grace
    _grace = seconds


def end() -> NoReturn:
    """End this process and those it has started at once, as a second Ctrl-C does."""
    (_installed or Interruption("sparcets: stopped")).end()


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _kill_children() -> None:
    """Kill the processes that this one has started; where there is no /proc, they notice its end by themselves."""
    # Not by pathlib: the main thread may be importing it, and this must not wait for an import.
    try:
        tasks = os.listdir("/proc/self/task")  # noqa: PTH208
    except OSError:
        return
    for task in tasks:
        try:
            with open(f"/proc/self/task/{task}/children") as file:  # noqa: PTH123
                for pid in file.read().split():
                    os.kill(int(pid), signal.SIGKILL)
        except OSError:
            pass  # a thread or a process that has ended meanwhile
