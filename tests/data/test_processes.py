"""Each process against its definition: recursions from given innovations, distributions by their moments."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparcets.data import moving_box as processes
from sparcets.data.moving_box import PROCESSES, draw_series, sampling_times


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def times_of(n_samples: int, n_steps: int = 50) -> np.ndarray:
    return sampling_times(rng(1), n_samples=n_samples, n_steps=n_steps)


@pytest.mark.parametrize("process", PROCESSES)
def test_every_process_is_finite_float32_and_reproducible(process):
    shape = {"n_samples": 3, "n_steps": 50, "n_features": 4}
    series = draw_series(process, rng(5), **shape)
    assert series.shape == (3, 50, 4)
    assert series.dtype == np.float32
    assert np.isfinite(series).all()
    np.testing.assert_array_equal(series, draw_series(process, rng(5), **shape))
    assert not np.array_equal(series, draw_series(process, rng(6), **shape))


def test_times_are_half_of_the_grid_with_noise_of_one_grid_step_in_order():
    times = sampling_times(rng(), n_samples=4000, n_steps=50)
    assert times.shape == (4000, 50)
    assert (np.diff(times, axis=1) >= 0).all()
    # A random half of linspace(0, 20, 100), plus noise of 20 / 100: the variances add up.
    grid = np.linspace(0, 20, 100)
    assert times.mean() == pytest.approx(10, abs=0.05)
    assert times.var() == pytest.approx(grid.var() + 0.2**2, rel=0.01)
    # Times below 0 are noise alone: P(t < 0) = mean over the grid of Φ(-g / 0.2).
    below = np.mean([0.5 * math.erfc(g / 0.2 / math.sqrt(2)) for g in grid])
    assert (times < 0).mean() == pytest.approx(below, rel=0.1)
    assert (times < -1.2).sum() == 0  # six standard deviations
    # No point is preferred: away from the ends, where noise reaches out, times are even.
    counts, _ = np.histogram(times, bins=np.linspace(1, 19, 10))
    assert counts / counts.mean() == pytest.approx(np.ones(9), abs=0.03)


def test_times_without_noise_are_different_points_of_the_grid():
    class NoNoise:
        random = staticmethod(rng().random)

        @staticmethod
        def normal(mean, scale, shape):
            assert (mean, scale) == (0, 0.2)
            return np.zeros(shape)

    times = sampling_times(NoNoise(), n_samples=100, n_steps=50)
    nearest = np.round(times / 20 * 99)
    np.testing.assert_allclose(times, nearest * 20 / 99, atol=1e-12)
    assert (np.diff(nearest, axis=1) >= 1).all()
    assert not np.array_equal(nearest[0], nearest[1])


def density_of_the_gap():
    """Midpoints and weights of the time between neighbours, by brute force, independently of the product's code."""
    source = np.random.default_rng(12345)
    gaps = []
    for _ in range(2000):
        kept = source.choice(np.linspace(0, 20, 100), size=50, replace=False)
        gaps.append(np.diff(np.sort(kept + source.normal(0, 0.2, 50))))
    return np.concatenate(gaps)


# Lag-1 autocorrelation E[x_t x_{t+1}] / E[x_t²] of each process with its noise, by definition, for time gaps d:
EXPECTED_CORRELATION = {
    "Gaussian": lambda d: 0.0,
    # E sin(4πt) sin(4π(t+d)) = cos(4πd) / 2; the power is 1/2 + 0.3².
    "Harmonic": lambda d: np.mean(np.cos(4 * np.pi * d)) / 2 / (0.5 + 0.09),
    # Amplitudes are independent with mean 1 and E a² = 1.25, so is the small noise of the frequency.
    "PseudoPeriodic": lambda d: np.mean(np.cos(2 * d)) / 2 / (1.25 / 2 + 0.09),
    "GaussianProcess": lambda d: np.mean((1 + np.sqrt(3) * d) * np.exp(-np.sqrt(3) * d)) / (1 + 0.09),
    # From 0: var x_t = 0.25 (1 - 0.81^(t+1)) / 0.19, and neighbours share 0.9 var x_t.
    "AutoRegressive": lambda d: (
        0.9
        * np.mean([0.25 * (1 - 0.81 ** (t + 1)) / 0.19 for t in range(49)])
        / (np.mean([0.25 * (1 - 0.81 ** (t + 1)) / 0.19 for t in range(50)]) + 0.09)
    ),
    "CAR": lambda d: 0.0,  # its own variance is below 0.01², against noise of 0.3²
    # One signal: the mean of its own products.
    "NARMA": lambda d: np.mean(NARMA_SIGNAL[1:] * NARMA_SIGNAL[:-1]) / (np.mean(NARMA_SIGNAL**2) + 0.09),
}


