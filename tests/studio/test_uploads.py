"""Uploads: in a process of their own, within limits, without a trace if they fail, and without delay for others."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from starlette.requests import ClientDisconnect

from sparcets.io.files import TEMPORARY
from sparcets.io.folders import MARKER
from sparcets.studio import processes
from sparcets.studio.items import ARRAYS, safe_name
from sparcets.studio.models import Limits
from sparcets.studio.uploads import Uploads
from sparcets.studio.workspace import Workspace
from sparcets.web.errors import ApiError
from sparcets.web.requests import MIB
from tests.http_api import error

from .conftest import API, Sample, npz_bytes
from .test_reader import CSV, padded_bomb

Start = Callable[..., TestClient]
UPLOAD = f"{API}/datasets/upload"
SLEEP = [sys.executable, "-S", "-c", "import time; time.sleep(60)"]


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "datasets").iterdir())


def test_safe_names() -> None:
    assert safe_name("Gait Über 3.CSV") == "Gait_ber_3.csv"
    assert len(safe_name("x" * 250 + ".npz")) == 64


def test_a_table_is_uploaded(client: TestClient, sample: Sample) -> None:
    response = client.post(UPLOAD, params={"filename": "my gait.csv"}, content=CSV.encode())
    assert response.status_code == 201, response.text
    record = response.json()
    assert record["source"] == "my_gait.csv" and record["feature_names"] == ["a", "b"] and record["n_steps"] == 4
    folder = sample.folder / "datasets" / record["id"]
    assert sorted(path.name for path in folder.iterdir()) == ["about.json", ARRAYS, "my_gait.csv"]
    assert client.get(f"{API}/datasets/{record['id']}/series/0").json()["values"]
    assert client.get(f"{API}/datasets/{record['id']}").json() == record


@pytest.mark.parametrize(
    ("limits", "content", "status", "code", "words"),
    [
        ({}, b"series,time,label,x\na,0,sick,one\n", 422, "file_format", "a.csv, line 2, column 'x'"),
        ({"reader_bytes": 100 * MIB}, padded_bomb(5000).encode(), 413, "too_large", "100 MiB of memory"),
        ({"reader_seconds": 0.01}, CSV.encode(), 408, "too_slow", "a.csv was not read within 0.01 s"),
        ({"uploads": 0}, CSV.encode(), 429, "busy", "uploaded already"),
    ],
)
def test_what_is_refused_leaves_nothing(
    start: Start, sample: Sample, limits: dict[str, Any], content: bytes, status: int, code: str, words: str
) -> None:
    problem = error(start(limits=Limits(**limits)).post(UPLOAD, params={"filename": "a.csv"}, content=content), status)
    assert problem["code"] == code and words in problem["message"] and str(sample.folder) not in problem["message"]
    assert left(sample.folder) == ["own"]


def test_a_process_that_dies_is_reported(start: Start, sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "command", lambda *_: [sys.executable, "-S", "-c", "import os; os.abort()"])
    problem = error(start().post(UPLOAD, params={"filename": "a.csv"}, content=CSV.encode()), 422)
    assert problem["code"] == "unreadable" and "exit code" in problem["message"]
    assert left(sample.folder) == ["own"]


def test_answers_do_not_wait_for_an_upload(start: Start, sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    client = start(limits=Limits(reader_seconds=3.0))
    request = {"explainer": sample.nearest, "rows": [0]}
    client.post(f"{API}/explanations", json=request)  # loads what it needs
    monkeypatch.setattr(processes, "command", lambda *_: SLEEP)
    with ThreadPoolExecutor(1) as thread:
        upload = thread.submit(client.post, UPLOAD, params={"filename": "a.csv"}, content=CSV.encode())
        while len(left(sample.folder)) == 1:
            time.sleep(0.01)
        for row in (1, 2):
            assert client.post(f"{API}/explanations", json={**request, "rows": [row]}).status_code == 200
        assert not upload.done()
        error(upload.result(), 408)


class Client:
    """The parts of a request that an upload needs; it breaks off after the body, or within it."""

    def __init__(self, *, within: bool) -> None:
        self.within = within

    async def stream(self) -> AsyncIterator[bytes]:
        yield CSV.encode()
        if self.within:
            raise ClientDisconnect

    async def is_disconnected(self) -> bool:
        return True


@pytest.mark.parametrize("within", [True, False])
def test_a_client_that_breaks_off_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, within: bool) -> None:
    started: list[Any] = []
    start = processes.start
    monkeypatch.setattr(processes, "start", lambda *given: started.append(start(*given)) or started[-1])
    monkeypatch.setattr(processes, "command", lambda *_: SLEEP)
    uploads = Uploads(Workspace(tmp_path), Limits())
    with pytest.raises(ApiError, match="ended the request"):
        asyncio.run(uploads.dataset("a.csv", Client(within=within)))  # type: ignore[arg-type]
    uploads.close()
    assert left(tmp_path) == [] and all(process.poll() is not None for process in started)
    assert len(started) == (0 if within else 1)


def test_what_a_killed_studio_left_is_removed_at_the_start(start: Start, sample: Sample) -> None:
    for name, marker in (
        (f".gait-1{TEMPORARY}12345678", MARKER),
        (".git", "HEAD"),
        (f".mine{TEMPORARY}87654321", "mine"),
    ):
        (hidden := sample.folder / "datasets" / name).mkdir()
        (hidden / "gait.csv").write_text("half of")
        (hidden / marker).touch()
    start()
    assert left(sample.folder) == [".git", f".mine{TEMPORARY}87654321", "own"]


def test_recordings_may_be_as_large_as_data_sets(start: Start, sample: Sample) -> None:
    client = start(limits=Limits(body_bytes=100))
    content = npz_bytes(20)
    response = client.post(f"{API}/datasets/own/recordings?filename=new.npz", content=content)
    assert response.status_code == 201 and response.json() == {"n": 20, "first_row": 90}
    assert left(sample.folder) == ["own"]
