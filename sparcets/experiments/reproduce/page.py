"""The report of a reproduction: its settings, all tables and figures, and which numbers agree with the paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sparcets.arrays import is_integer
from sparcets.errors import FileFormatError
from sparcets.experiments.benchmark.published import DATASETS
from sparcets.experiments.benchmark.store import RESULTS, ResultStore
from sparcets.experiments.reproduce.agreement import DIGIT, NEAR_ZERO, NEAR_ZERO_MARGIN, OUTCOMES, SHARE
from sparcets.experiments.reproduce.differences import how_to_read
from sparcets.experiments.reproduce.figures import CAPTIONS
from sparcets.experiments.reproduce.measured import Row, Runs, compare
from sparcets.experiments.reproduce.plans import PARTS, SCALES
from sparcets.experiments.reproduce.provenance import describe, of_latest_code
from sparcets.experiments.reproduce.tables import make_tables
from sparcets.report.tables import Table
from sparcets.storage import read_json

COMPARED = "same_code.json"  # how later code compares with that of the rows
REPEATED = "repeated.jsonl"  # rows of runs that were repeated with the same seed
RUN = "reproduction.json"  # parts, scale, data sets and time of a reproduction
_ENTRIES: dict[str, Any] = {
    "scale": str,
    "repetitions": int,
    "seconds": (int, float),
    "parts": list,
    **dict.fromkeys(("datasets", "left_out", "figures_left_out"), dict),
}

SMALL = """\
**This is the small scale**: fewer series, narrower generators, a fifth of the epochs, fewer queries. It shows that
everything runs and how the methods compare; `--scale full` uses the paper's settings and needs a GPU."""

_SECTIONS = {
    "datasets": "Data",
    "table1": "The four methods",
    "targets": "Target classes",
    "ablation": "Loss terms",
    "timing": "Time",
    "saliency": "Saliency",
    "geometry": "Limbs and joints",
    "neighbours": "Realism: figure 3 in numbers",
    "places": "Places: figures 4 and 7 in numbers",
    "limbs": "Lengths: figure 6 in numbers",
    "probes": "One setting changed at a time",
}
# What agreement says depends on the data. Catching is simulated unless somebody has the recordings.
KINDS = {"motionsense": "real data", "moving_box": "synthetic, generated anew", "catching": "stands in for recordings"}
RULE = (
    f"*Equivalent*: the 90 % confidence interval (Welch) of the difference lies within {100 * SHARE:.0f} % of the "
    f"paper's number (at least {DIGIT}, half its last digit), so that two one-sided tests at 5 % reject a larger "
    "difference. The margin is the smallest gap in similarity for which the paper calls SPARCE better than CounteRGAN "
    "(0.09 against 0.12). *Different*: the 95 % interval, widened by half the last digit, does not contain 0. "
    "*Undecided*: neither; the spread over repetitions is too wide to tell. Errors that the paper reports as at most "
    f"{NEAR_ZERO} are counted apart, with a margin of {NEAR_ZERO_MARGIN}: nearly every method has them, so that "
    "agreement says little. The sparsity of methods that change every entry is not counted."
)


def make_page(
    run: Mapping[str, Any],
    rows: Sequence[Row],
    figures: Iterable[str],
    *,
    root: str = "",
    again: Sequence[Row] = (),
    compared: Mapping[str, Any] | None = None,
) -> str:
    """Return the report as Markdown.

    Parameters
    ----------
    run
        Content of the file ``reproduction.json``, see :func:`read_run`.
    rows
        Rows of the results.
    figures
        Names of the figures that exist.
    root
        Path of the folder of results relative to the page; ends with a slash unless empty.
    again
        Rows of runs that were repeated with the same seed, to see whether they give the same numbers.
    compared
        How later code compares with that of the rows, see :func:`~.provenance.same_code`.
    """
    lines = [
        "# The paper, run again",
        "",
        describe(run, rows, again, compared),
        "",
        SMALL if run["scale"] == "small" else "",
    ]
    for name, why in run["left_out"].items():
        lines += ["", f"**{DATASETS[name].title} is left out**: {why}"]
    for stem, table in make_tables(rows, run["datasets"], run["parts"]).items():
        lines += ["", f"## {_SECTIONS[stem]}", "", table.to_markdown(), "", _files(stem, table, root)]
        if stem == "table1":
            lines += ["", "### Agreement with the paper", "", *_agreement(Runs(rows), run)]
            lines += ["", how_to_read(Runs(rows))] if run["scale"] == "full" else []
    drawn = set(figures)
    shown = [stem for stem in CAPTIONS if stem in drawn]
    lines += ["", "## Figures"] if shown else []
    for stem in shown:
        lines += ["", f"![{stem}]({root}figures/{stem}.png)", "", CAPTIONS[stem]]
    for stem, why in run["figures_left_out"].items():
        lines += ["", f"{stem} is left out: {why}"]
    return "\n".join(_single_blank_lines(lines)) + "\n"


