"""Explainer: every target from one fit, black boxes too, evidence, the same from one seed, and resumed trainings."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import sparcets as sp
from sparcets.core.errors import TargetError, TrainingError
from sparcets.data.splits import held_out_split
from sparcets.evaluation.judges import find_judges
from sparcets.methods.own import explainer as module
from sparcets.methods.own import generator as sizing
from sparcets.methods.own import operating_point
from sparcets.methods.own.family import Family
from sparcets.methods.own.operating_point import (
    ADVICE,
    ADVICE_GENERATOR,
    CAPS,
    RESIDUAL_SCALES,
    WEIGHTS,
    best_point,
    split_held_out,
)
from sparcets.models import network as torch_classifier
from sparcets.models import network as torch_regressor
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule, mean_proba
from sparcets.training.losses import LossTerm
from sparcets.training.steps import ClassifierStep, GanStep

X, Y = make_series(102, n_steps=12)
QUERIES, LABELS = make_series(18, n_steps=12, seed=1)
SHORT = ("generator.hidden=8", "critic.hidden=6", "train.epochs=2", 'families=["intervals"]')
SEARCH = ("proposals=search", 'families=["intervals"]')


@pytest.fixture(autouse=True, scope="module")
def _short_epochs():
    """Take five steps an epoch instead of 25."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MIN_BATCHES", 5)
        yield


def build(*settings, classifier=None, **kwargs):
    classifier = classifier or sp.wrap(MeanModule(), n_classes=3)
    return sp.Explainer(classifier, sp.ExplainerConfig.tiny().override(*settings), **kwargs)


def assert_same(a, b):
    assert a.history_ == b.history_ and a.trade_off_ == b.trade_off_
    one, other = a._model.generator, b._model.generator
    for name, value in one.state_dict().items():
        assert torch.equal(value, other.state_dict()[name]), name


@pytest.fixture(scope="module")
def fitted(_short_epochs):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MIN_BATCHES", sizing.MIN_BATCHES)
        return build("train.epochs=20").fit(X, Y)


@pytest.fixture(scope="module")
def searching():
    return build("proposals=search").fit(X, Y)


# Answers.


@pytest.mark.parametrize("target", [0, 1, 2])
@pytest.mark.parametrize("name", ["fitted", "searching"])
def test_one_fit_serves_every_target(request, name, target):
    explainer = request.getfixturevalue(name)
    e = explainer.explain(QUERIES, target=target)
    open_queries = e.status != "unchanged"
    assert e.valid.all() and np.array_equal(open_queries, target != LABELS)
    assert set(e.status[open_queries]) == {"refined"}
    assert np.array_equal(e.valid, explainer.classifier.predict(e.counterfactual) == target)
    assert e.share_changed[open_queries].mean() < (0.8 if name == "fitted" else 0.6)  # a short training
    assert explainer.method == e.method == "sparcets"


def test_answers_come_with_the_evidence_of_the_selector(fitted):
    e, model = fitted.explain(QUERIES, target=1), fitted._model
    assert e.families == model.ensemble.selector.families == ("convolutions", "quantiles", "intervals")
    x = torch.tensor(fitted.info_.scaler.transform(e.counterfactual), dtype=torch.float32)
    np.testing.assert_allclose(e.support, model.ensemble.believe(x, torch.tensor(e.target)).support)
    assert e.believed.mean() > 0.8
    for name, values in model.reference.measure(e).items():
        np.testing.assert_array_equal(e.evidence.plausibility[name], values)


def test_a_curve_on_request(searching):
    queries = QUERIES[LABELS != 1][:3]
    plain, e = searching.explain(queries, target=1), searching.explain(queries, target=1, curve=True)
    assert plain.curve["share"].shape == (3, 0) and e.curve["share"].shape[1] > 5
    assert np.array_equal(e.counterfactual, plain.counterfactual)
    assert (e.flips_at <= e.share_changed + 1e-9).all()  # the answer itself is a point
    assert (e.least_believed[e.believed] <= e.share_changed[e.believed] + 1e-9).all()


