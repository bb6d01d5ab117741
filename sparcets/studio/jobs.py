"""The queue of training jobs: each runs in a process of its own, one at a time, and can be cancelled at any moment.

The list of them is stored in the workspace; after a restart, those that were not finished are listed as lost.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from sparcets.core.errors import SparcetsError
from sparcets.io.files import read_json, write_json
from sparcets.studio import processes
from sparcets.studio.models import FitExplainer, Job, JobKind, Limits, TrainClassifier
from sparcets.studio.workspace import Workspace, new_id
from sparcets.web.errors import ApiError, ErrorBody

if TYPE_CHECKING:
    from sparcets.models.own_model import OwnModel


FILE = "trainings.json"
ACTIVE = ("queued", "running")
LOST = ErrorBody(code="lost", message="the studio ended before this training did. Start it again.")
log = logging.getLogger(__name__)


def read_trainings(folder: Path) -> list[Job]:
    """Return the trainings of a workspace, oldest first; those that were not finished are lost.

    A damaged list is an empty one: it is no reason not to start.
    """
    file = folder / FILE
    if not file.exists():
        return []
    try:
        jobs = [Job.model_validate(entry) for entry in read_json(file, "the studio's list of trainings")["trainings"]]
    except (SparcetsError, ValidationError, TypeError, KeyError) as error:
        log.warning("the list of trainings cannot be read and begins anew: %s", error)
        return []
    for job in (job for job in jobs if job.state in ACTIVE):
        job.left, job.stage, job.note = None, "", ""
        if (folder / f"{job.kind}s" / job.id).is_dir():  # the studio ended before it was told of the result
            job.state, job.result, job.share = "done", job.id, 1.0
        else:
            job.state, job.error = "lost", LOST
    return jobs


# Expected share of the time of each stage, where a training has several; measured with the default settings. A stage
# that is not listed counts as much as all others together, as the training of a generator does.
EXPECTED = {"fitting sparcets": {"training fcn": 0.27, "training resnet": 0.55, "fitting models of other kinds": 0.18}}
MAX_POINTS = 200  # of a learning curve; longer ones are thinned out


class TrainingProgress:
    """Collects what the stages of a training report.

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
        if done <= self._steps.get(stage, -1.0):
            return
        self._steps[stage] = done
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

    def left(self, seconds: float) -> float | None:
        """Return the time left in seconds, if so many have passed; None as long as nothing is known."""
        return None if self.share < 0.01 else seconds * (1 - self.share) / self.share


MAX_FINISHED = 50  # finished jobs that stay listed


