"""Tables in Markdown and CSV."""

import csv
import io

from sparcets_paper.table import Table

TABLE = Table(
    "Runs at 50 %",
    ("run_id", "sparsity, share"),
    (("a|b", "**0.21 ± 0.03** / 0.40 ± 0.06"), ("λ4 & λ5", "–"), ('say "no"', "`#1` {x}")),
    note="Lower is better.",
)


def test_markdown_by_hand():
    assert TABLE.to_markdown().splitlines() == [
        "### Runs at 50 %",
        "",
        "| run_id | sparsity, share |",
        "|---|---|",
        r"| a\|b | **0.21 ± 0.03** / 0.40 ± 0.06 |",
        "| λ4 & λ5 | – |",
        '| say "no" | `#1` {x} |',
        "",
        "Lower is better.",
    ]


def test_csv_can_be_read_back():
    rows = list(csv.reader(io.StringIO(TABLE.to_csv())))
    assert rows == [
        ["run_id", "sparsity, share"],
        ["a|b", "0.21 ± 0.03 / 0.40 ± 0.06"],
        ["λ4 & λ5", "–"],
        ['say "no"', "#1 {x}"],
    ]


def test_save_writes_both(tmp_path):
    paths = TABLE.save(tmp_path / "tables", "runs")
    assert [p.name for p in paths] == ["runs.md", "runs.csv"]
    assert paths[0].read_text(encoding="utf-8") == TABLE.to_markdown() + "\n"
    assert sorted(p.name for p in (tmp_path / "tables").iterdir()) == ["runs.csv", "runs.md"]
