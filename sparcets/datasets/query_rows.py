"""Rows of a table of pyarrow as series; what is wrong with a series is said in its place, and the others are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from sparcets.arrays import FloatArray, IntArray
from sparcets.datasets.query_files import VALUES, Queries, QueryColumns


def series_of(table: Any, columns: QueryColumns) -> Queries:
    """Return the series of a table, which has the rows of whole series."""
    ids = table.column(columns.id).combine_chunks()
    if columns.form == "long":
        return _from_steps(table, ids, columns)
    if columns.form == "nested":
        return Queries(ids, _from_nested(table.column(VALUES), columns.features))
    return Queries(ids, _from_lists(table, columns.features))


def _from_steps(table: Any, ids: Any, columns: QueryColumns) -> Queries:
    """Read rows of single steps: those of a series stand together, in any order of time."""
    assert columns.time is not None
    names = ids.to_numpy(zero_copy_only=False)
    first = np.flatnonzero(np.r_[True, names[1:] != names[:-1]])  # the first row of each series
    of_series = np.repeat(np.arange(len(first)), np.diff(np.r_[first, len(names)]))
    times = np.unique(table.column(columns.time).to_numpy(), return_inverse=True)[1].reshape(-1)
    order = np.lexsort((times, of_series))
    values = _side_by_side([_numbers(table.column(name)) for name in columns.features])[order]  # (rows, features)
    twice = of_series[order][1:][(np.diff(times[order]) == 0) & (np.diff(of_series[order]) == 0)]
    problems = dict.fromkeys(twice.tolist(), "it has two rows of the same time.")
    for name, count in Counter(names[first].tolist()).items():
        if count > 1:
            apart = np.flatnonzero(names[first] == name).tolist()
            problems |= dict.fromkeys(apart, "its rows do not stand together. Sort the file by id and time.")
    series = np.split(values, first[1:])
    return Queries(ids.take(_indices(first)), [problems.get(i, one) for i, one in enumerate(series)])


def _from_lists(table: Any, features: Sequence[str]) -> list[FloatArray | str]:
    """Read a list of numbers per feature and series."""
    parts = [_split(table.column(name)) for name in features]
    lengths = np.stack([part[0] for part in parts], axis=1)  # (series, features)
    problems: dict[int, str] = {}
    for row in np.flatnonzero((lengths != lengths[:, :1]).any(1) | (lengths[:, 0] < 1)).tolist():
        steps = {name: int(n) for name, n in zip(features, lengths[row], strict=True)}
        empty = [name for name, n in steps.items() if n < 1]
        few, many = min(steps, key=steps.__getitem__), max(steps, key=steps.__getitem__)
        problems[row] = (
            f"the feature {empty[0]!r} has no values."
            if empty
            else f"the feature {few!r} has {steps[few]} steps, but {many!r} has {steps[many]}."
        )
    if not problems and (lengths == lengths[0, 0]).all():
        X = _side_by_side([values for _, values in parts]).reshape(len(lengths), -1, len(features))
        return list(X)
    split = [np.split(values, np.cumsum(np.maximum(n, 0))[:-1]) for n, values in parts]
    return [problems.get(i) or _side_by_side([one[i] for one in split]) for i in range(len(lengths))]


def _from_nested(column: Any, features: Sequence[str]) -> list[FloatArray | str]:
    """Read a list of steps per series, each a list of one number per feature."""
    import pyarrow.compute as pc

    steps = _lengths(column)
    inner = pc.list_flatten(column)
    widths = _lengths(inner)
    values = _numbers(pc.list_flatten(inner))
    per_series = np.split(widths, np.cumsum(np.maximum(steps, 0))[:-1])
    flat = np.split(values, np.cumsum([np.maximum(n, 0).sum() for n in per_series])[:-1])
    found: list[FloatArray | str] = []
    for n, width, entries in zip(steps.tolist(), per_series, flat, strict=True):
        if n < 1:
            found.append("it has no values.")
        elif (width != len(features)).any():
            other = int(width[width != len(features)][0])
            found.append(f"a step has {max(other, 0)} values, expected {len(features)}, one per feature.")
        else:
            found.append(entries.reshape(n, len(features)))
    return found


def _split(column: Any) -> tuple[IntArray, FloatArray]:
    """Return the length of each list, -1 where there is none, and the numbers of all."""
    import pyarrow.compute as pc

    return _lengths(column), _numbers(pc.list_flatten(column))


def _lengths(column: Any) -> IntArray:
    """Return the length of each list, -1 where there is none."""
    import pyarrow.compute as pc

    return np.asarray(pc.fill_null(pc.list_value_length(column), -1).to_numpy(), dtype=np.int64)


def _numbers(column: Any) -> FloatArray:
    """Return numbers as float32 or float64, NaN where there is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    single = pa.types.is_float32(kind) or pa.types.is_float16(kind)
    values = pc.cast(column, pa.float32() if single else pa.float64(), safe=False)
    array = values.to_numpy() if isinstance(values, pa.ChunkedArray) else values.to_numpy(zero_copy_only=False)
    return np.asarray(array)


def _side_by_side(columns: list[FloatArray]) -> FloatArray:
    return np.stack(columns, axis=-1)


def _indices(rows: IntArray) -> Any:
    import pyarrow as pa

    return pa.array(rows)
