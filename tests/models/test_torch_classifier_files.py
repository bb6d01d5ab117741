"""Saved classifiers: equal predictions, clear words for damaged folders, nothing lost on a full disk."""

import json
import math
import shutil
from contextlib import contextmanager

import numpy as np
import pytest
import torch

import sparcets as sp
from sparcets.core.errors import CapabilityError, FileFormatError, NotFittedError, StorageError
from sparcets.models.network import FILES
from sparcets.testing.data import make_series
from sparcets.training import ARCHITECTURES

resource = pytest.importorskip("resource")  # limits on file sizes, on Unix alone

HEADER = FILES.header
X, Y = make_series(30, n_steps=12)
WORDS = np.array(["calm", "wild", "brisk"])[Y]


def fit(architecture="fcn", series=X, labels=WORDS, **changes):
    tiny = {**sp.ClassifierConfig.tiny().to_dict(), "device": "cpu", "epochs": 1, **changes}
    return sp.TorchClassifier(architecture, sp.ClassifierConfig.from_dict(tiny)).fit(series, labels)


@contextmanager
def disk_with_room_for(n_bytes):
    """Let no file grow beyond a size: the system itself refuses, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def weights(folder):
    (file,) = folder.glob("weights-*.safetensors")
    return file


def rewrite(folder, change):
    header = json.loads((folder / HEADER).read_text())
    del header["sha256"]  # as of a file written by hand
    change(header)
    (folder / HEADER).write_text(json.dumps(header))


@pytest.mark.parametrize("architecture", list(ARCHITECTURES))
def test_a_loaded_classifier_predicts_the_same_bit_for_bit(architecture, tmp_path):
    clf = fit(architecture, X * 1e3 + 17, layers=2, dropout=0.3)
    clf.save(tmp_path / "a" / "b")
    state = torch.get_rng_state()
    again = sp.load_classifier(tmp_path / "a" / "b", device="cpu")
    assert torch.equal(torch.get_rng_state(), state)
    lengths = np.full(30, 7)
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    np.testing.assert_array_equal(again.predict_proba(X, lengths), clf.predict_proba(X, lengths))
    assert (again.class_names, again.named, again.n_steps, again.n_features) == (("brisk", "calm", "wild"), True, 12, 4)
    assert again.history_ == clf.history_ and again.config == clf.config and repr(again) == repr(clf)
    again.save(tmp_path / "c")
    for file in (HEADER, weights(tmp_path / "c").name):
        assert (tmp_path / "c" / file).read_bytes() == (tmp_path / "a" / "b" / file).read_bytes()


def test_nothing_is_pickled_and_only_two_files_are_written(tmp_path):
    fit().save(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == [HEADER, weights(tmp_path).name]
    assert json.loads((tmp_path / HEADER).read_text())["class_names"] == ["brisk", "calm", "wild"]
    assert b"pickle" not in weights(tmp_path).read_bytes()


def test_a_history_with_values_that_are_no_numbers_is_saved_all_the_same(tmp_path):
    clf = fit()
    clf.history_["loss"] = [1.0, math.nan]
    clf.save(tmp_path)
    loss = sp.load_classifier(tmp_path).history_["loss"]
    assert loss[0] == 1.0 and math.isnan(loss[1])


def test_what_is_not_fitted_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError):
        sp.TorchClassifier("fcn").save(tmp_path / "x")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: shutil.rmtree(f), r"holds no classifier.json, so it is not a saved classifier"),
        (lambda f: (f / HEADER).unlink(), r"holds no classifier.json"),
        (lambda f: (f / HEADER).write_text("{"), r"classifier.json is not a saved classifier"),
        (lambda f: (f / HEADER).write_bytes(b"\xff\xfe"), r"is not a saved classifier"),
        (lambda f: (f / HEADER).write_text("[1]"), r"is a damaged classifier: TypeError"),
        (lambda f: (f / HEADER).write_text("{}"), r"is a damaged classifier: KeyError: 'format'"),
        (
            lambda f: weights(f).unlink(),
            r"damaged classifier: .*json belongs to .*weights-.*, which cannot be read: No",
        ),
        (
            lambda f: weights(f).write_bytes(weights(f).read_bytes()[:-50]),
            r"weights-.* its sha256 is not the one in .*json",
        ),
        (
            lambda f: weights(f).write_bytes(b""),
            r"was changed or damaged after it was written.* Restore it from a copy",
        ),
        (
            lambda f: fit("tcn").save(f / "tcn") or shutil.copy(weights(f / "tcn"), weights(f)),
            r"its sha256 is not the one in",
        ),
        (
            lambda f: (f / HEADER).write_text((f / HEADER).read_text().replace("calm", "calx")),
            r"does not match its sha",
        ),
        (lambda f: rewrite(f, lambda h: h.update(format=99)), r"has format 99, this version reads format 2"),
        (lambda f: rewrite(f, lambda h: h.pop("scaler")), r"damaged classifier: KeyError: 'scaler'"),
        (lambda f: rewrite(f, lambda h: h.update(scaler=[1])), r"damaged classifier: TypeError"),
        (lambda f: rewrite(f, lambda h: h.update(n_steps="x")), r"damaged classifier: ValueError"),
        (lambda f: rewrite(f, lambda h: h.update(history=[])), r"damaged classifier: AttributeError"),
        (lambda f: rewrite(f, lambda h: h.update(architecture="mlp")), r"damaged classifier: .* no architecture 'mlp'"),
        (lambda f: rewrite(f, lambda h: h["config"].update(hiden=3)), r"damaged classifier: .* unknown key 'hiden'"),
        (
            lambda f: rewrite(f, lambda h: h["class_names"].append("x")),
            r"damaged classifier: RuntimeError.*size mismatch",
        ),
    ],
)
def test_a_damaged_folder_says_so(damage, message, tmp_path):
    fit().save(tmp_path / "clf")
    damage(tmp_path / "clf")
    with pytest.raises(FileFormatError, match=rf"(?s){message}"):
        sp.load_classifier(tmp_path / "clf", device="cpu")


def test_a_device_that_is_not_there_is_not_the_folders_fault(tmp_path):
    fit().save(tmp_path)
    with pytest.raises(CapabilityError):
        sp.load_classifier(tmp_path, device="gpu")


@pytest.mark.parametrize("room", ["for nothing", "for the weights only"])
def test_a_full_disk_leaves_the_last_saved_classifier_whole(room, tmp_path):
    old, new = fit(), fit(series=X * 100, seed=1)
    old.save(tmp_path)
    files = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    size = len(files[weights(tmp_path).name]) + 64
    if room == "for the weights only":
        new.history_ = {"loss": [0.5] * size}
    with disk_with_room_for(100 if room == "for nothing" else size), pytest.raises(StorageError, match="cannot write"):
        new.save(tmp_path)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == files
    np.testing.assert_array_equal(sp.load_classifier(tmp_path, device="cpu").predict_proba(X), old.predict_proba(X))


def test_a_place_that_cannot_be_written_to(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"cannot write .*file.*: "):
        fit().save(tmp_path / "file" / "folder")
