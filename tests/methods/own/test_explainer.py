"""Explainer: every target from one fit, black boxes too, evidence, and a fit that is not repeated."""

import numpy as np
import pytest
import torch

import sparcets as sp
from sparcets.data.splits import held_out_split
from sparcets.evaluation.judges import find_judges
from sparcets.methods.own import ensemble, quality
from sparcets.methods.own.family import Family
from sparcets.methods.own.quality import ADVICE, split_held_out, summarise
from sparcets.models import network as torch_classifier
from sparcets.models import network as torch_regressor
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule, mean_proba
from sparcets.training.steps import ClassifierStep

X, Y = make_series(102, n_steps=12)
QUERIES, LABELS = make_series(18, n_steps=12, seed=1)
SHORT = ('families=["intervals"]',)


def build(*settings, classifier=None):
    classifier = classifier or sp.wrap(MeanModule(), n_classes=3)
    return sp.Explainer(classifier, sp.ExplainerConfig.tiny().override(*settings))


@pytest.fixture(scope="module")
def fitted():
    return build().fit(X, Y)


# Answers.


def test_answers_come_with_the_evidence_of_the_selector(fitted):
    e, model = fitted.explain(QUERIES, target=1), fitted._model
    assert e.families == model.ensemble.selector.families == ("convolutions", "quantiles", "intervals", "real")
    x = torch.tensor(fitted.info_.scaler.transform(e.counterfactual), dtype=torch.float32)
    np.testing.assert_allclose(e.support, model.ensemble.believe(x, torch.tensor(e.target)).support)
    assert e.believed.mean() > 0.8
    for name, values in model.reference.measure(e).items():
        np.testing.assert_array_equal(e.evidence.plausibility[name], values)


def test_a_curve_on_request(fitted):
    queries = QUERIES[LABELS != 1][:3]
    plain, e = fitted.explain(queries, target=1), fitted.explain(queries, target=1, curve=True)
    assert plain.curve["share"].shape == (3, 0) and e.curve["share"].shape[1] > 5
    assert np.array_equal(e.counterfactual, plain.counterfactual)
    assert (e.flips_at <= e.share_changed + 1e-9).all()  # the answer itself is a point
    assert (e.least_believed[e.believed] <= e.share_changed[e.believed] + 1e-9).all()


def test_the_model_alone_can_decide(fitted):
    alone = build("believed_by=model").fit(X, Y)
    queries = QUERIES[LABELS != 1]
    e, f = alone.explain(queries, target=1), fitted.explain(queries, target=1)
    assert e.valid.all() and e.families == () and not e.believed.any()
    assert e.share_changed.mean() < f.share_changed.mean()
    assert "answers may be adversarial" in alone.summary() and "chosen by models" not in alone.summary()


# What the fit leaves behind.


def test_the_summary_says_what_was_fitted_and_how_good_it_is(fitted):
    assert build().summary() == "Explainer: not fitted yet."
    text, (valid, believed) = fitted.summary(), (fitted.history_[f"held_out_{n}"][0] for n in ("valid", "believed"))
    assert "A search answers" in text and f"valid for {valid:.2f} of the queries" in text
    assert "models of other kinds: convolutions, quantiles, intervals." in text
    assert (ADVICE in text) == (min(valid, believed) < 0.9)
    assert "black box" not in text and "is weaker than" not in text
    assert summarise({f"held_out_{name}": [0.0] for name in ("valid", "believed", "changed")}).startswith("No answer")


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_finished_fit_is_not_repeated(tmp_path, monkeypatch, task):
    numbers = X[:, :, 0].mean(1)
    model = None if task == "classification" else sp.wrap(lambda Z: np.asarray(Z)[:, :, 0].mean(1), task=task)
    y, target = (Y, 1) if model is None else (numbers, sp.AtLeast(float(np.quantile(numbers, 0.8))))

    def fit(labels):
        return build(*SHORT, classifier=model).fit(X[:60], labels[:60], checkpoint=tmp_path)

    whole = fit(y)
    monkeypatch.setattr(ClassifierStep, "update", lambda *args: pytest.fail("trained again"))
    monkeypatch.setattr(Family, "fit", lambda *args, **options: pytest.fail("trained again"))
    again = fit(y)
    assert again.history_ == whole.history_
    one, other = (e.explain(QUERIES[:6], target=target).counterfactual for e in (whole, again))
    assert one.tobytes() == other.tobytes()
    with pytest.raises(pytest.fail.Exception, match="trained again"):  # of other labels it is another fit
        fit((y + 1) % 3 if model is None else y + 1)


# Much and little data.


def test_a_classifier_that_is_always_wrong_leaves_no_series_to_follow():
    wrong = sp.wrap(MeanModule(), n_classes=3)
    explainer = build(*SHORT, classifier=wrong).fit(X, (Y + 1) % 3)
    assert len(explainer._model.prototypes) == 0
    assert "The classifier (accuracy 0.00 on training series) is weaker than" in explainer.summary()
    assert "intervals (" in explainer.summary()
    e = explainer.explain(QUERIES, target=1)
    assert np.array_equal(e.valid, wrong.predict(e.counterfactual) == 1)
    assert all(edit.row is None for i in range(len(e)) for edit in e.edits(i))  # there is no series to follow
    assert all("no change was found" in reason for reason in e.reason[e.status == "not_found"])


def test_series_are_held_out_unless_there_are_too_few():
    train, held_out = split_held_out(Y, 0)
    assert len(np.intersect1d(train, held_out)) == 0 and len(train) + len(held_out) == 102
    rare = np.concatenate([np.flatnonzero(Y == 0)[:3], np.flatnonzero(Y != 0), np.flatnonzero(Y != 0)])
    for few in (rare, np.arange(99)):  # few series of a class, or few of all
        train, held_out = split_held_out(Y[few], 0)
        assert np.array_equal(train, np.arange(len(few))) and np.array_equal(train, held_out)
    assert build(*SHORT).fit(X[rare], Y[rare]).explain(QUERIES, target=0).valid.all()


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_nobody_is_in_two_parts_of_any_split_of_a_fit(monkeypatch, task, tmp_path):
    """The held-out series, the networks of ensemble and selector, the surrogate, and the judges of an evaluation."""
    splits = []

    def recorded(y, subjects, **options):
        parts = held_out_split(y, subjects, **options)
        splits.append([set(np.asarray(subjects)[rows]) for rows in parts])
        return parts

    monkeypatch.setattr(ensemble, "NETWORK_STEPS", 10)
    for place in (torch_classifier, torch_regressor, quality):
        monkeypatch.setattr(place, "held_out_split", recorded)
    rows, people = np.arange(len(X)), np.array([f"p{i % 8}" for i in range(len(X))])
    labels = Y if task == "classification" else X[..., 0].mean(1)
    ds = sp.Dataset.from_arrays(X, labels, split=(rows, rows[:6]), subjects=people, task=task)
    model = mean_proba if task == "classification" else (lambda x: np.asarray(x)[..., 0].mean(1))
    classifier = sp.wrap(model, **({"n_classes": 3} if task == "classification" else {"task": task}))
    ex = build('families=["neural", "intervals"]', classifier=classifier).fit(ds, progress=False)
    assert len(splits) == 4, "held out, two networks, surrogate"
    target = 1 if task == "classification" else sp.AtLeast(0.5)
    find_judges(ds, classifier, families=["neural"], cache=tmp_path, progress=False)
    assert len(splits) > 4 and all(first and second and not first & second for first, second in splits)
    assert len(ex.explain(X[:2], target, progress=False)) == 2
