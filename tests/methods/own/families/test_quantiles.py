"""Interval quantiles: sorted values of the series, its differences and its spectrum, as NumPy sorts them."""

import numpy as np
import pytest
import torch

from sparcets.methods.own.intervals import MAX_FEATURES, VALUES, IntervalQuantiles

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


def test_gradients_go_to_one_of_equal_values():
    module = IntervalQuantiles.draw(X, seed=0)
    series = X.float().round().requires_grad_(True)  # many values are equal
    features = module(series)
    torch.testing.assert_close(features.detach(), module(series.detach()))
    (gradient,) = torch.autograd.grad(features[:, module.view.repeat_interleave(_n_values(module)) == 0].sum(), series)
    assert gradient.sum() == 4 * (_n_values(module) * (module.view == 0)).sum()


def _n_values(module):
    """Return the number of values of each interval, for all channels."""
    kept = ((module.end - module.start) // 2).clamp(1, VALUES)
    return kept * module.channels.shape[1]


@pytest.mark.parametrize(("sharp", "most"), [(False, 4), (True, 5)])
@pytest.mark.parametrize("n_steps", [50, 61, 100])
def test_few_lengths_cover_all_steps(n_steps, sharp, most):
    module = IntervalQuantiles.draw(torch.zeros(1, n_steps, 1), seed=0, sharp=sharp)
    assert len((module.end - module.start).unique()) <= most
    for view, length in enumerate([n_steps, n_steps - 1, n_steps - 2, n_steps // 2 + 1][: 4 if sharp else 3]):
        steps = {step for own, start, end in intervals(module) if own == view for step in range(start, end)}
        assert steps == set(range(length))
