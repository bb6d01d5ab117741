"""Sparce: the paper's method, for every target or with its settings for one; the rest is in test_adversarial.py."""

import numpy as np
import pytest

import sparcets as sp
from sparcets.core.errors import CapabilityError
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule, mean_proba
from sparcets.training.generator import SparsityLayer

X, Y = make_series(48, n_steps=12)
QUERIES, LABELS = make_series(18, n_steps=12, seed=1)
SMALL = ("generator.hidden=4", "generator.layers=1", "train.epochs=4")


def module():
    return sp.wrap(MeanModule(), n_classes=3)


def test_a_black_box_is_refused_with_a_method_that_takes_it():
    explainer = sp.Sparce(sp.wrap(mean_proba, n_classes=3), sp.SparceConfig.tiny())
    with pytest.raises(CapabilityError, match=r"use sp\.Explainer or sp\.Nearest"):
        explainer.fit(X, Y)


def test_one_fit_serves_every_target_through_the_sparsity_layer():
    explainer = sp.Sparce(module(), sp.SparceConfig.tiny()).fit(X, Y)
    assert isinstance(explainer._generator.head, SparsityLayer) and explainer.method == "sparce"
    for target in range(3):
        e = explainer.explain(QUERIES, target=target)
        open_queries = e.status != "unchanged"
        assert np.array_equal(open_queries, target != LABELS) and e.valid.mean() > 0.9
        assert e.share_changed[open_queries].mean() < 0.95  # exact zeros


def test_the_paper_s_settings_train_for_one_target_and_only_report_sparsity():
    plain, sparse = (
        sp.Sparce(module(), sp.SparceConfig.paper(target=1).override(*SMALL, f"weights.sparsity={weight}")).fit(X, Y)
        for weight in (1.0, 50.0)
    )
    assert (plain.explain(QUERIES).target == 1).all() and "Trained towards 1" in plain.summary()
    assert plain.history_["classification"] == sparse.history_["classification"]  # its weight changes no parameter
    trained = sp.SparceConfig.paper(target=1).override(*SMALL, "trains_sparsity=true", "weights.sparsity=50.0")
    trained = sp.Sparce(module(), trained).fit(X, Y)
    assert trained.history_["classification"] != sparse.history_["classification"]
