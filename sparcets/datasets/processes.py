"""The seven generating processes of the saliency benchmark (Ismail et al. 2020), without class information.

Each process is a pure function of its sampling times and its random numbers, so that it can be checked against its
definition; :func:`draw_series` supplies the random numbers. Arrays are (batch, time, features), times (batch, time):
all features of a series are sampled at the same times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from sparcets.arrays import FloatArray

DURATION = 20.0  # sampling times cover [0, DURATION]
JITTER = 0.05  # standard deviation of a sampling time, in grid steps
NOISE = 0.3  # standard deviation of the noise added to every process except Gaussian, which is noise already

FREQUENCY, FREQUENCY_SD, AMPLITUDE_SD = 2.0, 0.01, 0.5
MATERN_LENGTH = 1.0
AR_COEFFICIENT, AR_SD = 0.9, 0.5
CAR_COEFFICIENT, CAR_SD, CAR_START = 0.9, 0.01, 0.01
NARMA_ORDER, NARMA_COEFFICIENTS, NARMA_INPUT = 10, (0.3, 0.05, 1.5, 0.1), 0.5
# At its mean input NARMA has a stable fixed point at 0.38 and an unstable one at 1.02; series beyond 2 rarely return.
NARMA_BOUND = 2.0


def sampling_times(rng: np.random.Generator, *, n_samples: int, n_steps: int) -> FloatArray:
    """Draw irregular times (batch, time): a random half of an even grid, with jitter, sorted."""
    grid, step = np.linspace(0.0, DURATION, 2 * n_steps, retstep=True)
    order = rng.random((n_samples, 2 * n_steps)).argsort(axis=1)
    times = grid[order[:, :n_steps]]
    return np.sort(times + rng.normal(0.0, JITTER * float(step), times.shape), axis=1)


def harmonic(times: FloatArray, *, n_features: int) -> FloatArray:
    """Return a sine of frequency 2, the same in all features."""
    wave = np.sin(2 * np.pi * FREQUENCY * times)
    return np.broadcast_to(wave[:, :, None], (*times.shape, n_features))


def matern(times: FloatArray) -> FloatArray:
    """Return the Matérn covariance (ν = 3/2, unit variance) between the times of each series: (batch, time, time)."""
    distance = np.sqrt(3.0) / MATERN_LENGTH * np.abs(times[:, :, None] - times[:, None, :])
    return np.asarray((1.0 + distance) * np.exp(-distance))


def gaussian_process(times: FloatArray, innovations: FloatArray) -> FloatArray:
    """Correlate standard normal innovations (batch, time, features) by the Matérn kernel, each feature separately."""
    # Two nearly equal times make the matrix numerically singular; adding 1e-9 to the variance keeps it definite.
    covariance = matern(times) + 1e-9 * np.eye(times.shape[1])
    return np.asarray(np.linalg.cholesky(covariance) @ innovations)


def pseudo_periodic(times: FloatArray, amplitude: FloatArray, frequency: FloatArray) -> FloatArray:
    """Return sines with a separate amplitude and frequency (batch, time, features) at every entry."""
    return np.asarray(amplitude * np.sin(2 * np.pi * frequency * times[:, :, None]))


def autoregressive(innovations: FloatArray) -> FloatArray:
    """Return x_t = 0.9 x_{t-1} + 0.5 e_t with x_0 = 0, with t the index; the innovation of step 0 is not used."""
    series = np.zeros_like(innovations)
    for t in range(1, innovations.shape[1]):
        series[:, t] = AR_COEFFICIENT * series[:, t - 1] + AR_SD * innovations[:, t]
    return series


def car(times: FloatArray, innovations: FloatArray) -> FloatArray:
    """Return the continuous autoregression x_k = a^Δ x_{k-1} + σ √(1 - a^Δ) e_k, with Δ the time since the last sample.

    It starts at 0.01; the innovation of step 0 is not used.
    """
    # The stationary process of textbooks has a^{2Δ} under the root; the benchmark uses the form above.
    decay = CAR_COEFFICIENT ** np.diff(times, axis=1)[:, :, None]
    series = np.full_like(innovations, CAR_START)
    for k in range(1, innovations.shape[1]):
        kept = decay[:, k - 1]
        series[:, k] = kept * series[:, k - 1] + CAR_SD * np.sqrt(1.0 - kept) * innovations[:, k]
    return series


def narma(inputs: FloatArray) -> FloatArray:
    """Return NARMA of order 10: y_{k+1} = 0.3 y_k + 0.05 y_k Σ_{i<10} y_{k-i} + 1.5 u_{k-9} u_k + 0.1.

    All y up to y_0, the first value returned, are 0. Some inputs make it diverge.

    Parameters
    ----------
    inputs
        u from step -9 on, shape (batch, time + 8, features): the last step needs no input of its own.
    """
    linear, product, drive, constant = NARMA_COEFFICIENTS
    lag = NARMA_ORDER - 1
    n_samples, n_inputs, n_features = inputs.shape
    series = np.zeros((n_samples, n_inputs - lag + 1, n_features))
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(series.shape[1] - 1):
            last, window = series[:, k], series[:, max(k - lag, 0) : k + 1]
            pair = inputs[:, k] * inputs[:, k + lag]  # u_{k-9} u_k
            series[:, k + 1] = linear * last + product * last * window.sum(axis=1) + drive * pair + constant
    return series


def _bounded_narma(rng: np.random.Generator, times: FloatArray, n_features: int) -> FloatArray:
    n_samples, n_steps = times.shape
    n_inputs = n_steps + NARMA_ORDER - 2
    series = narma(rng.uniform(0.0, NARMA_INPUT, (n_samples, n_inputs, n_features)))
    by_feature = series.transpose(0, 2, 1)  # a view: one row per series and feature
    # Written so that NaN also counts as beyond the bound.
    while (diverged := ~(by_feature <= NARMA_BOUND).all(axis=2)).any():
        again = narma(rng.uniform(0.0, NARMA_INPUT, (1, n_inputs, int(diverged.sum()))))
        by_feature[diverged] = again[0].T
    return series


def _normal(rng: np.random.Generator, times: FloatArray, n_features: int) -> FloatArray:
    return rng.standard_normal((*times.shape, n_features))


def _drawn_pseudo_periodic(rng: np.random.Generator, times: FloatArray, n_features: int) -> FloatArray:
    amplitude = 1.0 + AMPLITUDE_SD * _normal(rng, times, n_features)
    frequency = FREQUENCY + FREQUENCY_SD * _normal(rng, times, n_features)
    return pseudo_periodic(times, amplitude, frequency)


Draw: TypeAlias = Callable[[np.random.Generator, FloatArray, int], FloatArray]

PROCESSES: Mapping[str, Draw] = MappingProxyType(
    {
        "Gaussian": _normal,
        "Harmonic": lambda rng, times, n_features: harmonic(times, n_features=n_features),
        "GaussianProcess": lambda rng, times, n_features: gaussian_process(times, _normal(rng, times, n_features)),
        "PseudoPeriodic": _drawn_pseudo_periodic,
        "AutoRegressive": lambda rng, times, n_features: autoregressive(_normal(rng, times, n_features)),
        "CAR": lambda rng, times, n_features: car(times, _normal(rng, times, n_features)),
        "NARMA": _bounded_narma,
    }
)


def draw_series(process: str, rng: np.random.Generator, *, n_samples: int, n_steps: int, n_features: int) -> FloatArray:
    """Draw series of one process, with added noise of standard deviation 0.3 unless they are Gaussian noise.

    Parameters
    ----------
    process
        One of ``PROCESSES``.
    rng
        Random generator.
    n_samples, n_steps, n_features
        Shape of the result.

    Returns
    -------
    FloatArray
        float32 series (batch, time, features).

    Examples
    --------
    >>> draw_series("CAR", np.random.default_rng(0), n_samples=2, n_steps=50, n_features=3).shape
    (2, 50, 3)
    """
    times = sampling_times(rng, n_samples=n_samples, n_steps=n_steps)
    series = PROCESSES[process](rng, times, n_features).astype(np.float32)
    if process != "Gaussian":
        series += np.float32(NOISE) * rng.standard_normal(series.shape, dtype=np.float32)
    return series
