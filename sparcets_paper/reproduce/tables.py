"""Tables of a reproduction: our numbers and the paper's, and measures that are not in the paper."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from sparcets_paper.benchmark.published import (
    ABLATION,
    DATASETS,
    METHODS,
    SECONDS,
    SECONDS_ON,
    TABLE1,
    TARGETS,
    Measurements,
)
from sparcets_paper.reproduce.agreement import (
    MISSING,
    OTHER_MEASURES,
    ROW_MEASURES,
    Repetitions,
    Row,
    Runs,
    number,
    with_published,
)
from sparcets_paper.reproduce.plans import ABLATED, CLASSIFIERS, PROBES, TRAINED, VARIANTS
from sparcets_paper.table import Table

KINDS = ("queries", "targets", "counterfactuals")
PLACES = {"inside": "box", "outside": "outside", "first": "first 3 steps", "last": "last 3 steps"}


Facts = Mapping[str, Mapping[str, Any]]  # facts about our data sets, by name; see `run.dataset_facts`
COLUMNS = (*ROW_MEASURES, *OTHER_MEASURES.values())
NOTE = (
    "Ours / the paper's, mean ± std over repetitions (*runs*); **bold** where they are different, by the test below "
    "Table 1. Precision is |argmax − target| on class indices, as in the published code; it and the next three are "
    "means over all queries, lower is better. Queries are the test series of other classes, without those that the "
    "classifier puts into the target class already. Valid, transfer (classifiers of other architectures, not used by "
    "the method, predict the target) and oracle (so does the generating process) are shares of all queries, higher is "
    "better; universality near 1 means one perturbation for all queries; with a 5-NN ratio of 1, answers are as near "
    "to real series as these are to each other."
)
NO_STD = " Numbers for which the paper gives no std are not marked."


def make_tables(rows: Iterable[Row], facts: Facts, parts: Iterable[str]) -> dict[str, Table]:
    """Return the tables of some parts of the paper, by the names of their files; without facts, data are left out."""
    names, runs = set(parts), Runs(rows)
    tables = {"datasets": _datasets(runs, facts)}
    for stem, make in {"table1": _table1, "targets": _targets, "ablation": _ablation, "timing": _timing}.items():
        if names & {stem, "all"}:
            tables[stem] = make(runs, facts)
    found: dict[str, Table] = {}
    if names & {"figures", "all"}:
        tables |= {"saliency": _saliency(runs)} if "moving_box" in facts else {}
        tables |= {"geometry": _geometry(runs)} if "catching" in facts else {}
        found = {"neighbours": _neighbours(runs, facts), "places": _places(runs), "limbs": _limbs(runs)}
    if names & {"probes", "all"}:
        found["probes"] = _probes(runs, facts)
    return tables | {stem: table for stem, table in found.items() if table.rows}


Experiment = tuple[tuple[str, ...], Repetitions, Measurements | None]  # its first cells, our runs, the paper's numbers


def _experiments(title: str, heads: tuple[str, ...], experiments: Iterable[Experiment], note: str) -> Table:
    """Return a table with one experiment per row, in all columns."""
    rows, errors = [], []
    for names, group, published in experiments:
        rows.append((*names, *_cells(group, published)))
        errors += group.partial_errors(", ".join(names[:2]))
    return Table(title, (*heads, "runs", *COLUMNS), tuple(rows), note=" ".join([note, *errors]))


def _table1(runs: Runs, facts: Facts) -> Table:
    of = (
        ((facts[name]["title"], title), runs.of(name, title), TABLE1[name][method])
        for name in facts
        for method, title in METHODS.items()
    )
    return _experiments("Table 1", ("data", "method"), of, NOTE)


def _targets(runs: Runs, facts: Facts) -> Table:
    of = (
        ((facts[name]["title"], target), runs.of(name, "SPARCE", target), published)
        for name in facts
        for target, published in TARGETS[name].items()
    )
    return _experiments("SPARCE towards every target class", ("data", "target"), of, NOTE + NO_STD)


def _ablation(runs: Runs, facts: Facts) -> Table:
    gradient = (
        "λ1, λ2 and λ3 are always on. The sparsity term has no gradient in the paper's preset, as in the published "
        'code, so λ4 has no effect there: for each seed, our "+λ4" equals "none", and "both" equals "+λ5". In the last '
        "two rows of each data set it has one."
    )
    of = (
        ((facts[name]["title"], terms), runs.of(name, label), ABLATION[name].get(terms))
        for name in facts
        for terms, label in {**ABLATED, **TRAINED}.items()
    )
    return _experiments("Loss terms of SPARCE", ("data", "terms"), of, f"{gradient} {NOTE}{NO_STD}")


def _probes(runs: Runs, facts: Facts) -> Table:
    """Return the table of the runs that change one setting each."""
    of = []
    for name in facts:
        for label, names in PROBES.items():
            group, (method, changed) = runs.of(name, label), VARIANTS[label]
            if name in names and group.rows:
                shown = ", ".join(changed) or ", ".join(f"{k}={v}" for k, v in CLASSIFIERS[label].items())
                of.append(((facts[name]["title"], label, shown), group, TABLE1[name][method]))
    return _experiments("One setting changed", ("data", "run", "changed setting"), of, NOTE)


def _figures(
    title: str, heads: tuple[str, ...], groups: Iterable[tuple[Sequence[str], Repetitions, list[str]]], note: str
) -> Table:
    """Return a table of numbers behind a figure, one group of runs per row: its first cells, the runs, the numbers."""
    rows, errors = [], []
    for names, group, (first, *rest) in groups:
        first = first if group.finished or not group.rows else group.failure
        others = (number(group.values(name)) for name in OTHER_MEASURES)
        rows.append((*names, str(len(group.finished)), first, *rest, *others))
        errors += group.partial_errors(", ".join(reversed(names)))
    return Table(title, (*heads, *OTHER_MEASURES.values()), tuple(rows), " ".join([note, *errors]))


def _saliency(runs: Runs) -> Table:
    """Return the numbers behind figure 5, which the paper gives as curves only."""
    areas = ("saliency_auc_pooled_all", "saliency_auc_all")
    groups = ((names, group, [number(group.values(area)) for area in areas]) for *names, group in runs.boxes())
    note = (
        "Area under the ROC curve of |δ| against the salient entries, over all entries of all answers (as in the "
        "figure) and as the mean over answers; 0.5 is chance, higher is better."
    )
    heads = ("target", "method", "runs", "AUC, pooled", "AUC, mean")
    return _figures("Moving Box: agreement of the changes with the salient entries", heads, groups, note)


def _geometry(runs: Runs) -> Table:
    """Return the numbers behind figure 6, which the paper gives as box plots only."""
    groups = []
    for label in METHODS.values():
        group = runs.of("catching", label)
        limbs, shapes = ([100 * v for v in group.values(name)] for name in ("limb_deviation", "limb_distance"))
        groups.append(((label,), group, [number(limbs), number(group.values("joint_deviation")), number(shapes)]))
    note = (
        "Mean deviation of limb lengths (in per cent) and joint angles (in degrees) from those of the query, over "
        "limbs, joints, steps and valid answers; lower is better, since limbs have a fixed length. Distributions: the "
        "distance between the distributions of a limb's length in answers and queries (1-Wasserstein, in per cent of "
        "the mean length), which is what figure 6 compares."
    )
    heads = ("method", "runs", "limb lengths, %", "joint angles, °", "distributions, %")
    return _figures("Catching: deviations of limb lengths and joint angles", heads, groups, note)


def _neighbours(runs: Runs, facts: Facts) -> Table:
    """Return who is next to the counterfactuals: figure 3 in numbers."""
    rows = []
    for name in facts:
        for label in METHODS.values():
            group = runs.of(name, label)
            shares = [number(group.figure(where, kind)) for where in ("map", "space") for kind in KINDS]
            if group.figure("map", "targets"):
                rows.append((facts[name]["title"], label, str(len(group.finished)), *shares))
    note = (
        "Shares of queries, real series of the target class and other counterfactuals among the 5 nearest neighbours "
        "of a counterfactual, in a t-SNE map as in figure 3 and among the standardised series themselves; at most 200 "
        "of each kind. In a perfect mixture each has about a third; counterfactuals that look like the target class "
        "have targets next to them."
    )
    heads = (f"{where}: {kind}" for where in ("map", "series") for kind in KINDS)
    return Table("Neighbours of the counterfactuals", ("data", "method", "runs", *heads), tuple(rows), note)


def _places(runs: Runs) -> Table:
    """Return where the changes are: figures 4 and 7 in numbers."""
    rows = []
    for *names, group in runs.boxes():
        cells = [number(group.figure("places", place, what)) for what in ("size", "changed") for place in PLACES]
        if group.figure("places", "inside", "size"):
            rows.append((*names, str(len(group.finished)), *cells))
    note = (
        "Mean |δ| (standardised) and share of changed entries in the salient box and outside of it; of the latter, "
        "also in the first and the last three steps alone."
    )
    heads = (f"{what}: {place}" for what in ("|δ|", "changed") for place in PLACES.values())
    return Table("Moving Box: where the changes are", ("target", "method", "runs", *heads), tuple(rows), note)


def _limbs(runs: Runs) -> Table:
    """Return the quartiles of limb lengths: figure 6 in numbers."""
    groups = {label: runs.of("catching", label) for label in METHODS.values()}
    names = [name for group in groups.values() for limbs in group.figure("limbs") for name in limbs]
    rows = []
    for limb in dict.fromkeys(names):
        found = [group.figure("limbs", limb, "queries") for group in groups.values()]
        answers = [group.figure("limbs", limb, "answers") for group in groups.values()]
        rows.append((limb, _quartiles(next(filter(None, found))), *map(_quartiles, answers)))
    note = "Quartiles of the lengths in the data's own units, means over repetitions; originals are the queries."
    return Table("Catching: lengths of limbs", ("limb", "originals", *groups), tuple(rows), note)


def _quartiles(found: list[list[float]]) -> str:
    return " · ".join(f"{fmean(column):.3f}" for column in zip(*found, strict=True))


def _datasets(runs: Runs, facts: Facts) -> Table:
    rows = []
    for name, ours in facts.items():
        papers = DATASETS[name]
        shown = [c for c in papers.classes if c in ours["classes"] or c not in papers.left_out]
        classes = "; ".join(f"{c}: {ours['classes'].get(c, 0):,} / {papers.classes[c]:,}" for c in shown)
        rows.append(
            (
                ours["title"],
                f"{ours['n_samples']:,} / {papers.n_used:,}",
                f"{ours['n_train']:,} + {ours['n_test']:,}",
                f"{ours['n_steps']} / {papers.n_steps}",
                f"{ours['n_features']} / {papers.n_features}",
                f"{ours['n_mutable']} / {papers.n_mutable}",
                classes,
                papers.target,
                *_accuracies(runs, name),
            )
        )
    left_out = "; ".join(
        f"{d.title} has {d.n_samples:,} samples in all, but the experiments leave {' and '.join(d.left_out)} out"
        for name, d in DATASETS.items()
        if d.left_out and name in facts
    )
    sizes = ("samples", "training + test", "steps", "features", "mutable", "per class")
    columns = ("data", *sizes, "target", "classifier", "judges")
    note = f"Classifier and judges: their accuracy on the test part. {left_out}{'.' * bool(left_out)}".strip()
    return Table("Data sets, ours / the paper's", columns, tuple(rows), note=note)


def _accuracies(runs: Runs, name: str) -> tuple[str, str]:
    """Return the test accuracies of the explained classifier and of the judges, the same for all runs of a data set."""
    for row in runs.finished(name):
        judges = row.get("judges") or {}
        listed = ", ".join(f"{judge} {accuracy:.3f}" for judge, accuracy in judges.items()) or MISSING
        return (MISSING if row.get("accuracy") is None else f"{row['accuracy']:.3f}"), listed
    return MISSING, MISSING


def _timing(runs: Runs, facts: Facts) -> Table:
    rows, errors, devices, any_smaller, max_workers = [], [], set(), False, 1
    for name in facts:
        for method, title in METHODS.items():
            group, papers = runs.of(name, title), SECONDS[name][method]
            smaller = any(row.get("settings") for row in group.finished)  # not the paper's settings, but less work
            fit, explain = group.values("fit_s"), group.values("explain_s")
            total = [f + e for f, e in zip(fit, explain, strict=True)]
            seconds = number(total) if total else group.failure
            faster = f"{papers.mean / fmean(total):.1f} ×" if total and not smaller else MISSING
            published = f"{papers.mean:,.0f} ± {papers.std:,.0f}"
            rows.append((facts[name]["title"], title, number(fit), number(explain), seconds, published, faster))
            errors += group.partial_errors(f"{facts[name]['title']}, {title}")
            devices |= {str(row.get("device")) for row in group.finished}
            any_smaller |= smaller
            max_workers = max([max_workers, *(int(row.get("workers") or 1) for row in group.finished)])
    columns = ("data", "method", "training, s", "answers, s", "total, s", "the paper's, s", "faster")
    parallel = f"up to {max_workers} runs in parallel, which slows each of them down"
    note = (
        f"Ours on {', '.join(sorted(devices)) or 'no device yet'}, "
        f"{parallel if max_workers > 1 else 'one run at a time'}; the paper's on a "
        f"{SECONDS_ON}.{' At this scale there is less work than in the paper: no comparison.' * any_smaller}"
    )
    return Table("One training and all test counterfactuals", columns, tuple(rows), note=" ".join([note, *errors]))


def _cells(group: Repetitions, published: Measurements | None) -> list[str]:
    """Return the cells from the number of runs on; the error if all repetitions failed."""
    if group.rows and not group.finished:
        return ["0", group.failure, *[MISSING] * (len(COLUMNS) - 1)]
    papers = published or {}
    four = [
        with_published(group.values(ours), papers.get(measure), error=measure == "precision")
        for measure, ours in ROW_MEASURES.items()
    ]
    return [str(len(group.finished)), *four, *(number(group.values(name)) for name in OTHER_MEASURES)]
