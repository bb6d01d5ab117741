"""Networks with their scaling, trained with early stopping and saved without pickle, for classes and for numbers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from sparcets.core.config import check_config
from sparcets.core.errors import ConfigError, DataError, FileFormatError, NotFittedError, TrainingError
from sparcets.core.progress import progress_bar
from sparcets.core.seeding import spawn
from sparcets.core.series import FloatArray, IntArray, Scaler, Series, check_padded, is_integer
from sparcets.core.settings import ClassifierConfig
from sparcets.core.validation import check_labels
from sparcets.data.dataset import Dataset
from sparcets.data.splits import held_out_split, warn_of_shared_subjects
from sparcets.io.files import as_path, digest_of_arrays, digest_of_json, to_plain
from sparcets.io.tensors import SavedModel
from sparcets.models.base import Classifier, Model, Regressor, frozen, with_prediction
from sparcets.training import ARCHITECTURES
from sparcets.training.cuda import CapturedStep
from sparcets.training.device import resolve_device, seeded, single_precision, threads_for
from sparcets.training.loop import (
    EarlyStopping,
    History,
    Progress,
    history_from_plain,
    shuffled,
    train,
)
from sparcets.training.networks import OneLogit, check_sizes, fill_gaps
from sparcets.training.steps import ClassifierStep, RegressionStep

if TYPE_CHECKING:
    from typing_extensions import Self


FILES = SavedModel(file="classifier.safetensors", what="classifier", format=3)


class _Network(Model):
    """A network that standardises series itself."""

    differentiable = True
    _knows_means = True

    def __init__(self, architecture: str, config: ClassifierConfig) -> None:
        self.architecture = architecture
        self.config = check_config(config, ClassifierConfig, type(self).__name__)
        self.missing = self.config.missing
        self._network: nn.Module | None = None
        self._center: Tensor = torch.zeros(0)
        self._scale: Tensor = torch.ones(0)
        self._scaler = Scaler(center=np.zeros(0), scale=np.ones(0))

    @single_precision()
    def _build(self, scaler: Scaler, n_outputs: int, n_steps: int) -> None:
        """Build an untrained network of the right sizes."""
        config, device = self.config, resolve_device(self.config.device)
        self._scaler, self.n_features, self.n_steps = scaler, len(scaler.center), n_steps
        self._center = torch.tensor(scaler.center, dtype=torch.float32, device=device)
        self._scale = torch.tensor(scaler.scale, dtype=torch.float32, device=device)
        build = ARCHITECTURES.load(self.architecture)
        with seeded(spawn(config.seed, "weights"), device):
            network: nn.Module = build(self.n_features, n_outputs, config.hidden, config.layers, config.dropout)
        self._network = network.to(device)

    def _train(
        self,
        kind: type[ClassifierStep],
        series: Series,
        y: Tensor,
        split: tuple[IntArray, IntArray],
        stopping: EarlyStopping,
        progress: bool | None,
    ) -> History:
        """Train the network, by steps on the training rows of ``split``, and keep its best epoch.

        A negative ``best_epoch`` of ``stopping`` means that the training diverged.
        """
        config, device, network = self.config, self.device, self._fitted()
        x, steps = self._as_tensors(series.values, series.lengths)
        step, history = kind(network, self._standardise(x, steps), y.to(device), steps, split, config), History()
        with (
            threads_for(config.batch_size * series.values[0].size),
            progress_bar(f"training {self.architecture}", config.epochs, show=progress) as bar,
        ):
            train(
                # Series of different lengths are packed on the host, which a graph cannot do.
                CapturedStep(step, device) if steps is None else step,
                shuffled(len(split[0]), config.batch_size, spawn(config.seed, "order")),
                epochs=config.epochs,
                seed=spawn(config.seed, "dropout"),
                device=device,
                callbacks=[history, stopping, Progress(bar)],
                validate=step.validate,
            )
        if stopping.best_weights is not None:
            network.load_state_dict(stopping.best_weights)
            _freeze(network)
            network.zero_grad(set_to_none=True)  # frees the gradients of the last step
        return history

    @property
    def device(self) -> torch.device:
        """Device of the network."""
        return self._center.device

    def _raw(self, x: Tensor, lengths: Tensor | None) -> Tensor:
        """Return the network's outputs for series in the data's own units."""
        network = self._fitted()
        # Without gradients, freezing is not needed, and it takes time.
        plain = not torch.is_grad_enabled() and not network.training
        with nullcontext() if plain else frozen(network):
            raw: Tensor = network(self._standardise(x, lengths), lengths)
        return raw

    def _standardise(self, x: Tensor, lengths: Tensor | None) -> Tensor:
        standard = ((x - self._center) / self._scale).float()
        return fill_gaps(standard, self.config.missing, lengths, otherwise=0.0) if self.takes_gaps else standard

    def _fitted(self) -> nn.Module:
        if self._network is None:
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet. Call fit(dataset) or fit(X, y) first.")
        return self._network

    def weights(self) -> dict[str, Tensor]:
        """Return the weights of the network by name, on the CPU."""
        return {k: v.detach().cpu().contiguous() for k, v in self._fitted().state_dict().items()}

    def header(self) -> dict[str, Any]:
        """Return everything but the weights, as plain values."""
        return {
            "architecture": self.architecture,
            "config": self.config.to_dict(),
            "n_steps": self.n_steps,
            **({"unequal": True} if self.unequal else {}),
            "scaler": self._scaler.to_dict(),
        }

    @classmethod
    @torch.inference_mode(mode=False)  # weights created in inference mode cannot be used for gradients
    def rebuild(cls, header: Mapping[str, Any], weights: Mapping[str, Tensor], *, device: str = "auto") -> Self:
        """Return the model of a :meth:`header` with its weights."""
        config = ClassifierConfig.from_dict({**header["config"], "device": device})
        check_sizes(config.hidden, config.layers, [weight.shape for weight in weights.values()])
        made = cls(header["architecture"], config)
        made._restore(header)
        made.unequal = bool(header.get("unequal", False))
        network = made._fitted()
        network.load_state_dict(dict(weights))
        _freeze(network)
        return made

    def _restore(self, header: Mapping[str, Any]) -> None:
        """Build the network of a header, and restore its other attributes."""
        raise NotImplementedError


class TorchClassifier(_Network, Classifier):
    """A neural network for classification; it standardises the series itself.

    Parameters
    ----------
    architecture
        ``bilstm`` (the paper's), ``bigru``, ``fcn``, ``resnet``, ``tcn`` or ``transformer``.
    config
        How it is built and trained. With ``missing="forward"`` or ``"mean"`` it takes series with missing values; a
        feature without any value in a series is filled with the mean of the training series.

    Attributes
    ----------
    history_
        Losses and accuracies by epoch, after ``fit``.
    validation_rows_
        Indices of the training series used for early stopping instead of training.

    Examples
    --------
    >>> from sparcets.testing.data import make_series
    >>> X, y = make_series(60)
    >>> clf = TorchClassifier("fcn", ClassifierConfig.tiny()).fit(X, y)
    >>> clf.predict_proba(X[:2]).shape
    (2, 3)
    """

    may_contradict = False

    def __init__(self, architecture: str = "bilstm", config: ClassifierConfig | None = None) -> None:
        ARCHITECTURES.location(architecture)  # raise for an unknown name before data are loaded
        super().__init__(architecture, config if config is not None else ClassifierConfig())
        self.history_: dict[str, list[float]] = {}
        self.validation_rows_: IntArray = np.zeros(0, dtype=np.int64)

    def fit(self, X: Any, y: Any = None, *, lengths: Any = None, progress: bool | None = None) -> Self:
        """Train on a Dataset, or on series and labels.

        Parameters
        ----------
        X
            A :class:`~sparcets.Dataset` (its training part is used), or series (batch, time, features), or a list of
            series (time, features) of unequal length. If the data set has subjects, the training and the
            validation part have no subject in common; with too few subjects, the split is random.
        y
            Labels, where series were given: 0..K-1 or strings.
        lengths
            True lengths of padded series.
        progress
            Whether to draw a progress bar; None draws it on a terminal and in a notebook.
        """
        names: tuple[str, ...] | None = None
        subjects = X.subjects_train if isinstance(X, Dataset) else None
        if isinstance(X, Dataset):
            if any(given is not None for given in (y, lengths)):
                raise DataError("a Dataset brings its own labels and lengths: call fit(dataset) with nothing else.")
            X, y, lengths, names = X.X_train, X.y_train, X.lengths_train, X.class_names
        elif y is None:
            raise DataError("fit needs labels: fit(dataset) or fit(X, y).")
        series = Series(*check_padded(X, lengths, gaps=self.takes_gaps))
        self.check_gaps(series)
        labels, found = check_labels(y, n_samples=len(series), class_names=names)
        named = names is not None or found != tuple(str(k) for k in range(len(found)))
        if (series.steps == series.n_steps).all():
            series = Series(series.values)  # nothing is padded
        self.fit_unchecked(series, labels, found, named=named, progress=progress, subjects=subjects)
        watched = self.validation_rows_
        warn_of_shared_subjects(subjects, np.setdiff1d(np.arange(len(series)), watched), watched, "the validation part")
        return self

    @torch.inference_mode(mode=False)  # gradients are computed, also within no_grad or inference_mode
    def fit_unchecked(
        self,
        series: Series,
        y: IntArray | FloatArray,
        class_names: tuple[str, ...],
        *,
        named: bool,
        progress: bool | None,
        subjects: Any = None,
    ) -> Self:
        """Train on checked series; for internal calls.

        ``y`` are labels (batch,), or probabilities (batch, classes) to match. Unlike ``fit``, it accepts classes
        without series. ``subjects`` (batch,) are those of a Dataset.
        """
        config = self.config
        try:
            self._prepare(Scaler.fit(series.values, series.lengths), class_names, named, series.n_steps)
            self.unequal = self.takes_longer = series.unequal
            split = _validation_split(y, config, subjects)
            self.validation_rows_ = np.sort(split[1][~np.isin(split[1], split[0])])
            # By error, and by loss among equals: the loss alone rises again once the network is overconfident in its
            # few mistakes, long before it stops improving.
            stopping = EarlyStopping("validation_error", config.patience, tie="validation_loss", network=self._network)
            self.history_ = self._train(ClassifierStep, series, torch.tensor(y), split, stopping, progress).values
            if stopping.best_epoch < 0:
                raise ConfigError(
                    f"the training of {self.architecture} diverged: its validation loss was never a finite number. "
                    f"Lower lr (now {config.lr:g})."
                )
        except BaseException:
            self._network = None  # an interrupted fit must leave the object unfitted
            raise
        return self

    def _prepare(self, scaler: Scaler, class_names: tuple[str, ...], named: bool, n_steps: int) -> None:
        self._class_names, self.named = class_names, named
        one = self.config.output == "sigmoid"
        if one and len(class_names) != 2:
            raise ConfigError(
                f"output='sigmoid' is one probability, for two classes, but the data have {len(class_names)}: "
                f"{', '.join(class_names)}. Leave output out for a softmax over all of them."
            )
        self._build(scaler, 1 if one else len(class_names), n_steps)
        self._network = OneLogit(self._fitted()) if one else self._network

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes by index."""
        self._fitted()
        return super().class_names

    def log_proba(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return log-probabilities (batch, classes) of series in the data's own units, with gradients to ``x``."""
        logits = self._raw(x, lengths)
        return with_prediction(logits.log_softmax(1), logits.argmax(1))

    def validation_rows(self, series: Series) -> IntArray | None:
        """Return the rows held out from training, if these are the series that it was fitted on."""
        scaler = Scaler.fit(series.values, series.lengths)
        if not all(np.array_equal(getattr(scaler, name), getattr(self._scaler, name)) for name in ("center", "scale")):
            return None
        return self.validation_rows_ if len(self.validation_rows_) else None

    def __repr__(self) -> str:
        state = "not fitted" if self._network is None else f"{self.n_features} features, {self.n_classes} classes"
        return f"TorchClassifier({self.architecture!r}, {state})"

    def header(self) -> dict[str, Any]:
        """Return everything but the weights, as plain values."""
        return {
            "class_names": list(self.class_names),
            "named": self.named,
            **super().header(),
            "history": to_plain(self.history_),
            "validation_rows": self.validation_rows_.tolist(),
        }

    def digest(self) -> str:
        """Return a digest of everything that determines the predictions, which identifies it for explainers."""
        header = self.header()
        names = ("architecture", "class_names", "n_steps", "scaler")
        weights = {name: weight.numpy() for name, weight in self.weights().items()}
        rule = [self.missing] if self.takes_gaps else []
        return digest_of_json([*(header[name] for name in names), *rule, digest_of_arrays(weights)])

    def _restore(self, header: Mapping[str, Any]) -> None:
        names, rows = tuple(header["class_names"]), header["validation_rows"]
        scaler = Scaler.from_dict(header["scaler"])
        if not names or not all(isinstance(name, str) for name in names) or not len(scaler.center):
            raise ValueError(f"no classifier has the classes {names} and {len(scaler.center)} features")
        if not isinstance(rows, list) or not all(is_integer(row) and row >= 0 for row in rows):
            raise ValueError("validation_rows are not indices of series")
        self._prepare(scaler, names, bool(header["named"]), int(header["n_steps"]))
        self.takes_longer = bool(header.get("unequal", False))
        self.history_ = history_from_plain(header["history"])
        self.validation_rows_ = np.array(rows, dtype=np.int64)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write weights (safetensors) and description (JSON) as one file into a folder."""
        FILES.save(as_path(folder), self.header(), {name: weight.numpy() for name, weight in self.weights().items()})


def _freeze(network: nn.Module) -> None:
    """Prepare a network for predictions; its weights never need gradients again.

    Some layers of PyTorch, such as GRU, compute other last bits for weights that need no gradients. If the weights were
    frozen during each call only, the bits would depend on concurrent threads.
    """
    network.eval()
    network.requires_grad_(False)


def _validation_split(
    y: IntArray | FloatArray, config: ClassifierConfig, subjects: Any = None
) -> tuple[IntArray, IntArray]:
    labels = y.astype(np.int64) if y.ndim == 1 else y.argmax(1)
    if np.unique(labels, return_counts=True)[1].min() < 2:
        # A class with a single series is needed for training: validate on the training series.
        rows = np.arange(len(y), dtype=np.int64)
        return rows, rows
    return held_out_split(labels, subjects, test_size=config.validation, seed=spawn(config.seed, "validation"))


def load_classifier(folder: str | os.PathLike[str], *, device: str = "auto") -> TorchClassifier:
    """Load a classifier that :meth:`TorchClassifier.save` wrote.

    Parameters
    ----------
    folder
        Folder of ``clf.save``.
    device
        Device to run it on, independent of the device of the training.

    Examples
    --------
    >>> import sparcets as sp
    >>> from sparcets.testing.data import make_series
    >>> from tempfile import TemporaryDirectory
    >>> X, y = make_series(60)
    >>> clf = sp.TorchClassifier("fcn", sp.ClassifierConfig(epochs=1)).fit(X, y, progress=False)
    >>> with TemporaryDirectory() as folder:
    ...     clf.save(folder)
    ...     same = sp.load_classifier(folder)
    >>> bool((same.predict(X) == clf.predict(X)).all())
    True
    """
    resolve_device(device)  # an error in ``device`` is raised before the folder is read
    folder = as_path(folder)
    with FILES.reading(folder, passing=FileFormatError):
        header, arrays = FILES.load(folder)
        weights = {name: torch.tensor(array) for name, array in arrays.items()}
        return TorchClassifier.rebuild(header, weights, device=device)


class TorchRegressor(_Network, Regressor):
    """A neural network for regression; it standardises series and numbers itself.

    ``error_`` is the root mean square error on validation series, in standard deviations of the labels, after a fit.
    """

    error_ = np.nan

    @torch.inference_mode(mode=False)  # gradients are computed, also within no_grad or inference_mode
    def fit_unchecked(self, series: Series, y: FloatArray, *, progress: bool | None, subjects: Any = None) -> Self:
        """Train on checked series and numbers (batch, outputs).

        With ``subjects`` (batch,), the training and the validation part have no subject in common.
        """
        config, spread = self.config, y.std(0)
        outcome = Scaler(center=y.mean(0), scale=np.where(spread > 0, spread, 1.0))
        self._prepare(Scaler.fit(series.values, series.lengths), outcome, series.n_steps)
        self.unequal = series.unequal
        seed = spawn(config.seed, "validation")
        rows = np.zeros(len(series), dtype=np.int64)
        split = held_out_split(rows, subjects, test_size=config.validation, seed=seed)
        stopping = EarlyStopping("validation_loss", config.patience, network=self._network)
        standard = torch.tensor((y - outcome.center) / outcome.scale, dtype=torch.float32)
        self._train(RegressionStep, series, standard, split, stopping, progress)
        if stopping.best_epoch < 0:
            raise TrainingError(
                "the training of a network on the numbers diverged: its validation loss was never finite. Are there "
                "labels, or predictions of the model, that are far from all others?"
            )
        self.error_ = float(np.sqrt(stopping.best))
        return self

    def _prepare(self, scaler: Scaler, outcome: Scaler, n_steps: int) -> None:
        self._outcome, self._n_outputs = outcome, len(outcome.center)
        self._build(scaler, self._n_outputs, n_steps)

    def numbers(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return the numbers (batch, outputs) of series in the data's own units, with gradients to ``x``."""
        found = self._raw(x, lengths).double()
        scale, center = (
            torch.as_tensor(v, dtype=torch.float64, device=found.device)
            for v in (self._outcome.scale, self._outcome.center)
        )
        return found * scale + center

    def header(self) -> dict[str, Any]:
        """Return everything but the weights, as plain values; the device is chosen when it is rebuilt."""
        plain = super().header()
        config = {**plain["config"], "device": "auto"}
        return {**plain, "config": config, "outcome": self._outcome.to_dict(), "error": self.error_}

    def _restore(self, header: Mapping[str, Any]) -> None:
        scaler, outcome = (Scaler.from_dict(header[name]) for name in ("scaler", "outcome"))
        self._prepare(scaler, outcome, int(header["n_steps"]))
        self.error_ = float(header["error"])
