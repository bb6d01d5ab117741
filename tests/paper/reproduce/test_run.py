"""The reproduction as a whole, with a benchmark that only writes rows: resumed, extended, refused."""

import json

import pytest

from sparcets.core.errors import ConfigError, DataNotFoundError, StorageError, UnknownNameError
from sparcets_paper.benchmark.store import ResultStore
from sparcets_paper.reproduce.plans import plan
from sparcets_paper.reproduce.run import reproduce


@pytest.fixture
def ran(monkeypatch, tmp_path):
    """Replace the runs by rows of fixed numbers; return the keys of the cells that were run."""
    keys = []

    def fake(plan, folder, **other):
        store = ResultStore(folder / "results.jsonl")
        done = store.done()
        for cell in plan:
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


def test_a_second_call_runs_what_is_missing(ran, tmp_path):
    notes = []
    made = reproduce("table1", out=tmp_path / "r", on_note=notes.append)
    assert made.computed == len(ran) == 16  # two sets (MotionSense is not there), four methods, two seeds
    assert len(notes) == 1 and notes[0].startswith("motionsense is left out: MotionSense is not in")
    assert sum("error" in row for row in made.rows) == 4
    assert sorted(p.name for p in (tmp_path / "r" / "tables").iterdir()) == [
        f"{stem}.{kind}" for stem in ("datasets", "table1") for kind in ("csv", "md")
    ]
    again = reproduce("table1", out=tmp_path / "r")
    assert again.computed == 4 and not any("error" in row for row in again.rows)  # those that failed
    assert reproduce("table1", out=tmp_path / "r").computed == 0
    assert reproduce("timing", out=tmp_path / "r").computed == 0  # the same runs


def test_rows_of_other_code_are_run_again_and_not_shown(ran, tmp_path, monkeypatch):
    reproduce("targets", out=tmp_path, repetitions=1)
    monkeypatch.setattr("sparcets_paper.reproduce.run.code_digest", lambda: "changed")
    assert not reproduce("targets", out=tmp_path, repetitions=1).rows  # the fake runs what has no row at all
    assert reproduce("table1", out=tmp_path, repetitions=1).computed == 8  # SPARCE's two as well


def test_the_page_joins_the_parts_of_several_calls(ran, tmp_path):
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


def test_one_folder_holds_one_scale_and_one_first_seed(ran, tmp_path):
    reproduce("table1", out=tmp_path, repetitions=1, seed=3)
    with pytest.raises(ConfigError, match="contains a reproduction at scale small, got scale full"):
        reproduce("table1", scale="full", out=tmp_path)
    with pytest.raises(ConfigError, match="contains runs from seed 3 on, got seed 0"):
        reproduce("table1", out=tmp_path, repetitions=1)


def test_a_source_stands_for_a_set(ran, tmp_path, make_file):
    made = reproduce("table1", out=tmp_path, repetitions=1, sources={"motionsense": make_file})
    assert "motionsense" not in made.left_out
    assert {row["source"] for row in made.rows if row["dataset"] == "motionsense"} == {make_file}
    assert made.tables["datasets"].rows[1][1] == "40 / 7,544"
    again = reproduce("table1", out=tmp_path, repetitions=1, sources={"motionsense": make_file})
    assert again.computed == 0 and len(again.rows) == len(made.rows)


@pytest.fixture
def make_file(tmp_path):
    import numpy as np

    rng = np.random.default_rng(0)
    path = tmp_path / "motion.npz"
    np.savez(path, X=rng.normal(size=(40, 9, 3)), y=np.array(["dws", "jog", "ups", "wlk"] * 10))
    return str(path)


def test_errors_are_raised_before_any_work(ran, tmp_path):
    with pytest.raises(UnknownNameError, match="no data set of the paper 'catchin'"):
        reproduce("table1", out=tmp_path, sources={"catchin": "x.npz"})
    with pytest.raises(DataNotFoundError, match="no file"):
        reproduce("table1", out=tmp_path, sources={"catching": "no/such.npz"})
    with pytest.raises(UnknownNameError, match="no part of the paper 'figure'"):
        reproduce("figure", out=tmp_path)
    assert ran == [] and not (tmp_path / "reproduction.json").exists()


@pytest.mark.parametrize("name", ["README.md", "tables", "results.jsonl"])
def test_a_folder_of_others_is_refused(name, tmp_path):
    (tmp_path / name).write_text("theirs")
    with pytest.raises(StorageError, match=rf"holds {name} but no reproduction.json, so it is not of a reproduction"):
        reproduce("table1", out=tmp_path)
    assert (tmp_path / name).read_text() == "theirs" and len(list(tmp_path.iterdir())) == 1


def cells(what, scale="full", repetitions=None, **other):
    return plan(what, scale, repetitions, **other)


def test_the_order_is_long_runs_then_the_paper_s_by_repetition_then_the_rest():
    whole = cells("all")
    labels = [c.label for c in whole]
    assert labels[:3] == ["GAN, 300 epochs", "CounteRGAN, 300 epochs", "SPARCE, 300 epochs"]
    main = [c for c in whole[3:] if c.label in ("ICS", "GAN", "CounteRGAN", "SPARCE", "SPARCE, λ4,5 = 0")]
    assert main == list(whole[3 : 3 + len(main)]) and [c.seed for c in main] == sorted(c.seed for c in main)
    # A run that loads the training of another comes after all of those.
    assert labels.index("SPARCE, λ5 = 0") > 3 + len(main) - 1 < labels.index("SPARCE, λ4 = 0")
    assert {c.seed for c in whole[-3:]} == {1} and {c.label for c in whole[-3:]} == set(labels[:3])


def test_sources_replace_names_and_mistakes_are_named():
    found = cells("table1", "small", 1, datasets=["moving_box", "catching"], sources={"moving_box": "box.npz"})
    given = {(c.dataset, c.source, bool(c.options)) for c in found}
    assert given == {("moving_box", "box.npz", False), ("catching", None, False)}
    with pytest.raises(UnknownNameError, match="Did you mean 'table1'"):
        plan("table", "small")
    with pytest.raises(UnknownNameError, match="no scale 'huge'"):
        plan("all", "huge")
    with pytest.raises(ConfigError, match="repetitions must be >= 1, got 0"):
        plan("all", "small", 0)
