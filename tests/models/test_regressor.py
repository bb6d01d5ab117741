"""Models that predict numbers, as users have them."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression, Ridge
from torch import nn

import sparcets as sp
from sparcets.core.errors import CapabilityError, ConfigError, ModelOutputError
from sparcets.testing.data import make_series

X, Y = make_series(40)


class Sums(nn.Module):
    """Sums over time of a linear map, and something else beside."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.drop = nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"forecast": self.drop(self.linear(x).sum(1)), "other": x}


def test_an_estimator_by_its_predict():
    model = Ridge().fit(X.reshape(40, -1), X[:, 0, :2])
    clf = sp.wrap(model, task="regression", layout="flat")
    np.testing.assert_array_equal(clf.predict(X[:3]), model.predict(X[:3].reshape(3, -1)))
    assert clf.n_outputs == 2
    assert "regression, layout 'flat'" in repr(clf)
    assert sp.wrap(clf) is clf


def test_a_module_of_several_outputs_is_left_as_it_was():
    module = Sums().train()
    clf = sp.wrap(module, task="regression", output="forecast", batch=(2, 8))
    expected = module.linear(torch.tensor(X)).sum(1).detach().numpy()
    np.testing.assert_allclose(clf.predict(X), expected, rtol=1e-5)
    assert module.training
    assert all(p.requires_grad for p in module.parameters())
    with pytest.raises(ModelOutputError, match=r"returned a dict of forecast, other"):
        sp.wrap(module, task="regression").predict(X)


def test_one_number_of_one_series():
    clf = sp.wrap(lambda Z: Z[:, :, 0].mean(1).squeeze(), task="regression")
    assert clf.predict(X[:1]).shape == (1, 1)
    assert clf.predict(X[:5]).shape == (5, 1)


def test_what_is_no_regressor():
    with pytest.raises(CapabilityError, match=r"LogisticRegression is a classifier; leave task='regression' out"):
        sp.wrap(LogisticRegression().fit(X[:, 0], Y), task="regression")
    with pytest.raises(CapabilityError, match="has no predict and is not callable"):
        sp.wrap(3, task="regression")
    with pytest.raises(ConfigError, match=r"no task 'regresion'. Did you mean 'regression'"):
        sp.wrap(Ridge(), task="regresion")
    with pytest.raises(ConfigError, match="n_classes, class_names and kinds of output are for classes"):
        sp.wrap(Ridge(), task="regression", n_classes=2)
    with pytest.raises(ModelOutputError, match=r"must return numbers \(batch,\) or \(batch, outputs\)"):
        sp.wrap(lambda Z: Z, task="regression").predict(X)
    with pytest.raises(ModelOutputError, match="returned NaN or infinity"):
        sp.wrap(lambda Z: np.full(len(Z), np.nan), task="regression").predict(X)
    with pytest.raises(ModelOutputError, match="failed on an input of shape"):
        sp.wrap(Ridge().fit(X[:, 0], Y), task="regression").predict(X)
