"""The ensemble that answers are optimised against: the explained classifier and classifiers of other families.

A change that moves the explained classifier and classifiers of families that have nothing in common alike is a change
of class rather than an adversarial perturbation. The selector, with other seeds, has no part in the optimisation; it
chooses between answers. Evaluation uses classifiers of its own, so that none is used twice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparcets.core.arrays import FloatArray, IntArray
from sparcets.core.info import Scaler
from sparcets.core.progress import progress_bar
from sparcets.core.seeding import spawn
from sparcets.core.series import rows_by_length
from sparcets.core.settings import ClassifierConfig, ExplainerConfig, Rule
from sparcets.methods.own.family import BATCH as FAMILY_BATCH
from sparcets.methods.own.family import FamilyClassifier, FamilyWithin, choose_series
from sparcets.methods.own.selector import NEURAL, Belief, Selector
from sparcets.methods.own.surrogate import distill
from sparcets.methods.request import FitJob
from sparcets.models.base import Classifier
from sparcets.models.network import TorchClassifier
from sparcets.models.views import at_length
from sparcets.training.device import resolve_device, threads_for, with_double_precision
from sparcets.training.networks import fill_gaps

log = logging.getLogger(__name__)
Member = Callable[..., Tensor]  # (series, their lengths if they are padded) -> log-probabilities
MEMBER, JUDGE = "fcn", "resnet"  # architectures of the networks: one to be convinced, one to choose by
NETWORK_STEPS = 400
KEPT_LENGTHS = 32  # ensembles for series of other lengths that are kept
CLEARLY = 0.03  # difference of accuracies that is reported
MAX_LEVEL = 0.9  # probability of the target above which a member is convinced, at most
LEVEL_SERIES = 400  # real series that the levels are measured on
# Many epochs, since the patience grows with them: the validation error of few series is noisy.
NETWORK_CONFIG = ClassifierConfig(hidden=16, label_smoothing=0.05, batch_size=64, lr=2e-3, epochs=400, patience=200)


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Classifiers that the counterfactuals are optimised against, and the selector.

    Attributes
    ----------
    explained
        The explained classifier, or the surrogate of a black box.
    networks
        Of the neural family.
    families
        Classifiers of the other families.
    levels
        Probability of each class at which each head is as convinced as by a real series (heads, classes).
    explained_accuracy
        Share of the training series that the explained classifier, or the surrogate, predicts as labelled.
    selector
        Classifiers that have no part in training and search.
    scaler
        From standardised units, in which series are given here, to the data's own units.
    device
        Of the series given here.
    double
        Whether the data are float64; if so, the classifiers receive float64.

    Series may have missing entries (NaN) if the explained classifier takes them. It fills them in its own way; the
    other classifiers get the last value before.
    """

    explained: Classifier
    networks: Sequence[Classifier]
    families: Sequence[FamilyClassifier | FamilyWithin]
    levels: Tensor
    explained_accuracy: float
    selector: Selector
    scaler: Scaler
    device: torch.device
    double: bool = False
    _at_lengths: dict[int, Ensemble] = field(default_factory=dict, init=False, repr=False)

    def at_length(self, n_steps: int, of: int) -> Ensemble:
        """Return the same ensemble for series of ``n_steps`` steps without padding, if the data are padded to ``of``.

        The last few are kept, because they hold what they have computed for their length.
        """
        if n_steps == of:
            return self
        if n_steps not in self._at_lengths:
            while len(self._at_lengths) >= KEPT_LENGTHS:
                self._at_lengths.pop(next(iter(self._at_lengths)), None)
            explained = at_length(self.explained, n_steps, of)
            assert explained.differentiable
            self._at_lengths[n_steps] = replace(
                self,
                explained=explained,
                families=[family.at_length(n_steps, of) for family in self.families],
                selector=self.selector.at_length(n_steps, of),
            )
        return self._at_lengths[n_steps]

    @cached_property
    def scale_and_center(self) -> tuple[Tensor, Tensor]:
        """Scale and centre of the features (features,), in the data's own type."""
        dtype = torch.float64 if self.double else torch.float32
        scale, center = (
            torch.as_tensor(v, dtype=dtype, device=self.device) for v in (self.scaler.scale, self.scaler.center)
        )
        return scale, center

    @property
    def gaps(self) -> bool:
        """Whether entries of the series may be missing."""
        return self.selector.gaps

    def filled(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return standardised series without gaps; 0, the mean, where a series has no value of a feature."""
        return fill_gaps(x, lengths=lengths, otherwise=0.0) if self.gaps else x

    def standardise(self, X: FloatArray) -> Tensor:
        """Return series in the data's own units (batch, time, features) as standardised ones, on the device."""
        return torch.as_tensor(self.scaler.transform(X).astype(np.float32), device=self.device)

    def to_raw(self, x: Tensor) -> Tensor:
        """Return standardised series in the data's own units."""
        scale, center = self.scale_and_center
        return x.to(scale.dtype) * scale + center

    def members(self) -> list[Member]:
        """Return functions from series in the data's own units to log-probabilities (heads, batch, classes).

        The explained classifier comes first, then networks and the other families; some have several heads. The true
        lengths of padded series are a second argument.
        """
        scale, center = self.scale_and_center

        def of_network(net: Classifier) -> Member:
            def ask(raw: Tensor, lengths: Tensor | None = None) -> Tensor:
                steps = None if lengths is None else lengths.to(net.device)
                given = raw.float() if net.device.type == "mps" else raw  # where there is no double precision
                return net.log_proba(given.to(net.device), steps).to(self.device).float()[None]

            return ask

        def of_family(i: int) -> Member:
            def ask(raw: Tensor, lengths: Tensor | None = None) -> Tensor:
                x = self.filled(((raw - center) / scale).float(), lengths)
                return self.families[i](x) if lengths is None else self._ask_by_length(i, x, lengths)

            return ask

        networks = [of_network(net) for net in (self.explained, *self.networks)]
        return networks + [of_family(i) for i in range(len(self.families))]

    def _ask_by_length(self, i: int, x: Tensor, lengths: Tensor) -> Tensor:
        """Return log-probabilities (heads, batch, classes) of padded series by the classifier of one family."""
        rows, parts = [], []
        for n in sorted(set(lengths.tolist())):
            rows.append((lengths == n).nonzero()[:, 0])
            parts.append(self.at_length(n, x.shape[1]).families[i](x[rows[-1], :n]))
        return torch.cat(parts, dim=1)[:, torch.cat(rows).argsort()]

    def heads(self) -> list[slice]:
        """Return the heads of each member, in the order of :meth:`members`."""
        sizes = [1] * (1 + len(self.networks)) + [family.n_heads for family in self.families]
        ends = np.cumsum(sizes).tolist()
        return [slice(end - size, end) for size, end in zip(sizes, ends, strict=True)]

    def log_proba(self, x: Tensor) -> Tensor:
        """Return log-probabilities (heads, batch, classes) of standardised series by all members."""
        raw = self.to_raw(x)
        return torch.cat([member(raw) for member in self.members()])

    def explained_log_proba(self, x: Tensor) -> Tensor:
        """Return log-probabilities (batch, classes) of standardised series by the explained classifier."""
        return self.members()[0](self.to_raw(x))[0]

    def believe(self, x: Tensor, target: Tensor) -> Belief:
        """Return what the selector says of standardised series."""
        return self.selector.ask(x, self.to_raw(x), target)


def target_log_proba(log_proba: Tensor, target: Tensor) -> Tensor:
    """Return the log-probabilities of the targets (heads, batch) from those of all classes."""
    return log_proba.gather(2, target[None, :, None].expand(len(log_proba), -1, 1))[:, :, 0]


def weaker_than_families(ensemble: Ensemble) -> list[str]:
    """Return a line for the summary where models of other kinds are clearly more accurate than the classifier."""
    own = ensemble.explained_accuracy
    best = {one.family: one.accuracy for one in sorted(ensemble.families, key=lambda one: one.accuracy)}
    better = [f"{name} ({accuracy:.2f})" for name, accuracy in best.items() if accuracy > own + CLEARLY]
    if not better:
        return []
    return [
        f"The classifier (accuracy {own:.2f} on training series) is weaker than models of other kinds by "
        f"leave-one-out: {', '.join(better)}. What flips it need not be what distinguishes the classes."
    ]


def train_ensemble(job: FitJob, rows: IntArray, classifier: Classifier, config: ExplainerConfig, seed: int) -> Ensemble:
    """Fit the classifiers of all families, the selector and, for a black box, the surrogate.

    A classifier that is no better than always predicting the most frequent class is left out.

    Parameters
    ----------
    job, rows
        The fit, and the rows of its series to train on.
    classifier
        The explained one.
    config
        Families, noise, device.
    seed
        Of all trainings.
    """
    config = replace(config, device=with_double_precision(config.device, "sp.Explainer"))
    device = resolve_device(config.device)
    X, y, K = job.X[rows], job.y[rows], job.info.n_classes
    lengths = None if job.lengths is None else job.lengths[rows]

    def steps(some: IntArray) -> IntArray | None:
        return None if lengths is None else lengths[some]

    x = torch.as_tensor(job.info.scaler.transform(X).astype(np.float32), device=device)
    gaps = classifier.takes_gaps
    n_steps = None if lengths is None else torch.as_tensor(lengths, device=device)
    filled = fill_gaps(x, lengths=n_steps, otherwise=0.0) if gaps else x
    names = () if config.believed_by == "model" else config.families
    chance = float(np.bincount(y).max() / len(y))

    def network(role: str, architecture: str, noise: float) -> list[TorchClassifier]:
        if NEURAL not in names:
            return []
        some = choose_series(y, spawn(seed, role), config.max_series)
        net = train_network(
            X[some],
            y[some],
            job.info.class_names,
            architecture,
            noise=noise,
            seed=spawn(seed, role),
            config=config,
            lengths=steps(some),
            subjects=job.subjects_of(rows[some]),
            missing="forward" if gaps else "refuse",
        )
        return [net] if np.mean(net.predict_unchecked(X[some], steps(some)) == y[some]) > chance else []

    others = [name for name in names if name != NEURAL]
    with progress_bar("fitting models of other kinds", 2 * len(others) + 1, show=job.progress) as bar:

        def fit(role: str, family: str) -> FamilyClassifier:
            some = choose_series(y, spawn(seed, f"{role} {family}"), config.max_series)
            make = FamilyClassifier.fit_member if role == "member" else FamilyClassifier.fit_judge
            series = filled[torch.as_tensor(some, device=device)]
            units, own = job.info.scaler.scale, spawn(seed, f"{role} {family}")
            made = make(family, series, y[some], K, own, scale=units, lengths=steps(some))
            bar.advance(1, family)
            return made

        def fit_all() -> tuple[list[FamilyClassifier], list[FamilyClassifier]]:
            with threads_for(x[:FAMILY_BATCH].numel()):
                members = [one for one in (fit("member", name) for name in others) if one.accuracy > chance]
                return members, [fit("judge", one.family) for one in members]

        # Families are fitted in closed form on one core, while the networks are trained on another.
        with ThreadPoolExecutor(1) as worker:
            fitted = worker.submit(fit_all)
            networks, judging = network("member", MEMBER, config.noise), network("judge", JUDGE, 0.0)
            members, judges = fitted.result()
        selector = Selector(networks=judging, judges=judges, gaps=gaps)
        explained = classifier
        if not explained.differentiable:
            bar.advance(0, "surrogate")
            # "student": the older word for a surrogate, kept so that the same seed gives the same network.
            explained = distill(
                explained,
                X,
                lengths=lengths,
                subjects=job.subjects_of(rows),
                class_names=job.info.class_names,
                seed=spawn(seed, "student"),
                device=config.device,
                progress=job.progress,
            )
        bar.advance()
    if device.type == "cuda" and explained.device.type == "cpu":
        log.warning(
            "%s lives on the CPU, the rest of the fit on %s: every step waits for it. Move the model to the GPU before "
            "wrapping it (model.to('cuda')), or fit on the CPU with device='cpu'.",
            classifier.name,
            device,
        )
    measured = choose_series(y, spawn(seed, "accuracy"), config.max_series)
    ensemble = Ensemble(
        explained=explained,
        networks=networks,
        families=members,
        levels=x.new_zeros(0, K),
        explained_accuracy=float(np.mean(explained.predict_unchecked(X[measured], steps(measured)) == y[measured])),
        selector=selector,
        scaler=job.info.scaler,
        device=device,
        double=job.X.dtype == np.float64,
    )
    return replace(ensemble, levels=_levels(ensemble, x, y, lengths, K))


@torch.no_grad()
def _levels(ensemble: Ensemble, x: Tensor, y: IntArray, lengths: IntArray | None, n_classes: int) -> Tensor:
    """Return the median probability that each head gives to real series of their class (heads, classes), bounded."""
    rows = np.linspace(0, len(y) - 1, min(len(y), LEVEL_SERIES)).astype(np.int64)
    parts = [(x.shape[1], part) for part in np.array_split(rows, 8) if len(part)]
    if lengths is not None:
        parts = [(n_steps, rows[some]) for n_steps, some in rows_by_length(lengths[rows])]
        rows = np.concatenate([part for _, part in parts])
    with threads_for(x[parts[0][1]].numel()):
        said = [
            ensemble.at_length(n_steps, x.shape[1]).log_proba(x[torch.as_tensor(part), :n_steps])
            for n_steps, part in parts
        ]
    proba = torch.cat(said, 1)
    levels = x.new_full((len(proba), n_classes), MAX_LEVEL)
    for k in np.unique(y[rows]):
        levels[:, k] = proba[:, torch.as_tensor(y[rows] == k), k].exp().median(1).values
    return levels.clamp(1 / n_classes, MAX_LEVEL)


def train_network(
    X: FloatArray,
    y: IntArray,
    class_names: tuple[str, ...],
    architecture: str,
    *,
    noise: float,
    seed: int,
    config: ExplainerConfig,
    lengths: IntArray | None = None,
    subjects: Any = None,
    missing: Rule = "refuse",
) -> TorchClassifier:
    """Train one small network.

    Parameters
    ----------
    X, y
        Checked series (batch, time, features) in the data's own units, and labels (batch,).
    class_names
        Names of all classes by index; of some there may be no series.
    architecture
        Of the network.
    noise
        Standard deviation of the noise in training, in standard deviations of each series.
    seed
        Same seed and device, same network.
    config
        Device.
    lengths
        True lengths of padded series, or None.
    subjects
        The recorded person of each series (batch,), or None.
    missing
        What it gets for missing values.
    """
    settings = replace(NETWORK_CONFIG.sized(len(X), steps=NETWORK_STEPS), noise=noise, device=config.device, seed=seed)
    settings = replace(settings, patience=max(1, settings.epochs // 2), missing=missing)
    return TorchClassifier(architecture, settings).fit_unchecked(
        X, y, lengths, class_names, named=True, progress=False, subjects=subjects
    )
