"""Whole plans: killed and resumed, with cells that fail and workers that die."""

import json
import logging
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from sparcets.io.locks import LOCK, locked
from sparcets.testing.data import make_series
from sparcets_paper.benchmark import runner
from sparcets_paper.benchmark.plan import Cell
from sparcets_paper.benchmark.runner import collect, pending_cells, run_plan
from sparcets_paper.benchmark.store import RESULTS, ResultStore

TINY = {"hidden": 8, "layers": 1, "dropout": 0.0, "epochs": 10, "lr": 0.01}


@pytest.fixture(scope="module", autouse=True)
def no_judges():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sparcets_paper.benchmark.cell.find_judges", lambda *_, **__: {})
        yield


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    X, y = make_series(45, n_steps=10)
    path = tmp_path_factory.mktemp("data") / "own.npz"
    np.savez(path, X=X, y=np.array(["calm", "brisk", "wild"])[y])
    common = {"classifier_config": TINY, "preset": "tiny", "target": "brisk", "queries": 4}
    return Cell(dataset="own", source=str(path), **common)


@pytest.fixture(scope="module")
def plan(base):
    # A quick cell first; the long second one is running when the process is killed.
    long = replace(base, method="sparcets", settings=("families=['intervals']",))
    first, ics = replace(base, method="nearest"), replace(base, method="ics")
    return [first, long, ics, replace(ics, seed=1)]


@pytest.fixture(scope="module")
def straight(plan, tmp_path_factory):
    """Return the folder of an undisturbed run, whose networks the other tests use."""
    folder = tmp_path_factory.mktemp("straight")
    rows = run_plan(plan, folder, device="cpu")
    assert [row["key"] for row in rows] == [cell.key for cell in plan]
    assert not [row["error"] for row in rows if "error" in row]
    return folder


def with_networks_of(folder, new):
    shutil.copytree(folder / "classifiers", new / "classifiers")
    return new


def results(row):
    """Return the part of a row that does not depend on the time."""
    measures = {name: value for name, value in row["measures"].items() if name != "seconds"}
    return {**{name: row[name] for name in ("key", "statuses", "accuracy", "judges", "history")}, "measures": measures}


