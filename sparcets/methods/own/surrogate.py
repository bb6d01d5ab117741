"""A surrogate: a network trained to match the probabilities of a black box, which has no gradients."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import numpy as np

from sparcets.core.arrays import FloatArray, IntArray, length_mask, missing_entries
from sparcets.core.progress import progress_bar
from sparcets.core.seeding import generator, spawn
from sparcets.core.series import blank, fill_gaps, resample
from sparcets.core.settings import ClassifierConfig
from sparcets.models.base import PREDICT_BATCH, Classifier, Model, Regressor
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
    classifier: Classifier,
    X: FloatArray,
    *,
    class_names: tuple[str, ...],
    lengths: IntArray | None = None,
    subjects: Any = None,
    seed: int = 0,
    device: str = "auto",
    progress: bool | None = None,
    config: ClassifierConfig = SURROGATE_CONFIG,
    steps: int = STEPS,
) -> TorchClassifier:
    """Train a differentiable surrogate on the probabilities of a black box for series and perturbed series.

    A surrogate provides gradients; whether an answer is valid is decided by the black box. On validation series,
    perturbed like the training series, the two agree in a share of ``1 - min(history_["validation_error"])``; on series
    unlike the training ones they may agree less.

    Parameters
    ----------
    classifier
        The black box; it predicts six times as many series as given, at most about 20,000.
    X
        Checked series (batch, time, features) in the data's own units; no labels are needed.
    class_names
        Names of the classes by index.
    lengths
        True lengths of padded series, or None.
    subjects
        The recorded person of each series (batch,), or None.
    seed, device
        Same seed and device, same surrogate.
    progress
        Whether to draw progress bars; None draws them on a terminal.
    config, steps
        Size of the surrogate, and steps of optimisation, at most.

    Examples
    --------
    >>> from sparcets.models.wrap import wrap
    >>> from sparcets.testing.data import make_series
    >>> from sparcets.testing.mocks import mean_proba
    >>> X, _ = make_series(30)
    >>> black_box = wrap(mean_proba)
    >>> surrogate = distill(black_box, X, class_names=("a", "b", "c"))
    >>> float((surrogate.predict(X) == black_box.predict(X)).mean())
    1.0
    """
    series, of_series, people = _varied(classifier, X, lengths, subjects, seed)
    proba = _predict(classifier, series, of_series, progress).clip(0.0, None)
    proba = np.asarray(proba / proba.sum(1, keepdims=True), dtype=np.float32)
    never = [name for k, name in enumerate(class_names) if k not in proba.argmax(1)]
    if never:
        log.info("%s never predicts %s, so neither will its surrogate", classifier.name, ", ".join(never))
    config = replace(config.sized(len(series), steps=steps), seed=spawn(seed, SEED), device=device)
    config = replace(config, missing="forward" if classifier.takes_gaps else "refuse")
    surrogate = TorchClassifier(ARCHITECTURE, config)
    surrogate.fit_unchecked(series, proba, of_series, class_names, named=True, progress=progress, subjects=people)
    agreement = 1 - min(surrogate.history_["validation_error"])
    log.info("the surrogate agrees with %s on %.3f of the series that were held out", classifier.name, agreement)
    return surrogate


def distill_numbers(
    regressor: Regressor,
    X: FloatArray,
    *,
    lengths: IntArray | None = None,
    subjects: Any = None,
    seed: int = 0,
    device: str = "auto",
    progress: bool | None = None,
    config: ClassifierConfig = SURROGATE_CONFIG,
    steps: int = STEPS,
) -> TorchRegressor:
    """Train a differentiable surrogate on the numbers of a black box; see :func:`distill`."""
    series, of_series, people = _varied(regressor, X, lengths, subjects, seed)
    numbers = _predict(regressor, series, of_series, progress)
    config = replace(config.sized(len(series), steps=steps), seed=spawn(seed, SEED), device=device)
    config = replace(config, missing="forward" if regressor.takes_gaps else "refuse")
    surrogate = TorchRegressor(ARCHITECTURE, config)
    surrogate.fit_unchecked(series, numbers, of_series, progress=progress, subjects=people)
    log.info("the surrogate is off by %.3f standard deviations from %s", surrogate.error_, regressor.name)
    return surrogate


def _varied(
    model: Model, X: FloatArray, lengths: IntArray | None, subjects: Any, seed: int
) -> tuple[FloatArray, IntArray | None, Any]:
    """Return series to ask a black box about, given ones and perturbed copies, their lengths and their subjects."""
    rng = generator(seed, SEED)
    rows = rng.permutation(len(X))[: MAX_SERIES // 2]
    parents = rng.choice(rows, size=min(COPIES * len(rows), MAX_SERIES - len(rows)))
    series = np.concatenate([X[rows], keep_side(_perturb_measured(X, parents, rng, lengths), X[parents], model)])
    of_series = np.concatenate([rows, parents])
    people = None if subjects is None else subjects[of_series]
    return series, None if lengths is None else lengths[of_series], people


def _perturb_measured(
    X: FloatArray, parents: IntArray, rng: np.random.Generator, lengths: IntArray | None
) -> FloatArray:
    """Return perturbed copies of series that may have gaps; what is missing in a parent is missing in its copy."""
    gaps = missing_entries(X)
    if gaps is None:
        return perturb(X, parents, rng, lengths)
    center = np.nanmean(X, axis=(0, 1))  # of features that a series has no value of
    measured = fill_gaps(X, lengths=lengths)
    copies = perturb(np.where(np.isnan(measured), center, measured).astype(X.dtype), parents, rng, lengths)
    return np.where(gaps[parents], X[parents], copies)


def keep_side(perturbed: FloatArray, parents: FloatArray, model: Model) -> FloatArray:
    """Return perturbed series (batch, time, features) with the side inputs of their parents, which never change."""
    if model.side is not None:
        first = perturbed.shape[2] - model.side.n_columns
        perturbed[:, :, first:] = parents[:, :, first:]
    return perturbed


def perturb(X: FloatArray, parents: IntArray, rng: np.random.Generator, lengths: IntArray | None = None) -> FloatArray:
    """Return a perturbed copy of each parent (parents, time, features): x + z (g - x) + noise, g being another series.

    In turn they get noise only (z = 0), are mixed (z a number in [0, 1]), take a window of steps of some features
    from g (z = 1 there), or are rotated in time (g is x rotated, z = 1), since many models are not invariant to shifts.

    Parameters
    ----------
    X
        Series (batch, time, features).
    parents
        Rows of ``X`` to perturb.
    rng
        Random generator.
    lengths
        True lengths of padded series, or None. A perturbed copy is as long as its parent; another series is resampled
        to that length.
    """
    (_, T, F), n = X.shape, len(parents)
    noisy, mixed, crossed, rotated = (np.arange(n) % 4 == kind for kind in range(4))  # each (n,)
    inside = X.reshape(-1, F) if lengths is None else X[length_mask(lengths, len(X), T)]
    spread = inside.std(0, dtype=np.float64)  # (features,); 0 for a constant feature: it gets no noise
    own_steps = np.full(n, T) if lengths is None else lengths[parents]  # (n,)

    partners = np.where(rotated, parents, rng.integers(len(X), size=n))
    shift = np.where(rotated, rng.integers(T, size=n), 0)
    steps = (np.arange(T) + shift[:, None]) % own_steps[:, None]  # (n, T)
    if lengths is None:
        own, other = X[parents], X[partners[:, None], steps]
    else:
        aligned = blank(resample(X[partners], lengths[partners], own_steps), None, T)
        own, other = X[parents], aligned[np.arange(n)[:, None], steps]

    start, end = np.sort(rng.integers(T + 1, size=(2, n)), axis=0)[..., None]  # each (n, 1)
    window = (np.arange(T) >= start) & (np.arange(T) < end)  # (n, T)
    chosen = rng.random((n, F)) < rng.random((n, 1))  # (n, F); from few features to nearly all
    share = np.where(mixed, rng.random(n), rotated)  # (n,)
    z = share[:, None, None] + (crossed[:, None] & window)[..., None] * chosen[:, None]  # (n, T, F)
    size = np.where(noisy, rng.choice(NOISES, size=n), 0.0)[:, None, None]

    change = z * (other - own)
    change += size * spread * rng.standard_normal((n, T, F))
    perturbed = np.asarray(own + change, dtype=X.dtype)
    return perturbed if lengths is None else blank(perturbed, own_steps)


def _predict(model: Model, X: FloatArray, lengths: IntArray | None, progress: bool | None) -> FloatArray:
    """Return what the black box predicts: probabilities (batch, classes) or numbers (batch, outputs)."""
    parts = []
    with progress_bar(f"predicting with {model.name}", len(X), show=progress) as bar:
        for start in range(0, len(X), PREDICT_BATCH):
            rows = slice(start, start + PREDICT_BATCH)
            parts.append(model.outputs_unchecked(X[rows], None if lengths is None else lengths[rows]))
            bar.advance(len(parts[-1]))
    return np.concatenate(parts)
