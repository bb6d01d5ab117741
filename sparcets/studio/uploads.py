"""Uploads: a file is received into a hidden folder, and read by a process with limits on memory and time.

A small file may hold a huge table, or one that takes minutes to read; requests do not wait for it. The series are
written as arrays, which are read in a moment. Nothing is left of an upload that fails, that is too slow, or whose
client or studio ends before it is complete.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import warnings
import zipfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from fastapi import Request
from starlette.requests import ClientDisconnect

from sparcets.core import errors
from sparcets.core.errors import DataError, SparcetsError, TooLargeError
from sparcets.io.files import atomic_path, write_npz
from sparcets.io.folders import inside, make_private
from sparcets.studio import processes
from sparcets.studio.models import DatasetRecord, Limits
from sparcets.studio.workspace import (
    ARRAYS,
    CLASSIFIERS_ONLY,
    NEW,
    Workspace,
    describe,
    new_id,
    safe_name,
    write_record,
)
from sparcets.web.errors import ApiError
from sparcets.web.requests import MIB, too_large

if TYPE_CHECKING:
    from sparcets.data.dataset import Dataset
    from sparcets.data.recordings import Recordings

# One thread each. Allocators that reserve memory in advance would reach the limit before they need it.
ENVIRONMENT = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "MALLOC_ARENA_MAX"), "1"),
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
POLL = 0.2  # seconds between two looks at whether the client is still there


class Uploads:
    """The uploads of one studio; ``seed`` is that of the train/test split if a file defines none."""

    def __init__(self, workspace: Workspace, limits: Limits, *, seed: int = 0) -> None:
        self.workspace, self.limits, self.seed = workspace, limits, seed
        self._readers = asyncio.Semaphore(limits.readers)
        self._n = 0

    async def dataset(self, filename: str, request: Request) -> DatasetRecord:
        """Add the data set that is the body of a request."""
        name = safe_name(filename)
        with self._counted(), self.workspace.create("datasets", new_id(Path(name).stem)) as folder:
            file = folder / name
            await self._receive(request.stream(), file)
            task = {"file": str(file), "out": str(folder / ARRAYS), "like": None, "seed": self.seed}
            found = await self._read(task, request.is_disconnected)
            record = DatasetRecord(id=folder.name, source=name, uploaded=True, seed=self.seed, **found)
            write_record(folder, record)
        return record

    async def recordings(self, dataset: DatasetRecord, filename: str, request: Request) -> int:
        """Add recordings to a data set, which need no labels, and return their number."""
        name = safe_name(filename)
        with self._counted(), self.workspace.hidden("datasets", f"upload-{secrets.token_hex(4)}") as hidden:
            file, out = hidden / name, hidden / ARRAYS
            await self._receive(request.stream(), file)
            like = {key: getattr(dataset, key) for key in ("feature_names", "n_steps", "padded")}
            found = await self._read({"file": str(file), "out": str(out), "like": like}, request.is_disconnected)
            folder = inside(self.workspace.path("datasets", dataset.id), NEW)
            folder.mkdir(mode=0o700, exist_ok=True)
            make_private(hidden)
            out.rename(folder / f"{len(list(folder.glob('[0-9]*.npz'))):05d}-{file.stem}.npz")
        return int(found["n"])

    @contextmanager
    def _counted(self) -> Iterator[None]:
        if self._n >= self.limits.uploads:
            raise ApiError(429, "busy", f"{self._n} files are being uploaded already. Try again in a moment.")
        self._n += 1
        try:
            yield
        finally:
            self._n -= 1

    async def _receive(self, chunks: AsyncIterator[bytes], file: Path) -> None:
        size = 0
        try:
            with file.open("xb") as opened:
                async for chunk in chunks:
                    size += len(chunk)
                    if size > self.limits.upload_bytes:
                        raise too_large(self.limits.upload_bytes)
                    opened.write(chunk)
        except ClientDisconnect:
            raise _disconnected() from None

    async def _read(self, task: Mapping[str, Any], gone: Callable[[], Awaitable[bool]]) -> dict[str, Any]:
        """Let a process read a file; end it if the client does not wait for it any longer."""
        reading = asyncio.create_task(self._carry_out(task))
        try:
            while not (await asyncio.wait({reading}, timeout=POLL))[0]:
                if await gone():
                    raise _disconnected()
            return reading.result()
        finally:
            reading.cancel()
            await asyncio.wait({reading})  # it writes to a folder that is about to be removed

    async def _carry_out(self, task: Mapping[str, Any]) -> dict[str, Any]:
        """Start a process for a task as soon as it is its turn, and return what it has found."""
        limits, name = self.limits, Path(task["file"]).name
        sent = {"seed": 0, **task, "limits": asdict(limits)}
        async with (
            self._readers,
            processes.running(processes.command(__name__, "read"), sent, ENVIRONMENT) as (process, output),
        ):
            try:
                text = await asyncio.wait_for(output.read(), limits.reader_seconds)
            except (TimeoutError, asyncio.TimeoutError):
                seconds = f"{limits.reader_seconds:g} s"
                message = f"{name} was not read within {seconds}. Use fewer columns or rows."
                raise ApiError(408, "too_slow", message) from None
            code = await process.wait()
        if code != 0 or not text:
            why = f"the process that read it has ended (exit code {code}), perhaps for want of memory"
            most = f"{limits.reader_bytes / MIB:.4g} MiB"
            raise ApiError(422, "unreadable", f"{name} cannot be read: {why}; it may take {most}.")
        outcome = json.loads(text)
        if "error" in outcome:
            raise getattr(errors, outcome["error"])(outcome["message"])
        found: dict[str, Any] = outcome["found"]
        return found


def _disconnected() -> ApiError:
    return ApiError(400, "disconnected", "the client ended the request before it was complete.")


# What the process that reads a file does.


def read_dataset(file: Path, limits: Limits, seed: int) -> Dataset:
    """Read labelled series; error messages give the name of the file without the folder."""
    from sparcets.data.load import load_file

    with reading(file, limits):
        dataset = load_file(file, seed=seed)
        if dataset.task == "regression":
            raise DataError(f"{file.name} holds numbers to predict; {CLASSIFIERS_ONLY}")
        check_size(dataset.X_train, dataset.X_test, limits=limits)
        names = len(json.dumps(describe(dataset), ensure_ascii=False).encode())
        if names > limits.record_bytes:
            raise TooLargeError(
                f"{file.name}: names and ranges of {dataset.n_features} features and {dataset.n_classes} classes take "
                f"{names / MIB:.3g} MiB; at most {limits.record_bytes / MIB:.4g} MiB. Use fewer or shorter ones."
            )
        return dataset


def read_recordings(file: Path, limits: Limits, like: Mapping[str, Any]) -> Recordings:
    """Read series that need no labels; ``like`` are the arguments of :meth:`Recordings.like`."""
    from sparcets.data.recordings import load_recordings

    with reading(file, limits):
        found = load_recordings(file).like(tuple(like["feature_names"]), like["n_steps"], padded=like["padded"])
        check_size(found.X, limits=limits)
        return found


def check_size(*parts: np.ndarray[Any, Any], limits: Limits) -> None:
    """Raise an error for series that take too much memory together, or of too many values each."""
    size = sum(X.nbytes for X in parts)
    if size > limits.unpacked_bytes:
        raise TooLargeError(
            f"the series take {size / MIB:.4g} MiB, padded to the same length; at most "
            f"{limits.unpacked_bytes / MIB:.4g} MiB. Use fewer or shorter ones."
        )
    _, n_steps, n_features = parts[0].shape
    if n_steps * n_features > limits.series_values:
        raise TooLargeError(
            f"each series has {n_steps} steps of {n_features} features, that is, {n_steps * n_features:,} values; "
            f"at most {limits.series_values:,}. Use fewer of them."
        )


@contextmanager
def reading(file: Path, limits: Limits) -> Iterator[None]:
    """Check the size of a file before it is read; let errors name it without the folder it lies in."""
    # A small archive may unpack to a huge one; about a damaged one, its reader raises.
    with suppress(zipfile.BadZipFile, NotImplementedError, OSError), zipfile.ZipFile(file) as packed:
        if sum(member.file_size for member in packed.infolist()) > limits.unpacked_bytes:
            raise TooLargeError(f"{file.name} unpacks to more than {limits.unpacked_bytes / MIB:.4g} MiB.")
    if file.suffix.lower() == ".csv":
        with file.open("rb") as opened:
            columns = max(map(opened.readline().count, (b",", b";", b"\t"))) + 1
        if columns > limits.columns:
            raise TooLargeError(f"{file.name} has {columns:,} columns; at most {limits.columns:,}. Use fewer.")
    try:
        yield
    except SparcetsError as error:
        raise type(error)(str(error).replace(f"{file.parent}/", "").replace(str(file.parent), "")) from error
    except MemoryError:
        raise TooLargeError(
            f"{file.name} takes more than {limits.reader_bytes / MIB:.4g} MiB of memory to read; series are padded to "
            "the same length. Use fewer or shorter ones."
        ) from None


def carry_out(task: Mapping[str, Any]) -> dict[str, Any]:
    """Read a file, write its series as arrays, and return what is known about them."""
    from sparcets.data.load import save_dataset

    file, out, limits = Path(task["file"]), Path(task["out"]), Limits(**task["limits"])
    if file.suffix.lower() == ".csv":
        import pandas  # noqa: F401 - before the memory is limited
    limit_memory(limits.reader_bytes)
    if task["like"] is None:
        dataset = read_dataset(file, limits, task["seed"])
        save_dataset(dataset, out)
        return describe(dataset)
    found = read_recordings(file, limits, task["like"])
    arrays = {"X": found.X, "y": found.labels, "ids": found.ids, "subjects": found.subjects, "lengths": found.lengths}
    arrays["feature_names"] = np.array(found.feature_names)
    with atomic_path(out) as temporary, temporary.open("wb") as opened:
        write_npz(opened, {key: array for key, array in arrays.items() if array is not None})
    return {"n": len(found.X)}


def limit_memory(size: int) -> None:
    """Let this process take so many bytes more than it has now, where the system can limit it."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (ImportError, OSError):
        return
    limit = pages * resource.getpagesize() + size
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def read() -> NoReturn:
    """Carry out the task that stdin describes, and send the outcome."""
    task, send = processes.begin()
    warnings.simplefilter("ignore")
    try:
        send(found=carry_out(task))
    except SparcetsError as error:
        send(error=type(error).__name__, message=str(error))
    os._exit(0)  # a thread is still reading stdin, which Python's own end would complain about
