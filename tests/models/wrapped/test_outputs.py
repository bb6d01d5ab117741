"""Outputs that are tuples, dicts or objects: which part is meant, and what it is."""

from collections import namedtuple
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier
from torch import nn

import sparcets as sp
from sparcets.core.errors import ConfigError, ModelOutputError

X = np.random.default_rng(0).normal(size=(6, 5, 2)).astype(np.float32)
Both = namedtuple("Both", "scores state")


class Returns(nn.Module):
    """Returns what a function makes of its logits."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x.mean(1))


def softmax(logits):
    return np.exp(logits) / np.exp(logits).sum(1, keepdims=True)


EXPECTED = softmax(X.astype(np.float64).mean(1))
RETURNED = {
    "tuple": (lambda z: (None, z), 1),
    "only one": (lambda z: (z,), None),
    "dict": (lambda z: {"state": None, "scores": z}, "scores"),
    "dict by index": (lambda z: {"state": None, "scores": z}, 1),
    "dict by kind": (lambda z: {"loss": None, "logits": z}, None),
    "named tuple": (lambda z: Both(z, None), "scores"),
    "object": (lambda z: SimpleNamespace(scores=z), "scores"),
    "function": (lambda z: {"deep": [z]}, lambda returned: returned["deep"][0]),
}


@pytest.mark.parametrize(("function", "part"), RETURNED.values(), ids=list(RETURNED))
def test_the_part_that_is_meant_is_taken(function, part):
    np.testing.assert_allclose(sp.wrap(Returns(function), output=part).predict_proba(X), EXPECTED, atol=1e-6)

    def black_box(series):
        return function(series.mean(1))

    output = "logits" if part is None else ("logits", part)
    np.testing.assert_allclose(sp.wrap(black_box, output=output).predict_proba(X), EXPECTED, atol=1e-6)


def test_kind_and_part_are_said_together():
    module = Returns(lambda z: {"p": z.sigmoid()[:, :1], "probabilities": z.softmax(1)})
    p = sp.wrap(module, output=("sigmoid", "p")).predict_proba(X)[:, 1]
    np.testing.assert_allclose(p, 1 / (1 + np.exp(-X.astype(np.float64).mean(1)[:, 0])), atol=1e-6)
    np.testing.assert_allclose(sp.wrap(module, output="probabilities").predict_proba(X), EXPECTED, atol=1e-6)
    assert "output 'sigmoid' in part 'p'" in repr(sp.wrap(module, output=["sigmoid", "p"]))


def test_gradients_flow_through_a_part():
    clf = sp.wrap(Returns(lambda z: (None, z)), output=1)
    x = torch.tensor(X, requires_grad=True)
    clf.log_proba(x)[:, 0].sum().backward()
    assert (x.grad.abs() > 0).all()


def test_estimators_of_several_outputs_are_explained_one_at_a_time():
    labels = np.stack([np.arange(6) % 2, np.arange(6) % 3], axis=1)
    forest = RandomForestClassifier(3, random_state=0).fit(X.reshape(6, -1), labels)
    clf = sp.wrap(forest, output=1, layout="flat")
    np.testing.assert_array_equal(clf.predict_proba(X), forest.predict_proba(X.reshape(6, -1))[1])
    with pytest.raises(
        ModelOutputError, match=r"returned a list of 2 \(indices 0 to 1\). Say which part is its output"
    ):
        sp.wrap(forest, layout="flat").predict_proba(X)


@pytest.mark.parametrize(
    ("function", "output", "message"),
    [
        (
            lambda z: (z, z),
            None,
            r"returned a tuple of 2 \(indices 0 to 1\). Say which part is its output: output=\(\"log",
        ),
        (lambda z: {"a": z}, None, r"returned a dict of a. Say which part"),
        (lambda z: {"a": z}, "b", r"returned a dict of a, which has no part 'b'"),
        (lambda z: (z, z), 2, r"returned a tuple of 2 .* has no part 2"),
        (lambda z: (z, z), "scores", r"returned a tuple of 2 .* has no part 'scores'"),
        (lambda z: z, 0, r"output=0 names a part of what Returns returns, but it returned one Tensor. Leave it out"),
        (lambda z: (z, "no"), 1, r"returned str; wrap a module that returns a tensor"),
        (lambda z: (z, z), lambda returned: returned[7], r"Returns failed on an input .*IndexError"),
    ],
)
def test_parts_that_are_not_there(function, output, message):
    with pytest.raises(ModelOutputError, match=message):
        sp.wrap(Returns(function), output=output).predict_proba(X)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("logit", r"no output 'logit'. Did you mean 'logits'\? .*is a key .* write output=\('logits', 'logit'\)"),
        (("logit", 0), r"output must be a kind \(logits, probabilities, sigmoid\) and a part, .* got \('logit', 0\)"),
        (("logits", 0, 1), "a kind .* and a part"),
        (("logits", None), "a kind .* and a part"),
        (True, "no output True. Known: logits, probabilities, sigmoid"),
        (1.5, "no output 1.5. Known"),
    ],
)
def test_outputs_that_cannot_be(output, message):
    with pytest.raises(ConfigError, match=message):
        sp.wrap(Returns(lambda z: z), output=output)
