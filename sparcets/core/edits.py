"""Edits: what an answer consists of. Each changes a group of features in a window of time by one number.

``apply_edits`` gives the counterfactual bit for bit, because ``explain`` makes it with the same function.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from sparcets.core.coordinates import Coordinates
from sparcets.core.errors import DataError, ShapeError
from sparcets.core.series import BoolArray, FloatArray, IntArray, Series

FREE = "free"
NEEDS = ("model", "families", "realism")
PREFIX = "edits_"  # of the arrays in a file


@dataclass(frozen=True, kw_only=True, eq=False)
class Edit:
    """One change: a group of features, a window of time, a kind and one number; it fades in and out smoothly.

    Attributes
    ----------
    features
        Names of the features that change, also those that move along, such as the hand with the forearm.
    start, end
        Window in steps, half-open.
    kind
        ``follow``: towards the course of a training series; ``level``: higher or lower; ``size``: larger or smaller
        around its mean; ``shift``: earlier or later; ``smooth``: smoother; ``free``: other values.
    amount
        How much: the share of the way to the training series, the change in standard deviations, the factor, the delay
        in steps, the steps that are averaged, or the mean change in units.
    needed_by
        Who needs it: ``model``, ``families``, ``realism``.
    text
        The edit in words.
    row
        Of ``follow``: the number of the training series; None for other kinds.
    columns
        The coordinates that it acts on.
    rise
        Steps in which it fades in, and out; 0 at the ends of a series.
    course
        Of ``follow``, the coordinates of the training series in the window (steps, columns); of ``level``, one standard
        deviation of each (1, columns); of ``free``, the values; None for other kinds.
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


# From the coordinates (time, columns) to what they become where the edit acts fully.
KINDS: Mapping[str, Callable[[FloatArray, Edit], FloatArray]] = {
    "follow": _follow,
    "level": _level,
    "size": _size,
    "shift": _shift,
    "smooth": _smooth,
}


def apply_edits(query: FloatArray, edits: Sequence[Edit], training: Any = None) -> FloatArray:
    """Return the counterfactual of a query: its edits, one after the other.

    It is computed in float64 and rounded once, to the type of the query. Padding, gaps and what no edit moves stay as
    they are, bit for bit.

    Parameters
    ----------
    query
        Series (time, features) in the data's own units.
    edits
        As :meth:`Explanation.edits` returns them.
    training
        The training series, an array (batch, time, features) or a list of series (time, features): needed for edits
        that follow one whose course was not stored (``ExplainerConfig(store_courses=False)``).

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
    """Return the series (time, features) that edits of coordinates make of a query without padding."""
    coordinates = edits[0].coordinates
    assert coordinates is not None
    own = coordinates.of(series)
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
        made[steps] = coordinates.series(changed[steps], series[steps])
    return made


def with_course(edit: Edit, training: Any) -> Edit:
    """Return an edit with the course of the training series that it follows, if it is not stored."""
    if edit.kind != "follow" or edit.course is not None or edit.row is None or edit.coordinates is None:
        return edit
    if not 0 <= edit.row < len(training):
        raise DataError(f"{edit!r} follows training series {edit.row}, of {len(training)} that were given.")
    series = Series(np.asarray(training[edit.row])[None])
    course = edit.coordinates.of(resampled(series, edit.steps or series.n_steps)[0])
    return replace(edit, course=course[edit.start : edit.end, list(edit.columns)])


def resampled(series: Series, n_steps: int | IntArray) -> FloatArray:
    """Return each series' own part, interpolated linearly to other numbers of steps.

    So a series of another length can stand beside a query step by step, from its beginning to its end. To cut it would
    lose its end, and could not fill a longer query. Beyond a series' own ``n_steps`` (one for all, or one each), its
    last step is repeated.

    >>> resampled(Series(np.array([[[0.0], [2.0], [9.0]]]), np.array([2])), 3).ravel()
    array([0., 1., 2.])
    """
    X, old = series.values, series.steps[:, None]
    new = np.broadcast_to(np.asarray(n_steps), len(X))[:, None]  # (batch, 1)
    steps = np.arange(int(new.max()) if len(X) else 0)
    # Equal lengths give whole numbers exactly, and with them the series' own bits.
    where = np.minimum(steps * (old - 1) / np.maximum(new - 1, 1), old - 1)  # (batch, new time)
    before = where.astype(np.int64)
    after, rows = np.minimum(before + 1, old - 1), np.arange(len(X))[:, None]
    share = (where - before)[..., None].astype(X.dtype)
    low = X[rows, before]
    return np.asarray(low + share * (X[rows, after] - low))


def free_edits(query: FloatArray, made: FloatArray, feature_names: Sequence[str]) -> list[Edit]:
    """Return what turns one series (time, features) into another as values: an edit per changed segment of a feature.

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
    def join(cls, parts: Sequence[EditLists]) -> EditLists:
        """Concatenate."""
        return cls(tuple(edits for part in parts for edits in part.lists))

    def to_arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return everything as plain arrays by name, for a file: what the edits say as JSON, and their courses."""
        edits = [edit for some in self.lists for edit in some]
        maps: list[Coordinates] = []
        for edit in edits:
            if edit.coordinates is not None and not any(edit.coordinates is known for known in maps):
                maps.append(edit.coordinates)
        places = {id(known): i for i, known in enumerate(maps)}
        courses = [np.zeros(0) if edit.course is None else edit.course.ravel() for edit in edits]
        table = {
            "answers": [len(some) for some in self.lists],
            "coordinates": [known.to_dict() for known in maps],
            "edits": [_plain(edit, places) for edit in edits],
        }
        ends = np.cumsum([0, *(len(course) for course in courses)])
        values = np.concatenate(courses) if courses else np.zeros(0)
        return {
            f"{PREFIX}table": np.array(json.dumps(table)),
            f"{PREFIX}courses": values.astype(np.float64),
            f"{PREFIX}ends": ends.astype(np.int64),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> EditLists | None:
        """Build from :meth:`to_arrays`'s output, among other arrays; None if there is none among them."""
        if f"{PREFIX}table" not in arrays:
            return None
        table = json.loads(str(arrays[f"{PREFIX}table"]))
        maps = [Coordinates.from_dict(known) for known in table["coordinates"]]
        courses, ends = arrays[f"{PREFIX}courses"], arrays[f"{PREFIX}ends"]
        if len(ends) != len(table["edits"]) + 1 or sum(table["answers"]) != len(table["edits"]):
            raise ValueError("the edits and their courses do not fit together")
        pieces = [courses[start:end] for start, end in pairwise(ends.tolist())]
        edits = [_edit(one, piece, maps) for one, piece in zip(table["edits"], pieces, strict=True)]
        if "query" in arrays and any(c >= arrays["query"].shape[2] for edit in edits for c in edit.columns):
            raise ValueError("an edit is of a feature that there is not")
        bounds = np.cumsum([0, *table["answers"]]).tolist()
        return cls(tuple(tuple(edits[start:end]) for start, end in pairwise(bounds)))


