"""Models of Keras, as stubs of the same interface, which were compared with Keras 3.15, on JAX and on PyTorch.

Their classes stand in a module of Keras, and have what sparcets uses of a model: ``__call__(x, training=…)``,
``output_shape``, ``name`` and ``predict_on_batch``.
"""

import numpy as np
import pytest
import torch
from torch import nn

import sparcets as sp
from sparcets.core.errors import ModelOutputError

X = np.random.default_rng(0).normal(size=(6, 5, 2)).astype(np.float32)


class Tensor:
    """A tensor of another package: NumPy can read it."""

    def __init__(self, values):
        self.values, self.ndim = values, values.ndim

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype)


def build(base, columns, activation):
    """Return a stub with one dense layer on the flattened series: a black box, or a module of PyTorch."""

    class Sequential(base):
        name, output_shape, training = "sequential", (None, columns), True

        def __init__(self):
            super().__init__()
            self.weight = torch.from_numpy(np.random.default_rng(1).normal(size=(10, columns))).float()

        def forward(self, x):
            z = x.reshape(len(x), -1) @ self.weight
            return {"softmax": z.softmax(1), "sigmoid": z.sigmoid(), "linear": z}[activation]

        def predict_on_batch(self, x):
            return self.forward(torch.from_numpy(x)).numpy()

    def call(self, x, training=None):
        assert training is False  # or dropout would be active
        return Tensor(self.predict_on_batch(x))

    if base is object:
        Sequential.__call__ = call
    Sequential.__module__ = "keras.src.models.sequential"
    return Sequential()


@pytest.mark.parametrize("base", [object, nn.Module])
@pytest.mark.parametrize(("columns", "activation"), [(3, "softmax"), (1, "sigmoid")])
def test_softmax_and_one_sigmoid_are_taken_as_they_are(base, columns, activation):
    model = build(base, columns, activation)
    clf = sp.wrap(model)
    assert clf.n_classes == max(columns, 2) and clf.interface.layout == "btf"
    p = model.predict_on_batch(X)
    expected = np.concatenate([1 - p, p], axis=1) if columns == 1 else p
    np.testing.assert_allclose(clf.predict_proba(X), expected, atol=1e-6)
    assert clf.differentiable == (base is nn.Module)


@pytest.mark.parametrize("base", [object, nn.Module])
def test_logits_have_to_be_said_and_the_model_is_explained(base):
    model = build(base, 3, "linear")
    with pytest.raises(ModelOutputError, match="wrap with output='logits'"):
        sp.wrap(model).predict_proba(X)
    z = model.predict_on_batch(X).astype(np.float64)
    clf = sp.wrap(model, output="logits")
    np.testing.assert_allclose(clf.predict_proba(X), np.exp(z) / np.exp(z).sum(1, keepdims=True), atol=1e-5)
    e = sp.Nearest(clf).fit(X, clf.predict(X)).explain(X[:2])
    np.testing.assert_array_equal(e.valid, clf.predict(e.counterfactual) == e.target)
