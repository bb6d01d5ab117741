"""A data set as a notebook shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

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
    if ds.subjects_train is not None and ds.subjects_test is not None:
        people = [len(np.unique(part)) for part in (ds.subjects_train, ds.subjects_test)]
        lines.append(f"subjects: {people[0]} in training, {people[1]} in test")
    counts = [np.bincount(y, minlength=ds.n_classes).tolist() for y in (ds.y_train, ds.y_test)]
    rows = list(zip(ds.class_names, *counts, strict=True))
    if len(rows) > MAX_NAMES:
        rest = rows[MAX_NAMES:]
        more = (f"… and {len(rest)} more", sum(row[1] for row in rest), sum(row[2] for row in rest))
        rows = [*rows[:MAX_NAMES], more]
    return html_card(f"Dataset {ds.name}", lines, heads=("class", "training", "test"), rows=rows)


def _first(names: list[str]) -> str:
    more = len(names) - MAX_NAMES
    return ", ".join(names[:MAX_NAMES]) + (f" and {more} more" if more > 0 else "")
