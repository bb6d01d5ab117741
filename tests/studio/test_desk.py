"""The desk: one question at a time, none for too long, not too many waiting, and only so much in memory."""

import asyncio
import sys
import threading
import time
from pathlib import Path

import pytest

from sparcets.errors import SparcetsError
from sparcets.studio import results
from sparcets.studio.desk import Desk, _Shelf
from sparcets.studio.errors import ApiError
from sparcets.studio.limits import Limits
from sparcets.studio.models import Question, Rules
from sparcets.studio.workspace import Workspace

from .conftest import Made


def desk(tmp_path: Path, **limits: float) -> Desk:
    return Desk(Workspace(tmp_path), Limits(**limits), "cpu")  # type: ignore[arg-type]


def test_what_takes_too_long_is_told_so(tmp_path: Path) -> None:
    here, released = desk(tmp_path, seconds=0.05), threading.Event()

    async def ask() -> None:
        with pytest.raises(ApiError, match=r"longer than 0\.05 s") as told:
            await here.run(lambda: released.wait(10))
        assert told.value.status_code == 408 and told.value.code == "too_slow"
        released.set()

    asyncio.run(ask())
    here.close()


def test_when_too_many_wait_the_next_is_sent_away(tmp_path: Path) -> None:
    here, released = desk(tmp_path, waiting=2), threading.Event()

    async def ask() -> None:
        waiting = [asyncio.create_task(here.run(lambda: released.wait(10))) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(ApiError, match="2 requests are waiting") as told:
            await here.run(lambda: True)
        assert told.value.status_code == 429
        released.set()
        assert await asyncio.gather(*waiting) == [True, True]
        assert await here.run(lambda: True)

    asyncio.run(ask())
    here.close()


def test_what_nobody_waits_for_any_more_is_not_begun(tmp_path: Path) -> None:
    here, released, begun = desk(tmp_path, seconds=0.1), threading.Event(), []

    async def ask() -> None:
        first = asyncio.create_task(here.run(lambda: released.wait(10)))
        second = asyncio.create_task(here.run(lambda: begun.append(1)))
        done = await asyncio.gather(first, second, return_exceptions=True)
        assert all(isinstance(error, ApiError) for error in done)
        released.set()

    asyncio.run(ask())
    here._thread.shutdown(wait=True)
    assert begun == []


def test_the_shelf_keeps_what_was_used_last() -> None:
    shelf: _Shelf[str] = _Shelf(2)
    made = []

    def make(name: str) -> str:
        made.append(name)
        return name.upper()

    for name in "abacab":
        assert shelf.get(name, lambda name=name: make(name)) == name.upper()  # type: ignore[misc]
    assert made == ["a", "b", "c", "b"]


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[Question]:
    """Return the questions that were really worked on in this process."""
    asked: list[Question] = []
    really = Desk.explain

    def counting(self: Desk, question: Question) -> object:
        asked.append(question)
        return really(self, question)

    monkeypatch.setattr(Desk, "explain", counting)
    return asked


def test_what_was_asked_before_is_answered_from_memory(made: Made, counted: list[Question]) -> None:
    here = Desk(Workspace(made.folder), Limits(), "cpu")
    first = here.answer(Question(explainer="nearest", rows=[0]))
    assert here.answer(Question(explainer="nearest", rows=[0])) is first
    for other in ({"sparsity": 0.5}, {"rows": [1]}, {"constraints": Rules(immutable=["left"])}, {"explainer": "ics"}):
        assert here.answer(Question(**{"explainer": "nearest", "rows": [0], **other})) is not first
    assert len(counted) == 5
    here.workspace.remove("explainers", "nearest")
    with pytest.raises(ApiError, match="no explainer 'nearest'"):
        here.answer(Question(explainer="nearest", rows=[0]))
    here.close()


def test_what_was_thought_of_is_there_when_it_is_asked(made: Made, counted: list[Question]) -> None:
    here = Desk(Workspace(made.folder), Limits(), "cpu")
    coming = [Question(explainer="nearest", rows=[0], sparsity=s) for s in (0.5, 0.3)]
    wrong = Question(explainer="nearest", rows=[0], target="nobody")
    here.think_ahead([coming[0], wrong, coming[1]])
    for _ in range(3000):
        if coming[1].model_dump_json() in here._answers:
            break
        time.sleep(0.01)
    thought = [here.answer(question) for question in coming]
    assert counted == []
    for question, answers in zip(coming, thought, strict=True):
        fresh = results.answers(here.explain(question), question.rows)
        assert answers.answers == fresh.answers and answers.method == fresh.method
    with pytest.raises(SparcetsError, match="nobody"):
        here.answer(wrong)
    here.close()


def test_without_the_process_that_thinks_ahead_questions_are_answered_all_the_same(
    made: Made, counted: list[Question]
) -> None:
    here = Desk(Workspace(made.folder), Limits(), "cpu")
    here._ahead._command = [sys.executable, "-c", "raise SystemExit(1)"]
    question = Question(explainer="nearest", rows=[0])
    for _ in range(3):
        here.think_ahead([question])
        assert here.answer(question).answers[0].row == 0
    assert len(counted) == 1
    here.close()
