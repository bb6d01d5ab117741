"""Groups: the map, what is common, and the exception that was planted; the confusion table and the points."""

from dataclasses import replace

import numpy as np
import pytest

import sparcets as sp
from sparcets.core.explanation import Explanation
from sparcets.studio.recordings import AllRecordings, Predictions
from sparcets.studio.results import overview, positions, summarise
from sparcets.testing.data import make_series
from sparcets.testing.mocks import mean_proba

X, Y = make_series(60, n_steps=16)
CLF = sp.wrap(mean_proba)


@pytest.fixture(scope="module")
def answers() -> Explanation:
    """Ten answers that raise the second feature at the steps 4 to 7; the last one lowers the fourth instead."""
    queries = X[Y == 0][:10]
    e = sp.Nearest(CLF).fit(X, Y).explain(queries, target=1)
    made = queries.copy()
    made[:9, 4:8, 1] += 6.0
    made[9, 10:14, 3] -= 6.0
    made[9, :, 1] += 6.0 * (np.arange(16) == 0)
    after = np.tile([[0.1, 0.8, 0.1]], (10, 1))
    return replace(e, counterfactual=made, proba_after=after, status=np.full(10, "refined", dtype="<U9"))


def test_what_is_common_and_who_is_the_exception(answers: Explanation) -> None:
    found = summarise(answers, rows=list(range(100, 110)))
    assert found.n == found.n_reached == 10 and found.verdicts == {"doubtful": 10}
    share, change = np.array(found.share), np.array(found.change)
    assert share[5].tolist() == [0, 0.9, 0, 0] and share[11].tolist() == [0, 0, 0, 0.1]
    assert change[5, 1] > 0 > change[11, 3] and change[5, 0] == 0
    first = found.patterns[0]
    assert (first.what, first.how, first.count) == (answers.feature_names[1], "higher", 10)  # the last one at step 0
    assert first.amount == pytest.approx(6) and len(found.patterns) == 1  # one answer alone is no pattern
    (exception,) = found.exceptions
    assert exception.row == 109 and answers.feature_names[3] in exception.why and exception.likeness < 0.5  # type: ignore[operator]


def test_recordings_without_an_answer_are_exceptions(answers: Explanation) -> None:
    status = answers.status.copy()
    status[2] = "not_found"
    found = summarise(replace(answers[:9], status=status[:9]), rows=list(range(9)))
    assert found.n_reached == 8 and [(entry.row, entry.verdict) for entry in found.exceptions] == [(2, "not reached")]
    assert np.array(found.share)[5, 1] == 1.0


def test_no_answer_at_all(answers: Explanation) -> None:
    found = summarise(replace(answers[:2], status=np.full(2, "not_found")), rows=[0, 1])
    assert found.n_reached == 0 and not np.any(found.share) and found.patterns == [] and len(found.exceptions) == 2


def test_the_confusion_table_and_the_points() -> None:
    ds = sp.Dataset.from_arrays(X, Y, ids=np.arange(60))
    every = AllRecordings(ds)
    found = overview(every, Predictions(CLF, every))
    right = [CLF.predict(part) == labels for part, labels in ((ds.X_test, ds.y_test), (ds.X_train, ds.y_train))]
    for part, correct in zip(("test", "train"), right, strict=True):
        table = np.array(found.confusion[part])  # type: ignore[index]
        assert table.sum() == len(correct) and np.trace(table) == correct.sum()
    assert "new" not in found.confusion and len(found.x) == len(found.y) == len(found.predicted) == 60
    assert found.names is not None and found.names[0] == str(ds.ids_test[0])  # type: ignore[index]
    places = positions(every)
    of_class = [places[every.labels == k].mean(0) for k in range(3)]
    spread = np.mean([places[every.labels == k].std(0) for k in range(3)])
    assert min(np.linalg.norm(of_class[i] - of_class[k]) for i, k in ((0, 1), (0, 2), (1, 2))) > spread
    assert np.array_equal(places, positions(every))


def test_points_of_padded_and_missing_series() -> None:
    series = X.copy()
    series[3, 5:9, 2] = np.nan
    ds = sp.Dataset.from_arrays(series, Y, lengths=np.full(60, 12))
    places = positions(AllRecordings(ds))
    assert places.shape == (60, 2) and np.isfinite(places).all()
