"""Estimators that decide without probabilities."""

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifier, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

import sparcets as sp
from sparcets.core.errors import CapabilityError, ConfigError
from sparcets.testing.data import make_series

X, Y = make_series(60, n_steps=9)
FLAT = X.reshape(60, -1)
MODELS = {
    "svc": SVC(),
    "ridge": RidgeClassifier(),
    "linear svc": LinearSVC(dual="auto"),  # the default of later versions
    "pipeline": make_pipeline(StandardScaler(), SGDClassifier(random_state=0)),
}


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
def test_decisions_become_probabilities_in_the_same_order(model, n_classes):
    labels = np.array(["b", "a", "c"])[Y % n_classes]
    model.fit(FLAT, labels)
    clf = sp.wrap(model, layout="flat")
    noisy = X + np.random.default_rng(1).normal(size=X.shape).astype(np.float32)
    proba = clf.predict_proba(noisy)
    predicted = model.predict(noisy.reshape(60, -1))
    np.testing.assert_array_equal(np.array(clf.class_names)[proba.argmax(1)], predicted)
    values = model.decision_function(noisy.reshape(60, -1))
    if n_classes == 2:
        assert (np.diff(proba[np.argsort(values), 1]) >= 0).all()
    else:
        agree = values.argmax(1) == proba.argmax(1)  # the others are ties of votes
        in_order = np.take_along_axis(proba, np.argsort(values, axis=1), axis=1)[agree]
        assert agree.mean() > 0.9 and (np.diff(in_order, axis=1) >= 0).all()
    assert "not calibrated" in repr(clf) and "decision_function" in sp.Nearest(clf).fit(X, labels).summary()


class Tied:
    """Decides by votes, as an SVC does, where the decision function says otherwise."""

    classes_ = np.array([0, 1, 2])

    def decision_function(self, X):
        return np.tile([1.0, 1.2, -0.5], (len(X), 1))

    def predict(self, X):
        return np.zeros(len(X), int)


def test_the_prediction_is_the_models_own_where_votes_are_tied():
    proba = sp.wrap(Tied(), layout="flat").predict_proba(X[:2])
    np.testing.assert_array_equal(proba.argmax(1), 0)
    exponentials = np.exp([1.2, 1.0, -0.5])
    np.testing.assert_allclose(proba[0], exponentials / exponentials.sum())


def test_one_value_per_pair_of_classes_is_refused():
    model = make_pipeline(StandardScaler(), SVC(decision_function_shape="ovo")).fit(FLAT, Y)
    with pytest.raises(CapabilityError, match=r"one value per pair of classes. Set decision_function_shape='ovr'"):
        sp.wrap(model, layout="flat")
    with pytest.raises(ConfigError, match="SVC returns logits, so it cannot have output='probabilities'"):
        sp.wrap(SVC(), output="probabilities")


def test_our_own_method_explains_what_decides_without_probabilities():
    config = sp.ExplainerConfig.tiny().override("proposals=search", "believed_by=model")
    ex = sp.Explainer(sp.wrap(RidgeClassifier().fit(FLAT, Y), layout="flat"), config).fit(X, Y)
    e = ex.explain(X[Y == 0][:2], target=1)
    assert e.valid.all()
