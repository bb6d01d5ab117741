"""Limits on requests; a request above a limit gets a 4xx response that names it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sparcets.web.requests import MIB, WebLimits

UPLOADS = re.compile(r"/api/v1/datasets/(upload|[^/]+/recordings)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits(WebLimits):
    """Limits per request and for all requests together."""

    upload_bytes: int = 64 * MIB  # size of an uploaded file
    uploads: int = 4  # files that are received or read at the same time
    readers: int = 2  # of them, files that are read
    reader_bytes: int = 2048 * MIB  # memory of the process that reads an uploaded file
    reader_seconds: float = 120.0  # its time
    unpacked_bytes: int = 512 * MIB  # uncompressed size of an .npz file, and of the series of any file
    columns: int = 100_000  # of a .csv file
    series_values: int = 1_000_000  # values of one series, which the page draws
    record_bytes: int = MIB  # names of features and classes, which the page loads
    rows: int = 64  # queries per request
    answers: int = 5  # counterfactuals per query
    exported_rows: int = 500  # queries of one file; those that are not explained yet count as those of a request
    queued_requests: int = 32  # queued requests
    queued_jobs: int = 8  # queued training jobs
    job_seconds: float = 4 * 3600.0  # time limit of one training job
    cached_models: int = 8  # LRU cache size for data sets, classifiers and explainers, each
    answer_bytes: int = 256 * MIB  # LRU cache size for answers: a slider moves back and forth, and files need them

    def max_bytes(self, path: str) -> int:
        """Return the largest size of a request to a path."""
        return self.upload_bytes if UPLOADS.fullmatch(path) else self.body_bytes
