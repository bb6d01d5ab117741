"""Sparce by default: every target from one fit, black boxes too, the same from one seed, and honest about itself."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

import sparcets as sp
from sparcets.errors import CapabilityError, TrainingError
from sparcets.explainers import sizing
from sparcets.explainers import sparce as module_of_sparce
from sparcets.explainers.sparcets.model import LADDER, LOUDER
from sparcets.explainers.sparcets.sizing import sizes_for
from sparcets.explainers.sparce import ADVICE, GUIDES
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule, mean_proba
from sparcets.explainers.sparcets.operating_point import knee
from sparcets.training.checkpoint import FILE
from sparcets.training.gan_step import GanStep
from sparcets.training.callbacks import DivergenceCheck, TrainingFailure
from sparcets.training.losses import LossTerm

X, Y = make_series(48, n_steps=12)
QUERIES, LABELS = make_series(18, n_steps=12, seed=1)
SHORT = ("generator.hidden=8", "discriminator.hidden=6", "train.epochs=2", "train.batch_size=16", "witnesses=0")


@pytest.fixture(autouse=True, scope="module")
def _data_are_not_scarce():
    """The few series of these tests stand for more, from which both kinds of generators are tried."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module_of_sparce, "SCARCE", 0)
        yield


def test_scarce_data_are_followed_and_learnt_from_to_the_last_series(monkeypatch):
    monkeypatch.setattr(module_of_sparce, "SCARCE", 100)
    assert build("guide=auto")._heads(99, 9) == (True,) and build("guide=auto")._heads(100, 9) == (False, True)
    assert build("guide=never")._heads(9, 9) == (False,)
    learn, watch = module_of_sparce._held_out(Y, 0)
    assert np.array_equal(learn, np.arange(48)) and np.array_equal(watch, learn)
    assert quick(build(*SHORT, "guide=auto"))._recipe.generator.guided


def build(*settings, classifier=None, **kwargs):
    classifier = classifier or sp.wrap(MeanModule(), n_classes=3)
    return sp.Sparce(classifier, sp.SparceConfig.tiny().override(*settings), **kwargs)


