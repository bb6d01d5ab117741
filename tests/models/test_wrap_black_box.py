"""Black boxes: estimators of sklearn and aeon, and callables."""

from contextlib import nullcontext

import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sparcets as sp
from sparcets.core.errors import CapabilityError, ConfigError, DataError, ModelOutputError
from sparcets.testing.data import make_series
from sparcets.testing.mocks import mean_proba

X, Y = make_series(30, n_steps=9)
WORDS = np.array(["calm", "wild", "brisk"])[Y]  # sorted: brisk, calm, wild


class Box:
    """An estimator that keeps what it was given."""

    def __init__(self, classes=None):
        if classes is not None:
            self.classes_ = np.asarray(classes)

    def predict_proba(self, X):
        self.X = X
        return np.tile([0.25, 0.75], (len(X), 1))


def forest(labels=Y):
    return RandomForestClassifier(5, random_state=0).fit(X.reshape(30, -1), labels)


def test_an_estimator_of_tables_is_given_flat_series():
    model = forest()
    clf = sp.wrap(model, layout="flat")
    np.testing.assert_array_equal(clf.predict_proba(X), model.predict_proba(X.reshape(30, -1)))
    assert clf.class_names == ("0", "1", "2") and not clf.named and clf.name == "RandomForestClassifier"


def test_a_pipeline_with_string_classes_names_the_classes_in_the_models_own_order():
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X.reshape(30, -1), WORDS)
    clf = sp.wrap(model, layout="flat")
    assert clf.class_names == ("brisk", "calm", "wild") and clf.named
    predicted = np.array(clf.class_names)[clf.predict(X)]
    np.testing.assert_array_equal(predicted, model.predict(X.reshape(30, -1)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_black_box_is_given_the_users_own_bits(dtype):
    box, series = Box(), (X[:4] + 1e-9).astype(dtype)
    sp.wrap(box).predict_proba(series)
    np.testing.assert_array_equal(box.X, series)
    assert box.X.dtype == dtype


@pytest.mark.parametrize("fails", [False, True])
def test_a_model_that_sets_the_number_of_threads_changes_it_for_nobody_else(fails, left_alone):
    """As those of aeon do, whose numba sets that of PyTorch too."""

    def model(X):
        torch.set_num_threads(3)
        if fails:
            raise ValueError("broken")
        return mean_proba(X)

    clf = sp.wrap(model)
    with left_alone(), pytest.raises(ModelOutputError, match="broken") if fails else nullcontext():
        clf.predict_proba(X)


def test_a_black_box_that_writes_into_its_input_harms_nobody():
    def careless(series):
        series[:] = 0
        return mean_proba(series)

    before = X.copy()
    sp.wrap(careless).predict_proba(X)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize(("layout", "shape"), [(None, (4, 9, 4)), ("bft", (4, 4, 9)), ("flat", (4, 36))])
def test_series_come_in_the_given_layout_in_contiguous_memory(layout, shape):
    box = Box()
    sp.wrap(box, layout=layout).predict_proba(X[:4])
    assert box.X.shape == shape and box.X.flags.c_contiguous and box.X.flags.writeable
    expected = {None: X[:4], "bft": X[:4].swapaxes(1, 2), "flat": X[:4].reshape(4, -1)}[layout]
    np.testing.assert_array_equal(box.X, expected)


@pytest.mark.parametrize("package", ["aeon", "sktime"])
def test_models_of_aeon_and_sktime_are_given_channels_first_by_themselves(package):
    theirs = type("Theirs", (Box,), {"__module__": f"{package}.classification.x"})
    derived = type("Mine", (theirs,), {"__module__": "mine"})
    piped = Box()
    piped.steps = [("scale", StandardScaler()), ("model", theirs())]
    for box in (theirs(), derived(), piped):
        clf = sp.wrap(box)
        clf.predict_proba(X)
        assert box.X.shape == (30, 4, 9)
    sp.wrap(box, layout="btf").predict_proba(X)
    assert box.X.shape == (30, 9, 4)


def test_other_models_are_not_taken_for_aeons():
    box = type("Box2", (Box,), {"__module__": "aeonian.models"})()
    box.steps = 100  # a setting of its own, no pipeline
    sp.wrap(box).predict_proba(X)
    assert box.X.shape == (30, 9, 4)


def test_a_real_classifier_of_aeon():
    classification = pytest.importorskip("aeon.classification")
    model = classification.DummyClassifier(strategy="prior").fit(X.swapaxes(1, 2), WORDS)
    clf = sp.wrap(model)
    assert clf.interface.layout == "bft" and clf.class_names == ("brisk", "calm", "wild")
    np.testing.assert_allclose(clf.predict_proba(X), 1 / 3)


def test_a_callable_returns_probabilities():
    clf = sp.wrap(mean_proba)
    np.testing.assert_array_equal(clf.predict_proba(X), mean_proba(X))
    np.testing.assert_array_equal(clf.predict(X), Y)
    assert clf.name == "mean_proba" and clf.n_classes == 3
    assert sp.wrap(lambda x: mean_proba(x).tolist(), n_classes=3).predict(X).tolist() == Y.tolist()


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x.mean(1)[:, :3] * 9, r"no probabilities \(.*\). If they are logits, wrap with output='logits'"),
        (lambda x: mean_proba(x)[:, 0], "returned one number per series; wrap what returns probabilities"),
        (lambda x: mean_proba(x)[:, :1], "returned one column"),
        (lambda x: mean_proba(x)[:7], r"got \(7, 3\) for 30 series"),
        (lambda x: mean_proba(x)[:, None], r"must return \(batch, classes\), got \(30, 1, 3\)"),
        (lambda x: mean_proba(x) * np.nan, "returned NaN or infinity"),
        (lambda x: 0.5, r"got \(\) for"),
        (lambda x: None, r"got \(\) for"),
        (lambda x: [[1.0], [0.5, 0.5]], "failed on an input of shape .* inhomogeneous"),
        (lambda x: x[:, 99], r"failed on an input of shape \(30, 9, 4\) \(layout 'btf'\): IndexError"),
    ],
)
def test_what_a_callable_returns_is_checked(function, message):
    with pytest.raises(ModelOutputError, match=message):
        sp.wrap(function).predict_proba(X)


