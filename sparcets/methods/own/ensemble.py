"""The ensemble that answers are optimised against: the explained classifier and classifiers of other families.

A change that moves the explained classifier and classifiers of families that have nothing in common alike is a change
of class rather than an adversarial perturbation. The selector, with other seeds, has no part in the optimisation; it
chooses between answers. Evaluation uses classifiers of its own, so that none is used twice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparcets.core.evidence import REAL
from sparcets.core.progress import progress_bar, yield_to_urgent_work
from sparcets.core.seeding import spawn
from sparcets.core.series import FloatArray, IntArray, Scaler, Series
from sparcets.core.settings import ClassifierConfig, ExplainerConfig
from sparcets.methods.own.discriminator import ORDINARY, Discriminators
from sparcets.methods.own.family import BATCH as FAMILY_BATCH
from sparcets.methods.own.family import Family, FamilyWithin, by_length, choose_series
from sparcets.methods.own.surrogate import distill
from sparcets.methods.request import FitJob
from sparcets.models.base import Classifier, Model
from sparcets.models.network import TorchClassifier, TorchRegressor
from sparcets.models.views import at_length
from sparcets.training.device import lengths_on, one_thread_each, resolve_device, threads_for, with_double_precision
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


NEURAL = "neural"
# Lead of the target over every other class that an answer should have in each family. A linear model is rarely in
# doubt: a small lead says less there than the same one among the votes of trees.
LEAD, LEADS = 0.1, {"convolutions": 0.6, REAL: 0.0}
ASKED = {"cpu": 16, "cuda": 4096}  # series per pass; on a CPU, as many as fit into its caches
ELSEWHERE = "convolutions"  # the family that is asked on another core of a CPU: few large operations, beside many small


@dataclass(frozen=True, eq=False)
class Belief:
    """What the families say of some series.

    Attributes
    ----------
    support
        Share of each family's classifiers that predict the target (batch, families).
    margin
        Probability of the target minus that of the next class, averaged over each family's classifiers (batch,
        families).
    lead
        Margin that each family should have (families,).
    """

    support: Tensor
    margin: Tensor
    lead: Tensor

    @property
    def believed(self) -> Tensor:
        """Whether the majority of every family predicts the target (batch,); True without families."""
        return (self.support > 0.5).all(1)

    @property
    def convincing(self) -> Tensor:
        """Whether it is believed with a lead (batch,), so that it is believed by other judges too."""
        return self.believed & (self.margin >= self.lead).all(1)

    @classmethod
    def join(cls, parts: Sequence[Belief]) -> Belief:
        """Return what is said of the series of all parts, one after the other."""
        return cls(torch.cat([p.support for p in parts]), torch.cat([p.margin for p in parts]), parts[0].lead)

    def select(self, rows: Tensor) -> Belief:
        """Return what is said of some of the series, by a mask or indices."""
        return Belief(self.support[rows], self.margin[rows], self.lead)

    @property
    def n_believing(self) -> Tensor:
        """Number of families whose majority predicts the target (batch,)."""
        return (self.support > 0.5).sum(1)


@dataclass(frozen=True, eq=False)
class Selector:
    """Networks and classifiers of other families, with other seeds than those that answers are optimised against.

    Attributes
    ----------
    networks
        Classifiers of the neural family; may be empty.
    judges
        Classifiers of the other families, those of one family next to each other.
    gaps
        Whether entries of the series may be missing (NaN).
    leads
        Margin that a family should have, where it is another than usual.
    discriminators
        Tell answers from recordings: the family ``real``, the last one; or None.
    """

    networks: Sequence[Classifier]
    judges: Sequence[Family | FamilyWithin]
    gaps: bool = False
    leads: Mapping[str, float] = field(default_factory=LEADS.copy)
    discriminators: Discriminators | None = None

    @property
    def families(self) -> tuple[str, ...]:
        """Names of the families, in the order of the columns of a belief."""
        kinds = [NEURAL] * bool(self.networks) + [judge.family for judge in self.judges]
        return tuple(dict.fromkeys([*kinds, *[REAL] * (self.discriminators is not None)]))

    def at_length(self, n_steps: int, of: int) -> Selector:
        """Return the same classifiers for series of ``n_steps`` steps instead of ones padded to ``of``."""
        return replace(self, judges=[judge.at_length(n_steps, of) for judge in self.judges])

    def ask(self, x: Tensor, raw: Tensor, target: Tensor) -> Belief:
        """Return what all families say.

        Parameters
        ----------
        x, raw
            Series (batch, time, features), standardised and in the data's own units.
        target
            Target classes (batch,).
        """
        names = list(self.families)
        lead = x.new_tensor([self.leads.get(name, LEAD) for name in names])
        if not names:
            return Belief(x.new_zeros(len(x), 0), x.new_zeros(len(x), 0), lead)
        gains = ELSEWHERE in names and not x.is_cuda and len(x) > ASKED["cpu"]
        elsewhere = names.pop(names.index(ELSEWHERE)) if gains else None
        with one_thread_each(n_workers=1) as worker:
            other = None if elsewhere is None else worker.submit(self.ask_family, elsewhere, x, raw, target)
            said = {name: self.ask_family(name, x, raw, target) for name in names}
            if elsewhere is not None and other is not None:
                said[elsewhere] = other.result()
        support, margin = (torch.stack(column, dim=1) for column in zip(*(said[f] for f in self.families), strict=True))
        return Belief(support, margin, lead)

    @torch.no_grad()
    def ask_family(self, name: str, x: Tensor, raw: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return support and margin by one family (batch,); see :meth:`ask`."""
        if not len(x):
            return x.new_zeros(0), x.new_zeros(0)
        if name == REAL:
            assert self.discriminators is not None
            rank = self.discriminators.rank(fill_gaps(x, otherwise=0.0) if self.gaps else x, target)
            return (rank >= ORDINARY).float().mean(0), rank.amin(0) - ORDINARY
        judges = [judge for judge in self.judges if judge.family == name]

        def ask_part(rows: slice) -> Tensor:
            yield_to_urgent_work()
            if name == NEURAL:
                return torch.stack([log_proba_of(net, raw[rows]).exp() for net in self.networks])
            measured = fill_gaps(x[rows], otherwise=0.0) if self.gaps else x[rows]
            return torch.cat([judge.votes(measured) for judge in judges])

        parts = range(0, len(x), ASKED[x.device.type])
        votes = [ask_part(slice(start, start + ASKED[x.device.type])) for start in parts]
        return _agreement(torch.cat(votes, dim=1), target)


