"""Series to be explained in Parquet or Arrow files: found, divided into shards, and read shard by shard.

A file has one of three forms, recognised by its columns (see ``docs/parquet.md``): *long*, a row per series and step;
*lists*, a row per series with a list per feature; *nested*, a row per series with one list of steps, each a list of
features. A shard is a range of rows of one file. It depends on nothing but the file and the number of series per shard,
so that every run divides the same files alike. pyarrow is imported on use.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from sparcets.core.errors import DataNotFoundError, FeatureMismatchError, FileFormatError, SparcetsError
from sparcets.core.registry import did_you_mean, require_extra
from sparcets.core.series import FloatArray, IntArray
from sparcets.data.recordings import grid_of
from sparcets.io.folders import inside

PARQUET, ARROW = (".parquet",), (".arrow", ".feather")
ID, TIME, VALUES = ("id", "series"), "time", "values"  # names of columns, unless others are given
BATCH = 1024  # rows that are decoded at a time


@dataclass(frozen=True)
class QueryColumns:
    """Which columns of a file hold what."""

    form: Literal["long", "lists", "nested"]
    id: str  # of the series' names
    time: str | None  # in the long form
    features: tuple[str, ...]  # in the order of the fit; columns in the forms long and lists

    @property
    def read(self) -> list[str]:
        """The columns that are read."""
        values = [VALUES] if self.form == "nested" else [*self.features]
        return [self.id, *([] if self.time is None else [self.time]), *values]


@dataclass(frozen=True)
class QueryShard:
    """A range of rows of a file, half-open."""

    path: str
    name: str  # path within the source, by which its answers are called
    digest: str  # of the file: of its size and its footer, or of its size and date
    first: int
    stop: int
    columns: QueryColumns

    @property
    def part(self) -> str:
        """The file of its answers, within the output folder: in the same subfolder, so that partitions stay."""
        return f"{self.name.removesuffix('.parquet')}-{self.first:010d}.parquet"


@dataclass(frozen=True, eq=False)
class Queries:
    """The series of a shard."""

    ids: Any  # a pyarrow array with the name of each series
    series: Sequence[FloatArray | str]  # arrays (time, features), or what is wrong with one, as text


def find_query_files(source: str | Path) -> list[tuple[Path, str]]:
    """Return the files of a file or folder, each with its path within; names that begin with _ or . are left out."""
    root, suffixes = Path(source), (*PARQUET, *ARROW)
    if root.is_file():
        if root.suffix.lower() not in suffixes:
            raise FileFormatError(f"{root} is not of a known format. Known: {', '.join(suffixes)}.")
        return [(root, root.name)]
    if not root.is_dir():
        raise DataNotFoundError(f"no file or folder {root}. Give Parquet or Arrow files, or a folder of them.")
    found = [(path, path.relative_to(root)) for path in root.rglob("*") if path.suffix.lower() in suffixes]
    shown = [(path, name.as_posix()) for path, name in found if not any(part[0] in "_." for part in name.parts)]
    files = sorted((inside(root, name), name) for path, name in shown if path.is_file())
    if not files:
        raise DataNotFoundError(f"{root} holds no file that ends in {', '.join(suffixes)}.")
    return files


def plan_shards(
    source: str | Path,
    features: Sequence[str],
    size: int,
    *,
    id_column: str | None = None,
    time_column: str | None = None,
) -> Iterator[QueryShard]:
    """Yield the shards of a source, file by file, of at most ``size`` series each.

    The source is a Parquet or Arrow file, or a folder of them, possibly in subfolders such as ``ward=3/``. Columns may
    be named if they are not ``id`` and ``time``.
    """
    require_extra("pyarrow", "Parquet files", "parquet")
    for path, name in find_query_files(source):
        with _opened(path) as file:
            columns = _columns(path, file.schema, features, id_column, time_column)
            starts, digest = _first_rows(path, file, columns)[::size].tolist(), file.digest
            for first, stop in zip(starts, [*starts[1:], file.n_rows], strict=False):
                yield QueryShard(str(path.resolve()), name, digest, first, stop, columns)


def read_queries(shard: QueryShard) -> Queries:
    """Read the series of a shard."""
    with _opened(Path(shard.path)) as file:
        table = file.rows(shard.first, shard.stop, shard.columns.read)
        return series_of(table, shard.columns)


class _File:
    """An open Parquet or Arrow file."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.path, self.map = path, None
        if path.suffix.lower() in PARQUET:
            self.file = pq.ParquetFile(path)
            self.schema = self.file.schema_arrow
            self.sizes = [self.file.metadata.row_group(i).num_rows for i in range(self.file.num_row_groups)]
        else:
            self.map = pa.memory_map(str(path))
            self.file = pa.ipc.open_file(self.map)
            self.schema = self.file.schema
            self.sizes = [self.file.get_batch(i).num_rows for i in range(self.file.num_record_batches)]
        self.n_rows = sum(self.sizes)

    @property
    def digest(self) -> str:
        """The footer of a Parquet file holds size, position and range of every column, and so tells most changes."""
        state = self.path.stat()
        words = [str(state.st_size).encode()]
        with self.path.open("rb") as file:
            if self.map is None:
                file.seek(-8, 2)
                length = int.from_bytes(file.read(4), "little")
                file.seek(-8 - length, 2)
                words.append(file.read(length))
            else:
                words.append(str(state.st_mtime_ns).encode())
        return hashlib.sha256(b" ".join(words)).hexdigest()[:32]

    def batches(self, columns: list[str], first: int = 0, stop: int | None = None) -> Iterator[tuple[int, Any]]:
        """Yield batches of rows that overlap with a range, each with its first row."""
        stop = self.n_rows if stop is None else stop
        starts = np.cumsum([0, *self.sizes])
        groups = np.flatnonzero((starts[:-1] < stop) & (starts[1:] > first) & (np.diff(starts) > 0)).tolist()
        if not groups:
            return
        row = int(starts[groups[0]])
        found: Iterable[Any] = (self.file.get_batch(i).select(columns) for i in groups)
        if self.map is None:
            found = self.file.iter_batches(BATCH, row_groups=groups, columns=columns, use_threads=False)
        for batch in found:
            if row >= stop:
                return
            yield row, batch
            row += batch.num_rows

    def rows(self, first: int, stop: int, columns: list[str]) -> Any:
        """Return rows as a table."""
        import pyarrow as pa

        found = [(row, batch) for row, batch in self.batches(columns, first, stop) if row + batch.num_rows > first]
        return pa.Table.from_batches([batch for _, batch in found]).slice(first - found[0][0], stop - first)

    def close(self) -> None:
        """Close the file."""
        (self.file if self.map is None else self.map).close()


