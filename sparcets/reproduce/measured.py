"""Stored rows, grouped by what they repeat, and their numbers as text beside the paper's."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any, NamedTuple

from sparcets.benchmark.published import DATASETS, METHODS, TABLE1, Reported
from sparcets.report.tables import MISSING as MISSING
from sparcets.report.tables import number as number

# The paper's four -> the name of the same thing in a row: the index distance, and means over all queries.
OURS = {
    "precision": "precision_index",
    "similarity": "similarity_all",
    "sparsity": "sparsity_all",
    "smoothness": "smoothness_all",
}
# What nobody has published for these methods -> its column.
TRUTH = {
    "valid": "valid",
    "transfer": "transfer",
    "oracle": "oracle",
    "universality": "universality",
    "knn_ratio": "5-NN ratio",
}

DENSE = ("ics", "gan", "countergan")  # methods that change every entry, by construction

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Repeated:
    """The rows of one run with different seeds."""

    rows: tuple[Row, ...] = ()

    @property
    def finished(self) -> tuple[Row, ...]:
        """Rows of the runs that ended well."""
        return tuple(row for row in self.rows if not row.get("error"))

    @property
    def errors(self) -> tuple[str, ...]:
        """What went wrong, in a line per failed run."""
        return tuple(f"seed {row['seed']}: {row['error']}" for row in self.rows if row.get("error"))

    def values(self, name: str) -> list[float]:
        """Return a measure, or a number such as ``fit_s``, of every run that has it."""
        found = [row.get("measures", {}).get(name, row.get(name)) for row in self.finished]
        return [float(value) for value in found if value is not None and math.isfinite(value)]


class Runs:
    """All rows, by data set, name in tables and target; of rows with one key the last counts."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._groups: dict[tuple[str, str, str], list[Row]] = {}
        for row in {row["key"]: row for row in rows}.values():
            self._groups.setdefault((row["dataset"], row["label"], str(row["target"])), []).append(row)

    def finished(self, dataset: str) -> list[Row]:
        """Return the rows of a data set that ended well."""
        return [
            row
            for (name, _, _), rows in self._groups.items()
            if name == dataset
            for row in rows
            if not row.get("error")
        ]

    def of(self, dataset: str, label: str, target: str | None = None) -> Repeated:
        """Return the repetitions of a run, by seed; the paper's target where none is given."""
        group = self._groups.get((dataset, label, target or DATASETS[dataset].target), [])
        return Repeated(tuple(sorted(group, key=lambda row: int(row["seed"]))))


def reported(value: Reported | None) -> str:
    """Write a number of the paper with the digits it prints.

    >>> reported(Reported(0.4, 0.06)), reported(Reported(0.52)), reported(None)
    ('0.40 ± 0.06', '0.52', '–')
    """
    if value is None:
        return MISSING
    return f"{value.mean:.2f}" if value.std is None else f"{value.mean:.2f} ± {value.std:.2f}"


def beside(values: Sequence[float], published: Reported | None) -> str:
    """Write ours / the paper's; ours in bold where the two differ by more than 2 std of both together.

    >>> beside([0.2, 0.24], Reported(0.4, 0.06)), beside([0.3], Reported(0.4, 0.06)), beside([0.3], None)
    ('**0.22 ± 0.03** / 0.40 ± 0.06', '0.30 / 0.40 ± 0.06', '0.30')
    """
    ours = number(values)
    if published is None:
        return ours
    differs = values and agrees(values, published) is False
    return f"{f'**{ours}**' if differs else ours} / {reported(published)}"


def agrees(values: Sequence[float], published: Reported) -> bool | None:
    """Say whether our repetitions agree with a number of the paper; None where it gives no std."""
    return published.agrees(fmean(values), stdev(values) if len(values) > 1 else 0.0)


class Verdict(NamedTuple):
    """One of our numbers against the paper's."""

    method: str
    measure: str
    ours: str
    papers: str
    agrees: bool


def verdicts(runs: Runs, dataset: str) -> list[Verdict]:
    """Compare our Table 1 with the paper's, for one data set; what is missing, or 1 by construction, is left out."""
    found = []
    for method, title in METHODS.items():
        group = runs.of(dataset, title)
        for measure, published in TABLE1[dataset][method].items():
            values = group.values(OURS[measure])
            if not values or (measure == "sparsity" and method in DENSE):
                continue
            within = agrees(values, published)
            if within is not None:
                found.append(Verdict(title, measure, number(values), reported(published), within))
    return found
