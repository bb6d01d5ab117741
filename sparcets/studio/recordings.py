"""All recordings of a data set in one list: test series first, then training series, then new ones without labels.

:func:`draw` changes one of them by hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from sparcets.core.errors import ConstraintError
from sparcets.core.evidence import find_segments
from sparcets.core.registry import unknown_name
from sparcets.core.series import BoolArray, FloatArray, IntArray, Series, StrArray
from sparcets.studio.models import Stroke
from sparcets.web.errors import ApiError

if TYPE_CHECKING:
    from sparcets.data.dataset import Dataset
    from sparcets.data.recordings import Recordings
    from sparcets.models.base import Classifier

BATCH = 256  # recordings predicted at a time
NO_LABEL = -1


class Chosen(NamedTuple):
    """Some recordings, as ``explain`` takes them."""

    X: FloatArray
    lengths: IntArray | None
    ids: StrArray | None
    subjects: StrArray | None

    def repeat(self, n: int) -> Chosen:
        """Return each recording ``n`` times, one after the other."""
        return Chosen(*(None if values is None else np.repeat(values, n, axis=0) for values in self))  # type: ignore[arg-type]


class AllRecordings:
    """The recordings of a data set, by their row in the list; ``X`` has the series of each part.

    Those that were added later, ``new``, have features and steps like those of the data set.
    """

    def __init__(self, dataset: Dataset, new: Sequence[Recordings] = ()) -> None:
        self.class_names = dataset.class_names
        columns = ("X", "y", "lengths", "ids", "subjects")
        parts = [[getattr(dataset, f"{column}_{part}") for column in columns] for part in ("test", "train")]
        known = {name: index for index, name in enumerate(self.class_names)}
        for n in new:
            names = [None] * len(n.X) if n.labels is None else n.labels
            labelled = np.array([known.get(str(name), NO_LABEL) for name in names])  # other names are of no class
            parts.append([n.X, labelled, n.lengths, n.ids, n.subjects])
        self.X, labels, lengths, ids, subjects = zip(*parts, strict=True)
        sizes = [len(X) for X in self.X]
        self.places = [(part, index) for part, n in enumerate(sizes) for index in range(n)]  # in which part, by row
        self.labels: IntArray = np.concatenate(labels).astype(np.int64)  # indices of classes, -1 where unknown
        self.part_names: StrArray = np.repeat(["test", "train", *["new"] * len(new)], sizes)
        self.steps: IntArray = np.concatenate([Series(X, n).steps for X, n in zip(self.X, lengths, strict=True)])
        self._padded = any(n is not None for n in lengths)
        self.ids, self.subjects = self._named("recording {}", ids), self._named("unknown", subjects)

    def __len__(self) -> int:
        return len(self.places)

    def check(self, row: int, status: int = 422) -> None:
        """Raise an error if there is no such row."""
        if row >= len(self):
            raise ApiError(status, "no_such_row", f"no recording {row}: there are {len(self)}, numbered from 0.")

    def choose(self, rows: Sequence[int]) -> Chosen:
        """Return some recordings."""
        self.check(max(rows))
        places = [self.places[row] for row in rows]
        return Chosen(
            X=np.stack([self.X[part][index] for part, index in places]),
            lengths=self.steps[list(rows)] if self._padded else None,
            ids=None if self.ids is None else self.ids[list(rows)],
            subjects=None if self.subjects is None else self.subjects[list(rows)],
        )

    def matches(self, text: str) -> BoolArray:
        """Return which recordings have a text in their id or subject, or as their number."""
        wanted, found = text.strip().lower(), np.zeros(len(self), dtype=bool)
        for names in (self.ids, self.subjects):
            if names is not None:
                found |= np.char.find(np.char.lower(names), wanted) >= 0
        number = wanted.removeprefix("#")
        if number.isdecimal() and len(number) < 10 and int(number) < len(self):
            found[int(number)] = True
        return found

    def _named(self, unknown: str, given: Sequence[Any]) -> StrArray | None:
        """Return the names of all recordings as text; ``unknown``, with their number, where only others have one."""
        if all(names is None for names in given):
            return None
        found: list[str] = []
        for X, names in zip(self.X, given, strict=True):
            rows = range(len(found), len(found) + len(X))
            found += [unknown.format(row) for row in rows] if names is None else [str(name) for name in names]
        return np.array(found)


class Predictions:
    """A classifier's probabilities for all recordings, computed when they are first asked for."""

    def __init__(self, classifier: Classifier, recordings: AllRecordings) -> None:
        self.classifier, self.recordings = classifier, recordings
        self._proba = np.full((len(recordings), len(recordings.class_names)), np.nan)

    def of(self, rows: IntArray) -> FloatArray:
        """Return the probabilities for some recordings (rows, classes)."""
        left = rows[np.isnan(self._proba[rows, 0])]
        for start in range(0, len(left), BATCH):
            batch = left[start : start + BATCH]
            chosen = self.recordings.choose(batch.tolist())
            self._proba[batch] = self.classifier.predict_proba(chosen.X, chosen.lengths)
        return np.asarray(self._proba[rows])


Windows: TypeAlias = Mapping[str, Sequence[tuple[int, int]]]


def bump(n_steps: int, at: int, width: int) -> FloatArray:
    """Return a smooth bump of height 1 over ``width`` steps on both sides of one step; 0 elsewhere.

    >>> bump(7, 3, 1).round(2).tolist()
    [0.0, 0.0, 0.5, 1.0, 0.5, 0.0, 0.0]
    """
    away = np.arange(n_steps) - at
    return np.where(np.abs(away) <= width, 0.5 * (1 + np.cos(np.pi * away / (width + 1))), 0.0)


def draw(
    series: FloatArray, strokes: Sequence[Stroke], feature_names: Sequence[str], mutable: BoolArray, length: int
) -> tuple[FloatArray, dict[str, list[tuple[int, int]]]]:
    """Return a series (time, features) with strokes added, and the windows of each feature that they change.

    Nothing is drawn on the padding, that is, after ``length`` steps.

    >>> pulled = Stroke(feature="b", at=2, width=1, by=4.0)
    >>> made, windows = draw(np.zeros((5, 2)), [pulled], ["a", "b"], np.array([True, True]), 5)
    >>> made[:, 1].tolist(), windows
    ([0.0, 2.0, 4.0, 2.0, 0.0], {'b': [(1, 4)]})
    """
    made, names = series.astype(np.float64), list(feature_names)
    touched = np.zeros(series.shape, dtype=bool)
    for stroke in strokes:
        if stroke.feature not in names:
            raise unknown_name("feature", stroke.feature, names)
        feature = names.index(stroke.feature)
        if not mutable[feature]:
            raise ConstraintError(f"{stroke.feature} may not change, so that nothing can be drawn there.")
        shape = bump(length, stroke.at, stroke.width)
        made[:length, feature] += stroke.by * shape  # NaN, a missing entry, stays NaN
        touched[:length, feature] |= shape > 0
    windows: dict[str, list[tuple[int, int]]] = {}
    found = find_segments(touched[None])
    for feature, start, end in zip(found.feature.tolist(), found.start.tolist(), found.end.tolist(), strict=True):
        windows.setdefault(names[feature], []).append((start, end))
    return np.where(touched, made, series).astype(series.dtype), windows
