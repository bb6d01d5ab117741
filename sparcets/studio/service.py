"""Loads models into memory and answers all requests that need them, one after the other in a single thread.

A single thread, because several searches at the same time would only slow each other down on few cores. What the page
waits for interrupts searches that can wait. Files of finished answers are made in a second thread, so that they do not
wait behind a search. Training jobs run in processes of their own.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import numpy as np

from sparcets.core.progress import urgent_work
from sparcets.studio import models, results
from sparcets.studio.models import ClassifierRecord, DatasetRecord, ExplainerRecord, Limits
from sparcets.studio.recordings import AllRecordings, Chosen, Predictions, Windows, draw
from sparcets.studio.workspace import Workspace, load, load_model, load_new, new_files, open_by_name
from sparcets.web.errors import ApiError

if TYPE_CHECKING:
    from sparcets.core.constraints import Constraints
    from sparcets.core.explanation import Explanation
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
        with urgent_work(self._make_way):
            return work()


class LruCache(Generic[T]):
    """Holds items up to a total size and drops the least recently used ones; a single item may exceed it.

    >>> cache: LruCache[int] = LruCache(1)
    >>> cache.get("a", lambda: 1), cache.get("a", lambda: 2)
    (1, 1)
    """

    def __init__(self, size: int, measure: Callable[[T], int] = lambda item: 1) -> None:
        self._size, self._measure, self._total = size, measure, 0
        self._items: OrderedDict[str, T] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, key: str, item: T) -> None:
        """Store an item as the most recently used one."""
        with self._lock:
            if key in self._items:
                self._total -= self._measure(self._items.pop(key))
            self._items[key] = item
            self._total += self._measure(item)
            while self._total > self._size and len(self._items) > 1:
                self._total -= self._measure(self._items.popitem(last=False)[1])

    def find(self, key: str) -> T | None:
        """Return an item, which becomes the most recently used one; None if it is not stored."""
        with self._lock:
            if key in self._items:
                self._items.move_to_end(key)
            return self._items.get(key)

    def get(self, key: str, create: Callable[[], T]) -> T:
        """Return an item; if it is not stored, create and store it."""
        found = self.find(key)
        if found is None:
            found = create()  # not under the lock: it may take long
            self.put(key, found)
        return found


CURVES = 500  # curves that are kept


class StudioService:
    """Explains series with the models of a workspace, and keeps models and the most recent answers in memory.

    Of Python files, it runs the user's own ``model`` only.
    """

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
        self._answers: LruCache[Explanation] = LruCache(
            limits.answer_bytes, lambda kept: kept.query.nbytes + kept.counterfactual.nbytes
        )
        self._curves: LruCache[models.CurveResponse] = LruCache(CURVES)

    def warm_up(self) -> None:
        """Start to import the heavy packages in the background."""

        def load() -> None:
            import pandas  # noqa: F401 - for tables of changes
            import torch

            # Single queries through small networks: several threads would cost more than they save.
            torch.set_num_threads(1)

        self._thread.submit(load)

    def close(self) -> None:
        """Cancel queued requests and accept no more."""
        for thread in (self._thread, self._renderer):
            thread.close()

    async def run(self, work: Callable[[], T], *, patient: bool = False, renders: bool = False) -> T:
        """Run a function in the service's thread; raise a 4xx error if the queue is full or the time is up.

        A patient one waits for all others, also when it has begun. One that ``renders`` needs no model, and runs in a
        thread of its own.
        """
        if self._queued >= self.limits.queued_requests:
            raise ApiError(429, "busy", f"the queue is full ({self._queued} requests). Try again in a moment.")
        self._queued += 1
        turn = (self._renderer if renders else self._thread).submit(work, patient=patient)
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

    def open(self, name: str, seed: int) -> DatasetRecord:
        """Open a data set by name."""
        record, dataset = open_by_name(self.workspace, name, seed)
        self._datasets.put(record.id, dataset)
        return record

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

    def respond(self, request: models.ExplainRequest) -> models.ExplainResponse:
        """Return the response to a request."""
        check_size(request, self.limits.rows, self.limits)
        return results.to_response(self.explanation(request), request.rows)

    def explanation(self, request: models.ExplainRequest) -> Explanation:
        """Return the answers to a request; only queries whose answers are not in memory are explained."""
        kept = self._find(request)
        left = [row for row, answers in kept.items() if answers is None]
        if left:
            asked = request.model_copy(update={"rows": left})
            check_size(asked, self.limits.rows, self.limits)
            recordings = self.recordings(self.workspace.record(ExplainerRecord, request.explainer).dataset)
            chosen = recordings.choose(left)
            found = self._drawn(asked, chosen) if request.strokes else self._ask(asked, chosen)
            for k, row in enumerate(left):
                kept[row] = answers = found[found.query_index == k]
                self._answers.put(_key(request, row), answers)
                if request.target is None:  # the next request names the class that was the runner-up
                    named = request.model_copy(update={"target": str(answers.target_names[0])})
                    self._answers.put(_key(named, row), answers)
        return _joined([kept[row] for row in request.rows])

    def known(self, request: models.ExplainRequest) -> Explanation | None:
        """Return the answers to a request if all of them are in memory."""
        kept = self._find(request)
        return None if None in kept.values() else _joined([kept[row] for row in request.rows])

    def _find(self, request: models.ExplainRequest) -> dict[int, Explanation | None]:
        """Return the answers that are in memory, by row."""
        check_size(request, self.limits.exported_rows, self.limits)
        self.workspace.path("explainers", request.explainer)  # raises if the explainer was removed meanwhile
        return {row: self._answers.find(_key(request, row)) for row in request.rows}

    def _ask(self, request: models.ExplainRequest, chosen: Chosen, drawn: Windows | None = None) -> Explanation:
        explainer = self.explainer(request.explainer)
        return explainer.explain(
            **chosen._asdict(),
            target=request.target,
            constraints=to_constraints(request.constraints, explainer.feature_names, drawn),
            sparsity=request.sparsity,
            n=request.answers,
            progress=False,
        )

    def _drawn(self, request: models.ExplainRequest, chosen: Chosen) -> Explanation:
        """Answer with what was drawn by hand, or with that and the rest that was found."""
        from sparcets.methods.evidence import review

        explainer = self.explainer(request.explainer)
        info = explainer._fitted()
        length = len(chosen.X[0]) if chosen.lengths is None else int(chosen.lengths[0])
        made, windows = draw(chosen.X[0], request.strokes, info.feature_names, info.mutable, length)
        if not request.find_rest:
            answer = review(explainer, chosen.X, made[None], request.target, lengths=chosen.lengths)
            return replace(answer, ids=chosen.ids, subjects=chosen.subjects)
        found = self._ask(request, chosen._replace(X=made[None]), windows)
        several = chosen.repeat(len(found))
        answer = review(
            explainer,
            several.X,
            found.counterfactual,
            found.target,
            lengths=several.lengths,
            constraints=to_constraints(request.constraints, explainer.feature_names),  # what was drawn is a change, too
            status=found.status,
            reason=found.reason,
        )
        facts = {name: getattr(found, name) for name in ("constraints", "query_index", "ids", "subjects")}
        return replace(answer, **facts)

    def curve(self, request: models.ExplainRequest) -> models.CurveResponse:
        """Return how belief falls as less may change, for the recording of a request; its cap does not matter."""
        from sparcets.methods.evidence import add_curve

        whole = request.model_copy(update={"sparsity": None, "answers": 1, "strokes": [], "rows": request.rows[:1]})

        def measured() -> models.CurveResponse:
            answer, explainer = self.explanation(whole), self.explainer(request.explainer)
            rules = to_constraints(request.constraints, explainer.feature_names)
            return results.to_curve(add_curve(explainer, answer, rules))

        return self._curves.get(_key(whole, whole.rows[0]), measured)


def _key(request: models.ExplainRequest, row: int) -> str:
    asked = request.model_copy(update={"rows": [row]})
    return asked.model_dump_json(include=set(models.ExplainRequest.model_fields))


def _joined(kept: Sequence[Explanation | None]) -> Explanation:
    """Return the answers to several queries, numbered in this order."""
    from sparcets.core.explanation import join

    parts = [answers for answers in kept if answers is not None]
    return join([replace(part, query_index=np.full(len(part), k)) for k, part in enumerate(parts)])


def to_constraints(
    rules: models.ConstraintsRequest, feature_names: Sequence[str], drawn: Windows | None = None
) -> Constraints:
    """Return the constraints of a request as ``sp.Constraints``; windows that were ``drawn`` by hand stay as they are.

    >>> rules = models.ConstraintsRequest(frozen=[(0, 2)], frozen_features={"b": [(4, 5)]})
    >>> to_constraints(rules, ["a", "b"]).frozen
    {'a': [(0, 2)], 'b': [(0, 2), (4, 5)]}
    """
    from sparcets.core.constraints import Constraints

    given = rules.model_dump(exclude={"frozen_features"})
    if single := [*rules.frozen_features.items(), *(drawn or {}).items()]:
        of_all = not isinstance(rules.frozen, dict)
        frozen: Any = dict.fromkeys(feature_names, rules.frozen) if of_all and rules.frozen else dict(rules.frozen)
        for name, more in single:
            frozen[name] = [*frozen.get(name, []), *more]
        given["frozen"] = frozen
    return Constraints(**given)


def check_size(request: models.ExplainRequest, rows: int, limits: models.Limits) -> None:
    """Raise an error for more than ``rows`` queries, or too many counterfactuals per query."""
    if len(request.rows) > rows:
        raise ApiError(413, "too_many_rows", f"{len(request.rows)} queries in one request; at most {rows}. Split them.")
    if request.answers > limits.answers:
        raise ApiError(413, "too_many_answers", f"{request.answers} answers to one query; at most {limits.answers}.")
