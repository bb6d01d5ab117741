"""Stored rows grouped by experiment, and their means compared with the numbers of the paper."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean, variance
from typing import Any, Literal, NamedTuple

from scipy.special import stdtrit

from sparcets_paper.benchmark.published import DATASETS, METHODS, TABLE1, Reported
from sparcets_paper.reproduce.plans import DRAWN
from sparcets_paper.table import MISSING as MISSING
from sparcets_paper.table import number as number

Outcome = Literal["equivalent", "different", "undecided"]
OUTCOMES: tuple[Outcome, ...] = ("equivalent", "different", "undecided")

REPETITIONS = 5  # of the paper
SHARE = 0.25  # of the paper's number, the margin
DIGIT = 0.005  # half the last digit that the paper prints
NEAR_ZERO, NEAR_ZERO_MARGIN = 0.05, 0.05  # errors up to this are near zero, and their margin


def agreement(values: Sequence[float], published: Reported, *, error: bool = False) -> Outcome | None:
    """Return how our repetitions compare with a number of the paper; None if either has no spread.

    For a classification error near zero, the margin is absolute.

    >>> agreement([0.40, 0.42, 0.38, 0.41, 0.39], Reported(0.40, 0.02))
    'equivalent'
    >>> agreement([0.22, 0.24, 0.20, 0.25, 0.19], Reported(0.40, 0.06))
    'different'
    >>> agreement([0.39, 0.30, 0.48, 0.33, 0.45], Reported(0.30, 0.05))
    'undecided'
    """
    if published.std is None or len(values) < 2:
        return None
    gap = fmean(values) - published.mean
    # A printed 0.00 stands for anything below half a digit.
    ours, papers = variance(values) / len(values), max(published.std, DIGIT / 2) ** 2 / REPETITIONS
    spread = math.sqrt(ours + papers)
    freedom = (ours + papers) ** 2 / (ours**2 / (len(values) - 1) + papers**2 / (REPETITIONS - 1))
    if abs(gap) + stdtrit(freedom, 0.95) * spread <= margin(published.mean, error=error):
        return "equivalent"
    return "different" if abs(gap) - DIGIT > stdtrit(freedom, 0.975) * spread else "undecided"


def margin(mean: float, *, error: bool = False) -> float:
    """Return the largest difference from the paper's number that counts as none.

    >>> margin(0.4), margin(0.01), margin(0.01, error=True), margin(0.24, error=True)
    (0.1, 0.005, 0.05, 0.06)
    """
    return NEAR_ZERO_MARGIN if error and near_zero(mean) else max(SHARE * mean, DIGIT)


def near_zero(mean: float) -> bool:
    """Return whether an error of the paper is so small that agreeing with it says little."""
    return mean <= NEAR_ZERO


# The paper's four measures -> their names in a row: the index distance, and means over all queries.
ROW_MEASURES = {
    "precision": "precision_index",
    "similarity": "similarity_all",
    "sparsity": "sparsity_all",
    "smoothness": "smoothness_all",
}
# Measures that are not in the paper -> their columns.
OTHER_MEASURES = {
    "valid": "valid",
    "transfer": "transfer",
    "oracle": "oracle",
    "universality": "universality",
    "knn_ratio": "5-NN ratio",
}

DENSE = ("ics", "gan", "countergan")  # methods that change every entry by construction

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Repetitions:
    """The rows of one experiment with different seeds."""

    rows: tuple[Row, ...] = ()

    @property
    def finished(self) -> tuple[Row, ...]:
        """Rows of the runs without an error."""
        return tuple(row for row in self.rows if not row.get("error"))

    @property
    def errors(self) -> tuple[str, ...]:
        """Error messages, one per failed run."""
        return tuple(f"seed {row['seed']}: {row['error']}" for row in self.rows if row.get("error"))

    def values(self, name: str) -> list[float]:
        """Return a measure, or a field such as ``fit_s``, of every finished run that has it."""
        found = [row.get("measures", {}).get(name, row.get(name)) for row in self.finished]
        return [float(value) for value in found if value is not None and math.isfinite(value)]

    def figure(self, *names: str) -> list[Any]:
        """Return a number behind a figure, such as ``("map", "targets")``, of every finished run that has it."""
        found: list[Any] = [row.get("figures") for row in self.finished]
        for name in names:
            found = [value.get(name) for value in found if isinstance(value, Mapping)]
        return [value for value in found if value is not None]

    @property
    def failure(self) -> str:
        """The first error if all runs failed, else the sign for a missing number."""
        return str(self.rows[0]["error"]) if self.rows and not self.finished else MISSING

    def partial_errors(self, name: str) -> list[str]:
        """Return the errors of an experiment of which other repetitions succeeded, for the note of a table."""
        return [f"Failed: {name}, {error}" for error in self.errors] if self.finished else []


class Runs:
    """All rows by data set, label and target; of rows with the same key, the last one is used."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = sorted({row["key"]: row for row in rows}.values(), key=lambda row: int(row["seed"]))

    def finished(self, dataset: str) -> list[Row]:
        """Return the rows of a data set without an error."""
        return [row for row in self._rows if row["dataset"] == dataset and not row.get("error")]

    def boxes(self) -> Iterator[tuple[str, str, Repetitions]]:
        """Yield the runs on Moving Box with their target, the paper's main one first, and their label."""
        for target, label in product(sorted(DATASETS["moving_box"].classes, reverse=True), DRAWN):
            yield target, label, self.of("moving_box", label, target)

    def of(self, dataset: str, label: str, target: str | None = None) -> Repetitions:
        """Return the repetitions of an experiment, by seed; ``target`` is the paper's by default."""
        of = (dataset, label, target or DATASETS[dataset].target)
        return Repetitions(tuple(r for r in self._rows if (r["dataset"], r["label"], str(r["target"])) == of))


