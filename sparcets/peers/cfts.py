"""CftsPeer: the algorithms of the package *counterfactuals-for-time-series* (cfts) as explainers of ours."""

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
from sparcets.peers.algorithms import ALGORITHMS, Algorithm
from sparcets.peers.config import PeerConfig
from sparcets.peers.isolation import TimeUp, isolated, time_limit
from sparcets.peers.module import PeerModule, from_peer, to_peer
from sparcets.registry import did_you_mean, require_extra, unknown_name
from sparcets.seeding import generator, spawn
from sparcets.series_info import SeriesInfo

log = logging.getLogger(__name__)
OURS = ("sample", "model", "target_class", "dataset", "X_train", "y_train", "seed")  # arguments we fill in


class CftsPeer(BaseExplainer[PeerConfig]):
    """An algorithm of cfts, asked for one query after the other and made to obey as our own methods are.

    The classes themselves come from :data:`sparcets.peers.PEERS`: ``PEERS.load("cfts:comte")``. The algorithm sees
    standardised series; its answers come back in the data's own units, with unchanged entries as they were, pass
    through the same constraints, and are judged by the classifier, asked again. A query that crashes or takes longer
    than ``config.seconds_per_query`` is ``not_found`` with the reason; that all of them crash is an error.

    Attributes
    ----------
    ran_, timed_out_, crashed_
        How many queries, since the fit, came to an end (with or without an answer), took too long, and crashed.
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
        """Import the algorithm, which takes up to a minute the first time, and check the options for it."""
        module, _, name = self.algorithm.function.partition(":")
        with isolated(self.config.seed, torch.device("cpu")):
            require_extra("cfts", "the peer methods", "peers")
            function: Callable[..., Any] = getattr(importlib.import_module(f"cfts.{module}"), name)
        parameters = inspect.signature(function).parameters.values()
        # Some take **kwargs and would ignore a misspelt name in silence.
        known = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD and p.name not in OURS]
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
                answer = self._ask(model, request, i)
            except TimeUp:
                self.timed_out_ += 1
                reason[i] = f"{self.method} did not finish within {self.config.seconds_per_query:g} s"
            except Exception as error:  # whatever it is, the other queries go on
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
                f"{self.method} crashed on all {crashes} queries; the first time: "
                f"{reason[0].partition('crashed: ')[2]}. This peer cannot explain this classifier on these series."
            )
        return _with_reasons(Answers.one_each(request, request.admit(found), "refined"), request.n, reason)

    def _ask(self, model: PeerModule, request: Request, i: int) -> FloatArray | None:
        """Return the algorithm's answer to one query (time, features), or None where it has none."""
        query, target = request.X[i], int(request.target[i])
        given = self._given(query[None], request.info)[0]  # (features, steps)
        # A seed of the query's own, so that its neighbours in the batch do not matter.
        seed = spawn(self.config.seed, f"{hashlib.sha256(query.tobytes()).hexdigest()}/{target}")
        arguments = {**self.config.options, **self._reference_arguments(request.info), "target_class": target}
        if self.algorithm.takes_seed:
            arguments["seed"] = seed
        with isolated(seed, model.device), time_limit(self.config.seconds_per_query) as check:
            model.check = check
            returned, _ = self._function(given.copy(), model, **arguments)
            check()  # where nothing could stop it, it is too late now
        if returned is None:
            return None
        answer = np.asarray(returned, dtype=np.float64)
        if answer.size != given.size:
            raise ValueError(f"it returned shape {answer.shape} for a series of shape {given.shape}")
        return from_peer(answer.reshape(given.shape), given, query, request.info)

    def _given(self, X: FloatArray, info: SeriesInfo) -> FloatArray:
        return to_peer(X, info, longest_is_time=self.algorithm.guesses_time)

    def _reference_arguments(self, info: SeriesInfo) -> dict[str, Any]:
        """Return the training series as the algorithm takes them, as copies: it may write into them."""
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
    """Make the classes attributes of the module, which is where the registry looks for them."""
    if name in ALGORITHMS:
        return peer_class(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _references(X: FloatArray, y: IntArray, at_most: int, seed: int) -> tuple[FloatArray, IntArray]:
    """Draw at most so many series, evenly from all classes, in the order they came in."""
    rank = np.empty(len(X), dtype=np.int64)
    rng = generator(seed, "references")
    for k in np.unique(y):
        rows = np.flatnonzero(y == k)
        rank[rng.permutation(rows)] = np.arange(len(rows))
    kept = np.sort(np.argsort(rank, kind="stable")[:at_most])
    return X[kept].copy(), y[kept]


def _with_reasons(answers: Answers, n: int, reason: Any) -> Answers:
    """Turn the first answer to each query that has a reason into ``not_found``."""
    failed = np.flatnonzero(reason != "")
    status, reasons = answers.status.copy(), answers.reason.astype(object)
    status[failed * n] = "not_found"
    reasons[failed * n] = reason[failed]
    return replace(answers, status=status, reason=reasons)
