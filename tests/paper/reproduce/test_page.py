"""The report: settings, agreement with the paper, and links to files that exist."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from sparcets.core.errors import FileFormatError
from sparcets_paper.benchmark.store import ResultStore
from sparcets_paper.reproduce.page import RESULTS, RUN, folder_page, make_page, read_run


@pytest.fixture
def run(facts) -> dict[str, Any]:
    return {
        "scale": "full",
        "seed": 0,
        "repetitions": 2,
        "parts": ["table1"],
        "datasets": {"catching": facts["catching"]},
        "left_out": {"motionsense": "it is not here."},
        "figures_left_out": {"figure6": "no arms."},
        "seconds": 600.0,
    }


@pytest.fixture
def rows(make_row) -> list[dict[str, Any]]:
    def gan(seed: int) -> dict[str, float]:
        return {"precision_index": 0.0, "similarity_all": 0.22, "sparsity_all": 1.0, "smoothness_all": 0.9 + seed / 99}

    return [*(make_row(label="GAN", seed=s, **gan(s)) for s in (0, 1)), make_row(label="ICS", error="ValueError: no")]


def test_agreement_with_the_paper(run, rows) -> None:
    page = make_page(run, rows, [])
    title = "Catching (simulated), stands in for recordings"
    assert f"| {title} | similarity, sparsity, smoothness, errors | 1 | 1 | 0 |" in page
    assert f"| {title} | errors near zero | 1 | 0 | 0 |" in page
    assert "- equivalent: GAN precision 0.000 ± 0.000 against 0.00 ± 0.00; GAN similarity" in page
    assert "- different: GAN smoothness 0.91 ± 0.01 against 0.07 ± 0.01\n" in page  # sparsity is 1 by construction
    assert "- undecided" not in page


def test_differences_have_the_numbers_of_the_rows(run, rows, make_row) -> None:
    assert "own units" not in make_page(run, rows, [])  # nothing to say without rows
    found = [
        make_row("motionsense", "SPARCE, own units", seed=s, sparsity_all=0.5 + s / 10, similarity_all=0.25)
        | {"measures": {**dict.fromkeys(("precision_index", "smoothness_all"), 0.1), "similarity_all": 0.25}}
        for s in (0, 1)
    ]
    for row, sparsity in zip(found, (0.5, 0.6), strict=True):
        row["measures"] |= {"sparsity_all": sparsity, "universality": 0.75}
    page = make_page(run, [*rows, *found], [])
    assert "SPARCE changes 0.55 ± 0.07 of the entries, against 0.22 ± 0.14 in the paper (" in page
    assert "  | 1 | 0.10 | 0.25 | 0.60 | 0.10 | 0.75 |" in page


def test_runs_made_twice_and_judges_trained_twice_are_told(run, rows) -> None:
    assert "made twice" not in make_page(run, rows, []) and "judges, one of them" not in make_page(run, rows, [])
    row = next(row for row in rows if "error" not in row)
    again = {**row, "measures": {**row["measures"], "similarity_all": 2.0}}
    judged = [{**row, "judges": {"neural": accuracy}} for accuracy in (0.9, 0.95)]
    page = make_page(run, [*judged, *rows], [], again=[again])
    n = len(row["measures"])
    assert f"1 run was made twice, with the same seed: {n - 1} of {n} numbers are the same to all digits; " in page
    assert "others: similarity_all." in page and "Accuracies: neural on Catching 0.900, 0.950." in page


def test_the_run_is_described(run, rows) -> None:
    page = make_page(run, rows, [])
    assert "run again with sparcets 9.9: scale full, up to 2 repetitions (" in page
    assert "on cpu. 3 runs, 1 of which failed in 10 min; one after the other" in page
    assert "**MotionSense is left out**: it is not here." in page
    assert "figure6 is left out: no arms." in page
    assert "ValueError: no" in page


def test_the_text_goes_with_the_scale(run, rows) -> None:
    assert "How to read the differences" in make_page(run, rows, [])
    small = make_page({**run, "scale": "small"}, rows, [])
    assert "How to read the differences" not in small and "This is the small scale" in small


def test_links_are_relative_to_the_page(run, rows) -> None:
    page = make_page(run, rows, ["figure5", "figure1", "unknown"], root="../results/")
    assert re.findall(r"\]\(([^)]+)\)", page) == [
        "../results/tables/datasets.csv",
        "../results/tables/datasets.tex",
        "../results/tables/table1.csv",
        "../results/tables/table1.tex",
        "../results/figures/figure1.png",
        "../results/figures/figure5.png",
    ]
    assert "\n\n\n" not in page


def test_a_page_from_a_folder(run, rows, tmp_path: Path) -> None:
    (tmp_path / RUN).write_text(json.dumps(run))
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "figure2.png").touch()
    store = ResultStore(tmp_path / RESULTS)
    for row in rows:
        store.append(row)
    assert folder_page(tmp_path, root="there/") == make_page(run, rows, ["figure2"], root="there/")


@pytest.mark.parametrize(
    ("entry", "value"),
    [("datasets", []), ("datasets", {"mnist": {}}), ("parts", ["table7"]), ("seconds", "long"), ("left_out", None)],
)
def test_a_damaged_reproduction(entry: str, value: Any, run, tmp_path: Path) -> None:
    (tmp_path / RUN).write_text(json.dumps({**run, entry: value}))
    with pytest.raises(FileFormatError, match=rf"{RUN} is damaged: its entry '{entry}' is missing or wrong"):
        read_run(tmp_path)
