"""Witnesses: small classifiers beside the explained one, which keep a training from merely fooling that one network.

A change that moves the explained classifier and the witnesses alike is a change of class rather than a trick on one
network. They learn with noise, which makes them care for what is large and lasting. They take part in the making of
explanations, so they must never be those that judge them afterwards: their seeds are their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sparcets.classifiers.torch_classifier import TorchClassifier
from sparcets.config.models import ClassifierConfig
from sparcets.errors import ConfigError
from sparcets.seeding import spawn
from sparcets.training.device import resolve_device
from sparcets.validation import check_labels, check_lengths, check_series

WITNESSES = ("fcn", "resnet", "tcn", "bilstm")  # the order in which they are called, and again from the start
PATIENT = 0.5  # of the epochs without progress: recurrent ones stand still for long before they begin to learn
# More epochs than data of some hundred series need, since patience grows with them: a handful of series to watch tell
# little about the progress of a network, and one that was stopped by chance would be a bad witness.
WITNESS_CONFIG = ClassifierConfig(hidden=16, label_smoothing=0.05, batch_size=128, lr=5e-3, epochs=400, patience=4)


def train_witnesses(
    X: Any,
    y: Any,
    *,
    lengths: Any = None,
    class_names: Sequence[str] | None = None,
    n: int = 3,
    skip: int = 0,
    noise: float = 0.3,
    seed: int = 0,
    steps: int = 1500,
    device: str = "auto",
    progress: bool | None = None,
) -> list[TorchClassifier]:
    """Train ``n`` small classifiers of different architectures on the same series.

    Parameters
    ----------
    X
        Series (batch, time, features) in the data's own units.
    y
        Labels (batch,): class indices or names.
    lengths
        True lengths of padded series.
    class_names
        Names of all classes by index, where they are known; of some there may be no series.
    n, skip
        How many, and how many before them are left out.
    noise
        What they learn with, in standard deviations of each series.
    steps
        Of optimisation for each, at most.
    seed, device
        Same seed and device, same witnesses; the first ones are the same whatever ``n`` is.
    progress
        Whether to draw a progress bar; None draws it on a terminal.

    Examples
    --------
    >>> from sparcets.testing.data import make_series
    >>> X, y = make_series(60)
    >>> train_witnesses(X, y, n=1)
    [TorchClassifier('fcn', 4 features, 3 classes)]
    """
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0:
        raise ConfigError(f"n must be a number of witnesses, 0 or more, got {n!r}.")
    resolve_device(device)  # a mistake here should show before any training
    X = check_series(X)
    labels, names = check_labels(y, n_samples=len(X), class_names=class_names, complete=class_names is None)
    checked = check_lengths(lengths, X)
    config = WITNESS_CONFIG.sized(len(X), steps=steps)
    config = replace(config, noise=noise, device=device, patience=max(1, round(PATIENT * config.epochs)))
    return [
        TorchClassifier(WITNESSES[i % len(WITNESSES)], replace(config, seed=spawn(seed, f"witness {i}")))._learn(
            X, labels, checked, names, named=class_names is not None, progress=progress
        )
        for i in range(skip, skip + n)
    ]
