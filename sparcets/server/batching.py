"""Collects series of all requests in batches: those with one question and one shape are explained together.

A series waits at most some milliseconds for others, and longer only while all workers are busy; meanwhile its batch
grows. What a series is batched with does not change its answer. The number of series that wait is limited, so that a
server with too much to do refuses soon what it could not answer in time.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

from sparcets.server.answers import Failure, Outcome, Query
from sparcets.server.pool import Worker
from sparcets.web.errors import ApiError
from sparcets.web.requests import WebLimits


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerLimits(WebLimits):
    """Limits per request and for all requests together."""

    series: int = 64  # series per request
    answers: int = 5  # counterfactuals per series
    queued_series: int = 128  # series per worker that wait or are being explained; above it, 429
    batch_series: int = 64  # series that a worker explains at a time
    batch_seconds: float = 0.005  # how long a series waits for others with the same options
    stop_seconds: float = 8.0  # time in which a server that is stopped finishes what it has taken
    # Programs keep their connections, and open one for each request that waits.
    connections: int = 1024
    header_seconds: float = 60.0
    silent_seconds: float = 15.0
    busy_status: int = 429


SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
SIZES = (1, 2, 4, 8, 16, 32, 64)


class Metrics:
    """Counts in one process: that of the server, which all requests pass and which knows its workers."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        to: dict[str, Any] = {"registry": self.registry}
        self.requests = Counter("sparcets_requests_total", "Requests by path and status.", ["path", "status"], **to)
        self.request_seconds = Histogram(
            "sparcets_request_seconds",
            "Time from the header of a request to its response.",
            ["path"],
            buckets=SECONDS,
            **to,
        )
        self.batch = Histogram("sparcets_batch_series", "Series that were explained together.", buckets=SIZES, **to)
        self.batch_seconds = Histogram(
            "sparcets_batch_seconds", "Time that a worker took for a batch.", buckets=SECONDS, **to
        )
        self.deaths = Counter("sparcets_worker_deaths_total", "Workers that ended and were replaced.", **to)
        self.queue = Gauge("sparcets_queued_series", "Series that wait or are being explained.", **to)
        self.workers = Gauge("sparcets_ready_workers", "Workers that can explain.", **to)
        ProcessCollector(registry=self.registry)


log = logging.getLogger(__name__)
SMOOTHING = 0.2  # weight of the last batch in the mean time per series
LONGEST_RETRY = 60  # seconds, of the header Retry-After
Key = tuple[Any, ...]  # of a group; the first is its question


@dataclass(eq=False, slots=True)
class _Waiting:
    """A series that waits for its answers."""

    query: Query
    since: float
    outcome: asyncio.Future[Outcome]
    deaths: int = 0  # workers that ended while they explained it


