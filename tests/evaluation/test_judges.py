"""Judges: one of each family, the network of another architecture than the explained one; trained once and cached."""

import logging
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest

import sparcets as sp
from sparcets.evaluation import judges as module
from sparcets.evaluation.families import FAMILIES, FamilyJudge
from sparcets.evaluation.judges import JUDGES, accuracies, find_judges
from sparcets.testing.data import make_series
from sparcets.testing.mocks import mean_proba
from sparcets.training import ARCHITECTURES

DATA = sp.Dataset.from_arrays(*make_series(90))
NEURAL = ("neural",)
needs_aeon = pytest.mark.skipif(find_spec("aeon") is None, reason="needs aeon: pip install 'sparcets[uea]'")


@pytest.fixture(autouse=True)
def _small_judges(monkeypatch):
    monkeypatch.setattr(module, "JUDGE_CONFIG", replace(module.JUDGE_CONFIG, hidden=4, epochs=2))
    empty_memory(monkeypatch)


@pytest.fixture
def no_training(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a judge was trained again")

    return lambda: monkeypatch.setattr(sp.TorchClassifier, "fit", refuse)


def empty_memory(monkeypatch):
    """Empty the cache of this process, as in a new one."""
    monkeypatch.setattr(module, "_trained", {})
    monkeypatch.setattr(module, "_fitted", {})


def test_the_explained_architecture_is_excluded(tmp_path):
    assert set(JUDGES) <= set(ARCHITECTURES)
    fcn, bilstm = sp.TorchClassifier("fcn"), sp.TorchClassifier("bilstm")
    for classifier, architecture in ((fcn, "bigru"), (bilstm, "fcn"), (sp.wrap(mean_proba), "fcn"), (None, "fcn")):
        assert find_judges(DATA, classifier, families=NEURAL, cache=tmp_path)["neural"].architecture == architecture


@needs_aeon
def test_one_judge_of_each_family(tmp_path, no_training, monkeypatch):
    judges = find_judges(DATA, cache=tmp_path)
    assert tuple(judges) == FAMILIES
    assert len(list(tmp_path.iterdir())) == 1  # the network; nothing else is stored
    no_training()
    monkeypatch.setattr(FamilyJudge, "fit", lambda *_: pytest.fail("a judge was fitted again"))
    again = find_judges(sp.Dataset.from_arrays(*make_series(90)), cache=tmp_path)
    assert all(again[family] is judge for family, judge in judges.items())


def test_judges_learn_from_a_part_of_large_data(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_TRAINING", 60)
    sizes = []
    fit = sp.TorchClassifier.fit
    monkeypatch.setattr(
        sp.TorchClassifier, "fit", lambda self, data, **k: sizes.append(np.bincount(data.y_train)) or fit(self, data)
    )
    lengths = np.full(len(DATA.X_train), 15)
    find_judges(replace(DATA, lengths_train=lengths), families=["neural", "statistics"], cache=tmp_path)
    assert [n.tolist() for n in sizes] == [[20, 20, 20]]


def test_a_later_process_finds_it_on_disk(tmp_path, no_training, monkeypatch):
    first = find_judges(DATA, families=NEURAL, cache=tmp_path)["neural"]
    empty_memory(monkeypatch)
    no_training()
    second = find_judges(DATA, families=NEURAL, cache=tmp_path)["neural"]
    assert second is not first
    np.testing.assert_array_equal(second.predict_proba(DATA.X_test), first.predict_proba(DATA.X_test))


@pytest.mark.parametrize("place", [50, -1], ids=["header", "weights"])
def test_a_damaged_entry_is_trained_again_and_repaired(tmp_path, monkeypatch, caplog, no_training, place):
    first = find_judges(DATA, families=NEURAL, cache=tmp_path)["neural"]
    (file,) = tmp_path.glob("*/classifier.safetensors")
    file.write_bytes(file.read_bytes()[:place])
    empty_memory(monkeypatch)
    with caplog.at_level(logging.WARNING):
        second = find_judges(DATA, families=NEURAL, cache=tmp_path)["neural"]
    assert "training the judge fcn again" in caplog.text
    np.testing.assert_array_equal(second.predict_proba(DATA.X_test), first.predict_proba(DATA.X_test))
    empty_memory(monkeypatch)
    no_training()
    find_judges(DATA, families=NEURAL, cache=tmp_path)


def test_a_cache_that_cannot_be_written_is_logged(tmp_path, caplog):
    (tmp_path / "file").write_text("no folder")
    with caplog.at_level(logging.WARNING):
        judges = find_judges(DATA, families=NEURAL, cache=tmp_path / "file")
    assert judges["neural"].predict(DATA.X_test).shape == (18,) and "could not be cached" in caplog.text


def test_other_data_have_other_judges(tmp_path):
    longer = {"lengths_train": np.full(len(DATA.X_train), 15), "class_names": ("a", "b", "c")}
    others = {"X_train": DATA.X_train + np.float32(1e-3), "y_train": np.roll(DATA.y_train, 1), **longer}
    for dataset in (DATA, *(replace(DATA, **{name: value}) for name, value in others.items())):
        find_judges(dataset, families=NEURAL, cache=tmp_path)
    assert len(list(tmp_path.iterdir())) == 5


def test_the_default_cache_is_the_users(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    find_judges(DATA, families=NEURAL)
    assert len(list((tmp_path / "sparcets" / "judges").glob("*/classifier.safetensors"))) == 1
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert module.judges_folder() == tmp_path / "home" / ".cache" / "sparcets" / "judges"


def test_with_few_series_the_network_with_the_lowest_loss_is_returned(tmp_path, monkeypatch):
    losses = {"fcn": 0.3, "bigru": 1.2, "resnet": 0.1, "tcn": 0.2, "transformer": 0.9}

    def fit(self, dataset, progress=None):
        self.history_ = {"validation_loss": [9.0, losses[self.architecture], float("nan")]}
        return self

    monkeypatch.setattr(sp.TorchClassifier, "fit", fit)
    monkeypatch.setattr(sp.TorchClassifier, "save", lambda self, folder: None)
    few = sp.Dataset.from_arrays(*make_series(50))

    def chosen(data, classifier=None):
        return find_judges(data, classifier, families=NEURAL, cache=tmp_path)["neural"].architecture

    assert chosen(few) == "resnet" and chosen(few, sp.TorchClassifier("resnet")) == "tcn"
    assert chosen(sp.Dataset.from_arrays(*make_series(120))) == "fcn"  # the others are not trained


def test_accuracy_by_hand():
    class ZeroJudge:
        def predict(self, X, lengths=None):
            return np.zeros(len(X), dtype=int)

    assert accuracies({"zero": ZeroJudge()}, DATA) == {"zero": np.mean(DATA.y_test == 0)}
    lopsided = replace(DATA, y_test=np.arange(18) % 6 // 5)  # every sixth series is of class 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_TEST", 6)  # of which one is of class 1
        assert accuracies({"zero": ZeroJudge()}, lopsided) == {"zero": 5 / 6}
    empty = replace(DATA, X_test=DATA.X_test[:0], y_test=DATA.y_test[:0])
    assert np.isnan(accuracies({"zero": ZeroJudge()}, empty)["zero"])
