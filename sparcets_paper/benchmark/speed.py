"""Speed benchmark: fitting, explaining, latency of one query, memory, and growth of time with size.

Every row has a value and its unit and, where there is one, the ratio to a reference measured in the same run, since
times of different machines cannot be compared. All answers are checked by the explained classifier, as always.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from sparcets.core.errors import CapabilityError, ConfigError, FileFormatError, SparcetsError
from sparcets.core.series import FloatArray
from sparcets.io.engines import starting_process
from sparcets.io.files import atomic_path, reason


@dataclass(frozen=True, kw_only=True)
class SpeedSizes:
    """How much is measured."""

    n_series: int = 1200  # training series; enough to use a GPU well
    shape: tuple[int, int] = (50, 50)  # steps, features
    classifier_steps: int = 200
    queries: int = 64  # explained to measure a rate
    explained: tuple[int, ...] = (1, 32)  # queries per call of explain
    singles: int = 100  # queries explained one at a time
    stream: int = 1000  # queries from a memory map
    decades: tuple[int, ...] = (5, 16, 50, 160)  # sizes over which the exponent of the growth is fitted

    @classmethod
    def quick(cls) -> SpeedSizes:
        """Return sizes that take seconds, to check that everything runs."""
        return cls(
            n_series=60,
            shape=(10, 4),
            classifier_steps=100,
            queries=16,
            explained=(1, 8),
            singles=5,
            stream=200,
            decades=(4, 8, 16),
        )


class Bench:
    """Data, a classifier and an explainer, created once and shared by the parts of the benchmark."""

    def __init__(self, *, device: str, sizes: SpeedSizes, seed: int) -> None:
        from sparcets.training.device import resolve_device

        self.device, self.sizes, self.seed = resolve_device(device), sizes, seed
        self.X, self.y = series(sizes.n_series, *sizes.shape, seed=seed)

    def machine(self) -> dict[str, Any]:
        """Return the row that describes the machine, the versions and the data."""
        import torch

        from sparcets import __version__

        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        gpu = torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else None
        return {
            "name": gpu or platform.processor() or platform.machine(),
            "device": self.device.type,
            "cores": cores,
            "threads": torch.get_num_threads(),
            "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
            "torch": torch.__version__,
            "sparcets": __version__,
            "steps": self.sizes.shape[0],
            "features": self.sizes.shape[1],
            "series": self.sizes.n_series,
        }

    @cached_property
    def classifier(self) -> Any:
        """The classifier to explain."""
        return self.fit_classifier(self.X, self.y, self.sizes.classifier_steps)

    @cached_property
    def explainer(self) -> Any:
        """An explainer of it."""
        return self.fit_explainer(self.classifier, self.X, self.y)

    def queries(self, n: int) -> FloatArray:
        """Return ``n`` series (n, time, features) that the classifier puts into class 0."""
        found = self.X[self.classifier.predict(self.X) == 0]
        return np.ascontiguousarray(np.resize(found if len(found) else self.X, (n, *self.X.shape[1:])))

    def fit_classifier(self, X: FloatArray, y: Any, steps: int) -> Any:
        """Return a bi-LSTM of the default size, trained for about so many steps."""
        from sparcets.core.settings import ClassifierConfig
        from sparcets.models.network import TorchClassifier

        epochs = -(-32 * steps // len(X))
        config = ClassifierConfig(epochs=epochs, patience=epochs, device=str(self.device), seed=self.seed)
        return TorchClassifier("bilstm", config).fit(X, y, progress=False)

    def fit_explainer(self, classifier: Any, X: FloatArray, y: Any) -> Any:
        """Return a fitted explainer with default settings."""
        from sparcets.core.settings import ExplainerConfig
        from sparcets.methods.own.explainer import Explainer

        config = ExplainerConfig().override(f"device={self.device}", f"seed={self.seed}")
        return Explainer(classifier, config).fit(X, y, progress=False)

    @contextmanager
    def timer(self) -> Iterator[Callable[[], float]]:
        """Yield a function that returns the seconds since the start, after waiting for the device."""
        import torch

        def wait() -> None:
            if self.device.type == "cuda":
                torch.cuda.synchronize(self.device)

        def seconds() -> float:
            wait()
            return time.perf_counter() - start

        wait()
        start = time.perf_counter()
        yield seconds


def series(n: int, n_steps: int, n_features: int, *, seed: int) -> tuple[FloatArray, Any]:
    """Return noise (n, time, features) and labels of two classes; in class 1, half of the features are shifted by 1.

    The classes are learnt in seconds.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, n_steps, n_features)).astype(np.float32)
    y = np.arange(n) % 2
    X[y == 1, :, : (n_features + 1) // 2] += 1.0
    return X, y


def memory_of_stream(explainer: Any, queries: FloatArray, n: int, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield rows: peak memory of explaining ``n`` queries, its growth after the first tenth, and the rate.

    The explainer is of a ``TorchClassifier``, and the queries are repeated until there are ``n``. The folder, for the
    memory map and the answers, needs three times the size of the queries.
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
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:  # in a process of its own
        with starting_process():
            measured = pool.submit(_stream, folder, str(explainer.config.device))
        early, peak, seconds = measured.result()
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


def _stream(folder: Path, device: str) -> tuple[int, int, float]:
    """Return the peak memory after a tenth of the queries and after all, and the seconds between the two."""
    from sparcets.methods.folder import load
    from sparcets.models.network import load_classifier

    explainer = load(folder / "explainer", classifier=load_classifier(folder / "classifier", device=device))
    X = np.load(folder / "X.npy", mmap_mode="r")
    explainer.explain(X[: len(X) // 10], target=1, out=folder / "tenth", progress=False)
    early, start = _peak(), time.perf_counter()
    explainer.explain(X[len(X) // 10 :], target=1, out=folder / "rest", progress=False)
    return early, _peak(), time.perf_counter() - start


COLUMNS = ("part", "what", "batch", "value", "unit", "reference", "times as fast")


def cells(row: Mapping[str, Any]) -> list[str]:
    """Return the cells of a row.

    >>> cells({"part": "latency", "name": "one query, p50", "value": 7.123, "unit": "ms"})
    ['latency', 'one query, p50', '', '7.12', 'ms', '', '']
    """
    if "error" in row:
        return [row["part"], row["error"], *[""] * (len(COLUMNS) - 2)]
    ratio = row.get("ratio")
    return [
        row["part"],
        row["name"],
        str(row.get("batch", "")),
        short(row["value"]),
        row["unit"],
        row.get("reference", ""),
        "" if ratio is None else short(ratio),
    ]


def short(value: float) -> str:
    """Return a number with three significant digits.

    >>> [short(v) for v in (0.01234, 1.0, 1234.5, 123456)]
    ['0.0123', '1.00', '1,234', '123,456']
    """
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 0.1 else f"{value:.{1 if abs(value) >= 10 else 2}f}"


Row = dict[str, Any]
FASTEST_PEERS = ("cfts:ab_cf", "cfts:native_guide", "cfts:comte")  # those whose answers are all valid


def run_speed(
    *,
    device: str = "auto",
    sizes: SpeedSizes | None = None,
    parts: tuple[str, ...] = (),
    out: str | os.PathLike[str] | None = None,
    seed: int = 0,
    on_row: Callable[[Row], None] | None = None,
) -> list[Row]:
    """Run the benchmark and store the rows as they are measured; a part that fails becomes a row with its error.

    ``parts`` are names in ``PARTS``; empty means all. The file ``out`` is replaced; with ``parts``, only the rows of
    these.
    """
    from sparcets.training.device import resolve_device

    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        raise ConfigError(f"the speed benchmark has no part {unknown[0]!r}. Known: {', '.join(PARTS)}.")
    resolve_device(device)
    chosen = parts or tuple(PARTS)
    bench = Bench(device=device, sizes=sizes or SpeedSizes(), seed=seed)
    kept = [row for row in read_rows(out) if row["part"] not in (*chosen, "machine")] if out and parts else []
    rows: list[Row] = [{"part": "machine", **bench.machine()}, *kept]

    def add(row: Row) -> None:
        rows.append(row)
        if on_row is not None:
            on_row(row)
        if out is not None:
            with atomic_path(out) as temporary:
                temporary.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    for part in chosen:
        try:
            for row in PARTS[part](bench):
                add({"part": part, **row})
        except (SparcetsError, RuntimeError, MemoryError) as error:  # RuntimeError: raised by CUDA
            add({"part": part, "name": "failed", "error": f"{type(error).__name__}: {error}"})
    return rows


def read_rows(path: str | os.PathLike[str]) -> list[Row]:
    """Return the rows of a file; none if there is no file."""
    file = Path(path)
    if not file.exists():
        return []
    try:
        rows = [json.loads(line) for line in file.read_bytes().decode().splitlines()]
        return [row for row in rows if row["part"] == "machine" or row["name"]]
    except OSError as error:
        raise FileFormatError(f"{file} cannot be read: {reason(error)}.") from error
    except (LookupError, RecursionError, TypeError, ValueError) as error:
        raise FileFormatError(
            f"{file} holds no results of sparcets benchmark speed, or it is damaged: {error!r}. Remove it, or choose "
            "another file."
        ) from error


def fitting(bench: Bench) -> Iterator[Row]:
    """Yield the seconds of a whole fit with default settings, including the models of other kinds."""
    classifier = bench.classifier
    with bench.timer() as seconds:
        bench.fit_explainer(classifier, bench.X, bench.y)
        yield {"name": "sparcets", "value": seconds(), "unit": "s", "series": len(bench.X)}


def explaining(bench: Bench) -> Iterator[Row]:
    """Yield explanations per second by queries per call; the references are ICS and the fastest peer."""
    from sparcets.core.settings import IcsConfig, NearestConfig
    from sparcets.methods.ics import Ics
    from sparcets.methods.nearest import Nearest

    few = bench.queries(max(4, bench.sizes.queries // 16))
    ics = Ics(bench.classifier, IcsConfig(seed=bench.seed)).fit(bench.X, bench.y)
    references = [{"name": "ics", "batch": len(few), **_explaining_rate(bench, ics, few)}]
    references += _fastest_peer(bench, few[:8])
    yield from references
    nearest = Nearest(bench.classifier, NearestConfig(seed=bench.seed)).fit(bench.X, bench.y)
    for name, explainer in (("nearest", nearest), ("sparcets", bench.explainer)):
        for batch in bench.sizes.explained:
            queries = bench.queries(bench.sizes.singles if batch == 1 else max(bench.sizes.queries, 4 * batch))
            row = {"name": name, "batch": batch, **_explaining_rate(bench, explainer, queries, batch)}
            yield from ({**row, "ratio": row["value"] / r["value"], "reference": r["name"]} for r in references)


def _explaining_rate(bench: Bench, explainer: Any, queries: FloatArray, batch: int | None = None) -> Row:
    """Return answers per second in calls of ``batch`` queries (None: in one call), and the share of valid answers."""
    size = batch or len(queries)
    parts = [queries[start : start + size] for start in range(0, len(queries), size)]
    explainer.explain(parts[0], target=1, progress=False)  # warm-up
    with bench.timer() as seconds:
        valid = [explainer.explain(part, target=1, progress=False).valid for part in parts]
        rate = len(queries) / seconds()
    return {"value": rate, "unit": "explanations/s", "valid": float(np.concatenate(valid).mean())}


def _fastest_peer(bench: Bench, queries: FloatArray) -> list[Row]:
    """Return the row of the fastest peer whose answers are all valid; none without the extra ``peers``."""
    if find_spec("cfts") is None:
        return []
    from sparcets_paper.peers import PEERS

    rows: list[Row] = []
    for name in FASTEST_PEERS:
        kind = PEERS.load(name)
        with suppress(SparcetsError):  # a peer that cannot explain these series is no reference
            peer = kind(bench.classifier, kind.config_class()).fit(bench.X, bench.y)
            rows.append({"name": name, "batch": 1, **_explaining_rate(bench, peer, queries)})
    return sorted((row for row in rows if row["valid"] == 1), key=lambda row: -float(row["value"]))[:1]


def latency(bench: Bench) -> Iterator[Row]:
    """Yield percentiles of the time for one query, after a warm-up."""
    explainer, queries = bench.explainer, bench.queries(bench.sizes.singles + 20)
    taken = []
    for query in queries:
        with bench.timer() as seconds:
            explainer.explain(query[None], target=1, progress=False)
            taken.append(1e3 * seconds())
    for percent in (50, 99):
        yield {"name": f"one query, p{percent}", "value": float(np.percentile(taken[20:], percent)), "unit": "ms"}


def memory(bench: Bench) -> Iterator[Row]:
    """Yield the peak memory of explaining from a memory map into a folder, and its growth after the first tenth."""
    queries = bench.queries(bench.sizes.queries)
    with tempfile.TemporaryDirectory() as folder:
        yield from memory_of_stream(bench.explainer, queries, bench.sizes.stream, Path(folder))


def scaling(bench: Bench) -> Iterator[Row]:
    """Yield the exponents with which the time to explain grows with queries, features and steps."""
    sizes = bench.sizes

    def seconds(explainer: Any, queries: FloatArray) -> float:
        taken: list[float] = []
        while not taken or (len(taken) < 3 and sum(taken) < 1):  # short times vary more
            taken.append(len(queries) / _explaining_rate(bench, explainer, queries)["value"])
        return min(taken)

    def of_shape(n_steps: int, n_features: int) -> float:
        X, y = series(120, n_steps, n_features, seed=bench.seed)
        # Training on the longest series takes most of the time, and a shorter training suffices.
        classifier = bench.fit_classifier(X, y, min(80, sizes.classifier_steps))
        queries = np.resize(X[y == 0], (sizes.decades[-1] // 4, n_steps, n_features))
        return seconds(bench.fit_explainer(classifier, X, y), queries)

    measures: dict[str, Callable[[int], float]] = {
        "queries": lambda size: seconds(bench.explainer, bench.queries(size)),
        "features": lambda size: of_shape(20, size),
        "steps": lambda size: of_shape(size, 20),
    }
    for name, measure in measures.items():
        measured = {size: measure(size) for size in sizes.decades}
        yield {"name": name, "value": growth_exponent(measured), "unit": "exponent", "seconds": measured}


def growth_exponent(seconds: Mapping[int, float]) -> float:
    """Return the exponent of the power law fitted to times by size.

    >>> round(growth_exponent({10: 0.2, 100: 2.0, 1000: 20.0}), 6)
    1.0
    """
    return float(np.polyfit(np.log(list(seconds)), np.log(list(seconds.values())), 1)[0])


PARTS: dict[str, Callable[[Bench], Iterator[Row]]] = {
    "fitting": fitting,
    "explaining": explaining,
    "latency": latency,
    "memory": memory,
    "scaling": scaling,
}
