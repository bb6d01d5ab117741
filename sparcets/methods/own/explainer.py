"""Explainer: our own method. It orchestrates fit and explain; the steps are in the other modules of this folder."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch

from sparcets.core.arrays import FloatArray, IntArray
from sparcets.core.errors import NotFittedError
from sparcets.core.evidence import Evidence
from sparcets.core.explanation import Explanation, join
from sparcets.core.info import SeriesInfo
from sparcets.core.laws import Law
from sparcets.core.progress import Bar
from sparcets.core.seeding import spawn
from sparcets.core.series import Series
from sparcets.core.settings import ExplainerConfig
from sparcets.methods.adversarial import FEW_VALID, GanTraining, build_checkpoint, fit_with_restart, training_identity
from sparcets.methods.base import BaseExplainer
from sparcets.methods.compatibility import ask_again, regressor_of
from sparcets.methods.evidence import PlausibilityReference
from sparcets.methods.own.ensemble import Ensemble, train_ensemble, weaker_than_families
from sparcets.methods.own.generator import MIN_BATCHES, Critic, GatedGenerator, configured_sizes
from sparcets.methods.own.gpu import can_use_gpu_path, explain_in_one_pass, fill_in
from sparcets.methods.own.grid import LONGEST, LongSeries, fit_long
from sparcets.methods.own.model import CPU_BATCH, FittedModel, NumberModel, build_generator, fit_number_model
from sparcets.methods.own.operating_point import (
    ADVICE,
    ADVICE_GENERATOR,
    MAX_SEARCHED,
    RESIDUAL_SCALES,
    OperatingPoint,
    best_point,
    default_point,
    held_out_queries,
    held_out_request,
    log_weight_grid,
    measure_curve,
    measure_numbers,
    measure_search,
    measure_trade_off,
    split_held_out,
    summarise,
    trade_off_history,
)
from sparcets.methods.own.prototypes import Prototypes
from sparcets.methods.own.search import answer
from sparcets.methods.own.space import EditSpace
from sparcets.methods.own.state import fit_unless_finished, model_from_arrays, model_to_arrays
from sparcets.methods.own.step import ExplainerStep, Schedule
from sparcets.methods.request import Answers, CallOptions, FitJob, QueryBlock, Request
from sparcets.models.base import Classifier, Regressor
from sparcets.models.views import Goal
from sparcets.training.device import resolve_device, seeded, single_precision, threads_for
from sparcets.training.loop import Callback, DivergenceCheck, History, Pairing, TensorBoard, TrainingFailure
from sparcets.training.losses import LossTerm, Objective
from sparcets.training.networks import lengths_on
from sparcets.training.projection import Projection

GOOD_SHARE = 0.9  # valid and transfer on held-out series; below it, the summary gives advice


def describe_fit(
    points: Sequence[OperatingPoint],
    families: Sequence[str],
    *,
    model: FittedModel | None,
    long: LongSeries | None,
    epochs: int,
    black_box: bool,
    silent: Sequence[str],
) -> list[str]:
    """Return the lines of a summary.

    Parameters
    ----------
    points
        The trade-off.
    families
        Names of the families that answers are chosen by.
    model
        What was fitted to classes; None for numbers.
    long
        How answers are carried to long series, or None.
    epochs
        For which the generator was trained.
    black_box
        Whether the explained model has no gradients.
    silent
        Features that the generator never changes.
    """
    kind, uses_generator = "model", False
    if model is not None:
        kind, uses_generator = "classifier", model.generator is not None
    how = "A search answers each query"
    if uses_generator:
        how = f"A generator, trained for {epochs} epochs, answers; where its answer is not believed, a search does"
    lines = [f"{how}.", summarise(points, uses_generator=uses_generator)]
    if families:
        lines.append(f"Answers are chosen by models of other kinds: {', '.join(families)}.")
    else:
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
    if silent:
        lines.append(f"Never changed by the generator: {', '.join(silent)}.")
    if default_point(points, uses_generator=uses_generator).score < GOOD_SHARE:
        lines.append(ADVICE_GENERATOR if uses_generator else ADVICE)
    return lines


log = logging.getLogger(__name__)
GPU_FACTOR = 4  # queries explained at a time on a GPU, for each on a CPU
MANY_SERIES = 8000  # with fewer, a search answers as well as a generator, without its training
SEED_GENERATOR = "free"  # name in the seeds; an older word, kept so that the same seed gives the same result


class Explainer(BaseExplainer[ExplainerConfig]):
    """Counterfactuals that models of several kinds believe; one fit serves every target class.

    An answer must convince the explained classifier and classifiers of other families. A selector, other classifiers of
    these families, decides which answers are believed, and the believed one with the fewest changes is given. Answers
    are searched or, with many training series, proposed by a generator; what reaches no target is ``not_found``.

    Parameters
    ----------
    classifier
        The model to explain. For a black box, a surrogate supplies the gradients; the black box decides what is valid.
    config, domain_losses
        Settings; loss terms of your own for the generator's objective, by name.

    Attributes
    ----------
    trade_off_
        Operating points between few changed entries and agreement, on held-out training series; also in ``history_``.
    silent_features_
        Mutable features that the generator never changes on held-out queries.

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

    def __init__(
        self,
        classifier: Classifier | Regressor,
        config: ExplainerConfig | None = None,
        *,
        domain_losses: Mapping[str, LossTerm] | None = None,
    ) -> None:
        super().__init__(classifier, config)
        self.domain_losses = dict(domain_losses or {})
        self.trade_off_: tuple[OperatingPoint, ...] = ()
        self.silent_features_: tuple[str, ...] = ()
        self._model: FittedModel | None = None
        self._number_model: NumberModel | None = None  # instead of it, for a regressor
        self._within: tuple[Goal, FittedModel] | None = None  # of it, for the goal asked for last

    @property
    def method(self) -> str:
        """The method's name in the registry."""
        return "sparcets"

    # Fit: an ensemble, for many series a generator, then the trade-off.

    def _fit(self, job: FitJob) -> None:
        self._model, self._number_model = None, None
        if job.series.steps.max() > LONGEST:
            fit_long(self, job)
            return
        identity = partial(self._identity, job)
        train = partial(fit_with_restart, job, partial(self._train, job), identity)
        if job.info.outcome:
            train = partial(self._train_numbers, job)
        if job.checkpoint is None:
            train()
        else:
            fit_unless_finished(self, job, identity(0), train)

    def _identity(self, job: FitJob, attempt: int) -> str:
        # The default sizes depend on the kind of device, so that a checkpoint of another one does not fit.
        digest = training_identity(self.method, self.config, self.domain_losses, job, attempt)
        return f"{digest} {resolve_device(self.config.device).type}"

    def _train(self, job: FitJob, attempt: int) -> None:
        seed = spawn(self.config.seed, f"attempt {attempt}")
        rows, held_out = split_held_out(job.y, spawn(seed, "held out"), job.subjects)
        ensemble = train_ensemble(job, rows, self.classifier, self.config, seed)
        queries, target = held_out_queries(job, held_out, self.classifier, seed)
        proposals, many = self.config.proposals, len(job.X) >= MANY_SERIES
        uses_generator = proposals == "generator" or (proposals == "auto" and many)
        generator, history = None, History()
        if uses_generator:
            generator, history = self._train_generator(job, attempt, rows, ensemble)
        model = FittedModel(
            ensemble=ensemble,
            prototypes=Prototypes.choose(job, self.classifier, seed),
            reference=PlausibilityReference.fit(job.series, job.y, job.info),
            space=EditSpace.fit(job, self.config, seed),
            prices=(self.config.edit_price, self.config.change_price),
            generator=generator,
            log_sparsity_weights=log_weight_grid(self.config.min_sparsity_weight, self.config.max_sparsity_weight),
            residual_scales=RESIDUAL_SCALES,
        )
        with threads_for(job.X[:CPU_BATCH].size):
            if generator is None:
                request = held_out_request(job, queries[:MAX_SEARCHED], target[:MAX_SEARCHED], self.classifier)
                points = measure_search(model, request)
            else:
                points = measure_trade_off(model, self.classifier, job.series[queries], target, job.constraints.allowed)
                self._check_generator(job, model, queries, target)
        self._model, self.trade_off_ = model, tuple(points)
        self.history_ = {**history.values, **trade_off_history(points)}
        self._report(uses_generator=uses_generator)

    def _train_numbers(self, job: FitJob) -> None:
        # Without a generator, whatever the settings say: what the search starts from depends on the target.
        seed = spawn(self.config.seed, "attempt 0")
        rows, held_out = split_held_out(job.y, spawn(seed, "held out"), job.subjects)
        model = fit_number_model(job, rows, regressor_of(self), self.config, seed)
        self._number_model, self.trade_off_ = model, tuple(measure_numbers(model, job, held_out, regressor_of(self)))
        self.history_ = {**trade_off_history(self.trade_off_)}
        self._report(uses_generator=False)

    def _report(self, *, uses_generator: bool) -> None:
        """Log how good answers are on held-out series, and warn if they are not."""
        text = summarise(self.trade_off_, uses_generator=uses_generator)
        log.info(text)
        if default_point(self.trade_off_, uses_generator=uses_generator).valid < FEW_VALID:
            log.warning("%s %s", text, ADVICE_GENERATOR if uses_generator else ADVICE)

    def _train_generator(
        self, job: FitJob, attempt: int, rows: IntArray, ensemble: Ensemble
    ) -> tuple[GatedGenerator, History]:
        config, info, device = self.config, job.info, ensemble.device
        seed = spawn(spawn(config.seed, f"attempt {attempt}"), SEED_GENERATOR)
        sizes = configured_sizes(config, len(rows), info.n_features, on_gpu=device.type == "cuda")
        # Batches of queries, target classes, and real series of those classes.
        pairing = Pairing(
            job.y[rows],
            target=job.target,
            batch_size=sizes.batch_size,
            balance=False,
            seed=spawn(seed, "pairs"),
            device=device,
            min_batches=MIN_BATCHES,
        )
        epochs = config.train.epochs or -(-sizes.steps // len(pairing))
        with seeded(spawn(seed, "weights"), device), single_precision():
            mutable = np.flatnonzero(job.constraints.editable.any(0)).tolist()
            generator = build_generator(config, info, mutable, hidden=sizes.hidden, layers=sizes.layers)
            critic = Critic(
                n_features=info.n_features,
                n_targets=info.n_classes,
                hidden=config.critic.hidden,
                layers=config.critic.layers,
            )
        step = ExplainerStep(
            generator.to(device),
            critic.to(device),
            Projection(job.constraints, info.scaler, gaps=ensemble.gaps).to(device),
            Objective(
                config.weights,
                n_mutable=int(job.constraints.mutable.sum()),
                trains_sparsity=True,
                domain_losses=self.domain_losses,
                n_side=job.constraints.n_side,
                hinge=True,
            ),
            ensemble.members(),
            x=torch.tensor(job.standardised(rows), dtype=torch.float32, device=device),
            lengths=lengths_on(device, job.series[rows].lengths),
            center=torch.tensor(info.scaler.center.astype(job.X.dtype), device=device),
            scale=torch.tensor(info.scaler.scale.astype(job.X.dtype), device=device),
            lr=config.train.lr,
            betas=(config.train.beta1, config.train.beta2),
            noise=config.noise,
            sparsity_weights=(config.min_sparsity_weight, config.max_sparsity_weight),
            ramp=config.ramp,
            n_steps=epochs * len(pairing),
        )
        history = History()
        callbacks: list[Callback] = [history, DivergenceCheck()]
        start = 0
        if job.checkpoint is not None:
            folder = job.checkpoint
            identity = self._identity(job, attempt)
            checkpoint = build_checkpoint(folder, step, history, identity=identity, job=job, classifier=self.classifier)
            start = checkpoint.resume()
            callbacks += [checkpoint, TensorBoard(folder / "tensorboard")]
        callbacks.append(Schedule(step, epochs, start, n_batches=len(pairing)))
        training = GanTraining(
            step=step,
            pairing=pairing,
            epochs=epochs,
            start=start,
            seed=spawn(seed, "noise"),
            callbacks=callbacks,
            check_every=config.train.check_every,
        )
        self._run_training(training, job.progress)
        return step.ema_generator, history

    def _run_training(self, training: GanTraining, progress: bool | None) -> None:
        # A method of its own, so that the speed benchmark can time some steps instead.
        training.run(f"training {self.method}", progress)

    def _check_generator(self, job: FitJob, model: FittedModel, rows: IntArray, target: IntArray) -> None:
        """Detect a generator that changes nothing, and features that it never changes."""
        moved = np.zeros(job.info.n_features, dtype=bool)
        for some, part in job.series[rows].by_length():
            x = model.ensemble.filled(model.ensemble.standardise(part.values))
            targets = torch.as_tensor(target[some], device=model.device)
            delta = model.propose(x, targets, model.log_sparsity_weights[0])
            moved |= (delta != 0).any(0).any(0).cpu().numpy()
        if not moved.any():
            raise TrainingFailure("the generator is dead: it changes nothing at all")
        self.silent_features_ = tuple(
            np.array(job.info.feature_names)[job.constraints.editable.any(0) & ~moved].tolist()
        )

    # Explain: one pass on the GPU where that is enough, the search everywhere else.

    def _explain_block(self, block: QueryBlock, options: CallOptions, bar: Bar) -> Iterator[Explanation]:
        model = self._model_for(options.goal)
        if block.lengths is not None or not can_use_gpu_path(options, model, options.classifier):
            with threads_for(block.series.values[:CPU_BATCH].size):  # so many series are computed together
                yield from super()._explain_block(block, options, bar)
            return
        began = time.perf_counter()
        explanation = explain_in_one_pass(block, options, model, best_point(self.trade_off_), options.info)
        explanation = ask_again(self.classifier, explanation)
        believed = (
            model.believe(Series(explanation.counterfactual, explanation.lengths), explanation.target)
            .convincing.cpu()
            .numpy()
        )
        left = np.flatnonzero((explanation.status != "unchanged") & ~(explanation.valid & believed))
        bar.advance(len(explanation) - len(left))
        if len(left):  # those that one pass does not answer
            rest = block.select(left, explanation.target[left])
            explanation = fill_in(explanation, left, join(list(super()._explain_block(rest, options, bar))))
        settings, seconds = self._settings, time.perf_counter() - began
        yield replace(explanation, method=self.method, config=settings, seed=self.config.seed, seconds=seconds)

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
        support = answers.evidence.support
        if not answers.evidence.families:
            support = np.full((len(answers), len(families)), np.nan)
        made = Series(answers.counterfactual, answers.lengths)
        left = np.flatnonzero(np.isnan(support).any(1))  # known of the others since they were chosen
        if len(left):
            with threads_for(answers.query[:CPU_BATCH].size):
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
            self.trade_off_,
            fitted.family_names,
            model=self._model,
            long=fitted.long,
            epochs=len(self.history_.get("generator", [])),
            black_box=not self.classifier.differentiable,
            silent=self.silent_features_,
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
        return model_to_arrays(model, self.classifier, self.trade_off_, self.silent_features_)

    def _restore(self, state: dict[str, Any], info: SeriesInfo) -> None:
        model, self.trade_off_, self.silent_features_ = model_from_arrays(state, self.classifier, info, self.config)
        if isinstance(model, NumberModel):
            self._number_model = model
        else:
            self._model = model
