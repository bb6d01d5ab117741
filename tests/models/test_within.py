"""A regressor as two classes: the first is the larger one exactly where all numbers are within the bounds."""

import numpy as np
import torch
from torch import nn

import sparcets as sp
from sparcets.models.views import Goal, Within

NAMES = ("in", "out")


class First(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, 0]


def test_bounds_count_and_their_neighbours_do_not():
    bounds = np.array([[0.1, 0.3], [-np.inf, np.inf]])
    values = [np.nextafter(0.1, 0), 0.1, 0.2, 0.3, np.nextafter(0.3, 1), -1e9, 1e9]
    X = np.array(values)[:, None, None] * np.array([1.0, 7.0])
    for model in (sp.wrap(First(), task="regression"), sp.wrap(lambda Z: Z[:, 0], task="regression")):
        view = Within(model, Goal(bounds, NAMES), np.array([2.0, 1.0]))
        assert view.predict(X).tolist() == [1, 0, 0, 0, 1, 1, 1]
        # At the middle, the bounds are 0.05 spreads away.
        np.testing.assert_allclose(view.predict_proba(X)[2], [1 / (1 + np.exp(-0.05)), 1 / (1 + np.exp(0.05))])


def test_gradients_point_into_the_bounds():
    view = Within(sp.wrap(First(), task="regression"), Goal(np.array([[1.0, 2.0]]), NAMES), np.ones(1))
    x = torch.tensor([[[0.0]], [[3.0]]], requires_grad=True)
    view.log_proba(x)[:, 0].sum().backward()
    assert x.grad[0] > 0 > x.grad[1]


def test_a_narrow_goal_is_widened_and_an_open_one_is_not():
    goal = Goal(np.array([[1.0, 1.2], [0.0, np.inf], [0.0, 9.0]]), NAMES).widened(np.full(3, 0.5))
    np.testing.assert_allclose(goal.bounds, [[0.6, 1.6], [0.0, np.inf], [0.0, 9.0]])
