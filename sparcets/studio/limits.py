"""How much one request may ask for; what is beyond gets a 4xx answer that names the limit."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 2**20


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What one request, and all together, may take."""

    upload_bytes: int = 64 * MIB  # of an uploaded file
    unpacked_bytes: int = 512 * MIB  # of what a compressed .npz holds
    body_bytes: int = 8 * MIB  # of any other request
    rows: int = 64  # queries explained in one request
    answers: int = 5  # different answers to one query
    seconds: float = 30.0  # until a request is answered, training apart
    waiting: int = 32  # requests that wait for their turn
    jobs_waiting: int = 8  # trainings that wait for their turn
    job_seconds: float = 4 * 3600.0  # of one training
    loaded: int = 8  # data sets, classifiers and explainers of each kind held in memory
    remembered: int = 200  # answers held in memory: a slider goes back and forth
