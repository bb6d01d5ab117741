"""The memory of a search: other caps and the curve need no second search, and give the same answers."""

import numpy as np
import pytest

import sparcets as sp
from sparcets.methods.evidence import add_curve
from sparcets.methods.own import search as search_module
from sparcets.methods.own.search import remember_searches
from sparcets.testing.data import make_series

X, Y = make_series(60, n_steps=12)


@pytest.fixture(scope="module")
def explainer():
    clf = sp.TorchClassifier("fcn", sp.ClassifierConfig.tiny()).fit(X, Y)
    return sp.Explainer(clf, sp.ExplainerConfig.quick()).fit(X, Y)


@pytest.fixture
def searches(monkeypatch):
    """Count the searches by the number of their starts, and whether they are for the explained classifier alone."""
    counted = []
    search = search_module.search_pieces

    def counting(ensemble, projection, starts, *, explained_alone=False):
        counted.append(explained_alone)
        return search(ensemble, projection, starts, explained_alone=explained_alone)

    monkeypatch.setattr(search_module, "search_pieces", counting)
    return counted


def test_another_cap_needs_no_second_search(explainer, searches):
    query, target = X[Y == 0][:1], 1
    plain = [explainer.explain(query, target, sparsity=cap) for cap in (None, 0.3, 0.1)]
    needed = len([alone for alone in searches if not alone])
    memory = {}
    searches.clear()
    with remember_searches(memory):
        again = [explainer.explain(query, target, sparsity=cap) for cap in (None, 0.3, 0.1)]
    assert len([alone for alone in searches if not alone]) == len(memory) < needed
    for one, other in zip(plain, again, strict=True):
        assert np.array_equal(one.counterfactual, other.counterfactual) and np.array_equal(one.support, other.support)


def test_other_queries_and_targets_are_searched(explainer):
    queries, memory = X[Y == 0][:2], {}
    with remember_searches(memory):
        for i, target in ((0, 1), (1, 1), (0, 2)):
            e = explainer.explain(queries[i : i + 1], target)
            assert np.array_equal(e.counterfactual, explainer.explain(queries[i : i + 1], target).counterfactual)
    assert len({key[1] for key in memory}) == 3


def test_the_curve_of_an_answer_is_added_later(explainer):
    query = X[Y == 0][:1]
    whole, memory = explainer.explain(query, 1, curve=True), {}
    with remember_searches(memory):
        answer = explainer.explain(query, 1)
        later = add_curve(explainer, answer)
    for name, values in whole.curve.items():
        assert np.allclose(values, later.curve[name], equal_nan=True)
    assert later.curve["share"].shape[1] > 0 and not answer.curve["share"].shape[1]
