"""The report of a reproduction: its settings, all tables and figures, and which numbers agree with the paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sparcets.core.errors import FileFormatError
from sparcets.io.files import read_json
from sparcets.io.folders import inside
from sparcets_paper.benchmark.published import DATASETS, METHODS, TABLE1
from sparcets_paper.benchmark.store import RESULTS, ResultStore
from sparcets_paper.reproduce.agreement import (
    DENSE,
    DIGIT,
    NEAR_ZERO,
    NEAR_ZERO_MARGIN,
    OUTCOMES,
    ROW_MEASURES,
    SHARE,
    Row,
    Runs,
    agreement,
    compare,
    number,
    reported,
)
from sparcets_paper.reproduce.figures import CAPTIONS
from sparcets_paper.reproduce.plans import LONGER, PARTS, SCALES, TRAINED
from sparcets_paper.reproduce.provenance import describe, of_latest_code
from sparcets_paper.reproduce.tables import make_tables
from sparcets_paper.table import Table

PUBLISHED_SEARCH = "ICS, published search"
OWN_UNITS = "SPARCE, own units"
SIGMOID = "SPARCE, sigmoid classifier"
GANS = tuple(method for method in METHODS if method != "ics")


def how_to_read(runs: Runs) -> str:
    """Return the section on differences as Markdown; items without rows are left out."""
    found = (_ics(runs), _scaling(runs), _similarity(runs), _sigmoid(runs), *CHOICES, _gradient(runs))
    return "\n".join(["### How to read the differences", "", *filter(None, found), "", _truth(runs)]).rstrip()


def _with_table(text: str, head: Sequence[str], rows: Iterable[Sequence[str]], indent: str = "  ") -> str:
    """Return a paragraph with a table below it; nothing if there are no rows."""
    lines = [f"{indent}| {' | '.join(row)} |" for row in rows]
    rule = f"{indent}|{'---|' * len(head)}"
    return "\n".join([text, "", f"{indent}| {' | '.join(head)} |", rule, *lines, *[""] * bool(indent)]) if lines else ""


def _values(runs: Runs, dataset: str, label: str, measure: str) -> list[float]:
    return runs.of(dataset, label).values(ROW_MEASURES.get(measure, measure))


def _ics(runs: Runs) -> str:
    rows = []
    for name, described in DATASETS.items():
        cells = [
            f"{number(_values(runs, name, 'ICS', m))} · {number(_values(runs, name, PUBLISHED_SEARCH, m))} · "
            f"{reported(TABLE1[name]['ics'][m])}"
            for m in ("precision", "similarity", "smoothness")
        ]
        if runs.of(name, PUBLISHED_SEARCH).finished:
            rows.append([described.title, *cells])
    text = (
        "- **ICS.** The paper gives 100 steps and at most ten values of λ from 1.0 on, but neither how λ grows nor how "
        "the L1 is normalised. Ours takes 100 steps for each λ and doubles λ for the queries that are not valid yet. "
        "The search settings that the authors published are others: 10 iterations, and five values of λ in steps of "
        "0.001. Neither gives the paper's numbers (ours · with the published settings · the paper's):"
    )
    return _with_table(text, ("data", "precision", "similarity", "smoothness"), rows)


def _scaling(runs: Runs) -> str:
    group = runs.of("motionsense", OWN_UNITS)
    names = {**ROW_MEASURES, "universality": "universality"}
    rows = [[str(row["seed"]), *(number([row["measures"][name]]) for name in names.values())] for row in group.finished]
    papers = TABLE1["motionsense"]["sparce"]["sparsity"]
    text = (
        "- **Scaling, on MotionSense.** The paper does not say how the data are scaled; we standardise every feature "
        "on the training part. In the data's own units, with nothing else changed, SPARCE changes "
        f"{number(group.values('sparsity_all'))} of the entries, against {reported(papers)} in the paper "
        f"({agreement(group.values('sparsity_all'), papers)}) and "
        f"{number(_values(runs, 'motionsense', 'SPARCE', 'sparsity'))} standardised: scaling alone does not explain "
        "the difference. By seed, similarity and smoothness in the data's own units:"
    )
    return _with_table(text, ("seed", *names), rows)


def _similarity(runs: Runs) -> str:
    rows = []
    for method in GANS:
        title, papers = METHODS[method], TABLE1["moving_box"][method]["similarity"]
        longer = f"{title}, {LONGER} epochs"
        cells = []
        for label in (title, longer):
            values = _values(runs, "moving_box", label, "similarity")
            share = f" ({sum(values) / len(values) / papers.mean:.2f} of the paper's)" if values else ""
            cells.append(f"{number(values)}{share}")
        sparsity = "–" if method in DENSE else number(_values(runs, "moving_box", longer, "sparsity"))
        late = [v for row in runs.of("moving_box", longer).finished for v in row["course"]["similarity"][5:]]
        moved = f"{min(late):.2f} to {max(late):.2f}" if late else "–"
        rows.append([title, reported(papers), *cells, sparsity, moved])
    if not any(_values(runs, "moving_box", f"{METHODS[method]}, {LONGER} epochs", "similarity") for method in GANS):
        return ""
    text = (
        "- **Similarity on Moving Box.** All three adversarial methods stay nearer to the query than in the paper. "
        f"Trainings of {LONGER} epochs, three times the paper's, with two seeds each, do not close the gap; within one "
        "training similarity goes up and down, so a number depends on the epoch at which it stops:"
    )
    during = f"during training, epochs 120 to {LONGER}"
    return _with_table(text, ("method", "the paper's", "100 epochs", f"{LONGER} epochs", "its sparsity", during), rows)


def _sigmoid(runs: Runs) -> str:
    group = runs.of("moving_box", SIGMOID)
    if not group.finished:
        return ""
    papers = TABLE1["moving_box"]["sparce"]
    found = []
    for measure in ("similarity", "sparsity", "smoothness"):
        values = group.values(ROW_MEASURES[measure])
        softmax, outcome = number(_values(runs, "moving_box", "SPARCE", measure)), agreement(values, papers[measure])
        found.append(
            f"{measure} {number(values)} instead of {softmax}, {reported(papers[measure])} in the paper ({outcome})"
        )
    return (
        "- **Sigmoid or softmax.** For two classes the paper's classifier ends in a sigmoid; ours has two outputs by "
        f"default. With a sigmoid and nothing else changed, SPARCE on Moving Box has: {'; '.join(found)}."
    )


CHOICES = (
    "- **Which boxes.** The paper calls its Moving Box a representative subset and does not list it. Ours, four moving "
    "boxes × four generating processes, is our choice: 16 combinations of 1,100 series give the 17,600 of the paper's "
    "table. Another choice has another similarity, since boxes differ in size.",
    "- **Precision.** The published code tests on as many queries as there are series of the target class; we test on "
    "all test series of other classes.",
    "- **Catching.** The paper's recordings are private and ours are simulated. These rows show whether the methods "
    "behave alike; no number of the paper can be reproduced with them.",
)


def _gradient(runs: Runs) -> str:
    found = []
    for name, described in DATASETS.items():
        group = runs.of(name, TRAINED["both, with a gradient"])
        if group.finished:
            plain = number(_values(runs, name, "SPARCE", "sparsity"))
            found.append(
                f"{number(group.values('sparsity_all'))} instead of {plain} of the entries on {described.title} "
                f"({len(group.finished)} repetitions)"
            )
    if not found:
        return ""
    return (
        "- **The sparsity term** has no gradient in the published code and cannot have trained anything. With one, "
        f"SPARCE changes {', '.join(found)}; see the last two rows of each data set in the table of loss terms."
    )


def _truth(runs: Runs) -> str:
    rows = [
        [described.title, title, *(number(_values(runs, name, title, m)) for m in ("valid", "transfer", "oracle"))]
        for name, described in DATASETS.items()
        for title in METHODS.values()
        if runs.of(name, title).finished
    ]
    text = (
        "### Valid answers are not necessarily true\n\n*Valid* is the prediction of the explained classifier, "
        "*transfer* that of classifiers the methods were not trained against, and the *oracle* is the process that "
        "generated the data. A change can move the classifiers and not the class, however sparse and smooth it is, and "
        "none of the paper's four measures shows that:"
    )
    return _with_table(text, ("data", "method", "valid", "transfer", "oracle"), rows, indent="")


COMPARED = "same_code.json"  # how later code compares with that of the rows
REPEATED = "repeated.jsonl"  # rows of runs that were repeated with the same seed
RUN = "reproduction.json"  # parts, scale, data sets and time of a reproduction
_ENTRIES: dict[str, Any] = {
    "scale": str,
    "repetitions": int,
    "seed": int,
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
    """Return settings and data sets of the reproduction in a folder."""
    run = read_json(inside(folder, RUN), "a reproduction")
    run = run if isinstance(run, dict) else {}
    wrong = [name for name, kind in _ENTRIES.items() if not isinstance(run.get(name), kind)]
    wrong = wrong or [name for name in ("datasets", "left_out") if not DATASETS.keys() >= run[name].keys()]
    if not wrong:
        wrong = ["scale"] * (run["scale"] not in SCALES) + ["repetitions"] * (run["repetitions"] < 1)
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
    again = ResultStore(folder / REPEATED).rows()
    path = inside(folder, COMPARED)
    compared = read_json(path, "a comparison") if path.exists() else None
    return make_page(run, folder_rows(folder), figures, root=root, again=again, compared=compared)


def folder_rows(folder: Path) -> list[Row]:
    """Return the stored rows of a folder, of its latest code."""
    return of_latest_code(ResultStore(folder / RESULTS).rows())


def save_tables(folder: Path) -> None:
    """Write the tables of the stored results of a folder into its folder ``tables``."""
    run = read_run(folder)
    for stem, table in make_tables(folder_rows(folder), run["datasets"], run["parts"]).items():
        table.save(inside(folder, "tables"), stem)


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
