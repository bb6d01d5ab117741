"""Trainings: queued, run one after the other in processes of their own, watched, and cancelled at any moment."""

from __future__ import annotations

import json
import logging
import os
import queue
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any

from sparcets.studio.errors import ApiError
from sparcets.studio.limits import Limits
from sparcets.studio.models import ErrorBody, FitExplainer, Job, TrainClassifier
from sparcets.studio.workspace import Kind, Workspace, new_id

log = logging.getLogger(__name__)
WORKER = [sys.executable, "-m", "sparcets.studio.worker"]
KEPT = 50  # finished jobs that are remembered
PATIENCE = 3.0  # seconds a process has to end by itself


@dataclass
class _Entry:
    job: Job
    request: TrainClassifier | FitExplainer
    process: subprocess.Popen[str] | None = None
    begun: float = 0.0


class Jobs:
    """The trainings of one studio.

    Parameters
    ----------
    workspace
        Where they put what they made.
    limits
        How many may wait, and how long one may take.
    seed, device
        Of every training.
    """

    def __init__(self, workspace: Workspace, limits: Limits, *, seed: int = 0, device: str = "auto") -> None:
        self.workspace, self.limits, self.seed, self.device = workspace, limits, seed, device
        self._entries: dict[str, _Entry] = {}
        self._lock = threading.RLock()
        self._queue: queue.Queue[str | None] = queue.Queue()
        self._thread = threading.Thread(target=self._work, name="jobs", daemon=True)
        self._thread.start()

    def submit(self, request: TrainClassifier | FitExplainer) -> Job:
        """Queue a training."""
        is_classifier = isinstance(request, TrainClassifier)
        what = request.architecture if isinstance(request, TrainClassifier) else request.method
        parent = request.dataset if isinstance(request, TrainClassifier) else request.classifier
        job = Job(
            id=new_id(what, *(["quick"] if request.preset == "tiny" else [])),
            kind="classifier" if is_classifier else "explainer",
            title=f"training {what}" if is_classifier else f"fitting {what}",
            parent=parent,
            state="queued",
            stage="waiting for its turn",
        )
        with self._lock:
            waiting = sum(e.job.state == "queued" for e in self._entries.values())
            if waiting >= self.limits.jobs_waiting:
                raise ApiError(429, "busy", f"{waiting} trainings are waiting already. Wait for one, or cancel one.")
            self._entries[job.id] = _Entry(job, request)
            for old in [k for k, e in self._entries.items() if e.job.state not in ("queued", "running")][:-KEPT]:
                del self._entries[old]
        self._queue.put(job.id)
        return job

    def all(self) -> list[Job]:
        """Return all jobs that are remembered, the oldest first."""
        with self._lock:
            return [self._now(entry) for entry in self._entries.values()]

    def get(self, name: str) -> Job:
        """Return one job."""
        with self._lock:
            return self._now(self._entry(name))

    def cancel(self, name: str) -> Job:
        """Stop a job at once; nothing of it is left."""
        with self._lock:
            entry = self._entry(name)
            if entry.job.state not in ("queued", "running"):
                raise ApiError(409, "finished", f"{entry.job.title} is {entry.job.state} already.")
            self._finish(entry, "cancelled")
            process = entry.process
        _stop(process)
        self.workspace.forget_unfinished(_folder(entry.job), entry.job.id)
        return entry.job

    def check_unused(self, name: str) -> None:
        """Refuse to let go of what a training needs."""
        users = [j.title for j in self.all() if j.parent == name and j.state in ("queued", "running")]
        if users:
            raise ApiError(409, "in_use", f"{name} is needed by {users[0]}, which is going on. Cancel that first.")

    def close(self) -> None:
        """Stop everything."""
        self._queue.put(None)
        for job in self.all():
            if job.state in ("queued", "running"):
                self.cancel(job.id)

    def _entry(self, name: str) -> _Entry:
        if name not in self._entries:
            raise ApiError(404, "not_found", f"no job {name!r}; jobs are forgotten when the studio is started again.")
        return self._entries[name]

    def _now(self, entry: _Entry) -> Job:
        if entry.job.state == "running":
            entry.job.seconds = round(time.monotonic() - entry.begun, 1)
        return entry.job.model_copy()

    def _is(self, entry: _Entry, state: str) -> bool:
        return entry.job.state == state

    def _finish(self, entry: _Entry, state: Any, error: ErrorBody | None = None) -> None:
        self._now(entry)  # the time it took
        entry.job.state, entry.job.error = state, error
        if state == "done":
            entry.job.result, entry.job.stage, entry.job.note = entry.job.id, "", ""

    def _work(self) -> None:
        while (name := self._queue.get()) is not None:
            with self._lock:
                entry = self._entries.get(name)
                if entry is None or entry.job.state != "queued":
                    continue
                entry.job.state, entry.begun, entry.job.stage = "running", time.monotonic(), "starting"
            try:
                self._run(entry)
            except Exception as problem:  # one that cannot even be started leaves the others their turn
                log.exception("%s failed", entry.job.title)
                with self._lock:
                    self._finish(entry, "failed", ErrorBody(code="internal", message=f"it cannot be run: {problem}"))

    def _run(self, entry: _Entry) -> None:
        with self._lock:
            if not self._is(entry, "running"):
                return
            process = entry.process = self._start(entry)
        alarm = threading.Timer(self.limits.job_seconds, lambda: _stop(process))
        alarm.daemon = True
        alarm.start()
        failure: ErrorBody | None = None
        assert process.stdout is not None
        for line in process.stdout:
            event = json.loads(line)
            if "code" in event:
                failure = ErrorBody(**event)
                continue
            with self._lock:
                job = entry.job
                job.stages += event["stage"] != job.stage or event["done"] == 0
                job.stage, job.done, job.total, job.note = (event[k] for k in ("stage", "done", "total", "note"))
        code = process.wait()
        alarm.cancel()
        if process.stdin is not None:
            process.stdin.close()
        process.stdout.close()
        with self._lock:
            if self._is(entry, "running"):  # and not cancelled meanwhile
                worked = code == 0
                error = None if worked else failure or self._unexpected(entry, code)
                self._finish(entry, "done" if worked else "failed", error)
        self.workspace.forget_unfinished(_folder(entry.job), entry.job.id)

    def _start(self, entry: _Entry) -> subprocess.Popen[str]:
        asked = {
            "workspace": str(self.workspace.folder),
            "id": entry.job.id,
            "kind": entry.job.kind,
            "request": entry.request.model_dump(),
            "seed": self.seed,
            "device": self.device,
        }
        threads = str(max(1, (os.cpu_count() or 2) - 1))  # one is left for the questions
        process = subprocess.Popen(
            WORKER,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"OMP_NUM_THREADS": threads, **os.environ},
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps(asked) + "\n")
        process.stdin.flush()  # and left open: the process ends when it is closed
        return process

    def _unexpected(self, entry: _Entry, code: int) -> ErrorBody:
        if time.monotonic() - entry.begun >= self.limits.job_seconds:
            message = (
                f"it took longer than {self.limits.job_seconds:g} s and was stopped. Use less data, or try it quick."
            )
            return ErrorBody(code="too_slow", message=message)
        message = f"its process ended unexpectedly (exit code {code}); the studio's terminal may say more."
        return ErrorBody(code="process_died", message=message)


def _folder(job: Job) -> Kind:
    return "classifiers" if job.kind == "classifier" else "explainers"


def _stop(process: subprocess.Popen[str] | None) -> None:
    if process is None or process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
