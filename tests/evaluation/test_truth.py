"""Transfer to held-out classifiers, and the oracle of synthetic data."""

import numpy as np
import pytest

from sparcets.data.moving_box import load_moving_box
from sparcets.evaluation.measures import sparsity
from sparcets.evaluation.truth import transfer


class FixedJudge:
    """A judge with given predictions that records its inputs."""

    def __init__(self, predictions):
        self.predictions = np.asarray(predictions)

    def predict(self, X, lengths=None):
        self.received = X, lengths
        return self.predictions


def oracle(e, data, rows):
    return data.oracle(e.counterfactual, rows) == e.target


@pytest.fixture(scope="module")
def boxes():
    return load_moving_box(n_per_combination=30)


@pytest.fixture(scope="module")
def perfect(boxes, make_explanation):
    """Shift the box of every test series, and nothing else, to the other class's level."""
    flip = -2 * (2 * boxes.y_test - 1)[:, None, None] * boxes.salient_test
    return make_explanation(flip.astype(np.float32), query=boxes.X_test, target=1 - boxes.y_test)


def test_transfer_by_hand(make_explanation):
    e = make_explanation(np.ones((3, 2, 1)), target=[0, 1, 2], n_classes=3, lengths=[2, 1, 2])
    judge = FixedJudge([0, 0, 2])
    result = transfer(e, {"fcn": judge, "bigru": FixedJudge([0, 1, 0])})
    assert judge.received[0] is e.counterfactual and judge.received[1].tolist() == [2, 1, 2]
    assert list(result) == ["fcn", "bigru", "transfer"]
    assert result["fcn"].tolist() == [1, 0, 1]
    assert result["bigru"].tolist() == [1, 1, 0]
    assert result["transfer"].tolist() == [1, 0.5, 0.5]
    assert {values.dtype for values in result.values()} == {np.dtype(np.float64)}


def test_the_oracle_confirms_the_perfect_counterfactual(boxes, perfect):
    rows = np.arange(len(perfect))
    assert oracle(perfect, boxes, rows).mean() == 1.0
    np.testing.assert_allclose(sparsity(perfect), boxes.salient_test.mean((1, 2)))


def test_the_oracle_rejects_changes_outside_the_box(boxes, perfect, make_explanation):
    rows = np.arange(len(perfect))
    beside = np.where(boxes.salient_test, 0, 3 * (1 - 2 * boxes.y_test)[:, None, None])
    e = make_explanation(beside.astype(np.float32), query=boxes.X_test, target=1 - boxes.y_test)
    assert oracle(e, boxes, rows).mean() == 0.0


def test_oracle_uses_the_row_of_each_answer(boxes, perfect):
    rows = np.array([7, 7, 3, 20])
    assert oracle(perfect[rows], boxes, rows).tolist() == [1, 1, 1, 1]
    wrong = oracle(perfect, boxes, np.roll(np.arange(len(perfect)), 1))  # the boxes of other series
    assert wrong.mean() < 0.9
