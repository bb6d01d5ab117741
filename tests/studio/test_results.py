"""Recordings in one list, and groups of answers: the map, what is common, and the exception that was planted."""

from dataclasses import replace

import numpy as np
import pytest

import sparcets as sp
from sparcets.core.errors import ConstraintError
from sparcets.data.recordings import Recordings
from sparcets.studio.models import Stroke
from sparcets.studio.recordings import AllRecordings, Predictions, draw
from sparcets.studio.results import overview, positions, summarise
from sparcets.testing.data import make_series
from sparcets.testing.mocks import mean_proba
from sparcets.web.errors import ApiError

ROWS = np.arange(10 * 4 * 2, dtype=np.float32).reshape(10, 4, 2)
LABELS = np.array([0, 1] * 5)


def make(**known):
    return sp.Dataset.from_arrays(ROWS, LABELS, split=(np.arange(6), np.arange(6, 10)), **known)


def new(n=2, **known):
    given = {"feature_names": None, "lengths": None, "labels": None, "ids": None, "subjects": None, **known}
    return Recordings(X=np.full((n, 4, 2), -1, dtype=np.float32), **given)


def test_test_series_come_first_then_training_then_new_ones():
    every = AllRecordings(make(), [new(), new(1, labels=np.array(["1"]))])
    assert len(every) == 13 and every.part_names.tolist() == ["test"] * 4 + ["train"] * 6 + ["new"] * 3
    chosen = every.choose([0, 4, 9, 12])
    assert np.array_equal(chosen.X, [ROWS[6], ROWS[0], ROWS[5], new().X[0]])
    assert every.labels.tolist() == [*LABELS[6:], *LABELS[:6], -1, -1, 1]
    assert chosen.ids is None and chosen.lengths is None
    assert [every.places[row] for row in (3, 4, 10, 12)] == [(0, 3), (1, 0), (2, 0), (3, 0)]
    with pytest.raises(ApiError, match="no recording 13: there are 13"):
        every.choose([13])


def test_names_are_those_of_the_files():
    ids = np.array([f"P{i}" for i in range(10)])
    every = AllRecordings(make(ids=ids), [new(), new(1, ids=np.array(["late"]))])
    assert every.choose([0, 4, 10, 12]).ids.tolist() == ["P6", "P0", "recording 10", "late"]
    assert np.flatnonzero(every.matches("6")).tolist() == [0, 6]  # and the number 6
    assert np.flatnonzero(every.matches("LATE")).tolist() == [12] and not every.matches("nobody").any()
    assert AllRecordings(make()).matches("#7").tolist() == [row == 7 for row in range(10)]


def test_nothing_is_drawn_where_nothing_may_change():
    stroke = Stroke(feature="b", at=2, width=1, by=4.0)
    with pytest.raises(ConstraintError, match="b may not change"):
        draw(np.zeros((5, 2)), [stroke], ["a", "b"], np.array([True, False]), 5)


X, Y = make_series(60, n_steps=16)
CLF = sp.wrap(mean_proba)


@pytest.fixture(scope="module")
def answers():
    """Ten answers that raise the second feature at the steps 4 to 7; the last one lowers the fourth instead."""
    queries = X[Y == 0][:10]
    e = sp.Nearest(CLF).fit(X, Y).explain(queries, target=1)
    made = queries.copy()
    made[:9, 4:8, 1] += 6.0
    made[9, 10:14, 3] -= 6.0
    made[9, :, 1] += 6.0 * (np.arange(16) == 0)
    after = np.tile([[0.1, 0.8, 0.1]], (10, 1))
    return replace(e, counterfactual=made, proba_after=after, status=np.full(10, "refined", dtype="<U9"))


def test_what_is_common_and_who_is_the_exception(answers):
    found = summarise(answers, rows=list(range(100, 110)))
    assert found.n == found.n_reached == 10 and found.verdicts == {"doubtful": 10}
    share, change = np.array(found.share), np.array(found.change)
    assert share[5].tolist() == [0, 0.9, 0, 0] and share[11].tolist() == [0, 0, 0, 0.1]
    assert change[5, 1] > 0 > change[11, 3] and change[5, 0] == 0
    first = found.patterns[0]
    assert (first.what, first.how, first.count) == (answers.feature_names[1], "higher", 10)  # the last one at step 0
    assert first.amount == pytest.approx(6) and len(found.patterns) == 1  # one answer alone is no pattern
    (exception,) = found.exceptions
    assert exception.row == 109 and answers.feature_names[3] in exception.why


def test_recordings_without_an_answer_are_exceptions(answers):
    status = answers.status.copy()
    status[2] = "not_found"
    found = summarise(replace(answers[:9], status=status[:9]), rows=list(range(9)))
    assert found.n_reached == 8 and [(entry.row, entry.verdict) for entry in found.exceptions] == [(2, "not reached")]
    assert np.array(found.share)[5, 1] == 1.0


def test_the_confusion_table_and_the_points():
    ds = sp.Dataset.from_arrays(X, Y, ids=np.arange(60))
    every = AllRecordings(ds)
    found = overview(every, Predictions(CLF, every))
    right = [CLF.predict(part) == labels for part, labels in ((ds.X_test, ds.y_test), (ds.X_train, ds.y_train))]
    for part, correct in zip(("test", "train"), right, strict=True):
        table = np.array(found.confusion[part])
        assert table.sum() == len(correct) and np.trace(table) == correct.sum()
    assert "new" not in found.confusion and len(found.x) == len(found.y) == len(found.predicted) == 60
    assert found.names[0] == str(ds.ids_test[0])
    places = positions(every)
    of_class = [places[every.labels == k].mean(0) for k in range(3)]
    spread = np.mean([places[every.labels == k].std(0) for k in range(3)])
    assert min(np.linalg.norm(of_class[i] - of_class[k]) for i, k in ((0, 1), (0, 2), (1, 2))) > spread
    assert np.array_equal(places, positions(every))
