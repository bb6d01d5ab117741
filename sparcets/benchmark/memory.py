"""The memory of explaining more than fits: in a process of its own, whose peak is nobody else's."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from sparcets.arrays import FloatArray
from sparcets.errors import CapabilityError


def memory_of_stream(explainer: Any, queries: FloatArray, n: int, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield rows: peak memory after a tenth of ``n`` queries and after all, and the rate.

    Parameters
    ----------
    explainer
        Fitted, for a ``TorchClassifier``.
    queries
        Repeated until there are ``n``, in a memory map.
    n
        How many.
    folder
        For the map and the answers; three times the size of the queries.
    """
    if sys.platform == "win32":
        raise CapabilityError("peak memory cannot be read on Windows.")
    explainer.classifier.save(folder / "classifier")
    explainer.save(folder / "explainer")
    shape = (n, *queries.shape[1:])
    X = np.lib.format.open_memmap(folder / "X.npy", "w+", queries.dtype, shape)  # type: ignore[no-untyped-call]
    for start in range(0, n, len(queries)):
        X[start : start + len(queries)] = queries[: n - start]
    X.flush()
    del X
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    worker = context.Process(target=_stream, args=(folder, str(explainer.config.device), theirs))
    worker.start()
    theirs.close()
    try:
        some, every, seconds = ours.recv()
    except EOFError as error:
        raise RuntimeError("the process that measures memory died; the machine may have too little of it") from error
    finally:
        worker.join()
    name = f"{n:,} queries from a memory map to a folder"
    yield {"name": f"{name}: peak", "value": every / 2**20, "unit": "MiB"}
    yield {"name": f"{name}: growth after the first tenth", "value": (every - some) / 2**20, "unit": "MiB"}
    yield {"name": f"{name}: rate", "value": (n - n // 10) / seconds, "unit": "explanations/s"}


def _peak() -> int:
    """Return the most memory that this process has held, in bytes."""
    import resource

    status = Path("/proc/self/status")
    if status.exists():  # the system's other count, ru_maxrss, begins with what the process that started this one held
        lines = dict(line.split(":", 1) for line in status.read_text(encoding="utf-8").splitlines())
        return 1024 * int(lines["VmHWM"].split()[0])
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, kibibytes elsewhere
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _stream(folder: Path, device: str, answer: Any) -> None:
    import time

    from sparcets.classifiers.torch_classifier import load_classifier
    from sparcets.explainers.load import load

    explainer = load(folder / "explainer", classifier=load_classifier(folder / "classifier", device=device))
    X = np.load(folder / "X.npy", mmap_mode="r")
    explainer.explain(X[: len(X) // 10], target=1, out=folder / "tenth", progress=False)
    some, start = _peak(), time.perf_counter()
    explainer.explain(X[len(X) // 10 :], target=1, out=folder / "rest", progress=False)
    answer.send((some, _peak(), time.perf_counter() - start))
