"""The report of a reproduction: what was run, every table and figure, and what agrees with the paper."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sparcets.benchmark.published import DATASETS
from sparcets.benchmark.store import RESULTS, ResultStore
from sparcets.report.tables import Table
from sparcets.reproduce.figures import CAPTIONS
from sparcets.reproduce.measured import Row, Runs, Verdict, verdicts
from sparcets.reproduce.tables import make_tables
from sparcets.storage import read_json

RUN = "reproduction.json"  # what was asked for, of which data, and how long it took


SMALL = """\
**This is the small scale**: fewer series, narrower generators, a fifth of the epochs, fewer queries. It shows that
everything runs and how the methods compare; the paper's own numbers are for `--scale full`, which wants a GPU."""

FULL = """\
### How to read the differences

- **ICS.** How the paper raises λ and how it normalises the L1 is not stated. Ours takes 100 steps for each of up to ten
  values of λ and doubles λ for queries that are not valid yet, and so it converges. The paper's similarities, 1.32 to
  1.66, are near the distance of the starting noise from the query (uniform between its smallest and largest value: 1.7
  on Moving Box, 2.0 on MotionSense, 1.2 on simulated Catching), and its precision of 0.99 on Moving Box says that
  hardly any query changed class there: its search seems to have ended close to where it began.
- **Sparsity on MotionSense.** The paper does not state how it scales the data; we standardise every feature on the
  training part. In the data's own units, with nothing else changed, SPARCE's sparsity falls to 0.41 and 0.42 (two
  seeds), within the paper's 2 std, and universality rises to 0.93 and 0.80: nearly one perturbation for all queries
  (`results/probes.jsonl`).
- **Similarity on Moving Box.** The paper's adversarial training does not settle within 100 epochs: similarity and
  sparsity wander from epoch to epoch, and a number is that of the epoch at which one stops. Run on to 260 epochs (one
  seed, `results/probes.jsonl`), SPARCE ends at similarity 0.36, within the paper's 2 std, but at sparsity 0.45 and
  smoothness 0.026, outside; more of its answers are true by then (oracle 0.42). The paper's times also suggest more
  updates on this set than 100 epochs: 53 times as long as Catching, for 13 times as many. The perfect counterfactual
  is known here, shift the box and nothing else: similarity 0.31, sparsity 0.16, smoothness 0.007, universality 0.23
  and an oracle of 1.
- **Precision.** Where the paper has 0.00 ± 0.00, ours may be a handful of queries. The published code tests on queries
  cut to the number of targets; we test on all of them.
- **Catching.** The paper's recordings are private and ours are simulated: these rows show whether the methods behave
  alike, not whether a number is reproduced.
- **The sparsity term** of the paper has no gradient in the published code and cannot have trained anything; the rows
  "with a gradient" of the table of loss terms show what it does when it can: it changes fewer entries on every set, at
  a price that depends on the set (on Catching the answers are rougher and further from real series).

### Valid is not yet true

Valid is what the explained classifier says. *Transfer* asks classifiers that nobody tried to convince, the *oracle*
asks the process that made the data. All four methods convince the classifier they explain nearly always. On Catching
and MotionSense other classifiers follow them less often, SPARCE in a quarter and in two thirds of the cases. On Moving
Box most follow, and yet the generating process puts next to none of the answers into the class they claim: classifiers
that learnt from the same data can share a blind spot, so transfer is necessary and not sufficient. Such a change moves
classifiers and not the class, however sparse and smooth it is, and none of the paper's four measures can tell."""

_SECTIONS = {
    "datasets": "Data",
    "table1": "The four methods",
    "targets": "Target classes",
    "ablation": "Loss terms",
    "timing": "Time",
    "saliency": "Saliency",
    "geometry": "Bodies",
}


