"""A training that was cut off goes on as if nothing had happened, to the bit; what is not its own is refused."""

import subprocess
import sys

import pytest
import safetensors.numpy
import torch

import sparcets as sp
from sparcets.errors import FileFormatError, StorageError
from sparcets.explainers import adversarial
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule
from sparcets.training.cuda import CapturedStep
from sparcets.training.checkpoint import FILE
from sparcets.training.losses import LossTerm

X, Y = make_series(24, n_steps=8)
# Two layers, so that dropout acts; three steps in an epoch.
CONFIG = sp.SparceConfig.tiny().override(
    "recipe=paper",
    "generator.backbone=lstm",
    "discriminator.layers=1",
    "generator.hidden=6",
    "generator.layers=2",
    "generator.dropout=0.4",
    "train.epochs=5",
    "train.batch_size=8",
)

DIES = """
import os, sys
import sparcets as sp
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule
from sparcets.training.cuda import CapturedStep
plain, taken = CapturedStep.update, []
def update(self, batch):
    taken.append(1)
    if len(taken) == 8:  # the second step of the third epoch
        os.kill(os.getpid(), 9)
    return plain(self, batch)
CapturedStep.update = update
config = sp.SparceConfig.from_dict(eval(sys.argv[2]))
sp.Sparce(sp.wrap(MeanModule(), n_classes=3), config).fit(*make_series(24, n_steps=8), checkpoint=sys.argv[1])
"""


def sparce(config=CONFIG, *, sharpness=10.0, **kwargs):
    return sp.Sparce(sp.wrap(MeanModule(sharpness=sharpness), n_classes=3), config, **kwargs)


@pytest.fixture
def cut_off(interrupted):
    """Return a function that fits, and is interrupted before the given step."""

    def fit_until(at, explainer, folder, **kwargs):
        with interrupted(at):
            explainer.fit(X, Y, checkpoint=folder, **kwargs)

    return fit_until


def assert_same(a, b):
    assert a.history_ == b.history_
    for name, value in a._generator.state_dict().items():
        assert torch.equal(value, b._generator.state_dict()[name]), name


def test_a_killed_process_is_resumed_to_the_bit(tmp_path):
    died = subprocess.run(
        [sys.executable, "-c", DIES, str(tmp_path), repr(CONFIG.to_dict())], capture_output=True, check=False
    )
    assert died.returncode == -9, died.stderr.decode()
    assert (tmp_path / FILE).exists()
    resumed = sparce().fit(X, Y, checkpoint=tmp_path)
    whole = sparce().fit(X, Y)
    assert_same(resumed, whole)
    assert len(whole.history_["generator"]) == 5


@pytest.mark.parametrize("at", [2, 5, 15], ids=["in the first epoch", "in the second", "in the last"])
def test_wherever_it_is_cut_off_the_result_is_the_same(at, tmp_path, cut_off):
    cut_off(at, sparce(), tmp_path)
    assert_same(sparce().fit(X, Y, checkpoint=tmp_path), sparce().fit(X, Y))


def test_cut_off_twice_is_the_same_too(tmp_path, cut_off):
    cut_off(5, sparce(), tmp_path)
    cut_off(5, sparce(), tmp_path)  # two epochs further
    assert_same(sparce().fit(X, Y, checkpoint=tmp_path), sparce().fit(X, Y))


def test_a_finished_training_is_not_repeated(tmp_path, monkeypatch):
    first = sparce().fit(X, Y, checkpoint=tmp_path)
    monkeypatch.setattr(CapturedStep, "update", lambda *a: pytest.fail("trained again"))
    assert_same(sparce().fit(X, Y, checkpoint=tmp_path), first)


def test_early_stopping_remembers_what_it_saw_before_the_cut(tmp_path, cut_off, monkeypatch):
    # Nothing improves by more than the learning rate allows, so that it stops after its first epoch and three more.
    config = CONFIG.override("train.epochs=9", "train.patience=3", "train.lr=1e-9", "generator.dropout=0.0")
    whole = sparce(config).fit(X, Y)
    assert len(whole.history_["generator"]) < 9
    cut_off(8, sparce(config), tmp_path)
    assert_same(sparce(config).fit(X, Y, checkpoint=tmp_path), whole)
    monkeypatch.setattr(CapturedStep, "update", lambda *a: pytest.fail("it had stopped"))
    assert_same(sparce(config).fit(X, Y, checkpoint=tmp_path), whole)


