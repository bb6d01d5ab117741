"""Loads models into memory and runs all requests that need them, one after the other in a single thread.

A single thread, because several searches at the same time would only slow each other down on few cores. What the page
waits for interrupts searches that can wait. Files of finished answers are made in a second thread, so that they do not
wait behind a search. Training jobs run in processes of their own.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from sparcets.core.progress import pausing
from sparcets.studio.answers import Answers, LruCache
from sparcets.studio.models import ClassifierRecord, DatasetRecord, ExplainerRecord, Limits
from sparcets.studio.recordings import AllRecordings, Predictions
from sparcets.studio.workspace import Workspace, load, load_model, load_new, new_files
from sparcets.web.errors import ApiError

if TYPE_CHECKING:
    from sparcets.data.dataset import Dataset
    from sparcets.methods.base import BaseExplainer
    from sparcets.models.base import Classifier
    from sparcets.models.own_model import OwnModel


T = TypeVar("T")
Turn = tuple["Future[Any]", Callable[[], Any]]


class Turns:
    """Runs functions in one thread.

    Patient ones are interrupted between the rounds of their searches, and urgent ones run there, on top of them:
    nothing that was computed is lost.

    >>> turns = Turns("service")
    >>> turns.submit(lambda: 2 + 3).result()
    5
    >>> turns.close()
    """

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._urgent: deque[Turn] = deque()
        self._patient: deque[Turn] = deque()

    def submit(self, work: Callable[[], T], *, patient: bool = False) -> Future[T]:
        """Let a function run as soon as it is its turn."""
        future: Future[T] = Future()
        queue, run = (self._patient, partial(self._interruptible, work)) if patient else (self._urgent, work)
        queue.append((future, partial(copy_context().run, run)))
        self._thread.submit(self._next)
        return future

    def close(self) -> None:
        """Cancel what waits, and accept no more."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        for queue in (self._urgent, self._patient):
            while queue:
                queue.popleft()[0].cancel()

    def _next(self) -> None:
        _ = self._run_first(self._urgent) or self._run_first(self._patient)

    def _make_way(self) -> None:
        while self._run_first(self._urgent):
            pass

    def _run_first(self, queue: deque[Turn]) -> bool:
        """Run what has waited longest; return whether there was something."""
        try:
            future, run = queue.popleft()
        except IndexError:  # it has run already, on top of something patient
            return False
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(run())
            except SystemExit as error:  # of the user's model; it would end the studio
                future.set_exception(RuntimeError(f"sys.exit({error.code!r}) was called"))
            except BaseException as error:
                future.set_exception(error)
        return True

    def _interruptible(self, work: Callable[[], T]) -> T:
        with pausing(self._make_way):
            return work()


class StudioService:
    """Explains series with the models of a workspace; of Python files, it runs the user's own ``model`` only."""

    def __init__(
        self, workspace: Workspace, limits: Limits, device: str = "auto", model: OwnModel | None = None
    ) -> None:
        self.workspace, self.limits, self.device, self.model = workspace, limits, device, model
        self._thread, self._renderer = Turns("service"), Turns("renderer")
        self._queued = 0
        self._datasets: LruCache[Dataset] = LruCache(limits.cached_models)
        self._classifiers: LruCache[Classifier] = LruCache(limits.cached_models)
        self._explainers: LruCache[BaseExplainer[Any]] = LruCache(limits.cached_models)
        self._recordings: LruCache[AllRecordings] = LruCache(limits.cached_models)
        self._predictions: LruCache[Predictions] = LruCache(limits.cached_models)
        self.answers = Answers(self)

    def warm_up(self) -> None:
        """Start to import the heavy packages in the background."""
        self._thread.submit(_import_heavy)

    def close(self) -> None:
        """Cancel queued requests and accept no more."""
        for thread in (self._thread, self._renderer):
            thread.close()

    async def run(self, work: Callable[[], T], *, patient: bool = False) -> T:
        """Run a function in the service's thread; raise a 4xx error if the queue is full or the time is up.

        A patient one waits for all others, also when it has begun.
        """
        return await self._run(self._thread, work, patient=patient)

    async def render(self, work: Callable[[], T]) -> T:
        """Run a function that needs no model in the renderer's thread, under the same limits."""
        return await self._run(self._renderer, work)

    async def _run(self, thread: Turns, work: Callable[[], T], *, patient: bool = False) -> T:
        if self._queued >= self.limits.queued_requests:
            raise ApiError(429, "busy", f"the queue is full ({self._queued} requests). Try again in a moment.")
        self._queued += 1
        turn = thread.submit(work, patient=patient)
        future = asyncio.wrap_future(turn)
        future.add_done_callback(self._dequeue)
        try:
            # Shielded: a running function cannot be interrupted, and the models it loads stay in the cache.
            return await asyncio.wait_for(asyncio.shield(future), self.limits.seconds)
        except (TimeoutError, asyncio.TimeoutError):
            turn.cancel()  # if it has not begun
            message = f"the request took longer than {self.limits.seconds:g} s. Use fewer series, or a faster method."
            raise ApiError(408, "too_slow", message) from None

    def _dequeue(self, future: asyncio.Future[Any]) -> None:
        self._queued -= 1
        if not future.cancelled():
            future.exception()  # retrieved, so that asyncio does not warn about it after a timeout

    def put(self, name: str, dataset: Dataset) -> None:
        """Store a data set that was just opened in the cache."""
        self._datasets.put(name, dataset)

    def dataset(self, name: str) -> Dataset:
        """Return a data set of the workspace."""
        record = self.workspace.record(DatasetRecord, name)
        return self._datasets.get(name, lambda: load(self.workspace, record))

    def classifier(self, name: str) -> Classifier:
        """Return a classifier of the workspace."""
        path = self.workspace.path("classifiers", name)
        # Of a model of the user's own, a worker has made sure that it is a classifier.
        return self._classifiers.get(name, lambda: cast("Classifier", load_model(path, self.device, self.model)))

    def explainer(self, name: str) -> BaseExplainer[Any]:
        """Return an explainer of the workspace."""
        from sparcets.methods.folder import load as load_explainer

        path, record = self.workspace.path("explainers", name), self.workspace.record(ExplainerRecord, name)
        return self._explainers.get(name, lambda: load_explainer(path, classifier=self.classifier(record.classifier)))

    def recordings(self, name: str) -> AllRecordings:
        """Return all recordings of a data set: of its test and training parts, and those added later."""
        added = new_files(self.workspace, name)

        def read() -> AllRecordings:
            dataset = self.dataset(name)
            return AllRecordings(dataset, [load_new(file, dataset) for file in added])

        return self._recordings.get(f"{name}: {len(added)}", read)

    def predictions(self, name: str) -> Predictions:
        """Return a classifier's predictions for all recordings of its data set."""
        recordings = self.recordings(self.workspace.record(ClassifierRecord, name).dataset)
        return self._predictions.get(
            f"{name}: {len(recordings)}", lambda: Predictions(self.classifier(name), recordings)
        )


def _import_heavy() -> None:
    import pandas  # noqa: F401 - for tables of changes
    import torch

    # Single queries through small networks: several threads would cost more than they save.
    torch.set_num_threads(1)
