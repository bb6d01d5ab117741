"""Uploads: a file is received into a hidden folder, and read by a process with limits (:mod:`sparcets.studio.reader`).

Nothing is left of an upload that fails, that is too slow, or whose client or studio ends before it is complete.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import subprocess
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fastapi import Request
from starlette.requests import ClientDisconnect

from sparcets.core import errors
from sparcets.io.folders import inside, make_private
from sparcets.studio import processes
from sparcets.studio.data import ARRAYS, NEW, safe_name
from sparcets.studio.limits import Limits
from sparcets.studio.models import DatasetRecord
from sparcets.studio.workspace import Workspace, new_id, write_record
from sparcets.web.errors import ApiError
from sparcets.web.requests import MIB, too_large

READER = "sparcets.studio.reader"
# One thread each. Allocators that reserve memory in advance would reach the limit before they need it.
ENVIRONMENT = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "MALLOC_ARENA_MAX"), "1"),
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
POLL = 0.2  # seconds between two looks at whether the client is still there


class Uploads:
    """The uploads of one studio.

    Parameters
    ----------
    workspace
        Where the files are stored.
    limits
        Number, size, memory and time of uploads.
    seed
        Seed of the train/test split if a file defines none.
    """

    def __init__(self, workspace: Workspace, limits: Limits, *, seed: int = 0) -> None:
        self.workspace, self.limits, self.seed = workspace, limits, seed
        self._threads = ThreadPoolExecutor(limits.readers, "reader", initializer=processes.block_interrupts)
        self._readings: set[_Reading] = set()
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

    def close(self) -> None:
        """End all processes and accept no more."""
        for reading in list(self._readings):
            reading.stop()
        self._threads.shutdown(wait=False, cancel_futures=True)

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
        reading = _Reading(task, self.limits)
        self._readings.add(reading)
        future = asyncio.get_running_loop().run_in_executor(self._threads, reading.run)
        try:
            while not (await asyncio.wait({future}, timeout=POLL))[0]:
                if await gone():
                    raise _disconnected()
            return future.result()
        finally:
            self._readings.discard(reading)
            reading.stop()
            if not future.done():
                future.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # nobody waits for it


class _Reading:
    """A process that reads a file."""

    def __init__(self, task: Mapping[str, Any], limits: Limits) -> None:
        self._limits = limits
        self._task = {"seed": 0, **task, "limits": asdict(limits)}
        self._name = Path(task["file"]).name
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._stopped = self._late = False

    def run(self) -> dict[str, Any]:
        """Start the process, and return what it has found."""
        with self._lock:
            if self._stopped:
                raise _disconnected()
            process = self._process = processes.start(processes.command(READER), self._task, ENVIRONMENT)
        timer = threading.Timer(self._limits.reader_seconds, self._end_late)
        timer.daemon = True
        timer.start()
        assert process.stdout is not None
        text = process.stdout.read()
        code = process.wait()
        timer.cancel()
        processes.close(process)
        return self._outcome(text, code)

    def stop(self) -> None:
        """End the process at once; it writes to a folder that is about to be removed."""
        with self._lock:
            self._stopped, process = True, self._process
        if process is not None:
            process.kill()
            process.wait()

    def _end_late(self) -> None:
        self._late = True
        self.stop()

    def _outcome(self, text: str, code: int) -> dict[str, Any]:
        if self._late:
            raise ApiError(
                408,
                "too_slow",
                f"{self._name} was not read within {self._limits.reader_seconds:g} s. Use fewer columns or rows.",
            )
        if code != 0 or not text:
            raise ApiError(
                422,
                "unreadable",
                f"{self._name} cannot be read: the process that read it has ended (exit code {code}), perhaps for want "
                f"of memory; it may take {self._limits.reader_bytes / MIB:.4g} MiB.",
            )
        outcome = json.loads(text)
        if "error" in outcome:
            raise getattr(errors, outcome["error"])(outcome["message"])
        found: dict[str, Any] = outcome["found"]
        return found


def _disconnected() -> ApiError:
    return ApiError(400, "disconnected", "the client ended the request before it was complete.")
