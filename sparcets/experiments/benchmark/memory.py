"""Peak memory of explaining queries from a memory map, measured in a separate process."""

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
    """Yield rows: peak memory of explaining ``n`` queries, its growth after the first tenth, and the rate.

    Parameters
    ----------
    explainer
        Fitted explainer of a ``TorchClassifier``.
    queries
        Series (batch, time, features), repeated until there are ``n``.
    n
        Number of queries.
    folder
        Folder for the memory map and the answers; needs three times the size of the queries.
    """
    _peak()  # raises where it cannot be read
    explainer.classifier.save(folder / "classifier")
    explainer.save(folder / "explainer")
    shape = (n, *queries.shape[1:])
    X = np.lib.format.open_memmap(folder / "X.npy", "w+", queries.dtype, shape)  # type: ignore[no-untyped-call]
    for start in range(0, n, len(queries)):
        X[start : start + len(queries)] = queries[: n - start]
    X.flush()
    del X
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    worker = context.Process(target=_stream, args=(folder, str(explainer.config.device), sender))
    worker.start()
    sender.close()
    try:
        early, peak, seconds = receiver.recv()
    except EOFError as error:
        raise RuntimeError("the process that measures memory died, perhaps for lack of memory") from error
    finally:
        worker.join()
    name = f"{n:,} queries from a memory map to a folder"
    yield {"name": f"{name}: peak", "value": peak / 2**20, "unit": "MiB"}
    yield {"name": f"{name}: growth after the first tenth", "value": (peak - early) / 2**20, "unit": "MiB"}
    yield {"name": f"{name}: rate", "value": (n - n // 10) / seconds, "unit": "explanations/s"}


def _peak() -> int:
    """Return the peak memory of this process, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss would include the peak of the parent process
        lines = dict(line.split(":", 1) for line in status.read_text(encoding="utf-8").splitlines())
        return 1024 * int(lines["VmHWM"].split()[0])
    try:
        import resource
    except ImportError as error:
        raise CapabilityError("peak memory cannot be read here: there is neither /proc nor getrusage.") from error
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, kibibytes elsewhere
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _stream(folder: Path, device: str, sender: Any) -> None:
    import time

    from sparcets.classifiers.torch_classifier import load_classifier
    from sparcets.explainers.files import load

    explainer = load(folder / "explainer", classifier=load_classifier(folder / "classifier", device=device))
    X = np.load(folder / "X.npy", mmap_mode="r")
    explainer.explain(X[: len(X) // 10], target=1, out=folder / "tenth", progress=False)
    early, start = _peak(), time.perf_counter()
    explainer.explain(X[len(X) // 10 :], target=1, out=folder / "rest", progress=False)
    sender.send((early, _peak(), time.perf_counter() - start))
