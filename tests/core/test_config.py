"""Configs: typed, checked with all problems at once, read from text and JSON, named by a fingerprint."""

import copy
import dataclasses
import inspect
import json
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparcets.core.config import Config
from sparcets.core.errors import ConfigError


@dataclass(frozen=True, kw_only=True, slots=True)
class Weights(Config):
    sparsity: float = 1.0
    similarity: float = 1.0

    def problems(self):
        return [f"{k!r} must be >= 0, got {v}" for k, v in self.to_dict().items() if v < 0]


@dataclass(frozen=True, kw_only=True, slots=True)
class Example(Config):
    epochs: int = 10
    lr: float = 0.1
    shuffle: bool = True
    name: str = "x"
    backbone: Literal["lstm", "gru"] = "lstm"
    target: int | str | None = None
    limit: float | None = None
    sizes: tuple[int, ...] = (1, 2)
    weights: Weights = field(default_factory=Weights)
    extra: Weights | None = None

    def problems(self):
        checks = [(self.epochs >= 1, "'epochs' must be >= 1"), (self.lr > 0, f"'lr' must be > 0, got {self.lr}")]
        return [message for fine, message in checks if not fine]


KNOWN = "known: epochs, lr, shuffle, name, backbone, target, limit, sizes, weights, extra"
OF_WEIGHTS = "known: sparsity, similarity"
OVERRIDE = f"Write Example().override('weights.sparsity=…'). ({KNOWN})"


@pytest.mark.parametrize(
    ("setting", "key", "value"),
    [
        ("epochs=5", "epochs", 5),
        ("lr=1", "lr", 1.0),
        ("shuffle=false", "shuffle", False),
        ("name=a=b", "name", "a=b"),
        ("backbone=gru", "backbone", "gru"),
        ("target=2", "target", 2),
        ("target=ups", "target", "ups"),
        ("target=none", "target", None),
        ("target='2'", "target", "2"),
        ("target=1.5", "target", "1.5"),
        ("limit=null", "limit", None),
        ("sizes=(3, 4)", "sizes", (3, 4)),
        ("sizes=3,4", "sizes", (3, 4)),
        ("weights.sparsity=0.5", "weights", Weights(sparsity=0.5)),
    ],
)
def test_settings_are_read_by_the_type_of_their_field(setting, key, value):
    changed = getattr(Example().override(setting), key)
    assert changed == value and type(changed) is type(value)


def test_settings_add_up_and_the_original_stays():
    start = Example()
    changed = start.override("weights.sparsity=0.5", "epochs=3", "weights.similarity=2", "epochs=4")
    assert changed == Example(epochs=4, weights=Weights(sparsity=0.5, similarity=2.0))
    assert start == Example() == start.override() == copy.deepcopy(start)
    with pytest.raises(dataclasses.FrozenInstanceError):
        start.epochs = 3


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("epochs", "cannot read the setting 'epochs': write it as key=value"),
        ("epoch=3", f"unknown key 'epoch', did you mean 'epochs'? ({KNOWN})"),
        ("sparsity=3", "unknown key 'sparsity', did you mean 'weights.sparsity'? " + OVERRIDE),
        ("epochs=2.5", "'epochs' must be a whole number, got 2.5"),
        ("epochs=True", "'epochs' must be a whole number, got True"),
        ("epochs=__import__('os')", "'epochs' must be a whole number, got \"__import__('os')\""),
        ("lr=1e999", "'lr' must be a number, got inf"),
        ("shuffle=1", "'shuffle' must be True or False, got 1"),
        ("backbone=cnn", "'backbone' must be one of 'lstm', 'gru', got 'cnn'"),
        ("limit=x", "'limit' must be a number or None, got 'x'"),
        ("weights.sparsit=3", f"in 'weights': unknown key 'sparsit', did you mean 'sparsity'? ({OF_WEIGHTS})"),
        ("weights.sparsity=-1", "in 'weights': 'sparsity' must be >= 0, got -1.0"),
        ("lr.x=3", "'lr' has no parts, so 'lr.x' means nothing"),
        ("lr=-1", "'lr' must be > 0, got -1.0"),
    ],
)
def test_each_problem_is_named(setting, message):
    with pytest.raises(ConfigError) as caught:
        Example().override(setting)
    assert str(caught.value) == f"1 problem in Example: {message}."


