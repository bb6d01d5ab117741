"""Trainings that went wrong are told in words, started again once, and then given up with advice."""

import logging

import pytest
import torch

import sparcets as sp
from sparcets.errors import TrainingError
from sparcets.explainers import adversarial
from sparcets.networks.generators import Generator
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule
from sparcets.training.callbacks import DEAD_CHECKS, LOST_CHECKS, Health, TrainingFailure
from sparcets.training.losses import LossTerm

FINE = {"generator": 1.0, "discriminator": 0.7, "valid": 0.5, "changed": 0.1}
LOST = FINE | {"discriminator": 1e-4, "valid": 0.0}


def check(health, *logs):
    for i, values in enumerate(logs):
        health.on_check(100 * (i + 1), values)


def test_a_dead_generator_is_told():
    dead = FINE | {"changed": 0.0}
    check(Health(), *[dead] * (DEAD_CHECKS - 1), FINE, *[dead] * (DEAD_CHECKS - 1))  # a pause is no death
    with pytest.raises(TrainingFailure, match="the generator is dead: it changes nothing at all after 300 steps"):
        check(Health(), *[dead] * DEAD_CHECKS)


def test_a_discriminator_that_has_won_is_told():
    check(Health(), *[LOST] * (LOST_CHECKS - 1), FINE, *[LOST] * (LOST_CHECKS - 1))
    check(Health(), *[LOST | {"valid": 0.9}] * 20)  # it wins, but the classifier is convinced
    check(Health(), *[{k: v for k, v in LOST.items() if k != "valid"}] * 20)  # nobody asked the classifier
    with pytest.raises(TrainingFailure, match=r"the discriminator has won: .* accepts 0% of them, after 500 steps"):
        check(Health(), *[LOST] * LOST_CHECKS)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e7, -1e7])
def test_an_explosion_is_told_at_checks_and_at_the_end_of_epochs(value):
    with pytest.raises(TrainingFailure, match=r"the training exploded: similarity is .* after 100 steps"):
        check(Health(), FINE | {"similarity": value})
    with pytest.raises(TrainingFailure, match=r"the training exploded: similarity is .* after epoch 3"):
        Health().on_epoch_end(2, FINE | {"similarity": value})


X, Y = make_series(24, n_steps=8)
OF_THE_PAPER = (
    "recipe=paper",
    "generator.backbone=lstm",
    "discriminator.layers=1",
    "discriminator.hidden=8",
    "weights.classification=10",
)
WEIGHTS = ("weights.similarity=1", "weights.sparsity=0.3", "weights.smoothness=1", "train.lr=0.003")
SMALL = ("generator.hidden=6", "train.epochs=3", "train.batch_size=8")
TINY = sp.SparceConfig.tiny().override(*OF_THE_PAPER, *WEIGHTS, *SMALL)


def sparce(config=TINY, **kwargs):
    return sp.Sparce(sp.wrap(MeanModule(), n_classes=3), config, **kwargs)


def stillborn(monkeypatch, births):
    """Make the first few generators dead from the start: both ReLUs silent for good. Return all that were built."""
    built = []

    def build(**sizes):
        generator = Generator(**sizes)
        built.append(generator.head.positive.weight.detach().clone())
        if len(built) <= births:
            for side in (generator.head.positive, generator.head.negative):
                torch.nn.init.constant_(side.bias, -100.0)
        return generator

    monkeypatch.setattr(adversarial, "Generator", build)
    return built


@pytest.mark.parametrize("every", [1, 100], ids=["told by checks", "told at the end"])
def test_a_dead_generator_is_started_again_once_from_other_weights(every, monkeypatch, caplog, tmp_path):
    built = stillborn(monkeypatch, 1)
    with caplog.at_level(logging.WARNING):
        ex = sparce(TINY.override(f"train.check_every={every}")).fit(X, Y, checkpoint=tmp_path)
    assert len(built) == 2 and not torch.equal(*built)
    said = [r.getMessage() for r in caplog.records if r.name == adversarial.__name__]
    told = [message for message in said if "starting again" in message]
    assert len(told) == 1
    assert told[0].startswith("the generator is dead") and told[0].endswith("starting again from other weights")
    assert len(ex.history_["generator"]) == 3
    assert ex.explain(X, target=1).changed.any()


def test_a_second_death_is_an_error_that_says_what_to_try(monkeypatch):
    built = stillborn(monkeypatch, 99)
    with pytest.raises(
        TrainingError, match=r"the generator is dead.*ended the same way. Try a smaller train.lr, a larger"
    ):
        sparce(TINY.override("train.check_every=1")).fit(X, Y)
    assert len(built) == 2


def test_an_exploding_loss_is_an_error_also_in_a_short_training(caplog):
    ex = sparce(terms={"mine": LossTerm(1.0, lambda q, c: 1e9 + c.sum((1, 2)))})
    with pytest.raises(TrainingError, match=r"exploded: mine is 1e\+09 after epoch 1; a second start .* Try"):
        ex.fit(X, Y)
    assert "starting again" in caplog.text
    with pytest.raises(sp.SparcetsError, match="not fitted yet"):
        ex.explain(X, target=1)


def test_features_that_stay_silent_are_reported_and_remembered(monkeypatch, tmp_path, caplog):
    def build(**sizes):
        generator = Generator(**sizes)
        for side in (generator.head.positive, generator.head.negative):
            side.bias.data[3] = -100.0
        return generator

    monkeypatch.setattr(adversarial, "Generator", build)
    with caplog.at_level(logging.INFO):
        ex = sparce().fit(X, Y)
    names = ", ".join(ex.silent_features_)
    assert "f3" in ex.silent_features_
    assert f"never changed by the generator: {names}" in caplog.text
    assert f"Never changed by the generator: {names}." in ex.summary()
    ex.save(tmp_path)
    again = sp.load(tmp_path, classifier=ex.classifier)
    assert again.silent_features_ == ex.silent_features_ and again.summary() == ex.summary()
