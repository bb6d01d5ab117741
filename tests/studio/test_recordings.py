"""All recordings in one list: where each comes from, what it is called, and when it is predicted."""

from typing import Any

import numpy as np
import pytest

import sparcets as sp
from sparcets.data.recordings import Recordings
from sparcets.studio.recordings import AllRecordings, Predictions
from sparcets.web.errors import ApiError

X = np.arange(10 * 4 * 2, dtype=np.float32).reshape(10, 4, 2)
Y = np.array([0, 1] * 5)


def make(**known: Any) -> sp.Dataset:
    return sp.Dataset.from_rows(X, Y, train=np.arange(6), test=np.arange(6, 10), **known)


def new(n: int = 2, **known: Any) -> Recordings:
    given = {"feature_names": None, "lengths": None, "labels": None, "ids": None, "subjects": None, **known}
    return Recordings(X=np.full((n, 4, 2), -1, dtype=np.float32), **given)


def test_test_series_come_first_then_training_then_new_ones() -> None:
    every = AllRecordings(make(), [new(), new(1, labels=np.array(["1"]))])
    assert len(every) == 13 and every.part_names.tolist() == ["test"] * 4 + ["train"] * 6 + ["new"] * 3
    chosen = every.choose([0, 4, 9, 12])
    assert np.array_equal(chosen.X, [X[6], X[0], X[5], new().X[0]])
    assert every.labels.tolist() == [*Y[6:], *Y[:6], -1, -1, 1]
    assert chosen.ids is None and chosen.lengths is None
    assert [every.place(row) for row in (3, 4, 10, 12)] == [(0, 3), (1, 0), (2, 0), (3, 0)]
    with pytest.raises(ApiError, match="no recording 13: there are 13"):
        every.choose([13])


def test_names_are_those_of_the_files() -> None:
    ids = np.array([f"P{i}" for i in range(10)])
    every = AllRecordings(make(ids=ids), [new(), new(1, ids=np.array(["late"]))])
    assert every.choose([0, 4, 10, 12]).ids.tolist() == ["P6", "P0", "recording 10", "late"]  # type: ignore[union-attr]
    assert np.flatnonzero(every.matches("6")).tolist() == [0, 6]  # and the number 6
    assert np.flatnonzero(every.matches("LATE")).tolist() == [12] and not every.matches("nobody").any()
    assert AllRecordings(make()).matches("#7").tolist() == [row == 7 for row in range(10)]


def test_lengths_of_all_parts() -> None:
    lengths = np.arange(10) % 4 + 1
    every = AllRecordings(make(lengths=lengths), [new(lengths=np.array([2, 3]))])
    assert every.choose([0, 4, 11]).lengths.tolist() == [lengths[6], lengths[0], 3]  # type: ignore[union-attr]


def test_only_what_is_shown_is_predicted() -> None:
    asked: list[int] = []

    def model(series: Any) -> Any:
        asked.append(len(series))
        return np.stack([series.mean((1, 2)) > 40, series.mean((1, 2)) <= 40], axis=1).astype(float)

    predictions = Predictions(sp.wrap(model, n_classes=2), AllRecordings(make()))
    asked.clear()
    first = predictions.of(np.array([0, 5]))
    assert asked == [2] and first.tolist() == [[1, 0], [0, 1]]
    assert len(predictions.of(np.arange(10))) == 10 and asked == [2, 8]
    predictions.of(np.arange(10))
    assert asked == [2, 8]