def test_all_problems_stand_in_one_message():
    with pytest.raises(ConfigError, match=r"^3 problems in Example: 'epochs' must .*; 'lr' must .*; 'shuffle' must"):
        Example(epochs=1.5, lr="fast", shuffle="no")
    with pytest.raises(ConfigError, match=r"^2 problems in Example: 'lr' must be > 0.*; unknown key 'epoch', did you"):
        Example.from_dict({"lr": -0.1, "epoch": 3})
    with pytest.raises(ConfigError) as caught:
        Example().override("nam=3", "lr=-1", "weights.sparsity=-1", "weights.x=1", "sizes")
    for part in ["'lr' must", "key 'nam', did", "in 'weights': 'sparsity'", "in 'weights': unknown", "sizes"]:
        assert part in str(caught.value)
    assert len(caught.value.problems) == 5


def test_numbers_are_kept_in_the_type_of_their_field():
    one = Example(lr=1, epochs=np.int64(3), limit=np.float32(0.5), sizes=(np.int8(1),))
    assert [type(v) for v in (one.lr, one.epochs, one.limit, one.sizes[0])] == [float, int, float, int]
    assert one == Example(lr=1.0, epochs=3, limit=0.5, sizes=(1,))
    assert one.fingerprint == Example(lr=1.0, epochs=3, limit=0.5, sizes=(1,)).fingerprint
    assert type(Example(target=np.int64(1)).target) is int
    of_text = Example(name=np.str_("a"), backbone=np.str_("gru"), shuffle=np.True_)
    assert [type(v) for v in (of_text.name, of_text.backbone, of_text.shuffle)] == [str, str, bool]


def test_what_is_no_setting_is_refused():
    with pytest.raises(ConfigError, match=rf"unknown key 'epoch', did you mean 'epochs'\? \({KNOWN}\)\.$"):
        Example(epoch=3)
    with pytest.raises(ConfigError, match=r"settings are given by name \(epochs=…, lr=…, .*\), got 5\.$"):
        Example(5)
    with pytest.raises(ConfigError, match="unknown key 'x'"):
        dataclasses.replace(Example(), x=1)
    for data, message in ((None, "Example is read from a dictionary, got"), ({3: 4}, "unknown key 3")):
        with pytest.raises(ConfigError, match=message):
            Example.from_dict(data)
    assert list(inspect.signature(Example).parameters)[:2] == ["epochs", "lr"], "what editors and help() show"


configs = st.builds(
    Example,
    epochs=st.integers(1, 10**30),
    lr=st.floats(1e-9, 1e9),
    shuffle=st.booleans(),
    name=st.text(),
    backbone=st.sampled_from(["lstm", "gru"]),
    target=st.none() | st.integers() | st.text(),
    limit=st.none() | st.floats(allow_nan=False, allow_infinity=False).map(lambda v: v + 0.0),  # no -0.0
    sizes=st.lists(st.integers()).map(tuple),
    weights=st.builds(Weights, sparsity=st.floats(0, 9)),
    extra=st.none() | st.builds(Weights, sparsity=st.floats(0, 9)),
)


def test_the_fingerprint_names_kind_and_values_in_any_process_and_order():
    @dataclass(frozen=True, kw_only=True, slots=True)
    class Reordered(Config):
        similarity: float = 1.0
        sparsity: float = 1.0

    assert Reordered().to_dict() == Weights().to_dict() and Reordered().fingerprint != Weights().fingerprint
    Reordered.__name__ = "Weights"
    assert Reordered().fingerprint == Weights().fingerprint
    assert Weights(sparsity=0.5).fingerprint == "c3142c6a6788"


@given(configs, configs)
def test_json_round_trip_and_a_fingerprint_that_tells_values_apart(one, two):
    again = Example.from_dict(json.loads(json.dumps(one.to_dict(), allow_nan=False)))
    assert again == one and again.fingerprint == one.fingerprint
    assert (one.fingerprint == two.fingerprint) == (one == two)
    assert len(one.fingerprint) == 12 and set(one.fingerprint) <= set("0123456789abcdef")
    for name in ("epochs", "shuffle", "weights"):
        if getattr(one, name) != getattr(two, name):
            assert dataclasses.replace(one, **{name: getattr(two, name)}).fingerprint != one.fingerprint
