"""Scores: the result of an evaluation, per answer and as means with bootstrap intervals."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sparcets.core.errors import FileFormatError
from sparcets.core.progress import html_card
from sparcets.core.series import FloatArray
from sparcets.evaluation.statistics import bootstrap_intervals
from sparcets.io.files import is_file, read_json, to_plain, write_json

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = 1  # version of the file's layout

# Measures of the change itself. Their means are over valid answers, since the change of an invalid answer can be
# arbitrarily small; the means over all answers are given under the name with suffix "_all".
SHAPE = (
    "similarity",
    "sparsity",
    "smoothness",
    "steps_touched",
    "features_touched",
    "segments",
    "segment_length",
    "segments_per_feature",
    "l2",
    "linf",
    "dtw",
    "lof_ratio",
    "isolation_forest_ratio",
    "svm_ratio",
    "knn_ratio",
    "saliency_auc",
    "limb_deviation",
    "joint_deviation",
)
TRUTH = ("transfer", "oracle")  # over all answers, and over valid ones under the name with suffix "_valid"
HIGHER = ("valid", "coverage", "probability", "saliency_auc", "saliency_auc_pooled", "diversity", "place_diversity")
HEADLINE = (
    "valid",
    "precision",
    "transfer",
    "direction",
    "oracle",
    "similarity",
    "sparsity",
    "smoothness",
    "universality",
)
LABELS = ("query", "answer", "row", "digest", "target", "status")  # columns of per_query that are not measures
HEADS = ("measure", "mean", "std", "95 % interval", "n", "better")  # of a table of means
SUMMARY = ("mean", "std", "low", "high", "n")  # of every measure
WARNING = "warning: "  # prefix of notes that are also shown in repr

Better = Literal["higher", "lower", ""]


@dataclass(frozen=True, kw_only=True, eq=False)
class Scores:
    """The result of :func:`sparcets.evaluate`.

    Attributes
    ----------
    per_query
        One row per answer: ``query`` (index of the query), ``answer`` (number among the answers to that query, from 0),
        ``row`` (index in ``X_test``, -1 if it is not there), ``digest`` (hash of the query's values, by which
        :func:`compare` matches queries), ``target`` (class name), ``status``, and one column per measure. Measures that
        do not apply are NaN, as are all measures of answers with status ``unchanged``.
    summary
        By measure: ``mean``, ``std`` (sample standard deviation), ``n`` (number of values), and the 95 % bootstrap
        interval of the mean over queries, ``low`` to ``high``. A measure of the whole set has its value as ``mean``
        and NaN for the rest.
    judges
        Test accuracy of each judge, if known; for a regressor, the share of the variance that it explains.
    notes
        Omissions, and their reasons. The first note is about queries that are not in the test part; it is a warning if
        no query is.

    Examples
    --------
    >>> import sparcets as sp
    >>> from sparcets.testing.data import make_series
    >>> from sparcets.testing.mocks import mean_proba
    >>> X, y = make_series(60)
    >>> scores = sp.evaluate(sp.Nearest(sp.wrap(mean_proba)).fit(X, y).explain(X[y == 0], target=1))
    >>> scores.summary["valid"]["mean"], scores.summary["valid"]["n"]
    (1.0, 20)
    """

    per_query: pd.DataFrame
    summary: dict[str, dict[str, float]]
    judges: dict[str, float]
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        found = [f"{name} {self.summary[name]['mean']:.3g}" for name in HEADLINE if name in self.summary]
        warnings = "".join(f"; {note}" for note in self.notes if note.startswith(WARNING))
        return f"Scores({len(self.per_query)} answers: {', '.join(found)}{warnings})"

    def _repr_html_(self) -> str:
        rows = [self._cells(name) for name in HEADLINE if name in self.summary]
        lines = [*self.remarks(), "all measures: summary, one row per answer: per_query"]
        return html_card(f"Scores of {len(self.per_query)} answers", lines, heads=HEADS, rows=rows)

    def to_markdown(self) -> str:
        """Return a Markdown table of all means, followed by the notes."""
        lines = [f"| {' | '.join(HEADS)} |", "|---" * len(HEADS) + "|"]
        lines += [f"| {' | '.join(self._cells(name))} |" for name in self.summary]
        for remark in self.remarks():
            lines += ["", f"{remark[0].upper()}{remark[1:]}"]
        return "\n".join(lines)

    def _cells(self, name: str) -> tuple[str, ...]:
        s = self.summary[name]
        interval = "" if math.isnan(s["low"]) else f"{number(s['low'])} to {number(s['high'])}"
        return (name, number(s["mean"]), number(s["std"]), interval, str(int(s["n"])), better(name))

    def remarks(self) -> list[str]:
        """Return the judges' accuracies and the notes as sentences, to print below a table of the means."""
        accuracies = ", ".join(f"{name} {number(accuracy) or 'not known'}" for name, accuracy in self.judges.items())
        what = (
            "their test accuracy" if "direction" not in self.summary else "the share of the variance that they explain"
        )
        judges = [f"judges and {what}: {accuracies}."] if accuracies else []
        return judges + [note if note.startswith(WARNING) else f"note: {note}" for note in self.notes]

    def to_dict(self) -> dict[str, Any]:
        """Return values for JSON, with None for NaN."""
        columns = {name: self.per_query[name].tolist() for name in self.per_query}
        known = {"summary": self.summary, "judges": self.judges, "notes": self.notes, "per_query": columns}
        return {"schema": SCHEMA, **{name: to_plain(value) for name, value in known.items()}}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one JSON file, atomically; read it with :meth:`load`."""
        write_json(path, self.to_dict())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Scores:
        """Read a file written by :meth:`save`."""
        import pandas as pd

        if not is_file(path):
            raise FileFormatError(f"no file {path}. Give the .json that Scores.save wrote.")
        data = read_json(path, "saved scores")
        try:
            if data["schema"] != SCHEMA:
                raise FileFormatError(
                    f"{path} has layout {data['schema']}, this version of sparcets reads layout {SCHEMA}. "
                    "Use the version that wrote it, or evaluate again."
                )
            missing = [name for name in ("query", "target", "status", "valid") if name not in data["per_query"]]
            if missing:
                raise FileFormatError(f"{path} has no column {missing[0]!r}, so it is damaged. Evaluate again.")
            columns = {
                name: values if name in LABELS else np.array(values, dtype=np.float64)
                for name, values in data["per_query"].items()
            }
            if not all(isinstance(s["n"], int) for s in data["summary"].values()):
                raise FileFormatError(f"{path} is damaged: a number of answers is no whole number. Evaluate again.")
            return cls(
                per_query=pd.DataFrame(columns),
                summary={name: {key: _number(s[key]) for key in SUMMARY} for name, s in data["summary"].items()},
                judges={name: _number(v) for name, v in data["judges"].items()},
                notes=tuple(str(note) for note in data["notes"]),
            )
        except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
            if isinstance(error, FileFormatError):
                raise
            raise FileFormatError(f"{path} contains no scores, or it is damaged: {error!r}.") from error


def better(name: str) -> Better:
    """Return whether higher or lower values of a measure are better; empty if neither is.

    >>> better("transfer_fcn"), better("sparsity_all"), better("segment_length")
    ('higher', 'lower', '')
    """
    base = name.removesuffix("_all").removesuffix("_valid")
    if base in HIGHER or base.startswith((*TRUTH, "direction")):
        return "higher"
    return "" if base == "segment_length" else "lower"


def measure_names(per_query: pd.DataFrame) -> list[str]:
    """Return the columns that are measures."""
    return [str(name) for name in per_query if name not in LABELS]


def summarise(
    per_query: pd.DataFrame, set_measures: Mapping[str, tuple[float, int]], *, seed: int
) -> dict[str, dict[str, float]]:
    """Return mean, standard deviation and bootstrap interval of every measure.

    ``per_query`` is as in :class:`Scores`; a measure of the whole set is a value and the number of answers.
    """
    columns = averaged(per_query)
    values = np.stack(list(columns.values()), axis=1) if columns else np.zeros((len(per_query), 0))
    low, high = bootstrap_intervals(values, per_query["query"].to_numpy(), seed=seed)
    summary: dict[str, dict[str, float]] = {}
    for i, name in enumerate(columns):
        found = values[~np.isnan(values[:, i]), i]
        mean = float(found.mean()) if len(found) else math.nan
        std = float(found.std(ddof=1)) if len(found) > 1 else math.nan
        summary[name] = dict(zip(SUMMARY, (mean, std, float(low[i]), float(high[i]), len(found)), strict=True))
    for name, (value, n) in set_measures.items():
        summary[name] = dict(zip(SUMMARY, (float(value), math.nan, math.nan, math.nan, n), strict=True))
    return summary


def averaged(per_query: pd.DataFrame) -> dict[str, FloatArray]:
    """Return the values that are averaged, by name of the mean (answers,); NaN where an answer does not count."""
    valid = per_query["valid"].to_numpy() == 1
    columns: dict[str, FloatArray] = {}
    over_all: dict[str, FloatArray] = {}  # placed after the rest
    for name in measure_names(per_query):
        values = per_query[name].to_numpy(dtype=np.float64)
        over_valid = np.where(valid, values, np.nan)
        if name in SHAPE:
            columns[name], over_all[f"{name}_all"] = over_valid, values
        else:
            columns[name] = values
            if name in TRUTH:
                columns[f"{name}_valid"] = over_valid
    return {**columns, **over_all}


def number(value: float) -> str:
    """Format a number for tables; NaN becomes an empty string.

    >>> number(0.5), number(math.nan)
    ('0.500', '')
    """
    return "" if math.isnan(value) else f"{value:.3f}"


def _number(value: Any) -> float:
    """Return a number of a saved file, where None is NaN."""
    return math.nan if value is None else value + 0  # a TypeError unless it is a number