def narma_signal():
    u = np.random.RandomState(42).uniform(0, 0.5, 60)
    y = [0.0] * 10
    for i in range(10, 60):
        y.append(0.3 * y[i - 1] + 1.5 * u[i - 10] * u[i] + 0.1)
    return np.array(y[10:])


NARMA_SIGNAL = narma_signal()


@pytest.mark.parametrize("process", PROCESSES)
def test_correlation_of_neighbours_is_the_one_of_the_definition(process):
    x = draw_series(process, rng(2), n_samples=1500, n_steps=50, n_features=8).astype(float)
    measured = (x[:, 1:] * x[:, :-1]).mean() / (x**2).mean()
    assert measured == pytest.approx(EXPECTED_CORRELATION[process](density_of_the_gap()), abs=0.02)


def test_correlations_of_the_two_waves():
    # Far from what a wave with 2π (-0.14) or nearly even times (-0.28) have.
    gaps = density_of_the_gap()
    assert EXPECTED_CORRELATION["PseudoPeriodic"](gaps) == pytest.approx(0.43, abs=0.02)
    assert EXPECTED_CORRELATION["Harmonic"](gaps) == pytest.approx(0.01, abs=0.02)


def test_gaussian_is_standard_normal_without_further_noise():
    series = draw_series("Gaussian", rng(), n_samples=40, n_steps=50, n_features=50)
    assert series.mean() == pytest.approx(0, abs=0.02)
    assert series.std() == pytest.approx(1, abs=0.01)  # with the noise of the others it would be 1.044


@pytest.mark.parametrize("process", [p for p in PROCESSES if p != "Gaussian"])
def test_other_processes_have_added_noise(process):
    seeds, shape = rng(3), {"n_samples": 30, "n_steps": 50, "n_features": 20}
    noisy = draw_series(process, rng(3), **shape)
    clean = PROCESSES[process](seeds, sampling_times(seeds, n_samples=30, n_steps=50), 20)
    noise = noisy - clean
    assert noise.std() == pytest.approx(0.3, abs=0.006)
    assert np.corrcoef(noise[:, :, 0].ravel(), noise[:, :, 1].ravel())[0, 1] == pytest.approx(0, abs=0.1)


def test_harmonic_is_one_sine_of_frequency_two_in_all_features():
    times = np.array([[0.0, 0.125, 0.25, 0.375, 1.0625]])
    series = processes.harmonic(times, n_features=3)
    assert series.shape == (1, 5, 3)
    assert series[0, :, 0] == pytest.approx([0, 1, 0, -1, np.sqrt(0.5)], abs=1e-12)
    np.testing.assert_array_equal(series, series[:, :, :1].repeat(3, axis=2))


def test_matern_kernel_by_hand():
    kernel = processes.matern(np.array([[0.0, 1.0, 3.0]]))
    r = np.sqrt(3)
    near, far, farther = (1 + r) * np.exp(-r), (1 + 2 * r) * np.exp(-2 * r), (1 + 3 * r) * np.exp(-3 * r)
    np.testing.assert_allclose(kernel[0], [[1, near, farther], [near, 1, far], [farther, far, 1]], rtol=1e-12)


def test_gaussian_process_has_the_matern_covariance_at_its_own_times():
    times = np.array([[0.0, 0.2, 0.7, 1.5, 4.0], [0.0, 1.0, 1.1, 1.2, 9.0]])
    series = processes.gaussian_process(times, rng().standard_normal((2, 5, 40_000)))
    for one, kernel in zip(series, processes.matern(times), strict=True):
        np.testing.assert_allclose(np.cov(one), kernel, atol=0.03)
        assert one.mean(axis=1) == pytest.approx(np.zeros(5), abs=0.03)


def test_gaussian_process_with_equal_times():
    series = processes.gaussian_process(np.array([[1.0, 1.0, 2.0]]), rng().standard_normal((1, 3, 5)))
    np.testing.assert_allclose(series[:, 0], series[:, 1], atol=1e-3)


