"""The desk: one question at a time, none for too long, not too many waiting, and only so much in memory."""

import asyncio
import threading
from pathlib import Path

import pytest

from sparcets.studio.desk import Desk, _Shelf
from sparcets.studio.errors import ApiError
from sparcets.studio.limits import Limits
from sparcets.studio.models import Export, Question, Rules
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


def test_what_was_asked_before_is_answered_from_memory(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    here, asked = Desk(Workspace(made.folder), Limits(), "cpu"), []
    really = Desk._explain

    def counting(self: Desk, question: Question) -> object:
        asked.append(question)
        return really(self, question)

    monkeypatch.setattr(Desk, "_explain", counting)
    first = here.explain(Question(explainer="nearest", rows=[0]))
    assert here.explain(Export(explainer="nearest", rows=[0], shown=0)) is first  # taking it away asks nothing new
    for other in ({"sparsity": 0.5}, {"rows": [1]}, {"constraints": Rules(immutable=["left"])}, {"explainer": "ics"}):
        assert here.explain(Question(**{"explainer": "nearest", "rows": [0], **other})) is not first
    assert len(asked) == 5
    here.workspace.remove("explainers", "nearest")
    with pytest.raises(ApiError, match="no explainer 'nearest'"):
        here.explain(Question(explainer="nearest", rows=[0]))
    here.close()
