"""Laws: relations that hold in all training series, and so in every answer.

There are linear identities, orders between features that their ranges do not imply, whole numbers, lengths of limbs and
angles of joints. Each is tested against chance: a law counts only if it fails when features are shuffled across series.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparcets.core.edits import Coordinates, Limb, bend_of
from sparcets.core.seeding import generator
from sparcets.core.series import BoolArray, FloatArray, Series
from sparcets.motion.skeleton import coordinate_groups, find_skeleton

MOST_ROWS = 20_000  # steps that are used
EXACT = 1e-3  # standard deviations by which an identity may be off, because recordings are rounded
MOST_TERMS = 8  # features in an identity; longer ones are not readable
FEWEST_BROKEN = 10  # series that break an order where features are exchanged between series, at least
TOGETHER = 0.7  # correlation from which a single such series is enough
RIGID = 0.02  # relative deviation of a distance between two points, within a series, below which it is a limb
FREE_TURN = 5.5  # radians; a joint that turns further has no limit
TURN = 0.02  # radians by which a joint may exceed its limit without a violation
ROUNDING = 4  # last digits of values by which a law may be off without a violation
JOINT_MARGIN = 0.01  # radians by which a limit of a joint exceeds the training data, for rounding


@dataclass(frozen=True, kw_only=True)
class Law:
    """A relation that holds in all training series.

    Attributes
    ----------
    kind
        ``identity``, ``order``, ``whole``, ``limb`` or ``joint``.
    features
        Names of the features.
    text
        Description of the law.
    name
        The name by which ``ExplainerConfig(without_laws=[…])`` disables it.

    Examples
    --------
    >>> Law(kind="order", features=("low", "high"), text="low is never above high", name="order low, high").text
    'low is never above high'
    """

    kind: str
    features: tuple[str, ...]
    text: str
    name: str

    @classmethod
    def of(cls, kind: str, features: Iterable[str], text: str, about: str) -> Law:
        """Return a law, named by its kind and its subject."""
        return cls(kind=kind, features=tuple(features), text=text, name=f"{kind} {about}")

    def __str__(self) -> str:
        return self.text


def find_laws(
    series: Series,
    feature_names: Sequence[str],
    *,
    units: Sequence[str] | None = None,
    tolerance: FloatArray,
    seed: int = 0,
    without: Sequence[str] = (),
) -> tuple[tuple[Law, ...], Coordinates]:
    """Return the laws of training series in the data's own units, and the coordinates in which they cannot be broken.

    Changes of a feature below its ``tolerance`` (features,) are ignored. The seed is for shuffling features across
    series. Laws with the names ``without`` are left out.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50, 20, 3))
    >>> X[..., 2] = X[..., 0] + 2 * X[..., 1]
    >>> laws, _ = find_laws(Series(X), ["swing", "stance", "stride"], tolerance=np.zeros(3))
    >>> [law.text for law in laws]
    ['stride = swing + 2 · stance']
    """
    names = list(feature_names)
    values = series.values.astype(np.float64)
    rows = values[series.inside]
    rows = rows[~np.isnan(rows).any(1)]
    if len(rows) > MOST_ROWS:
        rows = rows[np.sort(generator(seed, "laws").choice(len(rows), MOST_ROWS, replace=False))]
    candidates: list[tuple[Law, Any]] = _identities(rows, names) if len(rows) else []
    candidates = [(law, what) for law, what in candidates if law.name not in without]
    follows = {feature for _, (feature, _) in candidates}
    limb_laws = [(law, what) for law, what in _limbs(series, names, units, follows) if law.name not in without]
    turned = {feature for law, what in limb_laws if law.kind == "limb" for feature in what[1]}
    # Features at the end of a limb get no other law, since enforcing it would change the limb's length.
    candidates = [(law, what) for law, what in candidates if not turned & {what[0], *np.flatnonzero(what[1]).tolist()}]
    if len(rows):
        orders = _orders(series, names, units, generator(seed, "orders"))
        # Dependent features keep their order as far as the features that they depend on do.
        candidates += [(law, pair) for law, pair in orders if not (turned | follows) & set(pair)]
        candidates += [(law, feature) for law, feature in _whole(rows, names) if feature not in turned]
    candidates += limb_laws
    laws = [(law, what) for law, what in candidates if law.name not in without]
    return tuple(law for law, _ in laws), _coordinates(laws, len(names), tolerance)


def _coordinates(laws: Sequence[tuple[Law, Any]], n_features: int, tolerance: FloatArray) -> Coordinates:
    def of_kind(kind: str) -> list[Any]:
        return [what for law, what in laws if law.kind == kind]

    identities, bends = of_kind("identity"), dict(of_kind("joint"))
    return Coordinates(
        tolerance=tolerance,
        limbs=tuple(Limb(start=start, end=end, bend=bends.get(end)) for start, end in of_kind("limb")),
        dependent=tuple(feature for feature, _ in identities),
        weights=np.array([row for _, row in identities]).reshape(-1, n_features),
        orders=tuple(of_kind("order")),
        whole=tuple(of_kind("whole")),
    )


def _identities(rows: FloatArray, names: Sequence[str]) -> list[tuple[Law, tuple[int, FloatArray]]]:
    """Find features that are linear functions of others: by elimination, the most exact first."""
    center, scale = rows.mean(0), rows.std(0)
    moving = np.flatnonzero(scale > 1e-9 * (1 + np.abs(center)))
    if len(rows) < 5 * len(moving) or len(moving) < 2:
        return []
    z = (rows[:, moving] - center[moving]) / scale[moving]
    covariance = z.T @ z / len(z)
    value, vector = np.linalg.eigh(covariance)
    null = vector[:, value < EXACT**2].T  # directions without variance
    laws = []
    for weights in _reduced(null):
        dependent = int(np.argmax(np.abs(weights) * (np.arange(len(weights)) + len(weights))))  # the last of equal ones
        others = -weights / weights[dependent] * scale[moving[dependent]] / scale[moving]
        others[dependent] = 0.0
        others = _round(others)
        terms = np.flatnonzero(others)
        if not len(terms) or len(terms) >= MOST_TERMS:
            continue
        coefficients = np.zeros(rows.shape[1])
        coefficients[moving] = others
        feature = int(moving[dependent])
        residual = rows[:, feature] - rows @ coefficients
        constant = float(np.median(residual))
        if np.abs(residual - constant).max() > 5 * EXACT * scale[feature]:
            continue
        constant = 0.0 if abs(constant) < 5 * EXACT * scale[feature] else constant
        name, right_side = names[feature], _written(names, coefficients, constant)
        features = (name, *(names[f] for f in np.flatnonzero(coefficients)))
        laws.append((Law.of("identity", features, f"{name} = {right_side}", f"of {name}"), (feature, coefficients)))
    # Replace dependent features on the right-hand side by the features that they depend on.
    dependents = {feature for _, (feature, _) in laws}
    return [(law, what) for law, what in laws if not dependents & set(np.flatnonzero(what[1]).tolist())]


def _reduced(null: FloatArray) -> FloatArray:
    """Return the reduced row echelon form of directions (n, features), with the last features as pivots."""
    rows = null[:, ::-1].copy()
    done = 0
    for column in range(rows.shape[1]):
        if done == len(rows):
            break
        pivot = done + int(np.abs(rows[done:, column]).argmax())
        if abs(rows[pivot, column]) < 0.05:
            continue
        rows[[done, pivot]] = rows[[pivot, done]]
        rows[done] /= rows[done, column]
        for other in range(len(rows)):
            if other != done:
                rows[other] -= rows[other, column] * rows[done]
        done += 1
    return np.asarray(rows[:done, ::-1])


def _round(weights: FloatArray) -> FloatArray:
    """Return weights rounded to whole numbers or small fractions where the difference cannot be measured."""
    for denominator in (1, 2, 3, 4, 5, 10):
        near = np.rint(weights * denominator) / denominator
        if np.abs(near - weights).max() < 2e-3:
            return np.asarray(near)
    return np.where(np.abs(weights) < 2e-3, 0.0, weights)


def _written(names: Sequence[str], weights: FloatArray, constant: float) -> str:
    text = ""
    for feature in np.flatnonzero(weights).tolist():
        size, sign = abs(weights[feature]), "-" if weights[feature] < 0 else "+"
        factor = "" if abs(size - 1) < 1e-9 else f"{size:.3g} · "
        lead = ("" if sign == "+" else "-") if not text else f" {sign} "
        text += f"{lead}{factor}{names[feature]}"
    return text + (f" {'-' if constant < 0 else '+'} {abs(constant):.3g}" if constant else "")


def _whole(rows: FloatArray, names: Sequence[str]) -> list[tuple[Law, int]]:
    is_whole = (rows == np.rint(rows)).all(0)
    several = np.array([len(np.unique(column)) > 2 for column in rows.T])
    return [
        (Law.of("whole", (names[f],), f"{names[f]} is a whole number", names[f]), f)
        for f in np.flatnonzero(is_whole & several).tolist()
    ]


def _orders(
    series: Series, names: Sequence[str], units: Sequence[str] | None, rng: np.random.Generator
) -> list[tuple[Law, tuple[int, int]]]:
    """Find pairs of features of which the first is never larger within a series, but is larger across series."""
    values = np.where(series.measured, series.values, np.nan)
    low, high = np.nanmin(values, axis=(0, 1)), np.nanmax(values, axis=(0, 1))
    n = len(names)
    shuffled = values[rng.permutation(len(values))]
    holds = np.zeros((n, n), dtype=bool)
    for f in range(n):
        for g in range(n):
            same_unit = units is None or units[f] == units[g]
            if f == g or not same_unit or high[f] <= low[g] or low[f] == high[f] or low[g] == high[g]:
                continue
            with np.errstate(invalid="ignore"):
                if (values[..., f] > values[..., g]).any():
                    continue
                broken = (shuffled[..., f] > values[..., g]).any(1).sum()
            holds[f, g] = broken >= FEWEST_BROKEN or (broken and _move_together(values[..., f], values[..., g]))
    implied = (holds.astype(int) @ holds.astype(int)) > 0
    laws = []
    for f, g in np.argwhere(holds & ~implied & ~holds.T).tolist():
        law = Law.of("order", (names[f], names[g]), f"{names[f]} is never above {names[g]}", f"{names[f]}, {names[g]}")
        laws.append((law, (f, g)))
    return laws


def _move_together(one: FloatArray, other: FloatArray) -> bool:
    known = ~np.isnan(one) & ~np.isnan(other)
    return bool(np.corrcoef(one[known], other[known])[0, 1] > TOGETHER)


def _limbs(
    series: Series, names: Sequence[str], units: Sequence[str] | None, follows: set[int]
) -> list[tuple[Law, Any]]:
    """Find limbs, by the names of points or by distances that do not vary, and the angles between them.

    A point with a feature that ``follows`` others is the end of a limb only if its name says so.
    """
    skeleton = find_skeleton(names, units)
    if skeleton is None:
        return []
    points = dict(skeleton.points)
    points |= {stem: tuple(at) for stem, at in coordinate_groups(names).items() if _is_place(at, names, skeleton)}
    values = np.where(series.measured, series.values, np.nan).astype(np.float64)
    pairs = [(0.0, start, end) for start, end in skeleton.limbs]
    named_limbs = {frozenset(limb) for limb in skeleton.limbs}
    stems = list(points)
    for i, start in enumerate(stems):
        for end in stems[i + 1 :]:
            if frozenset((start, end)) in named_limbs or len(points[start]) != len(points[end]):
                continue
            distance = np.linalg.norm(values[..., list(points[end])] - values[..., list(points[start])], axis=-1)
            with np.errstate(invalid="ignore", divide="ignore"):
                varies = float(np.nanquantile(np.nanstd(distance, 1) / np.nanmean(distance, 1), 0.9))
            if varies < RIGID and not follows & {*points[start], *points[end]}:
                pairs.append((varies, start, end))
    laws: list[tuple[Law, Any]] = []
    for start, end in _tree(sorted(pairs, key=lambda pair: pair[0]), points, values):
        features, text = (*points[start], *points[end]), f"the distance from {start} to {end} stays as it is"
        law = Law.of("limb", (names[f] for f in features), text, f"{start}, {end}")
        laws.append((law, (points[start], points[end])))
    return laws + _joints([what for _, what in laws], names, values)


def _is_place(at: Sequence[int], names: Sequence[str], skeleton: Any) -> bool:
    """Return whether features are a point like those of the skeleton: with the same number and names of axes."""
    like = next(iter(skeleton.points.values()))
    axes = [names[f][-1].lower() for f in like]
    return len(at) == len(like) and sorted(names[f][-1].lower() for f in at) == sorted(axes)


def _tree(
    pairs: Sequence[tuple[float, str, str]], points: Mapping[str, tuple[int, ...]], values: FloatArray
) -> list[tuple[str, str]]:
    """Return limbs from the trunk outwards, each point the end of one limb at most; the stiffest are kept."""
    part = {stem: stem for stem in points}
    beside: dict[str, list[str]] = {stem: [] for stem in points}

    def root(stem: str) -> str:
        while part[stem] != stem:
            stem = part[stem]
        return stem

    for _, start, end in pairs:
        if root(start) != root(end):
            part[root(start)] = root(end)
            beside[start].append(end)
            beside[end].append(start)
    motion = {stem: float(np.nanmean(np.nanstd(values[..., list(at)], axis=1))) for stem, at in points.items()}
    limbs, seen = [], set()
    for stem in sorted(points, key=lambda one: motion[one]):  # the trunk moves least
        queue = [stem] if stem not in seen and beside[stem] else []
        seen |= set(queue)
        while queue:
            here = queue.pop(0)
            for other in beside[here]:
                if other not in seen:
                    seen.add(other)
                    limbs.append((here, other))
                    queue.append(other)
    return limbs


def _joints(
    limbs: Sequence[tuple[tuple[int, ...], tuple[int, ...]]], names: Sequence[str], values: FloatArray
) -> list[tuple[Law, Any]]:
    """Find the range of angles between each limb and the one before."""
    directions = {}
    for start, end in limbs:
        way = values[..., list(end)] - values[..., list(start)]
        with np.errstate(invalid="ignore", divide="ignore"):
            directions[end] = way / np.linalg.norm(way, axis=-1, keepdims=True)
    laws = []
    for start, end in limbs:
        if start not in directions:
            continue
        angle = bend_of(directions[start], directions[end])
        bend = (float(np.nanmin(angle)) - JOINT_MARGIN, float(np.nanmax(angle)) + JOINT_MARGIN)
        if bend[1] - bend[0] > FREE_TURN:
            continue
        joint, tip = (names[at[0]].rsplit("_", 1)[0] for at in (start, end))
        angles = " to ".join(f"{np.degrees(value):.0f}°" for value in bend)
        features, text = (names[f] for f in (*start, *end)), f"the joint at {joint} bends by {angles}"
        laws.append((Law.of("joint", features, text, f"{joint}, {tip}"), (end, bend)))
    return laws


def violations(
    coordinates: Coordinates, series: FloatArray, query: FloatArray
) -> Iterator[tuple[str, tuple[int, ...], BoolArray]]:
    """Yield where series violate each law that their queries obey.

    Deviations within rounding or tolerance are not violations. Each item is the kind of the law, its features, and a
    mask of the steps (batch, time) at which it is violated.
    """
    old, new = query.astype(np.float64), series.astype(np.float64)
    change = np.nan_to_num(new - old)
    rounding = ROUNDING * np.spacing(np.abs(series)).astype(np.float64)
    for feature, weights in zip(coordinates.dependent, coordinates.weights, strict=True):
        terms = np.flatnonzero(weights)
        n = len(weights)  # side inputs, behind the features, obey no laws
        deviation = np.abs(change[..., feature] - change[..., :n] @ weights)
        allowed = 10 * coordinates.tolerance[feature] + np.abs(weights) @ coordinates.tolerance
        members = (feature, *terms.tolist())
        with np.errstate(invalid="ignore"):
            violated = deviation > allowed + rounding[..., list(members)] @ np.abs(np.r_[1.0, weights[terms]])
        yield "identity", members, violated
    with np.errstate(invalid="ignore"):
        for low, high in coordinates.orders:
            yield "order", (low, high), (new[..., low] > new[..., high]) & (old[..., low] <= old[..., high])
        for feature in coordinates.whole:
            violated = (change[..., feature] != 0) & (new[..., feature] != np.rint(new[..., feature]))
            yield "whole", (feature,), violated
        units: dict[tuple[int, ...], tuple[FloatArray, FloatArray]] = {}
        for limb in coordinates.limbs:
            start, end = list(limb.start), list(limb.end)
            vectors = [X[..., end] - X[..., start] for X in (new, old)]
            length, own_length = (np.linalg.norm(vector, axis=-1) for vector in vectors)
            blur = rounding[..., [*start, *end]].sum(-1)
            yield "limb", (*start, *end), np.abs(length - own_length) > EXACT * own_length + blur
            now, before = (
                vector / np.where(size > 0, size, 1.0)[..., None]
                for vector, size in zip(vectors, (length, own_length), strict=True)
            )
            units[limb.end] = now, before
            if limb.bend is not None and limb.start in units:
                angle, own_angle = (bend_of(*pair) for pair in zip(units[limb.start], (now, before), strict=True))
                lowest, highest = np.minimum(limb.bend[0], own_angle), np.maximum(limb.bend[1], own_angle)
                yield "joint", (*start, *end), (angle < lowest - TURN) | (angle > highest + TURN)


def violates(coordinates: Coordinates, series: FloatArray, query: FloatArray) -> BoolArray:
    """Return whether series (batch, time, features) violate a law that their queries obey (batch,)."""
    broken = np.zeros(len(series), dtype=bool)
    for *_, where in violations(coordinates, series, query):
        broken |= where.any(1)
    return broken
