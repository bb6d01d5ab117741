"""Answers of fitted explainers: each query is explained once, and kept for the page, for exports and for reports."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import numpy as np

from sparcets.core.errors import ConstraintError
from sparcets.core.evidence import find_segments
from sparcets.core.registry import unknown_name
from sparcets.core.series import BoolArray, FloatArray
from sparcets.studio import models, results
from sparcets.studio.recordings import AllRecordings, Chosen
from sparcets.web.errors import ApiError

if TYPE_CHECKING:
    from sparcets.core.constraints import Constraints
    from sparcets.core.explanation import Explanation
    from sparcets.studio.service import StudioService


T = TypeVar("T")


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


def bump(n_steps: int, at: int, width: int) -> FloatArray:
    """Return a smooth bump of height 1 over ``width`` steps on both sides of one step; 0 elsewhere.

    >>> bump(7, 3, 1).round(2).tolist()
    [0.0, 0.0, 0.5, 1.0, 0.5, 0.0, 0.0]
    """
    away = np.arange(n_steps) - at
    return np.where(np.abs(away) <= width, 0.5 * (1 + np.cos(np.pi * away / (width + 1))), 0.0)


def draw(
    series: FloatArray, strokes: Sequence[models.Stroke], feature_names: Sequence[str], mutable: BoolArray, length: int
) -> tuple[FloatArray, dict[str, list[tuple[int, int]]]]:
    """Return a series (time, features) with strokes added, and the windows of each feature that they change.

    Nothing is drawn on the padding, that is, after ``length`` steps.

    >>> pulled = models.Stroke(feature="b", at=2, width=1, by=4.0)
    >>> made, windows = draw(np.zeros((5, 2)), [pulled], ["a", "b"], np.array([True, True]), 5)
    >>> made[:, 1].tolist(), windows
    ([0.0, 2.0, 4.0, 2.0, 0.0], {'b': [(1, 4)]})
    """
    made, names = series.astype(np.float64), list(feature_names)
    touched = np.zeros(series.shape, dtype=bool)
    for stroke in strokes:
        if stroke.feature not in names:
            raise unknown_name("feature", stroke.feature, names)
        feature = names.index(stroke.feature)
        if not mutable[feature]:
            raise ConstraintError(f"{stroke.feature} may not change, so that nothing can be drawn there.")
        shape = bump(length, stroke.at, stroke.width)
        made[:length, feature] += stroke.by * shape  # NaN, a missing entry, stays NaN
        touched[:length, feature] |= shape > 0
    windows: dict[str, list[tuple[int, int]]] = {}
    found = find_segments(touched[None])
    for feature, start, end in zip(found.feature.tolist(), found.start.tolist(), found.end.tolist(), strict=True):
        windows.setdefault(names[feature], []).append((start, end))
    return np.where(touched, made, series).astype(series.dtype), windows


Windows: TypeAlias = Mapping[str, Sequence[tuple[int, int]]]
CURVES = 500  # curves that are kept


class Answers:
    """Explains recordings of a workspace, and keeps the most recent answers in memory."""

    def __init__(self, service: StudioService) -> None:
        self.service = service
        self._kept: LruCache[Explanation] = LruCache(
            service.limits.answer_bytes, lambda kept: kept.query.nbytes + kept.counterfactual.nbytes
        )
        self._curves: LruCache[models.CurveResponse] = LruCache(CURVES)

    def respond(self, request: models.ExplainRequest) -> models.ExplainResponse:
        """Return the response to a request."""
        check_size(request, self.service.limits.rows, self.service.limits)
        return results.to_response(self.explanation(request), request.rows)

    def explanation(self, request: models.ExplainRequest) -> Explanation:
        """Return the answers to a request; only queries whose answers are not in memory are explained."""
        kept = self._find(request)
        left = [row for row, answers in kept.items() if answers is None]
        if left:
            asked = request.model_copy(update={"rows": left})
            check_size(asked, self.service.limits.rows, self.service.limits)
            found = self.explain(asked)
            for k, row in enumerate(left):
                kept[row] = answers = found[found.query_index == k]
                self._kept.put(_key(request, row), answers)
                if request.target is None:  # the next request names the class that was the runner-up
                    named = request.model_copy(update={"target": str(answers.target_names[0])})
                    self._kept.put(_key(named, row), answers)
        return _joined([kept[row] for row in request.rows])

    def known(self, request: models.ExplainRequest) -> Explanation | None:
        """Return the answers to a request if all of them are in memory."""
        kept = self._find(request)
        return None if None in kept.values() else _joined([kept[row] for row in request.rows])

    def _find(self, request: models.ExplainRequest) -> dict[int, Explanation | None]:
        """Return the answers that are in memory, by row."""
        check_size(request, self.service.limits.exported_rows, self.service.limits)
        self.service.workspace.path("explainers", request.explainer)  # raises if the explainer was removed meanwhile
        return {row: self._kept.find(_key(request, row)) for row in request.rows}

    def explain(self, request: models.ExplainRequest) -> Explanation:
        """Compute the answers to a request."""
        chosen = self._recordings(request).choose(request.rows)
        return self._drawn(request, chosen) if request.strokes else self._ask(request, chosen)

    def _ask(self, request: models.ExplainRequest, chosen: Chosen, drawn: Windows | None = None) -> Explanation:
        explainer = self.service.explainer(request.explainer)
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

        explainer = self.service.explainer(request.explainer)
        info = explainer._fitted()
        length = int(self._recordings(request).steps[request.rows[0]])
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
            answer, explainer = self.explanation(whole), self.service.explainer(request.explainer)
            rules = to_constraints(request.constraints, explainer.feature_names)
            return results.to_curve(add_curve(explainer, answer, rules))

        return self._curves.get(_key(whole, whole.rows[0]), measured)

    def _recordings(self, request: models.ExplainRequest) -> AllRecordings:
        return self.service.recordings(self.service.workspace.record(models.ExplainerRecord, request.explainer).dataset)


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
    single = [windows for windows in (rules.frozen_features, drawn or {}) if windows]
    if single:
        of_all = not isinstance(rules.frozen, dict)
        frozen: Any = dict.fromkeys(feature_names, rules.frozen) if of_all and rules.frozen else dict(rules.frozen)
        for name, more in (pair for windows in single for pair in windows.items()):
            frozen[name] = [*frozen.get(name, []), *more]
        given["frozen"] = frozen
    return Constraints(**given)


def check_size(request: models.ExplainRequest, rows: int, limits: models.Limits) -> None:
    """Raise an error for more than ``rows`` queries, or too many counterfactuals per query."""
    if len(request.rows) > rows:
        raise ApiError(413, "too_many_rows", f"{len(request.rows)} queries in one request; at most {rows}. Split them.")
    if request.answers > limits.answers:
        raise ApiError(413, "too_many_answers", f"{request.answers} answers to one query; at most {limits.answers}.")
