"""Answers as edits: exact, within the laws of the data, and what each part brings; stored in ``results/edits.jsonl``.

    python benchmarks/edits.py [exact laws ablation] [--scale 1] [--minutes 12] [--quick]

``exact``
    10,000 answers of three methods to seven kinds of data under random constraints: ``apply_edits`` gives each back bit
    for bit, also after saving and loading. Compared are bits, except those of NaN.
``laws``
    Data with planted laws: which are found. 20 sets of noise: which are invented. 5,000 answers under constraints: how
    many break a law. Laws are computed anew here, in float64, with the tolerances that ``Made.broken`` states. Answers
    of which a constraint names a feature of a law say nothing about it, as the constraint wins; they are counted.
``ablation``
    Catching and basic_motions without laws, groups, or kinds of edits; 16 queries each.

``--scale`` is the share of the answers that are made, ``--minutes`` ends a part early, ``--quick`` asks for fewer.
Run it with OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
from stored import COMMIT, store

import sparcets as sp
from sparcets.core.errors import CapabilityError, ConstraintError, TrainingError
from sparcets.core.laws import find_laws
from sparcets.core.series import Series
from sparcets.methods.own import search
from sparcets.methods.own.space import EditSpace
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MaskedMeanModule, MeanModule

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.campaigns.constraints import draw_constraints

ANSWERS = {"exact": 10_000, "laws": 5_000}
SHOWN = 20  # failures that are kept in words
RESULT = "edits.jsonl"


# Exact.

METHODS = ("Nearest", "Ics", "Explainer")
DATA = ("plain", "float64", "lengths", "gaps", "regression", "side", "long")
CALLS = 6  # of each fit
QUERIES = {"Nearest": 30, "Ics": 10, "Explainer": 8}


class Aged(MeanModule):
    """Logits that depend on the age as well."""

    def forward(self, x: Any, age: Any) -> Any:
        """Return logits (batch, classes)."""
        return super().forward(x) + 0.02 * (age[:, None] - 55)


def mean(Z: Any) -> Any:
    """Return three probabilities by the means of the first features, whatever is missing or padded."""
    logits = 5 * np.nanmean(np.asarray(Z, dtype=np.float64)[:, :, :3], axis=1)
    odds = np.exp(logits - logits.max(1, keepdims=True))
    return odds / odds.sum(1, keepdims=True)


def level(Z: Any) -> Any:
    """Return a number for each series."""
    Z = np.asarray(Z, dtype=np.float64)
    return Z[:, :, 0].mean(1) * 3 + Z[:, :, 1].max(1)


@dataclass(frozen=True)
class Case:
    """A fitted method, and queries of it with what is passed along."""

    explainer: Any
    X: Any
    queries: Any
    along: dict[str, Any]

    def some(self, rows: Any) -> tuple[Any, dict[str, Any]]:
        """Return some queries, and what is passed along."""
        pick = {
            name: {key: v[rows] for key, v in value.items()} if isinstance(value, dict) else value[rows]
            for name, value in self.along.items()
        }
        return self.queries[rows], pick


def build(method: str, kind: str, seed: int) -> Case:
    """Return a method with tiny settings, fitted to data of a kind."""
    rng = np.random.default_rng([seed, 7])
    n, steps, features = (40, 600, 4) if kind == "long" else (60, int(rng.choice([9, 20, 31])), int(rng.integers(4, 8)))
    X, y = make_series(n, steps, features, seed=seed)
    queries, _ = make_series(36, steps, features, seed=seed + 10_000)
    X, queries = (Z * 10.0 ** rng.integers(-2, 3) + rng.integers(0, 2) * 3 for Z in (X, queries))
    dtype = np.float64 if kind == "float64" or seed % 3 == 2 else np.float32
    X, queries = X.astype(dtype), queries.astype(dtype)
    fit: dict[str, Any] = {}
    along: dict[str, Any] = {}
    labels: Any = y
    model: Any = sp.wrap(MeanModule(n_classes=3), n_classes=3)
    if kind == "lengths":
        fit["lengths"], along["lengths"] = (rng.integers(5, steps + 1, len(Z)) for Z in (X, queries))
        model = sp.wrap(MaskedMeanModule(n_classes=3), n_classes=3)
    elif kind == "gaps":
        X, queries = (np.where(rng.random(Z.shape) < 0.06, np.nan, Z).astype(dtype) for Z in (X, queries))
        model = sp.wrap(mean, n_classes=3, missing="keep")
    elif kind == "regression":
        model, labels = sp.wrap(level, task="regression"), level(X)
    elif kind == "side":
        fit["side"], along["side"] = ({"age": rng.uniform(20, 90, len(Z))} for Z in (X, queries))
        model = sp.wrap(Aged(n_classes=3), n_classes=3)
    if method == "Explainer":
        families = [("quantiles",), ("intervals",), ("convolutions", "quantiles")][seed % 3]
        by = "model" if seed % 4 == 3 else "families"
        config: Any = replace(sp.ExplainerConfig.tiny(), families=families, believed_by=by)
    else:
        config = getattr(sp, f"{method}Config").tiny()
    return Case(getattr(sp, method)(model, config).fit(X, labels, progress=False, **fit), X, queries, along)


def same_bits(one: Any, other: Any) -> bool:
    """Return whether arrays are of one type and have the same bits, but for those of NaN."""
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    bits = np.int32 if one.dtype == np.float32 else np.int64
    same = np.ascontiguousarray(one).view(bits) == np.ascontiguousarray(other).view(bits)
    return bool((same | (np.isnan(one) & np.isnan(other))).all())


def ask(case: Case, method: str, kind: str, seed: int, call: int) -> Any:
    """Explain some queries under random constraints; None where these contradict each other."""
    rng = np.random.default_rng([seed, call, METHODS.index(method), DATA.index(kind)])
    queries, along = case.some(np.sort(rng.permutation(len(case.queries))[: QUERIES[method]]))
    like = SimpleNamespace(X=np.nan_to_num(case.X), names=list(case.explainer.info_.feature_names[: case.X.shape[2]]))
    options: dict[str, Any] = {}
    if call:
        options["constraints"] = draw_constraints(rng, like)
    if rng.random() < 0.3:
        options["sparsity"] = float(rng.choice([0.02, 0.1, 0.5]))
    if rng.random() < 0.2:
        options["n"] = int(rng.integers(2, 4))
    if method == "Explainer" and rng.random() < 0.3:
        options["edits"] = int(rng.integers(1, 4))
    target: Any = sp.Change(float(rng.uniform(0.5, 2))) if kind == "regression" else int(rng.integers(3))
    try:
        return case.explainer.explain(queries, target, progress=False, **along, **options)
    except ConstraintError:
        return None


def inexact(e: Any, again: Any = None) -> list[int]:
    """Return the answers that their edits do not give back; ``again`` is the explanation as loaded from a file."""
    read = e if again is None else again
    return [i for i in range(len(e)) if not same_bits(sp.apply_edits(e.query[i], read.edits(i)), e.counterfactual[i])]


def exact(scale: float, minutes: float) -> None:
    """Store how many answers their edits give back, by method and kind of data."""
    wanted, began = round(ANSWERS["exact"] * scale), time.perf_counter()
    counts: Counter[tuple[str, str, str]] = Counter()
    failures: list[str] = []

    def fail(cell: tuple[str, str], what: str, n: int = 1) -> None:
        counts[(*cell, "failed")] += n
        failures.append(what)
        print(f"FAILED {what}", flush=True)

    def done() -> bool:
        tried = sum(n for (*_, what), n in counts.items() if what == "answers")
        return tried >= wanted or time.perf_counter() - began > 60 * minutes

    cells = [(m, k) for k in DATA for m in METHODS if not (m == "Ics" and k in ("gaps", "regression"))]
    with tempfile.TemporaryDirectory() as folder:
        for seed, cell in ((seed, cell) for seed in itertools.count() for cell in cells):
            if done():
                break
            if cell[1] == "long" and seed % 4:
                continue
            try:
                case = build(*cell, seed)
            except (CapabilityError, TrainingError) as error:  # a selector of few series may have nothing to learn from
                print(*cell, seed, error)
                continue
            for call in range(CALLS):
                if done():
                    break
                where = f"{cell[0]}, {cell[1]}, seed {seed}, call {call}"
                try:
                    e = ask(case, *cell, seed, call)
                    if e is None:
                        counts[(*cell, "refused")] += 1
                        continue
                    counts[(*cell, "answers")] += len(e)
                    counts[(*cell, "changed")] += int(e.changed.any((1, 2)).sum())
                    counts[(*cell, "edits")] += sum(len(e.edits(i)) for i in range(len(e)))
                    for i in inexact(e):
                        fail(cell, f"{where}, answer {i}")
                    if call % 3 == 0:
                        e.save(Path(folder) / "e.npz")
                        again = sp.load_explanation(Path(folder) / "e.npz")
                        counts[(*cell, "loaded")] += len(e)
                        for i in inexact(e, again):
                            fail(cell, f"{where}, answer {i}, loaded")
                except Exception as error:  # whatever it is, it is a failure of these answers
                    frame = traceback.extract_tb(error.__traceback__)[-1]
                    fail(cell, f"{where}: {type(error).__name__}: {error} ({frame.filename}:{frame.lineno})")
    columns = ("answers", "changed", "edits", "loaded", "refused", "failed")
    print(f"{'method, data':24}", *(f"{column:>8}" for column in columns))
    table = {", ".join(cell): {column: counts[(*cell, column)] for column in columns} for cell in cells}
    for name, values in table.items():
        print(f"{name:24}", *(f"{value:8}" for value in values.values()))
    of = {column: sum(values[column] for values in table.values()) for column in columns}
    row = {"part": "exact", "case": "all", **of, "by_case": table, "failures": failures[:SHOWN]}
    store(RESULT, row | {"seconds": round(time.perf_counter() - began), "commit": COMMIT}, ("part", "case"))


# Laws.

STEPS = 24
JOINT = 0.02  # radians beyond the angles of recordings


def smooth(rng: Any, n: int, width: float = 1.0) -> Any:
    """Return random walks that return to zero (n, steps), of standard deviation ``width``."""
    out = np.empty((n, STEPS))
    out[:, 0] = rng.normal(0, 1, n)
    for t in range(1, STEPS):
        out[:, t] = 0.8 * out[:, t - 1] + 0.6 * rng.normal(0, 1, n)
    return width * out


@dataclass(frozen=True)
class Made:
    """Series of two classes with planted laws.

    Attributes
    ----------
    X, y, names
        Series (batch, time, features), labels, and names of the features.
    laws
        The planted laws: kind, and features.
    also
        Laws that hold as well, because others do.
    """

    X: Any
    y: Any
    names: list[str]
    laws: tuple[tuple[str, tuple[str, ...]], ...]
    also: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def broken(self, query: Any, made: Any) -> dict[tuple[str, tuple[str, ...]], Any]:
        """Return whether answers (batch, time, features) break each law that their queries obey (batch,).

        An identity may be missed by what the query misses, four roundings and 1e-5 of the range of its first feature;
        the length of a limb may differ from the query's by 1e-5 of it and eight roundings of the coordinates; the angle
        of a joint may exceed those of recordings and of the query by 0.02 radians. Orders and whole numbers are exact.
        """
        return {
            law: BROKEN[law[0]](self, query, made, [self.names.index(name) for name in law[1]]) for law in self.laws
        }


def _identity(data: Made, query: Any, made: Any, at: list[int]) -> Any:
    missed, own = (np.abs(Z[..., at[0]].astype(float) - Z[..., at[1:]].astype(float).sum(-1)) for Z in (made, query))
    ulp = np.spacing(np.abs(made[..., at]).max(-1)).astype(float)
    return (missed > own + 4 * ulp + 1e-5 * np.ptp(data.X[..., at[0]])).any(1)


def _order(data: Made, query: Any, made: Any, at: list[int]) -> Any:
    return ((made[..., at[0]] > made[..., at[1]]) & (query[..., at[0]] <= query[..., at[1]])).any(1)


def _whole(data: Made, query: Any, made: Any, at: list[int]) -> Any:
    return (made[..., at[0]] % 1 != 0).any(1)


def _limb(data: Made, query: Any, made: Any, at: list[int]) -> Any:
    long, own = (np.hypot(*(Z[..., at[2 + d]].astype(float) - Z[..., at[d]] for d in (0, 1))) for Z in (made, query))
    ulp = np.spacing(np.abs(made[..., at]).max(-1)).astype(float)
    return (np.abs(long - own) > 1e-5 * own + 8 * ulp).any(1)


def _joint(data: Made, query: Any, made: Any, at: list[int]) -> Any:
    real, own, now = (_elbow(Z[..., at].astype(float)) for Z in (data.X, query, made))
    low, high = np.minimum(real.min(), own) - JOINT, np.maximum(real.max(), own) + JOINT
    return ((now < low) | (now > high)).any(1)


def _elbow(at: Any) -> Any:
    """Return how far the second of two limbs is turned from the first, in the complex plane."""
    first, middle, last = (at[..., 2 * i] + 1j * at[..., 2 * i + 1] for i in range(3))
    return np.angle((last - middle) / (middle - first))


BROKEN: dict[str, Callable[..., Any]] = {
    "identity": _identity,
    "order": _order,
    "whole": _whole,
    "limb": _limb,
    "joint": _joint,
}


def gait(rng: Any, n: int) -> Made:
    """Return durations of gait: a stride is swing and stance; steps are whole numbers."""
    y = rng.permutation(np.arange(n) % 2)
    swing = np.abs(0.4 + smooth(rng, n, 0.04))
    stance = np.abs(0.6 + 0.25 * y[:, None] + smooth(rng, n, 0.06))
    steps = np.rint(60 / (swing + stance) * 2 + rng.normal(0, 4, swing.shape))
    sway = smooth(rng, n) * (1 + y[:, None])
    swing, stance = swing.astype(np.float32), stance.astype(np.float32)
    X = np.stack([swing + stance, swing, stance, steps, sway], -1).astype(np.float32)
    return Made(
        X,
        y,
        ["stride", "swing", "stance", "steps", "sway"],
        (("identity", ("stride", "swing", "stance")), ("whole", ("steps",))),
        (("order", ("swing", "stride")), ("order", ("stance", "stride"))),
    )


def pressures(rng: Any, n: int) -> Made:
    """Return pressures of blood: diastolic, mean and systolic are in this order; the rate is a whole number."""
    y = rng.permutation(np.arange(n) % 2)
    low = 75 - 25 * y[:, None] + smooth(rng, n, 10) + rng.normal(0, 10, (n, 1))
    pulse = np.abs(40 - 10 * y[:, None] + smooth(rng, n, 8)) + 1
    middle = low + pulse * rng.uniform(0.25, 0.6, (n, STEPS))
    rate = np.rint(75 + 25 * y[:, None] + smooth(rng, n, 8))
    oxygen = 95 - 3 * y[:, None] + smooth(rng, n, 2)
    X = np.stack([low + pulse, middle, low, rate, oxygen], -1).astype(np.float32)
    orders = ("order", ("diastolic", "mean")), ("order", ("mean", "systolic"))
    return Made(X, y, ["systolic", "mean", "diastolic", "rate", "oxygen"], (*orders, ("whole", ("rate",))))


def arm(rng: Any, n: int) -> Made:
    """Return an arm in the plane: two rigid limbs, and an elbow that bends one way only."""
    y = rng.permutation(np.arange(n) % 2)
    size = rng.normal(1, 0.05, (n, 1))
    shoulder = 0.02 * smooth(rng, n) + 1j * (1.4 * size + 0.02 * smooth(rng, n))
    turn = -1.2 + 0.5 * smooth(rng, n) + 0.5 * y[:, None]
    bend = np.clip(1.2 + 0.5 * smooth(rng, n) + 0.5 * y[:, None] * np.sin(np.arange(STEPS)), 0.2, 2.4)
    elbow = shoulder + 0.3 * size * np.exp(1j * turn)
    wrist = elbow + 0.25 * size * np.exp(1j * (turn + bend))
    X = np.stack([part for point in (shoulder, elbow, wrist) for part in (point.real, point.imag)], -1)
    points = [(f"Right{name}_x", f"Right{name}_y") for name in ("Shoulder", "Elbow", "Wrist")]
    names = [name for point in points for name in point]
    laws = (("limb", points[0] + points[1]), ("limb", points[1] + points[2]), ("joint", tuple(names)))
    return Made(X.astype(np.float32), y, names, laws)


def everything(rng: Any, n: int) -> Made:
    """Return all of it beside each other."""
    parts = [make(rng, n) for make in (gait, pressures, arm)]
    order = [np.argsort(part.y, kind="stable") for part in parts]
    mixed = rng.permutation(n)
    X = np.concatenate([part.X[rows] for part, rows in zip(parts, order, strict=True)], -1)[mixed]
    laws, also = (tuple(law for part in parts for law in getattr(part, name)) for name in ("laws", "also"))
    return Made(X, np.sort(parts[0].y)[mixed], [one for part in parts for one in part.names], laws, also)


MAKE = {"gait": gait, "pressures": pressures, "arm": arm, "everything": everything}


def laws_of(data: Made) -> list[tuple[str, tuple[str, ...]]]:
    """Return the laws that are found, in the terms of the planted ones."""
    tolerance = 1e-6 * np.ptp(data.X, axis=(0, 1)).astype(float)
    found = find_laws(Series(data.X), data.names, tolerance=tolerance)[0]
    return [(law.kind, law.features) for law in found]


def is_found(law: tuple[str, tuple[str, ...]], found: Any) -> bool:
    """Return whether a law is among those found; an identity, whichever of its features follows the others."""
    kind, features = law
    if kind == "joint":  # told by its two limbs' ends
        return any(k == kind and set(other) <= set(features) for k, other in found)
    if kind == "order":
        return law in found
    return any(k == kind and set(other) == set(features) for k, other in found)


def noise(kind: str, seed: int) -> tuple[Any, list[str]]:
    """Return series of 3 to 25 features without laws: white, walks or sines; half have levels of their own."""
    rng = np.random.default_rng([seed, 3])
    n, features = 80, int(rng.integers(3, 26))
    if kind == "sines":
        phase, pace = rng.uniform(0, 2 * np.pi, (n, 1, features)), rng.uniform(0.1, 1.5, (n, 1, features))
        X = rng.uniform(0.5, 1.5, (n, 1, features)) * np.sin(phase + pace * np.arange(40)[None, :, None])
    else:
        X = rng.normal(0, 1, (n, 40, features))
        X = X.cumsum(1) if kind == "walk" else X
    if seed % 2:
        X = X + X.std() * rng.normal(0, 2, features)
    return X.astype(np.float32), [f"f{f}" for f in range(features)]


def planted(n_noise: int) -> None:
    """Store which planted laws are found, and how many are invented."""
    for name, make in MAKE.items():
        hits: Counter[str] = Counter()
        of: Counter[str] = Counter()
        invented: list[str] = []
        for seed in range(10):
            data = make(np.random.default_rng([seed, 1]), 120)
            found = laws_of(data)
            for law in data.laws:
                of[law[0]] += 1
                hits[law[0]] += is_found(law, found)
            known = data.laws + data.also
            invented += [
                f"seed {seed}: {kind} {', '.join(at)}"
                for kind, at in found
                if not any(is_found(law, [(kind, at)]) for law in known)
            ]
        by_kind = {kind: f"{hits[kind]} of {of[kind]}" for kind in of}
        row = {"part": "laws", "case": f"planted, {name}", "found": by_kind, "invented": len(invented)}
        store(RESULT, row | {"failures": invented[:SHOWN], "commit": COMMIT}, ("part", "case"))
    for kind in ("white", "walk", "sines"):
        told = []
        for seed in range(n_noise):
            X, names = noise(kind, seed)
            found = find_laws(Series(X), names, tolerance=1e-6 * np.ptp(X, axis=(0, 1)).astype(float))[0]
            told += [f"seed {seed}, {len(names)} features: {law}" for law in found]
        row = {"part": "laws", "case": f"noise, {kind}", "sets": n_noise, "invented": len(told)}
        store(RESULT, row | {"failures": told[:SHOWN], "commit": COMMIT}, ("part", "case"))


def draw_limits(rng: Any, data: Made) -> tuple[str, dict[str, Any], set[str]]:
    """Return one kind of limit, the options of ``explain`` for it, and the features that it names."""
    name = str(rng.choice(data.names))
    x = data.X[..., data.names.index(name)].astype(float)
    few = [str(f) for f in rng.choice(data.names, 2, replace=False)]
    ends = np.quantile(x, (0.1, 0.9)).tolist()
    start = int(rng.integers(0, STEPS - 6))
    some: dict[str, tuple[dict[str, Any], set[str]]] = {
        "none": ({}, set()),
        "sparsity": ({"sparsity": float(rng.choice([0.1, 0.2, 0.4]))}, set()),
        "edits": ({"edits": int(rng.integers(1, 3))}, set()),
        "n": ({"n": 3}, set()),
        "confidence": ({"confidence": 0.8}, set()),
        "frozen": ({"frozen": [(start, start + 6)]}, set()),
        "frozen, one feature": ({"frozen": {name: [(start, start + 6)]}}, {name}),
        "immutable": ({"immutable": [name]}, {name}),
        "ranges": ({"ranges": {name: tuple(ends)}}, {name}),
        "max_step": ({"max_step": {name: float(np.ptp(x) / 10)}}, {name}),
        "direction": ({"direction": {name: str(rng.choice(["up", "down"]))}}, {name}),
        "groups": ({"groups": {"together": few}}, set(few)),
        "monotone": ({"monotone": {name: "up"}}, {name}),
        "max_features": ({"max_features": int(rng.integers(1, 4))}, set(data.names)),
    }
    kind = str(rng.choice(list(some)))
    given, named = some[kind]
    options = given if kind in ("sparsity", "edits", "n", "confidence") else {"constraints": sp.Constraints(**given)}
    return kind, {} if kind == "none" else options, named


def laws(scale: float, minutes: float) -> None:
    """Store which laws are found and invented, and how many answers break one."""
    planted(20 if scale >= 0.1 else 3)
    wanted, began = round(ANSWERS["laws"] * scale), time.perf_counter()
    counts: Counter[str] = Counter()
    by_law: dict[str, Counter[str]] = {}
    by_limit: dict[str, Counter[str]] = {}
    failures: list[str] = []
    for seed, name in ((seed, name) for seed in itertools.count() for name in MAKE):
        if counts["answers"] >= wanted or time.perf_counter() - began > 60 * minutes:
            break
        data = MAKE[name](np.random.default_rng([seed, 2]), 160)
        train, test = (Made(data.X[s], data.y[s], data.names, data.laws) for s in (slice(0, 120), slice(120, 160)))
        config = sp.ClassifierConfig.tiny().override(f"seed={seed}")
        model = sp.TorchClassifier("fcn", config)
        set_ = sp.Dataset.from_arrays(
            data.X, data.y, split=(np.arange(120), np.arange(120, 160)), feature_names=data.names
        )
        model.fit(set_, progress=False)
        tiny = replace(sp.ExplainerConfig.tiny(), families=("quantiles", "intervals"), seed=seed)
        explainer = sp.Explainer(model, tiny).fit(set_, progress=False)
        for call in range(10):
            if counts["answers"] >= wanted or time.perf_counter() - began > 60 * minutes:
                break
            rng = np.random.default_rng([seed, call, 5])
            kind, options, named = draw_limits(rng, train)
            rows = np.sort(rng.permutation(len(test.X))[:20])
            try:
                e = explainer.explain(test.X[rows], 1 - model.predict(test.X[rows]), progress=False, **options)
            except ConstraintError:
                counts["refused"] += 1
                continue
            counts["answers"] += len(e)
            counts["valid"] += int(e.valid.sum())
            limit, any_law, left = by_limit.setdefault(kind, Counter()), np.zeros(len(e), bool), np.zeros(len(e), bool)
            for law, broken in train.broken(e.query, e.counterfactual).items():
                one, touched = by_law.setdefault(law[0], Counter()), bool(named & set(law[1]))
                one["answers" if not touched else "constrained"] += len(e)
                one["broken" if not touched else "constrained_broken"] += int(broken.sum())
                left |= touched & broken
                any_law |= ~np.array(touched) & broken
                if not touched:
                    failures += [
                        f"{name}, seed {seed}, call {call} ({kind}), answer {i} ({e.status[i]}): {law[0]} "
                        f"{', '.join(law[1])}"
                        for i in np.flatnonzero(broken)
                    ]
            counts["broken"] += int(any_law.sum())
            counts["left_out"] += int((left & ~any_law).sum())
            limit["answers"] += len(e)
            limit["broken"] += int(any_law.sum())
            limit["left_out"] += int((left & ~any_law).sum())
            for failure in failures[len(failures) - int(any_law.sum()) :] if any_law.any() else ():
                print("FAILED", failure, flush=True)
    print(f"{'limit':22} {'answers':>8} {'broken':>7} {'left out':>9}")
    for kind, one in sorted(by_limit.items()):
        print(f"{kind:22} {one['answers']:8} {one['broken']:7} {one['left_out']:9}")
    row = {"part": "laws", "case": "answers", **{k: counts[k] for k in ("answers", "valid", "broken", "left_out")}}
    row |= {"refused": counts["refused"], "by_law": {k: dict(v) for k, v in by_law.items()}}
    row |= {"by_limit": {k: dict(v) for k, v in by_limit.items()}, "failures": failures[:SHOWN]}
    store(RESULT, row | {"seconds": round(time.perf_counter() - began), "commit": COMMIT}, ("part", "case"))


# Ablation.

TARGETS = {"catching": "Control", "basic_motions": None}
FOLLOW_ONLY: dict[str, Any] = {"LEVELS": (), "SIZES": (), "SHIFTS": (), "REACHES": ()}


def variants(job: Any, seed: int) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yield what is taken away: its name, settings, and values in the module of the search."""
    names, every = job.info.feature_names, list[str]()
    while found := EditSpace.fit(job, sp.ExplainerConfig(without_laws=tuple(every)), seed).laws:
        if not every:
            of_limbs = tuple(law.name for law in found if law.kind in ("limb", "joint"))
        every += [law.name for law in found]  # without limbs, what they carry has laws of its own
    yield "default", {}, {}
    if every and of_limbs:
        yield "without limbs and joints", {"without_laws": of_limbs}, {}
    if every:
        yield "without laws", {"without_laws": tuple(every)}, {}
    yield "a group per feature", {"groups": tuple((name,) for name in names)}, {}
    yield "all features one group", {"groups": (tuple(names),)}, {}
    yield "follow only", {}, FOLLOW_ONLY
    yield "without follow", {}, {"DONORS": (0, 0)}
    for kind, constant in zip(("level", "size", "shift", "smooth"), FOLLOW_ONLY, strict=True):
        yield f"without {kind}", {}, {constant: ()}


