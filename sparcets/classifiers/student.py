"""A student: a network that copies what a black box says, and lends it the gradients that it has not."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sparcets.arrays import FloatArray, IntArray, steps_within
from sparcets.classifiers.base import BATCH, Classifier
from sparcets.classifiers.torch_classifier import TorchClassifier
from sparcets.config.models import ClassifierConfig
from sparcets.progress import progress_bar
from sparcets.seeding import generator, spawn
from sparcets.training.device import resolve_device
from sparcets.validation import check_lengths, check_names, check_series

log = logging.getLogger(__name__)

ARCHITECTURE = "fcn"  # copies forests and neighbours as well as the other architectures do, in the shortest time
STUDENT_CONFIG = ClassifierConfig(hidden=32, dropout=0.0, batch_size=128, lr=2e-3, epochs=60, patience=4)
STEPS = 3000  # of optimisation, at most: there is more to learn from answers about 20,000 series than from labels
COPIES = 5  # perturbed series per given one
LARGEST = 20_000  # series that the black box is asked about, at most
NOISES = (0.1, 0.3, 1.0)  # sizes of noise, in standard deviations of each feature


def distill(
    classifier: Classifier,
    X: Any,
    *,
    lengths: Any = None,
    class_names: Sequence[str] | None = None,
    seed: int = 0,
    device: str = "auto",
    progress: bool | None = None,
) -> TorchClassifier:
    """Train a differentiable student on the probabilities that a black box gives to series and to perturbed ones.

    A student is a guide, not a stand-in: whether an answer is valid, only the black box can tell. On the series kept
    for validation, perturbed like those it learnt from, the two agree by ``1 - min(history_["validation_error"])``;
    on series unlike the training ones they may agree less.

    Parameters
    ----------
    classifier
        The black box; it is asked about six times as many series as given, at most about 20,000.
    X
        Series (batch, time, features) in the data's own units; no labels are needed.
    lengths
        True lengths of padded series.
    class_names
        Names of the classes by index; by default the black box's own.
    seed, device
        Same seed and device, same student.
    progress
        Whether to draw progress bars; None draws them on a terminal.

    Examples
    --------
    >>> from sparcets.classifiers.wrap import wrap
    >>> from sparcets.testing.data import make_series
    >>> from sparcets.testing.mocks import mean_proba
    >>> X, _ = make_series(30)
    >>> black_box = wrap(mean_proba)
    >>> student = distill(black_box, X)
    >>> float((student.predict(X) == black_box.predict(X)).mean())
    1.0
    """
    resolve_device(device)  # a mistake here should show before any work
    X = check_series(X, owner=classifier.name, n_features=classifier.n_features, n_steps=classifier.n_steps)
    checked = check_lengths(lengths, X)
    rng = generator(seed, "student")
    rows = rng.permutation(len(X))[: LARGEST // 2]
    parents = rng.choice(rows, size=min(COPIES * len(rows), LARGEST - len(rows)))
    series = np.concatenate([X[rows], perturbed(X, parents, checked, rng)])
    ends = None if checked is None else checked[np.concatenate([rows, parents])]
    proba = _ask(classifier, series, ends, progress)
    names = check_names(class_names, what="class_names", n=proba.shape[1]) or classifier.class_names
    never = [name for k, name in enumerate(names) if k not in proba.argmax(1)]
    if never:
        log.info("%s never says %s, so neither will its student", classifier.name, ", ".join(never))
    config = replace(STUDENT_CONFIG.sized(len(series), steps=STEPS), seed=spawn(seed, "student"), device=device)
    student = TorchClassifier(ARCHITECTURE, config)
    named = classifier.named or class_names is not None
    student._learn(series, proba, ends, names, named=named, progress=progress)
    log.info("the student agrees with %s on %.3f", classifier.name, 1 - min(student.history_["validation_error"]))
    return student


def perturbed(X: FloatArray, parents: IntArray, lengths: IntArray | None, rng: np.random.Generator) -> FloatArray:
    """Return a changed copy of each parent (parents, time, features): x + z (g - x) + noise, g being another series.

    By turns they get noise only (z = 0), are mixed (z a number in [0, 1]), take a window of steps of some features
    from g (z = 1 there), or are turned in time, their end coming first (g is x turned, z = 1): many models care for
    the place of things more than one would think. Padding stays as it is, and where g has ended x is left as it was.

    Parameters
    ----------
    X
        Series (batch, time, features).
    parents
        Rows of ``X`` to change.
    lengths
        True lengths of padded series.
    rng
        Where chance comes from.
    """
    (_, T, F), n = X.shape, len(parents)
    noisy, mixed, crossed, turned = (np.arange(n) % 4 == kind for kind in range(4))  # each (n,)
    within = steps_within(lengths, len(X), T)  # (batch, time)
    spread = X[within].std(0, dtype=np.float64)  # (features,); 0 for a feature that never varies: it gets no noise

    partners = np.where(turned, parents, rng.integers(len(X), size=n))
    ends = np.full(n, T) if lengths is None else lengths[partners]
    shift = np.where(turned, rng.integers(T, size=n), 0)
    steps = np.arange(T) + np.zeros((n, 1), dtype=np.int64)  # (n, T)
    steps = np.where(steps < ends[:, None], (steps + shift[:, None]) % ends[:, None], steps)
    own, other = X[parents], X[partners[:, None], steps]

    start, end = np.sort(rng.integers(T + 1, size=(2, n)), axis=0)[..., None]  # each (n, 1)
    window = (np.arange(T) >= start) & (np.arange(T) < end)  # (n, T)
    chosen = rng.random((n, F)) < rng.random((n, 1))  # (n, F); from few features to nearly all
    share = np.where(mixed, rng.random(n), turned)  # (n,)
    z = share[:, None, None] + (crossed[:, None] & window)[..., None] * chosen[:, None]  # (n, T, F)
    size = np.where(noisy, rng.choice(NOISES, size=n), 0.0)[:, None, None]

    change = np.where(within[partners][..., None], z * (other - own), 0.0)
    change += size * spread * rng.standard_normal((n, T, F))
    change[~within[parents]] = 0.0
    return np.asarray(own + change, dtype=X.dtype)


def _ask(classifier: Classifier, X: FloatArray, lengths: IntArray | None, progress: bool | None) -> FloatArray:
    """Return the black box's probabilities (batch, classes), float32, each row at least 0 and of sum 1."""
    parts = []
    with progress_bar(f"asking {classifier.name}", len(X), show=progress) as bar:
        for start in range(0, len(X), BATCH):
            rows = slice(start, start + BATCH)
            parts.append(classifier.predict_proba(X[rows], None if lengths is None else lengths[rows]))
            bar.advance(len(parts[-1]))
    proba = np.concatenate(parts).clip(0.0, None)
    return np.asarray(proba / proba.sum(1, keepdims=True), dtype=np.float32)
