"""Tables of the numbers behind the figures, which the paper shows without numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sparcets.experiments.benchmark.published import DATASETS, METHODS
from sparcets.experiments.reproduce.measured import OTHER_MEASURES, Repetitions, Row, Runs, number
from sparcets.experiments.reproduce.plans import BARE
from sparcets.report.tables import Table

KINDS = ("queries", "targets", "counterfactuals")
PLACES = {"inside": "box", "outside": "outside", "first": "first 3 steps", "last": "last 3 steps"}


def figure_tables(runs: Runs, facts: Mapping[str, Mapping[str, Any]]) -> dict[str, Table]:
    """Return the tables of the figures, by the name of their files; those that need rows only where there are any."""
    tables = {}
    if "moving_box" in facts:
        tables["saliency"] = _saliency(runs)
    if "catching" in facts:
        tables["geometry"] = _geometry(runs)
    found = {"neighbours": _neighbours(runs, facts), "places": _places(runs), "limbs": _limbs(runs)}
    return tables | {stem: table for stem, table in found.items() if table.rows}


def _saliency(runs: Runs) -> Table:
    """Return the numbers behind figure 5, which the paper gives as curves only."""
    rows, errors = [], []
    for target in sorted(DATASETS["moving_box"].classes, reverse=True):  # the paper's main target first
        for label in (*METHODS.values(), BARE):
            group = runs.of("moving_box", label, target)
            first, *areas = (number(group.values(name)) for name in ("saliency_auc_pooled_all", "saliency_auc_all"))
            first = first if group.finished or not group.rows else group.failure
            others = (number(group.values(name)) for name in OTHER_MEASURES)
            rows.append((target, label, str(len(group.finished)), first, *areas, *others))
            errors += group.partial_errors(f"{label}, {target}")
    note = (
        "Area under the ROC curve of |δ| against the salient entries, over all entries of all answers (as in the "
        "figure) and as the mean over answers; 0.5 is chance, higher is better."
    )
    columns = ("target", "method", "runs", "AUC, pooled", "AUC, mean", *OTHER_MEASURES.values())
    return Table(
        "Moving Box: agreement of the changes with the salient entries", columns, tuple(rows), " ".join([note, *errors])
    )


def _geometry(runs: Runs) -> Table:
    """Return the numbers behind figure 6, which the paper gives as box plots only."""
    rows, errors = [], []
    for label in METHODS.values():
        group = runs.of("catching", label)
        limbs, joints = group.values("limb_deviation"), group.values("joint_deviation")
        shapes = [100 * value for value in group.values("limb_distance")]
        first = number([100 * value for value in limbs]) if group.finished or not group.rows else group.failure
        others = (number(group.values(name)) for name in OTHER_MEASURES)
        rows.append((label, str(len(group.finished)), first, number(joints), number(shapes), *others))
        errors += group.partial_errors(label)
    note = (
        "Mean deviation of limb lengths (in per cent) and joint angles (in degrees) from those of the query, over "
        "limbs, joints, steps and valid answers; lower is better, since limbs have a fixed length. Distributions: the "
        "distance between the distributions of a limb's length in answers and queries (1-Wasserstein, in per cent of "
        "the mean length), which is what figure 6 compares."
    )
    columns = ("method", "runs", "limb lengths, %", "joint angles, °", "distributions, %", *OTHER_MEASURES.values())
    return Table(
        "Catching: deviations of limb lengths and joint angles", columns, tuple(rows), " ".join([note, *errors])
    )


def _neighbours(runs: Runs, facts: Mapping[str, Mapping[str, Any]]) -> Table:
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
    for target in sorted(DATASETS["moving_box"].classes, reverse=True):
        for label in (*METHODS.values(), BARE):
            group = runs.of("moving_box", label, target)
            cells = [number(group.figure("places", place, what)) for what in ("size", "changed") for place in PLACES]
            if group.figure("places", "inside", "size"):
                rows.append((target, label, str(len(group.finished)), *cells))
    note = (
        "Mean |δ| (standardised) and share of changed entries in the salient box and outside of it; of the latter, "
        "also in the first and the last three steps alone."
    )
    heads = (f"{what}: {place}" for what in ("|δ|", "changed") for place in PLACES.values())
    return Table("Moving Box: where the changes are", ("target", "method", "runs", *heads), tuple(rows), note)


def _limbs(runs: Runs) -> Table:
    """Return the quartiles of limb lengths: figure 6 in numbers."""
    groups = {label: runs.of("catching", label) for label in METHODS.values()}
    names = [limb for group in groups.values() for row in group.finished for limb in _limbs_of(row)]
    rows = []
    for limb in dict.fromkeys(names):
        first = next(group for group in groups.values() if _quartiles(group, limb, "queries"))
        cells = [_quartiles(group, limb, "answers") for group in groups.values()]
        rows.append((limb, _quartiles(first, limb, "queries"), *cells))
    note = "Quartiles of the lengths in the data's own units, means over repetitions; originals are the queries."
    return Table("Catching: lengths of limbs", ("limb", "originals", *groups), tuple(rows), note)


def _quartiles(group: Repetitions, limb: str, series: str) -> str:
    triples = [_limbs_of(row)[limb][series] for row in group.finished if limb in _limbs_of(row)]
    return " · ".join(f"{sum(column) / len(column):.3f}" for column in zip(*triples, strict=True))


def _limbs_of(row: Row) -> Mapping[str, Mapping[str, list[float]]]:
    numbers = row.get("figures")
    return numbers.get("limbs") or {} if isinstance(numbers, Mapping) else {}
