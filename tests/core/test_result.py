"""Explanations: derived values, selecting answers, the table of changes."""

from dataclasses import replace

import numpy as np
import pytest

from sparcets.core.errors import DataError, OutOfRangeError, ShapeError, SparcetsError
from sparcets.core.evidence import Evidence
from sparcets.core.explanation import Explanation, join
from sparcets.core.info import SeriesInfo
from sparcets.io.explanations import load_explanation
from tests.made import answers

INFO = SeriesInfo.from_series(np.array([[[0.0, 0.0]], [[2.0, 8.0]]]), ("sick", "well", "dead"))  # scales 1 and 4


def explanation(**changes):
    """Three answers to two queries of four steps and two features."""
    query = np.zeros((3, 4, 2), dtype=np.float32)
    counterfactual = query.copy()
    counterfactual[0, :2, 0] = [1.0, 2.0]
    counterfactual[0, 3, 0] = -4.0
    counterfactual[0, 1:, 1] = 3.0
    counterfactual[2, 3, 1] = 0.5
    values = {
        "target": [1, 0, 2],
        "status": ["generated", "unchanged", "not_found"],
        "reason": ["", "", "too little may change"],
        "query_index": [0, 1, 1],
        "proba_before": [[0.7, 0.2, 0.1], [0.8, 0.1, 0.1], [0.8, 0.1, 0.1]],
        "proba_after": [[0.3, 0.6, 0.1], [0.8, 0.1, 0.1], [0.1, 0.6, 0.3]],
        "method": "nearest",
    }
    series = {"query": query, "counterfactual": counterfactual, "info": INFO}
    return answers(**{**series, **values, **changes})


def test_derived_values_by_hand():
    e = explanation()
    assert e.delta[0].tolist() == [[1, 0], [2, 3], [0, 3], [-4, 3]] and e.delta.dtype == np.float32
    assert e.changed[0].astype(int).tolist() == [[1, 0], [1, 1], [0, 1], [1, 1]] and not e.changed[1].any()
    assert e.attribution()[0].tolist() == [[1, 0], [2, 0.75], [0, 0.75], [4, 0.75]]
    assert e.attribution().dtype == np.float32
    assert e.valid.tolist() == [True, True, False], "the largest probability is on the target"
    assert e.probability.tolist() == [0.6, 0.8, 0.3] and e.predicted.tolist() == [0, 0, 0]
    assert e.share_changed.tolist() == [6 / 8, 0, 1 / 8]
    assert e.feature_names == ("f0", "f1") and e.class_names == ("sick", "well", "dead")
    assert repr(e) == "Explanation(3 by nearest: 1 unchanged, 1 generated, 1 not_found; 1 valid)", "one as it was"


