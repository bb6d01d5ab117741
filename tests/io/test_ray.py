"""A cluster of Ray with three nodes on this machine: the same results as in processes, and nothing lost by kills."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import deque
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import sparcets as sp
from sparcets.io import ray as engine_of_ray
from sparcets.io.engines import make_engine
from sparcets.methods.folder import digests_of
from sparcets.testing.data import make_series
from sparcets_paper.benchmark.plan import Cell
from sparcets_paper.benchmark.runner import run_plan
from sparcets_paper.benchmark.store import RESULTS

from .queries import content, fit, lists, parts, read, write

ray = pytest.importorskip("ray", reason="Ray is not installed")
pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="workers are found by /proc"),
    # Of Ray's own cluster helper, which may leave files of its logs open.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
MEMORY = 2**27  # bytes of each node's object store, which is hardly used
PID = "__import__('os').getpid()"
NODE = "__import__('ray').get_runtime_context().get_node_id()"


class Nodes:
    """A cluster of three nodes of one core each, as processes of their own."""

    def __init__(self):
        from ray.cluster_utils import Cluster

        options = {"num_cpus": 1, "object_store_memory": MEMORY, "include_dashboard": False}
        self.cluster = Cluster(initialize_head=True, head_node_args=options)
        self.others = [self.add(), self.add()]

    @property
    def address(self):
        return str(self.cluster.address)

    def add(self):
        return self.cluster.add_node(num_cpus=1, object_store_memory=MEMORY)

    def kill_node(self):
        """Kill a node with its workers, and start another one in its place."""
        self.cluster.remove_node(self.others.pop(), allow_graceful=False)
        self.others.append(self.add())

    def workers(self):
        """Return the processes that are working on something."""
        nodes = [self.cluster.head_node, *self.others]
        raylets = [process.process.pid for node in nodes for process in node.all_processes["raylet"]]
        tasks = [task for raylet in raylets for task in Path(f"/proc/{raylet}/task").iterdir()]
        children = [int(pid) for task in tasks for pid in (task / "children").read_text().split()]
        return [pid for pid in children if b"_Actor.run" in Path(f"/proc/{pid}/cmdline").read_bytes()]

    def kill_worker(self):
        wait_until(self.workers)
        os.kill(self.workers()[0], signal.SIGKILL)


def wait_until(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "timeout"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def nodes():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        started = Nodes()
        yield started
        started.cluster.shutdown()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("ray")


@pytest.fixture(scope="module")
def source(place):
    """Return a folder of twelve files with 5 series each, one of which is not fit to be explained."""
    _, X = fit(place / "model", sp.Ics)
    X = X[:60].copy()
    X[31, 2, 1] = np.nan
    for k in range(12):
        write(lists(X[5 * k : 5 * k + 5], range(5 * k, 5 * k + 5)), place / "queries" / f"{k:02d}.parquet")
    return place / "queries"


@pytest.fixture(scope="module")
def straight(place, source):
    """Return the files of an undisturbed run in this process."""
    result = sp.explain_parquet(place / "model", source, place / "straight", target=1)
    assert (result.queries, result.errors, result.shards) == (60, 1, 12)
    return content(place / "straight")


def test_results_exceptions_and_processes(nodes):
    with make_engine("ray", address=nodes.address) as engine:
        assert engine.n_workers(None) == 3 and engine.n_workers(2) == 2
        items = ["2 + 2", "int('x')", "lambda: 0", PID, "__import__('os').environ['OMP_NUM_THREADS']"]
        results = dict(engine.map_unordered(eval, items))
        assert results["2 + 2"] == 4 and isinstance(results["int('x')"], ValueError)
        assert results[PID] != os.getpid() and results[items[4]] == "1"
        queue, seen = deque(["16.0"]), []
        for item, value in engine.map_unordered(eval, queue):
            seen.append(item)
            if value > 2:
                queue.append(f"{value} ** 0.5")
        assert seen == ["16.0", "16.0 ** 0.5", "4.0 ** 0.5"]
        with pytest.raises(sp.SparcetsError, match="workers must be >= 1, got 0"):
            engine.n_workers(0)


def test_workers_have_the_folder_and_the_settings_of_the_driver(nodes, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPARCETS_DATA", "data of ours")
    with make_engine("ray", address=nodes.address) as engine:
        folder, data = "__import__('os').getcwd()", "__import__('os').environ['SPARCETS_DATA']"
        asked = {folder: str(tmp_path), data: "data of ours"}
        assert dict(engine.map_unordered(eval, asked, workers=1)) == asked


def test_a_task_is_given_to_another_worker_if_its_own_died(nodes, tmp_path, monkeypatch):
    monkeypatch.setattr(engine_of_ray, "ATTEMPTS", 2)
    mark = f"__import__('pathlib').Path({str(tmp_path / 'mark')!r})"
    once = f"7 if {mark}.exists() else ({mark}.touch(), __import__('os').kill({PID}, 9))"
    always = f"__import__('os').kill({PID}, 9)"
    with make_engine("ray", address=nodes.address) as engine:
        results = dict(engine.map_unordered(eval, ["1", once, always, "2"]))
    assert (results["1"], results[once], results["2"]) == (1, 7, 2)
    assert isinstance(results[always], ChildProcessError) and "workers of the Ray cluster died" in str(results[always])


def test_a_node_with_a_full_disk_gets_no_further_work(nodes, tmp_path, monkeypatch):
    avoided = []
    new_actor = engine_of_ray.RayEngine._new_actor
    monkeypatch.setattr(
        engine_of_ray.RayEngine, "_new_actor", lambda *args: (avoided.append({*args[2]}), new_actor(*args))[1]
    )
    disk = f"__import__('pathlib').Path({str(tmp_path / 'full')!r})"  # names the node on which the first item ran
    full = "(_ for _ in ()).throw(OSError(28, 'No space left on device'))"
    item = (
        f"(None if {disk}.exists() else {disk}.write_text({NODE}), {full} if {disk}.read_text() == {NODE} else %d)[1]"
    )
    queue = deque(item % i for i in range(5))
    done, failures = [], 0
    with make_engine("ray", address=nodes.address) as engine:
        for one, result in engine.map_unordered(eval, queue, workers=1):
            if isinstance(result, OSError):
                failures += 1
                queue.append(one)
            else:
                done.append(result)
    assert sorted(done) == list(range(5)) and failures == 1
    assert avoided == [set(), {(tmp_path / "full").read_text()}]


@pytest.mark.long
def test_nothing_is_lost_by_kills_of_a_worker_and_a_node(nodes, place, source, straight, monkeypatch):
    real = engine_of_ray.RayEngine.map_unordered

    def killing(*args, **how):
        for number, found in enumerate(real(*args, **how), 1):
            if number == 2:
                nodes.kill_worker()
            if number == 5:
                nodes.kill_node()
            yield found

    where = {"engine": "ray", "address": nodes.address}
    with monkeypatch.context() as patch:
        patch.setattr(engine_of_ray.RayEngine, "map_unordered", killing)
        result = sp.explain_parquet(place / "model", source, place / "killed", target=1, **where)
    assert (result.queries, result.answers, result.errors, result.unfinished) == (60, 60, 1, {})
    assert content(place / "killed") == straight  # the same bytes as in one process
    assert [row["id"] for row in read(place / "killed")] == list(range(60))  # none is missing, none is there twice
    assert sp.explain_parquet(place / "model", source, place / "killed", target=1, **where).computed == 0


@pytest.mark.long
def test_a_driver_that_was_ended_goes_on(nodes, place, source, straight):
    out = place / "ended"
    (place / "model" / "run.json").write_text(
        json.dumps({"dataset": "none", "dataset_options": {}, "parts": digests_of(place / "model")})
    )
    command = [sys.executable, "-W", "ignore", "-m", "sparcets", "explain", str(place / "model"), "--target", "1"]
    where = ["--engine", "ray", "--address", nodes.address, "--workers", "2", "--out", str(out)]
    for how in (signal.SIGKILL, signal.SIGINT):
        process = subprocess.Popen(
            [*command, "--queries", str(source), *where], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        before = len([*out.rglob("[0-9]*.parquet")])
        wait_until(lambda n=before: len([*out.rglob("[0-9]*.parquet")]) > n)
        process.send_signal(how)
        said, errors = process.communicate(timeout=30)
    assert process.returncode == 130 and said == ""
    assert errors.splitlines()[-1] == (
        "sparcets: stopped; finished shards are kept, run the same command again to continue"
    )
    assert before < len(parts(out)) < 12
    result = sp.explain_parquet(place / "model", source, out, target=1, engine="ray", address=nodes.address, workers=2)
    assert (result.queries, result.answers, result.errors) == (60, 60, 1) and content(out) == straight


def test_a_benchmark_has_all_its_rows_after_a_kill(nodes, tmp_path):
    X, y = make_series(45, n_steps=10)
    np.savez(tmp_path / "own.npz", X=X, y=y)
    tiny = {"hidden": 4, "layers": 1, "dropout": 0.0, "epochs": 2}
    cell = Cell(dataset="own", source=str(tmp_path / "own.npz"), classifier_config=tiny, preset="tiny", queries=2)
    plan = [replace(cell, method="ics", seed=seed) for seed in range(6)]
    seen = []

    def kill(row):
        seen.append(row["key"])
        if len(seen) == 2:
            nodes.kill_worker()

    where = {"engine": "ray", "address": nodes.address, "workers": 2}
    rows = run_plan(plan, tmp_path / "runs", **where, device="cpu", on_row=kill)
    assert [row["key"] for row in rows] == [cell.key for cell in plan]
    assert [row["error"] for row in rows if "error" in row] == []
    lines = [json.loads(line) for line in (tmp_path / "runs" / RESULTS).read_text().splitlines()]
    assert sorted(line["key"] for line in lines) == sorted(cell.key for cell in plan)
    assert {line["workers"] for line in lines} == {2}