def make_page(run: Mapping[str, Any], rows: Sequence[Row], figures: Iterable[str], *, root: str = "") -> str:
    """Return the report as Markdown.

    Parameters
    ----------
    run
        What :func:`~sparcets.reproduce.run.reproduce` wrote about itself.
    rows
        Rows of the results.
    figures
        Names of the figures that are there.
    root
        Where the folder of the results lies, seen from the page; ends with a slash unless empty.
    """
    lines = ["# The paper, reproduced", "", _about(run, rows), "", SMALL if run["scale"] == "small" else ""]
    for name, why in run["left_out"].items():
        lines += ["", f"**{DATASETS[name].title} is left out**: {why}"]
    for stem, table in make_tables(rows, run["datasets"], run["asked"]).items():
        lines += ["", f"## {_SECTIONS[stem]}", "", table.to_markdown(), "", _files(stem, table, root)]
        if stem == "table1":
            lines += ["", "### What agrees with the paper", "", *_agreement(Runs(rows), run)]
            lines += ["", FULL] if run["scale"] == "full" else []
    there = set(figures)
    shown = [stem for stem in CAPTIONS if stem in there]
    if shown:
        lines += ["", "## Figures"]
    for stem in shown:
        lines += ["", f"![{stem}]({root}figures/{stem}.png)", "", CAPTIONS[stem]]
    for stem, why in run["figures_left_out"].items():
        lines += ["", f"{stem} is left out: {why}"]
    return "\n".join(_without_doubled_blanks(lines)) + "\n"


def folder_page(folder: Path, *, root: str = "") -> str:
    """Return the report of a folder of results, from what is stored in it."""
    run = read_json(folder / RUN, "a reproduction")
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
        f"{run['repetitions']} repetition{'s' if run['repetitions'] > 1 else ''} (the column *runs* says how many "
        f"there are so far), on {devices}. {len(rows)} runs{f', {failed} of which failed' if failed else ''} in "
        f"{_duration(run['seconds'])}; one after the other, training and answering would have taken about "
        f"{_duration(work)}. Written by `sparcets reproduce`."
    )


def _duration(seconds: float) -> str:
    """Write a time as people say it.

    >>> _duration(42), _duration(600), _duration(9000)
    ('42 s', '10 min', '2.5 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _files(stem: str, table: Table, root: str) -> str:
    return f"[CSV]({root}tables/{stem}.csv) · [LaTeX]({root}tables/{stem}.tex)" if table.rows else ""


def _agreement(runs: Runs, run: Mapping[str, Any]) -> list[str]:
    """Say in a line, and for each data set, which of our numbers are the paper's as far as both spreads can tell."""
    found = {name: verdicts(runs, name) for name in run["datasets"]}
    told = [verdict for of_set in found.values() for verdict in of_set]
    if not told:
        return ["Nothing to compare yet."]
    within = sum(verdict.agrees for verdict in told)
    without_ics = [verdict for verdict in told if verdict.method != "ICS"]
    lines = [
        f"{within} of {len(told)} numbers agree ({sum(v.agrees for v in without_ics)} of {len(without_ics)} without "
        "ICS, whose search is not fully described); the sparsity of methods that change every entry is not counted.",
        "",
    ]
    for name, facts in run["datasets"].items():
        alike = [verdict for verdict in found[name] if verdict.agrees]
        other = [verdict for verdict in found[name] if not verdict.agrees]
        if not found[name]:
            continue
        lines.append(f"- **{facts['title']}**: {len(alike)} of {len(found[name])} numbers agree.")
        if alike:
            lines.append(f"  - agree: {'; '.join(_by_method(alike))}")
        if other:
            differing = (f"{v.method} {v.measure} {v.ours} against {v.papers}" for v in other)
            lines.append(f"  - differ: {'; '.join(differing)}")
    return lines


def _by_method(found: Iterable[Verdict]) -> list[str]:
    measures: dict[str, list[str]] = {}
    for verdict in found:
        measures.setdefault(verdict.method, []).append(verdict.measure)
    return [f"{method} {', '.join(names)}" for method, names in measures.items()]


def _without_doubled_blanks(lines: Iterable[str]) -> list[str]:
    kept: list[str] = []
    for line in lines:
        if line or (kept and kept[-1]):
            kept.append(line)
    return kept
