"""Training jobs: progress, cancelling, failures, limits, no partial results, and the processes that run them."""

import asyncio
import json
import os
import stat
import subprocess
import sys
import time
from functools import wraps

import pytest

from sparcets.io.files import TEMPORARY
from sparcets.io.folders import MARKER
from sparcets.studio.jobs import FILE, Jobs, TrainingProgress
from sparcets.studio.models import Limits, TrainClassifier
from sparcets.studio.processes import command
from sparcets.studio.workspace import Workspace
from sparcets.web.errors import ApiError
from tests.http_api import error

from .conftest import API

REQUEST = TrainClassifier(dataset="own", architecture="fcn")
REPORT = "print(json.dumps(dict(stage='training fcn', done=2, total=5, note='loss 1')), flush=True)"


@pytest.fixture
def begin(tmp_path):
    """Return a function that makes a queue whose worker reads the task and then runs a script."""

    def make(script, **limits):
        script = f"import json, sys, time, os\ntask = json.loads(sys.stdin.readline())\n{script}"
        return Jobs(Workspace(tmp_path), Limits(**limits), worker=[sys.executable, "-c", script])

    return make


def in_a_loop(test):
    """Return a test that runs in an event loop."""

    @wraps(test)
    def run(*args, **fixtures):
        asyncio.run(test(*args, **fixtures))

    return run


def get(jobs, name):
    return next(job for job in jobs.all() if job.id == name)


async def until(jobs, name, reached):
    end = time.monotonic() + 120
    while time.monotonic() < end:
        if reached(job := get(jobs, name)):
            return job
        await asyncio.sleep(0.01)
    raise AssertionError(get(jobs, name))


def ended(job):
    return job.state not in ("queued", "running")


@in_a_loop
async def test_progress_and_result(begin, tmp_path):
    jobs = begin(f"{REPORT}\nwhile not os.path.exists({str(tmp_path / 'seen')!r}): time.sleep(0.01)")
    job = jobs.submit(REQUEST)
    assert job.title == "training fcn" and job.parent == "own" and job.kind == "classifier"
    running = await until(jobs, job.id, lambda j: j.done > 0)
    assert (running.stage, running.done, running.total, running.note) == ("training fcn", 2, 5, "loss 1")
    (tmp_path / "seen").touch()
    done = await until(jobs, job.id, ended)
    assert done.state == "done" and done.result == job.id and done.error is None


@in_a_loop
async def test_cancel_ends_the_process_and_removes_its_files(begin, tmp_path):
    name = f"'.' + task['id'] + '{TEMPORARY}12345678'"
    folder = f"folder = os.path.join(task['workspace'], 'classifiers', {name})\nos.mkdir(folder)"
    partial = f"open(os.path.join(folder, '{MARKER}'), 'w')\n"
    partial += "open(os.path.join(folder, 'pid'), 'w').write(str(os.getpid()))"
    jobs = begin(f"{folder}\n{partial}\n{REPORT}\ntime.sleep(3600)")
    first, second = jobs.submit(REQUEST), jobs.submit(REQUEST)
    await until(jobs, first.id, lambda j: j.done > 0)
    pid = int((tmp_path / "classifiers" / f".{first.id}{TEMPORARY}12345678" / "pid").read_text())
    assert (await jobs.cancel(second.id)).state == "cancelled"  # still in the queue
    assert (await jobs.cancel(first.id)).state == "cancelled"
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert not any((tmp_path / "classifiers").iterdir())
    with pytest.raises(ApiError) as raised:
        await jobs.cancel(first.id)
    assert raised.value.status_code == 409 and raised.value.code == "finished"
    third = jobs.submit(REQUEST)  # the next has its turn
    await until(jobs, third.id, lambda j: j.done > 0)
    await jobs.close()
    assert get(jobs, third.id).state == "cancelled"


@in_a_loop
async def test_the_list_survives_a_restart_and_says_what_was_lost(begin, tmp_path):
    first = begin(f"{REPORT}\nif task['request']['architecture'] == 'fcn': time.sleep(3600)")
    done = first.submit(TrainClassifier(dataset="own", architecture="tcn"))
    await until(first, done.id, ended)
    running, queued = first.submit(REQUEST), first.submit(REQUEST)
    await until(first, running.id, lambda j: j.done > 0)
    stored = tmp_path / FILE
    assert stat.S_IMODE(stored.stat().st_mode) == 0o600
    again = begin("")  # as after a crash: the first was not closed
    assert [job.state for job in again.all()] == ["done", "lost", "lost"]
    assert get(again, done.id).curves == get(first, done.id).curves != {}
    assert "Start it again" in get(again, running.id).error.message
    with pytest.raises(ApiError, match="already lost"):
        await again.cancel(queued.id)
    (tmp_path / "classifiers" / running.id).mkdir()  # the studio was killed after the last file, and before the list
    assert [job.state for job in begin("").all()] == ["done", "done", "lost"]
    for broken in ("", "[]", '{"trainings": [3]}'):
        stored.write_text(broken)
        assert begin("").all() == []
    await first.close()


