"""The reproduction as a whole, with a benchmark that only writes rows: resumed, extended, refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from sparcets.core.errors import ConfigError, DataNotFoundError, StorageError, UnknownNameError
from sparcets.data.load import load_dataset
from sparcets_paper.benchmark.plan import Plan
from sparcets_paper.benchmark.store import ResultStore
from sparcets_paper.reproduce.run import dataset_facts, reproduce


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Replace the runs by rows of fixed numbers; return the keys of the cells that were run."""
    keys: list[str] = []

    def fake(plan: Plan, folder: Path, **other: Any) -> list[dict[str, Any]]:
        store = ResultStore(folder / "results.jsonl")
        done = store.done()
        for cell in plan.cells:
            if cell.key not in done:
                keys.append(cell.key)
                failed = {"error": "RuntimeError: once"} if cell.seed == 1 and len(keys) < 9 else {}
                measures = {"valid": 0.9, "similarity_all": 0.1}
                fields = {**cell.to_dict(), "key": cell.key, "code": other["code"], "measures": measures}
                store.append({**fields, "fit_s": 1, "explain_s": 1, **failed})
        return []

    monkeypatch.setattr("sparcets_paper.benchmark.runner.run_plan", fake)
    monkeypatch.setenv("SPARCETS_DATA", str(tmp_path / "none"))
    monkeypatch.setattr(
        "sparcets_paper.reproduce.run.draw_figures", lambda *given, **other: ([], {"figure1": "none kept."})
    )
    return keys


def test_a_second_call_runs_what_is_missing(ran: list[str], tmp_path: Path) -> None:
    notes: list[str] = []
    made = reproduce("table1", out=tmp_path / "r", on_note=notes.append)
    assert made.computed == len(ran) == 16  # two sets (MotionSense is not there), four methods, two seeds
    assert len(notes) == 1 and notes[0].startswith("motionsense is left out: MotionSense is not in")
    assert sum("error" in row for row in made.rows) == 4
    assert sorted(p.name for p in (tmp_path / "r" / "tables").iterdir()) == [
        f"{stem}.{kind}" for stem in ("datasets", "table1") for kind in ("csv", "md", "tex")
    ]
    again = reproduce("table1", out=tmp_path / "r")
    assert again.computed == 4 and not any("error" in row for row in again.rows)  # those that failed
    assert reproduce("table1", out=tmp_path / "r").computed == 0
    assert reproduce("timing", out=tmp_path / "r").computed == 0  # the same runs


def test_rows_of_other_code_are_run_again_and_not_shown(
    ran: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reproduce("targets", out=tmp_path, repetitions=1)
    monkeypatch.setattr("sparcets_paper.reproduce.run.code_digest", lambda: "changed")
    assert not reproduce("targets", out=tmp_path, repetitions=1).rows  # the fake runs what has no row at all
    assert reproduce("table1", out=tmp_path, repetitions=1).computed == 8  # SPARCE's two as well


def test_the_page_joins_the_parts_of_several_calls(ran: list[str], tmp_path: Path) -> None:
    reproduce("table1", out=tmp_path, repetitions=1)
    made = reproduce("targets", out=tmp_path, repetitions=1)
    page = made.page.read_text(encoding="utf-8")
    assert list(made.tables) == ["datasets", "table1", "targets"]
    assert "## The four methods" in page and "## Target classes" in page and "## Time" not in page
    assert "**MotionSense is left out**" in page
    stored = json.loads((tmp_path / "reproduction.json").read_text())
    assert stored["parts"] == ["table1", "targets"] and stored["repetitions"] == 1
    assert reproduce("table1", out=tmp_path, repetitions=2).computed == 8  # one more seed
    assert "none kept" in reproduce("figures", out=tmp_path, repetitions=2).page.read_text(encoding="utf-8")


def test_one_folder_holds_one_scale(ran: list[str], tmp_path: Path) -> None:
    reproduce("table1", out=tmp_path, repetitions=1)
    with pytest.raises(ConfigError, match="contains a reproduction at scale small, got scale full"):
        reproduce("table1", scale="full", out=tmp_path)


def test_a_source_stands_for_a_set(ran: list[str], tmp_path: Path, make_file) -> None:
    made = reproduce("table1", out=tmp_path, repetitions=1, sources={"motionsense": make_file})
    assert "motionsense" not in made.left_out
    assert {row["source"] for row in made.rows if row["dataset"] == "motionsense"} == {make_file}
    assert made.tables["datasets"].rows[1][1] == "40 / 7,544"
    again = reproduce("table1", out=tmp_path, repetitions=1, sources={"motionsense": make_file})
    assert again.computed == 0 and len(again.rows) == len(made.rows)


def test_one_folder_holds_one_first_seed(ran: list[str], tmp_path: Path) -> None:
    reproduce("table1", out=tmp_path, repetitions=1, seed=3)
    with pytest.raises(ConfigError, match="contains runs from seed 3 on, got seed 0"):
        reproduce("table1", out=tmp_path, repetitions=1)


@pytest.fixture
def make_file(tmp_path: Path) -> str:
    import numpy as np

    rng = np.random.default_rng(0)
    path = tmp_path / "motion.npz"
    np.savez(path, X=rng.normal(size=(40, 9, 3)), y=np.array(["dws", "jog", "ups", "wlk"] * 10))
    return str(path)


def test_errors_are_raised_before_any_work(ran: list[str], tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="no data set of the paper 'catchin'"):
        reproduce("table1", out=tmp_path, sources={"catchin": "x.npz"})
    with pytest.raises(DataNotFoundError, match="no file"):
        reproduce("table1", out=tmp_path, sources={"catching": "no/such.npz"})
    with pytest.raises(UnknownNameError, match="no part of the paper 'figure'"):
        reproduce("figure", out=tmp_path)
    assert ran == [] and not (tmp_path / "reproduction.json").exists()


def test_dataset_facts() -> None:
    facts = dataset_facts(load_dataset("catching"), "catching")
    assert facts == {
        "title": "Catching (simulated)",
        "n_samples": 1975,
        "n_train": 1580,
        "n_test": 395,
        "n_steps": 60,
        "n_features": 20,
        "n_mutable": 18,
        "classes": {"Ataxia": 522, "Autism": 789, "Control": 664},
    }


@pytest.mark.parametrize("name", ["README.md", "tables", "results.jsonl"])
def test_a_folder_of_others_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("theirs")
    with pytest.raises(StorageError, match=rf"holds {name} but no reproduction.json, so it is not of a reproduction"):
        reproduce("table1", out=tmp_path)
    assert (tmp_path / name).read_text() == "theirs" and len(list(tmp_path.iterdir())) == 1
