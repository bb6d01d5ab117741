"""docs/comparison.md: the tables of the stored rows; rows by judges of several families are never mixed with others."""

import runpy
from pathlib import Path
from typing import Any

import pytest

from sparcets.evaluation.families import FAMILIES

ROOT = Path(__file__).parents[1]
FILES = ("flagship/results.jsonl", "flagship/ablation.jsonl", "reproduction/results.jsonl", "peers.jsonl")


@pytest.fixture
def script() -> dict[str, Any]:
    """Return the names of docs/comparison.py, which reads its rows once and draws nothing."""
    names = runpy.run_path(str(ROOT / "docs" / "comparison.py"))
    rows = {name: names["read"](name) for name in FILES}
    changed = {"figure": lambda dataset, of_set: None, "read": rows.__getitem__}
    names["comparison_tables"].__globals__.update(changed)
    return names | {"rows": rows}


def table(text: str, title: str) -> list[list[str]]:
    """Return the cells of all table rows below a title."""
    lines = text.partition(f"### {title}")[2].partition("\n### ")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]


def measured_by_families(row: dict[str, Any]) -> None:
    row["measures"] |= {f"transfer_{name}": i / 10 for i, name in enumerate(FAMILIES)}
    row["measures"] |= {"transfer": 0.25, "transfer_unseen": 0.35, "sparsity": 0.15, "knn_ratio": 1.1, "valid": 0.95}


def test_the_page_has_the_tables_of_the_stored_rows(script: dict[str, Any]) -> None:
    page = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
    lines = [line for line in script["comparison_tables"]().splitlines() if line.startswith("|")]
    lines += script["ablation_table"]().splitlines()
    assert len(lines) > 40 and set(lines) <= set(page.splitlines()), "run: make docs"


def test_rows_by_families_stand_alone_and_have_a_column_per_judge(script: dict[str, Any]) -> None:
    title, others = script["SETS"]["motionsense"], script["SETS"]["moving_box"]
    for row in (row for rows in script["rows"].values() for row in rows if row["dataset"] == "motionsense"):
        for family in FAMILIES:  # as if all had been measured by networks
            row["measures"].pop(f"transfer_{family}", None)
    before = table(script["comparison_tables"](), others)
    (row, *_) = [r for r in script["rows"]["reproduction/results.jsonl"] if r["dataset"] == "motionsense"]
    measured_by_families(row)
    text = script["comparison_tables"]()
    first, one, heads, judged = table(text, title)
    assert first[:5] == ["target", "method", "runs", "valid", "transfer"] and one[2:5] == ["1", "0.95", "0.25"]
    expected = "changed neural convolutions quantiles intervals distances statistics mean unseen 5-NN valid"
    assert heads == ["target", "method", *expected.split()]
    assert judged[2:] == "0.15 0.00 0.10 0.20 0.30 0.40 0.50 0.25 0.35 1.10 0.95".split()
    assert judged[:2] == one[:2] == [row["target"], row["label"]]
    assert table(text, others) == before  # nothing changed there


def test_the_ablation_is_not_mixed_either(script: dict[str, Any]) -> None:
    for name in ("flagship/ablation.jsonl", "flagship/results.jsonl"):
        for row in script["rows"][name]:  # as if all had been measured by networks
            for family in FAMILIES:
                row["measures"].pop(f"transfer_{family}", None)
    before = script["ablation_table"]()
    ablated = [row for row in script["rows"]["flagship/ablation.jsonl"] if row["dataset"] == "catching"]
    measured_by_families(ablated[0])
    lines = script["ablation_table"]().splitlines()
    assert [line for line in lines if line.startswith("| catching |")] == [lines[2]]
    assert ablated[0]["label"] in lines[2] and before.count("| catching |") > 2
    assert [x for x in lines if "basic_motions" in x] == [x for x in before.splitlines() if "basic_motions" in x]
