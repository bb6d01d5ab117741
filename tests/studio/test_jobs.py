"""Trainings: progress that is told, a cancel that works at once, failures in words, and never half a result."""

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from sparcets.studio import jobs as module
from sparcets.studio.errors import ApiError
from sparcets.studio.jobs import Jobs
from sparcets.studio.limits import Limits
from sparcets.studio.models import Job, TrainClassifier
from sparcets.studio.workspace import Workspace

from .conftest import Made, error

REQUEST = TrainClassifier(dataset="own", architecture="fcn")
REPORT = "print(json.dumps(dict(stage='training fcn', done=2, total=5, note='loss 1')), flush=True)"


def worker(script: str) -> list[str]:
    """Return a stand-in for the worker: it reads what to do, then runs a script."""
    return [sys.executable, "-c", f"import json, sys, time, os\nasked = json.loads(sys.stdin.readline())\n{script}"]


@pytest.fixture
def begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Jobs]]:
    made: list[Jobs] = []

    def beginning(script: str, **limits: Any) -> Jobs:
        monkeypatch.setattr(module, "WORKER", worker(script))
        made.append(Jobs(Workspace(tmp_path), Limits(**limits)))
        return made[-1]

    yield beginning
    for jobs in made:
        jobs.close()


def until(jobs: Jobs, name: str, reached: Callable[[Job], bool]) -> Job:
    for _ in range(2000):
        if reached(job := jobs.get(name)):
            return job
        time.sleep(0.01)
    raise AssertionError(jobs.get(name))


def ended(job: Job) -> bool:
    return job.state not in ("queued", "running")


def test_progress_is_told_and_the_result_named(begin: Callable[..., Jobs]) -> None:
    jobs = begin(f"{REPORT}\ntime.sleep(0.3)")
    job = jobs.submit(REQUEST)
    assert job.title == "training fcn" and job.parent == "own"
    running = until(jobs, job.id, lambda j: j.done > 0)
    assert (running.stage, running.done, running.total, running.note) == ("training fcn", 2, 5, "loss 1")
    done = until(jobs, job.id, ended)
    assert done.state == "done" and done.result == job.id and done.error is None


def test_a_cancelled_training_stops_at_once_and_leaves_nothing(begin: Callable[..., Jobs], tmp_path: Path) -> None:
    half = "open(os.path.join(asked['workspace'], 'classifiers', '.' + asked['id'], 'weights'), 'w').write('half')"
    folder = "os.mkdir(os.path.join(asked['workspace'], 'classifiers', '.' + asked['id']))"
    jobs = begin(f"{folder}\n{half}\n{REPORT}\ntime.sleep(60)")
    first, second = jobs.submit(REQUEST), jobs.submit(REQUEST)
    until(jobs, first.id, lambda j: j.done > 0)
    assert any((tmp_path / "classifiers").iterdir())
    process = jobs._entries[first.id].process
    assert jobs.cancel(second.id).state == "cancelled"  # still in the queue
    assert jobs.cancel(first.id).state == "cancelled"
    assert process is not None and process.poll() is not None
    assert not any((tmp_path / "classifiers").iterdir())
    with pytest.raises(ApiError, match="cancelled already") as told:
        jobs.cancel(first.id)
    assert told.value.status_code == 409


def test_the_next_has_its_turn_after_one_was_cancelled(begin: Callable[..., Jobs]) -> None:
    jobs = begin(f"{REPORT}\nif asked['request']['architecture'] == 'fcn': time.sleep(60)")
    first = jobs.submit(REQUEST)
    second = jobs.submit(TrainClassifier(dataset="own", architecture="tcn"))
    until(jobs, first.id, lambda j: j.done > 0)
    assert jobs.get(second.id).state == "queued"
    jobs.cancel(first.id)
    assert until(jobs, second.id, ended).state == "done"


def test_failures_come_in_words(begin: Callable[..., Jobs]) -> None:
    jobs = begin("print(json.dumps(dict(code='data', message='no labels.')))\nsys.exit(2)")
    failed = until(jobs, jobs.submit(REQUEST).id, ended)
    assert failed.state == "failed" and failed.error is not None and failed.error.message == "no labels."


def test_a_process_that_dies_takes_nothing_with_it(begin: Callable[..., Jobs]) -> None:
    jobs = begin("os._exit(9)")
    failed = until(jobs, jobs.submit(REQUEST).id, ended)
    assert failed.error is not None and failed.error.code == "process_died" and "exit code 9" in failed.error.message


def test_a_training_that_takes_too_long_is_stopped(begin: Callable[..., Jobs]) -> None:
    jobs = begin("time.sleep(60)", job_seconds=0.3)
    failed = until(jobs, jobs.submit(REQUEST).id, ended)
    assert failed.error is not None and failed.error.code == "too_slow"


def test_only_so_many_may_wait(begin: Callable[..., Jobs]) -> None:
    jobs = begin(f"{REPORT}\ntime.sleep(60)", jobs_waiting=1)
    until(jobs, jobs.submit(REQUEST).id, lambda j: j.done > 0)
    jobs.submit(REQUEST)
    with pytest.raises(ApiError, match="1 trainings are waiting") as told:
        jobs.submit(REQUEST)
    assert told.value.status_code == 429


def test_what_a_training_needs_is_not_removed(client: TestClient, made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WORKER", worker("time.sleep(60)"))
    for name in (made.nearest, made.ics):
        client.delete(f"/api/v1/explainers/{name}")
    job = client.post("/api/v1/explainers", json={"classifier": made.classifier, "method": "nearest"}).json()
    told = error(client.delete(f"/api/v1/classifiers/{made.classifier}"), 409)
    assert "fitting nearest" in told["message"]
    assert client.delete(f"/api/v1/jobs/{job['id']}").json()["state"] == "cancelled"
    assert client.delete(f"/api/v1/classifiers/{made.classifier}").status_code == 204


def test_a_real_training_from_request_to_answer(client: TestClient, made: Made) -> None:
    asked = {"classifier": made.classifier, "method": "nearest", "preset": "tiny"}
    response = client.post("/api/v1/explainers", json=asked)
    assert response.status_code == 202
    name = response.json()["id"]
    for _ in range(600):
        job = client.get(f"/api/v1/jobs/{name}").json()
        if job["state"] not in ("queued", "running"):
            break
        time.sleep(0.05)
    assert job["state"] == "done", job
    assert [j["id"] for j in client.get("/api/v1/jobs").json()] == [name]
    old, new = (
        client.post("/api/v1/explanations", json={"explainer": e, "rows": [0]}).json()["answers"]
        for e in (made.nearest, name)
    )
    assert old == new
    found = client.get("/api/v1/explainers", params={"classifier": made.classifier}).json()
    assert [e["id"] for e in found][-1] == name and "Nearest" in found[-1]["summary"]


def test_what_cannot_be_trained_is_refused_at_once(client: TestClient, made: Made) -> None:
    told = error(client.post("/api/v1/classifiers", json={"dataset": "own", "architecture": "fcnn"}), 422)
    assert "Did you mean 'fcn'" in told["message"]
    error(client.post("/api/v1/classifiers", json={"dataset": "none", "architecture": "fcn"}), 404)
    error(client.post("/api/v1/explainers", json={"classifier": "none", "method": "nearest"}), 404)
    assert client.get("/api/v1/jobs").json() == []