def measures(e: Any, data: Any, rows: Any) -> dict[str, Any]:
    """Return what is told of answers."""
    valid = np.flatnonzero(e.valid & (e.status != "unchanged"))
    visible = np.abs(e.delta) > 0.1 * e.info.scaler.scale
    told = {
        "queries": len(e),
        "valid": round(float(e.valid.mean()), 3),
        "edits": round(float(np.mean([len(e.edits(i)) for i in valid])), 2) if len(valid) else None,
        "visible": round(float(visible[valid].mean()), 3) if len(valid) else None,
        "believed": round(float((e.verdict == "believed").mean()), 3),
    }
    if data.oracle is not None:
        told["oracle"] = round(float((data.oracle(e.counterfactual, rows) == e.target).mean()), 3)
    return told


def ablation(*, quick: bool, only: str = "") -> None:
    """Store what answers are without each part; the ensemble is fitted once for each set."""
    for name, target in TARGETS.items():
        data = sp.load_dataset(name, seed=0)
        model = sp.TorchClassifier("fcn", sp.ClassifierConfig()).fit(data, progress=False)
        jobs: list[Any] = []
        plain = EditSpace.fit

        def fit(job: Any, config: Any, seed: int, jobs: Any = jobs, plain: Any = plain) -> EditSpace:
            jobs.append((job, seed))
            return plain(job, config, seed)

        with mock.patch.object(EditSpace, "fit", fit):
            explainer = sp.Explainer(model).fit(data, progress=False)
        job, seed = jobs[-1]
        fitted = explainer._model
        wanted = (model.predict(data.X_test) + 1) % len(data.class_names)
        if target is not None:
            wanted = np.full(len(data.X_test), data.class_names.index(target))
        other = np.flatnonzero((data.y_test != wanted) & (model.predict(data.X_test) != wanted))
        rows = np.sort(np.random.default_rng(0).permutation(other)[: 12 if quick else 16])
        for label, settings, constants in variants(job, seed):
            if only not in label:
                continue
            config = replace(sp.ExplainerConfig(), **settings)
            explainer._model = replace(fitted, space=EditSpace.fit(job, config, seed)) if settings else fitted
            began = time.process_time()
            with mock.patch.multiple(search, **constants) if constants else mock.MagicMock():
                e = explainer.explain(data.X_test[rows], wanted[rows], progress=False)
            row = {"part": "ablation", "case": f"{name}, {label}", **measures(e, data, rows)}
            row |= {"groups": len(explainer.groups_), "laws": len(explainer.laws_)}
            row |= {"cpu_seconds": round(time.process_time() - began, 1), "commit": COMMIT}
            store(RESULT, row, ("part", "case"))


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["exact", "laws", "ablation"])
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--minutes", type=float, default=600.0)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="", help="of the ablation, variants whose names contain this")
    asked = parser.parse_args()
    for part in asked.parts:
        if part == "ablation":
            ablation(quick=asked.quick, only=asked.only)
        else:
            {"exact": exact, "laws": laws}[part](asked.scale, asked.minutes)
