"""Targets of ``explain``: a class, any class but one, or where numbers have to lie; and whether they are reached."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from sparcets.core.errors import ShapeError, TargetError, quoted
from sparcets.core.info import SeriesInfo
from sparcets.core.registry import did_you_mean
from sparcets.core.series import BoolArray, FloatArray, IntArray, StrArray, as_array, is_integer, is_number

PREFIX = "numbers_"  # of the arrays in a file
FIELDS = ("before", "after", "bounds")


@dataclass(frozen=True)
class Not:
    """A target of ``explain``: any class but this one, the easiest to believe.

    Examples
    --------
    >>> Not("sick")
    Not(label='sick')
    """

    label: int | str


@dataclass(frozen=True)
class NumberTarget(ABC):
    """A target of ``explain`` for a model that predicts numbers: a range."""

    @property
    @abstractmethod
    def output(self) -> int | str | None:
        """Index or name of the output that it is about; None for all of them."""

    def __post_init__(self) -> None:
        output, *values = (getattr(self, field.name) for field in reversed(fields(self)))
        if output is not None and not isinstance(output, str) and not is_integer(output):
            raise TargetError(f"output must be the index or the name of an output, got {quoted(output)}.")
        for value in reversed(values):
            if not is_number(value) or np.isinf(float(value)):
                raise TargetError(f"{quoted(self)} must be given finite numbers, got {quoted(value)}.")

    @abstractmethod
    def interval(self, own: FloatArray) -> tuple[float | FloatArray, float | FloatArray]:
        """Return the smallest and largest number in the target, given the model's predictions for the queries."""

    def words(self, unit: str) -> str:
        """Return a readable description; ``unit`` follows each number, such as " mmHg"."""
        low, high = self.interval(np.zeros(1))
        if low == -np.inf:
            return f"at most {_written(high)[0]}{unit}"
        if high == np.inf:
            return f"at least {_written(low)[0]}{unit}"
        least, most = _written(low, high)
        return f"between {least} and {most}{unit}"

    def outputs(self, names: Sequence[str]) -> list[int]:
        """Return the indices of the outputs that it is about, among those of a model."""
        if self.output is None:
            return list(range(len(names)))
        if isinstance(self.output, str):
            if self.output not in names:
                hint = did_you_mean(self.output, names)
                raise TargetError(f"no output {quoted(self.output)}.{hint} Known: {', '.join(names)}.")
            return [list(names).index(self.output)]
        if not is_integer(self.output) or not 0 <= self.output < len(names):
            raise TargetError(
                f"output={quoted(self.output)} of {quoted(self)} is none of the model's {len(names)} outputs; they are "
                f"counted from 0: {', '.join(names)}."
            )
        return [int(self.output)]

    def bounds(self, own: FloatArray, names: Sequence[str]) -> FloatArray:
        """Return the bounds of the target (batch, outputs, 2), infinite where any number counts.

        ``own`` are the model's predictions for the queries (batch, outputs).

        >>> AtLeast(30, output=1).bounds(np.array([[10.0, 20.0]]), ("a", "b")).tolist()
        [[[-inf, inf], [30.0, inf]]]
        >>> Change(-5).bounds(np.array([[10.0]]), ("a",)).tolist()
        [[[-inf, 5.0]]]
        """
        bounds: FloatArray = np.broadcast_to([-np.inf, np.inf], (*own.shape, 2)).copy()
        for k in self.outputs(names):
            bounds[:, k, 0], bounds[:, k, 1] = self.interval(own[:, k])
        return bounds

    def describe(self, names: Sequence[str], units: Sequence[str] | None) -> str:
        """Return a readable description, with units, and the name of the output if there are several.

        >>> AtMost(29.5).describe(["pressure"], ["mmHg"]), Change(5, output=1).describe(["a", "b"], None)
        ('at most 29.5 mmHg', 'b at least 5 more')
        """
        about = self.outputs(names)
        same = units is not None and len({units[k] for k in about}) == 1
        unit = f" {units[about[0]]}" if units is not None and same and units[about[0]] else ""
        name = f"{names[about[0]]} " if len(about) < len(names) else ""
        return f"{name}{self.words(unit)}"


@dataclass(frozen=True)
class AtLeast(NumberTarget):
    """A number of at least ``value``; of every output, or of one.

    Examples
    --------
    >>> AtLeast(30)
    AtLeast(value=30, output=None)
    """

    value: float
    output: int | str | None = None

    def interval(self, own: FloatArray) -> tuple[float | FloatArray, float | FloatArray]:
        """Return the bounds of the numbers that count."""
        return self.value, np.inf


