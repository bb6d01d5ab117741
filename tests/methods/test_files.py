"""Saved explainers: the same answers, clear words for damaged folders and wrong classifiers, nothing lost."""

import math
import shutil

import numpy as np
import pytest

import sparcets as sp
from sparcets.core.errors import (
    CapabilityError,
    ConstraintError,
    FeatureMismatchError,
    FileFormatError,
    LabelError,
    UnknownNameError,
)
from sparcets.io.files import digest_of_arrays
from sparcets.methods.folder import FILES
from sparcets.testing.data import make_series
from sparcets.testing.mocks import mean_proba
from tests.saved import rewrite
from tests.scripted import Scripted

FILE = FILES.file
X, Y = make_series(30, n_steps=8)
QUERIES = X[Y != 1]
CLASSES = ["calm", "brisk", "wild"]


def clf(**options):
    return sp.wrap(mean_proba, **(options or {"class_names": CLASSES}))


def dataset():
    return sp.Dataset.from_arrays(
        X, Y, class_names=CLASSES, feature_names=list("abcd"), units="m", sampling_rate=5, mutable=["a", "b", "c"]
    )


def saved(folder, **fit):
    ex = sp.Nearest(clf(), sp.NearestConfig(candidates=7, seed=3)).fit(dataset(), **fit)
    ex.save(folder)
    return ex


def torch_classifier(series=X, labels=Y):
    tiny = sp.ClassifierConfig.from_dict({**sp.ClassifierConfig.tiny().to_dict(), "epochs": 1})
    return sp.TorchClassifier("fcn", tiny).fit(series, labels)


@pytest.mark.parametrize("method", ["nearest", "sparcets"])
def test_series_that_lie_transposed_in_memory_are_saved_as_they_are(method, tmp_path):
    transposed = np.ascontiguousarray(X.transpose(0, 2, 1)).transpose(0, 2, 1)
    data = sp.Dataset.from_arrays(transposed, Y, class_names=CLASSES)
    assert not data.X_train.flags.c_contiguous
    kind = sp.Nearest if method == "nearest" else sp.Explainer
    ex = kind(clf(), kind.config_class.tiny()).fit(data)
    ex.save(tmp_path)
    stored = sp.load(tmp_path, clf())._state()
    for name, array in ex._state().items():
        np.testing.assert_array_equal(stored[name], array, err_msg=name)


def test_a_function_among_the_constraints_cannot_be_saved(tmp_path):
    ex = sp.Nearest(clf()).fit(X, Y, constraints=sp.Constraints(project=np.maximum))
    with pytest.raises(ConstraintError, match="'maximum' of the constraints cannot be stored"):
        ex.save(tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_lengths_and_histories_with_holes_are_kept(tmp_path):
    ex = sp.Nearest(clf()).fit(X, Y, lengths=np.full(30, 6))
    ex.history_ = {"loss": [1.0, math.nan]}
    ex.save(tmp_path)
    again = sp.load(tmp_path, classifier=clf())
    short = np.full(len(QUERIES), 5)
    a, b = (one.explain(QUERIES, 1, lengths=short) for one in (again, ex))
    assert a.counterfactual.tobytes() == b.counterfactual.tobytes() and a.status.tolist() == b.status.tolist()
    assert again.history_["loss"][0] == 1.0 and math.isnan(again.history_["loss"][1])


def other_arrays(folder):
    ex = sp.Nearest(clf()).fit(X[:, :5], Y)
    state = ex._state()
    rewrite(folder / FILE, lambda h: h.update(arrays=digest_of_arrays(state)), **state)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: shutil.rmtree(f), r"holds no explainer.safetensors, so it is not a saved explainer"),
        (lambda f: (f / FILE).write_text("7"), r"explainer.safetensors is not a saved explainer, or it is damaged"),
        (lambda f: (f / FILE).write_bytes((f / FILE).read_bytes()[:-1]), r"was changed or damaged after it was writt"),
        (other_arrays, r"damaged explainer: ValueError: arrays of shapes .*\(30, 5, 4\).* do not fit 30 series, 8"),
        (lambda f: rewrite(f / FILE, lambda h: h.update(history=3)), r"damaged explainer: AttributeError"),
    ],
)
def test_a_damaged_folder_says_so(damage, message, tmp_path):
    saved(tmp_path / "ex")
    damage(tmp_path / "ex")
    with pytest.raises(FileFormatError, match=message):
        sp.load(tmp_path / "ex", classifier=clf())


def test_a_method_that_is_not_installed_here_is_no_damage(tmp_path):
    Scripted(clf()).fit(X, Y).save(tmp_path)
    with pytest.raises(UnknownNameError, match=r"no explainer 'scripted'.* Known: .*nearest"):
        sp.load(tmp_path, classifier=clf())


@pytest.mark.parametrize(
    ("classifier", "error", "message"),
    [
        (lambda: mean_proba, CapabilityError, r"explains a classifier of sparcets, got function. .*sp.wrap\(model\)"),
        (lambda: clf(class_names=list("abc")), LabelError, r"for the classes calm, brisk, wild, mean_proba knows a, b"),
        (lambda: clf(n_classes=4), LabelError, r"mean_proba knows 0, 1, 2, 3"),
        (lambda: torch_classifier(X[..., :3]), FeatureMismatchError, r"series of 4 features, TorchClassifier takes 3"),
        (lambda: torch_classifier(X[:, :6]), FeatureMismatchError, r"series of 8 steps, TorchClassifier takes 6"),
    ],
)
def test_a_wrong_classifier_is_refused(classifier, error, message, tmp_path):
    saved(tmp_path)
    with pytest.raises(error, match=message):
        sp.load(tmp_path, classifier=classifier())


def test_a_classifier_that_turns_out_wrong_at_the_first_call(tmp_path):
    saved(tmp_path)
    ex = sp.load(tmp_path, classifier=sp.wrap(lambda X: np.full((len(X), 4), 0.25)))  # number of classes not known yet
    with pytest.raises(LabelError, match="this Nearest was fitted for the classes calm, brisk, wild"):
        ex.explain(QUERIES, target=1)
