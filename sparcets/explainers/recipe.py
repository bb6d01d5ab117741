"""The default recipe of Sparce: what is trained, in which order, and how its place on the trade-off is chosen."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from sparcets.arrays import FloatArray, IntArray
from sparcets.classifiers.base import Classifier, DifferentiableClassifier
from sparcets.config.explainers import SparceConfig
from sparcets.datasets.scaling import Scaler
from sparcets.explainers.cutting import cut, without_faint
from sparcets.networks.gated import GatedGenerator
from sparcets.series_info import SeriesInfo
from sparcets.trade_off import Place

log = logging.getLogger(__name__)
LADDER = 5  # strengths tried, from the weakest to the strongest
LOUDER = (1.0, 1.3, 1.6)  # beyond, answers leave what is real
NEAREST = 5  # guides tried per query
AT_ONCE = 32  # series that a core's caches hold; of more, the states are fetched from memory again and again


@dataclass(frozen=True, eq=False)
class Recipe:
    """What a fit leaves behind.

    Attributes
    ----------
    generator
        The averaged generator.
    voices
        The explained classifier, or the student of a black box, then the witnesses.
    referee
        A witness that had no part in the training: it chooses.
    guides, guide_class
        Real training series (n, time, features), standardised, that are labelled and predicted as their class.
    strengths
        Logarithms of the strengths it was trained for, from the weakest to the strongest.
    louder
        Factors of the changes that are tried: a generator goes no further than it has to, some judges ask for more.
    level
        Probability of the target that all voices should keep giving after a cut.
    scaler
        To the data's own units.
    double
        Whether the data are float64: what that tells apart, the voices should hear.
    """

    generator: GatedGenerator
    voices: Sequence[DifferentiableClassifier]
    referee: DifferentiableClassifier
    guides: FloatArray
    guide_class: IntArray
    strengths: tuple[float, ...]
    louder: tuple[float, ...]
    level: float
    scaler: Scaler
    double: bool = False

    @property
    def device(self) -> torch.device:
        """Where the generator lives."""
        return next(self.generator.parameters()).device

    @torch.no_grad()
    def propose(self, x: Tensor, target: Tensor, strength: float, guide: Tensor | None = None) -> Tensor:
        """Return the generator's residuals (batch, time, features), standardised."""
        if len(x) == 1:  # convolutions treat a single series differently in the last bits; two are treated like many
            pair = None if guide is None else guide.expand(2, -1, -1)
            return self.propose(x.expand(2, -1, -1), target.expand(2), strength, pair)[:1]
        if x.device.type == "cpu" and len(x) > AT_ONCE:
            parts = [slice(start, start + AT_ONCE) for start in range(0, len(x), AT_ONCE)]
            guides = [None if guide is None else guide[part] for part in parts]
            return torch.cat([self.propose(x[p], target[p], strength, g) for p, g in zip(parts, guides, strict=True)])
        asked = torch.full((len(x),), strength, device=x.device)
        residual: Tensor = self.generator(x, target, asked, guide)
        return residual

    @torch.no_grad()
    def generate(self, raw: Tensor, target: Tensor, least: Tensor, place: Place) -> tuple[Tensor, Tensor]:
        """Return counterfactuals (batch, time, features) in the data's own units, and what the first voice says.

        All of it where the series lie. On a GPU the generator computes in bfloat16: what that loses is a few
        thousandths of a change, exact zeros stay exact, and the classifier hears what is given to the user.

        Parameters
        ----------
        raw, target
            Queries in the data's own units, and wanted classes (batch,).
        least
            Smallest change of each feature that is one (features,); infinite where nothing may change.
        place
            Where on the trade-off the answers should be.
        """
        scale, center = self._units
        with torch.autocast(raw.device.type, torch.bfloat16, enabled=raw.device.type == "cuda"):
            delta = self.propose(((raw - center) / scale).float(), target, place.strength)
        change = without_faint(place.loudness * delta) * scale
        made = torch.where((change != 0) & (change.abs() >= least), raw + change, raw)
        return made, self.voices[0].log_proba(made.clone())  # the model may write into what it is given

    @cached_property
    def _units(self) -> tuple[Tensor, Tensor]:
        """Scale and centre of the features, where the generator lives; what float64 tells apart, in float64."""
        own = torch.float64 if self.double else torch.float32
        scale, center = (
            torch.as_tensor(v, dtype=own, device=self.device) for v in (self.scaler.scale, self.scaler.center)
        )
        return scale, center

    def _raw(self, x: Tensor) -> Tensor:
        """Return standardised series in the data's own units."""
        scale, center = self._units
        return x.to(scale.dtype) * scale + center

    def log_proba(self, x: Tensor) -> Tensor:
        """Return what all voices say of standardised series (voices, batch, classes), with gradients."""
        return self.hear(self.voices, x)

    def hear(self, voices: Sequence[DifferentiableClassifier], x: Tensor) -> Tensor:
        """Return what some voices say of standardised series (voices, batch, classes), with gradients."""
        raw = self._raw(x)
        return torch.stack([voice.log_proba(raw.to(voice.device)).to(x.device).float() for voice in voices])

    @torch.no_grad()
    def agreement(self, x: Tensor, target: Tensor, enough: Tensor | None = None) -> Tensor:
        """Return the least probability of the target over all voices (batch,).

        Parameters
        ----------
        x, target
            Standardised series (batch, time, features) and wanted classes (batch,).
        enough
            Probabilities (batch,) that somebody is going to ask for: where a voice gives less, that decides, and the
            others are not asked.
        """
        if enough is None or x.device.type != "cpu":  # a GPU would have to wait to know who is left
            return of_target(self.log_proba(x), target).amin(0).exp()
        raw, least = self._raw(x), torch.ones(len(x))
        for voice in reversed(self.voices):  # the witnesses first: having learnt with noise, they are hard to convince
            left = torch.nonzero(least >= enough)[:, 0]
            if not len(left):
                break
            heard, wanted = (raw, target) if len(left) == len(x) else (raw[left], target[left])
            said = voice.log_proba(heard.to(voice.device)).float().to("cpu").gather(1, wanted[:, None])[:, 0].exp()
            least[left] = torch.minimum(least[left], said)
        return least

    def shorten(self, x: Tensor, delta: Tensor, target: Tensor, at_most: Tensor | None = None) -> Tensor:
        """Return residuals cut to what all voices need to stay as sure as ``level``, and to a cap.

        What is too faint to matter is left out in any case.
        """

        def agreement(candidates: Tensor, enough: Tensor | None) -> Tensor:  # (cuts * batch, time, features)
            cuts = len(candidates) // len(x)
            return self.agreement(x.repeat(cuts, 1, 1) + candidates, target.repeat(cuts), enough)

        return cut(without_faint(delta), agreement, self.level, at_most)

    def nearest_guides(self, x: Tensor, target: IntArray, n: int) -> IntArray:
        """Return the rows of the ``n`` nearest guides of each query's target (batch, n); -1 where there are no more."""
        rows = np.full((len(x), n), -1, dtype=np.int64)
        series = x.reshape(len(x), -1)
        for k in np.unique(target):
            of_class = np.flatnonzero(self.guide_class == k)
            asked = np.flatnonzero(target == k)
            if not len(of_class):
                continue
            guides = torch.as_tensor(self.guides[of_class], device=x.device).reshape(len(of_class), -1)
            apart = torch.cdist(series[torch.as_tensor(asked, device=x.device)].double(), guides.double())
            order = apart.argsort(dim=1, stable=True)[:, :n].cpu().numpy()
            rows[asked[:, None], np.arange(order.shape[1])[None]] = of_class[order]
        return rows

    def first_guides(self, x: Tensor, target: IntArray) -> Tensor | None:
        """Return the nearest guide of each query (batch, time, features); None where it follows none."""
        return self.guide_tensors(self.nearest_guides(x, target, 1)[:, 0], x) if self.generator.guided else None

    def guide_tensors(self, rows: IntArray, x: Tensor) -> Tensor:
        """Return guides by their rows; the query itself, which leads nowhere, where there is none."""
        if not len(self.guides):  # a classifier that is wrong about everything leaves none
            return x
        found = torch.as_tensor(self.guides[np.maximum(rows, 0)], device=x.device, dtype=x.dtype)
        return torch.where(torch.as_tensor(rows >= 0, device=x.device)[:, None, None], found, x)


