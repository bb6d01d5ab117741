"""First answers at once: the same as the long way gives, in parts that follow one another, and only where it suits."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import sparcets as sp
from sparcets.explainers import express, sparce
from sparcets.explainers.sparcets.gpu import suits
from sparcets.explainers.sparcets.model import Recipe
from sparcets.explainers.request import Question
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule

X, Y = make_series(90, n_steps=12)


@pytest.fixture(scope="module")
def explainer():
    classifier = sp.TorchClassifier("fcn", sp.ClassifierConfig(epochs=8)).fit(X, Y)
    return sp.Sparce(classifier, sp.SparceConfig.tiny().override("guide=never", "train.epochs=12")).fit(X, Y)


@pytest.fixture
def at_once(monkeypatch):
    """Take the way that is meant for a GPU, in parts of 16."""
    monkeypatch.setattr(sparce, "suits", lambda *asked: True)
    monkeypatch.setattr(express, "AT_ONCE", 16)


def same(e, other):
    for name in ("query", "target", "status", "query_index", "reason"):
        assert np.array_equal(getattr(e, name), getattr(other, name)), name
    for name in ("counterfactual", "proba_before", "proba_after"):
        np.testing.assert_allclose(getattr(e, name), getattr(other, name), atol=1e-5, err_msg=name)
    assert np.array_equal(e.changed, other.changed)
    assert (e.method, e.config, e.constraints, e.seed) == (other.method, other.config, other.constraints, other.seed)


@pytest.mark.parametrize("n", [1, 16, 40])
@pytest.mark.parametrize("target", [None, 1, "each"])
def test_it_gives_the_answers_of_the_long_way(explainer, request, n, target):
    queries = X[:n]
    asked = (Y[:n] + 1) % 3 if target == "each" else target
    queries = queries[explainer.classifier.predict(queries) != 1] if target == 1 and n == 1 else queries
    plain = explainer.explain(queries, target=asked)
    request.getfixturevalue("at_once")
    same(explainer.explain(queries, target=asked), plain)


def test_what_is_left_alone_stays_and_where_it_fails_the_long_way_answers(explainer, request):
    plain = explainer.explain(X[:40], target=2, constraints=sp.Constraints(immutable=["f0", "f2"]))
    assert len(set(plain.status)) > 1  # not all are generated
    request.getfixturevalue("at_once")
    e = explainer.explain(X[:40], target=2, constraints=sp.Constraints(immutable=["f0", "f2"]))
    same(e, plain)
    assert not e.changed[..., [0, 2]].any()


def test_queries_are_neither_kept_nor_written_into(explainer, at_once):
    queries = X[:20].copy()
    queries.flags.writeable = False
    e = explainer.explain(queries, target=1)
    assert np.array_equal(queries, X[:20]) and not np.shares_memory(e.query, queries)
    assert not np.shares_memory(explainer.explain(X[:20], target=1).query, X)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparce, "suits", lambda *asked: False)
        same(e, explainer.explain(X[:20], target=1))


def test_double_precision_stays_what_it_is(explainer, at_once):
    e = explainer.explain(X[:20].astype(np.float64), target=1)
    assert e.counterfactual.dtype == e.query.dtype == np.float64
    assert np.array_equal(e.counterfactual[~e.changed], X[:20].astype(np.float64)[~e.changed])


def test_a_memory_map_is_answered_shard_by_shard(explainer, at_once, tmp_path):
    np.save(tmp_path / "x.npy", X)
    e = explainer.explain(np.load(tmp_path / "x.npy", mmap_mode="r"), target=1, out=tmp_path / "out")
    same(e[:30], explainer.explain(X, target=1)[:30])


def test_only_a_gpu_and_a_plain_question_suit(explainer):
    classifier, made = explainer.classifier, explainer._recipe

    def can(recipe=made, model=classifier, *, n=1, sparsity=None, **constraints):
        bound = sp.Constraints(**constraints).bind(explainer.info_)
        asked = Question(constraints=bound, said={}, sparsity=sparsity, n=n)
        assert not suits(asked, recipe, model)  # no GPU
        device = type("Cuda", (), {"type": "cuda", "__eq__": lambda self, other: True, "__hash__": None})()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Recipe, "device", property(lambda self: device))
            return suits(asked, recipe, model)

    assert can() and can(immutable=["f0"])
    assert not can(n=2) and not can(sparsity=0.5) and not can(ranges={"f1": (-9, 9)})
    assert not can(replace(made, double=True))
    assert not can(model=sp.wrap(MeanModule(), n_classes=3))  # not the one it was fitted for


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine")
def test_on_a_gpu_the_answers_are_those_of_the_long_way_up_to_bfloat16(monkeypatch):
    X, y = make_series(200, n_steps=20)
    classifier = sp.TorchClassifier("bilstm", sp.ClassifierConfig(epochs=8, device="cuda")).fit(X, y)
    explainer = sp.Sparce(classifier, sp.SparceConfig.tiny().override("device=cuda", "guide=never")).fit(X, y)
    monkeypatch.setattr(express, "AT_ONCE", 16)
    quick = explainer.explain(X[:50], target=1)
    monkeypatch.setattr(sparce, "suits", lambda *asked: False)
    went = explainer.explain(X[:50], target=1)
    assert quick.valid.all() and went.valid.all() and np.array_equal(quick.query, went.query)
    generated = (quick.status == "generated") & (went.status == "generated")
    assert generated.sum() > 10
    size = np.abs(went.counterfactual - went.query)[generated].max()
    np.testing.assert_allclose(quick.counterfactual[generated], went.counterfactual[generated], atol=0.05 * size)
