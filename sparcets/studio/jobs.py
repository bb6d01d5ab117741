"""The queue of training jobs: each runs in a process of its own, one at a time, and can be cancelled at any moment.

The list of them is stored in the workspace; after a restart, those that were not finished are listed as lost.
"""

from __future__ import annotations

import json
import logging
import math
import os
import queue
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from sparcets.core.errors import SparcetsError
from sparcets.io.files import read_json, write_json
from sparcets.studio import processes
from sparcets.studio.models import FitExplainer, Job, JobKind, Limits, TrainClassifier
from sparcets.studio.workspace import Kind, Workspace, new_id
from sparcets.web.errors import ApiError, ErrorBody

if TYPE_CHECKING:
    from sparcets.models.own_model import OwnModel


FILE = "trainings.json"
LOST = ErrorBody(code="lost", message="the studio ended before this training did. Start it again.")
log = logging.getLogger(__name__)


def read_trainings(folder: Path) -> list[Job]:
    """Return the trainings of a workspace, oldest first; those that were not finished are lost.

    Parameters
    ----------
    folder
        The workspace. A damaged list is an empty one: it is no reason not to start.
    """
    file = folder / FILE
    if not file.exists():
        return []
    try:
        jobs = [Job.model_validate(entry) for entry in read_json(file, "the studio's list of trainings")["trainings"]]
    except (SparcetsError, ValidationError, TypeError, KeyError) as error:
        log.warning("the list of trainings cannot be read and begins anew: %s", error)
        return []
    return [_as_it_is(folder, job) for job in jobs]


def _as_it_is(folder: Path, job: Job) -> Job:
    """Return a training of a studio that has ended: one that was not finished is lost, unless its result is there."""
    if job.state not in ("queued", "running"):
        return job
    ended: dict[str, Any] = {"state": "lost", "error": LOST, "left": None}
    if (folder / f"{job.kind}s" / job.id).is_dir():
        ended = {"state": "done", "result": job.id, "share": 1.0, "left": None}
    return job.model_copy(update={**ended, "stage": "", "note": ""})


def write_trainings(folder: Path, jobs: Sequence[Job]) -> None:
    """Write the trainings of a workspace; only its owner can read the file."""
    try:
        write_json(folder / FILE, {"trainings": [job.model_dump() for job in jobs]}, private=True)
    except SparcetsError as error:  # a full disk ends no training
        log.warning("the list of trainings was not stored: %s", error)


# Expected share of the time of each stage, where a training has several; measured with the default settings. A stage
# that is not listed counts as much as all others together, as the training of a generator does.
EXPECTED = {"fitting sparcets": {"training fcn": 0.27, "training resnet": 0.55, "fitting models of other kinds": 0.18}}
MAX_POINTS = 200  # of a learning curve; longer ones are thinned out


class TrainingProgress:
    """Collects what the stages of a training report.

    Parameters
    ----------
    title
        Title of the job.

    Examples
    --------
    >>> progress = TrainingProgress("training fcn")
    >>> progress.update("training fcn", 2.0, 8.0, "loss 0.5  validation_loss 0.7")
    >>> progress.share, progress.left(10.0), progress.curves
    (0.25, 30.0, {'loss': [0.5], 'validation_loss': [0.7]})
    """

    def __init__(self, title: str) -> None:
        self.title, self.share = title, 0.0
        self.curves: dict[str, list[float | None]] = {}
        self._weights = dict(EXPECTED.get(title, {}))
        self._done = dict.fromkeys(self._weights, 0.0)
        self._steps: dict[str, float] = {}

    def update(self, stage: str, done: float, total: float | None, note: str) -> None:
        """Take in a report of one stage: ``done`` of ``total`` steps, and its values as a text."""
        self._weights.setdefault(stage, sum(self._weights.values()) or 1.0)
        if total:
            self._done[stage] = min(1.0, done / total)
        whole = sum(self._weights.values())
        reached = sum(self._weights[name] * self._done.get(name, 0.0) for name in self._weights) / whole
        self.share = max(self.share, reached)  # another stage may come up; the bar does not go back
        if done > self._steps.get(stage, -1.0):
            self._steps[stage] = done
            self._add(stage, note)

    def left(self, seconds: float) -> float | None:
        """Return the time left in seconds, if so many have passed; None as long as nothing is known."""
        return None if self.share < 0.01 else seconds * (1 - self.share) / self.share

    def _add(self, stage: str, note: str) -> None:
        prefix = "" if stage == self.title else f"{stage.removeprefix('training ')} "
        for part in note.split("  "):
            name, _, text = part.rpartition(" ")
            try:
                value = float(text)
            except ValueError:  # a note in words
                continue
            if name:
                points = self.curves.setdefault(prefix + name, [])
                points.append(value if math.isfinite(value) else None)
                if len(points) > MAX_POINTS:
                    del points[1:-1:2]