def of_target(said: Tensor, target: Tensor) -> Tensor:
    """Return what voices say (voices, batch, classes) of the wanted classes alone (voices, batch)."""
    return said.gather(2, target[None, :, None].expand(len(said), -1, 1))[:, :, 0]


def build_generator(
    config: SparceConfig, info: SeriesInfo, mutable: list[int], *, hidden: int, layers: int, guided: bool
) -> GatedGenerator:
    """Return an untrained generator of the recipe for data like these."""
    return GatedGenerator(
        n_features=info.n_features,
        mutable=mutable,
        n_targets=info.n_classes,
        backbone=config.generator.backbone,
        hidden=hidden,
        layers=layers,
        gate=config.gate,
        guided=guided,
    )


def walk_the_trade_off(
    recipe: Recipe, classifier: Classifier, X: FloatArray, target: IntArray, n_mutable: int
) -> list[Place]:
    """Measure every strength and loudness on held-out series in the data's own units."""
    x = torch.as_tensor(recipe.scaler.transform(X).astype(np.float32), device=recipe.device)
    wanted = torch.as_tensor(target, device=recipe.device)
    guide = recipe.first_guides(x, target)
    places = []
    for strength in recipe.strengths:
        whole = recipe.propose(x, wanted, strength, guide)
        for loudness in recipe.louder:
            delta = without_faint(loudness * whole).cpu().numpy()
            made = recipe.scaler.move(X, delta)
            places.append(
                Place(
                    strength,
                    loudness,
                    valid=float((classifier.predict(made) == target).mean()),
                    transfer=float((recipe.referee.predict(made) == target).mean()),
                    changed=float((delta != 0).sum() / (len(X) * X.shape[1] * n_mutable)),
                )
            )
    return places


def ladder(weakest: float, strongest: float) -> tuple[float, ...]:
    """Return the logarithms of the strengths that are tried.

    >>> [round(math.exp(s), 2) for s in ladder(0.25, 4.0)]
    [0.25, 0.5, 1.0, 2.0, 4.0]
    """
    return tuple(float(s) for s in np.linspace(math.log(weakest), math.log(strongest), LADDER))


def describe(places: Sequence[Place], chosen: Place) -> str:
    """Say in a line how good the default is, on held-out training series."""
    span = f"{min(p.changed for p in places):.2f} to {max(p.changed for p in places):.2f}"
    return (
        f"On held-out training series, the default answer is valid for {chosen.valid:.2f} of the queries, convinces a "
        f"witness that had no part in the training in {chosen.transfer:.2f}, and changes {chosen.changed:.2f} of the "
        f"entries (the whole curve: {span})."
    )


def as_history(places: Sequence[Place]) -> Mapping[str, list[float]]:
    """Return the trade-off as columns for ``history_``."""
    return {f"trade_off_{name}": [p.to_dict()[name] for p in places] for name in places[0].to_dict()}
