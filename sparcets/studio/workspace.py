"""The folder in which the studio keeps everything: data sets, classifiers and explainers, each in a folder of its own.

::

    datasets/<id>/about.json, and the uploaded file
    classifiers/<id>/about.json, classifier.json, weights.safetensors
    explainers/<id>/about.json, explainer.json, arrays.safetensors

Whatever is being made lies in a hidden folder beside its place and takes its name only when it is complete. Ids are
given by the studio, and what looks otherwise is no id: no request can name a file outside.
"""

from __future__ import annotations

import logging
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ValidationError

from sparcets.errors import FileFormatError, StorageError
from sparcets.storage import read_json, write_json
from sparcets.studio.errors import ApiError
from sparcets.studio.models import ClassifierRecord, DatasetRecord, ExplainerRecord

Kind: TypeAlias = Literal["datasets", "classifiers", "explainers"]
Record: TypeAlias = DatasetRecord | ClassifierRecord | ExplainerRecord
R = TypeVar("R", bound=BaseModel)
KINDS: dict[Kind, str] = {"datasets": "data set", "classifiers": "classifier", "explainers": "explainer"}
RECORD = "about.json"
log = logging.getLogger(__name__)
ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


class Workspace:
    """A folder of data sets, classifiers and explainers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.expanduser().resolve()
        try:
            for kind in KINDS:
                (self.folder / kind).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(
                f"cannot make the workspace {folder}: {error.strerror}. Choose another with --workspace."
            ) from error

    def path(self, kind: Kind, name: str) -> Path:
        """Return the folder of something that is there, or say that it is not."""
        if ID.fullmatch(name) is None or not (self.folder / kind / name / RECORD).is_file():
            raise ApiError(404, "not_found", f"no {KINDS[kind]} {name!r} in the workspace.")
        return self.folder / kind / name

    def datasets(self) -> list[DatasetRecord]:
        """Return all data sets, the oldest first."""
        return self._records("datasets", DatasetRecord)

    def classifiers(self) -> list[ClassifierRecord]:
        """Return all classifiers, the oldest first."""
        return self._records("classifiers", ClassifierRecord)

    def explainers(self) -> list[ExplainerRecord]:
        """Return all explainers, the oldest first."""
        return self._records("explainers", ExplainerRecord)

    def dataset(self, name: str) -> DatasetRecord:
        """Return a data set's record."""
        return _read(self.path("datasets", name), DatasetRecord)

    def classifier(self, name: str) -> ClassifierRecord:
        """Return a classifier's record."""
        return _read(self.path("classifiers", name), ClassifierRecord)

    def explainer(self, name: str) -> ExplainerRecord:
        """Return an explainer's record."""
        return _read(self.path("explainers", name), ExplainerRecord)

    @contextmanager
    def making(self, kind: Kind, name: str) -> Iterator[Path]:
        """Yield a hidden folder to fill; it takes its place when the block ends well and is removed otherwise."""
        hidden = self.folder / kind / f".{name}"
        try:
            hidden.mkdir()
            yield hidden
            hidden.rename(self.folder / kind / name)
        except OSError as error:
            raise StorageError(f"cannot write to the workspace: {error.strerror or error}. Free some space.") from error
        finally:
            shutil.rmtree(hidden, ignore_errors=True)

    def forget_unfinished(self, kind: Kind, name: str) -> None:
        """Remove what a training that was stopped left behind."""
        shutil.rmtree(self.folder / kind / f".{name}", ignore_errors=True)

    def remove(self, kind: Kind, name: str) -> None:
        """Remove something nothing else depends on."""
        path = self.path(kind, name)
        users = {
            "datasets": [c.id for c in self.classifiers() if c.dataset == name],
            "classifiers": [e.id for e in self.explainers() if e.classifier == name],
            "explainers": [],
        }[kind]
        if users:
            raise ApiError(409, "in_use", f"{name} is needed by {', '.join(users)}. Remove that first.")
        # Renamed first: what is half removed is no longer there for anybody.
        gone = path.with_name(f".{name}-{secrets.token_hex(4)}")
        path.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)

    def _records(self, kind: Kind, model: type[R]) -> list[R]:
        found = []
        for path in (self.folder / kind).iterdir():
            if ID.fullmatch(path.name) is None:
                continue
            try:
                found.append(((path / RECORD).stat().st_mtime_ns, path.name, _read(path, model)))
            except (OSError, FileFormatError) as error:  # somebody else removed it, or damaged it: the others count
                log.warning("left out %s: %s", path, error)
        return [record for _, _, record in sorted(found, key=lambda entry: entry[:2])]


def new_id(*words: str) -> str:
    """Return an id that says what it is and that nobody else has.

    >>> new_id("My File!", "bilstm")[:-7]
    'my-file-bilstm'
    """
    stem = re.sub(r"[^a-z0-9]+", "-", " ".join(words).lower()).strip("-")[:40].strip("-")
    return f"{stem or 'x'}-{secrets.token_hex(3)}"


def write_record(folder: Path, record: Record) -> None:
    """Write what is known of the contents of a folder."""
    write_json(folder / RECORD, record.model_dump())


def _read(folder: Path, model: type[R]) -> R:
    try:
        return model.model_validate(read_json(folder / RECORD, "a folder of the studio"))
    except ValidationError as error:
        raise FileFormatError(
            f"{folder / RECORD} is damaged: {error.errors()[0]['msg']}. Remove the folder."
        ) from error
