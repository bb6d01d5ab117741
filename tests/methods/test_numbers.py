"""Questions about numbers: every method that answers them, on a model whose number can be worked out by hand."""

import numpy as np
import pytest
from torch import nn

import sparcets as sp
from sparcets.core.errors import ConfigError, LabelError, ShapeError, TargetError
from sparcets.testing.data import make_series

N = 90


class Level(nn.Module):
    """The mean of the first feature."""

    def forward(self, x):
        return x[:, :, 0].mean(1)


def level(X):
    return np.asarray(X)[:, :, 0].mean(1)


def both(X):
    return np.asarray(X, dtype=np.float64)[:, :, :2].mean(1)


@pytest.fixture(scope="module")
def data():
    X, _ = make_series(N)
    return X, level(X)


@pytest.fixture(scope="module")
def nearest(data):
    return sp.Nearest(sp.wrap(level, task="regression")).fit(*data)


@pytest.fixture(scope="module")
def explainer(data):
    return sp.Explainer(sp.wrap(Level(), task="regression"), sp.ExplainerConfig.tiny()).fit(*data)


@pytest.fixture(params=["nearest", "explainer"])
def fitted(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def low(data):
    X, y = data
    return X[y < np.median(y)][:4]


def test_every_kind_of_target_one_per_query(fitted, low, data):
    own = level(low)
    middle = float(np.median(data[1]))
    targets = [sp.AtMost(100), sp.Between(middle, middle + 1), sp.Change(0.2), sp.AtLeast(middle)]
    e = fitted.explain(low, target=targets)
    assert e.status[0] == "unchanged" and not e.changed[0].any()
    after = e.prediction[:, 0]
    assert middle <= after[1] <= middle + 1 and after[2] >= own[2] + 0.2
    assert after[3] >= middle and e.target[2] == "at least 0.2 more"
    assert e.valid.all()


def test_answers_do_not_depend_on_the_other_queries(fitted, low):
    targets = [sp.Change(0.2), sp.AtLeast(0.3), sp.AtLeast(0.3), sp.Change(0.1)]
    whole = fitted.explain(low, target=targets)
    for i, target in enumerate(targets):
        alone = fitted.explain(low[i : i + 1], target=target)
        np.testing.assert_array_equal(alone.counterfactual[0], whole.counterfactual[i])


def test_what_cannot_be_reached_is_not_found_with_the_number_that_was(fitted, low):
    e = fitted.explain(low[:1], target=sp.AtLeast(1e6))
    assert e.status[0] == "not_found" and not e.valid[0]
    assert f"the number reached {e.prediction[0, 0]:.4g}" in e.reason[0] and "p(" not in e.reason[0]


def test_a_horizon_of_which_one_number_is_asked_for(data):
    X, _ = data
    about = {"output_names": ["soon", "later"], "output_units": ["m", "s"], "feature_names": list("abcd")}
    ds = sp.Dataset.from_arrays(X, both(X), task="regression", **about)
    ex = sp.Nearest(sp.wrap(both, task="regression")).fit(ds)
    own = both(ds.X_test[:3])
    e = ex.explain(ds.X_test[:3], target=sp.AtLeast(0.2, output="later"))
    assert e.target[0] == "later at least 0.2 s" and (e.prediction[e.valid, 1] >= 0.2).all()
    assert e.valid.any()
    change = ex.explain(ds.X_test[:3], target=sp.Change(0.1, output=0))
    assert (change.prediction[change.valid, 0] >= own[change.valid, 0] + 0.1).all()
    every = ex.explain(ds.X_test[:3], target=sp.Between(-0.5, 0.5))
    assert (np.abs(every.prediction[every.valid]) <= 0.5).all()
    with pytest.raises(TargetError, match=r"no output 'latter'. Did you mean 'later'"):
        ex.explain(ds.X_test[:1], target=sp.AtLeast(1.0, output="latter"))
    with pytest.raises(TargetError, match=r"output=2 of .* none of the model's 2 outputs"):
        ex.explain(ds.X_test[:1], target=sp.AtLeast(1.0, output=2))


def test_wrong_questions_and_labels(nearest, data, low):
    X, y = data
    for target in (None, 30, "a", sp.Not(0), [sp.AtLeast(1), 3]):
        with pytest.raises(TargetError, match="the model predicts numbers"):
            nearest.explain(low, target=target)
    with pytest.raises(TargetError, match="4 queries came with 2 targets"):
        nearest.explain(low, target=[sp.AtLeast(1), sp.AtLeast(2)])
    with pytest.raises(ConfigError, match="confidence is a probability"):
        nearest.explain(low, target=sp.AtLeast(1), confidence=0.9)
    model = sp.wrap(level, task="regression")
    with pytest.raises(ShapeError, match="predicts 1 numbers per series, y holds 2"):
        sp.Nearest(model).fit(X, both(X))
    with pytest.raises(LabelError, match="y must hold numbers"):
        sp.Nearest(model).fit(X, ["a"] * len(X))
    with pytest.raises(LabelError, match="NaN"):
        sp.Nearest(model).fit(X, np.where(y > 0, y, np.nan))
    classes = sp.Dataset.from_arrays(X, (y > 0).astype(int))
    with pytest.raises(LabelError, match="predicts numbers, but 'arrays' is a data set for classification"):
        sp.Nearest(model).fit(classes)
    of_classes = sp.wrap(lambda X: np.stack([1.0 * (level(X) > 0), 1.0 * (level(X) <= 0)], 1))
    with pytest.raises(TargetError, match=r"AtLeast.* is a target for a model that predicts numbers"):
        sp.Nearest(of_classes).fit(X, (y <= 0).astype(int)).explain(low, target=sp.AtLeast(1))