def quick(explainer, **kwargs):
    """Fit with five steps an epoch instead of 25."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module_of_sparce, "BATCHES", 5)
        return explainer.fit(X, Y, **kwargs)


def states(explainer):
    return explainer._recipe.generator.state_dict()


def assert_same(a, b):
    assert a.history_ == b.history_ and a.trade_off_ == b.trade_off_
    assert a._recipe.generator.guided == b._recipe.generator.guided
    for name, value in states(a).items():
        assert torch.equal(value, states(b)[name]), name


@pytest.fixture(scope="module")
def fitted():
    return build("train.epochs=12").fit(X, Y)


@pytest.mark.parametrize("target", [0, 1, 2])
def test_one_fit_serves_every_target(fitted, target):
    e = fitted.explain(QUERIES, target=target)
    asked = e.status != "unchanged"
    assert e.valid.all() and np.array_equal(asked, target != LABELS)
    assert (e.status[asked] == "generated").mean() > 0.8
    assert np.array_equal(e.valid, fitted.classifier.predict(e.counterfactual) == target)
    assert e.share_changed[asked].mean() < 0.6


def test_answers_convince_the_witness_as_well(fitted):
    e = fitted.explain(QUERIES, target=1)
    witness = fitted._recipe.voices[1]
    assert witness is not fitted.classifier and len(fitted._recipe.voices) == 2
    assert (witness.predict(e.counterfactual) == 1).mean() > 0.9


def test_the_runner_up_is_the_target_where_none_is_given(fitted):
    e = fitted.explain(QUERIES)
    assert e.valid.all() and (e.target != e.predicted).all()


def test_the_trade_off_is_measured_and_kept_in_the_history(fitted):
    places = fitted.trade_off_
    assert len(places) == LADDER * len(LOUDER) and fitted._recipe.louder == LOUDER
    factors = [p.to_dict()["strength"] for p in places]
    assert min(factors) == pytest.approx(0.3) and max(factors) == pytest.approx(10.0)
    for p in places:
        assert 0 <= p.valid <= 1 and 0 <= p.transfer <= 1 and 0 < p.changed <= 1
    assert fitted.history_["trade_off_changed"] == [p.changed for p in places]
    assert len(fitted.history_["generator"]) == 12
    assert {"adversarial", "classification", "sparsity", "discriminator", "valid"} <= set(fitted.history_)


def test_the_default_is_the_knee(fitted, monkeypatch):
    seen = []
    plain = module_of_sparce.answer
    monkeypatch.setattr(module_of_sparce, "answer", lambda *a: seen.append(a[3]) or plain(*a))
    fitted.explain(QUERIES, target=1)
    assert seen == [knee(fitted.trade_off_)]


def test_below_a_limit_the_best_of_all_strengths_is_given(fitted):
    usual = knee(fitted.trade_off_)
    few = 0.8 * usual.changed
    assert 0.05 < few < 0.6
    e = fitted.explain(QUERIES, target=1, sparsity=few)
    assert e.valid.all() and (e.share_changed <= few).all() and set(e.status) == {"generated", "unchanged"}


def test_guides_are_real_series_that_are_labelled_and_predicted_as_their_class():
    wrong = X.copy()
    rows = np.flatnonzero(Y == 0)[:5]
    wrong[rows, :, 0] -= 5  # labelled 0, but the model does not say so
    recipe = build(*SHORT).fit(wrong, Y)._recipe
    info_rows = {g.tobytes() for g in recipe.guides}
    assert len(recipe.guides) == 48 - 5 and len(info_rows) == 43
    assert np.bincount(recipe.guide_class).tolist() == [11, 16, 16] and GUIDES >= 16
    raw = recipe.guides * recipe.scaler.scale + recipe.scaler.center
    assert np.array_equal(sp.wrap(MeanModule(), n_classes=3).predict(raw.astype(np.float32)), recipe.guide_class)


def test_the_summary_says_what_was_trained_and_how_good_it_is(fitted):
    assert build().summary() == "Sparce: not fitted yet."
    text, chosen = fitted.summary(), knee(fitted.trade_off_)
    assert "makes residuals of its own, trained with 1 witness for 12 epochs" in text
    assert f"valid for {chosen.valid:.2f} of the queries" in text and "a witness that had no part" in text
    assert (ADVICE in text) == (min(chosen.valid, chosen.transfer) < 0.9)
    assert "black box" not in text


def test_advice_where_the_result_is_weak(caplog):
    weak = build(*SHORT, "train.lr=1e-7", "train.epochs=1").fit(X, Y)
    assert knee(weak.trade_off_).valid < 0.5
    assert ADVICE in weak.summary() and "trained with 0 witnesses for 1 epochs" in weak.summary()
    assert any(r.levelname == "WARNING" and ADVICE in r.getMessage() for r in caplog.records)
    e = weak.explain(QUERIES, target=1)
    assert e.valid.all() and "refined" in e.status  # all the same, it answers


class Estimator:
    """A black box as scikit-learn makes them."""

    classes_ = np.array(["calm", "brisk", "wild"])

    def predict_proba(self, X):
        return mean_proba(X)


@pytest.fixture(scope="module")
def of_black_box():
    return build(*SHORT, "train.epochs=6", classifier=sp.wrap(Estimator(), class_names=list(Estimator.classes_))).fit(
        X, Y
    )


def test_a_black_box_is_explained_by_way_of_a_student(of_black_box):
    for target in range(3):
        e = of_black_box.explain(QUERIES, target=target)
        assert np.array_equal(e.valid, mean_proba(e.counterfactual).argmax(1) == target)
        assert e.valid.mean() > 0.9
    student = of_black_box._recipe.voices[0]
    assert isinstance(student, sp.TorchClassifier) and (student.predict(X) == mean_proba(X).argmax(1)).mean() > 0.9
    assert "The classifier is a black box: a student of it was trained with" in of_black_box.summary()
    assert of_black_box.explain(QUERIES, target="brisk").class_names == ("calm", "brisk", "wild")


def test_the_paper_s_recipe_needs_gradients():
    config = sp.SparceConfig.paper(target=1).override("train.epochs=1")
    with pytest.raises(CapabilityError, match=r"the paper's Sparce needs gradients.*black box.*sp\.Sparce\(clf\)"):
        sp.Sparce(sp.wrap(mean_proba, n_classes=3), config).fit(X, Y)
    paper = sp.Sparce(sp.wrap(MeanModule(), n_classes=3), config.override("generator.hidden=4", "generator.layers=1"))
    paper.fit(X, Y)
    assert paper._recipe is None and paper.trade_off_ == () and "Trained towards 1" in paper.summary()


def test_one_seed_gives_the_same_bytes_and_another_does_not():
    first, second, other = (quick(build(*SHORT, f"seed={seed}")) for seed in (3, 3, 4))
    assert_same(first, second)
    e, f, g = (s.explain(QUERIES, target=1) for s in (first, second, other))
    assert e.counterfactual.tobytes() == f.counterfactual.tobytes() and np.array_equal(e.status, f.status)
    assert e.counterfactual.tobytes() != g.counterfactual.tobytes()


def test_the_global_random_state_is_left_alone():
    state = torch.get_rng_state()
    quick(build(*SHORT, "guide=auto", "train.epochs=1")).explain(QUERIES, target=1)
    assert torch.equal(state, torch.get_rng_state())


def test_one_target_alone():
    single = build(*SHORT, "target=1").fit(X, Y)
    e = single.explain(QUERIES)
    assert (e.target == 1).all() and e.valid.all()


def test_little_data_try_a_guide_as_well_and_keep_the_better(caplog):
    assert build("guide=auto")._heads(399, 9) == (False, True) and build("guide=auto")._heads(400, 9) == (False,)
    assert build("guide=always")._heads(9999, 9) == (True,) and build("guide=never")._heads(9, 9) == (False,)
    assert all(build(f"guide={g}")._heads(9, 0) == (False,) for g in ("auto", "always", "never"))
    with caplog.at_level("INFO"):
        both = quick(build(*SHORT, "guide=auto"))
    tried = [r.getMessage().split(":")[0] for r in caplog.records if "On held-out" in r.getMessage()]
    assert [t for t in tried if t in ("free", "guided")] == ["free", "guided"]
    alone = {g: quick(build(*SHORT, f"guide={g}")) for g in ("never", "always")}
    worth = {g: knee(s.trade_off_).worth for g, s in alone.items()}
    better = "always" if worth["always"] > worth["never"] else "never"
    assert both._recipe.generator.guided == (better == "always")
    assert both.trade_off_ == alone[better].trade_off_
    text = alone["always"].summary()
    assert "A generator that follows real series" in text
    assert "discriminator" not in alone["always"].history_  # what is real needs no critic


def test_a_classifier_that_is_always_wrong_leaves_no_guides_and_is_explained_all_the_same():
    wrong = sp.wrap(MeanModule(), n_classes=3)
    explainer = build(*SHORT, "guide=auto", classifier=wrong).fit(X, (Y + 1) % 3)
    assert len(explainer._recipe.guides) == 0 and not explainer._recipe.generator.guided
    e = explainer.explain(QUERIES, target=1)
    assert np.array_equal(e.valid, wrong.predict(e.counterfactual) == 1) and e.valid.all()


def test_a_class_with_few_series_is_learnt_from_and_watched_alike():
    few = np.concatenate([np.flatnonzero(Y == 0)[:3], np.flatnonzero(Y != 0)])
    learn, watch = module_of_sparce._held_out(Y[few], 0)
    assert np.array_equal(learn, watch) and len(learn) == len(few)
    learn, watch = module_of_sparce._held_out(Y, 0)
    assert len(np.intersect1d(learn, watch)) == 0 and len(learn) + len(watch) == 48
    assert build(*SHORT).fit(X[few], Y[few]).explain(QUERIES, target=0).valid.all()


def test_sizes_that_are_left_open_are_the_data_s(monkeypatch):
    batches, epochs = [], []
    plain, schedule = module_of_sparce.Pairing, module_of_sparce.Schedule
    monkeypatch.setattr(module_of_sparce, "Pairing", lambda *a, **k: batches.append(k["batch_size"]) or plain(*a, **k))
    monkeypatch.setattr(module_of_sparce, "Schedule", lambda s, n, start: epochs.append(n) or schedule(s, n, start))
    fitting = replace(sizes_for(48, 4, on_gpu=False), hidden=4, layers=3, batch_size=11, steps=12, witness_steps=5)
    monkeypatch.setattr(sizing, "sizes_for", lambda n, n_features, on_gpu: fitting)
    by_data = ("generator.hidden=null", "generator.layers=null", "train.batch_size=null", "train.epochs=null")
    sized = quick(build(*SHORT, *by_data))._recipe.generator
    assert (sized.hidden, sized.layers, len(sized.states.blocks)) == (4, 3, 3)
    assert batches == [11] and epochs == [3]  # twelve steps, five an epoch
    named = quick(build(*SHORT))._recipe.generator
    assert (named.hidden, named.layers) == (8, 2) and batches[1] == 16 and epochs[1] == 2


def test_every_other_witness_learns_without_noise_and_so_does_the_one_that_chooses(monkeypatch):
    called = []
    plain = module_of_sparce.train_witnesses

    def listen(*a, **k):
        (witness,) = plain(*a, **k)
        called.append(witness)
        return [witness]

    monkeypatch.setattr(module_of_sparce, "train_witnesses", listen)
    fitting = replace(sizes_for(48, 4, on_gpu=False), witness_steps=5)
    monkeypatch.setattr(sizing, "sizes_for", lambda n, n_features, on_gpu: fitting)
    explainer = quick(build(*SHORT, "witnesses=4", "noise=0.2", "train.epochs=1"))
    assert [w.architecture for w in called] == ["fcn", "resnet", "tcn", "bilstm", "resnet"]
    assert [w.config.noise for w in called] == [0.2, 0.0, 0.2, 0.0, 0.0]
    assert len({w.config.seed for w in called}) == 5  # the one that chooses is no witness again
    assert explainer._recipe.voices == [explainer.classifier, *called[:4]]
    called.clear()
    quick(build(*SHORT, "train.epochs=1"))
    assert [(w.architecture, w.config.noise) for w in called] == [("resnet", 0.0)]


def test_terms_of_the_user_are_trained():
    level = LossTerm(0.1, lambda q, c: (c - q).square().mean((1, 2)))
    assert len(build(*SHORT, terms={"level": level}).fit(X, Y).history_["level"]) == 2


def test_immutable_features_stay_to_the_bit():
    explainer = build(*SHORT).fit(X, Y, constraints=sp.Constraints(immutable=["f0", "f3"]))
    assert explainer._recipe.generator.mutable.tolist() == [0, 1, 1, 0]
    e = explainer.explain(QUERIES, target=1)
    assert e.counterfactual[..., [0, 3]].tobytes() == QUERIES[..., [0, 3]].tobytes() and e.changed.any()


def test_silent_features_are_named(fitted):
    every = {"f0", "f1", "f2", "f3"}
    assert set(fitted.silent_features_) <= every
    line = f"Never changed by the generator: {', '.join(fitted.silent_features_)}."
    assert (line in fitted.summary()) == bool(fitted.silent_features_)


def test_a_dead_generator_starts_again_and_then_gives_up(monkeypatch, caplog):
    monkeypatch.setattr(module_of_sparce.Recipe, "propose", lambda self, x, *a: torch.zeros_like(x))
    with pytest.raises(TrainingError, match=r"the generator is dead.*a second start from other weights ended the same"):
        build(*SHORT, "train.epochs=1").fit(X, Y)
    assert any("starting again from other weights" in r.getMessage() for r in caplog.records)


# Cut off and resumed.


@pytest.fixture
def cut_off(interrupted):
    """Return a function that fits, and is interrupted before the given step."""

    def fit_until(at, explainer, folder):
        with interrupted(at):
            quick(explainer, checkpoint=folder)

    return fit_until


CUT = (*SHORT, "train.epochs=3", "guide=auto", "generator.hidden=4", "discriminator.hidden=4")  # 5 steps an epoch


@pytest.fixture(scope="module")
def whole():
    return quick(build(*CUT))


@pytest.mark.parametrize("at", [3, 8, 18, 28], ids=["first epoch", "second epoch", "guided", "guided, last epoch"])
def test_wherever_it_is_cut_off_the_result_is_the_same(at, whole, tmp_path, cut_off):
    cut_off(at, build(*CUT), tmp_path)
    assert_same(quick(build(*CUT), checkpoint=tmp_path), whole)


DIES = """
import os, sys
import sparcets as sp
from sparcets.explainers import sparce
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule
from sparcets.training.gan_step import GanStep
sparce.BATCHES, sparce.SCARCE = 5, 0
plain, taken = GanStep.update, []
def update(self, batch):
    taken.append(1)
    if len(taken) == 12:  # in the third epoch
        os.kill(os.getpid(), 9)
    return plain(self, batch)