MAX_FINISHED = 50  # finished jobs that stay listed


@dataclass
class _Entry:
    job: Job
    request: TrainClassifier | FitExplainer | None  # None: of an earlier start of the studio
    progress: TrainingProgress
    process: subprocess.Popen[str] | None = None
    started: float = 0.0


class Jobs:
    """The training jobs of one studio.

    Parameters
    ----------
    workspace
        Where the results are stored.
    limits
        Length of the queue and time limit of a job.
    seed, device
        Used by every job.
    model
        A model of the user's own; a job that asks for it by name loads it instead of training one.
    worker
        Command of the process that runs a job, by default :func:`sparcets.studio.processes.train`.
    """

    def __init__(
        self,
        workspace: Workspace,
        limits: Limits,
        *,
        seed: int = 0,
        device: str = "auto",
        model: OwnModel | None = None,
        worker: Sequence[str] | None = None,
    ) -> None:
        self.workspace, self.limits, self.seed, self.device = workspace, limits, seed, device
        self.model = model
        self._worker = processes.command(processes.__name__, "train") if worker is None else worker
        past = read_trainings(workspace.folder)
        self._entries = {job.id: _Entry(job, None, TrainingProgress(job.title)) for job in past}
        self._lock = threading.RLock()
        self._queue: queue.Queue[str | None] = queue.Queue()
        self._thread = threading.Thread(target=self._work, name="jobs", daemon=True)
        self._thread.start()

    def submit(self, request: TrainClassifier | FitExplainer) -> Job:
        """Add a job to the queue."""
        kind: JobKind
        if isinstance(request, TrainClassifier):
            verb = "loading" if self.is_own(request.architecture) else "training"
            name, kind, parent = request.architecture, "classifier", request.dataset
        else:
            name, kind, verb, parent = request.method, "explainer", "fitting", request.classifier
        job = Job(
            id=new_id(name, *(["quick"] if request.preset == "tiny" else [])),
            kind=kind,
            title=f"{verb} {name}",
            parent=parent,
            state="queued",
            stage="queued",
        )
        with self._lock:
            queued = sum(e.job.state == "queued" for e in self._entries.values())
            if queued >= self.limits.queued_jobs:
                raise ApiError(
                    429, "busy", f"the queue of training jobs is full ({queued}). Wait for one, or cancel one."
                )
            self._entries[job.id] = _Entry(job, request, TrainingProgress(job.title))
            finished = [k for k, e in self._entries.items() if e.job.state not in ("queued", "running")]
            for old in finished[:-MAX_FINISHED]:
                del self._entries[old]
            self._store()
        self._queue.put(job.id)
        return job

    def is_own(self, name: str) -> bool:
        """Whether a classifier's name is that of the user's own model."""
        return self.model is not None and name == self.model.name

    def all(self) -> list[Job]:
        """Return all listed jobs, oldest first."""
        with self._lock:
            return [self._snapshot(entry) for entry in self._entries.values()]

    def get(self, name: str) -> Job:
        """Return one job."""
        with self._lock:
            return self._snapshot(self._entry(name))

    def cancel(self, name: str) -> Job:
        """Stop a job immediately and remove its files."""
        with self._lock:
            entry = self._entry(name)
            if entry.job.state not in ("queued", "running"):
                raise ApiError(409, "finished", f"{entry.job.title} is already {entry.job.state}.")
            self._finish(entry, "cancelled")
            process = entry.process
        processes.stop(process)
        self.workspace.remove_unfinished(_folder(entry.job), entry.job.id)
        return entry.job

    def check_unused(self, name: str) -> None:
        """Raise an error if a queued or running job uses the item."""
        users = [j.title for j in self.all() if j.parent == name and j.state in ("queued", "running")]
        if users:
            raise ApiError(409, "in_use", f"{name} is used by {users[0]}, which is not finished. Cancel that first.")

    def close(self) -> None:
        """Cancel all jobs and stop the queue."""
        self._queue.put(None)
        for job in self.all():
            if job.state in ("queued", "running"):
                self.cancel(job.id)

    def _entry(self, name: str) -> _Entry:
        if name not in self._entries:
            raise ApiError(404, "not_found", f"no job {name!r}.")
        return self._entries[name]

    def _snapshot(self, entry: _Entry) -> Job:
        if entry.job.state == "running":
            entry.job.seconds = round(time.monotonic() - entry.started, 1)
            entry.job.left = entry.progress.left(entry.job.seconds)
        return entry.job.model_copy()

    def _is(self, entry: _Entry, state: str) -> bool:
        return entry.job.state == state

    def _finish(self, entry: _Entry, state: Any, error: ErrorBody | None = None) -> None:
        self._snapshot(entry)  # updates the elapsed time
        entry.job.state, entry.job.error = state, error
        if state == "done":
            entry.job.result, entry.job.stage, entry.job.note = entry.job.id, "", ""
            entry.job.share = 1.0
        self._store()

    def _store(self) -> None:
        """Write the list of jobs; called under the lock."""
        write_trainings(self.workspace.folder, [entry.job for entry in self._entries.values()])

    def _work(self) -> None:
        processes.block_interrupts()
        while (name := self._queue.get()) is not None:
            with self._lock:
                entry = self._entries.get(name)
                if entry is None or entry.job.state != "queued":
                    continue
                entry.job.state, entry.started, entry.job.stage = "running", time.monotonic(), "starting"
                self._store()
            try:
                self._run(entry)
            except Exception as problem:  # the next job still gets its turn
                log.exception("%s failed", entry.job.title)
                with self._lock:
                    self._finish(
                        entry, "failed", ErrorBody(code="internal", message=f"the job could not be run: {problem}")
                    )

    def _run(self, entry: _Entry) -> None:
        with self._lock:
            if not self._is(entry, "running"):
                return
            process = entry.process = self._start(entry)
        timer = threading.Timer(self.limits.job_seconds, lambda: processes.stop(process))
        timer.daemon = True
        timer.start()
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
                entry.progress.update(job.stage, job.done, job.total, job.note)
                job.share, job.curves = entry.progress.share, dict(entry.progress.curves)
        code = process.wait()
        timer.cancel()
        processes.close(process)
        with self._lock:
            if self._is(entry, "running"):  # not cancelled meanwhile
                error = None if code == 0 else failure or self._unexpected(entry, code)
                self._finish(entry, "done" if code == 0 else "failed", error)
        self.workspace.remove_unfinished(_folder(entry.job), entry.job.id)

    def _start(self, entry: _Entry) -> subprocess.Popen[str]:
        assert entry.request is not None  # it was submitted to this studio
        task = {
            "workspace": str(self.workspace.folder),
            "id": entry.job.id,
            "kind": entry.job.kind,
            "request": entry.request.model_dump(),
            "seed": self.seed,
            "device": self.device,
        }
        # An explainer may be one of this model, which its process then runs.
        fits = isinstance(entry.request, FitExplainer) or self.is_own(entry.request.architecture)
        if self.model is not None and fits:
            task["model"] = self.model.to_dict()
        threads = str(max(1, (os.cpu_count() or 2) - 1))  # one core is left for requests
        return processes.start(self._worker, task, {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", threads)})

    def _unexpected(self, entry: _Entry, code: int) -> ErrorBody:
        if time.monotonic() - entry.started >= self.limits.job_seconds:
            message = f"stopped after the time limit of {self.limits.job_seconds:g} s. Use less data, or a quick try."
            return ErrorBody(code="too_slow", message=message)
        message = f"the process ended unexpectedly (exit code {code}); see the studio's terminal output."
        return ErrorBody(code="process_died", message=message)


def _folder(job: Job) -> Kind:
    return "classifiers" if job.kind == "classifier" else "explainers"