@pytest.mark.parametrize(
    ("script", "limits", "code", "text"),
    [
        ("print(json.dumps(dict(code='data', message='no labels.')))\nsys.exit(2)", {}, "data", "no labels."),
        ("os._exit(9)", {}, "process_died", "exit code 9"),
        ("time.sleep(3600)", {"job_seconds": 0.3}, "too_slow", "0.3 s"),
        ("print('no JSON')", {}, "internal", "could not be run"),
    ],
)
@in_a_loop
async def test_failures(begin, script, limits, code, text):
    jobs = begin(script, **limits)
    failed = await until(jobs, jobs.submit(REQUEST).id, ended)
    assert failed.state == "failed" and failed.error is not None
    assert failed.error.code == code and text in failed.error.message


@in_a_loop
async def test_the_queue_is_limited(begin):
    jobs = begin(f"{REPORT}\ntime.sleep(3600)", queued_jobs=1)
    await until(jobs, jobs.submit(REQUEST).id, lambda j: j.done > 0)
    jobs.submit(REQUEST)
    with pytest.raises(ApiError) as raised:
        jobs.submit(REQUEST)
    assert raised.value.status_code == 429 and raised.value.code == "busy"
    await jobs.close()


def test_items_used_by_a_job_are_not_removed(client, sample):
    for name in (sample.nearest, sample.ics):
        client.delete(f"{API}/explainers/{name}")
    job = client.post(f"{API}/explainers", json={"classifier": sample.classifier, "method": "sparcets"}).json()
    assert job["title"] in error(client.delete(f"{API}/classifiers/{sample.classifier}"), 409)["message"]
    assert client.delete(f"{API}/jobs/{job['id']}").json()["state"] == "cancelled"
    assert client.delete(f"{API}/classifiers/{sample.classifier}").status_code == 204


def test_a_real_job_from_request_to_answer(client, sample):
    request = {"classifier": sample.classifier, "method": "nearest", "preset": "tiny"}
    response = client.post(f"{API}/explainers", json=request)
    assert response.status_code == 202
    name = response.json()["id"]
    for _ in range(2400):
        (job,) = client.get(f"{API}/jobs").json()
        if job["state"] not in ("queued", "running"):
            break
        time.sleep(0.05)
    assert job["state"] == "done" and job["id"] == name, job
    old, new = (
        client.post(f"{API}/explanations", json={"explainer": e, "rows": [0]}).json()["answers"]
        for e in (sample.nearest, name)
    )
    assert old == new
    found = client.get(f"{API}/explainers").json()
    assert [e["id"] for e in found][-1] == name and "Nearest" in found[-1]["summary"]


def test_invalid_requests_are_rejected_before_they_are_queued(client):
    problem = error(client.post(f"{API}/classifiers", json={"dataset": "own", "architecture": "fcnn"}), 422)
    assert "Did you mean 'fcn'" in problem["message"]
    error(client.post(f"{API}/classifiers", json={"dataset": "none", "architecture": "fcn"}), 404)
    error(client.post(f"{API}/explainers", json={"classifier": "none", "method": "nearest"}), 404)
    assert client.get(f"{API}/jobs").json() == []


def run(sample, request):
    process = subprocess.Popen(
        command("sparcets.studio.processes", "train"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    task = {"workspace": str(sample.folder), "id": "new", "seed": 0, "device": "cpu", **request}
    process.stdin.write(json.dumps(task) + "\n")
    process.stdin.flush()
    return process


def test_an_error_is_reported(sample):
    (sample.folder / "datasets" / "own" / "own.npz").write_bytes(b"broken")
    request = {"dataset": "own", "architecture": "fcn", "preset": "tiny"}
    process = run(sample, {"kind": "classifier", "request": request})
    (line,) = process.stdout.read().splitlines()
    assert process.wait() == 2
    process.stdin.close()
    process.stdout.close()
    problem = json.loads(line)
    assert problem["code"] == "file_format" and "own.npz" in problem["message"]
    assert not (sample.folder / "classifiers" / "new").exists()


def test_stages_count_by_the_time_they_take():
    progress = TrainingProgress("fitting sparcets")
    shares = []
    for stage, done, total in (
        ("fitting models of other kinds", 0, 7), ("training fcn", 5, 10), ("training fcn", 10, 10),
        ("fitting models of other kinds", 3, 7), ("training resnet", 10, 10), ("fitting models of other kinds", 7, 7),
    ):  # fmt: skip
        progress.update(stage, done, total, "")
        shares.append(progress.share)
    assert shares == sorted(shares) and shares[0] == 0 and shares[-1] == pytest.approx(1)
    assert progress.left(60.0) == pytest.approx(0, abs=1e-9)
