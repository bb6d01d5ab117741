"""The ensemble that answers must convince: the explained classifier, auxiliary classifiers, and a selector.

A change that moves the explained classifier and auxiliary classifiers of other architectures alike is a change of class
rather than an adversarial perturbation of one network. The selector is one more classifier, against which no answer is
optimised; it chooses between answers. Evaluation uses classifiers with other seeds, so that none is used twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from sparcets.arrays import FloatArray, IntArray
from sparcets.classifiers.base import Classifier, DifferentiableClassifier
from sparcets.classifiers.torch_classifier import TorchClassifier
from sparcets.config.explainers import ExplainerConfig
from sparcets.config.models import ClassifierConfig
from sparcets.datasets.scaling import Scaler
from sparcets.explainers.request import FitJob
from sparcets.explainers.sparcets.sizing import configured_sizes
from sparcets.explainers.sparcets.surrogate import distill
from sparcets.seeding import spawn
from sparcets.training.device import resolve_device

ARCHITECTURES = ("fcn", "resnet", "tcn", "bilstm")  # of the auxiliary classifiers, cycled
SELECTOR = "resnet"  # the architecture that is hardest to convince
AUXILIARY_SEED = "witness"  # name in the seeds; an older word, kept so that the same seed gives the same networks
PATIENCE = 0.5  # early stopping, as a share of the epochs: recurrent networks begin to learn late
# Many epochs, since the patience grows with them: the validation error of few series is noisy.
AUXILIARY_CONFIG = ClassifierConfig(hidden=16, label_smoothing=0.05, batch_size=128, lr=5e-3, epochs=400, patience=4)


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Classifiers that the counterfactuals are optimised against.

    Attributes
    ----------
    members
        The explained classifier, or the surrogate of a black box, then the auxiliary classifiers.
    selector
        A classifier that has no part in training and search.
    scaler
        From standardised units, in which series are given here, to the data's own units.
    device
        Of the series given here.
    double
        Whether the data are float64; if so, the classifiers receive float64.
    """

    members: Sequence[DifferentiableClassifier]
    selector: DifferentiableClassifier
    scaler: Scaler
    device: torch.device
    double: bool = False

    @cached_property
    def scale_and_center(self) -> tuple[Tensor, Tensor]:
        """Scale and centre of the features (features,), in the data's own type."""
        dtype = torch.float64 if self.double else torch.float32
        scale, center = (
            torch.as_tensor(v, dtype=dtype, device=self.device) for v in (self.scaler.scale, self.scaler.center)
        )
        return scale, center

    def _raw(self, x: Tensor) -> Tensor:
        """Return standardised series in the data's own units."""
        scale, center = self.scale_and_center
        return x.to(scale.dtype) * scale + center

    def log_proba(self, x: Tensor, *, with_selector: bool = False) -> Tensor:
        """Return log-probabilities of standardised series (members, batch, classes), with gradients.

        With ``with_selector``, those of the selector come last.
        """
        members = [*self.members, self.selector] if with_selector else self.members
        raw = self._raw(x)
        return torch.stack([member.log_proba(raw.to(member.device)).to(x.device).float() for member in members])

    @torch.no_grad()
    def agreement(self, x: Tensor, target: Tensor, required: Tensor | None = None) -> Tensor:
        """Return the least probability of the target over all members (batch,).

        Parameters
        ----------
        x, target
            Standardised series (batch, time, features) and target classes (batch,).
        required
            Probabilities (batch,) that the caller compares the result with. On a CPU, members are skipped once another
            member gives less; the result is then some value below ``required``.
        """
        if required is None or x.device.type != "cpu":  # on a GPU, skipping would need synchronisation
            return target_log_proba(self.log_proba(x), target).amin(0).exp()
        raw, least = self._raw(x), torch.ones(len(x))
        for member in reversed(self.members):  # the auxiliary classifiers are harder to convince than the explained one
            left = torch.nonzero(least >= required)[:, 0]
            if not len(left):
                break
            some, targets = (raw, target) if len(left) == len(x) else (raw[left], target[left])
            log_proba = member.log_proba(some.to(member.device)).float().to("cpu")
            least[left] = torch.minimum(least[left], log_proba.gather(1, targets[:, None])[:, 0].exp())
        return least


