"""CftsPeer: the algorithms of the package *counterfactuals-for-time-series* (cfts) as explainers."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import inspect
import io
import logging
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from sparcets.core.errors import CapabilityError, ConfigError, preserve_warning_filters
from sparcets.core.info import SeriesInfo
from sparcets.core.registry import did_you_mean, require_extra
from sparcets.core.seeding import generator, preserve_random_state, spawn
from sparcets.core.series import FloatArray, IntArray, Series
from sparcets.core.settings import MethodConfig
from sparcets.methods.base import BaseExplainer
from sparcets.methods.request import Answers, FitJob, Request
from sparcets.models.base import Classifier
from sparcets.training.device import seeded
from sparcets_paper.peers import ALGORITHMS, Algorithm, Output


@dataclass(frozen=True, kw_only=True, slots=True)
class PeerConfig(MethodConfig):
    """Settings of every peer; arguments of the algorithm itself go to ``options``.

    Examples
    --------
    >>> PeerConfig(seconds_per_query=60.0, options={"num_distractors": 3}).options
    {'num_distractors': 3}
    """

    # A peer explains one query at a time; if all queries of a batch crash, an error is raised.
    batch_size: int = 10_000
    seconds_per_query: float = 60.0  # time limit; the query is not_found after that
    references: int = 1000  # training series passed to the peer, evenly from all classes; it scans them for every query
    options: dict = field(default_factory=dict)  # type: ignore[type-arg]  # arguments of the algorithm by name

    def problems(self) -> list[str]:
        """Return a description of every invalid value."""
        checks = [
            (self.seconds_per_query > 0, f"'seconds_per_query' must be > 0, got {self.seconds_per_query}"),
            (self.references >= 1, f"'references' must be >= 1, got {self.references}"),
        ]
        return MethodConfig.problems(self) + [message for ok, message in checks if not ok]

    @classmethod
    def tiny(cls) -> PeerConfig:
        """Return settings for tests."""
        return cls(seconds_per_query=20.0, references=60)


REPEAT = 1.0  # seconds after which the alarm is raised again, if the function caught the first one
MIN_PROBA = 1e-30  # a black box may return exactly 0, which has no logarithm
SHIFT = 100.0  # makes log-probabilities positive; softmax and cross-entropy do not change


def to_peer(X: FloatArray, info: SeriesInfo, *, longest_is_time: bool) -> FloatArray:
    """Convert series (batch, time, features) to the form of the peers: float32 (batch, features, steps), standardised.

    Most peers take the longer axis as time. If there are more features than steps, their series are padded with steps
    of zeros. All series have this padding, so distances do not change, and the classifier does not receive it.

    Examples
    --------
    >>> X = np.array([[[1.0, 2.0, 3.0], [3.0, 2.0, 5.0]]])  # 2 steps, 3 features
    >>> to_peer(X, SeriesInfo.from_series(X, ("a", "b")), longest_is_time=True)[0].tolist()
    [[-1.0, 1.0, 0.0], [0.0, 0.0, 0.0], [-1.0, 1.0, 0.0]]
    """
    standard = info.scaler.transform(X).astype(np.float32).transpose(0, 2, 1)
    missing = max(0, info.n_features - info.n_steps) if longest_is_time else 0
    return np.ascontiguousarray(np.pad(standard, ((0, 0), (0, 0), (0, missing))))


def from_peer(found: FloatArray, given: FloatArray, query: FloatArray, info: SeriesInfo) -> FloatArray:
    """Convert the answer of a peer to the units of the data (time, features); unchanged entries equal the query.

    The series that it ``found``, and that it was ``given``, are (features, steps) and standardised.
    """
    moved = (found != given)[:, : info.n_steps].T
    own_units = info.scaler.inverse(found[:, : info.n_steps].T.astype(np.float64))
    return np.where(moved, own_units, query)


class PeerModule(nn.Module):
    """A classifier as a module that takes the output of :func:`to_peer`, with a check of the time limit.

    ``dtype`` is that of the series that the classifier takes, ``output`` what :class:`~sparcets_paper.peers.Algorithm`
    says. The classifier is not a submodule, so a peer cannot change its mode or gradients.
    """

    def __init__(self, classifier: Classifier, info: SeriesInfo, dtype: np.dtype[Any], output: Output) -> None:
        super().__init__()
        device = classifier.device if classifier.differentiable else torch.device("cpu")
        self.anchor = nn.Parameter(torch.zeros((), device=device))  # peers read the device from the first parameter
        self.classifier, self.output, self.n_steps = classifier, output, info.n_steps
        self.center = torch.tensor(info.scaler.center.astype(dtype), device=device)
        self.scale = torch.tensor(info.scaler.scale.astype(dtype), device=device)
        self.check: Callable[[], None] = lambda: None  # raises after the time limit

    @property
    def device(self) -> torch.device:
        """Device of the series."""
        return self.anchor.device

    def forward(self, x: Tensor) -> Tensor:
        """Return (batch, classes) for standardised series (batch, features, steps)."""
        self.check()
        own_units = x[..., : self.n_steps].transpose(1, 2) * self.scale + self.center
        if self.classifier.differentiable:
            log_proba = self.classifier.log_proba(own_units.contiguous()).float()
        else:
            proba = np.maximum(self.classifier.outputs_unchecked(Series(own_units.detach().numpy())), MIN_PROBA)
            log_proba = torch.tensor(np.log(proba), dtype=torch.float32)
        if self.output == "proba":
            return log_proba.exp()
        return log_proba + SHIFT if self.output == "lifted_log_proba" else log_proba


class TimeUp(BaseException):
    """The time limit was reached. Not an Exception, so that ``except Exception`` in a peer does not catch it."""


@contextmanager
def time_limit(seconds: float) -> Iterator[Callable[[], None]]:
    """Raise :class:`TimeUp` in a block that takes longer than ``seconds``; yield a function that checks the time.

    In the main thread, an alarm interrupts the block at any point. In other threads there are no alarms, and the block
    ends when it calls the function.
    """
    deadline = time.monotonic() + seconds

    def check() -> None:
        if time.monotonic() > deadline:
            raise TimeUp

    alarm_possible = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    with _alarm(seconds) if alarm_possible else contextlib.nullcontext():
        yield check


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    start, armed = time.monotonic(), True

    def ring(*_: Any) -> None:
        if armed:
            raise TimeUp

    # The other alarm is stopped before its handler is replaced: if it rings until then, its own handler is called.
    delay, interval = signal.setitimer(signal.ITIMER_REAL, 0)
    handler = signal.signal(signal.SIGALRM, ring)
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds, REPEAT)
            yield
        finally:
            armed = False
    finally:  # reached even if the alarm was raised in the line above
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler if handler is not None else signal.SIG_DFL)
        if delay:  # another alarm was set before: restore it with the remaining time
            signal.setitimer(signal.ITIMER_REAL, max(delay - (time.monotonic() - start), 1e-3), interval)


@contextmanager
def isolated(seed: int, device: torch.device) -> Iterator[None]:
    """Run a block with its own seed, gradients enabled, and output and warnings suppressed; restore all of it after.

    Output streams and warnings are global, so the output of other threads is suppressed too.
    """
    with (
        preserve_random_state(),  # first: of two blocks at once, the last to end would restore what the other had set
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        preserve_warning_filters(ignore=Warning),
        seeded(seed, device),
        torch.enable_grad(),
        _in1d(),
    ):
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002 - the peers draw from the global generator
        yield


@contextmanager
def _in1d() -> Iterator[None]:
    """Define ``np.in1d``, which Multi-SpaCE calls and recent versions of NumPy no longer have."""
    if hasattr(np, "in1d"):
        yield
        return
    vars(np)["in1d"] = lambda a, b: np.isin(np.ravel(a), b)
    try:
        yield
    finally:
        del vars(np)["in1d"]


log = logging.getLogger(__name__)
OWN_ARGUMENTS = ("sample", "model", "target_class", "dataset", "X_train", "y_train", "seed")  # not options


class CftsPeer(BaseExplainer[PeerConfig]):
    """An algorithm of cfts, called for one query at a time.

    The classes are loaded from :data:`sparcets_paper.peers.PEERS`: ``PEERS.load("cfts:comte")``. The algorithm receives
    standardised series. Its answers are converted to the units of the data, with unchanged entries equal to the query,
    obey the same constraints as those of other explainers, and are checked by the classifier. A query on which it
    crashes or takes longer than ``config.seconds_per_query`` is ``not_found`` with the reason; if it crashes on all
    queries, an error is raised.

    Attributes
    ----------
    ran_, timed_out_, crashed_
        Numbers of queries since the fit that finished (with or without an answer), timed out, and crashed.
    """

    config_class = PeerConfig
    algorithm: ClassVar[Algorithm]

    ran_: int = 0
    timed_out_: int = 0
    crashed_: int = 0

    def _fit(self, job: FitJob) -> None:
        self._function = self._load_function()
        self._X, self._y = _references(job.X, job.y, self.config.references, self.config.seed)
        self.ran_ = self.timed_out_ = self.crashed_ = 0

    def _load_function(self) -> Callable[..., Any]:
        """Import the algorithm, which takes up to a minute the first time, and check its options."""
        module, _, name = self.algorithm.function.partition(":")
        with isolated(self.config.seed, torch.device("cpu")):
            require_extra("cfts", "the peer methods", "peers")
            function: Callable[..., Any] = getattr(importlib.import_module(f"cfts.{module}"), name)
        parameters = inspect.signature(function).parameters.values()
        # Some algorithms take **kwargs and would ignore a misspelt option.
        known = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD and p.name not in OWN_ARGUMENTS]
        for key in self.config.options:
            if key not in known:
                raise ConfigError(
                    f"{self.method} has no option {key!r}.{did_you_mean(str(key), known)} Known: {', '.join(known)}."
                )
        return function

    def _explain(self, request: Request) -> Answers:
        model = PeerModule(self.classifier, request.info, request.X.dtype, self.algorithm.output)
        found, crashes = request.X.copy(), 0
        reason = np.full(len(request), "", dtype=object)
        for i in range(len(request)):
            try:
                answer = self._explain_one(model, request, i)
            except TimeUp:
                self.timed_out_ += 1
                reason[i] = f"{self.method} did not finish within {self.config.seconds_per_query:g} s"
            except Exception as error:  # continue with the other queries
                crashes += 1
                reason[i] = f"{self.method} crashed: {type(error).__name__}: {error}"
            else:
                self.ran_ += 1
                if answer is None:
                    reason[i] = f"{self.method} found nothing"
                else:
                    found[i] = answer
            if reason[i]:
                log.info("query %d: %s", i, reason[i])
        self.crashed_ += crashes
        if crashes == len(request):
            raise CapabilityError(
                f"{self.method} crashed on all {crashes} queries, first with "
                f"{reason[0].partition('crashed: ')[2]}. It cannot explain this classifier on these series."
            )
        return _with_reasons(Answers.one_per_query(request, request.apply_limits(found), "refined"), request.n, reason)

    def _explain_one(self, model: PeerModule, request: Request, i: int) -> FloatArray | None:
        """Return the algorithm's answer to one query (time, features), or None if it found none."""
        query, target = request.X[i], int(request.target[i])
        given = self._given(query[None], request.info)[0]  # (features, steps)
        # The seed depends on the query, so that the other queries of the batch do not matter.
        seed = spawn(self.config.seed, f"{hashlib.sha256(query.tobytes()).hexdigest()}/{target}")
        arguments = {**self.config.options, **self._reference_arguments(request.info), "target_class": target}
        if self.algorithm.takes_seed:
            arguments["seed"] = seed
        with isolated(seed, model.device), time_limit(self.config.seconds_per_query) as check:
            model.check = check
            returned, _ = self._function(given.copy(), model, **arguments)
            check()  # without an alarm, it may have finished after the limit
        if returned is None:
            return None
        answer = np.asarray(returned, dtype=np.float64)
        if answer.size != given.size:
            raise ValueError(f"it returned shape {answer.shape} for a series of shape {given.shape}")
        return from_peer(answer.reshape(given.shape), given, query, request.info)

    def _given(self, X: FloatArray, info: SeriesInfo) -> FloatArray:
        return to_peer(X, info, longest_is_time=self.algorithm.guesses_time)

    def _reference_arguments(self, info: SeriesInfo) -> dict[str, Any]:
        """Return copies of the training series in the form of the algorithm, which may write into them."""
        X = self._given(self._X, info)
        if self.algorithm.references == "arrays":
            return {"X_train": X, "y_train": self._y.copy()}
        return {"dataset": [(x, int(k)) for x, k in zip(X, self._y, strict=True)]}

    def _state(self) -> dict[str, Any]:
        return {"X": self._X, "y": self._y}

    def _restore(self, state: dict[str, Any], info: SeriesInfo) -> None:
        self._function = self._load_function()
        self._X, self._y = state["X"], state["y"]


