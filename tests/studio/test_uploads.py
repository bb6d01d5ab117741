"""Uploads: read within limits and without pickle, without a trace if they fail, and without delay for others."""

import asyncio
import dataclasses
import json
import subprocess
import sys
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import asdict, fields

import numpy as np
import pytest
from starlette.requests import ClientDisconnect

from sparcets.core.errors import DataError, TooLargeError
from sparcets.studio import processes
from sparcets.studio.models import Limits
from sparcets.studio.uploads import Uploads, carry_out, describe, read_dataset, read_recordings
from sparcets.studio.workspace import Workspace
from sparcets.web.errors import ApiError
from sparcets.web.requests import MIB
from tests.http_api import error

from .conftest import API, npz_bytes

CSV = "series,time,label,a,b\n" + "".join(
    f"{s},{t / 10},{'sick' if s % 2 else 'well'},{s + t}.25,{s * t}\n" for s in range(10) for t in range(3 + s % 2)
)


def padded_bomb(n):
    """Return a small table of n series of one step, and one of n steps."""
    rows = [f"{s},0,{s % 2},1" for s in range(n)] + [f"0,{t},0,1" for t in range(1, n)]
    return "series,time,label,a\n" + "\n".join(rows)


def test_a_zip_bomb_is_refused(tmp_path):
    bomb = tmp_path / "bomb.npz"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", b"\0" * 2_000_000)
    assert bomb.stat().st_size < 10_000
    with pytest.raises(TooLargeError, match=r"bomb\.npz unpacks to more than"):
        read_dataset(bomb, Limits(unpacked_bytes=1_000_000), 0)


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"columns": 4}, "5 columns; at most 4"),
        ({"unpacked_bytes": 300}, "padded to the same length"),
        ({"series_values": 7}, "4 steps of 2 features, that is, 8 values; at most 7"),
        ({"record_bytes": 100}, "2 features and 2 classes"),
    ],
)
def test_tables_above_a_limit_are_refused(tmp_path, limits, words):
    (tmp_path / "a.csv").write_text(CSV)
    read_dataset(tmp_path / "a.csv", Limits(), 0)
    with pytest.raises(TooLargeError, match=words):
        read_dataset(tmp_path / "a.csv", dataclasses.replace(Limits(), **limits), 0)


def test_numbers_to_predict_are_refused_with_what_to_do(tmp_path):
    np.savez(file := tmp_path / "a.npz", X=np.zeros((4, 3, 2)), y=np.array([0.5, 1, 0, 1]), task="regression")
    with pytest.raises(DataError, match=r"^a\.npz holds numbers to predict; .* sparcets fit -o task=regression"):
        read_dataset(file, Limits(), seed=0)


def task(file, **more):
    out, limits = str(file.with_name("out.npz")), asdict(Limits())
    return {"file": str(file), "out": out, "seed": 3, "like": None, "limits": limits, **more}


def test_the_arrays_that_are_written_are_those_that_were_read(tmp_path, monkeypatch):
    monkeypatch.setattr("sparcets.studio.uploads.limit_memory", lambda _: None)  # not of the tests themselves
    (tmp_path / "a.csv").write_text(CSV)
    known = carry_out(task(tmp_path / "a.csv"))
    first = read_dataset(tmp_path / "a.csv", Limits(), 3)
    again = read_dataset(tmp_path / "out.npz", Limits(), 0)  # the seed does not matter any longer
    for field in fields(first):
        one, other = getattr(first, field.name), getattr(again, field.name)
        if isinstance(one, np.ndarray):
            assert one.dtype == other.dtype and np.array_equal(one, other), field.name
        else:
            assert one == other, field.name
    assert known == describe(again) and known["padded"] and known["sampling_rate"] == 10


def test_recordings_without_labels(tmp_path, monkeypatch):
    monkeypatch.setattr("sparcets.studio.uploads.limit_memory", lambda _: None)
    (tmp_path / "a.csv").write_text("series,time,b,a\n1,0,5,1\n1,1,6,2\n")
    like = {"feature_names": ["a", "b"], "n_steps": 3, "padded": True}
    assert carry_out(task(tmp_path / "a.csv", like=like)) == {"n": 1}
    found = read_recordings(tmp_path / "out.npz", Limits(), like)
    assert found.X.tolist() == [[[1, 5], [2, 6], [0, 0]]] and list(found.lengths) == [2]


