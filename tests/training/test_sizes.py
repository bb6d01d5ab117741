"""Every method on series of any size, with classes of any size: valid answers, or ``not_found`` with a reason."""

import logging
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import sparcets as sp
from sparcets.core.settings import TrainConfig

METHODS = ("Explainer", "Sparce", "Gan", "CounterGan", "Ics", "Nearest")
EPOCHS = 3


class First(nn.Module):
    """The class is given by the mean of the first feature: below 1, from 1 to 2, or above 2."""

    def __init__(self, n_classes=2):
        super().__init__()
        self.middles = nn.Parameter(torch.arange(n_classes, dtype=torch.float32))

    def forward(self, x):
        return -5 * (x[..., :1].mean(1) / 2 - self.middles) ** 2


def series(sizes, n_steps, n_features, seed=0):
    """Return so many series of each class; class k has a first feature of about 2 k."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(sizes)), sizes)
    X = rng.normal(0, 0.3, (len(y), n_steps, n_features)).astype(np.float32)
    X[:, :, 0] += 2 * y[:, None]
    return X, y


def build(method, model):
    """Return a method with settings that take a second."""
    config = getattr(sp, f"{method}Config").tiny()
    if method == "Explainer":
        config = replace(config, families=("intervals",))
    elif hasattr(config, "train"):
        config = replace(config, train=TrainConfig(epochs=EPOCHS, batch_size=32, lr=1e-2))
    return getattr(sp, method)(model, config)


def check(e):
    """Check what holds of all answers."""
    assert np.isfinite(e.counterfactual).all() and len(e.text(0))
    assert ((e.status == "not_found") == ~e.valid).all()
    assert all(reason for reason in e.reason[e.status == "not_found"])
    assert (e.counterfactual[~e.changed] == e.query[~e.changed]).all()


@pytest.mark.parametrize("sizes", [(12, 12, 1), (12, 12, 0), (12, 0, 12), (60, 3), (1, 1)], ids=str)
@pytest.mark.parametrize("method", METHODS)
def test_classes_of_any_size(method, sizes, caplog):
    X, y = series(sizes, 8, 3)
    model = sp.wrap(First(len(sizes)), class_names=[f"c{k}" for k in range(len(sizes))])
    with caplog.at_level(logging.WARNING):
        fitted = build(method, model).fit(X, y, progress=False)
    absent = [f"c{k}" for k, n in enumerate(sizes) if not n]
    assert ("no training series is of class" in caplog.text) == bool(absent)
    for target in range(1, len(sizes)):
        e = fitted.explain(X[:2], target=target, progress=False)
        check(e)
        if method == "Nearest":
            assert e.valid.all() == bool(sizes[target])
        if method == "Explainer" and sizes[target]:
            assert e.valid.all()


def test_a_generator_for_a_class_without_series_is_refused():
    X, y = series((12, 12, 0), 8, 3)
    config = replace(sp.SparceConfig.tiny(), target=2)
    with pytest.raises(sp.SparcetsError, match="no training series is in the target class"):
        sp.Sparce(sp.wrap(First(3), n_classes=3), config).fit(X, y, progress=False)


@pytest.mark.parametrize("method", METHODS)
def test_constant_and_whole_channels(method):
    """Constant, nearly constant, constant in one class, 0 or 1, and whole numbers."""
    X, y = series((24, 24), 10, 6)
    rng = np.random.default_rng(1)
    X[:, :, 1] = 5.0
    X[:, :, 2] = 1000 + 1e-4 * rng.integers(0, 2, X.shape[:2])
    X[y == 0, :, 3] = 0.0
    X[:, :, 4] = rng.integers(0, 2, X.shape[:2])
    X[:, :, 5] = rng.integers(0, 9, X.shape[:2])
    fitted = build(method, sp.wrap(First(), n_classes=2)).fit(X, y, progress=False)
    e = fitted.explain(X[:4], target=1, constraints=sp.Constraints(integer=[5]), progress=False)
    check(e)
    assert not e.changed[:, :, 1:3].any() and np.isin(e.counterfactual[:, :, 4], [0, 1]).all()
    assert (e.counterfactual[:, :, 5] == np.rint(e.counterfactual[:, :, 5])).all()
    assert all(np.isfinite(values).all() for values in fitted.history_.values())
