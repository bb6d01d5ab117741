"""Interval statistics: mean, standard deviation and rise of each interval, as NumPy computes them."""

import numpy as np
import torch

from sparcets.methods.own.intervals import INTERVALS, SHORTEST, IntervalStatistics

X = torch.tensor(np.random.default_rng(0).standard_normal((5, 14, 3)).cumsum(1) + 4)


def columns(module):
    return zip(module.start.tolist(), module.end.tolist(), module.channel.tolist(), strict=True)


def test_mean_standard_deviation_and_rise_by_numpy():
    module = IntervalStatistics.draw(X, seed=0)
    features = module(X).numpy().reshape(5, 3, INTERVALS)
    for i, (start, end, channel) in enumerate(columns(module)):
        part = X[:, start:end, channel].numpy()
        np.testing.assert_allclose(features[:, 0, i], part.mean(1), atol=1e-9)
        np.testing.assert_allclose(features[:, 1, i], np.maximum(part.std(1), 1e-3), atol=1e-6)
        per_step = np.polyfit(np.arange(start, end), part.T, 1)[0]
        np.testing.assert_allclose(features[:, 2, i], per_step * (end - start), atol=1e-6)


def test_single_precision_is_enough():
    module = IntervalStatistics.draw(X, seed=0)
    torch.testing.assert_close(module(X.float()).double(), module(X), atol=1e-3, rtol=1e-4)
    torch.testing.assert_close(module(X[:2]), module(X)[:2])


def test_intervals_lie_within_the_series_and_use_every_channel_about_equally_often():
    module = IntervalStatistics.draw(X, seed=0)
    length = module.end - module.start
    assert (module.start >= 0).all() and (module.end <= 14).all()
    assert length.min() == SHORTEST and length.max() > 10
    assert np.ptp(np.bincount(module.channel)) <= 1


def test_gradients_are_those_of_finite_differences_and_finite_on_constant_series():
    module = IntervalStatistics(start=torch.tensor([0, 3]), end=torch.tensor([4, 14]), channel=torch.tensor([1, 2]))
    assert torch.autograd.gradcheck(module, X.clone().requires_grad_(True))
    constant = torch.ones(2, 14, 3, requires_grad=True)
    module(constant).sum().backward()
    assert torch.isfinite(constant.grad).all()
