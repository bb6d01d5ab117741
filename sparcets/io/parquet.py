"""Answers as Parquet files, a row per answer: for archives that other programs read. pyarrow is imported on use.

The columns are described in ``docs/parquet.md``. A file is written whole or not at all, and says in its metadata which
question it answers, about which rows of which file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sparcets.core.edits import edits_to_json
from sparcets.core.explanation import Explanation
from sparcets.core.series import IntArray, Series
from sparcets.io.files import atomic_path

METADATA = b"sparcets"  # key of what a file says about itself
ERROR = "error"  # status of a query that could not be answered


def answers_table(e: Explanation, ids: Any) -> Any:
    """Return answers as a table of pyarrow; ``ids`` has the name of each query that ``e.query_index`` counts."""
    import pyarrow as pa

    before = {} if e.info.is_regression else {"predicted": _text(np.array(e.class_names)[e.predicted])}
    if not e.info.is_regression:
        after = {"probability": pa.array(np.asarray(e.probability, dtype=np.float64))}
    else:
        after = {
            name: pa.array(list(np.asarray(values, dtype=np.float64)), pa.list_(pa.float64()))
            for name, values in (("prediction_before", e.prediction_before), ("prediction", e.prediction))
        }
    first = np.r_[True, np.diff(e.query_index) != 0]
    rank = np.arange(len(e)) - np.maximum.accumulate(np.where(first, np.arange(len(e)), 0))
    steps = Series(e.query, e.lengths).steps
    names = e.feature_names
    columns = {
        "id": ids.take(pa.array(e.query_index)),
        "answer": pa.array(rank.astype(np.int32)),
        **before,
        "target": _text(e.target_names),
        "status": _text(e.status),
        "valid": pa.array(e.valid),
        "verdict": _text(e.verdict),
        **after,
        "believed": pa.array(e.believed),
        **({"support": _numbers_by_name(e.families, e.support)} if e.families else {}),
        "share_changed": pa.array(np.asarray(e.share_changed, dtype=np.float64)),
        "plausibility": _numbers_by_name(tuple(e.plausibility), np.stack([*e.plausibility.values()], axis=1)),
        "counterfactual": _lists_by_name(names, e.counterfactual, steps),
        "changed": _lists_by_name(names, e.changed, steps),
        "edits": pa.array(
            [None] * len(e) if e.edit_lists is None else [edits_to_json(e.edits(i)) for i in range(len(e))],
            pa.string(),
        ),
        "reason": pa.array([reason or None for reason in e.reason.tolist()], pa.string()),
        "error": pa.nulls(len(e), pa.string()),
    }
    return pa.table(columns)


def with_errors(table: Any, rows: IntArray, ids: Any, errors: Mapping[int, str]) -> Any:
    """Return a table of answers with a row more for every query that has none, in the order of the queries.

    ``rows`` are the indices of the queries of the table, and ``errors`` say what went wrong, by the index of the query.
    """
    import pyarrow as pa

    failed = np.array(sorted(errors), dtype=np.int64)
    known = {
        "id": ids.take(pa.array(failed)),
        "answer": pa.array(np.zeros(len(failed), dtype=np.int32)),
        "status": pa.array([ERROR] * len(failed), pa.string()),
        "valid": pa.array(np.zeros(len(failed), dtype=bool)),
        "error": pa.array([errors[i] for i in failed.tolist()], pa.string()),
    }
    extra = pa.table({f.name: known.get(f.name, pa.nulls(len(failed), f.type)) for f in table.schema})
    order = np.argsort(np.r_[rows, failed], kind="stable")
    return pa.concat_tables([table, extra]).take(pa.array(order))


def write_part(path: Path, table: Any, about: Mapping[str, Any]) -> None:
    """Write a file of answers atomically."""
    import pyarrow.parquet as pq

    text = [name for name in ("predicted", "target", "status", "verdict", "reason") if name in table.column_names]
    said = {METADATA: json.dumps(dict(about)).encode()}
    with atomic_path(path) as temporary:
        pq.write_table(
            table.replace_schema_metadata(said),
            temporary,
            compression="zstd",
            compression_level=1,
            use_dictionary=text,
            write_statistics=["id", "answer", *text],
            write_page_checksum=True,
        )


def read_part(path: Path) -> dict[str, Any] | None:
    """Return what a file of answers says about itself, or None if it is missing, damaged, or of another kind."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        said = (pq.read_schema(path).metadata or {}).get(METADATA)
        return None if said is None else dict(json.loads(said))
    except (OSError, ValueError, pa.ArrowException):
        return None


def _text(values: Any) -> Any:
    import pyarrow as pa

    return pa.array(np.asarray(values).astype(str).tolist(), pa.string())


def _numbers_by_name(names: tuple[str, ...], values: Any) -> Any:
    """Return a column with a number (rows, names) by each name."""
    import pyarrow as pa

    fields = [pa.array(np.ascontiguousarray(values[:, i], dtype=np.float64)) for i in range(len(names))]
    return pa.StructArray.from_arrays(fields, list(names))


def _lists_by_name(names: tuple[str, ...], values: Any, steps: IntArray) -> Any:
    """Return a column with a list of the steps (rows, time, names) by each name; padding is left out."""
    import pyarrow as pa

    offsets = pa.array(np.r_[0, np.cumsum(steps)].astype(np.int32))
    own = np.arange(values.shape[1]) < steps[:, None]
    lists = [pa.ListArray.from_arrays(offsets, pa.array(values[:, :, i][own])) for i in range(len(names))]
    return pa.StructArray.from_arrays(lists, list(names))
