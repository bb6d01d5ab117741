"""Names that travel, and a model and data that must mean the same."""

import numpy as np
import pytest

import sparcets as sp
from sparcets.core.errors import FeatureMismatchError, LabelError
from sparcets.testing.data import make_series
from sparcets.testing.mocks import mean_proba
from tests.scripted import Scripted

X, Y = make_series(30, n_steps=8)
CLASSES = ("calm", "brisk", "wild")


def dataset(class_names=CLASSES, **known):
    return sp.Dataset.from_arrays(X, Y, class_names=class_names, **known)


def test_labels_as_text_name_the_classes_in_the_order_of_the_model():
    labels = np.array(["ant", "bee", "cat"])[Y]
    for y in (labels, labels.tolist(), labels.astype(object)):
        e = Scripted(sp.wrap(mean_proba)).fit(X, y).explain(X[Y != 1], target="bee")
        assert e.class_names == ("ant", "bee", "cat") and (e.target == 1).all()

    def twelve(series):
        return np.tile(np.full(12, 1 / 12), (len(series), 1))

    labels = np.arange(30) % 12
    ex = Scripted(sp.wrap(twelve)).fit(X, labels.astype(str))
    assert ex.info_.class_names == tuple(str(k) for k in range(12))  # "10" does not stand before "2"


def test_a_named_model_names_the_classes_and_labels_may_be_either():
    named = sp.wrap(mean_proba, class_names=CLASSES)
    for y in (Y, np.array(CLASSES)[Y]):
        ex = sp.Nearest(named).fit(X, y, constraints=sp.Constraints(immutable=[3]))
        assert ex.info_.class_names == CLASSES
        assert "series of 8 steps and 4 features (3 mutable), classes calm, brisk, wild" in ex.summary()
        assert ex.explain(X[Y != 1], target="brisk").valid.all()


def test_names_and_numbers_of_classes_of_model_and_data_set_must_be_the_same():
    said = r"\(calm, wild, brisk\) and of the data set \(calm, brisk, wild\) must be"
    for names, message in ((("calm", "wild", "brisk"), said), (tuple("abc"), "must be the same, in the same order")):
        with pytest.raises(LabelError, match=message):
            Scripted(sp.wrap(mean_proba, class_names=names)).fit(dataset())
    four = sp.wrap(lambda X: np.full((len(X), 4), 0.25))
    with pytest.raises(LabelError, match=r"tells 4 classes apart \(0, 1, 2, 3\), the data set has 3 \(calm, brisk"):
        Scripted(four).fit(dataset())
    with pytest.raises(LabelError, match=r"tells 4 classes apart, y names 3 \(ant, bee, cat\)"):
        Scripted(four).fit(X, np.array(["ant", "bee", "cat"])[Y])


OTHERS = {
    "fewer classes": (X, Y % 2, LabelError),
    "other names": (X, np.array(["a", "b", "c"])[Y], LabelError),
    "fewer features": (X[..., :2], Y, FeatureMismatchError),
    "fewer steps": (X[:, :5], Y, FeatureMismatchError),
}


@pytest.mark.parametrize("change", OTHERS)
@pytest.mark.parametrize("into", ["memory", "a folder"])
def test_a_classifier_that_became_another_since_the_fit_is_refused(change, into, tmp_path):
    tiny = sp.ClassifierConfig.tiny().override("epochs=1")
    model = sp.TorchClassifier("fcn", tiny).fit(X, Y)
    ex = Scripted(model).fit(X, Y)
    series, labels, error = OTHERS[change]
    model.fit(series, labels)
    words = "this Scripted was fitted .*TorchClassifier .*Pass the model it was fitted with, or fit it again"
    with pytest.raises(error, match=words):
        ex.explain(X, target=1, out=None if into == "memory" else tmp_path / "out")
