"""Transfer to judges of classes and of numbers: by hand, and end to end with judges that are trained."""

import numpy as np
import pytest

import sparcets as sp
from sparcets.core.errors import DataError
from sparcets.evaluation.families import NumberJudge
from sparcets.evaluation.judges import transfer
from sparcets.testing.data import make_series


def level(X):
    return np.asarray(X)[:, :, 0].mean(1)


class Judge:
    def __init__(self, factor):
        self.factor = factor

    def predict(self, X, lengths=None):
        return self.factor * level(X)[:, None]


@pytest.fixture(scope="module")
def answers():
    X, _ = make_series(120)
    ds = sp.Dataset.from_arrays(X, level(X), task="regression")
    model = sp.wrap(level, task="regression")
    e = sp.Nearest(model).fit(ds).explain(ds.X_test, target=sp.AtLeast(0.6))
    return ds, model, e


def test_a_judge_agrees_within_the_target_and_moves_towards_it(answers):
    _, _, e = answers
    e = e[e.status != "unchanged"]
    found = transfer(e, {"same": Judge(1.0), "half": Judge(0.5), "other way": Judge(-1.0)})
    np.testing.assert_array_equal(found["transfer"]["same"], level(e.counterfactual) >= 0.6)
    np.testing.assert_array_equal(found["transfer"]["half"], level(e.counterfactual) >= 1.2)
    # Half of the number is nearer to the target than before; its negative is farther away.
    moved = {name: set(values) for name, values in found["direction"].items()}
    assert moved == {"same": {1}, "half": {1}, "other way": {0}}


def test_evaluate_trains_regressors_as_judges(answers, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    ds, model, e = answers
    judges = sp.find_judges(ds, model, families=["neural", "statistics", "intervals"])
    scores = sp.evaluate(e, ds, classifier=model, judges=judges)
    assert scores.summary["valid"]["mean"] == 1.0 and scores.summary["direction"]["mean"] > 0.9
    assert scores.judges["statistics"] > 0.8 and "probability" not in scores.summary
    assert scores.per_query["target"][0] == "at least 0.6"
    assert sp.find_judges(ds, model, families=["statistics"])["statistics"] is judges["statistics"]


def test_the_nearest_series_count_by_their_distance():
    pytest.importorskip("aeon")
    X = np.zeros((4, 9, 1)) + np.array([0.0, 1.0, 3.0, 100.0])[:, None, None]
    judge = NumberJudge("distances").fit(
        sp.Dataset.from_arrays(X, [0.0, 1.0, 3.0, 100.0], split=(np.arange(4), np.arange(0)), task="regression")
    )
    # Squared distances to 0.5: 0.25, 0.25 and 6.25 for each step; so the weights are 25, 25 and 1.
    found = judge.predict(np.full((1, 9, 1), 0.5))
    np.testing.assert_allclose(found, (25 * 0.0 + 25 * 1.0 + 3.0) / 51, rtol=1e-4)


def test_another_model_is_recognised(answers):
    ds, _, e = answers
    with pytest.raises(DataError, match="is not the model that was explained: for answer"):
        sp.evaluate(e, ds, classifier=sp.wrap(lambda X: level(X) + 1, task="regression"), judges={})
    with pytest.raises(DataError, match="one predicts numbers, the other classes"):
        sp.evaluate(e, ds, classifier=sp.wrap(lambda X: np.full((len(X), 2), 0.5)), judges={})


class FixedJudge:
    """A judge with given predictions that records its inputs."""

    def __init__(self, predictions):
        self.predictions = np.asarray(predictions)

    def predict(self, X, lengths=None):
        self.received = X, lengths
        return self.predictions


def test_transfer_by_hand(make_explanation):
    e = make_explanation(np.ones((3, 2, 1)), target=[0, 1, 2], n_classes=3, lengths=[2, 1, 2])
    judge = FixedJudge([0, 0, 2])
    result = transfer(e, {"fcn": judge, "bigru": FixedJudge([0, 1, 0])})
    assert judge.received[0] is e.counterfactual and judge.received[1].tolist() == [2, 1, 2]
    told = {name: found.tolist() for name, found in result["transfer"].items()}
    assert told == {"fcn": [1, 0, 1], "bigru": [1, 1, 0]}
    assert list(result) == ["transfer"] and result["transfer"]["fcn"].dtype == np.float64