@dataclass(frozen=True)
class AtMost(NumberTarget):
    """A number of at most ``value``; of every output, or of one.

    Examples
    --------
    >>> AtMost(129.6, output="systolic")
    AtMost(value=129.6, output='systolic')
    """

    value: float
    output: int | str | None = None

    def interval(self, own: FloatArray) -> tuple[float | FloatArray, float | FloatArray]:
        """Return the bounds of the numbers that count."""
        return -np.inf, self.value


@dataclass(frozen=True)
class Between(NumberTarget):
    """A number from ``low`` to ``high``, both included; of every output, or of one.

    Examples
    --------
    >>> Between(20, 30)
    Between(low=20, high=30, output=None)
    """

    low: float
    high: float
    output: int | str | None = None

    def __post_init__(self) -> None:
        NumberTarget.__post_init__(self)
        if self.low > self.high:
            raise TargetError(
                f"{quoted(self)} holds no number; write Between({', '.join(_written(self.high, self.low))})."
            )

    def interval(self, own: FloatArray) -> tuple[float | FloatArray, float | FloatArray]:
        """Return the bounds of the numbers that count."""
        return self.low, self.high


@dataclass(frozen=True)
class Change(NumberTarget):
    """A number that is at least ``by`` more than the query's own, or less if negative; of every output, or of one.

    Examples
    --------
    >>> Change(-5, output=2)
    Change(by=-5, output=2)
    """

    by: float
    output: int | str | None = None

    def __post_init__(self) -> None:
        NumberTarget.__post_init__(self)
        if self.by == 0:
            raise TargetError(
                "Change(0) asks for no change. Say by how much the number has to change, as in Change(5)."
            )

    def interval(self, own: FloatArray) -> tuple[float | FloatArray, float | FloatArray]:
        """Return the bounds of the numbers that count."""
        wanted, free = own + float(self.by), np.copysign(np.inf, self.by)
        return (wanted, free) if self.by > 0 else (free, wanted)

    def words(self, unit: str) -> str:
        """Return a readable description."""
        return f"at least {_written(abs(self.by))[0]}{unit} {'more' if self.by > 0 else 'less'}"


def _written(*values: Any) -> list[str]:
    """Return numbers as text: six digits, more where two would look equal, or a large number as a rounded power."""
    for digits in range(6, 18):
        texts = [f"{value:.{digits}g}" for value in values]
        rounded = [t for t, v in zip(texts, values, strict=True) if "e+" in t and abs(v) < 1e15 and float(t) != v]
        if not rounded and len(set(texts)) >= len(set(values)):
            break
    return texts


