"""Edits, the parts of an answer. Each changes a group of features in a window of time by one number.

``apply_edits`` gives the counterfactual bit for bit, because ``explain`` makes it with the same function. An edit acts
on coordinates in which the laws of the data cannot be broken, and the series is computed back from them. A limb is the
direction from one point to the next: when the direction changes, the limb keeps the length that it has in the query. A
feature that is a linear function of others, such as stride = swing + stance, is computed from them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from sparcets.core.errors import DataError, ShapeError
from sparcets.core.series import BoolArray, FloatArray, IntArray, Series

FREE = "free"
NEEDS = ("model", "families", "realism")
PREFIX = "edits_"  # of the names of arrays in a file
_PLAIN = ("start", "end", "kind", "amount", "text", "row", "steps")
_TUPLES = ("features", "columns", "needed_by", "rise")


@dataclass(frozen=True, kw_only=True)
class Limb:
    """Two points of a body at a constant distance: a limb is rotated, never stretched."""

    start: tuple[int, ...]  # features (x, y or x, y, z) of the point nearer to the trunk, and of the other point
    end: tuple[int, ...]
    # Smallest and largest angle to the previous limb, in radians: signed in two coordinates, unsigned in three; None
    # if there is no previous limb, or any angle occurs.
    bend: tuple[float, float] | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Coordinates:
    """A map from series (…, time, features) to as many coordinates, and back.

    Examples
    --------
    >>> arm = Coordinates(tolerance=np.zeros(4), limbs=(Limb(start=(0, 1), end=(2, 3)),))
    >>> query = np.array([[0.0, 0.0, 2.0, 0.0]])
    >>> coordinates = arm.to_coordinates(query)
    >>> coordinates[0, 2:] = [0.0, 1.0]
    >>> arm.to_series(coordinates, query).tolist()
    [[0.0, 0.0, 0.0, 2.0]]
    """

    tolerance: FloatArray  # (features,): smaller changes are ignored; the query's value is kept bit for bit
    limbs: tuple[Limb, ...] = ()  # from the trunk outwards; the features of an end hold its direction, a unit vector
    # Features that are linear functions of others, and their weights (dependent, features). Neither these features nor
    # those of orders belong to the end of a limb.
    dependent: tuple[int, ...] = ()
    weights: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    orders: tuple[tuple[int, int], ...] = ()  # features of which the first is never larger than the second
    whole: tuple[int, ...] = ()  # features of whole numbers

    def to_coordinates(self, series: FloatArray) -> FloatArray:
        """Return the coordinates of series (…, time, features), as float64."""
        coordinates = series.astype(np.float64)
        for limb in self.limbs:
            start, end = list(limb.start), list(limb.end)
            way = series[..., end].astype(np.float64) - series[..., start]
            coordinates[..., end] = _unit(way)
        return coordinates

    def to_series(self, coordinates: FloatArray, query: FloatArray) -> FloatArray:
        """Return the series with these coordinates (…, time, features), of the type of the query.

        Limbs have the lengths of the query (…, time, features). Where the query is missing, or a change is below the
        tolerance, the series has the query's own bits; so have columns after the features, which are side inputs.
        """
        n = len(self.tolerance)
        if query.shape[-1] > n:
            return np.concatenate([self.to_series(coordinates[..., :n], query[..., :n]), query[..., n:]], axis=-1)
        own = query.astype(np.float64)
        made = coordinates.copy()
        if self.dependent:
            change = np.nan_to_num(made - own)
            for feature, weights in zip(self.dependent, self.weights, strict=True):
                made[..., feature] = own[..., feature] + change @ weights
        before: dict[tuple[int, ...], tuple[FloatArray, FloatArray]] = {}  # directions, now and of the query
        for limb in self.limbs:
            start, end = list(limb.start), list(limb.end)
            way = own[..., end] - own[..., start]
            length = np.linalg.norm(way, axis=-1, keepdims=True)
            direction, real = _unit(coordinates[..., end]), _unit(way)
            if limb.bend is not None and limb.start in before:
                direction = _bent(direction, real, before[limb.start], limb.bend)
            before[limb.end] = direction, real
            made[..., end] = made[..., start] + length * direction
        if self.whole:
            whole = list(self.whole)
            made[..., whole] = np.where(made[..., whole] != own[..., whole], np.rint(made[..., whole]), own[..., whole])
        stays = ~(np.abs(made - own) >= self.tolerance) | np.isnan(own)
        cast: FloatArray = np.where(stays, query, made.astype(query.dtype))
        return self._ordered(cast, query) if self.orders else cast

    def _ordered(self, made: FloatArray, query: FloatArray) -> FloatArray:
        """Return series in which the orders hold that hold in the query; unchanged features are never adjusted."""
        held = {pair: query[..., pair[0]] <= query[..., pair[1]] for pair in self.orders}
        most = np.where(made != query, np.inf, made)
        for low, high in reversed(self._upwards):
            most[..., low] = np.where(held[low, high], np.minimum(most[..., low], most[..., high]), most[..., low])
        made = np.minimum(made, most).astype(made.dtype)
        for low, high in self._upwards:
            raised = np.maximum(made[..., low], made[..., high])
            made[..., high] = np.where(held[low, high], raised, made[..., high])
        return made

    @cached_property
    def _upwards(self) -> tuple[tuple[int, int], ...]:
        """The orders such that each follows those that end where it begins."""
        depth = [0] * len(self.tolerance)
        for _ in self.orders:
            for low, high in self.orders:
                depth[high] = min(max(depth[high], depth[low] + 1), len(depth))
        return tuple(sorted(self.orders, key=lambda pair: depth[pair[0]]))

    def moved_by(self, columns: Iterable[int]) -> tuple[int, ...]:
        """Return the features that move with these coordinates: ends of limbs, and features that depend on them."""
        moved = set(columns)
        for limb in self.limbs:
            if moved & {*limb.start, *limb.end}:
                moved |= set(limb.end)
        for feature, weights in zip(self.dependent, self.weights, strict=True):
            if moved & set(np.flatnonzero(weights).tolist()):
                moved.add(feature)
        return tuple(sorted(moved))

    def solve_for(self, mutable: BoolArray) -> Coordinates:
        """Return coordinates in which identities whose dependent feature is immutable are solved for another feature.

        An identity stays as it is if all its other features are immutable or have laws of their own.
        """
        taken = {*self.whole, *(f for pair in self.orders for f in pair), *(f for limb in self.limbs for f in limb.end)}
        dependent, weights = list(self.dependent), self.weights.copy()
        for row, feature in enumerate(self.dependent):
            others = [f for f in np.flatnonzero(weights[row]).tolist() if mutable[f] and f not in taken]
            if mutable[feature] or not others:
                continue
            other = max(others, key=lambda f: abs(weights[row, f]))
            solved = -weights[row] / weights[row, other]
            solved[feature], solved[other] = 1 / weights[row, other], 0.0
            weights += np.outer(weights[:, other], solved)
            weights[:, other] = 0.0
            dependent[row], weights[row] = other, solved
        return replace(self, dependent=tuple(dependent), weights=weights)

    def free_entries(self, allowed: BoolArray) -> BoolArray:
        """Return which entries (time, features) may change so that no law is broken by those that may not.

        A limb that ends at a fixed point can neither rotate nor move. If a dependent feature is fixed, so are the
        features it depends on, and the reverse.
        """
        free: BoolArray = allowed.copy()
        for limb in reversed(self.limbs):
            held = ~free[:, list(limb.end)].all(1)
            free[np.ix_(held, np.array([*limb.start, *limb.end]))] = False
        for feature, weights in zip(self.dependent, self.weights, strict=True):
            terms = np.flatnonzero(weights)
            free[np.ix_(~free[:, feature], terms)] = False
            free[:, feature] &= free[:, terms].any(1)
        return free

    def without_mixed_laws(self, mutable: BoolArray) -> Coordinates:
        """Return the coordinates without the identities and orders that contain an immutable feature."""
        tied = zip(self.dependent, self.weights, strict=True)
        kept = [i for i, (feature, row) in enumerate(tied) if mutable[[feature, *np.flatnonzero(row)]].all()]
        return self._keeping(kept, tuple(pair for pair in self.orders if mutable[list(pair)].all()))

    def restrict_to(self, mutable: BoolArray) -> Coordinates:
        """Return the coordinates for some immutable features: fixed features are neither rotated nor derived.

        A law that ties an immutable feature to a mutable one is dropped: the constraint wins.
        """
        limbs = tuple(limb for limb in self.limbs if mutable[list(limb.end)].all())
        kept = [i for i, feature in enumerate(self.dependent) if mutable[feature]]
        orders = tuple(pair for pair in self.orders if mutable[list(pair)].any())
        return replace(self._keeping(kept, orders), limbs=limbs)

    def _keeping(self, kept: list[int], orders: tuple[tuple[int, int], ...]) -> Coordinates:
        """Return the coordinates with some of the identities, and with these orders."""
        dependent = tuple(self.dependent[i] for i in kept)
        return replace(self, dependent=dependent, weights=self.weights[kept], orders=orders)

    @property
    def have_laws(self) -> bool:
        """Whether there is any law."""
        return bool(self.limbs or self.dependent or self.orders or self.whole)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "tolerance": self.tolerance.tolist(),
            "limbs": [[list(limb.start), list(limb.end), limb.bend and list(limb.bend)] for limb in self.limbs],
            "dependent": list(self.dependent),
            "weights": self.weights.tolist(),
            "orders": [list(pair) for pair in self.orders],
            "whole": list(self.whole),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Coordinates:
        """Build from :meth:`to_dict`'s output; raise ValueError where values do not fit together."""
        tolerance = np.asarray(data["tolerance"], dtype=np.float64)
        n = len(tolerance)
        limbs = tuple(
            Limb(start=tuple(start), end=tuple(end), bend=None if bend is None else (float(bend[0]), float(bend[1])))
            for start, end, bend in data["limbs"]
        )
        made = cls(
            tolerance=tolerance,
            limbs=limbs,
            dependent=tuple(data["dependent"]),
            weights=np.asarray(data["weights"], dtype=np.float64).reshape(len(data["dependent"]), n),
            orders=tuple((int(low), int(high)) for low, high in data["orders"]),
            whole=tuple(data["whole"]),
        )
        features = {*made.dependent, *made.whole, *(f for pair in made.orders for f in pair)}
        features |= {f for limb in limbs for f in (*limb.start, *limb.end)}
        sizes_fit = all(len(limb.start) == len(limb.end) in (2, 3) for limb in limbs)
        if not sizes_fit or not all(isinstance(f, int) and 0 <= f < n for f in features):
            raise ValueError("limbs, dependent features, orders and tolerances do not fit together")
        return made


