"""What Prometheus is told of the server: requests, times, batches, the queue and the workers."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

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
