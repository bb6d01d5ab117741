"""Intervals as NumPy has them: sorted values of series, differences and spectrum; mean, deviation and rise."""

import numpy as np
import pytest
import torch

from sparcets.methods.own.intervals import (
    INTERVALS,
    MAX_FEATURES,
    SHORTEST,
    VALUES,
    IntervalQuantiles,
    IntervalStatistics,
)

X = torch.tensor(np.random.default_rng(0).standard_normal((4, 13, 3)))


def views(series):
    """Return the series, its differences and its spectrum, by NumPy."""
    values = series.numpy()
    first = np.diff(values, axis=1)
    return [values, first, np.diff(first, axis=1), np.abs(np.fft.rfft(values, axis=1, norm="ortho"))]


def of(view, start, end, *channels):
    columns = {"view": [view], "start": [start], "end": [end], "channels": [channels]}
    return IntervalQuantiles(**{name: torch.tensor(column) for name, column in columns.items()})


def intervals(module):
    return list(zip(module.view.tolist(), module.start.tolist(), module.end.tolist(), strict=True))


@pytest.mark.parametrize("view", range(4))
def test_the_sorted_values_of_an_interval_by_hand(view):
    ordered = np.sort(views(X)[view][:, 1:6], axis=1)  # five steps: two values, a quarter of the way from either end
    expected = ordered[:, [1, 3]].transpose(0, 2, 1).reshape(4, 6)
    np.testing.assert_allclose(of(view, 1, 6, 0, 1, 2)(X), expected, atol=1e-9)
    np.testing.assert_allclose(of(view, 1, 6, 2)(X), ordered[:, [1, 3], 2], atol=1e-9)


def test_a_short_interval_keeps_its_median_and_a_long_one_a_limited_number():
    np.testing.assert_allclose(of(0, 4, 7, 1)(X)[:, 0], np.median(X[:, 4:7, 1], axis=1))
    ramp = torch.arange(100.0).reshape(1, 100, 1)
    kept = of(0, 0, 100, 0)(ramp)[0].numpy()
    assert len(kept) == VALUES and np.ptp(np.diff(kept)) <= 1  # evenly spaced
    assert kept[0] + kept[-1] == pytest.approx(99, abs=1)  # and as far from one end as from the other


@pytest.mark.parametrize("sharp", [False, True])
def test_all_intervals_together(sharp):
    module = IntervalQuantiles.draw(X, seed=0, sharp=sharp)
    assert set(module.view.tolist()) == set(range(4 if sharp else 3))
    alone = [of(*interval, 0, 1, 2)(X) for interval in intervals(module)]
    torch.testing.assert_close(module(X), torch.cat(alone, dim=1))
    for view, end in zip(module.view.tolist(), module.end.tolist(), strict=True):
        assert end <= views(X)[view].shape[1]


def test_with_many_channels_each_interval_is_of_some_of_them():
    series = torch.randn(2, 40, 300, generator=torch.Generator().manual_seed(0))
    module = IntervalQuantiles.draw(series, seed=0)
    features = module(series)
    assert 0.5 * MAX_FEATURES < features.shape[1] <= MAX_FEATURES
    n_channels = module.channels.shape[1]
    assert n_channels < 300 and all(len(set(row)) == n_channels for row in module.channels.tolist())
    assert len(module.channels.unique()) > n_channels  # others for other intervals
    first = of(*intervals(module)[0], *module.channels[0].tolist())(series)
    torch.testing.assert_close(features[:, : first.shape[1]], first)
    other = IntervalQuantiles.draw(series, seed=1)
    assert not torch.equal(other.channels, module.channels)


def test_gradients_are_those_of_finite_differences():
    module = IntervalQuantiles.draw(X, seed=0)
    weight = torch.randn(module(X).shape[1], dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert torch.autograd.gradcheck(lambda x: module(x) @ weight, X.clone().requires_grad_(True))


@pytest.mark.parametrize(("sharp", "most"), [(False, 4), (True, 5)])
@pytest.mark.parametrize("n_steps", [50, 61, 100])
def test_few_lengths_cover_all_steps(n_steps, sharp, most):
    module = IntervalQuantiles.draw(torch.zeros(1, n_steps, 1), seed=0, sharp=sharp)
    assert len((module.end - module.start).unique()) <= most
    for view, length in enumerate([n_steps, n_steps - 1, n_steps - 2, n_steps // 2 + 1][: 4 if sharp else 3]):
        steps = {step for own, start, end in intervals(module) if own == view for step in range(start, end)}
        assert steps == set(range(length))


# Mean, standard deviation and rise.

LEVELS = torch.tensor(np.random.default_rng(0).standard_normal((5, 14, 3)).cumsum(1) + 4)


def columns(module):
    return zip(module.start.tolist(), module.end.tolist(), module.channel.tolist(), strict=True)


def test_mean_standard_deviation_and_rise_by_numpy():
    module = IntervalStatistics.draw(LEVELS, seed=0)
    features = module(LEVELS).numpy().reshape(5, 3, INTERVALS)
    for i, (start, end, channel) in enumerate(columns(module)):
        part = LEVELS[:, start:end, channel].numpy()
        np.testing.assert_allclose(features[:, 0, i], part.mean(1), atol=1e-9)
        np.testing.assert_allclose(features[:, 1, i], np.maximum(part.std(1), 1e-3), atol=1e-6)
        per_step = np.polyfit(np.arange(start, end), part.T, 1)[0]
        np.testing.assert_allclose(features[:, 2, i], per_step * (end - start), atol=1e-6)


def test_intervals_lie_within_the_series_and_use_every_channel_about_equally_often():
    module = IntervalStatistics.draw(LEVELS, seed=0)
    length = module.end - module.start
    assert (module.start >= 0).all() and (module.end <= 14).all()
    assert length.min() == SHORTEST and length.max() > 10
    assert np.ptp(np.bincount(module.channel)) <= 1


def test_gradients_are_those_of_finite_differences_and_finite_on_constant_series():
    module = IntervalStatistics(start=torch.tensor([0, 3]), end=torch.tensor([4, 14]), channel=torch.tensor([1, 2]))
    assert torch.autograd.gradcheck(module, LEVELS.clone().requires_grad_(True))
    constant = torch.ones(2, 14, 3, requires_grad=True)
    module(constant).sum().backward()
    assert torch.isfinite(constant.grad).all()