def target_log_proba(log_proba: Tensor, target: Tensor) -> Tensor:
    """Return the log-probabilities of the targets (members, batch) from those of all classes."""
    return log_proba.gather(2, target[None, :, None].expand(len(log_proba), -1, 1))[:, :, 0]


def train_ensemble(job: FitJob, rows: IntArray, classifier: Classifier, config: ExplainerConfig, seed: int) -> Ensemble:
    """Train the auxiliary classifiers, the selector and, for a black box, the surrogate.

    Parameters
    ----------
    job, rows
        The fit, and the rows of its series to train on.
    classifier
        The explained one.
    config
        Number of auxiliary classifiers, noise, device.
    seed
        Of all trainings.
    """
    device = resolve_device(config.device)
    sizes = configured_sizes(config, len(rows), job.info.n_features, on_gpu=device.type == "cuda")
    X, y, n = job.X[rows], job.y[rows], sizes.auxiliaries

    def train(number: int, noise: float) -> TorchClassifier:
        return train_auxiliary(
            X,
            y,
            job.info.class_names,
            number=number,
            noise=noise,
            steps=sizes.auxiliary_steps,
            seed=seed,
            device=config.device,
            progress=job.progress,
        )

    auxiliaries = [train(i, config.noise if learns_with_noise(i) else 0.0) for i in range(n)]
    selector = train(selector_number(n), 0.0)
    member = classifier
    if not isinstance(member, DifferentiableClassifier):
        # "student": the older word for a surrogate, kept so that the same seed gives the same network.
        member = distill(
            member,
            X,
            class_names=job.info.class_names,
            seed=spawn(seed, "student"),
            device=config.device,
            progress=job.progress,
        )
    return Ensemble(
        members=(member, *auxiliaries),
        selector=selector,
        scaler=job.info.scaler,
        device=device,
        double=job.X.dtype == np.float64,
    )


def learns_with_noise(number: int) -> bool:
    """Return whether an auxiliary classifier is trained with noise: every other one, shifted by one in each cycle.

    Noise makes a network rely on large and lasting features; those trained without it are more like the
    classifiers of an evaluation, and harder to convince.

    >>> [learns_with_noise(i) for i in range(8)]
    [True, False, True, False, False, True, False, True]
    """
    cycle, position = divmod(number, len(ARCHITECTURES))
    return (cycle + position) % 2 == 0


def selector_number(n_auxiliaries: int) -> int:
    """Return the number of the selector: the first of its architecture after the last cycle of auxiliary classifiers.

    >>> selector_number(0), selector_number(4), selector_number(5)
    (5, 9, 9)
    """
    cycles = n_auxiliaries // len(ARCHITECTURES) + 1
    return cycles * len(ARCHITECTURES) + ARCHITECTURES.index(SELECTOR)


def train_auxiliary(
    X: FloatArray,
    y: IntArray,
    class_names: tuple[str, ...],
    *,
    number: int,
    noise: float,
    steps: int,
    seed: int,
    device: str = "auto",
    progress: bool | None = None,
) -> TorchClassifier:
    """Train one small classifier.

    Parameters
    ----------
    X, y
        Checked series (batch, time, features) in the data's own units, and labels (batch,).
    class_names
        Names of all classes by index; of some there may be no series.
    number
        Which one: its number decides architecture and seed.
    noise
        Standard deviation of the noise in training, in standard deviations of each series.
    steps
        Of optimisation, at most.
    seed, device
        Same seed, number and device, same classifier.
    progress
        Whether to draw a progress bar; None draws it on a terminal.

    Examples
    --------
    >>> from sparcets.testing.data import make_series
    >>> X, y = make_series(60)
    >>> train_auxiliary(X, y, ("a", "b", "c"), number=0, noise=0.3, steps=300, seed=0)
    TorchClassifier('fcn', 4 features, 3 classes)
    """
    config = AUXILIARY_CONFIG.sized(len(X), steps=steps)
    config = replace(
        config,
        noise=noise,
        device=device,
        patience=max(1, round(PATIENCE * config.epochs)),
        seed=spawn(seed, f"{AUXILIARY_SEED} {number}"),
    )
    classifier = TorchClassifier(ARCHITECTURES[number % len(ARCHITECTURES)], config)
    return classifier.fit_unchecked(X, y, None, class_names, named=True, progress=progress)