class Jobs:
    """The training jobs of one studio; all methods but :meth:`all` and :meth:`check_unused` need its event loop.

    A job that asks by name for ``model``, the user's own, loads it instead of training one. The command ``worker`` runs
    a job, by default :func:`sparcets.studio.processes.train`.
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
        self._jobs = {job.id: job for job in read_trainings(workspace.folder)}
        self._tasks: dict[str, asyncio.Task[None]] = {}  # of queued and running jobs
        self._turn = asyncio.Lock()  # of the one that runs
        self._started = 0.0  # when it did
        self._progress = TrainingProgress("")  # of it

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
        queued = sum(other.state == "queued" for other in self._jobs.values())
        if queued >= self.limits.queued_jobs:
            raise ApiError(429, "busy", f"the queue of training jobs is full ({queued}). Wait for one, or cancel one.")
        self._jobs[job.id] = job
        for old in [name for name, other in self._jobs.items() if other.state not in ACTIVE][:-MAX_FINISHED]:
            del self._jobs[old]
        self._store()
        self._tasks[job.id] = asyncio.create_task(self._run(job, request))
        return job

    def is_own(self, name: str) -> bool:
        """Whether a classifier's name is that of the user's own model."""
        return self.model is not None and name == self.model.name

    def all(self) -> list[Job]:
        """Return all listed jobs, oldest first."""
        return [self._as_it_is_now(job) for job in list(self._jobs.values())]

    async def cancel(self, name: str) -> Job:
        """Stop a job immediately and remove its files."""
        job = self._jobs.get(name)
        if job is None:
            raise ApiError(404, "not_found", f"no job {name!r}.")
        if job.state not in ACTIVE:
            raise ApiError(409, "finished", f"{job.title} is already {job.state}.")
        await self._cancel([job])
        return job

    def check_unused(self, name: str) -> None:
        """Raise an error if a queued or running job uses the item."""
        users = [job.title for job in self.all() if job.parent == name and job.state in ACTIVE]
        if users:
            raise ApiError(409, "in_use", f"{name} is used by {users[0]}, which is not finished. Cancel that first.")

    async def close(self) -> None:
        """Cancel all jobs."""
        await self._cancel([job for job in self._jobs.values() if job.state in ACTIVE])

    async def _cancel(self, jobs: Sequence[Job]) -> None:
        tasks = [self._tasks.pop(job.id) for job in jobs]
        for job, task in zip(jobs, tasks, strict=True):
            self._finish(job, "cancelled")
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _as_it_is_now(self, job: Job) -> Job:
        if job.state == "running":
            job.seconds = round(time.monotonic() - self._started, 1)
            job.left = self._progress.left(job.seconds)
        return job.model_copy()

    def _finish(self, job: Job, state: Any, error: ErrorBody | None = None) -> None:
        self._as_it_is_now(job)
        job.state, job.error = state, error
        if state == "done":
            job.result, job.stage, job.note, job.share = job.id, "", "", 1.0
        self._store()

    def _store(self) -> None:
        """Write the list of trainings; only its owner can read the file."""
        trainings = [job.model_dump() for job in self._jobs.values()]
        try:
            write_json(self.workspace.folder / FILE, {"trainings": trainings}, private=True)
        except SparcetsError as error:  # a full disk ends no training
            log.warning("the list of trainings was not stored: %s", error)

    async def _run(self, job: Job, request: TrainClassifier | FitExplainer) -> None:
        """Run a job when it is its turn."""
        async with self._turn:
            job.state, job.stage = "running", "starting"
            self._started, self._progress = time.monotonic(), TrainingProgress(job.title)
            self._store()
            try:
                error = await asyncio.wait_for(self._train(job, request), self.limits.job_seconds)
            except (TimeoutError, asyncio.TimeoutError):
                limit = f"{self.limits.job_seconds:g} s"
                message = f"stopped after the time limit of {limit}. Use less data, or a quick try."
                error = ErrorBody(code="too_slow", message=message)
            except Exception as problem:  # the next job still gets its turn
                log.exception("%s failed", job.title)
                error = ErrorBody(code="internal", message=f"the job could not be run: {problem}")
            finally:
                self.workspace.remove_leftovers("classifiers" if job.kind == "classifier" else "explainers")
            self._finish(job, "done" if error is None else "failed", error)
            del self._tasks[job.id]

    async def _train(self, job: Job, request: TrainClassifier | FitExplainer) -> ErrorBody | None:
        """Let a process do a job, and follow its progress; return what went wrong, if anything did."""
        task = {
            "workspace": str(self.workspace.folder),
            "id": job.id,
            "kind": job.kind,
            "request": request.model_dump(),
            "seed": self.seed,
            "device": self.device,
        }
        # An explainer may be one of this model, which its process then runs.
        fits = isinstance(request, FitExplainer) or self.is_own(request.architecture)
        if self.model is not None and fits:
            task["model"] = self.model.to_dict()
        threads = str(max(1, (os.cpu_count() or 2) - 1))  # one core is left for requests
        environment = {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", threads)}
        failure: ErrorBody | None = None
        async with processes.running(self._worker, task, environment) as (process, output):
            async for line in output:
                event = json.loads(line)
                if "code" in event:
                    failure = ErrorBody(**event)
                    continue
                job.stage, job.done, job.total, job.note = (event[k] for k in ("stage", "done", "total", "note"))
                self._progress.update(job.stage, job.done, job.total, job.note)
                job.share, job.curves = self._progress.share, dict(self._progress.curves)
            code = await process.wait()
        if code == 0 or failure is not None:
            return failure if code else None
        message = f"the process ended unexpectedly (exit code {code}); see the studio's terminal output."
        return ErrorBody(code="process_died", message=message)
