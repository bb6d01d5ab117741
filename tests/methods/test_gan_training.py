"""Trainings of a generator: started again once if they fail, resumed where they were, refused if they are others'."""

import logging

import pytest
import torch

import sparcets as sp
from sparcets.core.errors import FileFormatError
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule
from sparcets.training.checkpoint import FILE
from sparcets.training.losses import LossTerm

X, Y = make_series(24, n_steps=8)
SMALL = ("generator.hidden=6", "train.epochs=3", "train.batch_size=8")  # three steps in an epoch
CONFIG = sp.SparceConfig.tiny().override(*SMALL)


def classifier(sharpness=10.0):
    return sp.wrap(MeanModule(sharpness=sharpness), n_classes=3)


def constant(query, counterfactual):
    return 0 * counterfactual.sum((1, 2))


class Stillborn(sp.Sparce):
    """Sparce whose first few generators are dead from the start: both ReLUs are silent for good."""

    def __init__(self, births, config):
        super().__init__(classifier(), config)
        self.births, self.built = births, []

    def _build_generator(self, *args, **kwargs):
        generator = super()._build_generator(*args, **kwargs)
        self.built.append(generator.head.positive.weight.detach().clone())
        if len(self.built) <= self.births:
            for side in (generator.head.positive, generator.head.negative):
                torch.nn.init.constant_(side.bias, -100.0)
        return generator


@pytest.mark.parametrize("every", [1, 100], ids=["found by checks", "found at the end"])
def test_a_dead_generator_is_started_again_once_from_other_weights(every, caplog, tmp_path):
    ex = Stillborn(1, CONFIG.override(f"train.check_every={every}"))
    with caplog.at_level(logging.WARNING):
        ex.fit(X, Y, checkpoint=tmp_path)
    assert len(ex.built) == 2 and not torch.equal(*ex.built)
    (message,) = [r.getMessage() for r in caplog.records if r.getMessage().startswith("the generator is dead")]
    assert message.endswith("starting again from other weights") and len(ex.history_["generator"]) == 3
    assert ex.explain(X, target=1).changed.any()


def test_a_second_attempt_is_resumed_as_the_second(interrupted, tmp_path):
    steps = []

    def fails_once(query, counterfactual):
        steps.append(1)
        return constant(query, counterfactual) + (1e9 if len(steps) == 2 else 0)

    def build():
        domain_losses = {"mine": LossTerm(1.0, fails_once)}
        return sp.Sparce(classifier(), CONFIG.override("train.epochs=2"), domain_losses=domain_losses)

    whole = build().fit(X, Y)
    per_epoch = len(steps) // 3  # one epoch of the first attempt, two of the second
    assert len(steps) == 3 * per_epoch
    steps.clear()
    with interrupted(2 * per_epoch + 1):
        build().fit(X, Y, checkpoint=tmp_path / "training")
    resumed = build().fit(X, Y, checkpoint=tmp_path / "training")
    assert len(steps) == 3 * per_epoch
    for name, explainer in (("whole", whole), ("resumed", resumed)):
        explainer.save(tmp_path / name)
    for file in (tmp_path / "whole").iterdir():
        assert (tmp_path / "resumed" / file.name).read_bytes() == file.read_bytes()


OTHERS = {
    "seed": (("seed=1",), {}),
    "lr": (("train.lr=1e-4",), {}),
    "series": ((), {"X": X + 1}),
    "labels": ((), {"y": (Y + 1) % 3}),
    "constraints": ((), {"constraints": sp.Constraints(direction={"f3": "up"})}),
    "domain losses": ((), {"domain_losses": {"mine": LossTerm(1.0, constant)}}),
    "classifier": ((), {"sharpness": 5.0}),
}


def test_a_checkpoint_of_another_training_is_refused(interrupted, tmp_path):
    def fit(settings=(), *, sharpness=10.0, domain_losses=None, **given):
        config = CONFIG.override("train.epochs=2", *settings)
        explainer = sp.Sparce(classifier(sharpness), config, domain_losses=domain_losses)
        explainer.fit(**{"X": X, "y": Y, **given}, checkpoint=tmp_path)

    with interrupted(4):  # the first step of the second epoch
        fit()
    before = (tmp_path / FILE).read_bytes()
    for name, (settings, given) in OTHERS.items():
        words = "for another classifier" if name == "classifier" else "with other settings or data"
        with pytest.raises(FileFormatError, match=rf"{words}. Choose another folder, or remove it"):
            fit(settings, **given)
        assert (tmp_path / FILE).read_bytes() == before, name
    fit()