def _unit(vectors: FloatArray) -> FloatArray:
    """Return vectors (…, coordinates) scaled to length 1; zero vectors stay zero."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0))


def _bent(
    direction: FloatArray, own: FloatArray, before: tuple[FloatArray, FloatArray], bend: tuple[float, float]
) -> FloatArray:
    """Return directions (…, 2 or 3) rotated back within the range of angles to the previous limb in recordings.

    Where the query's ``own`` angle is outside that range, it is the limit.
    """
    previous, real = before
    angle, own_angle = bend_of(previous, direction), bend_of(real, own)
    wanted = np.clip(angle, np.minimum(bend[0], own_angle), np.maximum(bend[1], own_angle))
    off = wanted != angle
    if not off.any():
        return direction
    if direction.shape[-1] == 2:
        cosine, sine = np.cos(wanted), np.sin(wanted)
        x, y = previous[..., 0], previous[..., 1]
        turned = np.stack([cosine * x - sine * y, sine * x + cosine * y], axis=-1)
    else:  # in the plane of both limbs
        across = _unit(direction - (direction * previous).sum(-1, keepdims=True) * previous)
        turned = np.cos(wanted)[..., None] * previous + np.sin(wanted)[..., None] * across
    return np.asarray(np.where(off[..., None], turned, direction))


def bend_of(before: FloatArray, direction: FloatArray) -> FloatArray:
    """Return the angle from one unit vector to the next (…,), signed in two coordinates, unsigned in three.

    >>> round(float(bend_of(np.array([1.0, 0.0]), np.array([0.0, 1.0]))), 3)
    1.571
    """
    along = (before * direction).sum(-1)
    if direction.shape[-1] == 2:
        return np.asarray(np.arctan2(before[..., 0] * direction[..., 1] - before[..., 1] * direction[..., 0], along))
    return np.asarray(np.arccos(np.clip(along, -1.0, 1.0)))


@dataclass(frozen=True, kw_only=True, eq=False)
class Edit:
    """One change: a group of features, a window of time, a kind and one number; it fades in and out smoothly.

    Attributes
    ----------
    features
        Names of the features that change, including those that move along, such as the hand with the forearm.
    start, end
        Window in steps, half-open.
    kind
        ``follow``: towards the course of a training series; ``level``: higher or lower; ``size``: larger or smaller
        around its mean; ``shift``: earlier or later; ``smooth``: smoother; ``free``: other values.
    amount
        How much: the share of the way to the training series, the change in standard deviations, the factor, the delay
        in steps, the steps that are averaged, or the mean change in units.
    needed_by
        Why the edit is needed: for ``model``, ``families`` or ``realism``.
    text
        Description of the edit.
    row
        Number of the training series that a ``follow`` edit uses; None for other kinds.
    columns
        The coordinates that it acts on.
    rise
        Steps in which it fades in, and out; 0 at the ends of a series.
    course
        For ``follow``, the coordinates of the training series in the window (steps, columns); for ``level``, one
        standard deviation of each (1, columns); for ``free``, the values; None for other kinds.
    coordinates
        The map between series and coordinates; None for ``free``.
    steps
        Length of the query without padding; None if it is not known.

    Examples
    --------
    >>> Edit(features=("f0",), start=0, end=5, kind="level", amount=0.5, columns=(0,))
    Edit(level 0.5, f0, steps 0 to 5)
    """

    features: tuple[str, ...]
    start: int
    end: int
    kind: str
    amount: float
    columns: tuple[int, ...]
    needed_by: tuple[str, ...] = ()
    text: str = ""
    row: int | None = None
    rise: tuple[int, int] = (0, 0)
    course: FloatArray | None = None
    coordinates: Coordinates | None = None
    steps: int | None = None

    def __repr__(self) -> str:
        return f"Edit({self.kind} {self.amount:.3g}, {', '.join(self.features)}, steps {self.start} to {self.end})"

    def weights(self) -> FloatArray:
        """Return how much of the edit acts at each step of its window (steps,), from 0 to 1."""
        return fade(self.end - self.start, *self.rise)


def fade(n_steps: int, rise: int, fall: int) -> FloatArray:
    """Return weights (steps,) that rise smoothly from 0 to 1 within ``rise`` steps, and fall at the end.

    >>> fade(5, 2, 0).round(2).tolist()
    [0.15, 0.85, 1.0, 1.0, 1.0]
    """
    middle = np.arange(n_steps) + 0.5
    up = middle / rise if rise else np.ones(n_steps)
    down = (n_steps - middle) / fall if fall else np.ones(n_steps)
    share = np.clip(np.minimum(up, down), 0.0, 1.0)
    return np.asarray(np.sin(share * np.pi / 2) ** 2)


def _follow(columns: FloatArray, edit: Edit) -> FloatArray:
    assert edit.course is not None
    aim: FloatArray = columns.copy()
    window = slice(edit.start, edit.end)
    # Where the training series has gaps, nothing changes.
    aim[window] += edit.amount * np.nan_to_num(edit.course - columns[window])
    return aim


def _level(columns: FloatArray, edit: Edit) -> FloatArray:
    assert edit.course is not None
    return np.asarray(columns + edit.amount * edit.course)


def _size(columns: FloatArray, edit: Edit) -> FloatArray:
    mean = np.nanmean(columns, axis=0)
    return np.asarray(mean + edit.amount * (columns - mean))


def _shift(columns: FloatArray, edit: Edit) -> FloatArray:
    steps = np.arange(len(columns))
    when = np.clip(steps - edit.amount, 0, len(columns) - 1)
    return np.asarray(np.stack([np.interp(when, steps, column) for column in columns.T], axis=1))


def _smooth(columns: FloatArray, edit: Edit) -> FloatArray:
    reach = int(edit.amount)
    padded = np.concatenate([np.repeat(columns[:1], reach, 0), columns, np.repeat(columns[-1:], reach, 0)])
    return np.asarray(np.stack([padded[i : i + len(columns)] for i in range(2 * reach + 1)]).mean(0))


# From the coordinates (time, columns) to their values where the edit acts fully.
KINDS: Mapping[str, Callable[[FloatArray, Edit], FloatArray]] = {
    "follow": _follow,
    "level": _level,
    "size": _size,
    "shift": _shift,
    "smooth": _smooth,
}


def apply_edits(query: FloatArray, edits: Sequence[Edit], training: Any = None) -> FloatArray:
    """Return the counterfactual of a query: its edits, one after the other.

    It is computed in float64 and rounded once, to the type of the query. Padding, gaps and entries that no edit changes
    keep their values bit for bit.

    Parameters
    ----------
    query
        Series (time, features) in the data's own units.
    edits
        As :meth:`Explanation.edits` returns them.
    training
        The training series, an array (batch, time, features) or a list of series (time, features); needed for
        ``follow`` edits without a stored course (``ExplainerConfig(store_courses=False)``).

    Returns
    -------
    counterfactual
        Series (time, features).

    Examples
    --------
    >>> higher = Edit(features=("f0",), start=0, end=2, kind="free", amount=1.0, columns=(0,), course=np.ones((2, 1)))
    >>> apply_edits(np.zeros((3, 1)), [higher]).ravel().tolist()
    [1.0, 1.0, 0.0]
    """
    made: FloatArray = np.array(query)
    if made.ndim != 2:
        raise ShapeError(f"apply_edits takes one query (time, features), got shape {made.shape}. Pass e.query[i].")
    for edit in edits:
        if edit.end > len(made):
            raise ShapeError(f"{edit!r} does not fit into {len(made)} steps. Pass the query that it was made for.")
    smooth = [
        edit if training is None else with_course(edit, training) for edit in edits if edit.coordinates is not None
    ]
    if smooth:
        n = smooth[0].steps or len(made)
        made[:n] = _smoothly(made[:n], smooth)
    for edit in edits:
        if edit.kind == FREE and edit.course is not None:
            made[edit.start : edit.end, list(edit.columns)] = edit.course
    return made


def _smoothly(series: FloatArray, edits: Sequence[Edit]) -> FloatArray:
    """Return a query (time, features) without padding after edits of its coordinates."""
    coordinates = edits[0].coordinates
    assert coordinates is not None
    own = coordinates.to_coordinates(series)
    changed = own.copy()
    for edit in edits:
        if edit.kind == "follow" and edit.course is None:
            raise DataError(
                f"{edit!r}: the course of training series {edit.row} was not stored. Pass the training series: "
                "apply_edits(query, edits, X_train)."
            )
        window, columns = slice(edit.start, edit.end), list(edit.columns)
        now = changed[:, columns]
        change = (KINDS[edit.kind](now, edit) - now)[window]
        changed[window, columns] += edit.weights()[:, None] * np.nan_to_num(change)
    steps = np.flatnonzero((np.nan_to_num(changed) != np.nan_to_num(own)).any(1))
    made: FloatArray = series.copy()
    if len(steps):
        made[steps] = coordinates.to_series(changed[steps], series[steps])
    return made


def with_course(edit: Edit, training: Any) -> Edit:
    """Return an edit with the course of the training series that it follows, if it is not stored."""
    if edit.kind != "follow" or edit.course is not None or edit.row is None or edit.coordinates is None:
        return edit
    if not 0 <= edit.row < len(training):
        raise DataError(f"{edit!r} follows training series {edit.row}, of {len(training)} that were given.")
    series = Series(np.asarray(training[edit.row])[None])
    course = edit.coordinates.to_coordinates(series.resampled(edit.steps or series.n_steps)[0])
    return replace(edit, course=course[edit.start : edit.end, list(edit.columns)])


def free_edits(query: FloatArray, made: FloatArray, feature_names: Sequence[str]) -> list[Edit]:
    """Return ``free`` edits that turn one series (time, features) into another, one per changed segment of a feature.

    >>> free_edits(np.zeros((4, 1)), np.array([[0.0], [1.0], [3.0], [0.0]]), ["f0"])
    [Edit(free 2, f0, steps 1 to 3)]
    """
    changed: BoolArray = (made != query) & ~np.isnan(query)
    edits = []
    for feature in np.flatnonzero(changed.any(0)).tolist():
        edges = np.flatnonzero(np.diff(np.r_[False, changed[:, feature], False].astype(np.int8)))
        for start, end in edges.reshape(-1, 2).tolist():
            values = made[start:end, [feature]]
            change = float((values[:, 0].astype(np.float64) - query[start:end, feature]).mean())
            edits.append(
                Edit(
                    features=(feature_names[feature],),
                    start=start,
                    end=end,
                    kind=FREE,
                    amount=change,
                    columns=(feature,),
                    course=values.copy(),
                )
            )
    return edits


@dataclass(frozen=True, eq=False)
class EditLists:
    """The edits of several answers."""

    lists: tuple[tuple[Edit, ...], ...]

    def __len__(self) -> int:
        return len(self.lists)

    def __getitem__(self, rows: slice | IntArray | BoolArray) -> EditLists:
        """Select answers by slice, mask or indices."""
        return EditLists(tuple(self.lists[i] for i in np.arange(len(self.lists))[rows].tolist()))

    @classmethod
    def join(cls, parts: Sequence[tuple[int, EditLists | None]]) -> EditLists:
        """Concatenate lists for parts of the given sizes; a part without lists has no edits."""
        return cls(tuple(edits for n, part in parts for edits in (((),) * n if part is None else part.lists)))

    def to_arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return everything as plain arrays by name, for a file: the edits as JSON, and their courses."""
        table, courses = self._table()
        ends = np.cumsum([0, *(len(course) for course in courses)])
        return {
            f"{PREFIX}table": np.array(json.dumps(table)),
            f"{PREFIX}courses": np.concatenate([np.zeros(0), *courses]),
            f"{PREFIX}ends": ends.astype(np.int64),
        }

    def _table(self) -> tuple[dict[str, Any], list[FloatArray]]:
        """Return the edits as plain values, and their courses (values,), empty for edits without one."""
        edits = [edit for some in self.lists for edit in some]
        maps = {id(edit.coordinates): edit.coordinates for edit in edits if edit.coordinates is not None}
        places = {known: i for i, known in enumerate(maps)}
        courses = [np.zeros(0) if edit.course is None else edit.course.ravel() for edit in edits]
        table = {
            "answers": [len(some) for some in self.lists],
            "coordinates": [known.to_dict() for known in maps.values()],
            "edits": [_plain(edit, places) for edit in edits],
        }
        return table, courses

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> EditLists | None:
        """Build from arrays that include the output of :meth:`to_arrays`; None if they do not."""
        if f"{PREFIX}table" not in arrays:
            return None
        table = json.loads(str(arrays[f"{PREFIX}table"]))
        courses, ends = arrays[f"{PREFIX}courses"], arrays[f"{PREFIX}ends"]
        if len(ends) != len(table["edits"]) + 1 or sum(table["answers"]) != len(table["edits"]):
            raise ValueError("the edits and their courses do not fit together")
        edits = _edits(table, [courses[start:end] for start, end in pairwise(ends.tolist())])
        if "query" in arrays and any(c >= arrays["query"].shape[2] for edit in edits for c in edit.columns):
            raise ValueError("an edit is of a feature that there is not")
        bounds = np.cumsum([0, *table["answers"]]).tolist()
        return cls(tuple(tuple(edits[start:end]) for start, end in pairwise(bounds)))