def test_the_model_alone_can_decide(searching):
    alone = build("believed_by=model", "proposals=search").fit(X, Y)
    queries = QUERIES[LABELS != 1]
    e, f = alone.explain(queries, target=1), searching.explain(queries, target=1)
    assert e.valid.all() and e.families == () and not e.believed.any()
    assert e.share_changed.mean() < f.share_changed.mean()
    assert "answers may be adversarial" in alone.summary() and "chosen by models" not in alone.summary()


def test_one_target_only():
    single = build(*SHORT, "target=1").fit(X, Y)
    e = single.explain(QUERIES)
    assert (e.target == 1).all() and e.valid.all()
    with pytest.raises(TargetError):
        single.explain(QUERIES, target=2)


# What the fit leaves behind.


def test_the_trade_off_is_measured_and_part_of_the_history(fitted):
    points = fitted.trade_off_
    assert len(points) == WEIGHTS * len(RESIDUAL_SCALES)
    weights = [p.to_dict()["sparsity_weight"] for p in points]
    assert min(weights) == pytest.approx(0.3) and max(weights) == pytest.approx(10.0)
    for p in points:
        assert 0 <= p.valid <= 1 and 0 <= p.transfer <= 1 and 0 < p.changed <= 1
    assert fitted.history_["trade_off_changed"] == [p.changed for p in points]
    assert len(fitted.history_["generator"]) == 20
    assert {"adversarial", "classification", "sparsity", "discriminator", "valid"} <= set(fitted.history_)


def test_the_trade_off_of_a_search_is_measured_too(searching):
    points = searching.trade_off_
    assert searching._model.generator is None and len(points) == len(CAPS)
    weights = [p.log_sparsity_weight for p in points]
    assert weights == sorted(weights, reverse=True) and points[-1].valid > 0.8  # from the smallest cap to none
    assert points[0].changed < points[-1].changed
    assert searching.history_["trade_off_valid"] == [p.valid for p in points]
    assert "generator" not in searching.history_ and searching.silent_features_ == ()


def test_the_summary_says_what_was_fitted_and_how_good_it_is(fitted, searching):
    assert build().summary() == "Explainer: not fitted yet."
    kinds = (
        (fitted, best_point(fitted.trade_off_), "A generator, trained for 20 epochs, answers", ADVICE_GENERATOR),
        (searching, searching.trade_off_[-1], "A search answers", ADVICE),
    )
    for explainer, default, how, advice in kinds:
        text = explainer.summary()
        assert how in text and f"valid for {default.valid:.2f} of the queries" in text
        assert f"models of other kinds: {', '.join(explainer._model.ensemble.selector.families)}." in text
        assert (advice in text) == (min(default.valid, default.transfer) < 0.9)
        assert "black box" not in text and "is weaker than" not in text


def test_the_summary_names_families_that_are_clearly_more_accurate():
    wrong = sp.wrap(MeanModule(), n_classes=3)
    explainer = build(*SEARCH, classifier=wrong).fit(X, (Y + 1) % 3)
    assert "The classifier (accuracy 0.00 on training series) is weaker than" in explainer.summary()
    assert "intervals (" in explainer.summary()


def test_a_weak_result_comes_with_advice_and_answers_all_the_same(caplog):
    weak = build(*SHORT, "train.lr=1e-7", "train.epochs=1").fit(X, Y)
    assert best_point(weak.trade_off_).valid < 0.5
    assert ADVICE_GENERATOR in weak.summary() and "trained for 1 epochs" in weak.summary()
    assert any(r.levelname == "WARNING" and ADVICE_GENERATOR in r.getMessage() for r in caplog.records)
    e = weak.explain(QUERIES, target=1)
    assert e.valid.all() and "refined" in e.status


