"""What the paper's methods with a generator share: learning, single targets, constraints, files, summaries."""

import logging

import numpy as np
import pytest

import sparcets as sp
from sparcets.methods.folder import load_as
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule
from sparcets.training.losses import LossTerm, limb_lengths

METHODS = ["Sparce", "Gan", "CounterGan"]
each_method = pytest.mark.parametrize("method", METHODS)
X, Y = make_series(36, n_steps=9)
QUERIES, LABELS = make_series(24, n_steps=9, seed=1)
SMALL = ("generator.hidden=8", "generator.layers=1", "train.batch_size=8", "train.lr=0.005")


def build(method="Sparce", *settings, module=None, target=None, **kwargs):
    kind = getattr(sp, f"{method}Config")
    config = kind.tiny() if target is None else kind.paper(target=target)
    classifier = sp.wrap(module or MeanModule(), n_classes=3)
    return getattr(sp, method)(classifier, config.override(*SMALL, *settings), **kwargs)


@each_method
def test_a_generator_overfits_eight_series(method):
    X8, y8 = make_series(8, n_steps=8)
    settings = ("train.epochs=120", "train.lr=0.01", "generator.hidden=24", "weights.classification=10")
    e = build(method, *settings).fit(X8, y8).explain(X8)
    assert e.valid.all() and (e.status == "generated").all()


LIMITS = sp.Constraints(direction={0: "up", 1: "up", 2: "up"}, frozen=[(0, 4)], ranges={1: (-3.0, 3.0)})


def test_a_generator_learns_under_the_constraints_given_to_fit():
    open_queries = QUERIES[build().classifier.predict(QUERIES) != 1]
    under = build("Sparce", "train.epochs=25").fit(X, Y, constraints=LIMITS).explain(open_queries, target=1)
    free = build("Sparce", "train.epochs=25").fit(X, Y)
    late = free.explain(open_queries, target=1, constraints=LIMITS)
    assert free.explain(open_queries, target=1).valid.mean() > 0.9
    assert under.valid.mean() > late.valid.mean() + 0.5
    for e in (under, late):  # both hold, learnt or not
        assert not e.changed[:, :4].any() and (e.delta[..., :3] >= 0).all()
        assert (e.counterfactual[..., 1][e.changed[..., 1]] <= 3.0).all()


def test_domain_losses_are_trained_and_reported():
    ds = sp.Dataset.from_arrays(X, Y, feature_names=["Elbow_x", "Elbow_y", "Wrist_x", "Wrist_y"])
    limbs = limb_lengths(ds.feature_names, [("Elbow", "Wrist")])
    stretched = {}
    for weight in (0.01, 30.0):
        terms = {"limbs": LossTerm(weight, limbs)}
        ex = build("CounterGan", "train.epochs=15", "weights.classification=1", domain_losses=terms).fit(ds)
        assert len(ex.history_["limbs"]) == 15
        stretched[weight] = ex.history_["limbs"][-1]
    assert stretched[30.0] < 0.5 * stretched[0.01]


def test_a_training_that_reached_little_is_a_warning(caplog):
    build("Sparce", "train.epochs=1", "train.lr=1e-6").fit(X, Y)
    assert any("reach their target. Train longer" in r.getMessage() for r in caplog.records)


class Silent(sp.Sparce):
    """Sparce whose generator never changes the last feature."""

    def _build_generator(self, *args, **kwargs):
        generator = super()._build_generator(*args, **kwargs)
        for side in (generator.head.positive, generator.head.negative):
            side.bias.data[3] = -100.0
        return generator


def test_features_that_stay_silent_are_reported_and_saved(tmp_path, caplog):
    with caplog.at_level(logging.INFO):
        ex = Silent(sp.wrap(MeanModule(), n_classes=3), build("Sparce", "train.epochs=3").config).fit(X, Y)
    names = ", ".join(ex.silent_features_)
    assert "f3" in ex.silent_features_ and f"never changed by the generator: {names}" in caplog.text
    assert f"Never changed by the generator: {names}." in ex.summary()
    ex.save(tmp_path)
    again = load_as(Silent, tmp_path, ex.classifier)
    assert again.silent_features_ == ex.silent_features_ and again.summary() == ex.summary()


def test_in_own_units_nothing_is_rescaled_and_constant_features_stay_constant():
    series = X * [1, 1e-3, 50, 1] + [0, 0, 7, 0]
    series[:, :, 3] = 5.0
    plain, own = (build("Sparce", "train.epochs=1", f"standardise={flag}").fit(series, Y) for flag in (True, False))
    assert (own.info_.scaler.center == 0).all() and np.allclose(own.info_.scaler.scale, 1)
    np.testing.assert_array_equal(own.info_.constant, plain.info_.constant)
    np.testing.assert_array_equal(own.info_.constant, [False, False, False, True])
    e = own.explain(series, target=1)
    assert not e.changed[:, :, 3].any() and e.changed[:, :, 1].any()


def test_one_fit_serves_every_target_through_the_sparsity_layer():
    explainer = build("Sparce", "train.epochs=25").fit(X, Y)
    assert explainer.method == "sparce" and "Trained towards every class for 25 epochs" in explainer.summary()
    for target in range(3):
        e = explainer.explain(QUERIES, target=target)
        open_queries = e.status != "unchanged"
        assert np.array_equal(open_queries, target != LABELS) and e.valid.mean() > 0.9
        assert e.share_changed[open_queries].mean() < 0.95  # exact zeros
