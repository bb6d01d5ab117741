"""Odd values, of the wrong type or size, anywhere: each is taken, or refused by an error that can be read."""

import contextlib
import dataclasses
import re
from decimal import Decimal
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
import torch

import sparcets as sp
from sparcets.core.errors import SparcetsError, quoted
from sparcets.methods import EXPLAINERS
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule, mean_proba

ODD = (
    *(True, -1, 0, 2**70, 10**400, 0.5, float("inf"), float("nan"), 1 + 2j, Fraction(1, 3), Decimal("0.5")),
    *("zzz", "", "\udcff", b"x", [], ["up"], [[["up"], {}], None], [[1, 2], [3]], (1,), {"a": 1}, {1}),
    *(np.int64(7), np.float32(0.25), np.str_("zz"), np.bool_(True), np.longdouble("1.5"), np.datetime64("2020-01-01")),
    *(np.zeros((2, 2)), np.zeros(0), np.array([None, "a"], dtype=object), np.array(["up", "down"]), torch.ones(2)),
    *(int, len, object(), (i for i in ())),
)
NUMPY = re.compile(r"np\.(str_|bytes_|bool|u?int\d|float\d|complex\d|longdouble|datetime)")  # as NumPy 2 writes scalars
every_value = pytest.mark.parametrize("odd", ODD, ids=lambda odd: ascii(odd)[:20])


def tried(call, *args, **kwargs):
    """Return the message of a call that is refused; an empty text if it works."""
    try:
        call(*args, **kwargs)
    except SparcetsError as error:
        message = str(error)
        assert not NUMPY.search(message), message
        assert message and "\n" not in message and len(message) < 3000, message
        return message
    return ""


@cache
def fitted():
    return sp.Nearest(sp.wrap(mean_proba, n_classes=3)).fit(*make_series(30))


@cache
def fitted_to_numbers():
    X, _ = make_series(30)
    return sp.Nearest(sp.wrap(lambda x: x.mean((1, 2)), task="regression")).fit(X, X.mean((1, 2)))


QUERIES = make_series(2, seed=1)[0]


@every_value
@pytest.mark.parametrize("field", [f.name for f in dataclasses.fields(sp.Constraints)])
def test_constraints(field, odd):
    forms = [odd, [odd], (odd, odd), [[odd]], [(0, odd)], {"f0": odd}, {0: [odd]}, {0: (odd, odd)}, {0: (None, odd)}]
    with contextlib.suppress(TypeError):  # not all can be hashed
        forms += [{odd: 1}, {odd: "up"}, {odd: [0]}]
    for value in forms:
        tried(lambda given: fitted().explain(QUERIES, target=1, constraints=sp.Constraints(**{field: given})), value)


@every_value
@pytest.mark.parametrize(
    "name", ["target", "constraints", "sparsity", "n", "confidence", "lengths", "side", "ids", "subjects", "curve"]
)
def test_explain(name, odd):
    for value in (odd, [odd, odd]):
        tried(fitted().explain, QUERIES, **{"target": 1, name: value})


@every_value
def test_series_and_targets(odd):
    for series in (odd, [odd], np.array([[[odd]]], dtype=object)):
        tried(fitted().explain, series, target=1)
    tried(lambda: fitted().explain(QUERIES, target=sp.Not(odd)))
    for_numbers = fitted_to_numbers().explain
    tried(for_numbers, QUERIES, target=odd)
    for kind in (sp.AtLeast, sp.AtMost, sp.Change):
        tried(lambda kind: for_numbers(QUERIES, target=kind(odd)), kind)
        tried(lambda kind: for_numbers(QUERIES, target=kind(1, output=odd)), kind)
    tried(lambda: for_numbers(QUERIES, target=sp.Between(odd, 2)))
    tried(lambda: for_numbers(QUERIES, target=sp.Between(0, odd)))