@contextmanager
def _opened(path: Path) -> Iterator[_File]:
    """Open a file for a block; what pyarrow raises becomes an error that names the file."""
    import pyarrow as pa

    file = None
    try:
        file = _File(path)
        yield file
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, SparcetsError):
            raise
        raise FileFormatError(f"{path} cannot be read: {' '.join(str(error).split())[:300]}.") from error
    finally:
        if file is not None:
            file.close()


def _columns(
    path: Path, schema: Any, features: Sequence[str], id_column: str | None, time_column: str | None
) -> QueryColumns:
    """Recognise the form of a file."""
    names = list(schema.names)
    shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
    for role, given in (("id", id_column), ("time", time_column)):
        if given is not None and given not in names:
            raise FileFormatError(
                f"{path}: no column {given!r}, given as {role}; there are: {shown}.{did_you_mean(given, names)}"
            )
    name = id_column or next((known for known in ID if known in names), None)
    if name is None:
        raise FileFormatError(
            f"{path}: no column 'id' with the name of each series; there are: {shown}. Say which one it is."
        )
    when = time_column or (TIME if TIME in names and TIME not in features else None)
    missing = [feature for feature in features if feature not in names]
    if when is None and missing and VALUES in names:
        _check_type(path, schema, VALUES, depth=2)
        return QueryColumns("nested", name, None, tuple(features))
    if missing:
        raise FeatureMismatchError(
            f"{path} has no column {missing[0]!r}, a feature that the explainer was fitted on; there are: {shown}."
            f"{did_you_mean(missing[0], names)}"
        )
    for feature in features:
        _check_type(path, schema, feature, depth=0 if when is not None else 1)
    return QueryColumns("lists" if when is None else "long", name, when, tuple(features))