def test_pseudo_periodic_by_hand():
    times = np.array([[np.pi / 2, np.pi]])
    amplitude = np.array([[[1.0, 2.0], [3.0, -1.0]]])
    frequency = np.array([[[1.0, 3.0], [0.5, 1.5]]])
    series = processes.pseudo_periodic(times, amplitude, frequency)
    assert series[0] == pytest.approx(np.array([[1.0, -2.0], [3.0, 1.0]]), abs=1e-12)


def test_pseudo_periodic_draws_amplitude_and_frequency_at_every_entry():
    # Near t = 0 the spread of the frequency is negligible: the value is the amplitude times a known sine.
    early = np.full((1, 200), np.pi / 4)  # the crest of sin(2t)
    crest = PROCESSES["PseudoPeriodic"](rng(), early, 200)
    assert crest.mean() == pytest.approx(1, abs=0.01)
    assert crest.std() == pytest.approx(0.5, abs=0.01)
    assert np.corrcoef(crest[0, :, 0], crest[0, :, 1])[0, 1] == pytest.approx(0, abs=0.25)
    # At a late zero of that sine only the spread of the frequency matters: E x² = E a² · E sin²(t · 0.01 e).
    time = 6 * np.pi
    late = PROCESSES["PseudoPeriodic"](rng(), np.full((1, 200), time), 200)
    assert (late**2).mean() == pytest.approx(1.25 * (1 - np.exp(-2 * (0.01 * time) ** 2)) / 2, rel=0.05)


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 4), st.integers(1, 12), st.integers(1, 4), st.integers(0, 10_000))
def test_autoregressive_recursion(n_samples, n_steps, n_features, seed):
    e = rng(seed).standard_normal((n_samples, n_steps, n_features))
    x = processes.autoregressive(e)
    assert x.shape == e.shape
    np.testing.assert_array_equal(x[:, 0], 0.5 * e[:, 0])
    np.testing.assert_array_equal(x[:, 1:], 0.9 * x[:, :-1] + 0.5 * e[:, 1:])


def test_autoregressive_correlation_in_the_long_run():
    x = PROCESSES["AutoRegressive"](rng(), np.zeros((1, 20_000)), 4)[0, 200:]
    for feature in x.T:
        assert np.corrcoef(feature[1:], feature[:-1])[0, 1] == pytest.approx(0.9, abs=0.015)
    assert x.std() == pytest.approx(0.5 / np.sqrt(1 - 0.81), rel=0.05)
    assert np.corrcoef(x.T)[np.triu_indices(4, 1)] == pytest.approx(np.zeros(6), abs=0.1)


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 4), st.integers(1, 12), st.integers(1, 4), st.integers(0, 10_000))
def test_car_recursion_uses_the_time_differences(n_samples, n_steps, n_features, seed):
    source = rng(seed)
    times = np.sort(source.uniform(0, 20, (n_samples, n_steps)), axis=1)
    e = source.standard_normal((n_samples, n_steps, n_features))
    x = processes.car(times, e)
    assert (x[:, 0] == 0.01).all()
    for b, k, f in np.ndindex(n_samples, n_steps - 1, n_features):
        kept = 0.9 ** (times[b, k + 1] - times[b, k])
        expected = kept * x[b, k, f] + 0.01 * (1 - kept) ** 0.5 * e[b, k + 1, f]
        assert x[b, k + 1, f] == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_narma_recursion():
    np.testing.assert_allclose(processes.narma(np.array([0.5] * 10 + [0.2, 0.4])), [0.25, 0.475], rtol=1e-12)
    # Of a constant input: y = 0.3 y + 1.5 · 0.25² + 0.1 in the long run.
    assert processes.narma(np.full(90, 0.25))[-1] == pytest.approx((1.5 * 0.0625 + 0.1) / 0.7)


def test_narma_is_one_signal_in_all_series_and_features():
    signal = PROCESSES["NARMA"](rng(), times_of(4), 3)
    np.testing.assert_allclose(signal, np.broadcast_to(NARMA_SIGNAL[None, :, None], (4, 50, 3)), rtol=1e-12)
    # The first values of the package that the benchmark uses.
    assert signal[0, :4, 0] == pytest.approx([0.10289114, 0.47665753, 0.47150087, 0.28911974], abs=1e-8)
