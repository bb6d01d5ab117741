"""The desk: what has been loaded, kept in memory, and the one thread in which questions are answered in turn.

One thread, because an explanation lends the model for a while (its mode, its gradients, the random state) and gives it
back as it was: two at once would see each other's. Trainings run elsewhere, in processes of their own.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from sparcets.arrays import FloatArray
from sparcets.studio import results
from sparcets.studio.ahead import Ahead
from sparcets.studio.data import load
from sparcets.studio.errors import ApiError
from sparcets.studio.limits import Limits
from sparcets.studio.models import Answers, Question, Rules
from sparcets.studio.workspace import Workspace

if TYPE_CHECKING:
    from sparcets.classifiers.torch_classifier import TorchClassifier
    from sparcets.constraints import Constraints
    from sparcets.datasets.base import Dataset
    from sparcets.explainers.base import BaseExplainer
    from sparcets.explanation import Explanation

T = TypeVar("T")
PATIENCE = 0.6  # seconds to wait for an answer that is being worked on, before it is begun anew


class Desk:
    """Answers questions about what is in a workspace.

    Parameters
    ----------
    workspace
        Where things are kept.
    limits
        How long a question may take, and how many may wait.
    device
        Where the models run.
    """

    def __init__(self, workspace: Workspace, limits: Limits, device: str = "auto") -> None:
        self.workspace, self.limits, self.device = workspace, limits, device
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="desk")
        self._waiting = 0
        self._datasets: _Shelf[Dataset] = _Shelf(limits.loaded)
        self._classifiers: _Shelf[TorchClassifier] = _Shelf(limits.loaded)
        self._explainers: _Shelf[BaseExplainer[Any]] = _Shelf(limits.loaded)
        self._proba: _Shelf[FloatArray] = _Shelf(limits.loaded)
        self._answers: _Shelf[Answers] = _Shelf(limits.remembered)
        self._ahead = Ahead(workspace.folder, device, self._answers.put)

    def warm_up(self) -> None:
        """Begin to import what the first question needs, without making anybody wait."""
        self._thread.submit(_import_heavy)

    def close(self) -> None:
        """Take no more questions."""
        self._ahead.close()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def run(self, work: Callable[[], T]) -> T:
        """Run a function when its turn comes; a 4xx answer if too many wait or it takes too long."""
        if self._waiting >= self.limits.waiting:
            raise ApiError(429, "busy", f"{self._waiting} requests are waiting already. Try again in a moment.")
        self._waiting += 1
        ends = time.monotonic() + self.limits.seconds

        def in_turn() -> T:
            if time.monotonic() > ends:  # nobody waits for the answer any more
                raise too_slow(self.limits.seconds)
            return work()

        future = asyncio.get_running_loop().run_in_executor(self._thread, in_turn)
        future.add_done_callback(self._one_less)
        try:
            # Shielded: what has begun cannot be stopped half-way, and what it loads will be of use to the next.
            return await asyncio.wait_for(asyncio.shield(future), self.limits.seconds)
        except (TimeoutError, asyncio.TimeoutError):
            raise too_slow(self.limits.seconds) from None

    def _one_less(self, future: asyncio.Future[Any]) -> None:
        self._waiting -= 1
        if not future.cancelled():
            future.exception()  # looked at, so that nobody is warned of what the client no longer waits for

    def put(self, name: str, dataset: Dataset) -> None:
        """Keep a data set that was just opened."""
        self._datasets.put(name, dataset)

    def dataset(self, name: str) -> Dataset:
        """Return a data set of the workspace."""
        record = self.workspace.dataset(name)
        return self._datasets.get(name, lambda: load(self.workspace, record))

    def classifier(self, name: str) -> TorchClassifier:
        """Return a classifier of the workspace."""
        from sparcets.classifiers.torch_classifier import load_classifier

        path = self.workspace.path("classifiers", name)
        return self._classifiers.get(name, lambda: load_classifier(path, device=self.device))

    def explainer(self, name: str) -> BaseExplainer[Any]:
        """Return an explainer of the workspace."""
        import sparcets.explainers.load as saved

        path, record = self.workspace.path("explainers", name), self.workspace.explainer(name)
        return self._explainers.get(name, lambda: saved.load(path, classifier=self.classifier(record.classifier)))

    def proba(self, name: str) -> FloatArray:
        """Return what a classifier says of every test series of its data, (series, classes)."""
        record = self.workspace.classifier(name)

        def predict() -> FloatArray:
            dataset = self.dataset(record.dataset)
            return self.classifier(name).predict_proba(dataset.X_test, dataset.lengths_test)

        return self._proba.get(name, predict)

    def answer(self, question: Question) -> Answers:
        """Answer a question as the API does; what was asked before, or thought of, is answered from memory."""
        self.workspace.path("explainers", question.explainer)  # what was removed answers no more
        if len(question.rows) > 1:  # a batch is asked once, and may be large
            return results.answers(self.explain(question), question.rows)
        asked = question.model_dump_json()
        if asked not in self._answers:
            self._ahead.wait_for(asked, PATIENCE)
        return self._answers.get(asked, lambda: results.answers(self.explain(question), question.rows))

    def think_ahead(self, questions: Sequence[Question]) -> None:
        """Begin to work on what may be asked next, while nobody waits."""
        asked = [q.model_dump_json() for q in questions]
        self._ahead.think([text for text in asked if text not in self._answers])

    def explain(self, question: Question) -> Explanation:
        """Explain what a question asks for."""
        check_size(question, self.limits)
        explainer = self.explainer(question.explainer)
        dataset = self.dataset(self.workspace.explainer(question.explainer).dataset)
        rows = np.array(question.rows)
        if rows.max() >= len(dataset.X_test):
            raise ApiError(
                422, "no_such_row", f"no test series {rows.max()}: there are {len(dataset.X_test)}, numbered from 0."
            )
        rules = to_constraints(question.constraints)
        return explainer.explain(
            dataset.X_test[rows],
            target=question.target,
            constraints=rules,
            sparsity=question.sparsity,
            n=question.answers,
            lengths=None if dataset.lengths_test is None else dataset.lengths_test[rows],
            progress=False,
        )


class _Shelf(Generic[T]):
    """Keeps the things used last; may be filled from another thread."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._held: OrderedDict[str, T] = OrderedDict()
        self._lock = threading.RLock()

    def __contains__(self, name: str) -> bool:
        with self._lock:
            return name in self._held

    def put(self, name: str, thing: T) -> None:
        with self._lock:
            self._held[name] = thing
            self._held.move_to_end(name)
            while len(self._held) > self._size:
                self._held.popitem(last=False)

    def get(self, name: str, make: Callable[[], T]) -> T:
        with self._lock:
            if name in self._held:
                self._held.move_to_end(name)
                return self._held[name]
        made = make()
        self.put(name, made)
        return made


