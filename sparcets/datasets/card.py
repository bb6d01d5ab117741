"""A data set as a notebook shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets.datasets.labels import default_output_names
from sparcets.notebooks import html_card

if TYPE_CHECKING:
    from sparcets.datasets.base import Dataset

MAX_NAMES = 12  # features and classes that are named before the rest is counted


def dataset_card(ds: Dataset) -> str:
    """Return the numbers of series by class, and what is known of them, as HTML."""
    rate = "" if ds.sampling_rate is None else f" at {ds.sampling_rate:g} Hz"
    lines = [
        f"{len(ds.X_train)} training + {len(ds.X_test)} test series (split: {ds.split}), {ds.n_steps} steps{rate}, "
        f"{ds.n_features} feature{'s' * (ds.n_features != 1)}",
        *([ds.description] if ds.description else []),
    ]
    if ds.feature_names is not None:
        units = ds.units or ("",) * ds.n_features
        named = [f"{name} ({unit})" if unit else name for name, unit in zip(ds.feature_names, units, strict=True)]
        lines.append(f"features: {_first(named)}")
        if ds.mutable is not None and not ds.mutable.all():
            fixed = [name for name, free in zip(ds.feature_names, ds.mutable, strict=True) if not free]
            lines.append(f"may not change: {_first(fixed)}")
    if ds.lengths_train is not None and ds.lengths_test is not None:
        lengths = np.concatenate([ds.lengths_train, ds.lengths_test])
        lines.append(f"padded: {lengths.min()} to {lengths.max()} steps are recorded")
    if ds.n_missing:
        share = 100 * ds.n_missing / (ds.X_train.size + ds.X_test.size)
        lines.append(f"missing: {ds.n_missing} values ({share:.2g} %)")
    if ds.subjects_train is not None and ds.subjects_test is not None:
        people = [len(np.unique(part)) for part in (ds.subjects_train, ds.subjects_test)]
        lines.append(f"subjects: {people[0]} in training, {people[1]} in test")
    if ds.side_train is not None:
        lines.append(f"side inputs: {_first(list(ds.side_train))}")
    heads, rows = label_table(ds)
    if len(rows) > MAX_NAMES:
        rest = rows[MAX_NAMES:]
        more: tuple[Any, ...] = (f"… and {len(rest)} more", *("" for _ in heads[1:]))
        if ds.task == "classification":
            more = (more[0], *(sum(row[k] for row in rest) for k in (1, 2)))
        rows = [*rows[:MAX_NAMES], more]
    return html_card(f"Dataset {ds.name}", lines, heads=heads, rows=rows)


def label_table(ds: Dataset) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return names of columns and rows: the numbers of series by class, or the range of the numbers by output.

    >>> from sparcets.datasets.base import Dataset
    >>> X, y = np.zeros((6, 2, 1)), np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    >>> ds = Dataset.from_rows(X, y, train=np.arange(4), test=np.arange(4, 6), task="regression", output_units="mmHg")
    >>> label_table(ds)
    (('number', 'unit', 'training', 'test'), [('number', 'mmHg', '1 to 4, mean 2.5', '5 to 6, mean 5.5')])
    """
    parts = (ds.y_train, ds.y_test)
    if ds.task == "classification":
        counts = [np.bincount(y, minlength=ds.n_classes).tolist() for y in parts]
        return ("class", "training", "test"), list(zip(ds.class_names, *counts, strict=True))
    names = ds.output_names or default_output_names(ds.y_train.reshape(len(ds.y_train), -1).shape[1])
    units = ds.output_units or ("",) * len(names)

    def spread(y: Any, k: int) -> str:
        column = y.reshape(len(y), -1)[:, k]
        return f"{column.min():.4g} to {column.max():.4g}, mean {column.mean():.4g}" if len(y) else ""

    rows = [(name, units[k], *(spread(y, k) for y in parts)) for k, name in enumerate(names)]
    return ("number", "unit", "training", "test"), rows


def _first(names: list[str]) -> str:
    more = len(names) - MAX_NAMES
    return ", ".join(names[:MAX_NAMES]) + (f" and {more} more" if more > 0 else "")
