"""A surrogate: a network trained to match the probabilities of a black box, which has no gradients."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import numpy as np

from sparcets.core.progress import progress_bar
from sparcets.core.seeding import generator, spawn
from sparcets.core.series import FloatArray, IntArray, Series
from sparcets.core.settings import ClassifierConfig
from sparcets.models.base import PREDICT_BATCH, Model, Regressor
from sparcets.models.network import TorchClassifier, TorchRegressor

log = logging.getLogger(__name__)

ARCHITECTURE = "fcn"  # matches forests and nearest neighbours as well as the other architectures, in the least time
SURROGATE_CONFIG = ClassifierConfig(hidden=32, dropout=0.0, batch_size=128, lr=2e-3, epochs=60, patience=4)
STEPS = 3000  # of optimisation, at most: there is more to learn from probabilities of 20,000 series than from labels
COPIES = 5  # perturbed series per given one
MAX_SERIES = 20_000  # series that the black box predicts, at most
NOISES = (0.1, 0.3, 1.0)  # standard deviations of the noise, in standard deviations of each feature
SEED = "student"  # name in the seeds; an older word, kept so that the same seed gives the same network


def distill(
    model: Model,
    series: Series,
    *,
    class_names: tuple[str, ...] = (),
    subjects: Any = None,
    seed: int = 0,
    device: str = "auto",
    progress: bool | None = None,
    config: ClassifierConfig = SURROGATE_CONFIG,
    steps: int = STEPS,
) -> TorchClassifier | TorchRegressor:
    """Train a differentiable surrogate on what a black box predicts for series and perturbed series, without labels.

    A surrogate provides gradients; whether an answer is valid is decided by the black box, which predicts six times as
    many series as given, at most about 20,000. On validation series, perturbed like the training series, a classifier
    and its surrogate agree in a share of ``1 - min(history_["validation_error"])``; on series unlike the training ones
    they may agree less.

    Examples
    --------
    >>> from sparcets.models.wrap import wrap
    >>> from sparcets.testing.data import make_series
    >>> from sparcets.testing.mocks import mean_proba
    >>> X, _ = make_series(30)
    >>> black_box = wrap(mean_proba)
    >>> surrogate = distill(black_box, Series(X), class_names=("a", "b", "c"))
    >>> float((surrogate.predict(X) == black_box.predict(X)).mean())
    1.0
    """
    rng = generator(seed, SEED)
    rows = rng.permutation(len(series))[: MAX_SERIES // 2]
    parents = rng.choice(rows, size=min(COPIES * len(rows), MAX_SERIES - len(rows)))
    copies = keep_side(_perturb_measured(series, parents, rng), series.values[parents], model)
    varied = series[np.concatenate([rows, parents])]
    varied = varied.with_values(np.concatenate([series.values[rows], copies]))
    people = None if subjects is None else subjects[np.concatenate([rows, parents])]
    outputs = _predict(model, varied, progress)
    config = replace(config.sized(len(varied), steps=steps), seed=spawn(seed, SEED), device=device)
    config = replace(config, missing="forward" if model.takes_gaps else "refuse")
    if isinstance(model, Regressor):
        regressor = TorchRegressor(ARCHITECTURE, config)
        regressor.fit_unchecked(varied, outputs, progress=progress, subjects=people)
        log.info("the surrogate is off by %.3f standard deviations from %s", regressor.error_, model.name)
        return regressor
    outputs = outputs.clip(0.0, None)
    proba = np.asarray(outputs / outputs.sum(1, keepdims=True), dtype=np.float32)
    never = [name for k, name in enumerate(class_names) if k not in proba.argmax(1)]
    if never:
        log.info("%s never predicts %s, so neither will its surrogate", model.name, ", ".join(never))
    surrogate = TorchClassifier(ARCHITECTURE, config)
    surrogate.fit_unchecked(varied, proba, class_names, named=True, progress=progress, subjects=people)
    agreement = 1 - min(surrogate.history_["validation_error"])
    log.info("the surrogate agrees with %s on %.3f of the series that were held out", model.name, agreement)
    return surrogate


def _perturb_measured(series: Series, parents: IntArray, rng: np.random.Generator) -> FloatArray:
    """Return perturbed copies of series that may have gaps; what is missing in a parent is missing in its copy."""
    X, gaps = series.values, series.gaps
    if gaps is None:
        return perturb(series, parents, rng)
    center = np.nanmean(X, axis=(0, 1))  # of features that a series has no value of
    measured = series.filled().values
    measured = np.where(np.isnan(measured), center, measured).astype(X.dtype)
    return np.where(gaps[parents], X[parents], perturb(series.with_values(measured), parents, rng))


def keep_side(perturbed: FloatArray, parents: FloatArray, model: Model) -> FloatArray:
    """Return perturbed series (batch, time, features) with the side inputs of their parents, which never change."""
    if model.side is not None:
        first = perturbed.shape[2] - model.side.n_columns
        perturbed[:, :, first:] = parents[:, :, first:]
    return perturbed


def perturb(series: Series, parents: IntArray, rng: np.random.Generator) -> FloatArray:
    """Return a perturbed copy of each parent (parents, time, features): x + z (g - x) + noise, g being another series.

    In turn they get noise only (z = 0), are mixed (z a number in [0, 1]), take a window of steps of some features from
    g (z = 1 there), or are rotated in time (g is x rotated, z = 1), since many models are not invariant to shifts. A
    copy is as long as its parent; another series is resampled to that length. Parents are rows of series without gaps.
    """
    X = series.values
    (_, T, F), n = X.shape, len(parents)
    noisy, mixed, crossed, rotated = (np.arange(n) % 4 == kind for kind in range(4))  # each (n,)
    spread = X[series.inside].std(0, dtype=np.float64)  # (features,); 0 for a constant feature: it gets no noise
    own_steps = series.steps[parents]  # (n,)

    partners = np.where(rotated, parents, rng.integers(len(X), size=n))
    shift = np.where(rotated, rng.integers(T, size=n), 0)
    steps = (np.arange(T) + shift[:, None]) % own_steps[:, None]  # (n, T)
    own, aligned = series[parents], Series(series[partners].resampled(own_steps)).blank(T).values
    other = aligned[np.arange(n)[:, None], steps]

    start, end = np.sort(rng.integers(T + 1, size=(2, n)), axis=0)[..., None]  # each (n, 1)
    window = (np.arange(T) >= start) & (np.arange(T) < end)  # (n, T)
    chosen = rng.random((n, F)) < rng.random((n, 1))  # (n, F); from few features to nearly all
    share = np.where(mixed, rng.random(n), rotated)  # (n,)
    z = share[:, None, None] + (crossed[:, None] & window)[..., None] * chosen[:, None]  # (n, T, F)
    size = np.where(noisy, rng.choice(NOISES, size=n), 0.0)[:, None, None]

    change = z * (other - own.values)
    change += size * spread * rng.standard_normal((n, T, F))
    return own.with_values(np.asarray(own.values + change, dtype=X.dtype)).blank().values


def _predict(model: Model, series: Series, progress: bool | None) -> FloatArray:
    """Return what the black box predicts: probabilities (batch, classes) or numbers (batch, outputs)."""
    parts = []
    with progress_bar(f"predicting with {model.name}", len(series), show=progress) as bar:
        for part in series.batches(PREDICT_BATCH):
            parts.append(model.outputs_unchecked(part))
            bar.advance(len(parts[-1]))
    return np.concatenate(parts)