def _check_type(path: Path, schema: Any, name: str, *, depth: int) -> None:
    """Check that a column holds numbers, or lists of them, or lists of lists."""
    import pyarrow as pa

    kind, found = schema.field(name).type, 0
    inner = kind
    while pa.types.is_list(inner) or pa.types.is_large_list(inner) or pa.types.is_fixed_size_list(inner):
        inner, found = inner.value_type, found + 1
    number = pa.types.is_integer(inner) or pa.types.is_floating(inner) or pa.types.is_decimal(inner)
    if found == depth and number:
        return
    expected = ("a number per row, as there is a column of times", "a list of numbers per row", "lists of lists")[depth]
    more = " Rows of single steps need a column 'time'." if depth == 1 and found == 0 else ""
    raise FileFormatError(f"{path}: the column {name!r} is of type {kind}, expected {expected}.{more}")


def _first_rows(path: Path, file: _File, columns: QueryColumns) -> IntArray:
    """Return the first row of each series of a file; every series has an id of its own."""
    import pyarrow as pa

    last: Any = None
    starts, ids = [np.zeros(0, dtype=np.int64)], []
    for row, batch in file.batches([columns.id]):
        if not batch.num_rows:
            continue
        column = batch.column(0)
        column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        empty = np.flatnonzero(column.is_null(nan_is_null=True).to_numpy(zero_copy_only=False))
        if len(empty):
            missing = row + int(empty[0])
            raise FileFormatError(
                f"{path}, row {missing + 1}: the column {columns.id!r} is empty. Every series needs an id."
            )
        names = column.to_numpy(zero_copy_only=False)
        new = np.ones(len(names), dtype=bool)
        if columns.form == "long":
            new = np.r_[row == 0 or bool(names[0] != last), names[1:] != names[:-1]]
        starts.append(row + np.flatnonzero(new))
        ids.append(column.filter(pa.array(new)))
        last = names[-1]
    rows = np.concatenate(starts)
    found = pa.chunked_array(ids) if ids else None
    if found is not None and len(found.unique()) < len(found):
        seen: dict[Any, int] = {}
        for row, name in zip(rows.tolist(), found.to_pylist(), strict=True):
            if name in seen:
                again = f"{path}, row {row + 1}: the id {name!r} is in row {seen[name] + 1} already"
                if columns.form == "long":
                    raise FileFormatError(f"{again}, with others between them. Sort the file by id and time.")
                raise FileFormatError(f"{again}. The answers are found by their id: make them distinct.")
            seen[name] = row
    return rows


def series_of(table: Any, columns: QueryColumns) -> Queries:
    """Return the series of a table, which has the rows of whole series."""
    ids = table.column(columns.id).combine_chunks()
    if columns.form == "long":
        return _from_steps(table, ids, columns)
    if columns.form == "nested":
        return Queries(ids, _from_nested(table.column(VALUES), columns.features))
    return Queries(ids, _from_lists(table, columns.features))


def _from_steps(table: Any, ids: Any, columns: QueryColumns) -> Queries:
    """Read rows of single steps: those of a series stand together, in any order of time.

    Every series is read by itself, so that it does not matter which others are in its shard.
    """
    import pyarrow as pa

    assert columns.time is not None
    names = ids.to_numpy(zero_copy_only=False)
    first = np.flatnonzero(np.r_[True, names[1:] != names[:-1]])  # the first row of each series
    values = np.stack([_numbers(table.column(name)) for name in columns.features], axis=-1)  # (rows, features)
    column = table.column(columns.time)
    times = _times(column)
    found: list[FloatArray | str] = []
    for a, b in zip(first.tolist(), [*first[1:].tolist(), len(names)], strict=True):
        own = _times(column[a:b]) if isinstance(times, str) else times[a:b]  # one series may be to blame
        found.append(own if isinstance(own, str) else _on_grid(own, values[a:b]))
    return Queries(ids.take(pa.array(first)), found)


