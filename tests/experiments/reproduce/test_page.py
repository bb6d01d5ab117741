"""The report: settings, agreement with the paper, and links to files that exist."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from sparcets.errors import FileFormatError
from sparcets.experiments.benchmark.store import ResultStore
from sparcets.experiments.reproduce.page import RESULTS, RUN, folder_page, make_page, read_run


@pytest.fixture
def run(facts) -> dict[str, Any]:
    return {
        "scale": "full",
        "repetitions": 2,
        "parts": ["table1"],
        "datasets": {"catching": facts["catching"]},
        "left_out": {"motionsense": "it is not here."},
        "figures_left_out": {"figure6": "no arms."},
        "seconds": 600.0,
    }


@pytest.fixture
def rows(make_row) -> list[dict[str, Any]]:
    good = {"precision_index": 0.0, "similarity_all": 0.22, "sparsity_all": 1.0, "smoothness_all": 0.9}
    return [make_row(label="GAN", **good), make_row(label="ICS", error="ValueError: no")]


def test_agreement_with_the_paper(run, rows) -> None:
    page = make_page(run, rows, [])
    assert "2 of 3 numbers agree (2 of 3 without ICS" in page
    assert "- **Catching (simulated)**: 2 of 3 numbers agree." in page
    assert "  - agree: GAN precision, similarity\n" in page  # its sparsity is 1 by construction
    assert "  - differ: GAN smoothness 0.90 against 0.07 ± 0.01" in page


def test_the_run_is_described(run, rows) -> None:
    page = make_page(run, rows, [])
    assert "run again with sparcets 9.9: scale full, up to 2 repetitions (" in page
    assert "on cpu. 2 runs, 1 of which failed in 10 min; one after the other" in page
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


@pytest.mark.parametrize("name", ["parts", "asked"])  # the second in files of earlier versions
def test_a_page_from_a_folder(name: str, run, rows, tmp_path: Path) -> None:
    stored = {(name if key == "parts" else key): value for key, value in run.items()}
    (tmp_path / RUN).write_text(json.dumps(stored))
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