@dataclass(frozen=True, kw_only=True, eq=False)
class Numbers:
    """Predicted numbers of answers, and the bounds of their targets.

    Examples
    --------
    >>> Numbers(before=np.array([[1.0]]), after=np.array([[3.0]]), bounds=np.array([[[3.0, np.inf]]])).reached.tolist()
    [True]
    """

    before: FloatArray  # the regressor's numbers for query and counterfactual (answers, outputs)
    after: FloatArray
    bounds: FloatArray  # smallest and largest number within the target (answers, outputs, 2), infinite where any counts

    def __post_init__(self) -> None:
        if self.before.shape != self.after.shape or self.bounds.shape != (*self.before.shape, 2):
            shapes = ", ".join(f"{name} {getattr(self, name).shape}" for name in FIELDS)
            raise ShapeError(
                f"numbers need before, after (answers, outputs) and bounds (answers, outputs, 2); {shapes}."
            )

    @property
    def reached(self) -> BoolArray:
        """Whether every number after the change is within its bounds (answers,)."""
        return is_within(self.after, self.bounds)

    def __len__(self) -> int:
        return len(self.before)

    def __getitem__(self, rows: slice | IntArray | BoolArray) -> Numbers:
        """Select answers by slice, mask or indices."""
        return Numbers(**{name: getattr(self, name)[rows] for name in FIELDS})

    @classmethod
    def join(cls, parts: Sequence[Numbers]) -> Numbers:
        """Concatenate."""
        return cls(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in FIELDS})

    def to_arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return everything as plain arrays by name, for a file."""
        return {f"{PREFIX}{name}": getattr(self, name) for name in FIELDS}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Numbers | None:
        """Build from arrays that include the output of :meth:`to_arrays`; None if they do not."""
        if not any(name.startswith(PREFIX) for name in arrays):
            return None
        return cls(**{name: arrays[f"{PREFIX}{name}"] for name in FIELDS})


def is_within(numbers: FloatArray, bounds: FloatArray) -> BoolArray:
    """Return whether all numbers (batch, outputs) are within their bounds (batch, outputs, 2) or (outputs, 2)."""
    return np.asarray(((numbers >= bounds[..., 0]) & (numbers <= bounds[..., 1])).all(1))


@dataclass(frozen=True, kw_only=True, eq=False)
class BoundTarget:
    """A target of ``explain``, bound to the classes, or to the numbers, of a fit."""

    info: SeriesInfo
    # The class of each query, or the index of its target among ``numbers``; length 1 if it is the same for all queries.
    # None for the runner-up class of each query.
    index: IntArray | None = None
    per_query: bool = False
    given: bool = False  # whether the user named a target
    excluded: int | None = None  # index of the class that is not allowed, if the target is any class but one
    numbers: tuple[NumberTarget, ...] = ()  # for a regressor, the different targets

    @classmethod
    def bind(
        cls, target: Any, info: SeriesInfo, *, own: int | None, owner: str, n_queries: int | None = None
    ) -> BoundTarget:
        """Bind the target given to ``explain``; raise if the model has no such target.

        ``own`` is the only class that the explainer was fitted for, or None. The number of queries may not be known.
        """
        if info.outcome:
            numbers = _number_targets(target, info.outcome.names)
            index = np.array([numbers.index(one) for one in (target if is_per_query(target) else [target])])
            bound = cls(info=info, index=index, per_query=is_per_query(target), given=True, numbers=numbers)
        elif isinstance(target, NumberTarget):
            raise TargetError(
                f"{quoted(target)} is a target for a model that predicts numbers, sp.wrap(model, task='regression'); "
                f"this one predicts the classes {', '.join(info.class_names)}."
            )
        elif isinstance(target, Not) and own is None:
            excluded = check_target(target.label, n_queries=1, class_names=info.class_names)
            return cls(info=info, excluded=int(excluded[0]))
        else:
            bound = cls._of_class(target, info, own, owner)
        if n_queries is not None and bound.per_query:
            bound._check_number(n_queries, len(target))
        return bound

    @classmethod
    def _of_class(cls, target: Any, info: SeriesInfo, own: int | None, owner: str) -> BoundTarget:
        if target is None:
            return cls(info=info, index=None if own is None else np.array([own]))
        alone = "" if own is None else f"this {owner} was fitted for the target {quoted(info.class_names[own])} alone"
        if isinstance(target, Not):
            raise TargetError(f"{alone}, so it cannot choose a class. Fit one with target=None for every class.")
        per_query = is_per_query(target)
        index = check_target(target, n_queries=len(target) if per_query else 1, class_names=info.class_names)
        if alone and (index != own).any():
            raise TargetError(f"{alone}. Ask for that, or fit one with target=None for every class.")
        return cls(info=info, index=index, per_query=per_query, given=True)

    def of_queries(self, first: int, stop: int) -> IntArray | None:
        """Return the ``index`` of some consecutive queries; None for the runner-up."""
        if self.index is None:
            return None
        if not self.per_query:
            return np.repeat(self.index, stop - first)
        part = self.index[first:stop]
        self._check_number(stop - first, len(part))
        return part

    def words(self, index: IntArray) -> StrArray:
        """Return descriptions of targets of a regressor."""
        names, units = self.info.numbers.names, self.info.numbers.units
        return np.array([one.describe(names, units) for one in self.numbers])[index]

    def bounds(self, index: IntArray, before: FloatArray) -> FloatArray:
        """Return the bounds of the target of each query (batch, outputs, 2).

        ``before`` are the regressor's predictions for the queries (batch, outputs).
        """
        bounds = np.empty((*before.shape, 2))
        for k, target in enumerate(self.numbers):
            bounds[index == k] = target.bounds(before[index == k], self.info.numbers.names)
        return bounds

    def _check_number(self, n_queries: int, n_targets: int) -> None:
        if n_targets != n_queries:
            what = "target" if self.numbers else "class"
            raise TargetError(
                f"target must be one {what}, or one per query: {n_queries} queries came with {n_targets} targets."
            )


def _number_targets(target: Any, names: Sequence[str]) -> tuple[NumberTarget, ...]:
    """Return the different targets of a regressor whose outputs have these names, in the order of the queries."""
    given = list(target) if is_per_query(target) else [target]
    for one in given:
        if not isinstance(one, NumberTarget):
            raise TargetError(
                "the model predicts numbers: the target must be sp.AtLeast(30), sp.AtMost(30), "
                f"sp.Between(20, 30) or sp.Change(5), or one of these per query, got {quoted(one)}."
            )
        one.outputs(names)  # raises if there is no such output
    if not given:
        raise TargetError("target must be one target, or one per query, got none.")
    return tuple(dict.fromkeys(given))


def only_target(target: int | str | None, info: SeriesInfo) -> int | None:
    """Return the index of the class that the settings of a method name as the only target, or None."""
    return None if target is None else int(check_target([target], n_queries=1, class_names=info.class_names)[0])


def is_per_query(values: Any) -> bool:
    """Return whether there is one value per query."""
    return hasattr(values, "__len__") and not isinstance(values, str) and getattr(values, "shape", None) != ()


def name_or_index(text: str, names: Sequence[str]) -> str | int:
    """Interpret a text of the command line or of a plan as a name, or as an index if there is no such name.

    >>> name_or_index("1", ["1", "2"]), name_or_index("1", ["calm", "wild"]), name_or_index("calm", ["calm", "wild"])
    ('1', 1, 'calm')
    """
    return int(text) if text.isdigit() and text not in names else text


def check_target(target: Any, *, n_queries: int, class_names: Sequence[str]) -> IntArray:
    """Return one class index per query from a class name, an index, or one of these per query."""
    if isinstance(target, np.ma.MaskedArray):
        target = as_array(target, "target", "")
    if getattr(target, "shape", None) == ():  # a scalar of NumPy or torch
        target = target.item()
    if not is_per_query(target):
        if is_integer(target) and str(target) in class_names:
            _check_unambiguous(int(target), class_names)
        return np.full(n_queries, _one_target(target, class_names), dtype=np.int64)
    # A list is not converted to an array: that would turn [1, "well"] into strings.
    values = target.tolist() if hasattr(target, "tolist") else list(target)
    if len(values) != n_queries:
        raise TargetError(
            f"target must be one class, or one per query: {n_queries} queries came with {len(values)} targets."
        )
    if isinstance(target, np.ndarray) and target.dtype.kind in "iu" and target.ndim == 1:
        values = np.unique(target).tolist()  # many queries have few targets
        index = np.array([_one_target(value, class_names) for value in values], dtype=np.int64)
        return index[np.searchsorted(values, target)]
    return np.array([_one_target(value, class_names) for value in values], dtype=np.int64)


def _check_unambiguous(target: int, class_names: Sequence[str]) -> None:
    """Raise for a number that is the name of a class and the index of another one."""
    if list(class_names) != [str(k) for k in range(len(class_names))]:
        index = f" or target=[{target}, …], one index per query" if 0 <= target < len(class_names) else ""
        raise TargetError(
            f"target={target} is ambiguous, since the classes are named by numbers: {', '.join(class_names)}. Give the "
            f"name as text, target={str(target)!r}{index}."
        )


def _one_target(target: Any, class_names: Sequence[str]) -> int:
    names = list(class_names)
    if isinstance(target, str):
        if target in names:
            return names.index(target)
        raise TargetError(f"no target class {quoted(target)}.{did_you_mean(target, names)} Known: {', '.join(names)}.")
    if not is_integer(target):
        raise TargetError(f"target must be a class name or index, got {quoted(target)}.")
    if not 0 <= int(target) < len(names):
        raise TargetError(
            f"target {int(target)} is not a class index: there are {len(names)} classes, {', '.join(names)}."
        )
    return int(target)


def is_reached(proba: FloatArray, target: Any, confidence: float | None) -> BoolArray:
    """Return whether the target has the largest probability (batch, classes), and at least ``confidence``.

    >>> proba = np.array([[0.4, 0.6], [0.1, 0.9], [0.7, 0.3]])
    >>> is_reached(proba, [1, 1, 1], None).tolist(), is_reached(proba, [1, 1, 1], 0.9).tolist()
    ([True, True, False], [False, True, False])
    """
    reached = proba.argmax(1) == target
    if confidence is not None:
        reached &= proba[np.arange(len(proba)), target] >= confidence
    return np.asarray(reached)
