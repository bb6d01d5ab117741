"""How large a generator, and how long a training: by the data, and by what it runs on."""

from __future__ import annotations

from dataclasses import dataclass

from sparcets.config.explainers import SparceConfig

BATCHES = 25  # of an epoch, at least
MUCH = 1000  # series; with fewer, more than a small network and short training gains nothing
WIDE = 32  # features; with more, a small network has states enough to tell what matters


@dataclass(frozen=True)
class Sizes:
    """Of the default recipe.

    Attributes
    ----------
    hidden, layers
        Of the generator.
    batch_size, steps
        Of its training.
    witnesses, witness_steps
        How many, and of the training of each.
    """

    hidden: int
    layers: int
    batch_size: int
    steps: int
    witnesses: int
    witness_steps: int


def sizes_for(n_series: int, n_features: int, *, on_gpu: bool) -> Sizes:
    """Return what suits so much data.

    A GPU takes four times as many queries and, of few features, a larger network in less time than a core needs for a
    small one.

    Examples
    --------
    >>> [sizes_for(n, 12, on_gpu=False).steps for n in (40, 1_580, 14_080)]
    [510, 895, 3000]
    >>> sizes_for(14_080, 12, on_gpu=True)
    Sizes(hidden=32, layers=6, batch_size=128, steps=3000, witnesses=8, witness_steps=1500)
    """
    if on_gpu and n_series >= MUCH:
        hidden, layers = (16, 4) if n_features > WIDE else (32, 6)
        return Sizes(hidden, layers, batch_size=128, steps=3000, witnesses=8, witness_steps=1500)
    steps = min(3000, 500 + n_series // 4)
    return Sizes(hidden=16, layers=4, batch_size=32, steps=steps, witnesses=4, witness_steps=800)


def chosen_sizes(config: SparceConfig, n_series: int, n_features: int, *, on_gpu: bool) -> Sizes:
    """Return the sizes that the settings name, and where they name none, what suits so much data.

    The number of steps is the data's; settings count epochs.
    """
    fitting = sizes_for(n_series, n_features, on_gpu=on_gpu)
    return Sizes(
        hidden=config.generator.hidden or fitting.hidden,
        layers=config.generator.layers or fitting.layers,
        batch_size=config.train.batch_size or fitting.batch_size,
        steps=fitting.steps,
        witnesses=fitting.witnesses if config.witnesses is None else config.witnesses,
        # No longer than the generator itself, for those who want it quick.
        witness_steps=min(fitting.witness_steps, (config.train.epochs or fitting.witness_steps) * BATCHES),
    )