def reported(value: Reported | None) -> str:
    """Format a number of the paper with the digits it prints.

    >>> reported(Reported(0.4, 0.06)), reported(Reported(0.52)), reported(None)
    ('0.40 ± 0.06', '0.52', '–')
    """
    if value is None:
        return MISSING
    return f"{value.mean:.2f}" if value.std is None else f"{value.mean:.2f} ± {value.std:.2f}"


def with_published(values: Sequence[float], published: Reported | None, *, error: bool = False) -> str:
    """Format ours / the paper's; ours is in bold if they are different, see :func:`agreement`.

    >>> published = Reported(0.4, 0.06)
    >>> with_published([0.2, 0.24], published), with_published([0.3], published), with_published([0.3], None)
    ('**0.22 ± 0.03** / 0.40 ± 0.06', '0.30 / 0.40 ± 0.06', '0.30')
    """
    ours = number(values)
    if published is None:
        return ours
    differs = agreement(values, published, error=error) == "different"
    return f"{f'**{ours}**' if differs else ours} / {reported(published)}"


class Comparison(NamedTuple):
    """One of our numbers and the paper's; ``near_zero`` if it is an error that the paper reports as (almost) none."""

    method: str
    measure: str
    ours: str
    papers: str
    outcome: Outcome
    near_zero: bool


def compare(runs: Runs, dataset: str) -> list[Comparison]:
    """Compare our Table 1 with the paper's for one data set, without missing numbers and those 1 by construction."""
    found = []
    for method, title in METHODS.items():
        for measure, published in TABLE1[dataset][method].items():
            values, error = runs.of(dataset, title).values(ROW_MEASURES[measure]), measure == "precision"
            outcome = agreement(values, published, error=error)
            if outcome is not None and not (measure == "sparsity" and method in DENSE):
                apart = error and near_zero(published.mean)
                found.append(Comparison(title, measure, number(values), reported(published), outcome, apart))
    return found
