"""How fast it is: training, fitting, explaining, waiting for one answer, memory, and how time grows with size.

Every row has a value and its unit, and beside it the same of a reference measured in the same run: a machine's clock is
nobody else's. Answers are checked by the explained classifier, as always.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from sparcets.arrays import FloatArray
from sparcets.benchmark.memory import memory_of_stream
from sparcets.benchmark.plain_step import plain_step
from sparcets.benchmark.speed_setting import Bench, Sizes, fit_sparce, series, train_classifier
from sparcets.errors import ConfigError, SparcetsError
from sparcets.storage import atomic_path
from sparcets.trade_off import knee

Row = dict[str, Any]
LARGE = 8192  # queries at a time on a GPU
CROWD = 16  # times as many in the largest call
MANY = 8  # times as many queries as features or steps, where growth is measured
PATIENCE = 4.0  # seconds for one rate of training on a CPU
FASTEST_PEERS = ("cfts:ab_cf", "cfts:native_guide", "cfts:comte")  # of those that are valid throughout


def run_speed(
    *,
    device: str = "auto",
    sizes: Sizes | None = None,
    parts: tuple[str, ...] = (),
    out: str | os.PathLike[str] | None = None,
    seed: int = 0,
    on_row: Callable[[Row], None] | None = None,
) -> list[Row]:
    """Measure, and store after every row; a part that fails becomes a row that says so.

    Parameters
    ----------
    device
        Where networks are trained and asked.
    sizes
        How much is measured.
    parts
        Of ``PARTS``; empty means all.
    out
        JSONL file; one that is there is replaced, part by part where only some are measured.
    seed
        Of data and weights.
    on_row
        Told every row as it comes.
    """
    from sparcets.training.device import resolve_device

    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        raise ConfigError(f"no part {unknown[0]!r} of the speed benchmark. Known: {', '.join(PARTS)}.")
    resolve_device(device)
    chosen = parts or tuple(PARTS)
    bench = Bench(device=device, sizes=sizes or Sizes(), seed=seed)
    kept = [row for row in read_rows(out) if row["part"] not in (*chosen, "machine")] if out and parts else []
    rows: list[Row] = [{"part": "machine", **bench.machine()}, *kept]
    for part in chosen:
        try:
            for row in PARTS[part](bench):
                rows.append({"part": part, **row})
                if on_row is not None:
                    on_row(rows[-1])
                _store(rows, out)
        except (SparcetsError, RuntimeError, MemoryError) as error:  # RuntimeError: what CUDA raises
            rows.append({"part": part, "name": "failed", "error": f"{type(error).__name__}: {error}"})
            if on_row is not None:
                on_row(rows[-1])
    _store(rows, out)
    return rows


def read_rows(path: str | os.PathLike[str]) -> list[Row]:
    """Return the rows of a file; none where there is no file."""
    file = Path(path)
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def _store(rows: list[Row], out: str | os.PathLike[str] | None) -> None:
    if out is not None:
        with atomic_path(out) as temporary:
            temporary.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def training(bench: Bench) -> Iterator[Row]:
    """Yield steps per second by method and batch, against the paper's step written plainly with batches of 32."""
    from sparcets.config.explainers import CounterGanConfig, GanConfig, SparceConfig

    plain = plain_step(bench.X, train_classifier(bench, bench.X, bench.y), 1, bench.device)
    reference = _rate(bench, plain, bench.sizes.steps)
    unit = "steps/s"
    yield {"name": "the paper's step, plain", "batch": 32, "value": reference, "unit": unit}
    kinds = (
        ("sparce", "sparce", SparceConfig()),
        ("sparce, paper", "sparce", SparceConfig.paper(target=1)),
        ("countergan, paper", "countergan", CounterGanConfig.paper(target=1)),
        ("gan, paper", "gan", GanConfig.paper(target=1)),
    )
    for name, method, config in kinds:
        for batch in bench.sizes.batches:
            rate = _training_rate(bench, method, config.override(f"train.batch_size={batch}"))
            yield {
                "name": name,
                "batch": batch,
                "value": rate,
                "unit": unit,
                "ratio": rate * batch / (reference * 32),  # of series per second: larger batches do more in a step
                "reference": "the paper's step, plain",
            }


