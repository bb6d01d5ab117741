"""Arguments of evaluate and find_judges: what cannot be measured raises an error that says what to pass."""

from dataclasses import replace

import numpy as np
import pytest

import sparcets as sp
from sparcets.core.errors import CapabilityError, DataError
from sparcets.evaluation.judges import find_judges
from sparcets.testing.data import make_series
from sparcets.testing.mocks import mean_proba

DATA = sp.Dataset.from_arrays(*make_series(90))
MODEL = sp.wrap(mean_proba)
TINY = sp.ClassifierConfig.tiny()


@pytest.fixture(scope="module")
def answers():
    return sp.Nearest(MODEL).fit(DATA).explain(DATA.X_test, target=1)


def test_another_classifier_raises():
    X, y = make_series(90)
    fcn, bigru = (sp.TorchClassifier(name, TINY).fit(X, y) for name in ("fcn", "bigru"))
    e = sp.Nearest(fcn).fit(X, y).explain(X[y == 0], target=1)
    with pytest.raises(DataError, match=r"TorchClassifier\('bigru'.*is not the model that was explained: for answer"):
        sp.evaluate(e, DATA, classifier=bigru, judges={})
    with pytest.raises(DataError):
        sp.evaluate(e, classifier=bigru)
    sp.evaluate(e, classifier=fcn)
    again = sp.TorchClassifier("fcn", replace(TINY, seed=1)).fit(X, y)  # the same architecture, another training
    with pytest.raises(DataError):
        sp.evaluate(e, classifier=again)


def test_rounding_differences_are_tolerated(answers):
    logits = np.log(answers.proba_after)
    noisy = np.exp(logits + np.random.default_rng(0).uniform(-0.01, 0.01, logits.shape))  # as on another device
    e = replace(answers, proba_after=noisy / noisy.sum(1, keepdims=True))
    sp.evaluate(e, classifier=MODEL)
    less_certain = replace(answers, proba_after=mean_proba(answers.counterfactual, sharpness=5.0))  # the same classes
    with pytest.raises(DataError):
        sp.evaluate(less_certain, classifier=MODEL)


def test_the_least_certain_answers_are_compared(answers):
    received = []

    def recording(X):
        received.append(X)
        return mean_proba(X)

    sp.evaluate(answers, classifier=sp.wrap(recording), judges={})
    compared = np.concatenate(received)
    assert len(compared) == 16 < len(answers)
    certainty = answers.proba_after.max(1)
    assert mean_proba(compared).max(1).max() == pytest.approx(np.sort(certainty)[15])


@pytest.mark.parametrize("classifier", ["fcn", mean_proba, 3])
def test_other_objects_than_classifiers_raise(answers, classifier):
    with pytest.raises(CapabilityError, match=r"must be a sparcets classifier, got .*sp\.wrap"):
        sp.evaluate(answers, DATA, classifier=classifier, judges={})
    with pytest.raises(CapabilityError):
        find_judges(DATA, classifier)


def test_arguments_and_judges_of_another_type_raise(answers):
    with pytest.raises(DataError, match=r"dataset must be a Dataset, got ndarray.*Dataset\.from_arrays"):
        sp.evaluate(answers, DATA.X_test)
    with pytest.raises(DataError, match=r"evaluate measures an Explanation, got ndarray.*explain"):
        sp.evaluate(DATA.X_test, DATA)
    with pytest.raises(DataError):
        sp.evaluate(DATA, answers)
    with pytest.raises(DataError):
        find_judges(DATA.X_train)
    with pytest.raises(DataError, match=r"judges must be a mapping from names to classifiers, got list"):
        sp.evaluate(answers, judges=[MODEL])
    with pytest.raises(CapabilityError, match=r"the judge 'm' \(function\) has no predict\(X, lengths\).*sp\.wrap"):
        sp.evaluate(answers, judges={"m": mean_proba})
