"""The hand-made models and the method with scripted answers."""

import numpy as np
import torch

import sparcets as sp
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule, mean_proba
from tests.scripted import Scripted

X, Y = make_series(30)


def test_the_models_agree_and_say_the_highest_feature():
    proba = MeanModule()(torch.tensor(X)).softmax(1).detach().numpy()
    np.testing.assert_allclose(proba, mean_proba(X), atol=1e-5)
    np.testing.assert_array_equal(mean_proba(X).argmax(1), Y)
    hand = np.array([[[1.0, 3.0, 0.0], [2.0, 0.0, 0.0]]])  # means 1.5, 1.5, 0
    np.testing.assert_allclose(mean_proba(hand, sharpness=2.0), np.exp([[3, 3, 0]]) / np.exp([3, 3, 0]).sum())


def test_the_scripted_method_keeps_its_requests_and_gives_the_queries_back_without_a_script():
    ex = Scripted(sp.wrap(mean_proba)).fit(X, Y)
    e = ex.explain(X[Y != 1], target=1, n=2)
    assert [len(r) for r in ex.requests] == [20] and not e.changed.any()
    assert (e.status == "not_found").all()
