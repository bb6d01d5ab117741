"""The report and its tables: agreement with the paper, errors, what is missing, and links to files that exist."""

import pytest

from sparcets_paper.benchmark.store import ResultStore
from sparcets_paper.reproduce.page import RESULTS, folder_page, read_run
from sparcets_paper.reproduce.plans import plan
from sparcets_paper.reproduce.provenance import ROOT, deciding_files, deciding_text, describe, missing, of_latest_code
from sparcets_paper.reproduce.tables import make_tables


@pytest.fixture
def rows(make_row):
    def gan(seed):
        return {"precision_index": 0.0, "similarity_all": 0.22, "sparsity_all": 1.0, "smoothness_all": 0.9 + seed / 99}

    return [*(make_row(label="GAN", seed=s, **gan(s)) for s in (0, 1)), make_row(label="ICS", error="ValueError: no")]


def planned_run(**given):
    one = {"catching": {"title": "Catching (simulated)"}}
    return {"scale": "full", "repetitions": 2, "parts": ["table1"], "datasets": one, "seconds": 60.0, **given}


def test_rows_of_different_code_are_not_mixed(make_row):
    old = [{**make_row(seed=s), "code": "aa", "started": "2026-01-01"} for s in (0, 1)]
    new = {**make_row(seed=2), "code": "bb", "started": "2026-02-01"}
    assert of_latest_code([*old, new]) == of_latest_code([new, *old]) == [new]
    unknown = make_row()  # rows of other benchmarks have no digest
    assert of_latest_code([unknown]) == [unknown] and of_latest_code([]) == []


def test_missing_runs_are_listed_by_seed(make_row):
    rows = [make_row(label=label, seed=0) for label in ("ICS", "GAN", "SPARCE")] + [make_row(label="GAN", seed=1)]
    found = {label: seeds for (_, label, _), seeds in missing(planned_run(), rows).items()}
    assert found == {"ICS": [1], "CounteRGAN": [0, 1], "SPARCE": [1]}
    text = describe(planned_run(), rows)
    assert "Missing, 4 of the planned runs: ICS on Catching towards Control (seed 1); CounteRGAN" in text
    assert "Experiments by their number of repetitions: 1 with 2, 2 with 1 (3 in all)." in text


SOURCE = '''"""About λ."""

import math  # for pi


def area(r):
    """Return the area, π r²."""
    # A comment.
    text = "# no comment"
    return math.pi * r**2, text
'''
PLAIN = 'import math\n\ndef area(r):\n    text = "# no comment"\n    return math.pi * r**2, text\n'


def test_comments_docstrings_and_blank_lines_do_not_count():
    assert deciding_text(SOURCE) == deciding_text(PLAIN) == PLAIN.replace("\n\n", "\n")
    assert deciding_text(SOURCE.replace("r**2", "r**3")) != deciding_text(SOURCE)
    assert deciding_text(SOURCE.replace("# no", "# a")) != deciding_text(SOURCE)


def test_tables_pages_plots_and_our_own_method_do_not_decide():
    names = {file.relative_to(ROOT).as_posix() for file in deciding_files()}
    assert all((ROOT / name).is_file() for name in names)
    shown = ("show/", "cli/", "studio/", "methods/own/")
    shown = (*(f"sparcets/{folder}" for folder in shown), "sparcets_paper/reproduce/")
    assert not [name for name in names if name.startswith(shown)]


STORED = ROOT / "results" / "reproduction"
stored = pytest.mark.skipif(not STORED.is_dir(), reason="the stored reproduction is not part of the source archive")


@stored
def test_the_stored_rows_give_the_page_and_the_tables_of_the_documentation(tmp_path):
    rows = ResultStore(STORED / RESULTS).rows()
    assert len({(row["code"], row["git"]) for row in rows}) == 1
    page = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    assert page == folder_page(STORED, root="../results/reproduction/"), "run: make docs"
    stored_run = read_run(STORED)
    for stem, table in make_tables(rows, stored_run["datasets"], stored_run["parts"]).items():
        table.save(tmp_path, stem)
    for file in tmp_path.iterdir():
        assert file.read_bytes() == (STORED / "tables" / file.name).read_bytes(), "run: make docs"


@stored
def test_runs_made_twice_gave_the_same_answers():
    first = {row["key"]: row for row in ResultStore(STORED / RESULTS).rows()}
    again = ResultStore(STORED / "repeated.jsonl").rows()
    assert len(again) == len(list((STORED / "answers").glob("*.npz"))) == 15
    for row in again:
        before = first[row["key"]]
        assert (row["code"], row["git"], row["figures"]) == (before["code"], before["git"], before["figures"])
        others = {n for n, v in row["measures"].items() if v != before["measures"][n]}
        assert all(name == "seconds" or name.startswith("transfer") for name in others)


@stored
def test_the_plan_is_that_of_the_stored_rows():
    rows = ResultStore(STORED / RESULTS).rows()
    planned = {cell.key: cell for cell in plan("all", "full")}
    assert planned.keys() == {row["key"] for row in rows}
    for row in rows:
        cell = planned[row["key"]]
        found = (cell.label, cell.experiment, cell.curve, cell.figures)
        assert found == (row["label"], row["experiment"], "curve" in row, True)


def cell(table, column, *row):
    (found,) = [r for r in table.rows if r[: len(row)] == row]
    return found[table.columns.index(column)]


def test_a_run_that_failed_shows_its_error(make_row, facts):
    rows = [make_row(label="GAN", error="TrainingError: dead | gone"), make_row(seed=0, valid=0.5)]
    rows += [make_row(seed=1, error="MemoryError: full")]
    tables = make_tables(rows, facts, ["all"])
    at = ("Catching (simulated)", "GAN")
    assert cell(tables["table1"], "precision", *at) == "TrainingError: dead | gone"
    assert cell(tables["table1"], "valid", *at) == "–"
    assert r"TrainingError: dead \| gone |" in tables["table1"].to_markdown()
    assert cell(tables["timing"], "total, s", *at) == "TrainingError: dead | gone"
    # If another seed succeeded, its numbers are in the table, and the error is in the note.
    assert cell(tables["table1"], "valid", "Catching (simulated)", "SPARCE") == "0.50"
    assert "Failed: Catching (simulated), SPARCE, seed 1: MemoryError: full" in tables["table1"].note
