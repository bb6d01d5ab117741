"""The paper's presets hold every number of its sections 2 to 4, and bad values are told."""

import pytest

import sparcets as sp
from sparcets.config.explainers import LossWeights
from sparcets.errors import ConfigError

ADVERSARIAL = [sp.SparceConfig, sp.GanConfig, sp.CounterGanConfig]


@pytest.mark.parametrize("kind", ADVERSARIAL)
def test_the_paper_s_networks_and_training(kind):
    config = kind.paper(target="ups").to_dict()
    assert config["target"] == "ups"
    assert config["generator"] == {"backbone": "lstm", "hidden": 256, "layers": 2, "dropout": 0.4}
    assert config["discriminator"] == {"backbone": "lstm", "hidden": 16, "layers": 1}
    train = {"epochs": 100, "batch_size": 32, "lr": 2e-4, "beta1": 0.5, "beta2": 0.999, "balance": True, "patience": 0}
    assert train.items() <= config["train"].items()
    assert config["trains_sparsity"] is False


def test_the_paper_s_weights():
    every = {"adversarial": 1.0, "classification": 1.0, "similarity": 1.0, "sparsity": 1.0, "smoothness": 1.0}
    assert sp.SparceConfig.paper(target=0).weights.to_dict() == every
    for kind in (sp.GanConfig, sp.CounterGanConfig):  # no λ4, no λ5
        assert kind.paper(target=0).weights.to_dict() == every | {"sparsity": 0.0, "smoothness": 0.0}


def test_the_paper_s_search():
    numbers = {"steps": 100, "lr": 0.4, "beta1": 0.9, "beta2": 0.999, "trade_off": 1.0, "raises": 10}
    assert numbers.items() <= sp.IcsConfig.paper().to_dict().items()
    assert sp.IcsConfig.paper(target="ups").target == "ups" and sp.IcsConfig.paper().target is None


def test_the_default_is_one_fit_for_every_target_with_a_sparsity_that_trains():
    assert sp.SparceConfig().target is None and sp.SparceConfig().trains_sparsity


def test_the_default_leaves_sizes_to_the_data_and_asks_as_many_witnesses():
    config = sp.SparceConfig()
    assert config.generator.to_dict() | {"dropout": 0} == {
        "backbone": "mixer",
        "hidden": None,
        "layers": None,
        "dropout": 0,
    }
    assert (config.train.epochs, config.train.batch_size) == (None, None)
    assert (config.witnesses, config.gate) == (None, "stretch")
    back = sp.SparceConfig.from_dict(config.to_dict())  # None survives
    assert back == config and back.override("generator.layers=3").override("generator.layers=null") == config


OPEN = ["generator.hidden", "generator.layers", "train.epochs", "train.batch_size"]


@pytest.mark.parametrize("kind", ADVERSARIAL)
@pytest.mark.parametrize("name", OPEN)
def test_the_paper_s_methods_need_every_size(kind, name):
    for config in [kind.paper(target=1), *([] if kind is sp.SparceConfig else [kind(), kind.tiny()])]:
        with pytest.raises(ConfigError, match=rf"^1 problem in \w+: '{name}' must be a number here, got None\.$"):
            config.override(f"{name}=null")


@pytest.mark.parametrize("kind", ADVERSARIAL)
def test_a_mixer_is_refused_for_the_paper_s_methods(kind):
    for config in [kind.paper(target=1), *([] if kind is sp.SparceConfig else [kind(), kind.tiny()])]:
        with pytest.raises(
            ConfigError, match="must be lstm, gru or tcn here: a mixer serves Sparce's own recipe alone"
        ):
            config.override("generator.backbone=mixer")
        for backbone in ("lstm", "gru", "tcn"):
            assert config.override(f"generator.backbone={backbone}").generator.backbone == backbone


def test_the_default_turned_into_the_paper_s_recipe_names_all_that_is_missing():
    with pytest.raises(ConfigError) as caught:
        sp.SparceConfig().override("recipe=paper")
    assert len(caught.value.problems) == 5 and all(name in str(caught.value) for name in [*OPEN, "mixer"])


@pytest.mark.parametrize("backbone", ["mixer", "lstm", "gru", "tcn"])
def test_sparce_s_own_recipe_takes_any_backbone_and_any_size_from_the_data(backbone):
    config = sp.SparceConfig().override(f"generator.backbone={backbone}", *(f"{name}=null" for name in OPEN))
    assert config.generator.backbone == backbone


def test_the_paper_needs_a_target():
    with pytest.raises(TypeError, match="target"):
        sp.SparceConfig.paper()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("train.epochs=0", "'epochs' must be >= 1 or None, got 0"),
        ("train.lr=0", "'lr' must be > 0, got 0"),
        ("train.beta1=1", r"'beta1' must be in \[0, 1\), got 1"),
        ("train.beta2=-0.1", r"'beta2' must be in \[0, 1\), got -0.1"),
        ("train.patience=-1", "'patience' must be >= 0, got -1"),
        ("train.check_every=0", "'check_every' must be >= 1, got 0"),
        ("generator.dropout=1", r"'dropout' must be in \[0, 1\), got 1"),
        ("generator.hidden=0", "'hidden' must be >= 1 or None, got 0"),
        ("generator.layers=0", "'layers' must be >= 1 or None, got 0"),
        ("generator.backbone=lstn", "lstm"),
        ("generator.backbone=mixr", "mixer"),
        ("train.batch_size=0", "'batch_size' must be >= 1 or None, got 0"),
        ("witnesses=9", r"'witnesses' must be 0 to \d, got 9"),
        ("witnesses=-1", r"'witnesses' must be 0 to \d, got -1"),
        ("gate=entry", "stretch"),
        ("discriminator.layers=0", "'layers' must be >= 1, got 0"),
        ("weights.sparsity=-1", "'sparsity' must be >= 0, got -1"),
        ("batch_size=0", "'batch_size' must be >= 1, got 0"),
    ],
)
def test_bad_values_are_told(setting, message):
    with pytest.raises(ConfigError, match=message):
        sp.SparceConfig().override(setting)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("steps=0", "'steps' must be >= 1"),
        ("raises=0", "'raises' must be >= 1"),
        ("trade_off=0", "'trade_off' must be > 0"),
        ("batch_size=0", "'batch_size' must be >= 1"),
    ],
)
def test_bad_values_of_the_search_are_told(setting, message):
    with pytest.raises(ConfigError, match=message):
        sp.IcsConfig().override(setting)


def test_weights_that_are_all_0_are_refused():
    with pytest.raises(ConfigError, match="at least one weight must be > 0"):
        LossWeights(adversarial=0, classification=0, similarity=0, sparsity=0, smoothness=0)
