"""Rows to tables: ours and the paper's side by side, and beside them what the paper did not measure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from statistics import fmean
from typing import Any

from sparcets.benchmark.published import ABLATION, DATASETS, METHODS, SECONDS, SECONDS_ON, TABLE1, TARGETS, Measured
from sparcets.report.tables import Table
from sparcets.reproduce.measured import MISSING, OURS, TRUTH, Repeated, Row, Runs, beside, number
from sparcets.reproduce.plans import ABLATED, BARE, TRAINED

Facts = Mapping[str, Mapping[str, Any]]  # of our data sets, by name; see `describe` in `sparcets.reproduce.run`

COLUMNS = (*OURS, *TRUTH.values())
BESIDE = (
    "Ours / the paper's, mean ± std over repetitions (*runs*); **bold** where the two differ by more than 2 std of "
    "both together (or 0.005, half the last digit printed, where that is more). Precision is |argmax − target| on "
    "class indices, as the published code takes it; it and the next three are means over all queries, lower is better. "
    "Queries are the test series of other classes, without those that the classifier puts into the target as they are. "
    "Valid, transfer (held-out classifiers of other architectures say the target too) and oracle (the generating "
    "process does) are shares of all queries, higher is better; universality near 1 means one perturbation for all; a "
    "5-NN ratio of 1 is as near to real series as these are to each other."
)
NO_SPREAD = " Where the paper gives no std, nothing is marked."


def make_tables(rows: Iterable[Row], facts: Facts, wanted: Iterable[str]) -> dict[str, Table]:
    """Return the tables of the wanted parts of the paper, by the name of their files.

    Parameters
    ----------
    rows
        Rows of the results, of all parts.
    facts
        What our data sets are; those without facts are left out.
    wanted
        Parts of :data:`~sparcets.reproduce.plans.WHAT`.
    """
    asked = set(wanted)
    runs = Runs(rows)
    makers: dict[str, Callable[[Runs, Facts], Table]] = {
        "table1": _table1,
        "targets": _targets,
        "ablation": _ablation,
        "timing": _timing,
    }
    tables = {"datasets": _datasets(runs, facts)}
    tables |= {stem: make(runs, facts) for stem, make in makers.items() if asked & {stem, "all"}}
    if asked & {"figures", "all"} and "moving_box" in facts:
        tables["saliency"] = _saliency(runs)
    if asked & {"figures", "all"} and "catching" in facts:
        tables["geometry"] = _geometry(runs)
    return tables


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
    """Return the accuracies of the explained classifier and of the judges, which all runs of a data set share."""
    for row in runs.finished(name):
        judges = row.get("judges") or {}
        told = ", ".join(f"{judge} {accuracy:.3f}" for judge, accuracy in judges.items()) or MISSING
        return (MISSING if row.get("accuracy") is None else f"{row['accuracy']:.3f}"), told
    return MISSING, MISSING


def _table1(runs: Runs, facts: Facts) -> Table:
    rows, errors = [], []
    for name in facts:
        for method, title in METHODS.items():
            group = runs.of(name, title)
            rows.append((facts[name]["title"], title, *_cells(group, TABLE1[name][method])))
            errors += _told(group, f"{facts[name]['title']}, {title}")
    return Table("Table 1", ("data", "method", "runs", *COLUMNS), tuple(rows), note=" ".join([BESIDE, *errors]))


def _targets(runs: Runs, facts: Facts) -> Table:
    rows, errors = [], []
    for name in facts:
        for target, published in TARGETS[name].items():
            group = runs.of(name, "SPARCE", target)
            rows.append((facts[name]["title"], target, *_cells(group, published)))
            errors += _told(group, f"{facts[name]['title']}, {target}")
    note = " ".join([BESIDE + NO_SPREAD, *errors])
    return Table("SPARCE towards every target class", ("data", "target", "runs", *COLUMNS), tuple(rows), note=note)


def _ablation(runs: Runs, facts: Facts) -> Table:
    rows, errors = [], []
    for name in facts:
        for terms, label in {**ABLATED, **TRAINED}.items():
            group = runs.of(name, label)
            rows.append((facts[name]["title"], terms, *_cells(group, ABLATION[name].get(terms))))
            errors += _told(group, f"{facts[name]['title']}, {terms}")
    why = (
        "λ1, λ2 and λ3 are always on. The sparsity term has no gradient in the paper's preset, as in the published "
        'code, so λ4 can change nothing there: seed by seed, our "+λ4" equals "none", and "both" equals "+λ5". The '
        "last two rows of each data set give it one."
    )
    note = " ".join([why, BESIDE + NO_SPREAD, *errors])
    return Table("Loss terms of SPARCE", ("data", "terms", "runs", *COLUMNS), tuple(rows), note=note)


def _timing(runs: Runs, facts: Facts) -> Table:
    rows, errors, devices, less, together_at_most = [], [], set(), False, 1
    for name in facts:
        for method, title in METHODS.items():
            group, papers = runs.of(name, title), SECONDS[name][method]
            smaller = any(row.get("settings") for row in group.finished)  # other settings than the paper's: less work
            fit, explain = group.values("fit_s"), group.values("explain_s")
            together = [f + e for f, e in zip(fit, explain, strict=True)]
            seconds = number(together) if together else _failed(group)
            faster = f"{papers.mean / fmean(together):.1f} ×" if together and not smaller else MISSING
            published = f"{papers.mean:,.0f} ± {papers.std:,.0f}"
            rows.append((facts[name]["title"], title, number(fit), number(explain), seconds, published, faster))
            errors += _told(group, f"{facts[name]['title']}, {title}")
            devices |= {str(row.get("device")) for row in group.finished}
            less |= smaller
            together_at_most = max([together_at_most, *(int(row.get("workers") or 1) for row in group.finished)])
    columns = ("data", "method", "training, s", "answers, s", "together, s", "the paper's, s", "faster")
    note = (
        f"Ours on {', '.join(sorted(devices)) or 'no device yet'}, {_side_by_side(together_at_most)}; the paper's on a "
        f"{SECONDS_ON}.{' This scale does less work than the paper: no comparison.' * less}"
    )
    return Table("One training and all test counterfactuals", columns, tuple(rows), note=" ".join([note, *errors]))


def _side_by_side(n: int) -> str:
    return "one run at a time" if n == 1 else f"up to {n} runs side by side, which slow one another down"


def _saliency(runs: Runs) -> Table:
    """Return the numbers behind figure 5, which the paper gives as curves only."""
    rows, errors = [], []
    for target in sorted(DATASETS["moving_box"].classes, reverse=True):  # the paper's main target first
        for label in (*METHODS.values(), BARE):
            group = runs.of("moving_box", label, target)
            first, *areas = (number(group.values(name)) for name in ("saliency_auc_pooled_all", "saliency_auc_all"))
            first = _failed(group) if group.rows and not group.finished else first
            truth = (number(group.values(name)) for name in TRUTH)
            rows.append((target, label, str(len(group.finished)), first, *areas, *truth))
            errors += _told(group, f"{label}, {target}")
    note = (
        "Area under the ROC curve of |δ| against what is truly salient, over all entries of all answers (as in the "
        "figure) and as the mean over answers; 0.5 is chance, higher is better."
    )
    columns = ("target", "method", "runs", "AUC, pooled", "AUC, mean", *TRUTH.values())
    return Table("Moving Box: does the change lie where the class is?", columns, tuple(rows), " ".join([note, *errors]))


def _geometry(runs: Runs) -> Table:
    """Return the numbers behind figure 6, which the paper gives as box plots only."""
    rows, errors = [], []
    for label in METHODS.values():
        group = runs.of("catching", label)
        limbs, joints = group.values("limb_deviation"), group.values("joint_deviation")
        first = _failed(group) if group.rows and not group.finished else number([100 * value for value in limbs])
        truth = (number(group.values(name)) for name in TRUTH)
        rows.append((label, str(len(group.finished)), first, number(joints), *truth))
        errors += _told(group, label)
    note = (
        "Mean over the valid answers' limbs, joints and steps of how far each length is from the query's own, in per "
        "cent of it, and each angle, in degrees; lower is better. Bones do not stretch, whatever the class."
    )
    columns = ("method", "runs", "limb lengths off by, %", "joint angles off by, °", *TRUTH.values())
    return Table("Catching: does the body stay a body?", columns, tuple(rows), " ".join([note, *errors]))


def _cells(group: Repeated, published: Measured | None) -> list[str]:
    """Return the cells from the number of runs on; a run that failed throughout shows its error."""
    if group.rows and not group.finished:
        return ["0", _failed(group), *[MISSING] * (len(COLUMNS) - 1)]
    papers = published or {}
    four = [beside(group.values(ours), papers.get(measure)) for measure, ours in OURS.items()]
    return [str(len(group.finished)), *four, *(number(group.values(name)) for name in TRUTH)]


def _failed(group: Repeated) -> str:
    return str(group.rows[0]["error"]) if group.rows and not group.finished else MISSING


def _told(group: Repeated, who: str) -> list[str]:
    """Return the errors of runs whose repetitions did not all fail: their cells show the others."""
    return [f"Failed: {who}, {error}" for error in group.errors] if group.finished else []
