"""Models of Keras: the real ones where it is installed, and otherwise a stub of the same interface.

The stub's class stands in a module of Keras, and has what sparcets uses of a model: ``__call__(x, training=…)``,
``output_shape``, ``name`` and ``predict_on_batch``. It was compared with Keras 3.15, on JAX and on PyTorch.
"""

import importlib.util

import numpy as np
import pytest
import torch
from torch import nn

import sparcets as sp
from sparcets.core.errors import ModelOutputError

X = np.random.default_rng(0).normal(size=(6, 5, 2)).astype(np.float32)
SOURCES = [
    "stub",
    "stub on torch",
    pytest.param(
        "keras", marks=pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="Keras is not installed")
    ),
]


class Tensor:
    """A tensor of another package: NumPy can read it."""

    def __init__(self, values):
        self.values = values
        self.ndim = values.ndim

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype)


def stub(columns, activation):
    """Return a stub with one dense layer on the flattened series, as a black box."""
    weight = np.random.default_rng(1).normal(size=(10, columns)).astype(np.float32)

    class Sequential:
        name, output_shape, training = "sequential", (None, columns), True

        def __call__(self, x, training=None):
            assert training is False  # or dropout would be active
            return Tensor(activate(torch.from_numpy(x.reshape(len(x), -1) @ weight), activation).numpy())

        def predict_on_batch(self, x):
            return np.asarray(self(x, training=False))

    Sequential.__module__ = "keras.src.models.sequential"
    return Sequential()


def stub_on_torch(columns, activation):
    """Return a stub of the same model on PyTorch, where it is a module."""

    class Sequential(nn.Module):
        name, output_shape = "sequential", (None, columns)

        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.from_numpy(np.random.default_rng(1).normal(size=(10, columns))).float())

        def forward(self, x):
            return activate(x.reshape(len(x), -1) @ self.weight, activation)

        def predict_on_batch(self, x):
            return self(torch.from_numpy(x)).detach().numpy()

    Sequential.__module__ = "keras.src.models.sequential"
    return Sequential()


def activate(z, activation):
    return {"softmax": z.softmax(1), "sigmoid": z.sigmoid(), "linear": z}[activation]


def build(source, columns, activation):
    if source != "keras":
        return (stub if source == "stub" else stub_on_torch)(columns, activation)
    import keras

    layers = [keras.layers.Input((5, 2)), keras.layers.Flatten(), keras.layers.Dropout(0.5)]
    return keras.Sequential([*layers, keras.layers.Dense(columns, activation=activation)])


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(("columns", "activation"), [(3, "softmax"), (1, "sigmoid")])
def test_softmax_and_one_sigmoid_are_taken_as_they_are(source, columns, activation):
    model = build(source, columns, activation)
    clf = sp.wrap(model)
    assert clf.n_classes == max(columns, 2) and clf.interface.layout == "btf"
    p = model.predict_on_batch(X)
    expected = np.concatenate([1 - p, p], axis=1) if columns == 1 else p
    np.testing.assert_allclose(clf.predict_proba(X), expected, atol=1e-6)
    np.testing.assert_array_equal(clf.predict_proba(X), clf.predict_proba(X))  # no dropout
    assert clf.differentiable == isinstance(model, nn.Module)


@pytest.mark.parametrize("source", SOURCES)
def test_logits_have_to_be_said_and_the_model_is_explained(source):
    model = build(source, 3, "linear")
    with pytest.raises(ModelOutputError, match="wrap with output='logits'"):
        sp.wrap(model).predict_proba(X)
    z = model.predict_on_batch(X).astype(np.float64)
    clf = sp.wrap(model, output="logits")
    np.testing.assert_allclose(clf.predict_proba(X), np.exp(z) / np.exp(z).sum(1, keepdims=True), atol=1e-5)
    e = sp.Nearest(clf).fit(X, clf.predict(X)).explain(X[:2])
    np.testing.assert_array_equal(e.valid, clf.predict(e.counterfactual) == e.target)
