"""The service: one request at a time, a time limit, and a limited queue."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from sparcets.studio.models import Limits
from sparcets.studio.service import StudioService
from sparcets.studio.workspace import Workspace
from sparcets.web.errors import ApiError


def make_service(tmp_path: Path, **limits: Any) -> StudioService:
    return StudioService(Workspace(tmp_path), Limits(**limits), "cpu")


def test_the_time_limit(tmp_path: Path) -> None:
    service, released = make_service(tmp_path, seconds=0.05), threading.Event()

    async def run() -> None:
        with pytest.raises(ApiError, match=r"longer than 0\.05 s") as raised:
            await service.run(lambda: released.wait(120))
        assert raised.value.status_code == 408 and raised.value.code == "too_slow"
        released.set()

    asyncio.run(run())
    service.close()


def test_the_queue_is_limited(tmp_path: Path) -> None:
    service, released = make_service(tmp_path, queued_requests=2), threading.Event()

    async def run() -> None:
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


def test_a_request_that_timed_out_in_the_queue_is_not_run(tmp_path: Path) -> None:
    service, released, calls = make_service(tmp_path, seconds=0.2), threading.Event(), []

    async def run() -> None:
        first = asyncio.create_task(service.run(lambda: released.wait(120)))
        second = asyncio.create_task(service.run(lambda: calls.append("second")))
        errors = await asyncio.gather(first, second, return_exceptions=True)
        assert all(isinstance(error, ApiError) for error in errors)
        released.set()
        await service.run(lambda: calls.append("third"))

    asyncio.run(run())
    assert calls == ["third"]
    service.close()


def test_a_studio_that_is_closed_while_it_imports_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    service, closed = make_service(tmp_path), threading.Event()
    monkeypatch.setattr("sparcets.studio.service._import_heavy", lambda: closed.wait(120))
    service.warm_up()
    service.close()
    closed.set()
    service._thread._thread.shutdown(wait=True)
    assert caplog.text == "", "an error of a callback is logged"