@every_value
def test_data(odd):
    X, y = make_series(12)
    tried(sp.Dataset.from_arrays, odd, y)
    tried(sp.Dataset.from_arrays, X, odd)
    tried(sp.Dataset.from_arrays, X, [odd] * 12)
    tried(sp.Dataset.from_arrays, X, [odd] * 12, task="regression")
    options = ["test_size", "seed", "split", "feature_names", "class_names", "mutable", "units", "sampling_rate"]
    options += ["subjects", "lengths", "salient", "name", "ids", "task", "output_names", "output_units", "side"]
    for name in options:
        for value in (odd, [odd] * 12, [odd] * 4):
            tried(sp.Dataset.from_arrays, X, y, **{name: value})
    small = {"kinds": ["Moving_SmallMiddle"], "processes": ["Gaussian"], "n_per_combination": 20}
    for name in ("kinds", "processes", "test_size", "seed"):
        tried(sp.load_dataset, "moving_box", **{**small, name: odd})
    tried(sp.load_dataset, odd)


@every_value
def test_models(odd):
    X, y = make_series(12)
    tried(sp.TorchClassifier, odd)
    tried(sp.TorchClassifier, "fcn", odd)
    classifier = sp.TorchClassifier("fcn", sp.ClassifierConfig(epochs=1))
    tried(classifier.fit, odd, y)
    tried(classifier.fit, X, odd)
    tried(classifier.fit, X, y, lengths=odd)
    if not callable(odd):  # any function is a model
        tried(sp.wrap, odd)
    for name in ("n_classes", "class_names", "output", "layout", "task", "batch", "missing", "lengths"):
        for model in (MeanModule(), mean_proba):
            tried(lambda model, name: sp.wrap(model, **{name: odd}).predict(X), model, name)
    for method in EXPLAINERS:
        tried(EXPLAINERS.load(method)(fitted().classifier, odd).fit, X, y)
    tried(EXPLAINERS.load, odd)


@every_value
@pytest.mark.parametrize("kind", [sp.ExplainerConfig, sp.SparceConfig, sp.ClassifierConfig, sp.LossWeights])
def test_settings(kind, odd):
    for field in dataclasses.fields(kind):
        tried(kind, **{field.name: odd})
        tried(kind.from_dict, {field.name: odd})
    assert tried(kind, odd).startswith(f"1 problem in {kind.__name__}: settings are given by name")
    tried(kind.from_dict, odd)
    tried(kind().override, odd)


@every_value
def test_evaluate(odd):
    X, y = make_series(30)
    dataset = sp.Dataset.from_arrays(X, y)
    explainer = sp.Nearest(fitted().classifier).fit(dataset)
    answers = explainer.explain(dataset.X_test[:2], target=1)
    call = {"dataset": dataset, "classifier": explainer.classifier, "judges": {}}
    tried(sp.evaluate, odd, **call)
    for name in ("dataset", "classifier", "rows", "judges", "seed"):
        tried(sp.evaluate, answers, **{**call, name: odd})
    tried(lambda: answers[odd])
    tried(answers.text, odd)
    tried(sp.compare, odd, odd)
    tried(sp.load_explanation, odd)
    tried(sp.load_classifier, odd)
    tried(sp.load, odd, classifier=fitted().classifier)


def test_values_in_messages():
    for value, text in (
        (np.str_("s4"), "'s4'"),
        (np.int64(3), "3"),
        ([np.int64(1), (np.float32(0.5),)], "[1, (0.5,)]"),
        ({np.str_("a"): {np.int8(1)}}, "{'a': {1}}"),
        (np.array(2.5), "2.5"),
        (np.longdouble("1.5"), "1.5"),
        (torch.tensor(3), "3"),
        (sp.Not(np.str_("a")), "Not(label='a')"),
        (np.zeros((2, 1)), "array([[0.], [0.]])"),
        (10**5000, "a value of type int"),  # it has more digits than Python writes
        (set(), "set()"),
    ):
        assert quoted(value) == text
    assert len(quoted("x" * 10_000)) == 201
