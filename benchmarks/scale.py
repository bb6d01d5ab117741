"""Many series in Parquet files: one core, two cores, and clusters of Ray on this machine, with nodes that are killed.

    python benchmarks/scale.py             # all parts with 200,000 series; a quarter of an hour on two idle cores
    python benchmarks/scale.py overhead    # one part
    python benchmarks/scale.py --trial     # all parts with 4,000 series, stored nowhere
    python benchmarks/scale.py gpu --queries 100000    # on a machine with a GPU; not among "all"

Series of 50 x 50, explained by ``sp.Sparce``: one pass of a generator each, no search. Generator and classifier, a
bi-LSTM, are hardly trained, which makes no difference to the speed. Parts that are stored for the present commit are
not measured again; ``--again`` does. Rows go to ``results/scale.jsonl``. Needs ``sparcets[ray]``, psutil and 8 GB of
disk.
"""

import argparse
import ctypes
import gc
import os
import platform
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from stored import COMMIT, read, store

import sparcets as sp
from sparcets.io.engines import make_engine
from sparcets.methods.archive import explain_parquet

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_worker_niceness", "0")  # that of the other engine; by itself it is 15
FILE = "scale.jsonl"
STEPS = FEATURES = 50
PER_FILE, PER_GROUP = 10_000, 1_000  # series of a file, and of a row group
MIB = 2**20