def to_constraints(rules: Rules) -> Constraints:
    """Return what the request forbids as the explainers take it.

    >>> to_constraints(Rules(ranges={"pulse": (40, None)})).ranges
    {'pulse': (40.0, inf)}
    """
    from sparcets.constraints import Constraints

    ranges = {
        f: (-np.inf if low is None else low, np.inf if high is None else high)
        for f, (low, high) in rules.ranges.items()
    }
    return Constraints(**{**rules.model_dump(), "ranges": ranges})


def check_size(question: Question, limits: Limits) -> None:
    """Refuse a question that asks for more than is answered at once."""
    if len(question.rows) > limits.rows:
        raise ApiError(
            413, "too_many_rows", f"{len(question.rows)} queries at once; at most {limits.rows}. Ask in parts."
        )
    if question.answers > limits.answers:
        raise ApiError(413, "too_many_answers", f"{question.answers} answers to one query; at most {limits.answers}.")


def too_slow(seconds: float) -> ApiError:
    """Say that the time was over."""
    message = f"that took longer than {seconds:g} s. Ask about fewer series, or by a faster method."
    return ApiError(408, "too_slow", message)


def _import_heavy() -> None:
    import pandas  # noqa: F401 - tables of changes
    import torch

    # One query at a time through small networks: threads would wait for each other most of the time.
    torch.set_num_threads(1)
