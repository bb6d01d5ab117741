"""Each process against its definition: recursions from given innovations, distributions by their moments."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparcets.datasets import processes
from sparcets.datasets.processes import PROCESSES, draw_series, sampling_times


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


def test_times_are_half_of_the_grid_with_jitter_in_order():
    times = sampling_times(rng(), n_samples=400, n_steps=50)
    assert times.shape == (400, 50)
    assert (np.diff(times, axis=1) > 0).all()
    step = 20 / 99
    nearest = np.round(times / step)
    assert nearest.min() == 0
    assert nearest.max() == 99
    assert (np.diff(nearest, axis=1) >= 1).all()  # 50 different points of the 100
    assert np.std(times - nearest * step) == pytest.approx(0.05 * step, rel=0.03)
    kept = np.bincount(nearest.astype(int).ravel(), minlength=100) / 400
    assert kept == pytest.approx(np.full(100, 0.5), abs=0.12)  # no point is preferred
    assert not np.array_equal(nearest[0], nearest[1])


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
    times = np.array([[0.25, 0.5]])
    amplitude = np.array([[[1.0, 2.0], [3.0, -1.0]]])
    frequency = np.array([[[1.0, 3.0], [0.5, 1.5]]])
    series = processes.pseudo_periodic(times, amplitude, frequency)
    assert series[0] == pytest.approx(np.array([[1.0, -2.0], [3.0, 1.0]]), abs=1e-12)


def test_pseudo_periodic_draws_amplitude_and_frequency_at_every_entry():
    # Near t = 0 the spread of the frequency is negligible: the value is the amplitude times a known sine.
    early = np.full((1, 200), 0.125)  # the crest of the sine of frequency 2
    crest = PROCESSES["PseudoPeriodic"](rng(), early, 200)
    assert crest.mean() == pytest.approx(1, abs=0.01)
    assert crest.std() == pytest.approx(0.5, abs=0.01)
    assert np.corrcoef(crest[0, :, 0], crest[0, :, 1])[0, 1] == pytest.approx(0, abs=0.25)
    # At a late zero of that sine only the spread of the frequency matters: E x² = E A² · E sin²(2π t · 0.01 e).
    late = PROCESSES["PseudoPeriodic"](rng(), np.full((1, 200), 10.0), 200)
    phase_sd = 2 * np.pi * 10 * 0.01
    assert (late**2).mean() == pytest.approx(1.25 * (1 - np.exp(-2 * phase_sd**2)) / 2, rel=0.05)


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 4), st.integers(1, 12), st.integers(1, 4), st.integers(0, 10_000))
def test_autoregressive_recursion(n_samples, n_steps, n_features, seed):
    e = rng(seed).standard_normal((n_samples, n_steps, n_features))
    x = processes.autoregressive(e)
    assert x.shape == e.shape
    assert (x[:, 0] == 0).all()
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
    u = rng().uniform(0, 0.5, (2, 25 + 8, 3))
    y = processes.narma(u)
    assert y.shape == (2, 25, 3)
    for b, f in np.ndindex(2, 3):
        inputs = dict(zip(range(-9, 24), u[b, :, f], strict=True))
        known = dict.fromkeys(range(-9, 1), 0.0)
        for k in range(24):
            past = sum(known[k - i] for i in range(10))
            known[k + 1] = 0.3 * known[k] + 0.05 * known[k] * past + 1.5 * inputs[k - 9] * inputs[k] + 0.1
        np.testing.assert_allclose(y[b, :, f], [known[k] for k in range(25)], rtol=1e-12)


def test_narma_converges_to_its_fixed_point():
    # y = 0.3 y + 0.5 y² + 1.5 · 0.25² + 0.1 has the stable solution 0.381.
    y = processes.narma(np.full((1, 300, 1), 0.25))
    assert y[0, -1, 0] == pytest.approx(0.7 - np.sqrt(0.49 - 2 * (1.5 * 0.0625 + 0.1)), rel=1e-6)


class LargestInputsFirst:
    """A generator whose first uniform numbers are partly at their upper end, where NARMA diverges."""

    def __init__(self) -> None:
        self.shapes: list[tuple[int, ...]] = []
        self.real = rng()

    def uniform(self, low, high, shape):
        self.shapes.append(shape)
        values = self.real.uniform(low, high, shape)
        if len(self.shapes) == 1:
            values[1, :, 2] = high
            values[3, :, 0] = high
        return values


def test_only_diverging_narma_series_are_drawn_again():
    source = LargestInputsFirst()
    y = PROCESSES["NARMA"](source, times_of(4, 80), 3)
    assert source.shapes == [(4, 88, 3), (1, 88, 2)]
    assert np.isfinite(y).all()
    assert y.max() < 2
    first = processes.narma(LargestInputsFirst().uniform(0, 0.5, (4, 88, 3)))
    assert not np.isfinite(first[1, :, 2]).all()
    same = (first == y).all(axis=1)
    assert np.argwhere(~same).tolist() == [[1, 2], [3, 0]]
