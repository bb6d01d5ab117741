"""The methods with a generator and a discriminator: Gan, CounterGan and Sparce, their base class, and their export.

An exported file holds the generator between two scalings. The constraints of a single call and the classifier's check
remain part of ``explain``, since they need the user's own model.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from inspect import signature
from typing import Any, ClassVar, Protocol, TypeVar, cast

import numpy as np
import torch
from torch import Tensor, nn

from sparcets.core.errors import CapabilityError, NotFittedError, StorageError, TrainingError, preserve_warning_filters
from sparcets.core.info import SeriesInfo
from sparcets.core.progress import progress_bar
from sparcets.core.registry import require_extra
from sparcets.core.seeding import spawn
from sparcets.core.series import FloatArray, IntArray, Scaler, Series, differs
from sparcets.core.settings import AdversarialConfig, CounterGanConfig, GanConfig, MethodConfig, SparceConfig
from sparcets.io.files import atomic_path
from sparcets.methods.base import BaseExplainer
from sparcets.methods.request import Answers, FitJob, Request
from sparcets.models.base import Classifier
from sparcets.models.interface import call_in_batches
from sparcets.training.checkpoint import Checkpoint, delete_checkpoint, has_identity
from sparcets.training.cuda import CapturedStep
from sparcets.training.device import lengths_on, resolve_device, seeded, single_precision, threads_for
from sparcets.training.generator import Discriminator, Generator
from sparcets.training.loop import (
    Callback,
    DivergenceCheck,
    EarlyStopping,
    History,
    Pairing,
    Progress,
    Step,
    TrainingFailure,
    train,
)
from sparcets.training.losses import LossTerm, Objective
from sparcets.training.networks import check_sizes, fill_gaps
from sparcets.training.projection import Projection
from sparcets.training.steps import GanStep

log = logging.getLogger(__name__)
REFERENCE = 64  # training series whose predictions identify the classifier of a checkpoint
FEW_VALID = 0.5  # share of queries that reach their target after the training; below it, a warning is logged
ADVICE = "Try a smaller train.lr, a larger weights.classification, a smaller weights.sparsity, or another seed."

ROWS = 8  # queries in a pass on a CPU, always the same number: with another, the last bits differ

OPSET = 17
BATCHES = (1, 5)  # batch sizes for comparing the written file with torch
CLOSE = 1e-4  # in standardised units: differences by rounding


def training_identity(
    method: str, config: MethodConfig, domain_losses: Mapping[str, LossTerm], job: FitJob, attempt: int
) -> str:
    """Return a digest of everything that determines the result of a training, except the classifier."""
    digest = hashlib.sha256()
    weights = {name: term.weight for name, term in domain_losses.items()}
    values = {"config": config.deciding_values(), "domain_losses": weights, "attempt": attempt}
    digest.update(json.dumps([method, values, job.constraints_given], sort_keys=True).encode())
    further = [array for array in (job.series.lengths, job.numbers, job.subjects) if array is not None]
    for array in (job.X, job.y, job.constraints.mutable, *further):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def fit_with_restart(
    job: FitJob,
    train_once: Callable[[int], None],
    identity: Callable[[int], str],
    *,
    restarts: int = 1,
    advice: str = ADVICE,
) -> None:
    """Train; if the training fails, start again from other weights, at most ``restarts`` times.

    ``train_once`` takes the number of the attempt, from 0 on, and raises :class:`TrainingFailure` if it fails; the
    ``identity`` of an attempt identifies its checkpoint. ``advice`` is the end of the message if all attempts fail.
    """
    folder = job.checkpoint
    begun = (k for k in range(1, restarts + 1) if folder is not None and has_identity(folder, identity(k)))
    for attempt in range(next(begun, 0), restarts + 1):
        try:
            train_once(attempt)
            return
        except TrainingFailure as failure:
            if folder is not None:
                delete_checkpoint(folder, identity(attempt))
            if attempt == restarts:
                again = "; a second start from other weights ended the same way" if restarts else ""
                raise TrainingError(f"{failure}{again}. {advice}") from failure
            log.warning("%s; starting again from other weights", failure)


class AdversarialStep(Step, Protocol):
    """A step that trains a generator and a discriminator on standardised series ``x``."""

    x: Tensor
    networks: dict[str, nn.Module]
    optimisers: dict[str, torch.optim.Adam]


def train_step(
    step: AdversarialStep,
    pairing: Pairing,
    job: FitJob,
    *,
    epochs: int,
    seed: int,
    title: str,
    history: History,
    callbacks: Sequence[Callback],
    check_every: int,
    identity: Callable[[], str],
    classifier: Classifier,
) -> None:
    """Train a step for some epochs, with a progress bar and, if the job has a folder for it, a checkpoint.

    ``history`` is filled with the values of every epoch. ``callbacks`` are called after every epoch, including those
    before a resume, and every ``check_every`` steps. ``identity`` and the explained model identify a checkpoint; the
    seed is for dropout and noise.
    """
    start, device, after = 0, step.x.device, [history, *callbacks]
    if job.checkpoint is not None:
        checkpoint = Checkpoint(
            job.checkpoint,
            step.networks,
            step.optimisers,
            history,
            identity=identity(),
            reference_proba=torch.tensor(classifier.outputs_unchecked(job.series[:REFERENCE])),
        )
        start = checkpoint.resume()
        for epoch in range(start):
            for callback in callbacks:
                callback.on_epoch_end(epoch, {name: values[epoch] for name, values in history.values.items()})
        start = epochs if any(callback.stop for callback in callbacks) else start
        after.append(checkpoint)
    with (
        threads_for(pairing.batch_size * step.x[0].numel()),
        progress_bar(title, epochs, show=job.progress) as bar,
    ):
        bar.advance(start)
        train(
            # One CUDA graph for each step, except for series of different lengths, which are packed or cut on the host.
            step if job.series.unequal else CapturedStep(step, device),
            pairing,
            epochs=epochs,
            seed=seed,
            device=device,
            callbacks=[*after, Progress(bar)],
            start=start,
            check_every=check_every,
        )


A = TypeVar("A", bound=AdversarialConfig)


class AdversarialExplainer(BaseExplainer[A]):
    """Trains a generator once; then an answer is one forward pass.

    Parameters
    ----------
    classifier
        The model to explain; gradients must flow through it.
    config
        Settings of the method.
    domain_losses
        Additional loss terms for the generator's objective, by name.

    Attributes
    ----------
    history_
        Every loss term by name, by epoch; also ``generator``, ``discriminator``, ``valid`` and ``changed``.
    silent_features_
        Mutable features that the generator never changes on the training queries.
    """

    head: ClassVar[str]  # output layer of the generator: "sparse", "residual" or "series"; see training/generator.py
    needs_gradients = True
    supports_lengths = True

    def __init__(
        self, classifier: Classifier, config: A | None = None, *, domain_losses: Mapping[str, LossTerm] | None = None
    ) -> None:
        super().__init__(classifier, config)
        self.domain_losses = dict(domain_losses or {})
        self.silent_features_: tuple[str, ...] = ()
        self._generator: Generator | None = None

    def _fit(self, job: FitJob) -> None:
        restarts = self.config.train.restarts
        fit_with_restart(job, partial(self._train, job), partial(self._identity, job), restarts=restarts)

    def _rescaled(self, info: SeriesInfo) -> SeriesInfo:
        if self.config.standardise:
            return info
        one = np.where(info.constant, 1.0, np.nextafter(1.0, 2.0))  # exactly 1 would mean a constant feature
        return replace(info, scaler=Scaler(center=np.zeros(info.n_features), scale=one))

    def _identity(self, job: FitJob, attempt: int) -> str:
        return training_identity(self.method, self.config, self.domain_losses, job, attempt)

    def _train(self, job: FitJob, attempt: int) -> None:
        config, device = self.config.train, resolve_device(self.config.device)
        seed = spawn(self.config.seed, f"attempt {attempt}")
        pairing = Pairing(
            job.y,
            target=job.target,
            batch_size=config.batch_size,
            balance=config.balance,
            seed=spawn(seed, "pairs"),
            device=device,
        )
        stopping = EarlyStopping("generator", config.patience or config.epochs + 1)
        history, callbacks = History(), [DivergenceCheck(hopeless=config.restarts > 0), stopping]
        step = self._build_step(job, seed, device)
        train_step(
            step,
            pairing,
            job,
            epochs=config.epochs,
            seed=spawn(seed, "dropout"),
            title=f"training {self.method}",
            history=history,
            callbacks=callbacks,
            check_every=config.check_every,
            identity=partial(self._identity, job, attempt),
            classifier=self.classifier,
        )
        self._generator = cast("Generator", step.generator.eval())
        self.history_ = history.values
        self._check_generator(job, pairing.queries)

    def _build_step(self, job: FitJob, seed: int, device: torch.device) -> GanStep:
        config, info = self.config, job.info
        conditional = job.target is None
        x = torch.tensor(job.standardised(), dtype=torch.float32, device=device)
        gaps = bool(x.isnan().any())
        measured = fill_gaps(x, otherwise=0.0) if gaps else x
        inside = measured[torch.tensor(job.series.inside, device=device)]
        with seeded(spawn(seed, "weights"), device), single_precision():
            mutable = np.flatnonzero(job.constraints.mutable).tolist()
            generator = self._build_generator(
                info, mutable, conditional=conditional, low=inside.amin(0), high=inside.amax(0)
            )
            discriminator = Discriminator(
                n_features=info.n_features,
                n_targets=info.n_classes if conditional else 1,
                **config.discriminator.to_dict(),
            )
        objective = Objective(
            config.weights,
            n_mutable=int(job.constraints.mutable.sum()),
            trains_sparsity=config.trains_sparsity,
            domain_losses=self.domain_losses,
            n_side=job.constraints.n_side,
        )
        return GanStep(
            generator.to(device),
            discriminator.to(device),
            Projection(job.constraints, info.scaler, gaps=gaps).to(device),
            objective,
            self._log_proba,
            x=x,
            # In the data's own type: the classifier receives float64 where the data are.
            center=torch.tensor(info.scaler.center.astype(job.X.dtype), device=device),
            scale=torch.tensor(info.scaler.scale.astype(job.X.dtype), device=device),
            lr=config.train.lr,
            betas=(config.train.beta1, config.train.beta2),
            conditional=conditional,
            lengths=torch.tensor(job.series.steps, device=device) if job.series.unequal else None,
        )

    def _log_proba(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        device = self.classifier.device
        return self.classifier.log_proba(x.to(device), lengths_on(device, lengths)).to(x.device)

    @single_precision()
    def _build_generator(
        self, info: SeriesInfo, mutable: list[int], *, conditional: bool, low: Tensor, high: Tensor
    ) -> Generator:
        return Generator(
            n_features=info.n_features,
            mutable=mutable,
            n_targets=info.n_classes if conditional else 1,
            head=self.head,
            low=low.cpu(),
            high=high.cpu(),
            **self.config.generator.to_dict(),
        )

    def _check_generator(self, job: FitJob, queries: IntArray) -> None:
        """Detect a generator that reaches few targets, and features that it never changes (both heads output 0)."""
        rows = queries[:1024]
        K = job.info.n_classes
        # Try every other class: a feature may matter for some targets only.
        shift = 1 + np.arange(len(rows)) % (K - 1)
        target = np.full(len(rows), job.target) if job.target is not None else (job.y[rows] + shift) % K
        series = job.series[rows]
        proposal = self._propose(series, target, job.info, conditional=job.target is None)
        admitted = job.constraints.enforce(series, proposal)
        moved = differs(admitted, series.values).any((0, 1))  # (features,)
        if not moved.any():
            dead = "the generator is dead: it changes nothing at all"
            if self.config.train.restarts:
                raise TrainingFailure(dead)
            log.warning(dead)
        silent = job.constraints.mutable & ~moved
        self.silent_features_ = tuple(np.array(job.info.feature_names)[silent].tolist())
        if self.silent_features_:
            log.info("never changed by the generator: %s", ", ".join(self.silent_features_))
        said = self.classifier.outputs_unchecked(series.with_values(admitted))
        valid = float((said.argmax(1) == target).mean())
        if valid < FEW_VALID:
            log.warning(
                "after the training, %.0f %% of the training queries reach their target. Train longer (train.epochs), "
                "raise weights.classification, lower weights.sparsity, or take another seed; Ics and Nearest need "
                "no training",
                100 * valid,
            )

    def _fitted_generator(self) -> Generator:
        if self._generator is None:
            raise NotFittedError(f"this {type(self).__name__} has no generator yet. Call fit first.")
        return self._generator

    def _propose(self, series: Series, target: IntArray, info: SeriesInfo, *, conditional: bool) -> FloatArray:
        """Return the generator's counterfactuals (batch, time, features), in the data's own units."""
        generator = self._fitted_generator()
        device = next(generator.parameters()).device
        condition = torch.tensor(target if conditional else np.zeros_like(target), device=device)
        batch = (ROWS, ROWS) if device.type == "cpu" else (1, self.config.batch_size)
        made: FloatArray = series.values.copy()
        for own, part in series.by_length():  # so that padding is never seen
            x = info.scaler.transform(part.values).astype(np.float32, copy=False)
            x = Series(x).filled(otherwise=0.0).values if self.classifier.takes_gaps else x

            def residuals(rows: IntArray, x: FloatArray = x, own: IntArray = own) -> Tensor:
                delta: Tensor = generator(torch.tensor(x[rows], device=device), condition[own[rows]])
                return delta.cpu()

            with torch.inference_mode(), threads_for(ROWS * x[0].size):
                delta = call_in_batches(residuals, len(x), batch)
            made[own, : part.n_steps] = info.scaler.add_delta(part.values, delta.numpy())
        return made

    def _explain(self, request: Request) -> Answers:
        proposal = self._propose(request.series, request.target, request.info, conditional=self._target is None)
        return Answers.one_per_query(request, request.apply_limits(proposal), "generated")

    def summary(self) -> str:
        """Describe the training and its result in a few lines."""
        text = super().summary()
        if self.info_ is None:
            return text
        towards = "every class" if self._target is None else self.info_.class_names[self._target]
        last = ", ".join(f"{name} {values[-1]:.3g}" for name, values in self.history_.items() if values)
        epochs = len(self.history_.get("generator", []))
        lines = [text, f"Trained towards {towards} for {epochs} epochs; in the last one: {last}."]
        if self.silent_features_:
            lines.append(f"Never changed by the generator: {', '.join(self.silent_features_)}.")
        return "\n".join(lines)

    def _state(self) -> dict[str, Any]:
        weights = self._fitted_generator().state_dict()
        silent = [name in self.silent_features_ for name in self._fitted().feature_names]
        return {
            "silent": np.array(silent),
            **{name: t.detach().cpu().contiguous().numpy() for name, t in weights.items()},
        }

    def _restore(self, state: dict[str, Any], info: SeriesInfo) -> None:
        # A placeholder: load_state_dict sets the range of the data.
        nothing = torch.zeros(info.n_features, dtype=torch.float32)
        silent = state.pop("silent")
        size = self.config.generator
        check_sizes(size.hidden, size.layers, [array.shape for array in state.values()])
        mutable, conditional = state["mutable"].tolist(), self.config.target is None
        generator = self._build_generator(info, mutable, conditional=conditional, low=nothing, high=nothing)
        generator.load_state_dict({name: torch.tensor(array) for name, array in state.items()})
        self._generator = generator.to(resolve_device(self.config.device)).eval()
        self.silent_features_ = tuple(np.array(info.feature_names)[silent].tolist())


class Gan(AdversarialExplainer[GanConfig]):
    """A generator of whole series through tanh, scaled to the data's range, regularised by their distance.

    Examples
    --------
    >>> import sparcets as sp
    >>> from sparcets.testing import data, mocks
    >>> X, y = data.make_series(60)
    >>> clf = sp.wrap(mocks.MeanModule(n_classes=3), n_classes=3)
    >>> sp.Gan(clf, sp.GanConfig.tiny()).fit(X, y, progress=False).explain(X[:4], target=1).counterfactual.shape
    (4, 20, 4)
    """

    config_class = GanConfig
    head = "series"


class CounterGan(AdversarialExplainer[CounterGanConfig]):
    """A generator of dense residuals, regularised by their size (after Nemirovsky et al.).

    Examples
    --------
    >>> import sparcets as sp
    >>> sp.CounterGan.needs_gradients, sp.CounterGan.supports_lengths
    (True, True)
    """

    config_class = CounterGanConfig
    head = "residual"


class Sparce(AdversarialExplainer[SparceConfig]):
    """The paper's method (Lang, Giese, Ilg, Otte 2022): a generator whose residuals pass a sparsity layer.

    ``Sparce(clf)`` serves every target class, and its sparsity term has a gradient.
    ``Sparce(clf, SparceConfig.paper(target="ups"))`` has the settings of the paper, as far as it states them;
    ``docs/deviations.md`` lists the open ones.

    Examples
    --------
    >>> import sparcets as sp
    >>> sp.SparceConfig.paper(target="ups").target
    'ups'
    """

    config_class = SparceConfig
    head = "sparse"


def export_generator(explainer: BaseExplainer[Any], path: str | os.PathLike[str]) -> float:
    """Write the generator of a fitted explainer as ONNX, and return the largest difference between the two.

    The file takes ``series`` (batch, time, features) float32 in the data's own units, and ``target`` (batch,) int64,
    the target classes, unless the generator was fitted for one class alone. It returns ``counterfactual`` (batch, time,
    features). Names of features and classes are in its metadata. The file is written atomically; the difference is that
    of torch and onnxruntime on random series, in standardised units.
    """
    require_extra("onnx", "export", "onnx")
    require_extra("onnxruntime", "the comparison with torch", "onnx")
    info = explainer._fitted()
    if info.unequal:
        raise CapabilityError(
            "a generator that was fitted on series of unequal length is not exported: a file would not know where a "
            "series ends. Fit it on series of one length, cut or resampled."
        )
    if info.side is not None:
        raise CapabilityError(
            f"a generator of a model with side inputs ({', '.join(info.side.names)}) is not exported: the file takes "
            "series alone. Use explain(X, target, side=…)."
        )
    if info.is_regression:
        raise CapabilityError("the model predicts numbers: there is no generator to export.")
    if not isinstance(explainer, AdversarialExplainer):
        raise CapabilityError(
            f"{type(explainer).__name__} has no generator to export. Fit Sparce, Gan or CounterGan for that."
        )
    module = _Counterfactual(explainer._fitted_generator(), info, conditional=explainer._target is None)
    module = module.to(next(module.generator.parameters()).device).eval()
    data = _to_onnx(module, info)
    difference = max(_compare(module, data, info, batch) for batch in BATCHES)
    if not difference <= CLOSE:
        raise StorageError(
            f"the exported generator differs from the fitted one by {difference:.2g} standard deviations, so it "
            "was not written. Try other versions of torch and onnxruntime."
        )
    with atomic_path(path) as temporary:
        temporary.write_bytes(data)
    return difference


class _Counterfactual(nn.Module):
    """A generator between two scalings."""

    center: Tensor
    scale: Tensor

    def __init__(self, generator: nn.Module, info: SeriesInfo, *, conditional: bool) -> None:
        super().__init__()
        self.generator, self.conditional = generator, conditional
        self.register_buffer("center", torch.tensor(info.scaler.center, dtype=torch.float32))
        self.register_buffer("scale", torch.tensor(info.scaler.scale, dtype=torch.float32))

    def forward(self, series: Tensor, target: Tensor | None = None) -> Tensor:
        x = (series - self.center) / self.scale
        delta = self.generator(x, target)
        return torch.where(delta == 0, series, series + delta * self.scale)


def _inputs(module: _Counterfactual, info: SeriesInfo, batch: int) -> dict[str, FloatArray | Any]:
    """Return random series like those of the fit, by name."""
    rng = np.random.default_rng(batch)
    shape = (batch, info.n_steps, info.n_features)
    given: dict[str, Any] = {"series": info.scaler.inverse(rng.standard_normal(shape)).astype(np.float32)}
    if module.conditional:
        given["target"] = rng.integers(0, info.n_classes, batch)
    return given


def _to_onnx(module: _Counterfactual, info: SeriesInfo) -> bytes:
    import onnx

    device = module.center.device
    given = {name: torch.tensor(v, device=device) for name, v in _inputs(module, info, 2).items()}
    made = io.BytesIO()
    # The exporter that keeps an LSTM as one node; before torch 2.5 it was the only one.
    older: dict[str, Any] = {"dynamo": False} if "dynamo" in signature(torch.onnx.export).parameters else {}
    # The warnings recommend another exporter, which takes ten times as long.
    with preserve_warning_filters(ignore=Warning), torch.no_grad():
        torch.onnx.export(
            module,
            tuple(given.values()),
            made,  # type: ignore[arg-type]
            input_names=list(given),
            output_names=["counterfactual"],
            dynamic_axes={name: {0: "batch"} for name in (*given, "counterfactual")},
            opset_version=OPSET,
            **older,
        )
    model = onnx.load_model_from_string(made.getvalue())
    model.producer_name = "sparcets"
    about = {"features": info.feature_names, "classes": info.class_names, "units": info.units}
    onnx.helper.set_model_props(model, {name: json.dumps(v, ensure_ascii=False) for name, v in about.items()})
    return bytes(model.SerializeToString())


def _compare(module: _Counterfactual, data: bytes, info: SeriesInfo, batch: int) -> float:
    """Return the largest difference to torch on random series, in standardised units."""
    import onnxruntime

    given = _inputs(module, info, batch)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors only
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    (got,) = session.run(None, given)
    with torch.no_grad():
        expected = module(*(torch.tensor(v, device=module.center.device) for v in given.values())).cpu().numpy()
    return float(np.abs((got - expected) / info.scaler.scale).max())