def test_a_killed_run_is_resumed(plan, straight, tmp_path):
    folder = with_networks_of(straight, tmp_path / "runs")
    program = (
        "from sparcets_paper.benchmark import cell; cell.find_judges = lambda *_, **__: {}; "
        "from sparcets_paper.benchmark.plan import Cell; from sparcets_paper.benchmark.runner import run_plan; "
        f"run_plan({plan!r}, {str(folder)!r}, device='cpu')"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 240
    while not ResultStore(folder / RESULTS).rows():
        assert process.poll() is None and time.monotonic() < end, "no row came"
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    before = ResultStore(folder / RESULTS).rows()
    assert 1 <= len(before) < len(plan)

    seen = []
    rows = run_plan(plan, folder, device="cpu", on_row=lambda row: seen.append(row["key"]))
    lines = [json.loads(line) for line in (folder / RESULTS).read_text(encoding="utf-8").splitlines()]
    assert sorted(line["key"] for line in lines) == sorted(cell.key for cell in plan)
    stored = ResultStore(folder / RESULTS).rows()
    assert stored[: len(before)] == before  # down to the time they were started
    assert set(seen) == {cell.key for cell in plan} - {row["key"] for row in before}
    assert [results(row) for row in rows] == [results(row) for row in collect(plan, straight)]


def test_a_finished_plan_computes_nothing(plan, straight):
    content = (straight / RESULTS).read_bytes()
    assert len(run_plan(plan, straight, on_row=lambda row: pytest.fail(f"ran {row['method']}"))) == len(plan)
    assert (straight / RESULTS).read_bytes() == content


def test_lock_files_of_killed_runs_are_removed_and_those_of_others_kept(plan, straight):
    key = "0123456789abcdef"
    names = (f".cell-{key}", f".{RESULTS}", f"classifiers/{key}", f"explainers/{key}")
    left = [straight / f"{name}{LOCK}" for name in names]
    theirs = [straight / name for name in (".cell-a.lock", "classifiers/poetry.lock", f"explainers/mine{LOCK}")]
    for file in (*left, *theirs):
        file.touch()
    (full := straight / f".cell-{key[::-1]}{LOCK}").write_text("theirs")
    with locked(straight / f".cell-d{LOCK}"):
        run_plan(plan, straight)
        assert [file for file in left if file.exists()] == [] and (straight / f".cell-d{LOCK}").exists()
    for file in (*theirs, full):
        file.unlink()  # of which none is missing


def test_a_cell_under_two_names_is_run_once(plan, straight, tmp_path):
    folder = with_networks_of(straight, tmp_path)
    first = plan[0]
    twice = [replace(first, label="A", experiment="x"), replace(first, label="B", experiment="y")]
    rows = run_plan(twice, folder, device="cpu")
    assert [(row["label"], row["experiment"]) for row in rows] == [("A", "x"), ("B", "y")]
    assert len((folder / RESULTS).read_text(encoding="utf-8").splitlines()) == 1


METHODS = """
import os
from sparcets.methods.nearest import Nearest
from sparcets_paper.benchmark import cell

cell.find_judges = lambda *_, **__: {}  # in the worker

class Fine(Nearest):
    pass

class Killer(Nearest):
    def _fit(self, job):
        os.kill(os.getpid(), 9)
"""


def test_a_dead_worker_is_a_row_and_the_rest_is_finished(base, straight, tmp_path, monkeypatch):
    # An installed package with methods as entry points, which the worker processes find.
    (tmp_path / "odd_methods.py").write_text(METHODS)
    package = tmp_path / "odd_methods-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: odd-methods\nVersion: 1.0\n")
    points = "[sparcets.explainers]\nfine = odd_methods:Fine\nkiller = odd_methods:Killer\n"
    (package / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(str(tmp_path))

    folder = with_networks_of(straight, tmp_path / "runs")
    plan = [replace(base, method=name) for name in ("killer", "fine")]
    rows = {row["method"]: row for row in run_plan(plan, folder, workers=2, device="cpu")}
    assert "ChildProcessError: the worker process was killed (SIGKILL)" in rows["killer"]["error"]
    assert rows["killer"]["request"]["queries"] == 4 and rows["killer"]["seed"] == 0 and rows["killer"]["started"]
    (row,) = collect([replace(base, method="nearest")], straight)
    assert {**results(rows["fine"]), "key": row["key"]} == results(row)  # not affected by the others


def test_failed_cells_are_run_again(base, tmp_path, monkeypatch):
    monkeypatch.setenv("SPARCETS_DATA", str(tmp_path))
    good, missing = replace(base, method="nearest"), replace(base, dataset="motionsense", source=None)
    wrong = replace(good, classifier_config={**TINY, "lr": -1})
    plan = [missing, wrong, good]
    rows = run_plan(plan, tmp_path / "runs", device="cpu")
    assert rows[0]["error"].startswith("DataNotFoundError") and "'lr' must be > 0" in rows[1]["error"]
    assert "error" not in rows[2]  # though it shares its data with one that failed
    retried = run_plan(plan, tmp_path / "runs", device="cpu")
    assert [a["started"] == b["started"] for a, b in zip(retried, rows, strict=True)] == [False, False, True]


def test_cells_of_a_changed_file_are_run_again(base, tmp_path, caplog):
    own, other = tmp_path / "own.npz", tmp_path / "other.npz"
    for path in (own, other):
        shutil.copy(str(base.source), path)
    plan = [replace(base, method="nearest", source=str(path)) for path in (own, other)]
    first = run_plan(plan, tmp_path / "runs", device="cpu")
    with np.load(own) as stored:
        parts = dict(stored)
    np.savez(own, **{**parts, "X": parts["X"] * np.linspace(0.8, 1.2, 10)[:, None]})
    assert [cell.source for cell in pending_cells(plan, tmp_path / "runs")] == [str(own)]
    second = run_plan(plan, tmp_path / "runs", device="cpu")
    # Another test may have lowered the level of the logger.
    logged = [r for r in caplog.records if r.name == "sparcets_paper.benchmark.runner" and r.levelno >= logging.WARNING]
    told = f"{own} has changed since its results were stored; its cells are run again"
    assert [record.getMessage() for record in logged] == [told]
    assert [a["started"] == b["started"] for a, b in zip(first, second, strict=True)] == [False, True]
    assert first[0]["measures"]["l2"] != second[0]["measures"]["l2"]  # of the new data, not of the cached ones
    assert pending_cells(plan, tmp_path / "runs") == []
    own.unlink()  # results of a deleted file stay
    assert pending_cells(plan, tmp_path / "runs") == []


def test_two_runs_at_once_compute_each_cell_once(base, tmp_path, monkeypatch):
    plan = [replace(base, method="nearest", seed=seed) for seed in range(4)]
    computed = []

    def slow(cell, context):
        computed.append(cell.key)
        time.sleep(0.1)
        return {**runner.cell_fields(cell), "measures": {}, "fit_s": 0.0, "explain_s": 0.0}

    monkeypatch.setattr(runner, "run_cell", slow)
    monkeypatch.setattr(runner, "prepare", lambda context, cells: None)
    with ThreadPoolExecutor(2) as pool:
        one, two = pool.map(lambda _: run_plan(plan, tmp_path, device="cpu", progress=False), range(2))
    assert sorted(computed) == sorted(cell.key for cell in plan)
    assert one == two and len(one) == 4 and not list(tmp_path.glob(".cell-*"))
