"""Saved classifiers: equal predictions, clear words for damaged folders, nothing lost on a full disk."""

import json
import math
import shutil

import numpy as np
import pytest
import torch

import sparcets as sp
from sparcets.core.errors import CapabilityError, FileFormatError, NotFittedError
from sparcets.models.network import FILES
from sparcets.testing.data import make_series
from sparcets.training import ARCHITECTURES

HEADER = FILES.header
X, Y = make_series(30, n_steps=12)
WORDS = np.array(["calm", "wild", "brisk"])[Y]


def fit(architecture="fcn", series=X, labels=WORDS, **changes):
    tiny = {**sp.ClassifierConfig.tiny().to_dict(), "device": "cpu", "epochs": 1, **changes}
    return sp.TorchClassifier(architecture, sp.ClassifierConfig.from_dict(tiny)).fit(series, labels)


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
        (lambda f: (f / HEADER).unlink(), r"holds no classifier.json, so it is not a saved classifier"),
        (lambda f: (f / HEADER).write_text("{"), r"classifier.json is not a saved classifier"),
        (lambda f: rewrite(f, lambda h: h.update(format=1)), r"has format 1, this version reads format 2"),
        (lambda f: rewrite(f, lambda h: h.pop("scaler")), r"damaged classifier: KeyError: 'scaler'"),
        (lambda f: rewrite(f, lambda h: h.pop("validation_rows")), r"damaged classifier: KeyError: 'validation_rows'"),
        (lambda f: rewrite(f, lambda h: h.update(validation_rows=[-1])), r"validation_rows are not indices of series"),
        (lambda f: rewrite(f, lambda h: h.update(class_names=[])), r"no classifier has the classes"),
        (lambda f: rewrite(f, lambda h: h.update(architecture="mlp")), r"damaged classifier: .* no architecture 'mlp'"),
        (lambda f: rewrite(f, lambda h: h["config"].update(hiden=3)), r"damaged classifier: .* unknown key 'hiden'"),
        (lambda f: rewrite(f, lambda h: h["class_names"].append("x")), r"damaged classifier: .*size mismatch"),
        (
            lambda f: weights(f).write_bytes(b""),
            r"was changed or damaged .* Restore it from a copy",
        ),
        (lambda f: fit("tcn").save(f / "tcn") or shutil.copy(weights(f / "tcn"), weights(f)), r"its sha256 is not"),
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
