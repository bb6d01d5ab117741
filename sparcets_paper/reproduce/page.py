"""The report of a reproduction: its settings, all tables and figures, and which numbers agree with the paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sparcets.core.errors import FileFormatError
from sparcets.io.files import read_json
from sparcets.io.folders import inside
from sparcets_paper.benchmark.published import DATASETS
from sparcets_paper.benchmark.store import RESULTS, ResultStore
from sparcets_paper.reproduce.agreement import (
    DIGIT,
    NEAR_ZERO,
    NEAR_ZERO_MARGIN,
    OUTCOMES,
    SHARE,
    Row,
    Runs,
    compare,
)
from sparcets_paper.reproduce.figures import CAPTIONS
from sparcets_paper.reproduce.plans import PARTS, SCALES
from sparcets_paper.reproduce.provenance import describe, of_latest_code
from sparcets_paper.reproduce.tables import make_tables

HOW_TO_READ = """\
### How to read the differences

- **ICS.** The paper gives 100 steps and at most ten values of λ from 1.0 on, but neither how λ grows nor how the L1
  is normalised. Ours takes 100 steps for each λ and doubles λ for the queries that are not valid yet. The search
  settings that the authors published are others: 10 iterations, and five values of λ in steps of 0.001. Neither gives
  the paper's numbers, see [below](#one-setting-changed-at-a-time).
- **Scaling, on MotionSense.** The paper does not say how the data are scaled; we standardise every feature on the
  training part. In the data's own units (*own units* below), with nothing else changed, SPARCE does not change as few
  entries as in the paper either.
- **Similarity on Moving Box.** All three adversarial methods stay nearer to the query than in the paper. Trainings
  three times as long (*300 epochs* below) do not close the gap; within one training similarity goes up and down, so a
  number depends on the epoch at which it stops.
- **Sigmoid or softmax.** For two classes the paper's classifier ends in a sigmoid; ours has two outputs by default.
  What a sigmoid changes is in the row *sigmoid classifier* below.
- **Which boxes.** The paper calls its Moving Box a representative subset and does not list it. Ours, four moving
  boxes × four generating processes, is our choice: 16 combinations of 1,100 series give the 17,600 of the paper's
  table. Another choice has another similarity, since boxes differ in size.
- **Precision.** The published code tests on as many queries as there are series of the target class; we test on all
  test series of other classes.
- **Catching.** The paper's recordings are private and ours are simulated. These rows show whether the methods behave
  alike; no number of the paper can be reproduced with them.
- **The sparsity term** has no gradient in the published code and cannot have trained anything. With one, SPARCE
  changes other shares of the entries; see the last two rows of each data set in the table of loss terms.

### Valid answers are not necessarily true

*Valid* is the prediction of the explained classifier, *transfer* that of classifiers the methods were not trained
against, and the *oracle* is the process that generated the data. A change can move the classifiers and not the class,
however sparse and smooth it is, and none of the paper's four measures shows that: compare the three columns above."""

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

    ``run`` is the content of ``reproduction.json``, ``figures`` are the names of those that exist, and ``root`` is the
    path of the folder of results relative to the page, with a slash at its end unless empty. ``again`` are rows of runs
    that were repeated with the same seed, ``compared`` says how later code compares, see
    :func:`~.provenance.same_code`.
    """
    parts = ["# The paper, run again", describe(run, rows, again, compared), SMALL if run["scale"] == "small" else ""]
    parts += [f"**{DATASETS[name].title} is left out**: {why}" for name, why in run["left_out"].items()]
    for stem, table in make_tables(rows, run["datasets"], run["parts"]).items():
        parts += [f"## {_SECTIONS[stem]}", table.to_markdown()]
        parts += [f"[CSV]({root}tables/{stem}.csv)"] if table.rows else []
        if stem == "table1":
            parts += ["### Agreement with the paper", *_agreement(Runs(rows), run)]
            parts += [HOW_TO_READ] if run["scale"] == "full" else []
    drawn = set(figures)
    shown = [stem for stem in CAPTIONS if stem in drawn]
    parts += ["## Figures"] if shown else []
    for stem in shown:
        parts += [f"![{stem}]({root}figures/{stem}.png)", CAPTIONS[stem]]
    parts += [f"{stem} is left out: {why}" for stem, why in run["figures_left_out"].items()]
    return "\n\n".join(part for part in parts if part) + "\n"


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


def _agreement(runs: Runs, run: Mapping[str, Any]) -> list[str]:
    """Return paragraphs that count, for each kind of data, how our numbers compare with the paper's, and list them."""
    found = {name: compare(runs, name) for name in KINDS if name in run["datasets"]}
    if not any(found.values()):
        return ["Nothing to compare yet: both sides need repetitions."]
    titles = {name: run["datasets"][name]["title"] for name in found}
    counts, lists = [f"| data | numbers | {' | '.join(OUTCOMES)} |", f"|---|---|{'---|' * len(OUTCOMES)}"], []
    for name, of_set in found.items():
        kind = "real data" if titles[name] == "Catching" else KINDS[name]
        for apart, what in ((False, "similarity, sparsity, smoothness, errors"), (True, "errors near zero")):
            counted = Counter(c.outcome for c in of_set if c.near_zero is apart)
            counts.append(f"| {titles[name]}, {kind} | {what} | {' | '.join(str(counted[o]) for o in OUTCOMES)} |")
        numbers = {outcome: [c for c in of_set if c.outcome == outcome] for outcome in OUTCOMES}
        lines = [
            f"- {outcome}: {'; '.join(f'{c.method} {c.measure} {c.ours} against {c.papers}' for c in some)}"
            for outcome, some in numbers.items()
            if some
        ]
        lists += [f"**{titles[name]}**, ours against the paper's:", "\n".join(lines)]
    return [RULE, "\n".join(counts), *lists]
