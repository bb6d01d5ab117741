"""Settings: defaults that hold, presets with the paper's numbers, and limits that are checked."""

import dataclasses
import inspect
import re

import pytest

import sparcets as sp
from sparcets.core import settings
from sparcets.core.config import Config
from sparcets.core.errors import ConfigError
from sparcets.core.settings import LossWeights, NearestConfig, from_preset

KINDS = {c for _, c in inspect.getmembers(settings, inspect.isclass) if issubclass(c, Config) and c is not Config}
CONFIGS = sorted(KINDS, key=lambda c: c.__name__)
every_config = pytest.mark.parametrize("kind", CONFIGS, ids=lambda c: c.__name__)


@every_config
def test_defaults_and_presets_hold_and_come_back(kind):
    presets = [kind(), *(getattr(kind, name)() for name in ("tiny", "quick") if hasattr(kind, name))]
    presets += [kind.paper(target="ups")] if hasattr(kind, "paper") else []
    for preset in presets:
        assert type(preset) is kind and kind.from_dict(preset.to_dict()) == preset
    assert kind.from_dict({}) == kind()
    assert set(kind.limits) <= {field.name for field in dataclasses.fields(kind)}


JUST_BEYOND = {">= 1": 0, ">= 10": 9, ">= 0": -1, "> 0": 0, "in [0, 1)": 1, "between 0 and 1": 1}


@every_config
def test_limits_are_checked(kind):
    """Also: numbers that must have a limit have one."""
    names = {field.name for field in dataclasses.fields(kind)}
    limited = {"epochs", "batch_size", "hidden", "layers", "lr", "dropout", "patience", "steps", "beta1", "noise"}
    assert limited & names <= set(kind.limits)
    for name, limit in kind.limits.items():
        for value in (JUST_BEYOND[limit.removesuffix(" or None")], -1):
            with pytest.raises(ConfigError, match=rf"^1 problem in \w+: '{name}' must be {re.escape(limit)}, got"):
                kind().override(f"{name}={value}")


ADVERSARIAL = [sp.SparceConfig, sp.GanConfig, sp.CounterGanConfig]


@pytest.mark.parametrize("kind", ADVERSARIAL)
def test_the_paper_s_networks_and_training_are_for_one_target(kind):
    config = kind.paper(target="ups").to_dict()
    assert config["target"] == "ups"
    assert config["generator"] == {"backbone": "lstm", "hidden": 256, "layers": 2, "dropout": 0.4}
    assert config["discriminator"] == {"backbone": "lstm", "hidden": 16, "layers": 1}
    train = {"epochs": 100, "batch_size": 32, "lr": 2e-4, "beta1": 0.5, "beta2": 0.999, "balance": True, "patience": 0}
    assert train.items() <= config["train"].items() and config["trains_sparsity"] is False
    assert kind().target is None and kind().trains_sparsity, "by default, one fit for every target"
    with pytest.raises(TypeError, match="target"):
        kind.paper()
    with pytest.raises(ConfigError, match=r"'train\.balance' needs a 'target'"):
        kind.paper(target=1).override("target=null")


def test_the_paper_s_weights_and_search():
    every = {"adversarial": 1.0, "classification": 1.0, "similarity": 1.0, "sparsity": 1.0, "smoothness": 1.0}
    assert sp.SparceConfig.paper(target=0).weights.to_dict() == every
    for kind in (sp.GanConfig, sp.CounterGanConfig):  # no λ4, no λ5
        assert kind.paper(target=0).weights.to_dict() == every | {"sparsity": 0.0, "smoothness": 0.0}
    numbers = {"steps": 100, "lr": 0.4, "beta1": 0.9, "beta2": 0.999, "prediction_weight": 1.0, "max_lambdas": 10}
    assert numbers.items() <= sp.IcsConfig.paper().to_dict().items()
    assert sp.IcsConfig.paper(target="ups").target == "ups" and sp.IcsConfig.paper().target is None


@pytest.mark.parametrize(
    ("kind", "setting", "message"),
    [
        (sp.SparceConfig, "generator.hidden=null", "'hidden' must be a whole number, got None"),
        (sp.SparceConfig, "generator.backbone=mixer", "'backbone' must be one of 'lstm', 'gru', 'tcn', got 'mixer'"),
        (sp.ExplainerConfig, 'families=["trees"]', "'families' must be different ones of neural, convolutions, quanti"),
        (sp.ExplainerConfig, 'families=["neural", "neural"]', "'families' must be different ones of"),
        (sp.ExplainerConfig, "believed_by=judges", "'model'"),
        (sp.ExplainerConfig, "max_series=0", "'max_series' must be"),
    ],
)
def test_bad_values_are_errors(kind, setting, message):
    with pytest.raises(ConfigError) as caught:
        kind().override(setting)
    assert len(caught.value.problems) == 1 and message in str(caught.value)


def test_some_weight_trains():
    with pytest.raises(ConfigError, match="at least one weight must be > 0"):
        LossWeights(adversarial=0, classification=0, similarity=0, sparsity=0, smoothness=0)
    alone = LossWeights(adversarial=0, classification=0, similarity=0, smoothness=0, sparsity=1)
    assert sp.SparceConfig(weights=alone).trains_sparsity
    with pytest.raises(ConfigError, match="without 'trains_sparsity', a weight other than 'sparsity' must be > 0"):
        sp.SparceConfig(weights=alone, trains_sparsity=False)


def test_presets_are_those_of_the_method():
    assert from_preset(sp.SparceConfig, "default") == sp.SparceConfig()
    assert from_preset(sp.SparceConfig, "tiny") == sp.SparceConfig.tiny()
    assert from_preset(sp.SparceConfig, "paper", "ups") == sp.SparceConfig.paper(target="ups")
    quick = sp.ExplainerConfig.quick()
    assert from_preset(sp.ExplainerConfig, "quick", "ups") == dataclasses.replace(quick, target="ups")


@pytest.mark.parametrize("kind", [sp.ExplainerConfig, sp.IcsConfig, NearestConfig])
def test_a_target_makes_a_method_for_it_alone(kind):
    assert from_preset(kind, "default", "ups") == kind(target="ups")
    assert from_preset(kind, "tiny", "2").target == 2


@pytest.mark.parametrize(
    ("kind", "preset", "target", "words"),
    [
        (NearestConfig, "paper", "ups", "NearestConfig has no preset 'paper'. Known: default, tiny."),
        (sp.SparceConfig, "paper", None, "the paper trains for one target class"),
        (sp.ExplainerConfig, "paper", "ups", "ExplainerConfig has no preset 'paper'. Known: default, quick, tiny."),
    ],
)
def test_a_preset_or_target_that_is_missing_is_an_error(kind, preset, target, words):
    with pytest.raises(ConfigError) as caught:
        from_preset(kind, preset, target)
    assert words in str(caught.value)