def test_share_changed_is_of_the_entries_that_may_change(tmp_path):
    e = explanation(lengths=np.array([4, 4, 2]), mutable=np.array([False, True]))
    assert e.share_changed.tolist() == [3 / 4, 0, 0 / 2], "a change of a feature that may not change is none of them"
    frozen = np.array([[True, True], [False, True], [True, False], [False, False]])
    e = explanation(frozen=frozen)
    assert e.may_change[0].tolist() == (~frozen).tolist() and e.share_changed.tolist() == [4 / 4, 0, 1 / 4]
    padded = explanation(frozen=frozen, lengths=np.array([4, 4, 2]), mutable=np.array([True, False]))
    assert padded.may_change.sum((1, 2)).tolist() == [2, 2, 1] and padded.share_changed.tolist() == [1, 0, 0]
    e.save(tmp_path / "run.npz")
    for same in (e[0], e[[0, 2]], join([e[0], e[1:]]), load_explanation(tmp_path / "run.npz")):
        assert same.share_changed[0] == 1


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (-1, [2]),
        (np.int64(1), [1]),
        (slice(1, None), [1, 2]),
        (slice(None, None, -1), [2, 1, 0]),
        ([2, 0, 2], [2, 0, 2]),
        ([], []),
        (np.array([True, False, True]), [0, 2]),
    ],
)
def test_selecting_answers(rows, expected):
    e = explanation(lengths=np.array([4, 3, 2]))
    part = e[rows]
    assert isinstance(part, Explanation) and len(part) == len(expected)
    for name in ("query", "counterfactual", "target", "status", "reason", "query_index", "proba_after", "lengths"):
        np.testing.assert_array_equal(getattr(part, name), getattr(e, name)[expected], err_msg=name)
    assert part.info is e.info and part.method == "nearest"
    assert part.valid.tolist() == [[True, True, False][i] for i in expected]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (3, "no answer 3: this explanation holds 3, numbered from 0"),
        ([0, 7], "no answer 7"),
        ([True, False], "a mask over 3 answers must have 3 flags, got 2"),
        (True, None),
        ([0.0, 1.0], "answers are selected by index, slice, mask or list of indices, got .0.0, 1.0."),
    ],
)
def test_invalid_selections(rows, message):
    with pytest.raises(OutOfRangeError, match=message) as caught:
        explanation()[rows]
    assert isinstance(caught.value, IndexError) and isinstance(caught.value, SparcetsError)


def test_empty_explanation():
    none = explanation()[[]]
    assert none.delta.shape == (0, 4, 2) and none.valid.tolist() == none.probability.tolist() == []
    assert none.share_changed.tolist() == [] and repr(none) == "Explanation(0 by nearest; 0 valid)"
    assert list(none) == [] and len(none.to_frame()) == 0 and list(none.to_frame()) == COLUMNS
    assert [(len(one), one.status[0]) for one in explanation()][::2] == [(1, "generated"), (1, "not_found")]
    with pytest.raises(OutOfRangeError):
        none.text(0)


COLUMNS = ["query", "verdict", "feature", "start", "end", "mean_change", "units", "answer", "valid", "believed"]


def test_to_frame_by_hand():
    info = replace(INFO, units=("m", ""))
    table = explanation(info=info, query_index=np.array([5, 7, 7])).to_frame()
    assert list(table.columns) == COLUMNS
    assert table[COLUMNS[:-2]].to_numpy().tolist() == [
        [5, "doubtful", "f0", 0, 2, 1.5, "m", 0],
        [5, "doubtful", "f0", 3, 4, -4.0, "m", 0],
        [5, "doubtful", "f1", 1, 4, 3.0, "", 0],
        [7, "not reached", "f1", 3, 4, 0.5, "", 2],
    ]
    valid = explanation().valid
    assert table["valid"].tolist() == [valid[0], valid[0], valid[0], valid[2]]
    known = Evidence(families=("intervals",), support=np.array([[0.0], [0.0], [1.0]]))
    assert explanation(evidence=known).to_frame()["believed"].tolist() == [False, False, False, True]


def test_joins_and_inconsistent_arrays():
    e = explanation(lengths=np.array([4, 3, 2]), seconds=1.5)
    whole = join([e[:1], e[1:]])
    for name in ("counterfactual", "status", "lengths", "query_index"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(e, name))
    assert whole.seconds == 3.0 and join([explanation()]).lengths is None
    with pytest.raises(DataError, match="no explanations to join"):
        join([])
    with pytest.raises(ShapeError, match=r"frozen entries must be given as \(4, 2\) \(time, features\), got \(2,\)"):
        explanation(frozen=np.array([True, False]))
    with pytest.raises(ShapeError, match=r"one row per answer in every array.*'target': 2"):
        explanation(target=np.array([1, 0]))
    with pytest.raises(ShapeError, match=r"got \(3, 4, 2\) and \(3, 4, 1\)"):
        explanation(counterfactual=np.zeros((3, 4, 1)))
    with pytest.raises(ShapeError, match="'lengths': 1"):
        explanation(lengths=np.array([4]))