def test_mutable_features_that_the_generator_never_changes_are_named(monkeypatch):
    forward = module.GatedGenerator.forward

    def without_the_last(self, *args):
        return forward(self, *args) * torch.tensor([1.0, 1.0, 1.0, 0.0])

    monkeypatch.setattr(module.GatedGenerator, "forward", without_the_last)
    explainer = build(*SHORT).fit(X, Y)
    assert explainer.silent_features_ == ("f3",)
    assert "Never changed by the generator: f3." in explainer.summary()
    explainer.fit(X, Y, constraints=sp.Constraints(immutable=["f3"]))
    assert explainer.silent_features_ == () and "Never changed" not in explainer.summary()


def test_sizes_that_the_settings_leave_open_are_those_of_the_data(monkeypatch):
    default = replace(sizing.default_sizes(102, 4, on_gpu=False), hidden=4, layers=3, batch_size=22)
    default = replace(default, steps=12)
    monkeypatch.setattr(sizing, "default_sizes", lambda n_series, n_features, on_gpu: default)
    by_data = ("generator.hidden=null", "generator.layers=null", "train.batch_size=null", "train.epochs=null")

    def sizes(*settings):
        batches = set()
        term = LossTerm(1e-9, lambda query, counterfactual: batches.add(len(query)) or torch.zeros(len(query)))
        explainer = build(*SHORT, *settings, domain_losses={"size": term}).fit(X, Y)
        generator = explainer._model.generator
        return generator.hidden, generator.layers, batches, len(explainer.history_["generator"])

    assert sizes(*by_data) == (4, 3, {22}, 3)  # twelve steps, five an epoch
    assert sizes() == (8, 2, {32}, 2)


# Black boxes.


class Estimator:
    """A black box with scikit-learn's interface."""

    classes_ = np.array(["calm", "brisk", "wild"])

    def predict_proba(self, X):
        return mean_proba(X)


def test_a_black_box_is_explained_by_a_surrogate():
    classifier = sp.wrap(Estimator(), class_names=list(Estimator.classes_))
    explainer = build(*SEARCH, classifier=classifier).fit(X[:48], Y[:48])
    for target in range(3):
        e = explainer.explain(QUERIES, target=target)
        assert np.array_equal(e.valid, mean_proba(e.counterfactual).argmax(1) == target)
        assert e.valid.mean() > 0.9
    surrogate = explainer._model.ensemble.explained
    assert isinstance(surrogate, sp.TorchClassifier) and (surrogate.predict(X) == mean_proba(X).argmax(1)).mean() > 0.9
    assert "The classifier is a black box: a surrogate, trained to predict as it does" in explainer.summary()
    assert explainer.explain(QUERIES, target="brisk").class_names == ("calm", "brisk", "wild")


# Much and little data.


@pytest.mark.parametrize(
    ("setting", "n_series", "generates"),
    [("auto", 59, False), ("auto", 60, True), ("generator", 59, True), ("search", 60, False)],
)
def test_the_number_of_series_decides_whether_a_generator_is_trained(monkeypatch, setting, n_series, generates):
    monkeypatch.setattr(module, "MANY_SERIES", 60)
    settings = ("generator.hidden=4", "generator.layers=1", "train.epochs=1", "believed_by=model")
    explainer = build(*SHORT, *settings, f"proposals={setting}").fit(*make_series(n_series, n_steps=6))
    assert (explainer._model.generator is not None) == generates


@pytest.mark.parametrize("settings", [SHORT, SEARCH], ids=["generator", "search"])
def test_a_classifier_that_is_always_wrong_leaves_no_series_to_follow(settings):
    wrong = sp.wrap(MeanModule(), n_classes=3)
    explainer = build(*settings, classifier=wrong).fit(X, (Y + 1) % 3)
    assert len(explainer._model.prototypes) == 0
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
    assert build(*SEARCH).fit(X[rare], Y[rare]).explain(QUERIES, target=0).valid.all()


