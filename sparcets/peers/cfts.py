"""CftsPeer: the algorithms of the package *counterfactuals-for-time-series* (cfts) as explainers."""

from __future__ import annotations

import functools
import hashlib
import importlib
import inspect
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch

from sparcets.arrays import FloatArray, IntArray
from sparcets.errors import CapabilityError, ConfigError
from sparcets.explainers.base import BaseExplainer
from sparcets.explainers.request import Answers, FitJob, Request
from sparcets.explanation.series_info import SeriesInfo
from sparcets.peers.algorithms import ALGORITHMS, Algorithm
from sparcets.peers.config import PeerConfig
from sparcets.peers.isolation import TimeUp, isolated, time_limit
from sparcets.peers.module import PeerModule, from_peer, to_peer
from sparcets.registry import did_you_mean, require_extra, unknown_name
from sparcets.seeding import generator, spawn

log = logging.getLogger(__name__)
OWN_ARGUMENTS = ("sample", "model", "target_class", "dataset", "X_train", "y_train", "seed")  # not options


class CftsPeer(BaseExplainer[PeerConfig]):
    """An algorithm of cfts, called for one query at a time.

    The classes are loaded from :data:`sparcets.peers.PEERS`: ``PEERS.load("cfts:comte")``. The algorithm receives
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
        return _with_reasons(Answers.one_each(request, request.apply_limits(found), "refined"), request.n, reason)

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
def peer_class(name: str) -> type[CftsPeer]:
    """Return the explainer class of one algorithm of cfts.

    >>> peer_class("comte").__name__, peer_class("glacier").needs_gradients
    ('cfts:comte', True)
    """
    if name not in ALGORITHMS:
        raise unknown_name("algorithm of cfts", name, ALGORITHMS)
    algorithm = ALGORITHMS[name]
    body = {"algorithm": algorithm, "needs_gradients": algorithm.needs_gradients, "__doc__": algorithm.about}
    return type(f"cfts:{name}", (CftsPeer,), body)


def __getattr__(name: str) -> type[CftsPeer]:
    """Return the class of an algorithm: the registry loads classes as attributes of a module."""
    if name in ALGORITHMS:
        return peer_class(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


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