_PLAIN = ("start", "end", "kind", "amount", "text", "row", "steps")
_TUPLES = ("features", "columns", "needed_by", "rise")


def _plain(edit: Edit, places: Mapping[int, int]) -> dict[str, Any]:
    values: dict[str, Any] = {name: getattr(edit, name) for name in _PLAIN}
    values |= {name: list(getattr(edit, name)) for name in _TUPLES}
    shape = None if edit.course is None else list(edit.course.shape)
    kind = None if edit.course is None else edit.course.dtype.name
    return values | {"shape": shape, "dtype": kind, "map": places.get(id(edit.coordinates))}


def _edit(values: Mapping[str, Any], course: FloatArray, maps: Sequence[Coordinates]) -> Edit:
    kept = None if values["shape"] is None else course.astype(values["dtype"]).reshape(values["shape"])
    known = {name: values[name] for name in _PLAIN} | {name: tuple(values[name]) for name in _TUPLES}
    if known["kind"] not in (*KINDS, FREE) or not 0 <= known["start"] < known["end"]:
        raise ValueError(f"an edit cannot be {known['kind']!r} from step {known['start']} to {known['end']}")
    return Edit(**known, course=kept, coordinates=None if values["map"] is None else maps[values["map"]])


def edits_to_json(edits: Sequence[Edit]) -> str:
    """Return the edits of one answer as text, with all that :func:`apply_edits` needs."""
    arrays = EditLists((tuple(edits),)).to_arrays()
    table = json.loads(str(arrays[f"{PREFIX}table"]))
    courses = [None if edit.course is None else edit.course.ravel().tolist() for edit in edits]
    return json.dumps(table | {"courses": courses})


def edits_from_json(text: str) -> list[Edit]:
    """Return the edits that :func:`edits_to_json` wrote.

    >>> edit = Edit(features=("f0",), start=0, end=2, kind="free", amount=1.0, columns=(0,), course=np.ones((2, 1)))
    >>> apply_edits(np.zeros((3, 1)), edits_from_json(edits_to_json([edit]))).ravel().tolist()
    [1.0, 1.0, 0.0]
    """
    table = json.loads(text)
    maps = [Coordinates.from_dict(known) for known in table["coordinates"]]
    courses = [np.array([] if course is None else course, dtype=np.float64) for course in table["courses"]]
    return [_edit(one, course, maps) for one, course in zip(table["edits"], courses, strict=True)]