# Failed, interrupted and resumed trainings.


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_nobody_is_in_two_parts_of_any_split_of_a_fit(monkeypatch, task, tmp_path):
    """The held-out series, the networks of ensemble and selector, the surrogate, and the judges of an evaluation."""
    splits = []

    def recorded(y, subjects, **options):
        parts = held_out_split(y, subjects, **options)
        splits.append([set(np.asarray(subjects)[rows]) for rows in parts])
        return parts

    for place in (torch_classifier, torch_regressor, operating_point):
        monkeypatch.setattr(place, "held_out_split", recorded)
    rows, people = np.arange(len(X)), np.array([f"p{i % 8}" for i in range(len(X))])
    labels = Y if task == "classification" else X[..., 0].mean(1)
    ds = sp.Dataset.from_rows(X, labels, train=rows, test=rows[:6], subjects=people, task=task)
    model = mean_proba if task == "classification" else (lambda x: np.asarray(x)[..., 0].mean(1))
    classifier = sp.wrap(model, **({"n_classes": 3} if task == "classification" else {"task": task}))
    ex = build("proposals=search", 'families=["neural", "intervals"]', classifier=classifier).fit(ds, progress=False)
    assert len(splits) == 4, "held out, two networks, surrogate"
    target = 1 if task == "classification" else sp.AtLeast(0.5)
    find_judges(ds, classifier, families=["neural"], cache=tmp_path, progress=False)
    assert len(splits) > 4 and all(first and second and not first & second for first, second in splits)
    assert len(ex.explain(X[:2], target, progress=False)) == 2


def test_a_dead_generator_is_trained_again_and_then_given_up(caplog, monkeypatch):
    forward = module.GatedGenerator.forward
    monkeypatch.setattr(module.GatedGenerator, "forward", lambda self, *args: 0 * forward(self, *args))
    with pytest.raises(TrainingError, match=r"the generator is dead.*a second start from other weights ended the same"):
        build(*SHORT).fit(X, Y)
    assert any("starting again from other weights" in r.getMessage() for r in caplog.records)


# Three epochs, five steps each.
RESUMED = (*SHORT, "train.epochs=3", "generator.hidden=4", "critic.hidden=4")


@pytest.fixture(scope="module")
def whole():
    return build(*RESUMED).fit(X, Y)


@pytest.mark.parametrize("step", [3, 13], ids=["first epoch", "last epoch"])
def test_a_resumed_training_gives_the_same_result(step, whole, tmp_path, interrupted):
    with interrupted(step):
        build(*RESUMED).fit(X, Y, checkpoint=tmp_path)
    assert_same(build(*RESUMED).fit(X, Y, checkpoint=tmp_path), whole)


def test_a_finished_training_is_not_repeated(tmp_path, whole, monkeypatch):
    build(*RESUMED).fit(X, Y, checkpoint=tmp_path)
    for step in (GanStep, ClassifierStep):
        monkeypatch.setattr(step, "update", lambda *args: pytest.fail("trained again"))
    monkeypatch.setattr(Family, "fit", lambda *args, **options: pytest.fail("trained again"))
    assert_same(build(*RESUMED).fit(X, Y, checkpoint=tmp_path), whole)


def test_a_second_attempt_is_made_and_resumed(tmp_path, interrupted):
    steps = 15

    def explainer(fails):
        taken = []

        def term(query, counterfactual):
            taken.append(1)
            value = torch.nan if fails and len(taken) == steps else 0.0  # in the last step of the first attempt
            return value * (counterfactual - query).mean((1, 2))

        return build(*RESUMED, domain_losses={"term": LossTerm(1.0, term)})

    with interrupted(steps + 8):  # in the second epoch of the second attempt
        explainer(fails=True).fit(X, Y, checkpoint=tmp_path)
    resumed = explainer(fails=False).fit(X, Y, checkpoint=tmp_path)
    uninterrupted = explainer(fails=True).fit(X, Y)
    assert_same(resumed, uninterrupted)
    assert uninterrupted.history_ != explainer(fails=False).fit(X, Y).history_  # the first attempt did fail
