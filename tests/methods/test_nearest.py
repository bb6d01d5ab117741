"""Nearest against its definition: by hand on tiny series, and against the plain loop it stands for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sparcets as sp
from sparcets.testing.mocks import mean_proba


def sign_of_sum(X):
    """Predict class 1 where the sum of a series is above 0, with a certainty that grows with it."""
    p = 1 / (1 + np.exp(-np.clip(np.asarray(X, dtype=np.float64).sum((1, 2)), -50, 50)))
    return np.stack([1 - p, p], axis=1)


def single_steps(*rows):
    """Return series of one step from rows of features."""
    return np.array(rows, dtype=np.float64)[:, None]


def single_features(*rows):
    """Return series of one feature from rows of steps."""
    return np.array(rows, dtype=np.float64)[..., None]


def nearest(X, y, *, model=sign_of_sum, lengths=None, **config):
    return sp.Nearest(sp.wrap(model), sp.NearestConfig(**config)).fit(X, y, lengths=lengths)


def test_the_first_of_equal_neighbours_that_the_constraints_leave():
    X = single_features([-9, 0], [3, 1], [1, 3], [3, 1])
    e = nearest(X, [0, 1, 1, 1]).explain(single_features([-1, -1]), target=1, n=3)
    assert e.counterfactual[..., 0].tolist() == [[3, 1], [1, 3], [-1, -1]]
    assert e.status.tolist() == ["neighbour", "neighbour", "not_found"]  # the same series twice is one answer
    X = single_steps([-5, -9], [-1, 2], [9, 0.5])
    ex, query = nearest(X, [0, 1, 1]), single_steps([-1, 0])
    assert ex.explain(query, target=1).counterfactual.tolist() == [[[-1, 2]]]
    e = ex.explain(query, target=1, constraints=sp.Constraints(immutable=["f1"]))
    assert e.counterfactual.tolist() == [[[9, 0]]] and e.valid.all() and e.status.tolist() == ["neighbour"]


def test_what_was_not_found_is_the_best_attempt_within_the_constraints():
    X = single_steps([-5, 0], [-1, 9], [1, 4], [0, 6])
    limits = sp.Constraints(ranges={"f1": (-10, 0.5)})
    found = nearest(X, [0, 1, 1, 1]).explain(single_steps([-4, 0]), target=1, constraints=limits)
    assert found.valid.all() and found.counterfactual.tolist() == [[[1, 0.5]]]
    for other in ([-2, 9], [-2, 30]):  # nearer than [-1, 9], and farther; either comes less close to convincing
        X = single_steps([-5, 0], other, [-1, 9])
        e = nearest(X, [0, 1, 1]).explain(single_steps([-4, 0]), target=1, constraints=limits)
        assert e.status.tolist() == ["not_found"] and e.counterfactual.tolist() == [[[-1, 0.5]]]
    p = 1 / (1 + np.exp(0.5))
    assert e.probability[0] == pytest.approx(p)
    assert e.reason[0].startswith("none of the 2 nearest 1 series convinces the classifier within the constraints")
    assert f"(ranges): p(1) reached {p:.2f}" in e.reason[0]


def test_the_reason_names_the_share_that_a_cap_on_the_entries_leaves_out():
    def above_half(X):
        return sign_of_sum(X - 0.5)

    X = single_features([0, 0, 0, 0], [1, 1, 1, 1])
    ex, query = nearest(X, [0, 1], model=above_half), single_features([0, 0, 0, 0])
    e = ex.explain(query, target=1, sparsity=0.5)
    assert e.status.tolist() == ["not_found"] and e.share_changed.tolist() == [0.5]
    assert "p(1) reached 0.50; the nearest needs 75 % of the entries" in e.reason[0]
    e = ex.explain(query, target=1, sparsity=0.1)  # of four entries that is none
    assert not e.changed.any() and "the nearest needs 75 % of the entries that may change" in e.reason[0]
    assert "one of the 4 entries that may change is a share of 0.25, the smallest to ask for" in e.reason[0]
    e = ex.explain(query, target=1, sparsity=0.75)
    assert e.status.tolist() == ["neighbour"] and e.changed.sum() == 3
    e = ex.explain(query, target=1, sparsity=0.9, constraints=sp.Constraints(frozen=[(0, 3)]))
    assert "at most 0 of" not in e.reason[0] and "a share of 1, the smallest" in e.reason[0]  # three of four are frozen
    assert "no share is enough for the nearest" in e.reason[0]


def test_series_of_unequal_length_are_compared_over_the_steps_both_have():
    X = single_features([-9, -9, -9], [1, 9, 7], [2, 2, 2], [4, 7, 7])
    ex = nearest(X, [0, 1, 1, 1], model=lambda X: sign_of_sum(X[:, :1]), lengths=[3, 3, 3, 1])
    query = single_features([-1, 1, 2], [-1, 8, 6], [-1, 5, 5], [3.5, 0, 0])
    e = ex.explain(query, target=1, lengths=[3, 3, 1, 1])
    # Mean squares of the first query to its candidates: (4+64+25)/3, (9+1+0)/3, 25/1: the second candidate.
    assert e.counterfactual[0, :, 0].tolist() == [2, 2, 2]
    # Of the second: (4+1+1)/3 = 2; (9+36+16)/3; 25/1.
    assert e.counterfactual[1, :, 0].tolist() == [1, 9, 7]
    # Of the third, one step long: 4, 9, 25; and its padding is returned as zeros, whatever it holds.
    assert e.counterfactual[2, :, 0].tolist() == [1, 0, 0] and e.query[2, :, 0].tolist() == [-1, 0, 0]
    assert e.status.tolist() == ["neighbour"] * 3 + ["unchanged"]


def plain_loop(X, y, query, target, model):
    """Return the answer by the words of the definition, one candidate after the other."""
    scale = X.std((0, 1))
    predicted = model(X).argmax(1)
    candidates = [i for i in range(len(X)) if y[i] == target and predicted[i] == target]
    return X[min(candidates, key=lambda i: (((X[i] - query) / scale) ** 2).sum())] if candidates else query


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10**6))
def test_it_is_the_plain_loop(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(0, 1, (30, 4, 3)) * [1, 50, 0.01] + [0, 1000, 0]
    y = rng.integers(0, 3, 30)
    y[:3] = [0, 1, 2]

    def model(series):
        return mean_proba((series - [0, 1000, 0]) / [1, 50, 0.01])

    if not (model(X).argmax(1) == y).any():
        return
    e = nearest(X, y, model=model).explain(X)
    for i in range(len(X)):
        expected = plain_loop(X, y, X[i], e.target[i], model)
        expected = np.where(np.abs(expected - X[i]) < 1e-6 * np.ptp(X, axis=(0, 1)), X[i], expected)  # no change
        np.testing.assert_array_equal(e.counterfactual[i], expected)


def test_a_class_that_is_never_predicted_right_is_not_found_and_the_others_are(caplog):
    X = single_steps([-2], [-1], [1], [2])
    ex = nearest(X, [0, 0, 1, 2], model=lambda X: np.c_[sign_of_sum(X), np.zeros(len(X))])
    assert "no series labelled '2' is predicted as such" in caplog.text
    e = ex.explain(single_steps([-1], [-1]), target=[1, 2])
    assert e.status.tolist() == ["neighbour", "not_found"]
    assert e.reason[1] == "no training series is both labelled and predicted 2" and not e.changed[1].any()