GanStep.update = update
config = sp.SparceConfig.from_dict(eval(sys.argv[2]))
sp.Sparce(sp.wrap(MeanModule(), n_classes=3), config).fit(*make_series(48, n_steps=12), checkpoint=sys.argv[1])
"""


def test_a_killed_process_is_resumed_to_the_bit(tmp_path, whole):
    command = [sys.executable, "-c", DIES, str(tmp_path), repr(build(*CUT).config.to_dict())]
    died = subprocess.run(command, capture_output=True, check=False, env=os.environ.copy())
    assert died.returncode == -9, died.stderr.decode()
    assert (tmp_path / FILE).exists()
    assert_same(quick(build(*CUT), checkpoint=tmp_path), whole)


def test_a_finished_training_is_not_repeated(tmp_path, whole, monkeypatch):
    quick(build(*CUT), checkpoint=tmp_path)
    monkeypatch.setattr(GanStep, "update", lambda *a: pytest.fail("trained again"))
    assert_same(quick(build(*CUT), checkpoint=tmp_path), whole)


@pytest.mark.parametrize("guide", ["auto", "always"])
def test_a_second_attempt_is_made_and_resumed_with_checkpoints(guide, tmp_path, cut_off, monkeypatch):
    settings = (*CUT, f"guide={guide}")
    plain, seen = Health.on_epoch_end, []

    def fail_once(self, epoch, logs):  # at the very end of the first attempt's last training
        seen.append(epoch)
        if len(seen) == (6 if guide == "auto" else 3):
            raise TrainingFailure("it failed")
        plain(self, epoch, logs)

    monkeypatch.setattr(Health, "on_epoch_end", fail_once)
    first = 30 if guide == "auto" else 15
    cut_off(first + 8, build(*settings), tmp_path)  # in the second epoch of the second attempt
    resumed = quick(build(*settings), checkpoint=tmp_path)
    seen.clear()
    assert_same(resumed, quick(build(*settings)))
