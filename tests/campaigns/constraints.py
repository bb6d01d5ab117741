"""Answers under random constraints: every constraint holds in every answer, exactly, and the answer is consistent.

To repeat a trial that failed: ``check_call(method, seed, call)`` with the numbers that it names."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import torch

import sparcets as sp
from sparcets.core.errors import ConstraintError, TrainingError
from sparcets.core.evidence import find_segments
from sparcets.core.explanation import STATUSES, Explanation
from sparcets.core.series import BoolArray, FloatArray, IntArray, Series
from sparcets.core.words import percent
from sparcets.methods.base import BaseExplainer
from tests.campaigns.material import Material, draw_material
from tests.campaigns.registry import campaign
from tests.obeyed import broken_constraints, frozen_entries, groups_of, index_of

TIE = 1e-6  # of probabilities: below it, the last bits of a network decide, which depend on the size of the batch
SMALL = 1000  # trials of a small dose
SLOW = "sparcets"  # its fits and searches take a hundred times as long as those of the others


@campaign("answers obey random constraints", trials=20_000, dose=750, parts=8)
def run(trials: int, rng: np.random.Generator, folder: Path) -> Iterator[str]:
    """Explain random queries of random data under random constraints; every answer is a trial."""
    made, calls = 0, 4 if trials > SMALL else 1  # a small dose is of as many kinds of data as possible
    for material in count():
        seed = int(rng.integers(2**31))
        for method in draw(seed).methods():
            if method == SLOW and material % 3:
                continue
            for call in rng.integers(2**31, size=2 * calls if method == SLOW else calls).tolist():
                for trial in check_call(method, seed, call):
                    made += 1
                    yield trial
        if made >= trials:
            return


@lru_cache(maxsize=2)
def draw(seed: int) -> Material:
    """Return the data and the model of a seed."""
    return draw_material(seed)


@dataclass(frozen=True)
class Call:
    """The arguments of one call of ``explain``."""

    X: FloatArray
    target: Any
    constraints: sp.Constraints | None
    options: dict[str, Any]


def check_call(method: str, seed: int, call: int) -> list[str]:
    """Return one outcome per answer of a call; none if it rightly said that there is nothing to explain."""
    material = draw(seed)
    where = f"check_call({method!r}, {seed}, {call}): "
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", sp.ModelWarning)  # tiny models may know nothing
            rng = np.random.default_rng([seed, 2])
            standing = draw_constraints(rng, material) if rng.random() < 0.3 else None
            try:
                explainer = material.fitted(method, constraints=standing)
            except ConstraintError as error:
                return [] if conflict([standing], material) else [f"{where}fit: {error}"]
            except TrainingError:
                return []  # a generator that two epochs did not teach to change what may change
            return [f"{where}{p}" if p else "" for p in _problems(explainer, material, standing, call)]
    except Exception as error:  # whatever it is, it is a failure of the trial and not of the campaign
        return [f"{where}{type(error).__name__}: {error}"]


def _problems(
    explainer: BaseExplainer[Any], material: Material, standing: sp.Constraints | None, seed: int
) -> list[str]:
    rng = np.random.default_rng([material.seed, seed])
    call = draw_call(rng, material, explainer)
    given = [one for one in (standing, call.constraints) if one is not None]
    before = call.X.copy()
    try:
        how = {"constraints": call.constraints, "progress": False, **call.options}
        e = explainer.explain(in_some_form(rng, call.X), call.target, **how)
    except ConstraintError as error:
        return [] if conflict(given, material) else [str(error)]
    n = call.options.get("n", 1)
    queries = Series(before, call.options.get("lengths")).blank().values  # padding is returned as zeros
    if len(e) != n * len(call.X) or not same_bits(e.query, np.repeat(queries, n, axis=0)):
        return [f"the queries of {len(e)} answers are not those passed, {n} times {len(before)}"]
    if not same_bits(call.X, before):
        return ["the queries were written to"]
    problems = [""] * len(e)
    broken = {**_broken_constraints(e, given, call, material), **_inconsistent(e, call, material, explainer)}
    for what, rows in broken.items():
        for i in np.flatnonzero(rows):
            problems[i] = f"answer {i} ({e.status[i]}): {what}"
    return problems


# What is asked.


def draw_constraints(rng: np.random.Generator, material: Material) -> sp.Constraints:
    """Draw constraints of every kind, by index and by name; some contradict each other."""
    T, F = material.X.shape[1:]
    span = np.ptp(material.X.astype(np.float64), axis=(0, 1)) + 1e-3

    def some(share: float) -> list[Any]:
        return [f if rng.random() < 0.5 else material.names[f] for f in np.flatnonzero(rng.random(F) < share).tolist()]

    def index(feature: Any) -> int:
        return feature if isinstance(feature, int) else material.names.index(feature)

    def ends(feature: Any) -> tuple[float, float]:
        low, high = np.sort(rng.choice(material.X[..., index(feature)].ravel(), 2)).astype(float).tolist()
        kind = int(rng.integers(6))
        below = low - 2 * float(span[index(feature)])
        return [(low, high), (-np.inf, high), (low, np.inf), (low, low), (below, low), (0.1, 0.1)][kind]

    kinds = rng.random(6) < 0.3
    windows = [sorted(rng.choice(T + 1, 2, replace=False).tolist()) for _ in range(rng.integers(1, 3))]
    order = rng.permutation(F).tolist()
    size = int(rng.integers(1, F + 1))
    frozen: Any = [(start or None, None if stop == T else stop) for start, stop in windows]
    if rng.random() < 0.5:
        frozen = dict.fromkeys(some(0.5), frozen)
    return sp.Constraints(
        **draw_shapes(rng, material.names),
        immutable=some(0.3) if kinds[0] else [],
        frozen=frozen if kinds[1] else [],
        ranges={f: ends(f) for f in some(0.6)} if kinds[2] else {},
        max_step={f: float(rng.choice([0, 0.05, 0.3]) * span[index(f)]) for f in some(0.6)} if kinds[3] else {},
        direction={f: str(rng.choice(["up", "down"])) for f in some(0.4)} if kinds[4] else {},
        groups={"one": order[:size], "other": order[size : size + 2]} if kinds[5] else {},
    )


def draw_call(rng: np.random.Generator, material: Material, explainer: BaseExplainer[Any]) -> Call:
    """Draw queries, targets, constraints and options."""
    slow = explainer.method == SLOW
    X = material.queries[rng.permutation(24)[: rng.integers(1, 7 if slow else 25)]]
    if rng.random() < 0.1:
        X = X * 3 - 2 * material.X.mean(axis=(0, 1), dtype=np.float64).astype(X.dtype)  # far from the training series
    if rng.random() < 0.1:
        X = material.X[rng.permutation(36)[: len(X)]]
    K = int(material.y.max()) + 1
    others = (material.classifier.predict(X) + rng.integers(1, K, len(X))) % K
    target: Any = [None, int(rng.integers(K)), rng.integers(K, size=len(X)), others][rng.integers(4)]
    options: dict[str, Any] = {}
    if rng.random() < 0.4:
        options["sparsity"] = float(rng.choice([1e-3, 0.1, 0.5, 1.0, rng.uniform(0.01, 1)]))
    if rng.random() < 0.25:
        options["n"] = int(rng.integers(2, 5))
    if rng.random() < 0.15:
        target = sp.Not(int(rng.integers(K)))
    if rng.random() < 0.15:
        options["confidence"] = float(rng.uniform(0.3, 0.99))
    if explainer.supports_lengths and rng.random() < 0.3:
        options["lengths"] = rng.integers(1, X.shape[1] + 1, len(X))
    if explainer.supports_curve and rng.random() < 0.2:
        options["curve"] = True
    return Call(X, target, draw_constraints(rng, material) if rng.random() < 0.8 else None, options)


def in_some_form(rng: np.random.Generator, X: FloatArray) -> Any:
    """Return the queries as they are, read-only, in another order in memory, or one after the other."""
    read_only = X.view()
    read_only.setflags(write=False)
    forms = (X, read_only, np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2], torch.tensor(X), iter(X.copy()))
    return forms[rng.integers(len(forms))]


# What must hold.


def conflict(given: list[sp.Constraints | None], material: Material) -> bool:
    """Return whether constraints contradict each other: nothing may change, or a direction is that of nothing."""
    info = material.build("nearest").fit(material.dataset(), progress=False).info_
    assert info is not None
    constant = sp.Constraints(immutable=np.flatnonzero(info.constant).tolist())  # such features never change
    known = [*(one for one in given if one is not None), constant]
    for one in known:
        fixed = _frozen([one, constant], material)
        without_windows = _frozen([sp.Constraints(immutable=one.immutable, groups=one.groups)], material)
        if fixed.all() or any(without_windows[:, _index(f, material)].all() for f in one.direction):
            return True
    fixed = _frozen(known, material)
    for f in range(fixed.shape[1]):
        fixed[:, f] |= contradicted(f, known, material)
    known.append(sp.Constraints(immutable=np.flatnonzero(fixed.all(0)).tolist()))
    return bool((fixed | _frozen(known, material)).all())


def contradicted(f: int, given: list[sp.Constraints], material: Material) -> bool:
    """Return whether constraints of fit and explain contradict each other about a feature, which then stays."""
    signs = {one.direction[k] for one in given for k in one.direction if _index(k, material) == f}
    ranges = [one.ranges[k] for one in given for k in one.ranges if _index(k, material) == f]
    ranges += [(0, 1)] if set(material.X[..., f].ravel().tolist()) == {0, 1} else []
    empty = bool(ranges) and max(r[0] for r in ranges) > min(r[1] for r in ranges)
    trends = {one.monotone[k] for one in given for k in one.monotone if _index(k, material) == f}
    return len(signs) > 1 or len(trends) > 1 or empty


def count_free(given: list[sp.Constraints], material: Material) -> IntArray:
    """Return how many entries may change of series of 0, 1, … steps (time + 1,): the denominator of every share."""
    fixed, groups = _frozen(given, material), groups_of(given, material.names)
    fixed[:, [f for f in range(fixed.shape[1]) if contradicted(f, given, material)]] = True
    for members in groups * len(groups):  # groups may share members
        fixed[:, members] |= fixed[:, members].any(1, keepdims=True)
    return np.concatenate([[0], (~fixed).sum(1).cumsum()])


def _broken_constraints(
    e: Explanation, given: list[sp.Constraints], call: Call, material: Material
) -> dict[str, BoolArray]:
    known: dict[str, Any] = {"names": material.names, "span": e.info.span, "lengths": e.lengths}
    broken = broken_constraints(given, e.query, e.counterfactual, **known) | _broken_shapes(e, given, material)
    changed, inside = e.counterfactual != e.query, Series(e.query, e.lengths).inside
    free, n_changed = count_free(given, material)[inside.sum(1)], changed.sum((1, 2))
    if "sparsity" in call.options:
        broken[f"more than {call.options['sparsity']} changed"] = n_changed > call.options["sparsity"] * free + 1e-9
    share = n_changed / np.maximum(free, 1)
    broken["the share of what may change"] = np.abs(e.share_changed - share) > 1e-12
    told = [f"{percent(one)} of the values that may change do" for one in share]
    spoken = e.valid & (e.status != "unchanged")
    broken["the share that the text tells"] = spoken & np.array([told[i] not in e.text(i) for i in range(len(e))])
    return broken


def _inconsistent(
    e: Explanation, call: Call, material: Material, explainer: BaseExplainer[Any]
) -> dict[str, BoolArray]:
    cf, n = e.counterfactual, call.options.get("n", 1)
    same = _bits(cf) == _bits(e.query)
    proba = material.classifier.predict_proba(cf, e.lengths)
    top = np.sort(proba, axis=1)
    clear = (top[:, -1] - top[:, -2] > TIE) | (material.kind == "function")
    rows, level = np.arange(len(e)), call.options.get("confidence", 0.0)
    sure, sure_before = (p[rows, e.target] >= level for p in (e.proba_after, e.proba_before))
    size = np.abs(cf.astype(np.float64) - e.query)
    lost, unchanged = e.status == "not_found", e.status == "unchanged"
    reason = np.array([bool(text) for text in e.reason.tolist()])
    valid_twice = np.zeros(len(e), dtype=bool)
    late = np.zeros(len(e), dtype=bool)
    for i in range(1, len(e)):
        others = [j for j in range(i - i % n, i) if e.valid[j]]
        valid_twice[i] = e.valid[i] and not unchanged[i] and any(same_bits(cf[i], cf[j]) for j in others)
        late[i] = e.valid[i] and i % n > 0 and not e.valid[i - 1]
    by_edits = [sp.apply_edits(e.query[i], e.edits(i)) for i in range(len(e))]
    segments = find_segments(e.changed)
    told = np.zeros(len(e), dtype=np.int64)
    np.add.at(told, segments.series, segments.end - segments.start)
    frame = e.to_frame()
    denials = ("does not predict", "no change was found that", "did not convince", "convinces the")
    denied = np.array([any(no in f"{e.reason[i]} {e.text(i)}".lower() for no in denials) for i in range(len(e))])
    texts = [e.text(i, short=short) for i in range(len(e)) for short in (True, False)]
    return {
        "not finite": ~np.isfinite(cf).all((1, 2)) | ~np.isfinite(e.proba_after).all(1),
        "of another type than the query": np.full(len(e), cf.dtype != e.query.dtype),
        "changed is not delta != 0": (e.changed != (e.delta != 0)).any((1, 2)),
        "an unchanged entry has other bits": (e.changed != ~same).any((1, 2)),
        "a change is negligible": (e.changed & (size < 1e-6 * e.info.span)).any((1, 2)),
        "valid is not the model's word": clear & (e.valid != ((proba.argmax(1) == e.target) & sure)),
        "the probability is not the model's": np.abs(proba - e.proba_after).max(1) > 1e-4,
        "an unknown status": ~np.isin(e.status, STATUSES),
        "valid and not_found do not exclude each other": e.valid == lost,
        "a reason without need, or none": reason != lost,
        "unchanged are not the queries in the target": unchanged != ((e.predicted == e.target) & sure_before),
        "an unchanged query has changes": unchanged & e.changed.any((1, 2)),
        "the same valid answer twice": valid_twice,
        "a valid answer after one that is not": late,
        "the index of the query": e.query_index != np.repeat(np.arange(len(call.X)), n),
        "the target": _other_target(e, call.target, n),
        "support is missing": np.isnan(e.support).any(1),
        "believed without the families": e.believed & ~((e.support > 0.5).all(1) & bool(e.families)),
        "the verdict": (e.verdict == "believed") & ~(e.valid & e.believed & ~unchanged),
        "the verdict of what was not reached": (e.verdict == "not reached") != ~e.valid,
        "the verdict of what is unchanged": (e.verdict == "unchanged") != unchanged,
        "edits make something else": np.array([not same_bits(*two) for two in zip(by_edits, cf, strict=True)]),
        "segments or table do not hold the changes": told != e.changed.sum((1, 2)),
        "the table": np.bincount(frame["answer"], frame["end"] - frame["start"], len(e)) != told,
        "no words": np.array([not (texts[2 * i] and texts[2 * i + 1]) for i in range(len(e))]),
        "words that deny that the model predicts the target": (proba.argmax(1) == e.target) & clear & denied,
        "a curve of shares beyond 1": (e.curve["share"] > 1 + 1e-9).any(1),
    }


def _other_target(e: Explanation, target: Any, n: int) -> BoolArray:
    """Return which answers have another target than they were asked for."""
    if isinstance(target, sp.Not):
        return np.asarray(e.target == target.label)
    asked = e.target if target is None else np.repeat(np.broadcast_to(target, len(e) // n), n)
    return np.asarray(e.target != asked)


def _index(feature: Any, material: Material) -> int:
    return index_of(feature, material.names)


def _frozen(given: list[sp.Constraints], material: Material) -> BoolArray:
    return frozen_entries(given, material.names, material.X.shape[1])


def _bits(x: FloatArray) -> IntArray:
    return np.ascontiguousarray(x).view(np.int32 if x.dtype == np.float32 else np.int64)


def same_bits(a: FloatArray, b: FloatArray) -> bool:
    return a.dtype == b.dtype and np.array_equal(_bits(a), _bits(b))


def draw_shapes(rng: np.random.Generator, names: list[str]) -> dict[str, Any]:
    """Draw arguments of Constraints: few features, whole numbers, monotone features, fixed sums, a projection."""
    F = len(names)
    kinds = rng.random(5) < 0.2
    order = rng.permutation(F).tolist()
    some = [names[f] for f in order[: rng.integers(1, F + 1)]]
    shapes: dict[str, Any] = {
        "max_features": int(rng.integers(1, F + 1)),
        "integer": some,
        "monotone": {f: str(rng.choice(["up", "down"])) for f in some},
        "fixed_sum": [tuple(order[:2])] if F > 1 else [],
        "project": even_out,
    }
    return {name: value for (name, value), kind in zip(shapes.items(), kinds, strict=True) if kind}


def even_out(counterfactuals: Any, queries: Any) -> Any:
    """Move the last feature by its mean change, at every step."""
    moved = counterfactuals.copy()
    change = (counterfactuals[..., -1].astype(np.float64) - queries[..., -1]).mean(1, keepdims=True)
    moved[..., -1] = queries[..., -1] + change
    return moved


def _broken_shapes(e: Explanation, given: list[sp.Constraints], material: Material) -> dict[str, BoolArray]:
    """Return what does not hold, by answer, of features of zeros and ones and of the projection."""
    q, x, changed = e.query.astype(np.float64), e.counterfactual.astype(np.float64), e.counterfactual != e.query
    span, unit = e.info.span, np.spacing(np.abs(e.query).max((0, 1))).astype(np.float64)
    broken: dict[str, BoolArray] = {}
    for f in range(q.shape[2]):
        if set(np.unique(material.X[..., f]).tolist()) == {0.0, 1.0}:
            broken[f"feature {f} is 0 or 1 no more"] = (changed[..., f] & ~np.isin(x[..., f], (0, 1))).any(1)
    # Of two functions the one given to explain holds.
    if given and any(one.project is not None for one in given):
        delta = (x - q)[..., -1]
        uneven = np.ptp(delta, axis=1) > 2e-6 * span[-1] + 4 * unit[-1]
        broken["the projection does not hold"] = uneven & changed.any((1, 2)) & (e.lengths is None)
    return broken