class Batcher:
    """Explains series with workers that have started; all methods are called in the event loop."""

    def __init__(self, workers: Sequence[Worker], limits: ServerLimits, metrics: Metrics) -> None:
        self._workers, self._free, self._limits, self._metrics = workers, list(workers), limits, metrics
        self._groups: dict[Key, list[_Waiting]] = {}  # series that can be explained together, the oldest first
        self._open: set[_Waiting] = set()  # waiting, or being explained
        self._timer: asyncio.TimerHandle | None = None
        self._seconds = 0.0  # mean time of a worker per series
        self._dead = 0

    @property
    def queued(self) -> int:
        """Number of series that wait or are being explained."""
        return len(self._open)

    @property
    def ready(self) -> int:
        """Number of workers that can explain."""
        return len(self._workers) - self._dead

    def watch(self) -> None:
        """Replace from now on also workers that die while they have nothing to do."""
        for worker in self._workers:
            self._watch(worker)

    async def explain(self, question: str, queries: Sequence[Query]) -> list[Outcome]:
        """Return the answers to the series of one request; raise a 4xx or 5xx error if there is no room or no time."""
        self.check_room(len(queries))
        loop, now = asyncio.get_running_loop(), time.monotonic()
        added = [_Waiting(query, now, loop.create_future()) for query in queries]
        for one in added:
            self._add((question, one.query.X.shape, tuple(one.query.side or ())), one)
        self._pump()
        futures = [one.outcome for one in added]
        try:
            return await asyncio.wait_for(asyncio.gather(*futures), self._limits.seconds)
        except (TimeoutError, asyncio.TimeoutError):
            message = f"no answer within {self._limits.seconds:g} s. Ask for fewer series at a time, or again later."
            raise ApiError(503, "too_slow", message, headers=self._retry_after()) from None
        finally:
            self._open.difference_update(added)  # what nobody waits for is not explained

    def abandon(self) -> None:
        """Refuse all that has no answer yet: the server stops."""
        for one in self._open:
            self._settle(one, Failure(503, "stopping", "the server stops. Send the request again."))

    def check_room(self, number: int = 1) -> None:
        """Raise a 429 error if so many more series are too many, or could not be answered in time."""
        wait = self._expected_wait(number)
        room = self._limits.queued_series * len(self._workers) - self.queued
        if (number > room and self.queued) or wait > self._limits.seconds:
            about = f", which take about {wait:.0f} s" if wait >= 1 else ""
            message = f"{self.queued} series wait already{about}. Try again in a moment."
            raise ApiError(429, "busy", message, headers=self._retry_after())

    def _expected_wait(self, number: int = 0) -> float:
        if not self.queued:
            return 0.0
        return (self.queued + number) * self._seconds / max(1, self.ready)

    def _retry_after(self) -> dict[str, str]:
        return {"Retry-After": str(min(LONGEST_RETRY, max(1, math.ceil(self._expected_wait() / 2))))}

    def _add(self, key: Key, one: _Waiting) -> None:
        self._open.add(one)
        self._groups.setdefault(key, []).append(one)

    def _pump(self) -> None:
        """Give free workers what has waited long enough, or call this again when something has."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._free and self._groups:
            key = min(self._groups, key=self._due)
            wait = self._due(key) - time.monotonic()
            if wait > 0:
                self._timer = asyncio.get_running_loop().call_later(wait, self._pump)
                return
            if batch := self._take(key):
                self._run(self._free.pop(), key[0], batch)

    def _due(self, key: Key) -> float:
        waiting = self._groups[key]
        full = len(waiting) >= self._limits.batch_series
        return waiting[0].since + (0.0 if full else self._limits.batch_seconds)

    def _take(self, key: Key) -> list[_Waiting]:
        """Return the oldest series of a group that somebody still waits for."""
        group = self._groups[key]
        batch = group[: self._limits.batch_series]
        del group[: self._limits.batch_series]
        if not group:
            del self._groups[key]
        return [one for one in batch if one in self._open]

    def _run(self, worker: Worker, question: str, batch: list[_Waiting]) -> None:
        began = time.monotonic()
        asked = asyncio.wrap_future(worker.ask(question, [one.query for one in batch]))
        asked.add_done_callback(lambda answered: self._finish(worker, question, batch, began, answered))

    def _finish(
        self, worker: Worker, question: str, batch: list[_Waiting], began: float, answered: asyncio.Future[Any]
    ) -> None:
        if answered.cancelled():  # the server has ended
            return
        error = answered.exception()
        if error is None:
            seconds = time.monotonic() - began
            self._seconds += SMOOTHING * (seconds / len(batch) - self._seconds)
            self._metrics.batch.observe(len(batch))
            self._metrics.batch_seconds.observe(seconds)
            for one, outcome in zip(batch, answered.result(), strict=True):
                self._settle(one, outcome)
            self._free.append(worker)
        else:
            log.warning("a worker is replaced: %s", error)
            self._retry(worker, question, batch)
        self._pump()

    def _retry(self, worker: Worker, question: str, batch: list[_Waiting]) -> None:
        """Replace a worker that died; each of its series is explained again by itself, as it may be the cause."""
        self._dead += 1
        self._metrics.deaths.inc()
        loop = asyncio.get_running_loop()
        worker.replace(lambda: loop.call_soon_threadsafe(self._back, worker))
        for one in batch:
            one.deaths += 1
            if one.deaths > 1:
                message = "the worker that explained this series ended twice; see the log of the server."
                self._settle(one, Failure(500, "worker_died", message))
            elif one in self._open:
                self._add((question, one), one)

    def _watch(self, worker: Worker) -> None:
        loop = asyncio.get_running_loop()
        worker.watch(lambda: loop.call_soon_threadsafe(self._missed, worker))

    def _missed(self, worker: Worker) -> None:
        if worker in self._free:  # else who waits for its answer is told
            self._free.remove(worker)
            self._retry(worker, "", [])

    def _back(self, worker: Worker) -> None:
        self._watch(worker)
        self._dead -= 1
        self._free.append(worker)
        self._pump()

    @staticmethod
    def _settle(one: _Waiting, outcome: Outcome) -> None:
        if not one.outcome.done():
            one.outcome.set_result(outcome)
