"""Side inputs: inputs of a model besides the series, one row per series, such as the age of the recorded person.

Internally, they are the last features of the series: constant over time, and immutable. So code that selects, orders,
batches and constrains series does the same to them, and no method needs to know of them. A wrapped model separates them
again (:meth:`SideInputs.split`), and an explanation shows the series alone, with the side inputs beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets.core.config import Record
from sparcets.core.errors import CapabilityError, DataError, FeatureMismatchError, NonFiniteError, ShapeError, quoted
from sparcets.core.registry import did_you_mean
from sparcets.core.series import LARGEST, FloatArray, IntArray, Series, as_array
from sparcets.core.validation import text_problem

if TYPE_CHECKING:
    from sparcets.core.explanation import Explanation


Side = dict[str, np.ndarray[Any, Any]]  # arrays (batch, …) by name
PREFIX = "side_"  # of the names of their arrays in a file


@dataclass(frozen=True)
class SideInputs(Record):
    """Names, shapes and types of the side inputs of a model.

    Examples
    --------
    >>> side = {"age": [63, 41], "dose": [[0.5, 1.0], [0.0, 2.0]]}
    >>> known = SideInputs.of(side)
    >>> X = known.attach(np.zeros((2, 4, 3)), known.table(side, 2))
    >>> series, apart = known.split(X)
    >>> X.shape, series.shape, known.typed(apart)["age"]
    ((2, 4, 6), (2, 4, 3), array([63, 41]))
    """

    names: tuple[str, ...]  # names of the model's arguments
    shapes: tuple[tuple[int, ...], ...]  # shape of the value of one series: () for a number, (3,) for three
    dtypes: tuple[str, ...]  # names of the NumPy types that the model receives

    @classmethod
    def of(cls, side: Any) -> SideInputs:
        """Describe the side inputs of a user, a mapping of names to arrays (batch, …)."""
        arrays = _read(side)
        return cls(
            names=tuple(arrays),
            shapes=tuple(array.shape[1:] for array in arrays.values()),
            dtypes=tuple(array.dtype.name for array in arrays.values()),
        )

    @property
    def n_columns(self) -> int:
        """Number of features that hold them."""
        return sum(int(np.prod(shape)) for shape in self.shapes)

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of these features."""
        found = []
        for name, shape in zip(self.names, self.shapes, strict=True):
            places = np.ndindex(shape)
            found += [f"side.{name}{list(place) if place else ''}" for place in places]
        return tuple(found)

    def table(self, side: Any, n_series: int | None, *, owner: str = "this model") -> FloatArray:
        """Check the side inputs of a user and return them as one table (batch, columns).

        Its type is float32 if that changes no value, else float64. ``n_series`` is None where it is not known yet, and
        ``owner`` was fitted with side inputs like these.
        """
        if side is None:
            raise DataError(f"{owner} was fitted with side inputs: pass side={self._example()}, a row per series.")
        arrays = _read(side)
        self._check_names(arrays, owner)
        rows = len(next(iter(arrays.values()))) if n_series is None else n_series
        columns = []
        for name, shape, dtype in zip(self.names, self.shapes, self.dtypes, strict=True):
            array = arrays[name]
            _check_rows(name, array, rows)
            if array.shape[1:] != shape:
                raise FeatureMismatchError(
                    f"{owner} was fitted with side[{quoted(name)}] of shape {('batch', *shape)}, got {array.shape}."
                )
            if np.dtype(dtype).kind in "iub" and not (array == np.rint(array)).all():
                raise FeatureMismatchError(
                    f"{owner} was fitted with whole numbers as side[{name!r}], got {array[array % 1 != 0].ravel()[0]}."
                )
            columns.append(array.reshape(rows, -1).astype(np.float64))
        table = np.concatenate(columns, axis=1)
        narrow: FloatArray = table.astype(np.float32)
        return narrow if np.array_equal(narrow, table) else table

    def attach(self, X: FloatArray, table: FloatArray, lengths: IntArray | None = None) -> FloatArray:
        """Return series (batch, time, features) with a table of side inputs as their last features; 0 in padding."""
        constant = np.broadcast_to(table[:, None], (len(X), X.shape[1], self.n_columns))
        whole: FloatArray = np.concatenate([X, constant], axis=2)
        return Series(whole, lengths).blank().values

    def split(self, x: Any) -> tuple[Any, dict[str, Any]]:
        """Return series (batch, time, features) without their side inputs, and these by name; the type is kept."""
        n_features = x.shape[2] - self.n_columns
        ends = np.cumsum([n_features, *(int(np.prod(shape)) for shape in self.shapes)]).tolist()
        parts = zip(self.names, self.shapes, pairwise(ends), strict=True)
        side = {name: x[:, 0, start:end].reshape(len(x), *shape) for name, shape, (start, end) in parts}
        return x[:, :, :n_features], side

    def typed(self, side: Mapping[str, Any]) -> Side:
        """Return side inputs from :meth:`split`, arrays, in their original types."""
        return {
            name: (np.rint(side[name]) if np.dtype(dtype).kind in "iub" else side[name]).astype(dtype)
            for name, dtype in zip(self.names, self.dtypes, strict=True)
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SideInputs:
        """Build from :meth:`to_dict`'s output; raise ValueError where values do not fit together."""
        made = super().from_dict(data)
        fits = len(made.names) == len(made.shapes) == len(made.dtypes) > 0 and all(
            min(s, default=1) > 0 for s in made.shapes
        )
        if not fits or any(np.dtype(dtype).kind not in "fiub" for dtype in made.dtypes):
            raise ValueError("the side inputs do not fit together")
        return made

    def _check_names(self, arrays: Side, owner: str) -> None:
        """Raise unless these are the side inputs of the fit."""
        other = [name for name in arrays if name not in self.names]
        absent = [name for name in self.names if name not in arrays]
        if other or absent:
            what = f"no side input {quoted(other[0])}.{did_you_mean(other[0], self.names)}" if other else ""
            what = what or f"the side input {quoted(absent[0])} is missing."
            raise DataError(f"{what} {owner} was fitted with {', '.join(self.names)}: pass side={self._example()}.")

    def _example(self) -> str:
        return "{" + ", ".join(f"{name!r}: …" for name in self.names) + "}"


def check_side(side: Any, n_series: int) -> Side:
    """Return the side inputs of a user as arrays of numbers by name, with a row per series."""
    arrays = _read(side)
    for name, array in arrays.items():
        _check_rows(name, array, n_series)
    return arrays


def check_no_side(side: Any, owner: str) -> None:
    """Raise if side inputs are passed to a model or explainer fitted without them."""
    if side is not None:
        raise DataError(f"{owner} was fitted without side inputs: leave side= out, or fit it with fit(…, side=…).")


def one_side(given: Any, of_dataset: Side | None) -> Any:
    """Return the side inputs of a call, its own or those of a data set; raise if there are both."""
    if given is not None and of_dataset is not None:
        raise DataError("the data set has side inputs of its own: leave side= out, or pass its series.")
    return of_dataset if given is None else given


def name_of_series(names: list[str], side: Mapping[str, Any], model: str) -> str:
    """Return the name of the model's input for the series: the only one that is not a side input."""
    unknown, left = [one for one in side if one not in names], [one for one in names if one not in side]
    if unknown:
        raise CapabilityError(
            f"{model} has no input {unknown[0]!r}.{did_you_mean(unknown[0], names)} It takes {', '.join(names)}: name "
            "all but the series in side=."
        )
    if len(left) != 1:
        raise CapabilityError(
            f"{model} takes {', '.join(names)}. Name all but the series in side=, "
            f"such as side={{{names[-1]!r}: …}}, got {', '.join(side) or 'none'}."
        )
    return left[0]


def take_rows(side: Side | None, rows: Any) -> Side | None:
    """Return the side inputs of some of the series, if there are any."""
    return None if side is None else {name: array[rows] for name, array in side.items()}


def _read(side: Any) -> Side:
    """Return the side inputs of a user as arrays of finite numbers by name."""
    if hasattr(side, "columns"):  # a frame of pandas
        side = {str(name): side[name] for name in side.columns}
    if not isinstance(side, Mapping) or not side:
        raise DataError(
            f"side must map the names of a model's further inputs to arrays with a row per series, such as "
            f"side={{'age': ages}}, got {type(side).__name__ if not isinstance(side, Mapping) else 'nothing in it'}."
        )
    return {_name(name): _numbers(f"side[{quoted(name)}]", values) for name, values in side.items()}


def _name(name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise DataError(f"side inputs are named by the arguments of the model, so by text, got {quoted(name)}.")
    if (problem := text_problem(name)) is not None:
        raise DataError(f"side inputs are named by the arguments of the model; {quoted(name)} {problem}.")
    return name


def _numbers(name: str, values: Any) -> np.ndarray[Any, Any]:
    array = as_array(values, name, "Pass an array with a row per series.")
    if array.dtype.kind == "O" and all(isinstance(v, (int, float, np.number, np.bool_)) for v in array.ravel()):
        array = array.astype(np.float64)
    if array.dtype.kind not in "fiub":
        raise DataError(
            f"{name} must hold numbers, got {array.dtype}. Encode it as your model takes it, such as 0 and 1 for two "
            "categories."
        )
    if not array.ndim or 0 in array.shape[1:]:
        raise ShapeError(f"{name} must have a row per series, got shape {array.shape}.")
    if not np.isfinite(array).all():
        place = int(np.flatnonzero(~np.isfinite(array.reshape(len(array), -1)).all(1))[0])
        raise NonFiniteError(f"{name} holds NaN or infinity in row {place}. Fill it, or leave that series out.")
    if array.dtype.kind == "f" and np.abs(array).max(initial=0) > LARGEST:
        raise DataError(f"{name} holds {np.abs(array).max():.3g}, beyond float32's {LARGEST:.2g}. Use larger units.")
    if array.dtype.kind in "iu" and np.abs(array.astype(np.float64)).max(initial=0) > 2**53:
        raise DataError(f"{name} holds whole numbers beyond 2**53, which lose their last digits. Use smaller codes.")
    if array.dtype.itemsize > 8:
        array = array.astype(np.float64)  # longdouble
    return array


def _check_rows(name: str, array: Any, n_series: int) -> None:
    if len(array) != n_series:
        raise ShapeError(f"side[{quoted(name)}] must have {n_series} rows, one per series, got {len(array)}.")


def side_apart(answers: Explanation) -> Explanation:
    """Separate the side inputs of answers from their series."""
    known = answers.info.side
    assert known is not None
    query, side = known.split(answers.query)
    counterfactual, _ = known.split(answers.counterfactual)
    return replace(
        answers,
        query=np.ascontiguousarray(query),
        counterfactual=np.ascontiguousarray(counterfactual),
        mutable=answers.mutable[: query.shape[2]],
        frozen=None if answers.frozen is None else answers.frozen[:, : query.shape[2]],
        info=answers.info.of_series,
        side=known.typed(side),
    )


def join_side(parts: Sequence[Side | None]) -> Side | None:
    """Concatenate the side inputs of the parts of an explanation, all of which have them or none."""
    known = [part for part in parts if part is not None]
    return {name: np.concatenate([part[name] for part in known]) for name in known[0]} if known else None


def side_to_arrays(side: Side | None) -> dict[str, np.ndarray[Any, Any]]:
    """Return side inputs as the arrays of a file."""
    return {f"{PREFIX}{name}": array for name, array in (side or {}).items()}


def side_from_arrays(arrays: Mapping[str, Any]) -> Side | None:
    """Return the side inputs among the arrays of a file, or None if there are none."""
    found = {name.removeprefix(PREFIX): array for name, array in arrays.items() if name.startswith(PREFIX)}
    return found or None
