"""The report of a reproduction: its settings, all tables and figures, and which numbers agree with the paper."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sparcets.errors import FileFormatError
from sparcets.experiments.benchmark.published import DATASETS
from sparcets.experiments.benchmark.store import RESULTS, ResultStore
from sparcets.experiments.reproduce.figures import CAPTIONS
from sparcets.experiments.reproduce.measured import Comparison, Row, Runs, compare
from sparcets.experiments.reproduce.plans import PARTS
from sparcets.experiments.reproduce.tables import make_tables
from sparcets.report.tables import Table
from sparcets.storage import read_json

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

FULL = """\
### How to read the differences

- **ICS.** How the paper raises λ and how it normalises the L1 is not stated. Ours takes 100 steps for each of up to ten
  values of λ and doubles λ for queries that are not valid yet, and so it converges. The paper's similarities, 1.32 to
  1.66, are near the distance of the starting noise from the query (uniform between its smallest and largest value: 1.7
  on Moving Box, 2.0 on MotionSense, 1.2 on simulated Catching), and its precision of 0.99 on Moving Box means that
  hardly any query changed class there: its search seems to have ended close to its start.
- **Sparsity on MotionSense.** The paper does not state how it scales the data; we standardise every feature on the
  training part. In the data's own units, with nothing else changed, SPARCE's sparsity falls to 0.41 and 0.42 (two
  seeds), within the paper's 2 std, and universality rises to 0.93 and 0.80: nearly one perturbation for all queries
  (`results/probes.jsonl`).
- **Similarity on Moving Box.** The paper's adversarial training does not settle within 100 epochs: similarity and
  sparsity vary from epoch to epoch, so the numbers depend on the epoch at which the training stops. After 260 epochs
  (one seed, `results/probes.jsonl`), SPARCE has a similarity of 0.36, within the paper's 2 std, but a sparsity of 0.45
  and a smoothness of 0.026, outside; more of its answers are true then (oracle 0.42). The paper's times also suggest
  more updates on this set than 100 epochs: 53 times as long as Catching, for 13 times as many. The perfect
  counterfactual is known here, shifting the box and nothing else: similarity 0.31, sparsity 0.16, smoothness 0.007,
  universality 0.23 and an oracle of 1.
- **Precision.** Where the paper has 0.00 ± 0.00, a few of our queries may fail. The published code tests on as many
  queries as there are series of the target class; we test on all of them.
- **Catching.** The paper's recordings are private and ours are simulated: these rows show whether the methods behave
  similarly, not whether a number is reproduced.
- **The sparsity term** of the paper has no gradient in the published code and cannot have trained anything; the rows
  "with a gradient" of the table of loss terms show its effect with one: fewer changed entries on every set, at a cost
  that depends on the set (on Catching the answers are less smooth and further from real series).

### Valid answers are not necessarily true

*Valid* is the prediction of the explained classifier, *transfer* that of classifiers the methods were not trained
against, and the *oracle* is the process that generated the data. With all four methods the explained classifier
predicts the target nearly always. On Catching and MotionSense other classifiers agree less often, for SPARCE in a
quarter and in two thirds of the cases. On Moving Box most of them agree, but the generating process assigns almost none
of the answers to the target: classifiers trained on the same data can have the same weakness, so transfer is necessary
but not sufficient. Such a change moves the classifiers and not the class, however sparse and smooth it is, and none of
the paper's four measures shows that."""

_SECTIONS = {
    "datasets": "Data",
    "table1": "The four methods",
    "targets": "Target classes",
    "ablation": "Loss terms",
    "timing": "Time",
    "saliency": "Saliency",
    "geometry": "Limbs and joints",
}


