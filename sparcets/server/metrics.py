"""What Prometheus is told of the server: requests, times, batches, the queue and the workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
SIZES = (1, 2, 4, 8, 16, 32, 64)
OTHER = "other"  # paths that do not exist, which would fill the memory of Prometheus


class Metrics:
    """Counts in one process: that of the server, which all requests pass and which knows its workers.

    Parameters
    ----------
    paths
        Paths that are told apart.
    """

    def __init__(self, paths: tuple[str, ...]) -> None:
        self._paths, self.registry = paths, CollectorRegistry()
        to: dict[str, Any] = {"registry": self.registry}
        self._requests = Counter("sparcets_requests_total", "Requests by path and status.", ["path", "status"], **to)
        self._seconds = Histogram(
            "sparcets_request_seconds",
            "Time from the header of a request to its response.",
            ["path"],
            buckets=SECONDS,
            **to,
        )
        self._batch = Histogram("sparcets_batch_series", "Series that were explained together.", buckets=SIZES, **to)
        self._batch_seconds = Histogram(
            "sparcets_batch_seconds", "Time that a worker took for a batch.", buckets=SECONDS, **to
        )
        self._deaths = Counter("sparcets_worker_deaths_total", "Workers that ended and were replaced.", **to)
        self._queue = Gauge("sparcets_queued_series", "Series that wait or are being explained.", **to)
        self._workers = Gauge("sparcets_ready_workers", "Workers that can explain.", **to)
        ProcessCollector(registry=self.registry)

    def observe(self, *, queued: Callable[[], int], ready: Callable[[], int]) -> None:
        """Ask for the length of the queue and the number of workers whenever Prometheus does."""
        self._queue.set_function(queued)
        self._workers.set_function(ready)

    def count_batch(self, size: int, seconds: float) -> None:
        """Count a batch that was explained."""
        self._batch.observe(size)
        self._batch_seconds.observe(seconds)

    def count_death(self) -> None:
        """Count a worker that ended."""
        self._deaths.inc()

    def count_request(self, path: str, status: int, seconds: float) -> None:
        """Count a request that was answered or refused."""
        known = path if path in self._paths else OTHER
        self._requests.labels(known, str(int(status))).inc()  # Python 3.10 writes the name of an HTTPStatus
        self._seconds.labels(known).observe(seconds)

    def text(self) -> bytes:
        """Return all of it in the format of Prometheus."""
        return generate_latest(self.registry)
