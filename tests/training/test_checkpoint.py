"""A training that was cut off goes on as if nothing had happened, to the bit; damaged checkpoints are refused."""

import pytest
import torch

import sparcets as sp
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule
from sparcets.training.checkpoint import FILE, Checkpoint, delete_checkpoint
from sparcets.training.loop import History
from sparcets.training.losses import LossTerm
from tests.campaigns.folders import snapshot

X, Y = make_series(24, n_steps=8)
# Two layers, so that dropout acts; three steps in an epoch.
CONFIG = sp.SparceConfig.tiny().override(
    "generator.hidden=6", "generator.layers=2", "generator.dropout=0.4", "train.epochs=5", "train.batch_size=8"
)


class Sparce(sp.Sparce):
    """Sparce that counts the steps of its training."""

    def __init__(self, config=CONFIG):
        self.steps = 0
        classifier = sp.wrap(MeanModule(), n_classes=3)
        super().__init__(classifier, config, domain_losses={"steps": LossTerm(1.0, self.count)})

    @property
    def method(self):
        return "sparce"

    def count(self, query, counterfactual):
        self.steps += 1
        return 0 * counterfactual.sum((1, 2))


@pytest.fixture
def cut_off(interrupted):
    """Return a function that fits, and is interrupted before the given step."""

    def fit_until(at, folder, config=CONFIG):
        with interrupted(at):
            Sparce(config).fit(X, Y, checkpoint=folder)

    return fit_until


@pytest.fixture
def saved(tmp_path_factory):
    """Return a function that gives the files of a fitted explainer: weights, settings and history."""

    def files(explainer):
        folder = tmp_path_factory.mktemp("saved")
        explainer.save(folder)
        return {file.name: file.read_bytes() for file in folder.iterdir()}

    return files


@pytest.mark.parametrize("at", [[2], [15], [5, 5]], ids=["first epoch", "last", "twice"])
def test_wherever_it_is_cut_off_the_result_is_the_same(at, tmp_path, cut_off, saved):
    for step in at:
        cut_off(step, tmp_path)
    assert saved(Sparce().fit(X, Y, checkpoint=tmp_path)) == saved(Sparce().fit(X, Y))


def test_early_stopping_takes_the_epochs_before_the_cut_into_account(tmp_path, cut_off, saved):
    # Nothing improves by more than the learning rate allows, so that it stops after its first epoch and three more.
    config = CONFIG.override("train.epochs=9", "train.patience=3", "train.lr=1e-9", "generator.dropout=0.0")
    whole = Sparce(config).fit(X, Y)
    assert len(whole.history_["generator"]) < 9
    cut_off(8, tmp_path, config)
    assert saved(Sparce(config).fit(X, Y, checkpoint=tmp_path)) == saved(whole)
    stopped = Sparce(config).fit(X, Y, checkpoint=tmp_path)
    assert saved(stopped) == saved(whole) and stopped.steps == 0


def write(folder, identity):
    """Write a checkpoint of nothing."""
    history, proba = History(), torch.zeros(1)
    Checkpoint(folder, {}, {}, history, identity=identity, reference_proba=proba).on_epoch_end(0, {})


def test_to_forget_removes_the_checkpoint_of_this_training_alone(tmp_path):
    for name, identity in ((".", "this"), ("mine", "this"), ("other", "that")):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        write(folder, identity)
        (folder / "other.txt").write_text("stays")
    before = snapshot(tmp_path)
    delete_checkpoint(tmp_path / "other", "this")
    assert snapshot(tmp_path) == before
    delete_checkpoint(tmp_path, "this")
    assert snapshot(tmp_path) == {name: facts for name, facts in before.items() if name != FILE}
    delete_checkpoint(tmp_path, "this")  # nothing to remove is no error
    (tmp_path / FILE).write_bytes(b"of another program")
    delete_checkpoint(tmp_path, "this")
    assert (tmp_path / FILE).read_bytes() == b"of another program"


def test_a_link_stays_when_its_checkpoint_is_removed(tmp_path):
    write(tmp_path, "this")
    (tmp_path / FILE).rename(tmp_path / "elsewhere.safetensors")
    (tmp_path / FILE).symlink_to("elsewhere.safetensors")
    delete_checkpoint(tmp_path, "this")
    assert (tmp_path / FILE).is_symlink() and not (tmp_path / "elsewhere.safetensors").exists()
