"""Explainer: our own method. It orchestrates fit and explain; the steps are in the other modules of this folder."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from sparcets.core.errors import NotFittedError
from sparcets.core.evidence import REAL, Evidence, PlausibilityReference
from sparcets.core.explanation import Explanation
from sparcets.core.info import SeriesInfo
from sparcets.core.laws import Law
from sparcets.core.progress import Bar
from sparcets.core.seeding import spawn
from sparcets.core.series import FloatArray, Series
from sparcets.core.settings import ExplainerConfig
from sparcets.methods.adversarial import FEW_VALID, training_identity
from sparcets.methods.base import BaseExplainer
from sparcets.methods.own.ensemble import train_ensemble, weaker_than_families
from sparcets.methods.own.generator import GatedGenerator
from sparcets.methods.own.grid import LONGEST, LongSeries, fit_long
from sparcets.methods.own.model import CPU_BATCH, FittedModel, NumberModel, fit_number_model
from sparcets.methods.own.proposals import train_generator
from sparcets.methods.own.prototypes import Prototypes
from sparcets.methods.own.quality import (
    ADVICE,
    class_request,
    measure_curve,
    measure_numbers,
    measure_search,
    number_request,
    split_held_out,
    summarise,
)
from sparcets.methods.own.rounds import train_discriminators
from sparcets.methods.own.search import answer
from sparcets.methods.own.space import EditSpace
from sparcets.methods.own.state import fit_unless_finished, model_from_arrays, model_to_arrays
from sparcets.methods.request import Answers, CallOptions, FitJob, QueryBlock, Request
from sparcets.models.base import Classifier, Regressor
from sparcets.models.views import Goal
from sparcets.training.device import resolve_device, threads_for

GOOD_SHARE = 0.9  # valid and transfer on held-out series; below it, the summary gives advice


def describe_fit(
    history: Mapping[str, list[float]],
    families: Sequence[str],
    *,
    model: FittedModel | None,
    long: LongSeries | None,
    black_box: bool,
) -> list[str]:
    """Return the lines of a summary.

    Parameters
    ----------
    history
        What was measured on held-out series.
    families
        Names of the families that answers are chosen by.
    model
        What was fitted to classes; None for numbers.
    long
        How answers are carried to long series, or None.
    black_box
        Whether the explained model has no gradients.
    """
    kind = "model" if model is None else "classifier"
    lines = ["A search answers each query.", summarise(history)]
    if model is not None and model.generator is not None:
        lines[0] = "A search answers each query, also from what a generator proposes."
    others = [name for name in families if name != REAL]
    if others:
        lines.append(f"Answers are chosen by models of other kinds: {', '.join(others)}.")
    if REAL in families:
        lines.append("Discriminators, trained on answers to training series, say whether one looks like a recording.")
    if not families:
        lines.append(f"The {kind} alone decides: answers may be adversarial, and show what flips it, not what is true.")
    if model is not None:
        lines += weaker_than_families(model.ensemble)
    if long is not None:
        lines.append(long.describe(kind))
    elif black_box:
        lines.append(
            f"The {kind} is a black box: a surrogate, trained to predict as it does, shows where to change a series; "
            "the black box itself decides what is valid."
        )
    if min(history["held_out_valid"][0], history["held_out_believed"][0]) < GOOD_SHARE:
        lines.append(ADVICE)
    return lines


MANY_SERIES = 8000  # with fewer, the search finds as good answers without a generator


def wants_generator(config: ExplainerConfig, job: FitJob) -> bool:
    """Return whether a generator of proposals is trained: for enough series, all of one length."""
    enough = config.proposals == "generator" or (config.proposals == "auto" and len(job) >= MANY_SERIES)
    return enough and not job.series.unequal


log = logging.getLogger(__name__)
GPU_FACTOR = 4  # queries explained at a time on a GPU, for each on a CPU


class Explainer(BaseExplainer[ExplainerConfig]):
    """Counterfactuals that models of several kinds believe; one fit serves every target class.

    An answer must convince the explained classifier and classifiers of other families. A selector, other classifiers of
    these families, decides which answers are believed, and the believed one with the fewest changes is given. What
    reaches no target is ``not_found``.

    Parameters
    ----------
    classifier
        The model to explain. For a black box, a surrogate supplies the gradients; the black box decides what is valid.
    config
        Settings.

    Attributes
    ----------
    history_
        What was measured on a few held-out training series: shares of answers that are valid and believed, and of
        entries changed.

    Examples
    --------
    >>> import sparcets as sp
    >>> from sparcets.testing import data, mocks
    >>> X, y = data.make_series(60)
    >>> clf = sp.wrap(mocks.MeanModule(n_classes=3), n_classes=3)
    >>> ex = sp.Explainer(clf, sp.ExplainerConfig(families=("quantiles",))).fit(X, y)
    >>> len(ex.explain(X[:4], target=1))
    4
    """

    config_class = ExplainerConfig
    supports_lengths = True
    takes_padding = False
    supports_curve = True
    makes_edits = True
    supports_numbers = True

    def __init__(self, classifier: Classifier | Regressor, config: ExplainerConfig | None = None) -> None:
        super().__init__(classifier, config)
        self._model: FittedModel | None = None
        self._number_model: NumberModel | None = None  # instead of it, for a regressor
        self._within: tuple[Goal, FittedModel] | None = None  # of it, for the goal asked for last

    @property
    def method(self) -> str:
        """The method's name in the registry."""
        return "sparcets"

    # Fit: an ensemble, a selector, real series, laws and groups, and discriminators.

    def _fit(self, job: FitJob) -> None:
        self._model, self._number_model = None, None
        if job.series.steps.max() > LONGEST:
            fit_long(self, job)
            return
        train = partial(self._train, job)
        if job.checkpoint is None:
            train()
        else:
            # Sizes depend on the kind of device, so that a finished fit of another one does not count.
            identity = (
                f"{training_identity(self.method, self.config, {}, job, 0)} {resolve_device(self.config.device).type}"
            )
            fit_unless_finished(self, job, identity, train)

    def _train(self, job: FitJob) -> None:
        has_generator = wants_generator(self.config, job)
        config, seed = self.config, spawn(self.config.seed, "attempt 0")
        rows, held_out = split_held_out(job.y, spawn(seed, "held out"), job.subjects)
        if job.info.outcome:
            numbers = fit_number_model(job, rows, self._regressor, config, seed)
            own, most, regressor = spawn(seed, "rounds"), config.discriminator_queries // 2, self._regressor
            asked = [number_request(numbers, job, rows, regressor, most=most, sign=sign) for sign in (1, -1)]
            one_class = np.zeros(len(rows), dtype=np.int64)
            trained = train_discriminators(asked, job.series[rows], one_class, own, progress=job.progress)
            numbers = replace(numbers, members=replace(numbers.members, discriminators=trained))
            self._number_model, self.history_ = numbers, measure_numbers(numbers, job, held_out, regressor)
        else:
            ensemble = train_ensemble(job, rows, self.classifier, config, seed)
            proposer: GatedGenerator | None = None
            history: Mapping[str, list[float]] = {}
            if has_generator:
                proposer, history = train_generator(job, rows, ensemble, config)
            model = self._model = FittedModel(
                ensemble=ensemble,
                prototypes=Prototypes.choose(job, self.classifier, seed),
                reference=PlausibilityReference.fit(job.series, job.y, job.info),
                space=EditSpace.fit(job, config, seed),
                prices=(config.edit_price, config.change_price),
                generator=proposer,
            )
            own, most = spawn(seed, "rounds"), config.discriminator_queries
            asked = [(model, class_request(job, rows, self.classifier, own, most=most))]
            trained = train_discriminators(asked, job.series[rows], job.y[rows], own, progress=job.progress)
            if trained:
                self._model = model = model.with_discriminators(*trained)
            with threads_for(job.X[:CPU_BATCH].size):
                measured = measure_search(model, class_request(job, held_out, self.classifier, seed))
            self.history_ = {**history, **measured}
        text = summarise(self.history_)
        log.info(text)
        if self.history_["held_out_valid"][0] < FEW_VALID:
            log.warning("%s %s", text, ADVICE)

    # Explain.

    def _answer_classes(self, block: QueryBlock, call: CallOptions, bar: Bar) -> Explanation:
        with threads_for(block.series.values[:CPU_BATCH].size):  # so many series are computed together
            return super()._answer_classes(block, call, bar)

    def _batch_size(self) -> int:
        # A GPU searches a thousand queries in little more time than one.
        fitted = self._number_model or self._fitted_model()
        return self.config.batch_size * (GPU_FACTOR if fitted.device.type == "cuda" else 1)

    def _explain(self, request: Request) -> Answers:
        model = self._model_for(request.goal).at_length(request.series.n_steps)
        answers = answer(request, model)
        return answers if self.config.store_courses else answers.without_courses()

    def _evidence(self, answers: Explanation, options: CallOptions) -> Evidence:
        model = self._model_for(options.goal)
        families = model.ensemble.selector.families
        support = answers.support
        if not answers.families:
            support = np.full((len(answers), len(families)), np.nan)
        made = Series(answers.counterfactual, answers.lengths)
        left = np.flatnonzero(np.isnan(support).any(1))  # known of the others since they were chosen
        if len(left):
            belief = model.believe(made[left], answers.target[left])
            support[left] = belief.support.cpu().double().numpy()
        return Evidence(families=families, support=support, plausibility=model.reference.measure(answers))

    def _curve(self, answers: Explanation, options: CallOptions) -> Mapping[str, FloatArray]:
        request = options.request(Series(answers.query, answers.lengths), answers.target)
        return measure_curve(request, answers.counterfactual, self._model_for(options.goal))

    def summary(self) -> str:
        """Say in a few lines what was fitted, how good it is, and what to change if it is not."""
        fitted = self._model or self._number_model
        if fitted is None or self.info_ is None:
            return super().summary()
        lines = describe_fit(
            self.history_,
            fitted.family_names,
            model=self._model,
            long=fitted.long,
            black_box=not self.classifier.differentiable,
        )
        laws = [f"Law of the data: {law}." for law in self.laws_]
        return "\n".join([super().summary(), *lines, *laws])

    @property
    def laws_(self) -> tuple[Law, ...]:
        """What holds in all training series, and in every answer."""
        return () if self.info_ is None else (self._number_model or self._fitted_model()).space.laws

    @property
    def groups_(self) -> dict[str, tuple[str, ...]]:
        """Names of the features that are edited together, by the name of the group."""
        if self.info_ is None:
            return {}
        groups, names = (self._number_model or self._fitted_model()).space.groups, self.info_.feature_names
        return {group.name: tuple(names[c] for c in group.columns) for group in groups}

    def _fitted_model(self) -> FittedModel:
        if self._model is None:
            raise NotFittedError("this Explainer has no model yet. Call fit first.")
        return self._model

    def _model_for(self, goal: Goal | None) -> FittedModel:
        """Return what was fitted to classes; of a regressor, for the two classes of a goal."""
        if goal is None or self._number_model is None:
            return self._fitted_model()
        last = self._within
        if last is None or last[0] is not goal:  # the same for all batches of a goal
            last = self._within = goal, self._number_model.within(goal)
        return last[1]

    def _state(self) -> dict[str, Any]:
        model = self._number_model or self._fitted_model()
        return model_to_arrays(model, self.classifier)

    def _restore(self, state: dict[str, Any], info: SeriesInfo) -> None:
        model = model_from_arrays(state, self.classifier, info, self.config)
        if isinstance(model, NumberModel):
            self._number_model = model
        else:
            self._model = model