class Bench:
    """The files of a run, and what is done with them."""

    def __init__(self, folder: Path, n: int, *, stores: bool) -> None:
        self.folder, self.n, self.stores = folder, n, stores
        self.model, self.source = folder / "model", folder / f"queries-{n}"

    def prepare(self) -> None:
        """Fit the explainer and write the series, unless they are there."""
        if not (self.model / "explainer" / "explainer.safetensors").exists():
            X, y = series(64, seed=0), np.arange(64) % 2
            X[y == 1, 20:30, :10] += 3
            data = sp.Dataset.from_arrays(X, y)
            clf = sp.TorchClassifier("bilstm", sp.ClassifierConfig(epochs=2)).fit(data, progress=False)
            ex = sp.Sparce(clf, sp.SparceConfig().override("train.epochs=1")).fit(data, progress=False)
            clf.save(self.model / "classifier")
            ex.save(self.model / "explainer")
        for k, first in enumerate(range(0, self.n, PER_FILE)):
            path = self.source / f"site={k % 4}" / f"{k:05d}.parquet"
            if path.exists():
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            X = series(min(PER_FILE, self.n - first), seed=k + 1)
            lists = {f"f{i}": pa.array(list(X[:, :, i])) for i in range(FEATURES)}
            table = pa.table({"id": np.arange(first, first + len(X)), **lists})
            hidden = path.with_name(f".{path.name}")
            pq.write_table(table, hidden, row_group_size=PER_GROUP, use_dictionary=False)
            hidden.rename(path)

    def explain(self, out: str, *, source: Path | None = None, **where: Any) -> Any:
        """Explain all series into a new folder."""
        shutil.rmtree(self.folder / out, ignore_errors=True)
        return explain_parquet(self.model, source or self.source, self.folder / out, target=1, **where)

    def tenth(self) -> Path:
        """Return a folder with a tenth of the files, at least one."""
        folder = self.folder / f"tenth-{self.n}"
        files = sorted(self.source.rglob("*.parquet"), key=lambda path: path.name)
        for path in files[: max(1, len(files) // 10)]:
            link = folder / path.relative_to(self.source)
            link.parent.mkdir(parents=True, exist_ok=True)
            if not link.exists():
                link.hardlink_to(path)
        return folder

    def row(self, part: str, **values: Any) -> None:
        """Store and print a row."""
        machine = f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
        row = {"commit": COMMIT, "part": part, **values, "machine": machine}
        if self.stores:
            store(FILE, row, ("part",))
        else:
            print(row, flush=True)


def series(n: int, seed: int) -> np.ndarray:
    X = np.random.default_rng(seed).normal(size=(n, STEPS, FEATURES)).astype(np.float32)
    return X.cumsum(1, dtype=np.float32)


@contextmanager
def cluster(*cores: int) -> Iterator[Any]:
    """Start a cluster with a node for each number of cores, on this machine; the first cannot be killed."""
    from ray.cluster_utils import Cluster

    options = {"object_store_memory": 128 * MIB}
    started = Cluster(
        initialize_head=True, head_node_args={"num_cpus": cores[0], "include_dashboard": False, **options}
    )
    started.nodes_to_kill = [started.add_node(num_cpus=n, **options) for n in cores[1:]]
    try:
        yield started
    finally:
        started.shutdown()


def workers() -> list[psutil.Process]:
    """Return the processes that explain: of the engine local, or of Ray."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # it has ended
            words = " ".join(process.cmdline())
            if "ray::_Actor" in words or "spawn_main" in words:
                found.append(process)
    return found


class Watch:
    """Samples memory, and calls something once a number of shards is written."""

    def __init__(self, out: Path, *, at: dict[int, Callable[[], None]] | None = None) -> None:
        self.out, self.at = out, dict(at or {})
        self.samples: list[tuple[int, int, int]] = []  # shards written, memory of the driver and of the largest worker
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self) -> None:
        """Look four times a second."""
        while not self.over.wait(0.25):
            written = sum(1 for _ in self.out.rglob("[0-9]*.parquet"))
            for number in [number for number in self.at if number <= written]:
                self.at.pop(number)()
            sizes = [0]
            for process in workers():
                with suppress(psutil.Error):  # it has ended
                    sizes.append(process.memory_info().rss)
            self.samples.append((written, psutil.Process().memory_info().rss, max(sizes)))

    def __enter__(self) -> "Watch":
        self.thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.over.set()
        self.thread.join()

    def peaks(self, shards: int) -> tuple[float, float]:
        """Return the largest memory of driver and worker, in MiB, up to a number of shards."""
        some = [sample for sample in self.samples if sample[0] <= shards] or self.samples[:1]
        return max(s[1] for s in some) / MIB, max(s[2] for s in some) / MIB


def one_core(bench: Bench) -> None:
    """A tenth of the series in this process: what a million costs, in time of a core, and bytes on disk."""
    some = bench.tenth()
    began = time.process_time()
    result = bench.explain("one", source=some)
    seconds = time.process_time() - began
    answers, source = (sum(p.stat().st_size for p in f.rglob("*.parquet")) for f in (bench.folder / "one", some))
    shutil.rmtree(bench.folder / "one")
    bench.row(
        "one core",
        queries=result.queries,
        core_s=round(seconds, 2),
        seconds=round(result.seconds, 2),
        explain_share=round(result.explain_s / result.seconds, 3),
        rate=round(result.queries / seconds, 1),
        bytes_in=round(source / result.queries),
        bytes_out=round(answers / result.queries),
    )


def two_cores(bench: Bench) -> None:
    """A tenth of the series by one process and by two, in turn, twice: what a second core gives."""
    some, seconds = bench.tenth(), {1: 0.0, 2: 0.0}
    for number in (1, 2, 1, 2):
        seconds[number] += bench.explain("two", source=some, workers=number).seconds / 2
    shutil.rmtree(bench.folder / "two")
    bench.row(
        "two cores", one_s=round(seconds[1], 2), two_s=round(seconds[2], 2), gain=round(seconds[1] / seconds[2], 3)
    )


def overhead(bench: Bench) -> None:
    """The same work by both engines in turn, twice, with two workers on the same two cores."""
    seconds: dict[str, list[float]] = {"local": [], "ray": []}
    with cluster(2) as started:
        for _ in range(2):
            for engine, times in seconds.items():
                where = {"address": started.address} if engine == "ray" else {}
                times.append(bench.explain(engine, engine=engine, workers=2, **where).seconds)
                print(engine, times, flush=True)
    same = contents(bench.folder / "local") == contents(bench.folder / "ray")
    shutil.rmtree(bench.folder / "ray")
    bench.row(
        "overhead",
        queries=bench.n,
        workers=2,
        local_s=[round(t, 2) for t in seconds["local"]],
        ray_s=[round(t, 2) for t in seconds["ray"]],
        ratio=round(sum(seconds["ray"]) / sum(seconds["local"]), 3),
        same_bytes=same,
    )


def contents(folder: Path) -> dict[str, bytes]:
    """Return a digest of every file of answers, by name."""
    import hashlib

    files = sorted(folder.rglob("*.parquet"))
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).digest() for path in files}


def killed_node(bench: Bench) -> None:
    """Three nodes, one of which is killed half-way: what is lost, what is twice, and memory all the way."""
    if not (bench.folder / "local" / "_sparcets.json").exists():
        bench.explain("local", workers=2)
    shards = len(contents(bench.folder / "local"))
    with cluster(1, 1, 1) as started:

        def kill() -> None:
            started.remove_node(started.nodes_to_kill.pop(), allow_graceful=False)
            print("a node is killed", flush=True)

        with Watch(bench.folder / "killed", at={shards // 2: kill}) as watch:
            result = bench.explain("killed", engine="ray", address=started.address)
    ids = np.concatenate(
        [
            pq.read_table(path, columns=["id"], partitioning=None)["id"].to_numpy()
            for path in (bench.folder / "killed").rglob("*.parquet")
        ]
    )
    same = contents(bench.folder / "local") == contents(bench.folder / "killed")
    shutil.rmtree(bench.folder / "killed")
    early, late = watch.peaks(shards // 10), watch.peaks(shards)
    bench.row(
        "three nodes, one killed",
        queries=bench.n,
        shards=shards,
        seconds=round(result.seconds, 2),
        lost=bench.n - len(np.unique(ids)),
        twice=len(ids) - len(np.unique(ids)),
        errors=result.errors,
        same_bytes=same,
        driver_mib=[round(early[0]), round(late[0])],
        worker_mib=[round(early[1]), round(late[1])],
    )


def memory(bench: Bench) -> None:
    """A tenth of the series ten times in one process: the memory in use, without what the allocator keeps for later."""
    some, process, kept = bench.tenth(), psutil.Process(), []
    for _ in range(10):
        bench.explain("memory", source=some)
        gc.collect()
        pa.default_memory_pool().release_unused()
        ctypes.CDLL(None).malloc_trim(0)  # of glibc
        kept.append(round(process.memory_info().rss / MIB))
    shutil.rmtree(bench.folder / "memory")
    bench.row("memory", queries=bench.n, mib=kept)


def benchmark(bench: Bench) -> None:
    """A benchmark of 24 cells on three nodes, two of whose workers are killed."""
    from sparcets.testing.data import make_series
    from sparcets_paper.benchmark.plan import Cell
    from sparcets_paper.benchmark.runner import run_plan

    X, y = make_series(45, n_steps=10)
    folder = bench.folder / "cells"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    np.savez(folder / "own.npz", X=X, y=y)
    tiny = {"hidden": 4, "layers": 1, "dropout": 0.0, "epochs": 2}
    cell = Cell(dataset="own", source=str(folder / "own.npz"), classifier_config=tiny, preset="tiny", queries=2)
    plan = [replace(cell, method=m, seed=s) for m in ("nearest", "ics") for s in range(12)]
    seen, killed = [], []

    def kill(row: dict[str, Any]) -> None:
        seen.append(row)
        if len(seen) in (2, 8):
            at_work = [p for p in workers() if "_Actor.run" in " ".join(p.cmdline())]
            at_work[0].send_signal(signal.SIGKILL)
            killed.append(at_work[0].pid)

    began = time.perf_counter()
    with cluster(1, 1, 1) as started:
        rows = run_plan(plan, folder / "runs", engine="ray", address=started.address, device="cpu", on_row=kill)
    bench.row(
        "benchmark",
        cells=24,
        rows=len(rows),
        twice=len((folder / "runs" / "results.jsonl").read_text().splitlines()) - len(rows),
        errors=sum("error" in row for row in rows),
        killed=len(killed),
        seconds=round(time.perf_counter() - began, 1),
    )


def driver(bench: Bench) -> None:
    """How many pieces of work one driver can hand out, which bounds the number of workers it can keep busy."""
    with cluster(2) as started, make_engine("ray", address=started.address) as engine:
        list(engine.map_unordered(abs, range(2), workers=2))
        began = time.perf_counter()
        n = sum(1 for _ in engine.map_unordered(abs, range(2000), workers=2))
        seconds = time.perf_counter() - began
        began = time.perf_counter()
        list(engine.map_unordered(abs, range(2), workers=2))
        start = time.perf_counter() - began
    bench.row("driver", items=n, per_second=round(n / (seconds - start), 1), start_s=round(start, 2))


def gpu(bench: Bench) -> None:
    """One, four and twelve processes that share one GPU."""
    import torch

    for number in (1, 4, 12):
        result = bench.explain("gpu", workers=number, device="cuda")
        bench.row(
            f"gpu, {number} worker{'s' * (number > 1)}",
            device=torch.cuda.get_device_name(),
            queries=result.queries,
            workers=number,
            seconds=round(result.seconds, 2),
            explain_s=round(result.explain_s, 2),
            rate=round(result.queries / result.seconds, 1),
        )


PARTS: dict[str, Callable[[Bench], None]] = {
    "one_core": one_core,
    "two_cores": two_cores,
    "overhead": overhead,
    "killed_node": killed_node,
    "memory": memory,
    "benchmark": benchmark,
    "driver": driver,
    "gpu": gpu,
}
ROWS = {
    "one_core": "one core",
    "two_cores": "two cores",
    "overhead": "overhead",
    "killed_node": "three nodes, one killed",
    "memory": "memory",
    "benchmark": "benchmark",
    "driver": "driver",
    "gpu": "gpu, 12 workers",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="default: all")
    parser.add_argument("--queries", type=int, default=200_000)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir(), "sparcets-scale"))
    parser.add_argument("--trial", action="store_true", help="4,000 series, stored nowhere")
    parser.add_argument("--again", action="store_true", help="measure also what is stored for this commit")
    asked = parser.parse_args()
    bench = Bench(asked.folder, 4000 if asked.trial else asked.queries, stores=not asked.trial)
    bench.prepare()
    done = {row["part"] for row in read(FILE) if row["commit"] == COMMIT} if bench.stores and not asked.again else set()
    for name in asked.parts or [name for name in PARTS if name != "gpu"]:
        if ROWS[name] in done:
            print(f"{name}: stored already", flush=True)
            continue
        PARTS[name](bench)


if __name__ == "__main__":
    main()
