"""Answers that are kept, in which cache, and how each question is recognised."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from sparcets.studio.answers import Answers, LruCache
from sparcets.studio.models import ExplainRequest, ExportRequest, Limits
from sparcets.studio.service import StudioService
from sparcets.studio.workspace import Workspace
from sparcets.web.errors import ApiError

from .conftest import Sample


class CountingAnswers(Answers):
    """Records the rows that were computed and not found in memory."""

    computed: list[int]

    def explain(self, request: ExplainRequest) -> Any:
        self.computed += request.rows
        return super().explain(request)


@pytest.fixture
def answers(sample: Sample) -> Iterator[CountingAnswers]:
    service = StudioService(Workspace(sample.folder), Limits(), "cpu")
    counting = CountingAnswers(service)
    counting.computed = []
    yield counting
    service.close()


def ask(**options: Any) -> ExplainRequest:
    return ExplainRequest(**{"explainer": "nearest", "rows": [0], **options})


def test_an_answer_is_computed_once(answers: CountingAnswers) -> None:
    first = answers.respond(ask())
    named = ask(target=first.answers[0].target)  # what was the runner-up is the same question
    assert answers.respond(ask()) == first == answers.respond(named) and answers.computed == [0]
    other = ({"calm", "brisk", "wild"} - {first.answers[0].target, first.answers[0].predicted}).pop()
    rules = {"constraints": {"immutable": ["left"]}}
    for change in ({"sparsity": 0.5}, {"rows": [1]}, rules, {"explainer": "ics"}, {"target": other}):
        answers.respond(ask(**change))
    assert answers.computed == [0, 0, 1, 0, 0, 0]


def test_a_file_is_made_of_the_answers_on_the_page(answers: CountingAnswers) -> None:
    answers.respond(ask(rows=[3]))
    request = ExportRequest(explainer="nearest", rows=[3, 5], shown=1)
    assert answers.known(request) is None
    e = answers.explanation(request)
    assert answers.computed == [3, 5]  # the first was known
    known = answers.known(request)
    assert known is not None and np.array_equal(known.counterfactual, e.counterfactual)
    assert e.query_index.tolist() == [0, 1] and answers.computed == [3, 5]


def test_several_answers_to_several_queries_stay_together(answers: CountingAnswers) -> None:
    whole = answers.explanation(ask(rows=[4, 2], answers=2))
    again = answers.explanation(ask(rows=[2, 4], answers=2))
    assert whole.query_index.tolist() == [0, 0, 1, 1] and answers.computed == [4, 2]
    assert np.array_equal(whole.counterfactual[[2, 3, 0, 1]], again.counterfactual)


def test_answers_of_a_removed_explainer_are_not_given(answers: CountingAnswers) -> None:
    answers.respond(ask())
    answers.service.workspace.remove("explainers", "nearest")
    for method in (answers.respond, answers.known):
        with pytest.raises(ApiError, match="no explainer 'nearest'"):
            method(ask())


def test_the_number_of_queries_of_a_file_is_limited(sample: Sample) -> None:
    service = StudioService(Workspace(sample.folder), Limits(rows=2, exported_rows=4), "cpu")
    for rows in ([0, 1], [2, 3]):
        service.answers.respond(ask(rows=rows))
    assert len(service.answers.explanation(ask(rows=[0, 1, 2, 3]))) == 4  # all are known
    for rows, most in (([0, 1, 2, 3, 4], 4), ([0, 5, 6, 7], 2)):
        with pytest.raises(ApiError, match=f"at most {most}"):
            service.answers.explanation(ask(rows=rows))
    service.close()


def test_the_size_of_items_counts() -> None:
    cache: LruCache[str] = LruCache(5, len)
    for key, item in (("a", "12"), ("b", "345"), ("a", "1")):
        cache.put(key, item)
    assert cache.find("a") == "1" and cache.find("b") == "345"  # 4 in all: the first "a" does not count any more
    cache.put("c", "67")
    assert cache.find("a") is None and cache.find("b") == "345" and cache.find("c") == "67"
    cache.put("d", "too large")  # is kept alone: it was asked for
    assert [cache.find(key) for key in "bcd"] == [None, None, "too large"]
