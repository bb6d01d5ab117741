"""Every setting of every registered method changes what it fits or what it answers; the neutral ones change neither.

A new method or a new field is found here by itself.
"""

import dataclasses
import json
from functools import cache
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np
import pytest

import sparcets as sp
from sparcets.core.config import Config
from sparcets.methods import EXPLAINERS
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule

pytestmark = pytest.mark.long

X, Y = make_series(40, n_steps=8)
QUERIES = make_series(12, n_steps=8, seed=1)[0]
SHORT = "train.epochs=1"


class Context(NamedTuple):
    """What a field needs to make a difference: settings, arguments of ``explain``, another value to change to."""

    why: str
    settings: tuple[str, ...] = ()
    call: tuple[tuple[str, Any], ...] = ()
    other: Any = None


# Fields that need other data, and the tests that have them.
ELSEWHERE = {
    ("sparcets", "without_laws"): "tests/methods/own/test_search.py",
    ("sparcets", "edit_price"): "tests/methods/own/test_search.py",
}
# By the name of the field, for one method alone with that before it.
CONTEXTS = {
    "generator.dropout": Context("it acts between two layers", ("generator.layers=2",)),
    "train.balance": Context("it balances the queries and targets of one class", ("target=1",)),
    "train.patience": Context("the training must stop improving", ("train.epochs=6", "train.lr=1e-6")),
    "trains_sparsity": Context("there must be a sparsity term", ("weights.sparsity=0.3",)),
    "noise": Context("a network must be among the families", ("families=['neural']",)),
    "max_series": Context("there must be more series", other=20),
    "proposals": Context("few series have no generator by themselves", other="generator"),
    "change_price": Context("the cheapest answer must be another", other=0.0),
    "groups": Context("all features are one group", other='[["f0","f1","f2","f3"]]'),
    "store_courses": Context("it concerns the edits of answers", other=False),
    "max_lambdas": Context("some queries must not be valid at once", ("max_lambdas=1", "steps=2")),
    "lambda_step": Context("some queries must not be valid at once", ("steps=2",), other=0.25),
    "candidates": Context("the nearest must not be enough", ("candidates=1",), (("sparsity", 0.1),)),
    "batch_size": Context("the last batch is smaller than the others", other=3),
    "device": Context("without a GPU both are the CPU", other="cpu"),
}


def fields(config, prefix=""):
    """Yield name, type and value of every field; those of parts with a dot."""
    hints = get_type_hints(type(config))
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if isinstance(value, Config):
            yield from fields(value, f"{field.name}.")
        else:
            yield prefix + field.name, hints[field.name], value


def other_value(hint, value):
    """Return another valid value of a field."""
    if get_origin(hint) is Literal:
        options = get_args(hint)
        return options[(options.index(value) + 1) % len(options)]
    if value is None:
        return 1
    if isinstance(value, bool):
        return not value
    if isinstance(value, tuple):
        return json.dumps(value[:-1])
    if isinstance(value, int):
        return 2 * value or 1
    if isinstance(value, float):
        return value / 2 or 0.5
    raise TypeError(f"no other value for {value!r}")


def tiny(method, *settings):
    config = EXPLAINERS.load(method).config_class.tiny()
    return config.override(*([SHORT] if hasattr(config, "train") else []), *settings)


@cache
def fitted(method, settings):
    return EXPLAINERS.load(method)(sp.wrap(MeanModule(), n_classes=3), tiny(method, *settings)).fit(X, Y)


def same_state(a, b, *, without=""):
    """Whether two explainers hold the same arrays; ``without`` names one that is left out."""
    a, b = ({name: v for name, v in ex._state().items() if name != without} for ex in (a, b))
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


def same_answers(a, b):
    arrays = all(np.array_equal(getattr(a, name), getattr(b, name)) for name in ("target", "status", "counterfactual"))
    stored = [[edit.course is None for i in range(len(e)) for edit in e.edits(i)] for e in (a, b)]
    return arrays and stored[0] == stored[1]


def before_and_after(method, name):
    """Return an explainer fitted with the field as it is, one with another value, and the arguments of explain."""
    context = CONTEXTS.get(f"{method}/{name}") or CONTEXTS.get(name, Context(""))
    hint, value = next((h, v) for n, h, v in fields(tiny(method, *context.settings)) if n == name)
    other = context.other if context.other is not None else other_value(hint, value)
    before, after = fitted(method, context.settings), fitted(method, (*context.settings, f"{name}={other}"))
    assert before.config != after.config
    return before, after, dict(context.call)


NEUTRAL = [(method, name) for method in EXPLAINERS for name in sorted(EXPLAINERS.load(method).config_class.neutral)]
ALL = [(method, name) for method in EXPLAINERS for name, _, _ in fields(tiny(method))]


@pytest.mark.parametrize(("method", "name"), [one for one in ALL if one not in NEUTRAL and one not in ELSEWHERE])
def test_the_field_changes_the_fitted_state_or_the_answers(method, name):
    before, after, call = before_and_after(method, name)
    assert before.config.deciding_values() != after.config.deciding_values()
    if same_state(before, after, without="header"):  # a copy of a setting in the header is not yet an effect
        assert not same_answers(before.explain(QUERIES, **call), after.explain(QUERIES, **call)), f"{name} does nothing"


@pytest.mark.parametrize(("method", "name"), NEUTRAL)
def test_a_neutral_field_changes_neither(method, name):
    before, after, call = before_and_after(method, name)
    assert before.config.deciding_values() == after.config.deciding_values() and same_state(before, after)
    e, f = before.explain(QUERIES, **call), after.explain(QUERIES, **call)
    if name == "batch_size":  # sums over a batch of another size differ in their last bits
        np.testing.assert_allclose(f.delta / f.info.scaler.scale, e.delta / e.info.scaler.scale, rtol=0, atol=1e-6)
        assert np.array_equal(e.status, f.status)
    else:
        assert same_answers(e, f)


def test_neutral_fields_and_those_with_a_context_exist():
    assert {*NEUTRAL, *ELSEWHERE} <= set(ALL)
    assert set(CONTEXTS) <= {name for _, name in ALL} | {f"{method}/{name}" for method, name in ALL}
