"""Side inputs of the models of each kind: passed by name, in the types and shapes that they were given in."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn

import sparcets as sp
from sparcets.core.errors import CapabilityError, DataError, ModelOutputError
from sparcets.core.side_inputs import SideInputs

X = np.random.default_rng(0).normal(size=(6, 5, 2)).astype(np.float32)
AGE, WARD = np.linspace(-1, 1, 6).astype(np.float32), np.array([0, 2, 1, 0, 2, 1])
SIDE = {"age": AGE, "ward": WARD}
TABLE = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 3.0]])


def logits(x, age, ward):
    return x.mean(1) + np.stack([age, -age], 1) + TABLE[ward]


def softmax(z):
    return np.exp(z) / np.exp(z).sum(1, keepdims=True)


EXPECTED = softmax(logits(X.astype(np.float64), AGE, WARD))


class Net(nn.Module):
    """Looks up the ward in an embedding, which takes int64 only."""

    def __init__(self):
        super().__init__()
        self.wards = nn.Embedding.from_pretrained(torch.tensor(TABLE, dtype=torch.float32), freeze=False)

    def forward(self, x, age, ward):
        assert x.shape[1:] == (5, 2) and age.dtype == torch.float32
        return x.mean(1) + torch.stack([age, -age], 1) + self.wards(ward)


def function(x, *, ward, age):
    assert x.shape[1:] == (5, 2) and ward.dtype == WARD.dtype and age.dtype == AGE.dtype
    return softmax(logits(x, age, ward))


class Estimator:
    classes_ = np.arange(2)

    def predict_proba(self, X, age=None, ward=None):
        return function(X, age=age, ward=ward)


class Decider:
    classes_ = np.arange(2)

    def decision_function(self, X, age=None, ward=None):
        z = logits(X, age, ward)
        return z[:, 1] - z[:, 0]


def keras_stub(base):
    """Return a functional model of Keras with three inputs, which it takes in one dict."""

    class Functional(base):
        name, output_shape = "functional", (None, 2)
        inputs = tuple(SimpleNamespace(name=name) for name in ("ward", "series", "age"))

        def __call__(self, given, training=None):
            x, age, ward = (given[name] for name in ("series", "age", "ward"))
            if isinstance(x, torch.Tensor):
                return Net()(x, age, ward).softmax(1)
            assert training is False
            return function(x, age=age, ward=ward)

        predict_on_batch = None

    Functional.__module__ = "keras.src.models.functional"
    return Functional()


MODELS = {
    "module": Net,
    "function": lambda: function,
    "estimator": Estimator,
    "decision function": Decider,
    "Keras": lambda: keras_stub(object),
    "Keras on torch": lambda: keras_stub(nn.Module),
}


@pytest.mark.parametrize("batch", [None, (2, 4)])
@pytest.mark.parametrize("make", MODELS.values(), ids=list(MODELS))
def test_every_kind_of_model_is_passed_them_by_name(make, batch):
    clf = sp.wrap(make(), batch=batch)
    np.testing.assert_allclose(clf.predict_proba(X, side=SIDE), EXPECTED, atol=1e-5)
    assert np.array_equal(clf.predict(X, side=SIDE), EXPECTED.argmax(1)) and clf.n_classes == 2


def test_a_program_of_torch_export_is_called_as_it_was_exported():
    given = tuple(torch.from_numpy(v) for v in (X, AGE, WARD))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own
        in_order = torch.export.export(Net(), given)
        by_name = torch.export.export(Net(), given[:1], {"ward": given[2], "age": given[1]})
    for program in (in_order, by_name):
        np.testing.assert_allclose(sp.wrap(program).predict_proba(X, side=SIDE), EXPECTED, atol=1e-5)
    with pytest.raises(CapabilityError, match=r"this program takes x, age, ward. Name all but the series in side="):
        sp.wrap(in_order).predict_proba(X)
    with pytest.raises(CapabilityError, match=r"this program has no input 'aeg'. Did you mean 'age'"):
        sp.wrap(in_order).predict_proba(X, side={"aeg": AGE, "ward": WARD})


def test_regressors():
    class Number(nn.Module):
        def forward(self, x, age):
            return x.mean((1, 2)) + age

    for model in (Number(), lambda x, age: x.mean((1, 2)) + age):
        reg = sp.wrap(model, task="regression", batch=(2, 4))
        np.testing.assert_allclose(reg.predict(X, side={"age": AGE})[:, 0], X.mean((1, 2)) + AGE, atol=1e-6)
        assert reg.n_outputs == 1


def test_a_view_for_side_inputs_and_wrong_names():
    clf = sp.wrap(Net(), n_classes=2)
    view = clf.with_side(SideInputs.of(SIDE))
    assert view.module is clf.module and clf.side is None and "side inputs age and ward): 0, 1)" in repr(view)
    assert view.with_side(view.side) is view and view.with_side(None).side is None
    with pytest.raises(CapabilityError, match=r"Net has no argument 'aeg' for a side input. Did you mean 'age'"):
        clf.predict_proba(X, side={"aeg": AGE, "ward": WARD})
    with pytest.raises(ModelOutputError, match=r"missing 1 .*'age'.* by name, a row per series: side=\{'age'"):
        clf.predict_proba(X, side={"ward": WARD})
    with pytest.raises(ModelOutputError, match=r"missing 2 .*: side=\{'age'"):
        clf.predict_proba(X)
    table = LogisticRegression().fit(X.reshape(6, -1), [0, 1] * 3)
    with pytest.raises(CapabilityError, match=r"LogisticRegression has no argument 'age'.*it takes the series alone"):
        sp.wrap(table, layout="flat").predict_proba(X, side={"age": AGE})
    with pytest.raises(CapabilityError, match="has no argument 'lengths'"):
        sp.wrap(lambda x, lengths: x).predict_proba(X, side={"lengths": AGE})
    ours = sp.TorchClassifier("fcn", sp.ClassifierConfig.tiny())
    with pytest.raises(CapabilityError, match=r"takes series alone, and no age beside them"):
        ours.predict_proba(X, side={"age": AGE})
    with pytest.raises(DataError, match="side must map the names"):
        clf.predict_proba(X, side=AGE)