def _agreement(votes: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Return the share of voters for the target, and the margin of their mean, of votes (voters, batch, classes)."""
    support = (votes.argmax(2) == target).float().mean(0)
    mean = votes.mean(0)
    own = mean.gather(1, target[:, None])
    next_best = mean.scatter(1, target[:, None], -torch.inf).amax(1)
    return support, own[:, 0] - next_best


def log_proba_of(net: Classifier, raw: Tensor, lengths: Tensor | None = None) -> Tensor:
    """Return log-probabilities (batch, classes) of series in the data's own units, on the device of these."""
    own = raw.float() if net.device.type == "mps" else raw  # where there is no double precision
    return net.log_proba(own.to(net.device), lengths_on(net.device, lengths)).to(raw.device).float()


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
    discriminators
        Tell answers from recordings; or None.

    Series may have missing entries (NaN) if the explained classifier takes them. It fills them in its own way; the
    other classifiers get the last value before.
    """

    explained: Classifier
    networks: Sequence[Classifier]
    families: Sequence[Family | FamilyWithin]
    levels: Tensor
    explained_accuracy: float
    selector: Selector
    scaler: Scaler
    device: torch.device
    double: bool = False
    discriminators: Discriminators | None = None
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
            return lambda raw, lengths=None: log_proba_of(net, raw, lengths).to(self.device)[None]

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
        yield_to_urgent_work()
        raw = self.to_raw(x)
        return torch.cat([member(raw) for member in self.members()])

    def realism(self, x: Tensor, target: Tensor) -> Tensor:
        """Return, by kind of discriminator, the share of recordings that look no more real (kinds, batch)."""
        if self.discriminators is None:
            return x.new_ones(1, len(x))
        return self.discriminators.rank(self.filled(x), target)

    def believe(self, x: Tensor, target: Tensor) -> Belief:
        """Return what the selector says of standardised series."""
        return self.selector.ask(x, self.to_raw(x), target)


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


def standardised(series: Series, scaler: Scaler, *, gaps: bool) -> Series:
    """Return series as families and prototypes see them: standardised, in float32, and without gaps."""
    x = series.with_values(scaler.transform(series.values).astype(np.float32))
    return x.filled(otherwise=0.0) if gaps else x


@dataclass(frozen=True, eq=False)
class Members:
    """What was trained to classes or to numbers.

    Attributes
    ----------
    explained
        The explained model, or the surrogate of a black box.
    networks, families
        Models that answers are optimised against.
    judge_networks, judges
        Models that they are chosen by.
    discriminators
        Those of the ensemble and those of the selector; empty until they are trained.
    """

    explained: Any
    networks: Sequence[Any]
    families: Sequence[Family]
    judge_networks: Sequence[Any]
    judges: Sequence[Family]
    discriminators: tuple[Discriminators, ...] = ()

    @classmethod
    def train(cls, job: FitJob, rows: IntArray, model: Model, config: ExplainerConfig, seed: int) -> Members:
        """Fit the models of all families and, for a black box, the surrogate.

        A model that is no better than always predicting the most frequent class, or the mean, is left out.

        Parameters
        ----------
        job, rows
            The fit, and the rows of its series to train on.
        model
            The explained one.
        config
            Families, noise, device.
        seed
            Of all trainings.
        """
        device = resolve_device(config.device)
        info, y, series = job.info, job.y[rows], job.series[rows]
        x = standardised(series, info.scaler, gaps=model.takes_gaps)
        names = () if config.believed_by == "model" else config.families
        labels: np.ndarray[Any, Any] = y
        n_classes: int | None = info.n_classes
        chance = float(np.bincount(y).max() / len(y))
        if info.outcome:
            labels = (job.numbers[rows] - info.outcome.center) / info.outcome.scale
            n_classes, chance = None, 0.0

        def network(role: str, architecture: str, noise: float) -> list[Any]:
            if NEURAL not in names:
                return []
            some = choose_series(y, spawn(seed, role), config.max_series)
            own = replace(NETWORK_CONFIG.sized(len(some), steps=NETWORK_STEPS), noise=noise, device=config.device)
            own = replace(own, seed=spawn(seed, role), patience=max(1, own.epochs // 2))
            own = replace(own, missing="forward" if model.takes_gaps else "refuse")
            part, people = series[some], job.subjects_of(rows[some])
            if info.outcome:
                regressor = TorchRegressor(architecture, own)
                numbers = job.numbers[rows[some]]
                regressor.fit_unchecked(part, numbers, progress=False, subjects=people)
                return [regressor] if regressor.error_ < 1 else []
            net = TorchClassifier(architecture, own).fit_unchecked(
                part, y[some], info.class_names, named=True, progress=False, subjects=people
            )
            said = net.outputs_unchecked(part).argmax(1)
            return [net] if np.mean(said == y[some]) > chance else []

        others = [name for name in names if name != NEURAL]
        with progress_bar("fitting models of other kinds", 2 * len(others) + 1, show=job.progress) as bar:

            def fit(role: str, family: str) -> Family:
                own, judges, scale = spawn(seed, f"{role} {family}"), role == "judge", info.scaler.scale
                some = choose_series(y, own, config.max_series)
                made = Family.fit(
                    family, x[some], labels[some], n_classes, own, judges=judges, scale=scale, device=device
                )
                bar.advance(1, family)
                return made

            def fit_all() -> tuple[list[Family], list[Family]]:
                with threads_for(x.values[:FAMILY_BATCH].size):
                    members = [one for one in (fit("member", name) for name in others) if one.accuracy > chance]
                    return members, [fit("judge", one.family) for one in members]

            # Families are fitted in closed form on one core, while the networks are trained on another.
            with ThreadPoolExecutor(1) as worker:
                fitted = worker.submit(fit_all)
                networks, judging = network("member", MEMBER, config.noise), network("judge", JUDGE, 0.0)
                members, judges = fitted.result()
            explained: Any = model
            if not model.differentiable:
                bar.advance(0, "surrogate")
                # "student": the older word for a surrogate, kept so that the same seed gives the same network.
                explained = distill(
                    model,
                    series,
                    subjects=job.subjects_of(rows),
                    class_names=info.class_names,
                    seed=spawn(seed, "student"),
                    device=config.device,
                    progress=job.progress,
                )
            bar.advance()
        if device.type == "cuda" and explained.device.type == "cpu":
            log.warning(
                "%s lives on the CPU, the rest of the fit on %s: every step waits for it. Move the model to the GPU "
                "before wrapping it (model.to('cuda')), or fit on the CPU with device='cpu'.",
                model.name,
                device,
            )
        return cls(explained, networks, members, judging, judges)


def train_ensemble(job: FitJob, rows: IntArray, classifier: Classifier, config: ExplainerConfig, seed: int) -> Ensemble:
    """Train the members and measure how convinced they are of real series; see :meth:`Members.train`."""
    config = with_double_precision(config)
    members = Members.train(job, rows, classifier, config, seed)
    explained, y = members.explained, job.y[rows]
    measured = choose_series(y, spawn(seed, "accuracy"), config.max_series)
    said = explained.outputs_unchecked(job.series[rows[measured]]).argmax(1)
    ensemble = Ensemble(
        explained=explained,
        networks=members.networks,
        families=members.families,
        levels=torch.zeros(0, job.info.n_classes),
        explained_accuracy=float(np.mean(said == y[measured])),
        selector=Selector(members.judge_networks, members.judges, gaps=classifier.takes_gaps),
        scaler=job.info.scaler,
        device=resolve_device(config.device),
        double=job.series.values.dtype == np.float64,
    )
    known = np.linspace(0, len(y) - 1, min(len(y), LEVEL_SERIES)).astype(np.int64)
    return replace(ensemble, levels=_levels(ensemble, job.series[rows[known]], y[known], job.info.n_classes))


@torch.no_grad()
def _levels(ensemble: Ensemble, series: Series, y: IntArray, n_classes: int) -> Tensor:
    """Return the median probability that each head gives to real series of their class (heads, classes), bounded."""
    x = standardised(series, ensemble.scaler, gaps=False)

    def ask(part: Series) -> Tensor:
        own = ensemble.at_length(part.n_steps, x.n_steps)
        # In eight parts unless lengths differ: the last bits depend on the number of series in a pass.
        parts = [some for some in np.array_split(part.values, 8 if part is x else 1) if len(some)]
        return torch.cat([own.log_proba(torch.as_tensor(some, device=ensemble.device)) for some in parts], 1)

    with threads_for(x.values[: -(-len(x) // 8)].size):
        proba = by_length(x, ask, dim=1)
    levels = proba.new_full((len(proba), n_classes), MAX_LEVEL)
    for k in np.unique(y):
        levels[:, k] = proba[:, torch.as_tensor(y == k), k].exp().median(1).values
    return levels.clamp(1 / n_classes, MAX_LEVEL)