def read_run(folder: Path) -> dict[str, Any]:
    """Return settings and data sets of the reproduction in a folder; earlier versions called the parts ``asked``."""
    stored = read_json(folder / RUN, "a reproduction")
    entries = stored.items() if isinstance(stored, dict) else ()
    run = {("parts" if name == "asked" else name): value for name, value in entries}
    wrong = [name for name, kind in _ENTRIES.items() if not isinstance(run.get(name), kind)]
    wrong = wrong or [name for name in ("datasets", "left_out") if not DATASETS.keys() >= run[name].keys()]
    if not wrong:
        fine = {"scale": run["scale"] in SCALES, "seed": _is_seed(run), "repetitions": run["repetitions"] >= 1}
        wrong = [name for name, is_fine in fine.items() if not is_fine]
    if wrong or not all(part in PARTS for part in run["parts"]):
        raise FileFormatError(
            f"{folder / RUN} is damaged: its entry {(wrong or ['parts'])[0]!r} is missing or wrong. Restore it from a "
            "copy, or choose another folder."
        )
    return run


def _is_seed(run: Mapping[str, Any]) -> bool:
    """Return whether the first seed of a run is a number; earlier versions stored none."""
    return run.get("seed") is None or is_integer(run["seed"])


def folder_page(folder: Path, *, root: str = "") -> str:
    """Return the report of a folder of stored results."""
    run = read_run(folder)
    figures = sorted(path.stem for path in (folder / "figures").glob("*.png"))
    again = ResultStore(folder / REPEATED).rows()
    path = folder / COMPARED
    compared = read_json(path, "a comparison") if path.exists() else None
    return make_page(run, folder_rows(folder), figures, root=root, again=again, compared=compared)


def folder_rows(folder: Path) -> list[Row]:
    """Return the stored rows of a folder, of its latest code."""
    return of_latest_code(ResultStore(folder / RESULTS).rows())


def save_tables(folder: Path) -> None:
    """Write the tables of the stored results of a folder into its folder ``tables``."""
    run = read_run(folder)
    for stem, table in make_tables(folder_rows(folder), run["datasets"], run["parts"]).items():
        table.save(folder / "tables", stem)


def _files(stem: str, table: Table, root: str) -> str:
    return f"[CSV]({root}tables/{stem}.csv) · [LaTeX]({root}tables/{stem}.tex)" if table.rows else ""


def _agreement(runs: Runs, run: Mapping[str, Any]) -> list[str]:
    """Return lines that count, for each kind of data, how our numbers compare with the paper's, and list them."""
    found = {name: compare(runs, name) for name in KINDS if name in run["datasets"]}
    if not any(found.values()):
        return ["Nothing to compare yet: both sides need repetitions."]
    lines = [RULE, "", f"| data | numbers | {' | '.join(OUTCOMES)} |", f"|---|---|{'---|' * len(OUTCOMES)}"]
    for name, of_set in found.items():
        for apart, what in ((False, "similarity, sparsity, smoothness, errors"), (True, "errors near zero")):
            counted = Counter(c.outcome for c in of_set if c.near_zero is apart)
            title = run["datasets"][name]["title"]
            kind = "real data" if title == "Catching" else KINDS[name]
            lines.append(f"| {title}, {kind} | {what} | {' | '.join(str(counted[outcome]) for outcome in OUTCOMES)} |")
    for name, of_set in found.items():
        lines += ["", f"**{run['datasets'][name]['title']}**, ours against the paper's:", ""]
        for outcome in OUTCOMES:
            numbers = [f"{c.method} {c.measure} {c.ours} against {c.papers}" for c in of_set if c.outcome == outcome]
            lines += [f"- {outcome}: {'; '.join(numbers)}"] if numbers else []
    return lines


def _single_blank_lines(lines: Iterable[str]) -> list[str]:
    kept: list[str] = []
    for line in lines:
        if line or (kept and kept[-1]):
            kept.append(line)
    return kept
