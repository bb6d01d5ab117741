"""What evaluate and find_judges are given: refused in words where it cannot be measured."""

from dataclasses import replace

import numpy as np
import pytest

import sparcets as sp
from sparcets.errors import CapabilityError, DataError, NotFittedError
from sparcets.evaluation.judges import find_judges
from sparcets.testing.data import make_series
from sparcets.testing.mocks import mean_proba

DATA = sp.Dataset.from_arrays(*make_series(90))
MODEL = sp.wrap(mean_proba)
TINY = sp.ClassifierConfig.tiny()


@pytest.fixture(scope="module")
def answers() -> sp.Explanation:
    return sp.Nearest(MODEL).fit(DATA).explain(DATA.X_test, target=1)


def test_the_explained_classifier_is_taken(answers):
    sp.evaluate(answers, DATA, classifier=MODEL, judges={})
    sp.evaluate(answers, classifier=MODEL)
    sp.evaluate(answers[answers.status != "unchanged"][:1], classifier=MODEL)


def test_another_classifier_is_refused():
    X, y = make_series(90)
    fcn, bigru = (sp.TorchClassifier(name, TINY).fit(X, y) for name in ("fcn", "bigru"))
    e = sp.Nearest(fcn).fit(X, y).explain(X[y == 0], target=1)
    for data in (DATA, None):
        with pytest.raises(DataError, match=r"TorchClassifier\('bigru'.*is not the classifier that was explained"):
            sp.evaluate(e, data, classifier=bigru, judges={})
    sp.evaluate(e, classifier=fcn)
    again = sp.TorchClassifier("fcn", replace(TINY, seed=1)).fit(X, y)  # the same architecture, another training
    with pytest.raises(DataError, match="is not the classifier that was explained"):
        sp.evaluate(e, classifier=again)


def test_what_another_device_makes_of_it_is_no_difference(answers):
    logits = np.log(answers.proba_after)
    shaken = np.exp(logits + np.random.default_rng(0).uniform(-0.01, 0.01, logits.shape))  # as coarse floats do
    e = replace(answers, proba_after=shaken / shaken.sum(1, keepdims=True))
    sp.evaluate(e, classifier=MODEL)
    half = replace(
        answers, proba_after=mean_proba(answers.counterfactual, sharpness=5.0)
    )  # the same classes, less sure
    with pytest.raises(DataError, match="is not the classifier that was explained"):
        sp.evaluate(half, classifier=MODEL)


def test_the_least_sure_answers_are_asked(answers):
    seen = []

    def listening(X):
        seen.append(X)
        return mean_proba(X)

    sp.evaluate(answers, classifier=sp.wrap(listening), judges={})
    asked = np.concatenate(seen)
    assert len(asked) == 16 < len(answers)
    sure = answers.proba_after.max(1)
    assert mean_proba(asked).max(1).max() == pytest.approx(np.sort(sure)[15])


def test_a_classifier_of_other_classes_is_refused(answers):
    two = sp.wrap(lambda X: mean_proba(X, n_classes=2))
    with pytest.raises(DataError, match="tells 2 classes apart, the explanation 3"):
        sp.evaluate(answers, classifier=two)


@pytest.mark.parametrize("classifier", ["fcn", mean_proba, 3])
def test_what_is_no_classifier_is_refused(answers, classifier):
    with pytest.raises(CapabilityError, match=r"must be a classifier of sparcets, got .*sp\.wrap"):
        sp.evaluate(answers, DATA, classifier=classifier, judges={})
    with pytest.raises(CapabilityError, match=r"must be a classifier of sparcets, got .*sp\.wrap"):
        find_judges(DATA, classifier)


def test_a_classifier_that_is_not_fitted_is_refused(answers):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        sp.evaluate(answers, DATA, classifier=sp.TorchClassifier("fcn"), judges={})


def test_arguments_of_another_kind_are_refused(answers):
    with pytest.raises(DataError, match=r"dataset must be a Dataset, got ndarray.*Dataset\.from_arrays"):
        sp.evaluate(answers, DATA.X_test)
    with pytest.raises(DataError, match=r"evaluate measures an Explanation, got ndarray.*explain"):
        sp.evaluate(DATA.X_test, DATA)
    with pytest.raises(DataError, match="evaluate measures an Explanation, got Dataset"):
        sp.evaluate(DATA, answers)
    with pytest.raises(DataError, match="dataset must be a Dataset, got ndarray"):
        find_judges(DATA.X_train)


def test_judges_of_another_kind_are_refused(answers):
    with pytest.raises(DataError, match=r"judges must be a mapping from names to classifiers, got list"):
        sp.evaluate(answers, judges=[MODEL])
    with pytest.raises(CapabilityError, match=r"the judge 'm' \(function\) has no predict\(X, lengths\).*sp\.wrap"):
        sp.evaluate(answers, judges={"m": mean_proba})


def test_nothing_but_unchanged_answers_is_refused():
    ones = DATA.X_test[DATA.y_test == 1]
    both = sp.Nearest(MODEL).fit(DATA).explain(np.concatenate([ones, DATA.X_test[DATA.y_test == 0]]), target=1)
    unchanged = both[both.status == "unchanged"]
    with pytest.raises(DataError, match=rf"nothing to measure: all {len(unchanged)} answers are 'unchanged'"):
        sp.evaluate(unchanged, DATA)