@functools.cache
def __getattr__(name: str) -> type[CftsPeer]:
    """Return the explainer class of one algorithm of cfts: the registry loads classes as attributes of a module."""
    if name not in ALGORITHMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    algorithm = ALGORITHMS[name]
    body = {"algorithm": algorithm, "needs_gradients": algorithm.needs_gradients, "__doc__": algorithm.about}
    return type(f"cfts:{name}", (CftsPeer,), body)


def _references(X: FloatArray, y: IntArray, at_most: int, seed: int) -> tuple[FloatArray, IntArray]:
    """Draw at most ``at_most`` series, evenly from all classes, and keep their order."""
    rank = np.empty(len(X), dtype=np.int64)
    rng = generator(seed, "references")
    for k in np.unique(y):
        rows = np.flatnonzero(y == k)
        rank[rng.permutation(rows)] = np.arange(len(rows))
    kept = np.sort(np.argsort(rank, kind="stable")[:at_most])
    return X[kept].copy(), y[kept]


def _with_reasons(answers: Answers, n: int, reason: Any) -> Answers:
    """Set the status of the first answer to each query with a reason to ``not_found``."""
    failed = np.flatnonzero(reason != "")
    status, reasons = answers.status.copy(), answers.reason.astype(object)
    status[failed * n] = "not_found"
    reasons[failed * n] = reason[failed]
    return replace(answers, status=status, reason=reasons)
