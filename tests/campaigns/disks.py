"""Full and read-only disks: a write that fails names its file, keeps what was there, and works once there is space."""

from __future__ import annotations

import math
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import sparcets as sp
from sparcets.core.errors import FileFormatError, SparcetsError
from sparcets.data.load import save_dataset
from sparcets.evaluation.scores import Scores
from sparcets.io.files import TEMPORARY
from sparcets.methods.folder import new_folder
from sparcets.show.report import write_report
from sparcets_paper.benchmark.store import ResultStore

from .files import quiet
from .kinds import (
    X,
    Y,
    checkpoint,
    classifier,
    explainer,
    explanation,
    nearest,
    of_checkpoint,
    of_classifier,
    of_explanation,
    read_fit,
    save_fit,
)
from .registry import OK, Trial, UnavailableError, campaign

SIZE = 2**25  # bytes of the disk
PAGE = 4096  # the smallest amount of space on it


@dataclass(frozen=True)
class Action:
    """Something that is written.

    Attributes
    ----------
    write
        Writes the first (0) or the second version (1) into a folder.
    read
        Returns what the folder holds.
    """

    write: Callable[[Path, int], object]
    read: Callable[[Path], Any]


def _answers(version: int) -> sp.Explanation:
    return explanation(4 + 20 * version)


def _fit(folder: Path, version: int) -> None:
    with new_folder(folder / "model", force=True) as new:
        save_fit(new, version)


def _checkpoint(folder: Path, version: int) -> None:
    checkpoint(folder, seed=0).on_epoch_end(version, {})


def _stream(folder: Path, version: int) -> None:
    # A second folder beside a finished one; the same call goes on where it was interrupted.
    explainer("nearest").explain(X[: 4 + 20 * version], 1, out=folder / f"answers-{version}", progress=False)


def _streamed(folder: Path) -> Any:
    done = sorted(path for path in folder.glob("answers-*") if _finished(path))
    return [(path.name, of_explanation(sp.load_explanation(path))[0]) for path in done]


def _finished(path: Path) -> bool:
    try:
        sp.load_explanation(path)
    except FileFormatError:
        return path.name == "answers-0"  # which has to be read
    return True


def _append(folder: Path, version: int) -> None:
    measures = {f"measure_{i}": i / 7 for i in range(1000 * version + 3)}
    ResultStore(folder / "results.jsonl").append({"key": f"cell {version}", "measures": measures})


ACTIONS: dict[str, Action] = {
    "classifier": Action(lambda f, v: classifier(v).save(f / "clf"), lambda f: of_classifier(f / "clf")),
    "explainer": Action(
        lambda f, v: nearest(v).save(f / "ex"),
        lambda f: (f / "ex" / "explainer.json").read_text(),
    ),
    "fit folder": Action(_fit, lambda f: read_fit(f / "model")),
    "checkpoint": Action(_checkpoint, of_checkpoint),
    "explanation": Action(
        lambda f, v: _answers(v).save(f / "run.npz"),
        lambda f: of_explanation(sp.load_explanation(f / "run.npz"))[0],
    ),
    "answers in shards": Action(_stream, _streamed),
    "results": Action(_append, lambda f: ResultStore(f / "results.jsonl").rows()),
    "scores": Action(
        lambda f, v: sp.evaluate(_answers(v)).save(f / "s.json"), lambda f: Scores.load(f / "s.json").to_dict()
    ),
    "data set": Action(
        lambda f, v: save_dataset(sp.Dataset.from_arrays(X + v, Y, test_size=0.3), f / "d.npz"),
        lambda f: sp.load_dataset(f / "d.npz").X_train.tobytes(),
    ),
    "report": Action(
        lambda f, v: write_report(_answers(v), f / "report.html"),
        lambda f: (f / "report.html").read_bytes(),
    ),
}


LIMITS = [("read-only", 0), *product(("files", "pages"), range(6))]  # what is left to write


@campaign("full and read-only disks", trials=100, dose=3)
def full_disks(trials: int, rng: np.random.Generator, folder: Path) -> Iterator[Trial]:
    cases = list(product(ACTIONS, LIMITS))
    with quiet(), _disk(folder / "disk") as disk:
        for i in rng.permutation(len(cases) * math.ceil(trials / len(cases)))[:trials]:
            name, (limit, left) = cases[i % len(cases)]
            failure = _try(ACTIONS[name], disk, limit, left)
            yield Trial(f"{name}, limit {limit!r}, {left} left: {failure}") if failure else OK


def _try(action: Action, disk: Path, limit: str, left: int) -> str:
    _mount_again(disk, "rw")
    folder = disk / "own"
    folder.mkdir()
    try:
        action.write(folder, 0)
        before = action.read(folder)
        _fill(disk, limit, left)
        problem = _write_in_vain(action, folder, before)
        _mount_again(disk, f"rw,nr_inodes={SIZE // PAGE}")
        (disk / "filler").unlink(missing_ok=True)
        return problem or _write_again(action, folder, before)
    finally:
        subprocess.run(["rm", "-rf", folder, disk / "filler"], check=True)


def _fill(disk: Path, limit: str, left: int) -> None:
    """Leave space for a few files or pages, or for nothing."""
    free = os.statvfs(disk)
    if limit == "read-only":
        _mount_again(disk, "ro")
    elif limit == "files":
        _mount_again(disk, f"rw,nr_inodes={free.f_files - free.f_ffree + left}")
    else:
        (disk / "filler").write_bytes(bytes(max(0, free.f_bavail * free.f_frsize - left * PAGE)))


def _write_in_vain(action: Action, folder: Path, before: Any) -> str:
    """Write the second version; return what is wrong with an error and with what is there afterwards."""
    try:
        action.write(folder, 1)
    except SparcetsError as error:
        if str(folder) not in str(error):
            return f"the error names no file: {error}"
    except Exception as error:
        return f"raised {type(error).__name__}: {error}"
    else:
        return "" if action.read(folder) != before else "nothing was written, without an error"
    try:
        intact = action.read(folder) == before
    except Exception as error:
        return f"what was there before cannot be read: {type(error).__name__}: {error}"
    left = [path for path in folder.rglob("*") if TEMPORARY in path.name]
    return "" if intact and not left else f"left behind: {left}" if left else "what was there before has changed"


def _write_again(action: Action, folder: Path, before: Any) -> str:
    """Do the same once there is space."""
    try:
        action.write(folder, 1)
    except SparcetsError as error:
        return f"failed again, with enough space: {error}"
    return "nothing was written, with enough space" if action.read(folder) == before else ""


@contextmanager
def _disk(folder: Path) -> Iterator[Path]:
    """Mount a small disk in memory, and remove it in any case."""
    folder.mkdir()
    options = f"size={SIZE},nr_inodes={SIZE // PAGE}"
    try:
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "sparcets", folder], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        why = error.stderr.decode().strip() if isinstance(error, subprocess.CalledProcessError) else str(error)
        raise UnavailableError(f"no disk can be mounted here: {why}") from None
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)  # even if a file on it is still open


def _mount_again(disk: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", disk], check=True)
