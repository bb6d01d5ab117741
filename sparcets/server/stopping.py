"""The end of a server: the first signal lets it finish what it has taken, the second ends it at once."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import uvicorn

from sparcets import interrupts
from sparcets.server.batching import Batcher

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StoppableServer(uvicorn.Server):
    """A server that accepts nothing after SIGTERM or Ctrl-C, answers what it has taken, and ends in time.

    Parameters
    ----------
    config
        Of uvicorn.
    batcher
        What has no answer in time is refused by it.
    seconds
        Time from the signal to the refusal.
    """

    def __init__(self, config: uvicorn.Config, batcher: Batcher, seconds: float) -> None:
        super().__init__(config)
        self._batcher, self._seconds = batcher, seconds
        self._received: list[int] = []

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Handle signals while the server runs."""
        self._loop = asyncio.get_running_loop()
        heard = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]  # not as by nohup
        before: dict[int, Any] = {number: signal.signal(number, self.handle_exit) for number in heard}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        if signal.SIGINT in self._received:
            signal.raise_signal(signal.SIGINT)  # the command says that it was stopped, and exits with 130

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop, or end at once."""
        self._received.append(sig)
        if len(self._received) > 1:
            interrupts.end()
        self.should_exit = True
        self._loop.call_soon_threadsafe(self._loop.call_later, self._seconds, self._batcher.abandon)