def _training_rate(bench: Bench, method: str, config: Any) -> float:
    """Return the steps per second of a method's own training step, as its own training takes it."""
    from sparcets.explainers import EXPLAINERS
    from sparcets.training.capture import CapturedStep

    kind = EXPLAINERS.load(method)
    rates = []

    def timed(self: Any, job: Any, step: Any, pairing: Any, *rest: Any, **settings: Any) -> None:
        captured = CapturedStep(step, step.x.device)
        batches = [batch for epoch in range(bench.sizes.steps) for batch in pairing(epoch)]
        turn = iter(batches * (2 + 10 // len(batches)))
        rates.append(_rate(bench, lambda: captured.update(next(turn)), min(bench.sizes.steps, len(batches))))
        raise _MeasuredError

    # The training as it is prepared, then some steps on the clock instead of all.
    watched = type(kind.__name__, (kind,), {"_run": timed})
    short = config.override("train.epochs=1", f"device={bench.device}", f"seed={bench.seed}")
    if method == "sparce" and config.recipe == "true":
        short = short.override("guide=never")
    with suppress(_MeasuredError):
        watched(bench.classifier(), short).fit(bench.X, bench.y, progress=False)
    return rates[0]


class _MeasuredError(Exception):
    """Ends a training whose steps have been timed."""


def _rate(bench: Bench, call: Callable[[], Any], times: int) -> float:
    """Return how often per second something can be done, once it is warm; some seconds of it are enough."""
    with bench.timer() as seconds:
        for _ in range(5):  # a captured step takes three plain ones first
            call()
            if bench.device.type == "cpu" and seconds() > PATIENCE / 2:
                break
    with bench.timer() as seconds:
        done = 0
        while done < times:
            call()
            done += 1
            if bench.device.type == "cpu" and seconds() > PATIENCE:  # a GPU would have to be waited for
                break
        return done / seconds()


def fitting(bench: Bench) -> Iterator[Row]:
    """Yield the seconds that a whole fit takes by the default recipe, witnesses and all."""
    from sparcets.config.explainers import SparceConfig
    from sparcets.explainers.sparce import Sparce

    classifier = bench.classifier()
    config = SparceConfig().override(f"device={bench.device}", f"seed={bench.seed}")
    if bench.sizes.epochs < Sizes.epochs:  # a quick look
        config = config.override("train.epochs=1")
    with bench.timer() as seconds:
        Sparce(classifier, config).fit(bench.X, bench.y, progress=False)
        yield {"name": "sparce", "value": seconds(), "unit": "s", "series": len(bench.X)}


def explaining(bench: Bench) -> Iterator[Row]:
    """Yield checked explanations per second by the number of queries in a call, against ICS and the fastest peer."""
    from sparcets.config.explainers import IcsConfig, NearestConfig
    from sparcets.explainers.ics import Ics
    from sparcets.explainers.nearest import Nearest

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
    sparce = bench.explainer()
    for name, explainer in (("nearest", nearest), ("sparce", sparce)):
        for batch in (*bench.sizes.explained, *([LARGE] if bench.device.type == "cuda" else [])):
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
    if bench.device.type == "cuda":
        many = bench.queries(CROWD * LARGE)
        rate, valid = _explaining_rate(bench, sparce, many, len(many))
        beside = {"unit": unit, "reference": "ics"}
        ratio = rate / rates["ics"]
        yield {"name": "sparce", "batch": len(many), "value": rate, "valid": valid, "ratio": ratio} | beside
        rate = _rate_on_the_device(bench, sparce)
        ratio = rate / rates["ics"]
        yield {"name": "sparce, data on the GPU", "batch": LARGE, "value": rate, "ratio": ratio} | beside


def _rate_on_the_device(bench: Bench, explainer: Any) -> float:
    """Return the checked answers per second where queries lie on the device and answers stay there."""
    import torch

    recipe, place = explainer._recipe, knee(explainer.trade_off_)
    raw = torch.as_tensor(bench.queries(LARGE), device=bench.device)
    target, least = torch.ones(LARGE, dtype=torch.int64, device=bench.device), torch.zeros(raw.shape[2]).to(raw)
    return LARGE * _rate(bench, lambda: recipe.generate(raw, target, least, place), 8)


def _explaining_rate(
    bench: Bench, explainer: Any, queries: FloatArray, batch: int | None = None
) -> tuple[float, float]:
    """Return the answers per second, in calls of so many queries or all at once, and the share that is valid."""
    size = batch or len(queries)
    parts = [queries[start : start + size] for start in range(0, len(queries), size)]
    explainer.explain(parts[0], target=1, progress=False)  # warm-up
    with bench.timer() as seconds:
        valid = [explainer.explain(part, target=1, progress=False).valid for part in parts]
        return len(queries) / seconds(), float(np.concatenate(valid).mean())


def _fastest_peer(bench: Bench, queries: FloatArray) -> Row | None:
    """Return the row of the fastest peer that is valid throughout; None where the extra ``peers`` is not installed."""
    if find_spec("cfts") is None:
        return None
    from sparcets.peers import PEERS

    best: Row | None = None
    for name in FASTEST_PEERS:
        kind = PEERS.load(name)
        try:
            peer = kind(bench.classifier(), kind.config_class()).fit(bench.X, bench.y)
            rate, valid = _explaining_rate(bench, peer, queries)
        except SparcetsError:
            continue  # a peer that cannot do these series is no reference
        if valid == 1 and (best is None or rate > best["value"]):
            best = {"name": name, "batch": 1, "value": rate, "unit": "explanations/s", "valid": valid}
    return best


def latency(bench: Bench) -> Iterator[Row]:
    """Yield how long one query takes, after a warm-up."""
    explainer, queries = bench.explainer(), bench.queries(bench.sizes.singles + 20)
    taken = []
    for query in queries:
        with bench.timer() as seconds:
            explainer.explain(query[None], target=1, progress=False)
            taken.append(1e3 * seconds())
    for percent in (50, 99):
        yield {"name": f"one query, p{percent}", "value": float(np.percentile(taken[20:], percent)), "unit": "ms"}


def memory(bench: Bench) -> Iterator[Row]:
    """Yield the peak memory of explaining from a memory map into a folder, after a tenth and at the end."""
    explainer = bench.explainer()
    with tempfile.TemporaryDirectory() as folder:
        yield from memory_of_stream(explainer, bench.queries(bench.sizes.queries), bench.sizes.stream, Path(folder))


def scaling(bench: Bench) -> Iterator[Row]:
    """Yield by which power of queries, features and steps the time to explain grows."""
    sizes = bench.sizes
    n = sizes.decades[-1] // 4
    # The longest series take most of the time to train for, and half of the training is enough for all to be answered.
    shorter = replace(sizes, classifier_steps=min(80, sizes.classifier_steps), epochs=min(3, sizes.epochs))
    brief = Bench(device=str(bench.device), sizes=shorter, seed=bench.seed)

    def seconds(explainer: Any, queries: FloatArray) -> float:
        taken = [len(queries) / _explaining_rate(bench, explainer, queries)[0]]
        while len(taken) < 3 and sum(taken) < 1:  # what is short is soon disturbed
            taken.append(len(queries) / _explaining_rate(bench, explainer, queries)[0])
        return min(taken)

    def of_shape(n_steps: int, n_features: int) -> float:
        X, y = series(120, n_steps, n_features, seed=bench.seed)
        explainer = fit_sparce(brief, train_classifier(brief, X, y), X, y)
        return seconds(explainer, np.resize(X[y == 0], (n, n_steps, n_features)))

    explainer = bench.explainer()
    grown: dict[str, Callable[[int], float]] = {
        "queries": lambda size: seconds(explainer, bench.queries(MANY * size)),
        "features": lambda size: of_shape(20, size),
        "steps": lambda size: of_shape(size, 20),
    }
    for name, measure in grown.items():
        taken = [measure(size) for size in sizes.decades]
        power = float(np.polyfit(np.log(sizes.decades), np.log(taken), 1)[0])
        scale = MANY if name == "queries" else 1
        measured = {scale * size: value for size, value in zip(sizes.decades, taken, strict=True)}
        yield {"name": name, "value": power, "unit": "exponent", "seconds": measured}


PARTS: dict[str, Callable[[Bench], Iterator[Row]]] = {
    "training": training,
    "fitting": fitting,
    "explaining": explaining,
    "latency": latency,
    "memory": memory,
    "scaling": scaling,
}
