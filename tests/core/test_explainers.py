"""Presets hold the paper's numbers, the sizes of our own method are open, and bad values are errors."""

import pytest

import sparcets as sp
from sparcets.core.errors import ConfigError
from sparcets.core.settings import FAMILIES, LossWeights

ADVERSARIAL = [sp.SparceConfig, sp.GanConfig, sp.CounterGanConfig]
SIZES = ["generator.hidden", "generator.layers", "train.epochs", "train.batch_size"]


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
    numbers = {"steps": 100, "lr": 0.4, "beta1": 0.9, "beta2": 0.999, "prediction_weight": 1.0, "max_lambdas": 10}
    assert numbers.items() <= sp.IcsConfig.paper().to_dict().items()
    assert sp.IcsConfig.paper(target="ups").target == "ups" and sp.IcsConfig.paper().target is None


@pytest.mark.parametrize("kind", ADVERSARIAL)
def test_the_default_is_one_fit_for_every_target_with_a_sparsity_that_trains(kind):
    assert kind().target is None and kind().trains_sparsity


@pytest.mark.parametrize("kind", ADVERSARIAL)
def test_the_paper_trains_for_one_target(kind):
    with pytest.raises(TypeError, match="target"):
        kind.paper()
    with pytest.raises(ConfigError, match=r"'train\.balance' needs a 'target'"):
        kind.paper(target=1).override("target=null")


@pytest.mark.parametrize("kind", ADVERSARIAL)
def test_the_paper_s_methods_need_every_size_and_one_of_three_backbones(kind):
    for config in (kind(), kind.tiny(), kind.paper(target=1)):
        for name in SIZES:
            with pytest.raises(ConfigError, match=f"'{name.split('.')[1]}' must be a whole number, got None"):
                config.override(f"{name}=null")
        for backbone in ("lstm", "gru", "tcn"):
            assert config.override(f"generator.backbone={backbone}").generator.backbone == backbone
        with pytest.raises(ConfigError, match="'backbone' must be one of 'lstm', 'gru', 'tcn', got 'mixer'"):
            config.override("generator.backbone=mixer")


def test_our_own_method_leaves_sizes_and_proposals_to_the_data():
    config = sp.ExplainerConfig()
    assert config.generator.to_dict() == {"backbone": "mixer", "hidden": None, "layers": None}
    assert (config.train.epochs, config.train.batch_size, config.gate) == (None, None, "window")
    assert (config.families, config.believed_by, config.proposals) == (FAMILIES, "families", "auto")
    back = sp.ExplainerConfig.from_dict(config.to_dict())  # None survives
    assert back == config and back.override("generator.layers=3").override("generator.layers=null") == config


@pytest.mark.parametrize("backbone", ["mixer", "lstm", "gru", "tcn"])
def test_our_own_method_takes_any_backbone_and_any_size_from_the_data(backbone):
    sizes = [f"{name}=null" for name in SIZES]
    assert sp.ExplainerConfig.tiny().override(f"generator.backbone={backbone}", *sizes).generator.backbone == backbone


COMMON = [
    ("train.epochs=0", "'epochs' must be >= 1"),
    ("train.batch_size=0", "'batch_size' must be >= 1"),
    ("train.lr=0", "'lr' must be > 0, got 0"),
    ("train.beta1=1", "'beta1' must be in [0, 1), got 1"),
    ("train.beta2=-0.1", "'beta2' must be in [0, 1), got -0.1"),
    ("train.check_every=0", "'check_every' must be >= 1, got 0"),
    ("generator.hidden=0", "'hidden' must be >= 1"),
    ("generator.layers=0", "'layers' must be >= 1"),
    ("generator.backbone=lstn", "'lstm'"),
    ("weights.sparsity=-1", "'sparsity' must be >= 0, got -1"),
    ("batch_size=0", "'batch_size' must be >= 1, got 0"),
]
BAD = {
    sp.SparceConfig: [
        *COMMON,
        ("train.patience=-1", "'patience' must be >= 0, got -1"),
        ("generator.dropout=1", "'dropout' must be in [0, 1), got 1"),
        ("discriminator.layers=0", "'layers' must be >= 1, got 0"),
    ],
    sp.ExplainerConfig: [
        *COMMON,
        ("generator.backbone=mixr", "'mixer'"),
        ("critic.hidden=0", "'hidden' must be >= 1, got 0"),
        (
            'families=["trees"]',
            "'families' must be different ones of neural, convolutions, quantiles, intervals, got trees",
        ),
        ('families=["neural", "neural"]', "'families' must be different ones of"),
        ("believed_by=judges", "'model'"),
        ("proposals=always", "'search'"),
        ("noise=-0.1", "'noise' must be >= 0, got -0.1"),
        ("gate=entry", "'window'"),
        ("min_sparsity_weight=0", "'min_sparsity_weight' must be > 0"),
        ("min_sparsity_weight=11", "'min_sparsity_weight' must be > 0 and <= 'max_sparsity_weight', got 11"),
        ("ramp=1.1", "'ramp' must be a share, got 1.1"),
    ],
    sp.IcsConfig: [
        ("steps=0", "'steps' must be >= 1"),
        ("lr=0", "'lr' must be > 0"),
        ("beta1=1", "'beta1' must be in [0, 1)"),
        ("beta2=-0.1", "'beta2' must be in [0, 1)"),
        ("max_lambdas=0", "'max_lambdas' must be >= 1"),
        ("prediction_weight=0", "'prediction_weight' must be > 0"),
        ("batch_size=0", "'batch_size' must be >= 1"),
    ],
}


@pytest.mark.parametrize(
    ("kind", "setting", "message"), [(kind, *case) for kind, cases in BAD.items() for case in cases]
)
def test_bad_values_are_errors(kind, setting, message):
    with pytest.raises(ConfigError) as caught:
        kind().override(setting)
    assert len(caught.value.problems) == 1 and message in str(caught.value)


def test_weights_that_are_all_0_are_refused():
    with pytest.raises(ConfigError, match="at least one weight must be > 0"):
        LossWeights(adversarial=0, classification=0, similarity=0, sparsity=0, smoothness=0)


def test_sparsity_that_does_not_train_needs_another_weight():
    alone = LossWeights(adversarial=0, classification=0, similarity=0, smoothness=0, sparsity=1)
    assert sp.SparceConfig(weights=alone).trains_sparsity
    with pytest.raises(ConfigError, match="without 'trains_sparsity', a weight other than 'sparsity' must be > 0"):
        sp.SparceConfig(weights=alone, trains_sparsity=False)
