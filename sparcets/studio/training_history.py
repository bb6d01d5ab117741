"""The list of trainings on disk: it survives a restart, and says which trainings did not."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from sparcets.errors import SparcetsError
from sparcets.storage import read_json, write_json
from sparcets.studio.models import Job
from sparcets.web.models import ErrorBody

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