def _on_grid(times: FloatArray, values: FloatArray) -> FloatArray | str:
    """Return the rows of a series (time, features) in the order of time, NaN where one is missing."""
    order = np.argsort(times, kind="stable")
    times = times[order]
    if (times[1:] == times[:-1]).any():
        return "it has two rows of the same time."
    places, _ = grid_of(np.asarray(times - times[0], dtype=np.float64), np.zeros(len(times), dtype=np.int64))
    series = np.full((places[-1] + 1, values.shape[1]), np.nan, dtype=values.dtype)
    series[places] = values[order]
    return series


def _times(column: Any) -> FloatArray | str:
    """Return times as numbers, or what is wrong with them."""
    from sparcets.data.tables import has_zone, times_of  # imports pandas

    cells = column.to_pandas()
    cells = cells.astype(object) if cells.dtype == "category" else cells
    if cells.isna().any():
        return "one of its rows has no time."
    times, zoned = times_of(cells), has_zone(cells)
    wrong = times.isna().to_numpy() | (zoned != zoned[0])
    if wrong.any():
        one = str(cells.iloc[int(wrong.argmax())])
        return f"its times, such as {one!r}, are not all numbers or ISO dates of one kind."
    if cells.dtype.kind == "m":
        times = cells
    return np.asarray(times.astype("int64") if times.dtype.kind in "mM" else times, dtype=np.longdouble)


def _from_lists(table: Any, features: Sequence[str]) -> list[FloatArray | str]:
    """Read a list of numbers per feature and series."""
    parts = [_lists(table.column(name)) for name in features]
    lengths = np.stack([n for n, _ in parts], axis=1)  # (series, features)
    split = [_split(_numbers(values), n) for n, values in parts]
    found: list[FloatArray | str] = []
    for i, steps in enumerate(lengths):
        if (steps == steps[0]).all() and steps[0] > 0:
            found.append(np.stack([one[i] for one in split], axis=-1))
        elif (steps < 1).any():
            found.append(f"the feature {features[int((steps < 1).argmax())]!r} has no values.")
        else:
            few, many = int(steps.argmin()), int(steps.argmax())
            found.append(
                f"the feature {features[few]!r} has {steps[few]} steps, but {features[many]!r} has {steps[many]}."
            )
    return found


def _from_nested(column: Any, features: Sequence[str]) -> list[FloatArray | str]:
    """Read a list of steps per series, each a list of one number per feature."""
    steps, inner = _lists(column)
    widths, values = _lists(inner)
    per_series = _split(widths, steps)
    flat = _split(_numbers(values), np.array([np.maximum(n, 0).sum() for n in per_series]))
    found: list[FloatArray | str] = []
    for width, entries in zip(per_series, flat, strict=True):
        if not len(width):
            found.append("it has no values.")
        elif (width != len(features)).any():
            other = int(width[width != len(features)][0])
            found.append(f"a step has {max(other, 0)} values, expected {len(features)}, one per feature.")
        else:
            found.append(entries.reshape(-1, len(features)))
    return found


def _lists(column: Any) -> tuple[IntArray, Any]:
    """Return the length of each list, -1 where there is none, and the entries of all."""
    import pyarrow.compute as pc

    lengths = pc.fill_null(pc.list_value_length(column), -1).to_numpy()
    return np.asarray(lengths, dtype=np.int64), pc.list_flatten(column)


def _split(values: Any, lengths: IntArray) -> list[Any]:
    """Divide the entries of all lists into those of each."""
    return np.split(values, np.cumsum(np.maximum(lengths, 0))[:-1])


def _numbers(column: Any) -> FloatArray:
    """Return numbers as float32 or float64, NaN where there is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    single = pa.types.is_float32(kind) or pa.types.is_float16(kind)
    values = pc.cast(column, pa.float32() if single else pa.float64(), safe=False)
    array = values.to_numpy() if isinstance(values, pa.ChunkedArray) else values.to_numpy(zero_copy_only=False)
    return np.asarray(array)
