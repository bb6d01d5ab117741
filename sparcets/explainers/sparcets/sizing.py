"""Size of the generator and length of the training, by the size of the data and the device."""

from __future__ import annotations

from dataclasses import dataclass

from sparcets.config.explainers import ExplainerConfig

MIN_BATCHES = 25  # batches of an epoch, at least
MANY_SERIES = 1000  # with fewer, a larger network and a longer training gain nothing
MANY_FEATURES = 32  # with more, a small network has enough states


@dataclass(frozen=True)
class ModelSizes:
    """Sizes of the networks and lengths of their trainings.

    Attributes
    ----------
    hidden, layers
        Of the generator.
    batch_size, steps
        Of its training.
    """

    hidden: int
    layers: int
    batch_size: int
    steps: int


def default_sizes(n_series: int, n_features: int, *, on_gpu: bool) -> ModelSizes:
    """Return the sizes for so much data.

    A GPU trains on four times as many queries per step and, for few features, a larger network, in less time than a
    CPU core needs for a small one.

    Examples
    --------
    >>> [default_sizes(n, 12, on_gpu=False).steps for n in (40, 1_580, 14_080)]
    [510, 895, 1100]
    >>> default_sizes(14_080, 12, on_gpu=True)
    ModelSizes(hidden=32, layers=6, batch_size=128, steps=1800)
    """
    if on_gpu and n_series >= MANY_SERIES:
        hidden, layers = (16, 4) if n_features > MANY_FEATURES else (32, 6)
        return ModelSizes(hidden, layers, batch_size=128, steps=1800)
    steps = min(1100, 500 + n_series // 4)
    return ModelSizes(hidden=16, layers=4, batch_size=32, steps=steps)


def configured_sizes(config: ExplainerConfig, n_series: int, n_features: int, *, on_gpu: bool) -> ModelSizes:
    """Return the sizes of the settings, and :func:`default_sizes` for those that are None there."""
    default = default_sizes(n_series, n_features, on_gpu=on_gpu)
    return ModelSizes(
        hidden=config.generator.hidden or default.hidden,
        layers=config.generator.layers or default.layers,
        batch_size=config.train.batch_size or default.batch_size,
        steps=default.steps,
    )