def make_page(run: Mapping[str, Any], rows: Sequence[Row], figures: Iterable[str], *, root: str = "") -> str:
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
    """
    lines = ["# The paper, reproduced", "", _about(run, rows), "", SMALL if run["scale"] == "small" else ""]
    for name, why in run["left_out"].items():
        lines += ["", f"**{DATASETS[name].title} is left out**: {why}"]
    for stem, table in make_tables(rows, run["datasets"], run["parts"]).items():
        lines += ["", f"## {_SECTIONS[stem]}", "", table.to_markdown(), "", _files(stem, table, root)]
        if stem == "table1":
            lines += ["", "### Agreement with the paper", "", *_agreement(Runs(rows), run)]
            lines += ["", FULL] if run["scale"] == "full" else []
    drawn = set(figures)
    shown = [stem for stem in CAPTIONS if stem in drawn]
    if shown:
        lines += ["", "## Figures"]
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
    if wrong or not all(part in PARTS for part in run["parts"]):
        raise FileFormatError(
            f"{folder / RUN} is damaged: its entry {(wrong or ['parts'])[0]!r} is missing or wrong. Restore it from a "
            "copy, or choose another folder."
        )
    return run


def folder_page(folder: Path, *, root: str = "") -> str:
    """Return the report of a folder of stored results."""
    run = read_run(folder)
    figures = sorted(path.stem for path in (folder / "figures").glob("*.png"))
    return make_page(run, ResultStore(folder / RESULTS).rows(), figures, root=root)


def _about(run: Mapping[str, Any], rows: Sequence[Row]) -> str:
    finished = [row for row in rows if not row.get("error")]
    failed = len(rows) - len(finished)
    devices = ", ".join(sorted({str(row.get("device")) for row in finished})) or "no device yet"
    work = sum(float(row.get("fit_s") or 0) + float(row.get("explain_s") or 0) for row in finished)
    versions = sorted({str((row.get("versions") or {}).get("sparcets")) for row in finished})
    return (
        f"Lang, Giese, Ilg and Otte (2022), *Generating Sparse Counterfactual Explanations For Multivariate Time "
        f"Series*, run again with sparcets {', '.join(versions) or '?'}: scale {run['scale']}, up to "
        f"{run['repetitions']} repetition{'s' if run['repetitions'] > 1 else ''} (the column *runs* counts those "
        f"finished), on {devices}. {len(rows)} runs{f', {failed} of which failed' if failed else ''} in "
        f"{_duration(run['seconds'])}; one after the other, training and explaining take about {_duration(work)}. "
        "Written by `sparcets reproduce`."
    )


def _duration(seconds: float) -> str:
    """Format a time in seconds, minutes or hours.

    >>> _duration(42), _duration(600), _duration(9000)
    ('42 s', '10 min', '2.5 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _files(stem: str, table: Table, root: str) -> str:
    return f"[CSV]({root}tables/{stem}.csv) · [LaTeX]({root}tables/{stem}.tex)" if table.rows else ""


def _agreement(runs: Runs, run: Mapping[str, Any]) -> list[str]:
    """Return lines that list, in total and for each data set, which of our numbers agree with the paper's."""
    found = {name: compare(runs, name) for name in run["datasets"]}
    compared = [comparison for of_set in found.values() for comparison in of_set]
    if not compared:
        return ["Nothing to compare yet."]
    agreeing = sum(comparison.agrees for comparison in compared)
    without_ics = [comparison for comparison in compared if comparison.method != "ICS"]
    lines = [
        f"{agreeing} of {len(compared)} numbers agree ({sum(c.agrees for c in without_ics)} of {len(without_ics)} "
        "without ICS, whose search is not fully described); the sparsity of methods that change every entry is not "
        "counted.",
        "",
    ]
    for name, facts in run["datasets"].items():
        agree = [comparison for comparison in found[name] if comparison.agrees]
        differ = [comparison for comparison in found[name] if not comparison.agrees]
        if not found[name]:
            continue
        lines.append(f"- **{facts['title']}**: {len(agree)} of {len(found[name])} numbers agree.")
        if agree:
            lines.append(f"  - agree: {'; '.join(_by_method(agree))}")
        if differ:
            numbers = (f"{c.method} {c.measure} {c.ours} against {c.papers}" for c in differ)
            lines.append(f"  - differ: {'; '.join(numbers)}")
    return lines


def _by_method(found: Iterable[Comparison]) -> list[str]:
    measures: dict[str, list[str]] = {}
    for comparison in found:
        measures.setdefault(comparison.method, []).append(comparison.measure)
    return [f"{method} {', '.join(names)}" for method, names in measures.items()]


def _single_blank_lines(lines: Iterable[str]) -> list[str]:
    kept: list[str] = []
    for line in lines:
        if line or (kept and kept[-1]):
            kept.append(line)
    return kept
