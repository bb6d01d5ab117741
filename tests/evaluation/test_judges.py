"""Judges: other architectures than the explained one, trained once and cached in memory and on disk."""

import logging
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import sparcets as sp
from sparcets.errors import CapabilityError, ConfigError
from sparcets.evaluation import judges as module
from sparcets.evaluation.judges import JUDGES, accuracies, find_judges, judge_config
from sparcets.networks import ARCHITECTURES
from sparcets.testing.data import make_series
from sparcets.testing.mocks import mean_proba

DATA = sp.Dataset.from_arrays(*make_series(90))


@pytest.fixture(autouse=True)
def _small_judges(monkeypatch):
    monkeypatch.setattr(module, "JUDGE_CONFIG", replace(module.JUDGE_CONFIG, hidden=4, epochs=2))
    empty_memory(monkeypatch)


@pytest.fixture
def no_training(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a judge was trained again")

    return lambda: monkeypatch.setattr(sp.TorchClassifier, "fit", refuse)


def empty_memory(monkeypatch) -> None:
    """Empty the cache of this process, as in a new one."""
    monkeypatch.setattr(module, "_trained", {})


def test_the_explained_architecture_is_excluded(tmp_path):
    assert set(JUDGES) <= set(ARCHITECTURES)
    assert list(find_judges(DATA, sp.TorchClassifier("fcn"), cache=tmp_path)) == ["bigru", "resnet", "tcn"]
    assert list(find_judges(DATA, sp.TorchClassifier("bilstm"), n=2, cache=tmp_path)) == ["fcn", "bigru"]
    assert list(find_judges(DATA, sp.wrap(mean_proba), n=1, cache=tmp_path)) == ["fcn"]
    assert list(find_judges(DATA, n=1, cache=tmp_path)) == ["fcn"]


def test_a_second_call_in_the_same_process_returns_the_same_judge(tmp_path, no_training):
    first = find_judges(DATA, n=1, cache=tmp_path)["fcn"]
    no_training()
    again = sp.Dataset.from_arrays(*make_series(90))  # equal data, other arrays
    assert find_judges(again, n=1, cache=tmp_path / "elsewhere")["fcn"] is first


def test_a_later_process_finds_it_on_disk(tmp_path, no_training, monkeypatch):
    first = find_judges(DATA, n=1, cache=tmp_path)["fcn"]
    empty_memory(monkeypatch)
    no_training()
    second = find_judges(DATA, n=1, cache=tmp_path)["fcn"]
    assert second is not first
    np.testing.assert_array_equal(second.predict_proba(DATA.X_test), first.predict_proba(DATA.X_test))


@pytest.mark.parametrize("file", ["classifier.json", "weights.safetensors"])
def test_a_damaged_entry_is_trained_again_and_repaired(tmp_path, monkeypatch, caplog, no_training, file):
    first = find_judges(DATA, n=1, cache=tmp_path)["fcn"]
    next(tmp_path.glob(f"*/{file}")).write_bytes(b"{")
    empty_memory(monkeypatch)
    with caplog.at_level(logging.WARNING):
        second = find_judges(DATA, n=1, cache=tmp_path)["fcn"]
    assert "training the judge fcn again" in caplog.text
    np.testing.assert_array_equal(second.predict_proba(DATA.X_test), first.predict_proba(DATA.X_test))
    empty_memory(monkeypatch)
    no_training()
    find_judges(DATA, n=1, cache=tmp_path)


def test_an_incomplete_entry_is_trained_again(tmp_path, monkeypatch):
    find_judges(DATA, n=1, cache=tmp_path)
    next(tmp_path.glob("*/classifier.json")).unlink()  # as if the process was killed while saving
    empty_memory(monkeypatch)
    assert list(find_judges(DATA, n=1, cache=tmp_path)) == ["fcn"]


def test_a_cache_that_cannot_be_written_is_logged(tmp_path, caplog):
    (tmp_path / "file").write_text("no folder")
    with caplog.at_level(logging.WARNING):
        judges = find_judges(DATA, n=1, cache=tmp_path / "file")
    assert judges["fcn"].predict(DATA.X_test).shape == (18,)
    assert "could not be cached" in caplog.text


def test_a_cache_that_cannot_be_read_is_logged(tmp_path, monkeypatch, caplog):
    def denied(self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "is_dir", denied)
    with caplog.at_level(logging.WARNING):
        find_judges(DATA, n=1, cache=tmp_path)
    assert "Permission denied" in caplog.text


@pytest.mark.parametrize(
    "other",
    [
        replace(DATA, X_train=DATA.X_train + np.float32(1e-3)),
        replace(DATA, y_train=np.roll(DATA.y_train, 1)),
        replace(DATA, class_names=("a", "b", "c")),
        replace(DATA, lengths_train=np.full(len(DATA.X_train), 15)),
    ],
    ids=["series", "labels", "classes", "lengths"],
)
def test_other_data_have_other_judges(tmp_path, other):
    find_judges(DATA, n=1, cache=tmp_path)
    find_judges(other, n=1, cache=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


def test_the_test_part_is_not_used(tmp_path):
    find_judges(DATA, n=1, cache=tmp_path)
    find_judges(replace(DATA, X_test=DATA.X_test * 0, y_test=DATA.y_test * 0), n=1, cache=tmp_path)
    assert len(list(tmp_path.iterdir())) == 1


def test_other_settings_have_other_judges(tmp_path, monkeypatch):
    find_judges(DATA, n=1, cache=tmp_path)
    monkeypatch.setattr(module, "JUDGE_CONFIG", replace(module.JUDGE_CONFIG, lr=5e-3))
    find_judges(DATA, n=1, cache=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


def test_the_default_cache_is_the_users(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    find_judges(DATA, n=1)
    assert len(list((tmp_path / "sparcets" / "judges").glob("*/weights.safetensors"))) == 1
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert module.judges_folder() == tmp_path / "home" / ".cache" / "sparcets" / "judges"


def test_padded_series_are_judged_within_their_lengths(tmp_path):
    X, y = make_series(90)
    padded = sp.Dataset.from_arrays(X, y, lengths=np.full(90, 14))
    judge = find_judges(padded, n=1, cache=tmp_path)["fcn"]
    noisy = padded.X_test.copy()
    noisy[:, 14:] = 50.0
    np.testing.assert_allclose(
        judge.predict_proba(noisy, padded.lengths_test), judge.predict_proba(padded.X_test, padded.lengths_test)
    )


def test_invalid_arguments_raise(tmp_path):
    for n in (0, 5, 1.5, True):
        with pytest.raises(ConfigError, match=r"from 1 to 4 \(bigru, resnet, tcn, transformer\)"):
            find_judges(DATA, sp.TorchClassifier("fcn"), n=n, cache=tmp_path)
    with pytest.raises(CapabilityError, match="no device 'tpu9'"):
        find_judges(DATA, device="tpu9", cache=tmp_path)


def test_about_the_same_number_of_steps_for_every_size(monkeypatch):
    monkeypatch.undo()  # the default settings
    for n in (1_200, 4_000, 6_000, 14_000):
        config = judge_config(n)
        steps = config.epochs * np.ceil((1 - config.validation) * n / config.batch_size)
        assert 0.9 * module.STEPS <= steps <= module.STEPS
        assert config.epochs // 6 <= config.patience < config.epochs
    assert judge_config(100).epochs == module.JUDGE_CONFIG.epochs  # at most that many epochs
    assert judge_config(40).epochs == 5 * module.JUDGE_CONFIG.epochs  # more for very few series
    assert judge_config(10**6).epochs == 10  # at least that many epochs


def test_with_few_series_the_judges_with_the_lowest_loss_are_returned(tmp_path, monkeypatch):
    losses = {"fcn": 0.3, "bigru": 1.2, "resnet": 0.1, "tcn": 0.2, "transformer": 0.9}

    def fit(self, dataset, progress=None):
        self.history_ = {"validation_loss": [9.0, losses[self.architecture], float("nan")]}
        return self

    monkeypatch.setattr(sp.TorchClassifier, "fit", fit)
    monkeypatch.setattr(sp.TorchClassifier, "save", lambda self, folder: None)
    few = sp.Dataset.from_arrays(*make_series(50))
    assert list(find_judges(few, n=3, cache=tmp_path)) == ["fcn", "resnet", "tcn"]
    assert list(find_judges(few, sp.TorchClassifier("resnet"), n=2, cache=tmp_path)) == ["fcn", "tcn"]
    many = sp.Dataset.from_arrays(*make_series(120))
    assert list(find_judges(many, n=3, cache=tmp_path)) == ["fcn", "bigru", "resnet"]  # the others are not trained


def test_judges_are_accurate(tmp_path, monkeypatch):
    monkeypatch.undo()  # the default settings
    empty_memory(monkeypatch)
    judges = find_judges(DATA, n=1, cache=tmp_path)
    assert accuracies(judges, DATA)["fcn"] > 0.9


def test_accuracy_by_hand():
    class ZeroJudge:
        def predict(self, X, lengths=None):
            return np.zeros(len(X), dtype=int)

    assert accuracies({"zero": ZeroJudge()}, DATA) == {"zero": np.mean(DATA.y_test == 0)}
    empty = replace(DATA, X_test=DATA.X_test[:0], y_test=DATA.y_test[:0])
    assert np.isnan(accuracies({"zero": ZeroJudge()}, empty)["zero"])


def test_the_test_suite_does_not_use_the_users_cache():
    assert module.judges_folder().is_relative_to(os.environ["XDG_CACHE_HOME"])
    assert Path.home() not in module.judges_folder().parents or "pytest" in os.environ["XDG_CACHE_HOME"]
