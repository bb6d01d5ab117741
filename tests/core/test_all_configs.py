"""Every config there is: defaults that hold, settings by text, round trips, and sizes that are checked."""

from __future__ import annotations

import dataclasses
import inspect
import re
from typing import Any

import pytest

from sparcets.core import settings
from sparcets.core.config import Config
from sparcets.core.errors import ConfigError
from sparcets.core.settings import ClassifierConfig, NearestConfig

CONFIGS = sorted(
    {c for _, c in inspect.getmembers(settings, inspect.isclass) if issubclass(c, Config) and c is not Config},
    key=lambda c: c.__name__,
)
every_config = pytest.mark.parametrize("kind", CONFIGS, ids=lambda c: c.__name__)


@every_config
def test_defaults_hold_and_come_back(kind: type[Config]) -> None:
    config = kind()
    assert kind.from_dict(config.to_dict()) == config and kind.from_dict({}) == config


@every_config
def test_presets_hold_and_come_back(kind: Any) -> None:
    presets = [kind.tiny()] if hasattr(kind, "tiny") else []
    presets += [kind.quick()] if hasattr(kind, "quick") else []
    presets += [kind.paper(target="ups")] if hasattr(kind, "paper") else []
    for preset in presets:
        assert type(preset) is kind and kind.from_dict(preset.to_dict()) == preset


@every_config
def test_every_field_can_be_set_by_text(kind: type[Config]) -> None:
    config = kind()
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if isinstance(value, Config):
            first = dataclasses.fields(value)[0].name
            assert config.override(f"{field.name}.{first}={getattr(value, first)}") == config
        else:
            assert config.override(f"{field.name}={value}") == config


@every_config
def test_a_mistyped_field_is_recognised(kind: type[Config]) -> None:
    name = dataclasses.fields(kind)[0].name
    with pytest.raises(
        ConfigError, match=rf"1 problem in {kind.__name__}: unknown key '{name}x', did you mean '{name}'\?"
    ):
        kind.from_dict({f"{name}x": 1})


# Numbers of which there must be at least one, or that must not be negative, wherever they stand.
NEVER_NEGATIVE = {
    "epochs",
    "batch_size",
    "hidden",
    "layers",
    "lr",
    "dropout",
    "patience",
    "candidates",
    "steps",
    "beta1",
    "noise",
    "label_smoothing",
}


@every_config
def test_sizes_are_checked(kind: type[Config]) -> None:
    for name in NEVER_NEGATIVE & {f.name for f in dataclasses.fields(kind)}:
        with pytest.raises(ConfigError, match=rf"1 problem in {kind.__name__}: '{name}' must be .*, got -1"):
            kind().override(f"{name}=-1")


def test_problems_of_a_classifier_by_hand() -> None:
    with pytest.raises(ConfigError) as caught:
        ClassifierConfig(
            hidden=0, layers=0, dropout=1.0, epochs=0, patience=0, validation=1.0, batch_size=0, lr=0.0
        )  # the first values that are not allowed
    assert str(caught.value) == (
        "8 problems in ClassifierConfig: 'hidden' must be >= 1, got 0; 'layers' must be >= 1, got 0; "
        "'dropout' must be in [0, 1), got 1.0; 'epochs' must be >= 1, got 0; 'patience' must be >= 1, got 0; "
        "'validation' must be between 0 and 1, got 1.0; 'batch_size' must be >= 1, got 0; 'lr' must be > 0, got 0.0."
    )
    ClassifierConfig(hidden=1, layers=1, dropout=0.0, epochs=1, patience=1, batch_size=1)  # and the last that are


def test_problems_of_a_base_class_are_found_too() -> None:
    with pytest.raises(
        ConfigError, match=re.escape("2 problems in NearestConfig: 'batch_size' must be >= 1, got 0; 'cand")
    ):
        NearestConfig(candidates=0, batch_size=0)