def _plain(edit: Edit, places: Mapping[int, int]) -> dict[str, Any]:
    values: dict[str, Any] = {name: getattr(edit, name) for name in _PLAIN}
    values |= {name: list(getattr(edit, name)) for name in _TUPLES}
    shape = None if edit.course is None else list(edit.course.shape)
    kind = None if edit.course is None else edit.course.dtype.name
    return values | {"shape": shape, "dtype": kind, "map": places.get(id(edit.coordinates))}


def _edits(table: Mapping[str, Any], courses: Sequence[FloatArray]) -> list[Edit]:
    maps = [Coordinates.from_dict(known) for known in table["coordinates"]]
    return [_edit(values, course, maps) for values, course in zip(table["edits"], courses, strict=True)]


def _edit(values: Mapping[str, Any], course: FloatArray, maps: Sequence[Coordinates]) -> Edit:
    kept = None if values["shape"] is None else course.astype(values["dtype"]).reshape(values["shape"])
    known = {name: values[name] for name in _PLAIN} | {name: tuple(values[name]) for name in _TUPLES}
    if known["kind"] not in (*KINDS, FREE) or not 0 <= known["start"] < known["end"]:
        raise ValueError(f"an edit cannot be {known['kind']!r} from step {known['start']} to {known['end']}")
    return Edit(**known, course=kept, coordinates=None if values["map"] is None else maps[values["map"]])


def edits_to_json(edits: Sequence[Edit]) -> str:
    """Return the edits of one answer as text, with all that :func:`apply_edits` needs."""
    table, courses = EditLists((tuple(edits),))._table()
    told = [None if edit.course is None else course.tolist() for edit, course in zip(edits, courses, strict=True)]
    return json.dumps(table | {"courses": told})


def edits_from_json(text: str) -> list[Edit]:
    """Return the edits that :func:`edits_to_json` wrote.

    >>> edit = Edit(features=("f0",), start=0, end=2, kind="free", amount=1.0, columns=(0,), course=np.ones((2, 1)))
    >>> apply_edits(np.zeros((3, 1)), edits_from_json(edits_to_json([edit]))).ravel().tolist()
    [1.0, 1.0, 0.0]
    """
    table = json.loads(text)
    return _edits(table, [np.array(course or [], dtype=np.float64) for course in table["courses"]])
