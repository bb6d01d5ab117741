"""Missing values on the way through an explainer: whatever uses the answers leaves them out."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import sparcets as sp
from sparcets.evaluation import measures
from sparcets.testing.data import make_series
from sparcets.testing.mocks import mean_proba

X, Y = make_series(120)
GAPS = np.random.default_rng(0).random(X.shape) < 0.15
G = np.where(GAPS, np.float32(np.nan), X)
CLASSIFIER = sp.wrap(mean_proba, n_classes=3, missing="mean")


@pytest.fixture(scope="module")
def answers():
    return sp.Nearest(CLASSIFIER).fit(G, Y).explain(G[Y != 1][:12], target=1, sparsity=0.4)


def test_a_masked_array_is_one_with_gaps(answers):
    masked = np.ma.masked_array(np.where(GAPS, np.float32(9e9), X), GAPS)
    explainer = sp.Nearest(CLASSIFIER).fit(masked, Y)
    assert np.array_equal(CLASSIFIER.predict_proba(masked), CLASSIFIER.predict_proba(G))
    for queries in (masked[Y != 1][:12], list(masked[Y != 1][:12]), iter(masked[Y != 1][:12])):
        e = explainer.explain(queries, target=1, sparsity=0.4)
        assert np.array_equal(e.counterfactual, answers.counterfactual, equal_nan=True)
    ds = sp.Dataset.from_arrays(masked, Y)
    assert ds.n_missing == GAPS.sum() and sp.evaluate(answers, ds, classifier=CLASSIFIER, judges={}).summary["valid"]


def test_a_neighbour_is_near_in_what_both_have():
    train = np.array([[[0.0], [0.0], [0.0]], [[4.0], [np.nan], [np.nan]], [[3.0], [9.0], [9.0]]])
    query = np.array([[[3.9], [np.nan], [1.0]]])
    rising = sp.wrap(lambda Z: np.stack([Z[:, 0, 0] < 2, Z[:, 0, 0] >= 2], 1) * 1.0, missing="forward")
    e = sp.Nearest(rising).fit(train, [0, 1, 1]).explain(query - [[[3.9]]], target=1)
    # The second is at 4 in all it has; its gaps are filled by its last value, and the query's stay.
    np.testing.assert_array_equal(e.counterfactual[0, :, 0], [4.0, np.nan, 4.0])
    assert e.share_changed.tolist() == [1.0]


def test_constraints_hold_around_gaps():
    of_f1 = {"max_step": {"f1": 0.3}, "direction": {"f1": "up"}, "ranges": {"f1": (-1.0, 1.5)}}
    limits = sp.Constraints(groups={"pair": ["f0", "f2"]}, **of_f1)
    e = sp.Nearest(CLASSIFIER).fit(G, Y).explain(G[Y != 1], target=1, constraints=limits)
    steps = np.abs(np.diff(e.counterfactual[..., 1].astype(np.float64), axis=1))
    own = np.abs(np.diff(e.query[..., 1].astype(np.float64), axis=1))
    known = ~np.isnan(own)
    assert (steps[known] <= np.maximum(0.3, own[known])).all() and e.changed[..., 1].any()
    assert (e.delta[..., 1] >= 0).all() and np.array_equal(e.changed[..., 0], e.changed[..., 2])
    assert not e.changed[np.isnan(e.query[..., 0]) | np.isnan(e.query[..., 2])][:, [0, 2]].any()


def test_the_user_s_projection_sees_filled_series_and_cannot_fill_gaps():
    seen = []

    def flat(made, queries):
        seen.append(np.isfinite(made).all() and np.isfinite(queries).all())
        return queries + (made - queries).mean(1, keepdims=True)

    e = sp.Nearest(CLASSIFIER).fit(G, Y).explain(G[Y != 1][:4], target=1, constraints=sp.Constraints(project=flat))
    assert seen and all(seen) and np.isnan(e.counterfactual[np.isnan(e.query)]).all() and e.changed.any()


def test_measures_are_those_of_the_measured_entries(answers):
    e = answers
    measured = ~np.isnan(e.query)
    size = np.abs(np.where(measured, e.counterfactual - e.query, 0) / e.info.scaler.scale)
    np.testing.assert_allclose(e.share_changed, e.changed.sum((1, 2)) / measured.sum((1, 2)))
    np.testing.assert_allclose(measures.similarity(e), size.sum((1, 2)) / measured.sum((1, 2)), rtol=1e-6)
    np.testing.assert_allclose(measures.linf(e), size.max((1, 2)), rtol=1e-6)
    for measure in (measures.l2, measures.dtw, measures.smoothness):
        assert np.isfinite(measure(e)).all()
    assert (measures.dtw(e) <= measures.l2(e) + 1e-9).all()
    marked = np.broadcast_to(np.arange(4) == 1, e.query.shape)
    assert measures.pooled_auc(e, marked) == pytest.approx(roc_auc_score(marked[measured], size[measured]))
    several = sp.Nearest(CLASSIFIER).fit(G, Y).explain(G[Y != 1][:3], target=1, n=3)
    assert np.isfinite(measures.diversity(several)).all()