def test_a_second_attempt_is_resumed_as_the_second(tmp_path, cut_off, monkeypatch):
    plain = adversarial.Health.on_epoch_end
    failures = []

    def fail_in_the_second_epoch(self, epoch, logs):
        if epoch == 1 and not failures:
            failures.append(epoch)
            raise adversarial.TrainingFailure("it failed")
        plain(self, epoch, logs)

    monkeypatch.setattr(adversarial.Health, "on_epoch_end", fail_in_the_second_epoch)
    cut_off(6 + 8, sparce(), tmp_path)  # two epochs of the first attempt, two and a half of the second
    resumed = sparce().fit(X, Y, checkpoint=tmp_path)
    failures.clear()
    assert_same(resumed, sparce().fit(X, Y))


@pytest.mark.parametrize(
    "other",
    [
        lambda folder: sparce(CONFIG.override("seed=1")).fit(X, Y, checkpoint=folder),
        lambda folder: sparce(CONFIG.override("train.lr=1e-4")).fit(X, Y, checkpoint=folder),
        lambda folder: sparce().fit(X + 1, Y, checkpoint=folder),
        lambda folder: sparce().fit(X, (Y + 1) % 3, checkpoint=folder),
        lambda folder: sparce().fit(X, Y, checkpoint=folder, constraints=sp.Constraints(direction={"f3": "up"})),
        lambda folder: sparce(terms={"mine": LossTerm(1.0, lambda q, c: c.mean((1, 2)))}).fit(X, Y, checkpoint=folder),
    ],
    ids=["seed", "lr", "series", "labels", "constraints", "terms"],
)
def test_a_checkpoint_of_another_training_is_refused(other, tmp_path, cut_off):
    cut_off(5, sparce(), tmp_path)
    before = (tmp_path / FILE).read_bytes()
    with pytest.raises(FileFormatError, match=r"other settings or data. Choose another folder, or remove it"):
        other(tmp_path)
    assert (tmp_path / FILE).read_bytes() == before


def test_a_checkpoint_for_another_classifier_is_refused(tmp_path, cut_off):
    cut_off(5, sparce(), tmp_path)
    with pytest.raises(FileFormatError, match="belongs to a training for another classifier"):
        sparce(sharpness=5.0).fit(X, Y, checkpoint=tmp_path)


def test_a_damaged_checkpoint_is_refused(tmp_path, cut_off):
    cut_off(5, sparce(), tmp_path)
    whole = (tmp_path / FILE).read_bytes()
    for damaged in (whole[:-100], b"", b"no checkpoint at all" * 50):
        (tmp_path / FILE).write_bytes(damaged)
        with pytest.raises(FileFormatError, match=r"no checkpoint, or it is damaged: .* Remove it"):
            sparce().fit(X, Y, checkpoint=tmp_path)
    for metadata in (None, {"other": "file"}, {"header": "[]"}, {"header": "{}"}):
        safetensors.numpy.save_file({"x": X}, tmp_path / FILE, metadata=metadata)
        with pytest.raises(FileFormatError, match="no checkpoint, or it is damaged"):
            sparce().fit(X, Y, checkpoint=tmp_path)


def test_a_place_that_cannot_be_written_is_an_error_in_words(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match="cannot write"):
        sparce().fit(X, Y, checkpoint=tmp_path / "file")


def test_a_disk_that_is_full_leaves_the_last_checkpoint_whole(tmp_path, cut_off):
    resource = pytest.importorskip("resource")
    cut_off(5, sparce(), tmp_path)
    before = (tmp_path / FILE).read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, hard))
    try:
        with pytest.raises(StorageError, match="cannot write"):
            sparce().fit(X, Y, checkpoint=tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (tmp_path / FILE).read_bytes() == before
    assert [f.name for f in tmp_path.iterdir() if f.is_file()] == [FILE]  # nothing half-written stays
    assert_same(sparce().fit(X, Y, checkpoint=tmp_path), sparce().fit(X, Y))
