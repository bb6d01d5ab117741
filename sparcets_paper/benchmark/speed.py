"""Speed benchmark: training, fitting, explaining, latency of one query, memory, and growth of time with size.

Every row has a value and its unit and, where there is one, the ratio to a reference measured in the same run, since
times of different machines cannot be compared. All answers are checked by the explained classifier, as always.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets.core.arrays import FloatArray
from sparcets.core.errors import ConfigError, FileFormatError, SparcetsError
from sparcets.io.files import atomic_path, reason
from sparcets_paper.benchmark.speed_setting import Bench, SpeedSizes, memory_of_stream, plain_step, series

if TYPE_CHECKING:
    from sparcets.methods.adversarial import GanTraining


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


def training(bench: Bench) -> Iterator[dict[str, Any]]:
    """Yield training steps per second by method and batch size; the reference is :func:`plain_step`, batch size 32."""
    from sparcets.core.settings import CounterGanConfig, GanConfig, SparceConfig

    plain = plain_step(bench.X, bench.fit_classifier(bench.X, bench.y), 1, bench.device)
    reference = bench.rate(plain, bench.sizes.steps)
    unit = "steps/s"
    yield {"name": "the paper's step, plain", "batch": 32, "value": reference, "unit": unit}
    methods = (
        ("sparce, paper", "sparce", SparceConfig.paper(target=1)),
        ("countergan, paper", "countergan", CounterGanConfig.paper(target=1)),
        ("gan, paper", "gan", GanConfig.paper(target=1)),
    )
    for name, method, config in methods:
        config = config.override("train.epochs=1", f"device={bench.device}", f"seed={bench.seed}")
        for batch in bench.sizes.batches:
            rate = _training_rate(bench, method, config.override(f"train.batch_size={batch}"))
            yield {
                "name": name,
                "batch": batch,
                "value": rate,
                "unit": unit,
                "ratio": rate * batch / (reference * 32),  # in series per second, since larger batches do more per step
                "reference": "the paper's step, plain",
            }


def _training_rate(bench: Bench, method: str, config: Any) -> float:
    """Return the training steps per second of a method.

    Measured in a fit whose training loop is replaced by timed steps. The checks that follow are left out, since a
    generator may fail them after so few steps.
    """
    from sparcets.methods import EXPLAINERS
    from sparcets.training.cuda import CapturedStep

    kind = EXPLAINERS.load(method)
    rates = []

    def run_timed_steps(self: Any, training: GanTraining, progress: bool | None) -> None:
        step = CapturedStep(training.step, training.step.x.device)
        batches = [batch for epoch in range(bench.sizes.steps) for batch in training.pairing(epoch)]
        next_batch = iter(batches * (2 + 10 // len(batches)))
        rates.append(bench.rate(lambda: step.update(next(next_batch)), min(bench.sizes.steps, len(batches))))

    def no_check(self: Any, *_: Any) -> None: ...

    checks = dict.fromkeys(("_check_generator", "_check_model"), no_check)
    timed = type(kind.__name__, (kind,), {"_run_training": run_timed_steps, **checks})
    timed(bench.classifier(), config).fit(bench.X, bench.y, progress=False)
    return rates[0]


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

    Parameters
    ----------
    device
        Device of the networks.
    sizes
        How much is measured.
    parts
        Names in ``PARTS``; empty means all.
    out
        JSONL file. An existing file is replaced; with ``parts``, only the rows of these parts.
    seed
        Seed of data and weights.
    on_row
        Called with every new row.
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
    for part in chosen:
        try:
            for row in PARTS[part](bench):
                rows.append({"part": part, **row})
                if on_row is not None:
                    on_row(rows[-1])
                _store(rows, out)
        except (SparcetsError, RuntimeError, MemoryError) as error:  # RuntimeError: raised by CUDA
            rows.append({"part": part, "name": "failed", "error": f"{type(error).__name__}: {error}"})
            if on_row is not None:
                on_row(rows[-1])
    _store(rows, out)
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


def _store(rows: list[Row], out: str | os.PathLike[str] | None) -> None:
    if out is not None:
        with atomic_path(out) as temporary:
            temporary.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def fitting(bench: Bench) -> Iterator[Row]:
    """Yield the seconds of a whole fit with default settings, including the models of other kinds."""
    classifier = bench.classifier()
    with bench.timer() as seconds:
        bench.fit_explainer(classifier, bench.X, bench.y)
        yield {"name": "sparcets", "value": seconds(), "unit": "s", "series": len(bench.X)}


def explaining(bench: Bench) -> Iterator[Row]:
    """Yield explanations per second by queries per call; the references are ICS and the fastest peer."""
    from sparcets.core.settings import IcsConfig, NearestConfig
    from sparcets.methods.ics import Ics
    from sparcets.methods.nearest import Nearest

    unit, rates = "explanations/s", {}
    few = bench.queries(max(4, bench.sizes.queries // 16))
    ics = Ics(bench.classifier(), IcsConfig(seed=bench.seed)).fit(bench.X, bench.y)
    rates["ics"], valid = _explaining_rate(bench, ics, few)
    yield {"name": "ics", "batch": len(few), "value": rates["ics"], "unit": unit, "valid": valid}
    peer = _fastest_peer(bench, few[:8])
    if peer is not None:
        rates[peer["name"]] = peer["value"]
        yield peer
    nearest = Nearest(bench.classifier(), NearestConfig(seed=bench.seed)).fit(bench.X, bench.y)
    ours = bench.explainer()
    for name, explainer in (("nearest", nearest), ("sparcets", ours)):
        for batch in bench.sizes.explained:
            queries = bench.queries(bench.sizes.singles if batch == 1 else max(bench.sizes.queries, 4 * batch))
            rate, valid = _explaining_rate(bench, explainer, queries, batch)
            for other, value in rates.items():
                yield {
                    "name": name,
                    "batch": batch,
                    "value": rate,
                    "unit": unit,
                    "valid": valid,
                    "ratio": rate / value,
                    "reference": other,
                }


def _explaining_rate(
    bench: Bench, explainer: Any, queries: FloatArray, batch: int | None = None
) -> tuple[float, float]:
    """Return answers per second in calls of ``batch`` queries (None: in one call), and the share of valid answers."""
    size = batch or len(queries)
    parts = [queries[start : start + size] for start in range(0, len(queries), size)]
    explainer.explain(parts[0], target=1, progress=False)  # warm-up
    with bench.timer() as seconds:
        valid = [explainer.explain(part, target=1, progress=False).valid for part in parts]
        return len(queries) / seconds(), float(np.concatenate(valid).mean())


def _fastest_peer(bench: Bench, queries: FloatArray) -> Row | None:
    """Return the row of the fastest peer whose answers are all valid; None without the extra ``peers``."""
    if find_spec("cfts") is None:
        return None
    from sparcets_paper.peers import PEERS

    best: Row | None = None
    for name in FASTEST_PEERS:
        kind = PEERS.load(name)
        try:
            peer = kind(bench.classifier(), kind.config_class()).fit(bench.X, bench.y)
            rate, valid = _explaining_rate(bench, peer, queries)
        except SparcetsError:
            continue  # a peer that cannot explain these series is no reference
        if valid == 1 and (best is None or rate > best["value"]):
            best = {"name": name, "batch": 1, "value": rate, "unit": "explanations/s", "valid": valid}
    return best


def latency(bench: Bench) -> Iterator[Row]:
    """Yield percentiles of the time for one query, after a warm-up."""
    explainer, queries = bench.explainer(), bench.queries(bench.sizes.singles + 20)
    taken = []
    for query in queries:
        with bench.timer() as seconds:
            explainer.explain(query[None], target=1, progress=False)
            taken.append(1e3 * seconds())
    for percent in (50, 99):
        yield {"name": f"one query, p{percent}", "value": float(np.percentile(taken[20:], percent)), "unit": "ms"}


def memory(bench: Bench) -> Iterator[Row]:
    """Yield the peak memory of explaining from a memory map into a folder, and its growth after the first tenth."""
    explainer = bench.explainer()
    with tempfile.TemporaryDirectory() as folder:
        yield from memory_of_stream(explainer, bench.queries(bench.sizes.queries), bench.sizes.stream, Path(folder))


def scaling(bench: Bench) -> Iterator[Row]:
    """Yield the exponents with which the time to explain grows with queries, features and steps."""
    sizes = bench.sizes
    n = sizes.decades[-1] // 4
    # Training on the longest series takes most of the time, and a shorter training suffices.
    shorter = replace(sizes, classifier_steps=min(80, sizes.classifier_steps))
    short = bench.with_sizes(shorter)

    def seconds(explainer: Any, queries: FloatArray) -> float:
        taken = [len(queries) / _explaining_rate(bench, explainer, queries)[0]]
        while len(taken) < 3 and sum(taken) < 1:  # short times vary more
            taken.append(len(queries) / _explaining_rate(bench, explainer, queries)[0])
        return min(taken)

    def of_shape(n_steps: int, n_features: int) -> float:
        X, y = series(120, n_steps, n_features, seed=bench.seed)
        explainer = short.fit_explainer(short.fit_classifier(X, y), X, y)
        return seconds(explainer, np.resize(X[y == 0], (n, n_steps, n_features)))

    explainer = bench.explainer()
    measures: dict[str, Callable[[int], float]] = {
        "queries": lambda size: seconds(explainer, bench.queries(size)),
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
    "training": training,
    "fitting": fitting,
    "explaining": explaining,
    "latency": latency,
    "memory": memory,
    "scaling": scaling,
}