def run(given):
    """Run the process and return its outcome."""

    async def read():
        command = processes.command("sparcets.studio.uploads", "read")
        async with processes.running(command, given, {}) as (process, output):
            text = await output.read()
            assert await process.wait() == 0
            return text

    return json.loads(asyncio.run(read()))


def test_memory_is_limited(tmp_path):
    (tmp_path / "a.csv").write_text(padded_bomb(6000))  # 288 MB of padding in 0.1 MB
    outcome = run(task(tmp_path / "a.csv", limits=asdict(Limits(reader_bytes=200 * MIB))))
    assert outcome["error"] == "TooLargeError" and "more than 200 MiB" in outcome["message"]
    assert not (tmp_path / "out.npz").exists()


def test_the_process_ends_with_the_studio(tmp_path):
    waiting = ["-c", "import time; from sparcets.studio import processes; processes.begin(); time.sleep(60)"]

    async def run_until_its_end():
        async with processes.running([sys.executable, *waiting], task(tmp_path / "a.csv"), {}) as (process, _):
            process.stdin.close()
            return await asyncio.wait_for(process.wait(), 60)

    assert asyncio.run(run_until_its_end()) == 1


def test_modules_are_not_looked_for_in_the_current_folder(tmp_path):
    (tmp_path / "numpy.py").write_text("raise SystemExit('planted')")
    command = processes.command("sparcets.core.series", "main")
    command[-1] = command[-1].replace(
        "from sparcets.core.series import main as main; sys.exit(main())", "import numpy; print(numpy.e)"
    )
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.startswith("2.718")


UPLOAD = f"{API}/datasets/upload"
SLEEP = [sys.executable, "-S", "-c", "import time; time.sleep(60)"]


def left(folder):
    return sorted(path.name for path in (folder / "datasets").iterdir())


@pytest.mark.parametrize(
    ("limits", "content", "status", "code", "words"),
    [
        ({}, b"series,time,label,x\na,0,sick,one\n", 422, "file_format", "a.csv, line 2, column 'x'"),
        ({"reader_bytes": 100 * MIB}, padded_bomb(5000).encode(), 413, "too_large", "100 MiB of memory"),
        ({"reader_seconds": 0.01}, CSV.encode(), 408, "too_slow", "a.csv was not read within 0.01 s"),
        ({"uploads": 0}, CSV.encode(), 429, "busy", "uploaded already"),
    ],
)
def test_what_is_refused_leaves_nothing(start, sample, limits, content, status, code, words):
    problem = error(start(limits=Limits(**limits)).post(UPLOAD, params={"filename": "a.csv"}, content=content), status)
    assert problem["code"] == code and words in problem["message"] and str(sample.folder) not in problem["message"]
    assert left(sample.folder) == ["own"]


def test_a_process_that_dies_is_reported(start, sample, monkeypatch):
    monkeypatch.setattr(processes, "command", lambda *_: [sys.executable, "-S", "-c", "import os; os.abort()"])
    problem = error(start().post(UPLOAD, params={"filename": "a.csv"}, content=CSV.encode()), 422)
    assert problem["code"] == "unreadable" and "exit code" in problem["message"]
    assert left(sample.folder) == ["own"]


def test_answers_do_not_wait_for_an_upload(start, sample, monkeypatch):
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

    def __init__(self, *, within):
        self.within = within

    async def stream(self):
        yield CSV.encode()
        if self.within:
            raise ClientDisconnect

    async def is_disconnected(self):
        return True


@pytest.mark.parametrize("within", [True, False])
def test_a_client_that_breaks_off_leaves_nothing(tmp_path, monkeypatch, within):
    started = []
    running = processes.running

    @asynccontextmanager
    async def recorded(*given):
        async with running(*given) as (process, output):
            started.append(process)
            yield process, output

    monkeypatch.setattr(processes, "running", recorded)
    monkeypatch.setattr(processes, "command", lambda *_: SLEEP)
    uploads = Uploads(Workspace(tmp_path), Limits())
    with pytest.raises(ApiError, match="ended the request"):
        asyncio.run(uploads.dataset("a.csv", Client(within=within)))
    assert left(tmp_path) == [] and all(process.returncode is not None for process in started)
    assert len(started) == (0 if within else 1)


def test_recordings_may_be_as_large_as_data_sets(start, sample):
    client = start(limits=Limits(body_bytes=100))
    content = npz_bytes(20)
    response = client.post(f"{API}/datasets/own/recordings?filename=new.npz", content=content)
    assert response.status_code == 201 and response.json() == {"n": 20, "first_row": 90}
    assert left(sample.folder) == ["own"]
