"""The service: one request at a time, urgent ones first, within limits; answers that are final, and kept."""

import asyncio
import sys
import threading
from contextvars import ContextVar, copy_context

import numpy as np
import pytest

import sparcets as sp
from sparcets.core.progress import urgent_work, yield_to_urgent_work
from sparcets.studio.models import ExplainRequest, ExportRequest, Limits
from sparcets.studio.service import LruCache, StudioService, Turns
from sparcets.studio.workspace import Workspace
from sparcets.web.errors import ApiError


def make_service(tmp_path, **limits):
    return StudioService(Workspace(tmp_path), Limits(**limits), "cpu")


def test_the_time_limit(tmp_path):
    service, released = make_service(tmp_path, seconds=0.05), threading.Event()

    async def run():
        with pytest.raises(ApiError, match=r"longer than 0\.05 s") as raised:
            await service.run(lambda: released.wait(120))
        assert raised.value.status_code == 408 and raised.value.code == "too_slow"
        released.set()

    asyncio.run(run())
    service.close()


def test_the_queue_is_limited(tmp_path):
    service, released = make_service(tmp_path, queued_requests=2), threading.Event()

    async def run():
        queued = [asyncio.create_task(service.run(lambda: released.wait(120))) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(ApiError) as raised:
            await service.run(lambda: True)
        assert raised.value.status_code == 429 and raised.value.code == "busy"
        released.set()
        assert await asyncio.gather(*queued) == [True, True]
        assert await service.run(lambda: True)

    asyncio.run(run())
    service.close()


def test_a_request_that_timed_out_in_the_queue_is_not_run(tmp_path):
    service, released, calls = make_service(tmp_path, seconds=0.2), threading.Event(), []

    async def run():
        first = asyncio.create_task(service.run(lambda: released.wait(120)))
        second = asyncio.create_task(service.run(lambda: calls.append("second")))
        errors = await asyncio.gather(first, second, return_exceptions=True)
        assert all(isinstance(error, ApiError) for error in errors)
        released.set()
        await service.run(lambda: calls.append("third"))

    asyncio.run(run())
    assert calls == ["third"]
    service.close()


NOTE = ContextVar("note", default="none")


def test_work_that_calls_sys_exit_fails_and_the_next_goes_on():
    turns = Turns("test")
    with pytest.raises(RuntimeError, match=r"sys\.exit\(3\) was called"):
        turns.submit(lambda: sys.exit(3)).result(60)
    assert turns.submit(lambda: "next").result(60) == "next"
    turns.close()


def test_urgent_work_comes_first_and_interrupts():
    turns, order, begun, more = Turns("test"), [], threading.Event(), threading.Event()

    def search():
        order.append("search begins")
        NOTE.set("of the search")
        begun.set()
        more.wait(60)
        yield_to_urgent_work()
        order.append("search ends")
        return "found"

    def ask():
        order.append(f"asked, note {NOTE.get()}")  # what the search has set is not seen
        yield_to_urgent_work()  # does nothing: nothing interrupts what is urgent

    first = turns.submit(search, patient=True)
    begun.wait(60)
    patient = turns.submit(lambda: order.append("patient"), patient=True)
    urgent = [turns.submit(ask), turns.submit(lambda: 1 / 0)]
    more.set()
    assert first.result(60) == "found"
    patient.result(60)
    assert order == ["search begins", "asked, note none", "search ends", "patient"]
    with pytest.raises(ZeroDivisionError):
        urgent[1].result(60)
    begun.clear(), more.clear()
    turns.submit(search, patient=True)
    begun.wait(60)
    left = turns.submit(ask)
    turns.close()
    more.set()
    assert left.cancelled()


@pytest.fixture(scope="module")
def fitted(template):
    ds = sp.load_dataset(template / "datasets" / "own" / "own.npz", seed=0)
    clf = sp.load_classifier(template / "classifiers" / "fcn")
    ex = sp.Explainer(clf, sp.ExplainerConfig.tiny()).fit(ds)
    return ex, ds.X_test[clf.predict(ds.X_test) == 0][:1]


def test_a_search_in_a_search_changes_neither(fitted):
    ex, x = fitted
    alone = ex.explain(x, target=1, sparsity=0.02)
    within = []
    outside = copy_context()

    def interrupt():
        now = len(within) % 9 == 0  # now and then
        within.append(outside.run(ex.explain, x, target=2).counterfactual if now else None)

    with urgent_work(interrupt):
        interrupted = ex.explain(x, target=1, sparsity=0.02)
    other = ex.explain(x, target=2).counterfactual
    found = [made for made in within if made is not None]
    assert len(found) > 2 and all(np.array_equal(made, other) for made in found)
    assert np.array_equal(alone.counterfactual, interrupted.counterfactual)


class CountingService(StudioService):
    """Records the rows that were computed and not found in memory."""

    computed: list[int]

    def _ask(self, request, *arguments):
        self.computed += request.rows
        return super()._ask(request, *arguments)


@pytest.fixture
def answers(sample):
    counting = CountingService(Workspace(sample.folder), Limits(), "cpu")
    counting.computed = []
    yield counting
    counting.close()


def ask(**options):
    return ExplainRequest(**{"explainer": "nearest", "rows": [0], **options})


def test_an_answer_is_computed_once(answers):
    first = answers.respond(ask())
    named = ask(target=first.answers[0].target)  # what was the runner-up is the same question
    assert answers.respond(ask()) == first == answers.respond(named) and answers.computed == [0]
    other = ({"calm", "brisk", "wild"} - {first.answers[0].target, first.answers[0].predicted}).pop()
    rules = {"constraints": {"immutable": ["left"]}}
    for change in ({"sparsity": 0.5}, {"rows": [1]}, rules, {"explainer": "ics"}, {"target": other}):
        answers.respond(ask(**change))
    assert answers.computed == [0, 0, 1, 0, 0, 0]


def test_files_are_made_of_answers_on_the_page_and_of_fits_that_are_there(answers):
    answers.respond(ask(rows=[3]))
    request = ExportRequest(explainer="nearest", rows=[3, 5], shown=1)
    assert answers.known(request) is None
    e = answers.explanation(request)
    assert answers.computed == [3, 5]  # the first was known
    known = answers.known(request)
    assert np.array_equal(known.counterfactual, e.counterfactual)
    assert e.query_index.tolist() == [0, 1] and answers.computed == [3, 5]
    answers.respond(ask())
    answers.workspace.remove("explainers", "nearest")
    for method in (answers.respond, answers.known):
        with pytest.raises(ApiError, match="no explainer 'nearest'"):
            method(ask())


def test_the_number_of_queries_of_a_file_is_limited(sample):
    service = StudioService(Workspace(sample.folder), Limits(rows=2, exported_rows=4), "cpu")
    for rows in ([0, 1], [2, 3]):
        service.respond(ask(rows=rows))
    assert len(service.explanation(ask(rows=[0, 1, 2, 3]))) == 4  # all are known
    for rows, most in (([0, 1, 2, 3, 4], 4), ([0, 5, 6, 7], 2)):
        with pytest.raises(ApiError, match=f"at most {most}"):
            service.explanation(ask(rows=rows))
    service.close()


def test_the_size_of_items_counts():
    cache = LruCache(5, len)
    for key, item in (("a", "12"), ("b", "345"), ("a", "1")):
        cache.put(key, item)
    assert cache.find("a") == "1" and cache.find("b") == "345"  # 4 in all: the first "a" does not count any more
    cache.put("c", "67")
    assert cache.find("a") is None and cache.find("b") == "345" and cache.find("c") == "67"
    cache.put("d", "too large")  # is kept alone: it was asked for
    assert [cache.find(key) for key in "bcd"] == [None, None, "too large"]
