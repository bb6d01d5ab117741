"""Digests: what changes them, and what they notice; random damage of all files is a campaign."""

import numpy as np
import pytest

import sparcets as sp
from sparcets.core.errors import FileFormatError
from sparcets.evaluation.scores import Scores
from sparcets.io.files import add_digest, check_digest, digest_of_array, digest_of_arrays, digest_of_json
from sparcets.testing.data import make_series
from tests.saved import rewrite

X, Y = make_series(30, n_steps=8)


def test_json_and_arrays_are_compared_by_value():
    assert digest_of_json({"a": (1, 2), "b": 0.1}) == digest_of_json({"b": 0.1, "a": [1, 2]})
    assert digest_of_json({1: "x", 10: "y", 2: "z"}) == digest_of_json({"1": "x", "2": "z", "10": "y"})
    different = [1, 1.0, "1", True, None, [1], {"1": 1}, "ß", "\udcff"]
    assert len({digest_of_json(value) for value in different}) == len(different)
    array = np.arange(6.0).reshape(2, 3)
    different = [array, array.T, array.ravel(), array.astype(np.float32), -array, array.astype(str), np.array(1.0)]
    assert len({digest_of_array(a) for a in different}) == len(different)
    assert digest_of_array(np.asfortranarray(array)) == digest_of_array(array)
    assert digest_of_arrays({"a": array, "b": -array}) == digest_of_arrays({"b": -array, "a": array})
    assert digest_of_arrays({"a": array, "b": -array}) != digest_of_arrays({"b": array, "a": -array})


@pytest.mark.parametrize("data", [{}, {"a": 1}, {"a": {"sha256": "x"}}, {"digest": "0" * 64, "b": "0" * 15}])
def test_data_come_back_with_and_without_a_digest(data):
    whole = add_digest(data)
    assert list(whole)[-1] == "sha256" and check_digest(whole) == data == check_digest(data)


def test_changed_data_are_noticed():
    whole = add_digest({"a": 1, "b": 2})
    digest = whole.pop("sha256")
    for changed in (
        {"a": 1, "b": 3, "sha256": digest},
        {"a": 1, "sha256": digest},
        {"a": 1, "b": 2, "c": 3, "sha256": digest},
        {"a": 1, "b": 2, "sha254": digest},
        {"a": 1, "b": 2, "sha254": f"{digest[:20]}x{digest[21:]}"},
        {"a": 1, "b": f"2{digest[35:]}"},
    ):
        with pytest.raises(ValueError, match="does not match its sha256"):
            check_digest(changed)


def test_what_was_saved_with_another_classifier_is_refused(tmp_path):
    tiny = sp.ClassifierConfig.tiny().override("epochs=1", "hidden=4", "device=cpu")
    one = sp.TorchClassifier("fcn", tiny).fit(X, Y)
    other = sp.TorchClassifier("fcn", one.config.override("seed=1")).fit(X, Y)
    sp.Nearest(one).fit(X, Y).save(tmp_path / "ex")
    one.save(tmp_path / "one")
    other.save(tmp_path / "two")
    sp.load(tmp_path / "ex", classifier=sp.load_classifier(tmp_path / "one"))
    with pytest.raises(FileFormatError, match=r"explainer.safetensors was fitted to another classifier than the one"):
        sp.load(tmp_path / "ex", classifier=other)
    weights = {name: weight.numpy() for name, weight in other.weights().items()}
    rewrite(tmp_path / "one" / "classifier.safetensors", lambda header: None, **weights)
    with pytest.raises(FileFormatError, match=r"classifier.safetensors was changed.* arrays do not match their sha256"):
        sp.load_classifier(tmp_path / "one", device="cpu")


def test_a_name_that_is_too_long(tmp_path):
    for read in (sp.load_dataset, sp.load_explanation, Scores.load):
        with pytest.raises(sp.SparcetsError, match="no file"):
            read(tmp_path / ("x" * 300 + ".npz"))
