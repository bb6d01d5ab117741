"""BaseExplainer: from queries to answers, for all methods.

The arguments of ``explain`` are checked and bound to the fit, and queries are processed in blocks. Each block is
divided by target, then into batches and, for a method that needs it, by length; the method answers, the user's model
predicts the answers, and evidence is added. A method implements ``_fit``, ``_explain``, ``_state`` and ``_restore``.
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, cast, final

import numpy as np
import torch

from sparcets.core.constraints import Constraints
from sparcets.core.errors import CapabilityError, ConfigError, DataError, NotFittedError
from sparcets.core.evidence import Evidence
from sparcets.core.explanation import Explanation, join
from sparcets.core.info import SeriesInfo
from sparcets.core.progress import Bar, html_card, progress_bar
from sparcets.core.series import FloatArray, IntArray, Series, StrArray
from sparcets.core.settings import MethodConfig
from sparcets.core.side_inputs import SideInputs, one_side, side_apart
from sparcets.core.target import BoundTarget, Numbers, is_reached, is_within, only_target
from sparcets.data.dataset import Dataset
from sparcets.io.files import as_path
from sparcets.methods.compatibility import (
    NOISE_NUMBERS,
    agree_on_labels,
    check_against_labels,
    check_model,
)
from sparcets.methods.folder import save_explainer
from sparcets.methods.parameters import Parameters, check_settings
from sparcets.methods.request import (
    Answers,
    CallOptions,
    FitJob,
    Queries,
    QueryBlock,
    Request,
    best_of_classes,
    check_constraints,
    is_stream,
    other_classes,
    query_names,
    runner_up,
)
from sparcets.methods.stream import Stream, answer_to_folder
from sparcets.models.base import Classifier, Regressor, contradicts
from sparcets.models.views import WITHIN, Goal

if TYPE_CHECKING:
    from typing_extensions import Self


C = TypeVar("C", bound=MethodConfig)


class BaseExplainer(Parameters, ABC, Generic[C]):
    """A method that finds counterfactuals.

    Parameters
    ----------
    classifier
        The model to explain, from :class:`~sparcets.TorchClassifier` or :func:`~sparcets.wrap`; also a regressor.
    config
        Settings of the method; None takes its defaults.

    Attributes
    ----------
    info_
        Names, units and scale of the data it was fitted on; side inputs are its last features.
    constraints_
        The standing constraints given to ``fit``.
    history_
        Training metrics by name, one value per epoch; empty for methods that train nothing.

    Examples
    --------
    >>> import sparcets as sp
    >>> issubclass(sp.Nearest, sp.BaseExplainer), sp.Nearest.needs_gradients, sp.Sparce.needs_gradients
    (True, False, True)
    """

    config_class: ClassVar[type[MethodConfig]]
    needs_gradients: ClassVar[bool] = False
    supports_lengths: ClassVar[bool] = False
    takes_padding: ClassVar[bool] = True  # False: it receives the queries of each length separately, without padding
    supports_curve: ClassVar[bool] = False
    makes_edits: ClassVar[bool] = False
    supports_numbers: ClassVar[bool] = False  # whether it explains regressors
    # Set by ``fit``: a description of the series, the options of a call without arguments, settings as plain values.
    _series_info: SeriesInfo  # without side inputs
    _defaults: CallOptions
    _settings: dict[str, Any]

    def __init__(self, classifier: Classifier | Regressor, config: C | None = None) -> None:
        self.classifier = cast("Classifier", classifier)  # or a regressor, see CallOptions.for_goal
        self.config: C = config if config is not None else self.config_class()  # type: ignore[assignment]
        self.history_: dict[str, list[float]] = {}
        self.info_: SeriesInfo | None = None
        self.constraints_ = Constraints()
        self._target: int | None = None  # the one class it is fitted for, if its settings name one

    # Public methods are final: all methods check, batch and package alike. They compute gradients even within no_grad.

    @final
    @torch.inference_mode(mode=False)
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        lengths: Any = None,
        side: Any = None,
        constraints: Constraints | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        progress: bool | None = None,
    ) -> Self:
        """Fit to training series; a second fit discards the first.

        Parameters
        ----------
        X
            A :class:`~sparcets.Dataset` (its training part is used, with its names, units and mutable features), or
            series (batch, time, features) in the data's own units, or a list of series (time, features).
        y
            Labels, where series were given: class indices or names; for a regressor, numbers.
        lengths
            True lengths of padded series.
        side
            For a wrapped model that takes more than the series: arrays with a row per series, by the names of its
            arguments, such as ``{"age": ages}``. They are passed to the model unchanged.
        constraints
            Constraints on all answers: a trained method is trained under them, and ``explain`` enforces them.
        checkpoint
            Folder in which a training saves its state after every epoch, to continue after an interruption; a finished
            training is not repeated. Methods that train nothing do not use it.
        progress
            Whether to draw a progress bar; None draws it on a terminal and in a notebook.
        """
        self._check_parameters()
        source = X if isinstance(X, Dataset) else None
        if source is not None:
            if any(values is not None for values in (y, lengths)):
                raise DataError("a Dataset brings its own labels and lengths: call fit(dataset) with nothing else.")
            side = one_side(side, source.side_train if self.classifier.takes_side else None)
            X, y, lengths = source.X_train, source.y_train, source.lengths_train
        elif y is None:
            raise DataError(f"{type(self).__name__}.fit needs labels: fit(dataset) or fit(X, y).")
        model = self.classifier = self.classifier.with_side(None if side is None else SideInputs.of(side))
        series = model.check_input(X, lengths, side, owner=model.name, like=model)
        labels = agree_on_labels(model, series, y, source)
        if (series.steps == series.n_steps).all():
            series = Series(series.values)  # nothing is padded
        else:
            self._check_lengths()
        compared = check_against_labels(model, series, labels, source)
        standing, self.history_, self.info_ = check_constraints(constraints), {}, None
        metadata: dict[str, Any] = {"source": source, "outcome": labels.outcome, "side": model.side}
        info = SeriesInfo.from_series(series.values, labels.class_names, lengths=series.lengths, **metadata)
        info = replace(self._rescaled(info), model=compared)
        job = FitJob(
            series=series,
            y=labels.y,
            numbers=labels.numbers,
            subjects=None if source is None or source.subjects_train is None else np.asarray(source.subjects_train),
            info=info,
            target=None if self.config.target is None else only_target(self.config.target, info),
            constraints=standing.bind(info),
            constraints_given=standing.to_dict(),
            checkpoint=None if checkpoint is None else as_path(checkpoint),
            progress=progress,
        )
        self._fit(job)
        self._set_fitted(info, standing, job.target)
        return self

    @final
    @torch.inference_mode(mode=False)
    def explain(
        self,
        X: Any,
        target: Any = None,
        *,
        constraints: Constraints | None = None,
        sparsity: float | None = None,
        edits: int | None = None,
        n: int = 1,
        confidence: float | None = None,
        lengths: Any = None,
        side: Any = None,
        ids: Any = None,
        subjects: Any = None,
        curve: bool = False,
        out: str | os.PathLike[str] | None = None,
        progress: bool | None = None,
    ) -> Explanation:
        """Find counterfactuals: series close to the queries that the classifier assigns to ``target``.

        Parameters
        ----------
        X
            Queries (batch, time, features) in the data's own units, or a list of series (time, features); a Dataset,
            for its test series; a memory map, or an iterator over series or batches, read lazily.
        target
            Class name, index, or one per query; ``sp.Not("A")`` is any class but A, the easiest to believe; None is the
            runner-up class of each query. For a regressor ``sp.AtLeast(30)``, ``sp.AtMost(30)``, ``sp.Between(20, 30)``
            or ``sp.Change(5)``, of all its numbers or of one, ``output=2``; or one per query.
        constraints
            Further constraints, for this call only.
        sparsity
            Largest share that changes, per query, of the entries that may change: those of mutable features outside
            frozen windows, padding and gaps.
        edits
            Largest number of edits of an answer; for :class:`~sparcets.Explainer`, whose answers consist of edits.
        n
            Number of different answers per query.
        confidence
            The least probability of the target that counts as reached.
        lengths
            True lengths of padded queries; padding is returned as zeros, up to the longest series of fit and call.
        side
            Side inputs of the queries, by the names that the fit had; a row per query.
        ids, subjects
            Name of each query, and of the recorded person: kept with the answers, in tables, reports and titles.
        curve
            Whether to measure how few changes are enough for the classifier and for the models of other kinds, in
            ``explanation.curve``; takes longer, and only :class:`~sparcets.Explainer` supports it.
        out
            A folder for more answers than fit in memory: they are written in shards, and the result reads them on
            access. The same call after a crash continues after the last finished shard.
        progress
            Whether to draw a progress bar; None draws it on a terminal and in a notebook.

        Returns
        -------
        explanation
            ``n`` answers per query; the inputs, the model and the global random state are unchanged.
        """
        started, info, owner = time.perf_counter(), self._fitted(), type(self).__name__
        self._check_parameters()
        self.classifier.check_compatible(info, f"this {owner}")
        if isinstance(X, Dataset):
            if any(values is not None for values in (lengths, ids, subjects)):
                raise DataError("a Dataset brings its lengths, ids and subjects: leave them out, or pass its X_test.")
            if not len(X.X_test):
                raise DataError(f"the data set {X.name!r} has no test series to explain. Pass series: explain(X).")
            side = one_side(side, None if info.side is None else X.side_test)
            X, lengths, ids, subjects = X.X_test, X.lengths_test, X.ids_test, X.subjects_test
        names, source = query_names(ids=ids, subjects=subjects), Stream if is_stream(X) else Queries
        context: dict[str, Any] = {"model": self.classifier, "info": self._series_info, "owner": owner}
        queries = source(X, lengths, side, names, **context, longer=out is None)
        if queries.padded:
            self._check_lengths()
        limits: dict[str, Any] = {"sparsity": sparsity, "edits": edits, "confidence": confidence}
        call = self._call(target, queries.n_steps, constraints, n_queries=queries.n, n=n, curve=curve, **limits)

        with progress_bar(f"explaining by {self.method}", queries.n, show=progress) as bar:

            def answer(block: QueryBlock) -> Explanation:
                answers = self._answer(block, call, bar)
                return answers if info.side is None else side_apart(answers)

            if out is not None:
                return answer_to_folder(self, queries, call, answer, out, bar=bar)
            blocks = queries.blocks(call.target, queries.n or self.config.batch_size)
            explanation = join([queries.named(answer(block)) for block in blocks])
        return replace(explanation, seconds=time.perf_counter() - started)

    @property
    def method(self) -> str:
        """The method's name in lower case, as in the registry."""
        return type(self).__name__.lower()

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features it was fitted on."""
        self._fitted()
        return self._series_info.feature_names

    def summary(self) -> str:
        """Describe the fit in a few lines."""
        if self.info_ is None:
            return f"{type(self).__name__}: not fitted yet."
        info, mutable = self._series_info, self._defaults.constraints.mutable
        steps = f"{'up to ' * info.unequal}{info.n_steps} steps"
        fitted = (
            f"{type(self).__name__} for {self.classifier.description}: series of {steps} and {info.n_features} "
            f"features ({int(mutable.sum())} mutable), {info.predicts}."
        )
        return "\n".join([fitted, *([] if info.model is None else info.model.describe())])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.classifier!r}{'' if self.info_ is not None else ', not fitted'})"

    def _repr_html_(self) -> str:
        return html_card(type(self).__name__, self.summary().splitlines())

    @final
    def save(self, folder: str | os.PathLike[str], *, shared: bool = False) -> None:
        """Write the fitted explainer (safetensors + JSON) into a folder; read it with :func:`sparcets.load`.

        It may contain training series: only its owner can read it, unless ``shared`` gives it the usual permissions.
        """
        save_explainer(self, as_path(folder), shared=shared)

    # Hooks: a method implements these.

    def _fit(self, job: FitJob) -> None:
        """Learn from checked training series; by default, do nothing."""

    def _rescaled(self, info: SeriesInfo) -> SeriesInfo:
        """Return the description of the training series with the scale that the method works in."""
        return info

    @abstractmethod
    def _explain(self, request: Request) -> Answers:
        """Answer a batch of queries, none of which is in its target class yet."""

    @abstractmethod
    def _state(self) -> dict[str, Any]:
        """Return the arrays (by name) that make a fitted explainer, for saving."""

    @abstractmethod
    def _restore(self, state: dict[str, Any], info: SeriesInfo) -> None:
        """Restore the arrays that :meth:`_state` returned; ``info`` describes the training series."""

    def _evidence(self, answers: Explanation, options: CallOptions) -> Evidence | None:
        """Return the evidence on finished answers, one row each; None for a method without a selector."""
        return None

    def _curve(self, answers: Explanation, options: CallOptions) -> Mapping[str, FloatArray]:
        """Return ``share``, ``support`` and ``valid`` (answers, points) of smaller changes, as in :class:`Evidence`.

        Called if ``supports_curve`` and ``curve=True``, with the answers that are not ``unchanged``.
        """
        raise NotImplementedError

    # The pipeline.

    def _call(
        self, target: Any, n_steps: int, constraints: Any, *, n_queries: int | None = None, **arguments: Any
    ) -> CallOptions:
        """Return the arguments of ``explain`` for queries of ``n_steps`` steps, checked and bound to the fit."""
        info, owner, standing = self._fitted(), type(self).__name__, self._defaults
        if n_steps != info.n_steps:
            standing = CallOptions.of_fit(self.constraints_, replace(info, n_steps=n_steps), self.classifier)
        call = replace(standing, classifier=self.classifier).for_call(constraints, **arguments)
        if info.outcome and call.confidence is not None:
            raise ConfigError("confidence is a probability of a class; a regressor has none. Narrow the target.")
        if call.edits is not None and not self.makes_edits:
            raise ConfigError(f"{owner} gives values, not edits: leave edits out, or use sp.Explainer.")
        if call.curve and not self.supports_curve:
            raise ConfigError(f"{owner} has no models of other kinds for a curve: use sp.Explainer.")
        bound = BoundTarget.bind(target, info, own=self._target, owner=owner, n_queries=n_queries)
        return replace(call, target=bound)

    @final
    def _answer(self, block: QueryBlock, call: CallOptions, bar: Bar) -> Explanation:
        """Answer a block of queries with any kind of target."""
        if call.target.numbers:
            return self._answer_numbers(block, call, bar)
        if call.target.excluded is None:
            return self._answer_classes(block, call, bar)
        parts = []
        for batch in block.batches(self.config.batch_size):
            proba = self.classifier.outputs_unchecked(batch.series)
            with progress_bar("", None, show=False) as unseen:  # it would count every class of a query
                tried = [
                    self._answer_classes(batch.select(rows, target), call, unseen)
                    for rows, target in other_classes(proba, call.target.excluded)
                ]
            parts.append(best_of_classes(tried, call.n))
            bar.advance(len(batch))
        return join(parts)

    def _answer_numbers(self, block: QueryBlock, call: CallOptions, bar: Bar) -> Explanation:
        """Answer queries of a regressor: goal by goal, as queries of two classes."""
        regressor, index = self._regressor, block.target
        assert index is not None
        before = self._outputs(regressor, block, call.info.numbers.n_outputs)
        bounds, words = call.target.bounds(index, before), call.target.words(index)
        _, first, group = np.unique(
            np.c_[index, bounds.reshape(len(bounds), -1)], axis=0, return_index=True, return_inverse=True
        )
        parts = []
        for k, i in enumerate(first):
            part = block.select(rows := np.flatnonzero(group.ravel() == k), np.full(len(rows), WITHIN))
            goal = Goal(bounds[i], (str(words[i]), "another number"))
            parts.append(self._answer_classes(part, call.for_goal(goal), bar))
        answers = join(parts)
        answers = answers[np.argsort(answers.query_index, kind="stable")]
        return self._in_numbers(answers, words, before, bounds)

    def _in_numbers(self, answers: Explanation, words: StrArray, before: FloatArray, bounds: FloatArray) -> Explanation:
        """Convert answers about two classes, within a goal and beyond it, to answers about numbers.

        ``words``, ``before`` (batch, outputs) and ``bounds`` (batch, outputs, 2) are the targets of the queries, their
        predicted numbers, and the bounds of the targets; all queries have the same number of answers.
        """
        n, info, regressor = len(answers) // len(before), self._fitted(), self._regressor
        numbers = Numbers(before=np.repeat(before, n, 0), after=np.repeat(before, n, 0), bounds=np.repeat(bounds, n, 0))
        moved = np.flatnonzero(answers.changed.any((1, 2)))
        if len(moved):
            changed = answers[moved]
            numbers.after[moved] = regressor.outputs_unchecked(Series(changed.counterfactual, changed.lengths))
        # The number itself decides, since a model may give other last bits in another batch.
        status, reason, outcome = answers.status.copy(), answers.reason.astype(object), info.numbers
        repeated = np.flatnonzero(numbers.reached & regressor.may_contradict)
        if len(repeated):
            predictions = predict_again(regressor, replace(answers, info=info), repeated)
            differs = ~is_within(predictions, numbers.bounds[repeated])
            differs &= (np.abs(predictions - numbers.after[repeated]) > NOISE_NUMBERS * outcome.scale).any(1)
            for row, number in zip(repeated[differs], predictions[differs], strict=True):
                first, numbers.after[row] = outcome.say(numbers.after[row]), number
                reason[row] = (
                    f"the model contradicts itself: asked twice about the same series, it predicts {first} once"
                )
        reached, was_found = numbers.reached, status != "not_found"
        status[reached & ~was_found] = "refined"
        reason[reached] = ""
        status[~reached] = "not_found"
        for i in np.flatnonzero(~reached):
            why = str(reason[i]) or "the answer is not within the target"
            reason[i] = f"{why}; the number reached {outcome.say(numbers.after[i], bounds=numbers.bounds[i])}"
        no_classes = np.zeros((len(answers), 0))
        return replace(
            answers,
            info=info,
            target=np.repeat(words, n),
            status=status,
            reason=reason.astype(str),
            proba_before=no_classes,
            proba_after=no_classes,
            numbers=numbers,
        )

    def _answer_classes(self, block: QueryBlock, call: CallOptions, bar: Bar) -> Explanation:
        """Answer queries that have one target class each, and add the evidence."""
        began = time.perf_counter()
        parts = []
        for batch in block.batches(self._batch_size()):
            before = self._outputs(call.classifier, batch, call.info.n_classes)
            request = call.request(batch.series, runner_up(before) if batch.target is None else batch.target)
            parts.append(self._explain_batch(request, before, np.repeat(batch.index, call.n), call))
            bar.advance(len(before))
        answers = join(parts)
        evidence = self._evidence(answers, call)
        rows = np.flatnonzero(answers.status != "unchanged")
        if call.curve and evidence is not None and len(rows):
            evidence = evidence.with_curve(self._curve(answers[rows], call), rows)
        return replace(answers, evidence=evidence, seconds=time.perf_counter() - began)

    def _outputs(self, model: Classifier | Regressor, block: QueryBlock, n_outputs: int) -> FloatArray:
        """Return the model's outputs for queries; raise if their number differs from the fit."""
        outputs = model.outputs_unchecked(block.series)
        if outputs.shape[1] != n_outputs:  # some wrapped models show it only by a prediction
            model.check_compatible(self._fitted(), f"this {type(self).__name__}")
        return outputs

    def _batch_size(self) -> int:  # queries explained at a time
        return self.config.batch_size

    def _explain_batch(self, request: Request, before: FloatArray, index: IntArray, call: CallOptions) -> Explanation:
        """Answer a batch of queries with these probabilities, predict the answers, and package both.

        ``index`` are the indices of the queries.
        """
        n, B = request.n, len(before)
        reached = is_reached(before, request.target, request.confidence)
        done, left = np.flatnonzero(reached), np.flatnonzero(~reached)
        parts = [(done, Answers.unchanged(request.select(done), before[done]))] if len(done) else []
        if len(left):
            rest = request if len(left) == B else request.select(left)
            requests = [(np.arange(len(left)), rest)] if self.takes_padding else list(rest.by_length())
            parts += [(left[rows], self._explain(part)) for rows, part in requests]
        answers = Answers.join(request, parts)
        queries = request.series[np.repeat(np.arange(B), n)]
        targets, after = np.repeat(request.target, n), np.asarray(answers.proba)
        status, reason = answers.status, answers.reason
        missing = np.flatnonzero(np.isnan(after).any(1))
        if len(missing):
            after[missing] = request.classifier.outputs_unchecked(queries.with_values(answers.counterfactual)[missing])
        # The classifier's own prediction decides: answers that it rejects are not found, whatever the method's status.
        valid = is_reached(after, targets, request.confidence)
        for i in np.flatnonzero(~valid & (status != "not_found")):
            status[i], reason[i] = "not_found", request.why_rejected(i // n, answers.counterfactual[i], after[i])
        explanation = Explanation(
            query=queries.values,
            counterfactual=answers.counterfactual,
            target=targets,
            status=status,
            reason=reason.astype(str),
            query_index=index,
            proba_before=np.repeat(before, n, axis=0),
            proba_after=after,
            info=request.info,
            mutable=request.constraints.mutable,
            frozen=request.constraints.frozen_if_any,
            lengths=queries.lengths,
            evidence=answers.evidence,
            edit_lists=answers.edit_lists,
            method=self.method,
            config=self._settings,
            constraints=call.constraints_given,
            seed=self.config.seed,
            confidence=request.confidence,
        )
        if request.goal is not None:
            return explanation  # numbers are predicted again later
        return ask_again(self.classifier, explanation, np.flatnonzero(status != "not_found"))

    @property
    def _regressor(self) -> Regressor:
        model: Any = self.classifier
        assert isinstance(model, Regressor)
        return model

    def _fitted(self) -> SeriesInfo:
        if self.info_ is None:
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet. Call fit(dataset) or fit(X, y) first.")
        return self.info_

    def _check_parameters(self) -> None:
        if not isinstance(self.config, self.config_class):
            check_settings(self.config, self)
        if not isinstance(self.classifier, Classifier) or self.needs_gradients:
            check_model(self.classifier, self)

    def _set_fitted(self, info: SeriesInfo, constraints: Constraints, target: int | None) -> None:
        """Store the attributes of every fitted explainer; also used by ``load``."""
        self.info_, self._series_info, self.constraints_, self._target = info, info.of_series, constraints, target
        self._defaults, self._settings = CallOptions.of_fit(constraints, info, self.classifier), self.config.to_dict()

    def _check_lengths(self) -> None:
        """Raise if the method does not support padded series."""
        if not self.supports_lengths:
            owner = type(self).__name__
            raise CapabilityError(f"{owner} does not support series of unequal length. Cut or resample them to one.")


def predict_again(model: Classifier | Regressor, answers: Explanation, rows: IntArray) -> FloatArray:
    """Predict some answers again in another batch: in reversed order, batched with a query.

    For a model that contradicted itself in the fit, each answer is predicted separately.
    """
    counterfactuals, check = Series(answers.counterfactual, answers.lengths)[rows], answers.info.model
    if check is not None and not check.consistent:
        return np.concatenate([model.outputs_unchecked(single) for single in counterfactuals.batches(1)])
    query = Series(answers.query, answers.lengths)[:1]
    return model.outputs_unchecked(Series.join([counterfactuals[::-1], query]))[:-1][::-1]


def ask_again(model: Classifier, answers: Explanation, rows: IntArray) -> Explanation:
    """Predict the valid answers, ``rows``, again in another batch, and reject those that the model contradicts.

    If the model then predicts another class, the second prediction is used: the answer is not valid. If ``predict`` of
    an estimator contradicts its probabilities, the answer stays valid, and ``reason`` says so.
    """
    if not len(rows) or not model.may_contradict:
        return answers
    predictions = predict_again(model, answers, rows)
    names, status, reason = answers.info.class_names, answers.status.astype("<U9"), answers.reason.astype(object)
    after = answers.proba_after.copy()
    for i in np.flatnonzero(contradicts(after[rows], predictions)):
        row, target = rows[i], names[int(answers.target[rows[i]])]
        after[row], status[row] = predictions[i], "not_found"
        reason[row] = (
            f"the model contradicts itself: asked twice about the same series, it predicts {target}, then "
            f"{names[int(predictions[i].argmax())]}"
        )
    rows = rows[~np.isin(status[rows], ("unchanged", "not_found"))]
    predicted = model.own_predictions(Series(answers.counterfactual, answers.lengths)[rows]) if len(rows) else None
    if predicted is not None:
        for row, label in zip(rows, predicted, strict=True):
            if label != answers.target[row]:
                target = names[int(answers.target[row])]
                reason[row] = f"the model's predict says {names[label]}, its predict_proba {target}"
    return replace(answers, proba_after=after, status=status, reason=reason.astype(str))