def test_a_model_of_tables_without_its_layout_is_an_error_that_names_it():
    with pytest.raises(
        ModelOutputError, match=r"It may want another layout: layout='btf' .*'flat' for models of tables"
    ):
        sp.wrap(forest()).predict_proba(X)


def test_what_is_no_model_at_all():
    with pytest.raises(CapabilityError, match=r"list has neither predict_proba nor decision_function and is not call"):
        sp.wrap([1])
    with pytest.raises(CapabilityError, match=r"Ridge has neither .* It predicts without them, by predict\(\)"):
        sp.wrap(Ridge())
    with pytest.raises(CapabilityError, match=r"RandomForestClassifier is a class. .*\(\.\.\.\)\.fit\(X, y\)"):
        sp.wrap(RandomForestClassifier)
    with pytest.raises(ConfigError, match=r"Box returns probabilities, so it cannot have output='logits'"):
        sp.wrap(Box(), output="logits")


def test_the_layouts_are_named_after_errors_about_shapes_only():
    with pytest.raises(ModelOutputError, match="not fitted") as unfitted:
        sp.wrap(LogisticRegression(), layout="flat").predict_proba(X)
    with pytest.raises(ModelOutputError, match="missing 1 required positional argument: 'size'") as missing:
        sp.wrap(lambda series, size: series).predict_proba(X)
    for error in (unfitted, missing):
        assert "layout=" not in str(error.value)


@pytest.mark.parametrize("columns", [1, 3])
def test_a_callable_may_return_logits(columns):
    logits = 3 * X.astype(np.float64).mean(1)[:, :columns]
    clf = sp.wrap(lambda x: 3 * x.astype(np.float64).mean(1)[:, :columns], output="logits")
    both = np.concatenate([np.zeros_like(logits), logits], axis=1) if columns == 1 else logits
    np.testing.assert_allclose(clf.predict_proba(X), np.exp(both) / np.exp(both).sum(1, keepdims=True), atol=1e-9)
    with pytest.raises(ModelOutputError, match="probabilities already"):
        sp.wrap(mean_proba, output="logits").predict_proba(X)


def test_a_callable_may_return_one_probability_also_as_a_tensor():
    def one(x):
        weight = torch.ones((), dtype=torch.float64, requires_grad=True)
        return weight * torch.from_numpy(mean_proba(x).astype(np.float64))[:, 0]

    clf = sp.wrap(one, output="sigmoid")
    np.testing.assert_allclose(clf.predict_proba(X)[:, 1], mean_proba(X)[:, 0], atol=1e-9)
    with pytest.raises(ModelOutputError, match=r"returned one number per series; .*output='sigmoid'"):
        sp.wrap(one).predict_proba(X)


def test_several_labels_are_no_logits():
    with pytest.raises(
        ModelOutputError, match=r"several labels\? .*output=\('sigmoid', lambda p: p\[:, 0\]\)"
    ) as error:
        sp.wrap(lambda x: np.tile([0.9, 0.8, 0.1], (len(x), 1))).predict_proba(X)
    assert "logits" not in str(error.value)
    label = sp.wrap(lambda x: np.tile([0.9, 0.8, 0.1], (len(x), 1)), output=("sigmoid", lambda p: p[:, 1]))
    np.testing.assert_allclose(label.predict_proba(X), [[0.2, 0.8]] * 30)


@pytest.mark.parametrize(
    ("classes", "names", "named"),
    [
        (["b", "a"], ("b", "a"), True),
        ([0, 1], ("0", "1"), False),
        ([0.0, 1.0], ("0", "1"), False),
        ([1, 2], ("1", "2"), True),
        ([-1.0, 0.5], ("-1", "0.5"), True),
        ([False, True], ("False", "True"), True),
    ],
)
def test_the_names_are_the_models_own(classes, names, named):
    clf = sp.wrap(Box(classes))
    assert (clf.class_names, clf.named) == (names, named)


def test_class_names_may_translate_but_not_contradict_the_models_own():
    assert sp.wrap(Box([0, 1]), class_names=["off", "on"]).class_names == ("off", "on")
    assert sp.wrap(Box(["dws", "ups"]), class_names=["down", "up"]).class_names == ("down", "up")
    with pytest.raises(ConfigError, match=r"\(b, a\) are in another order than the model's classes \(a, b\)"):
        sp.wrap(Box(["a", "b"]), class_names=["b", "a"])
    with pytest.raises(ConfigError, match=r"class_names says 3, Box.classes_ says 2"):
        sp.wrap(Box(["a", "b"]), class_names=["a", "b", "c"])
    with pytest.raises(ConfigError, match=r"n_classes says 3, Box.classes_ says 2"):
        sp.wrap(Box(["a", "b"]), n_classes=3)
    with pytest.raises(DataError):
        sp.wrap(Box(["a", "b"]), class_names=["a", "a"])
