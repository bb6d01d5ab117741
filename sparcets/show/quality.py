"""The results of an evaluation for reports: the measures of each answer, and the quality of the whole set in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from sparcets.core.errors import DataError
from sparcets.core.explanation import Explanation
from sparcets.core.words import amount, percent

if TYPE_CHECKING:
    import pandas as pd

Verdict = Literal["good", "fair", "poor", ""]


class Scored(Protocol):
    """The parts of :class:`sparcets.Scores` that are used here."""

    @property
    def per_query(self) -> pd.DataFrame:
        """One row per answer."""

    @property
    def summary(self) -> dict[str, dict[str, float]]:
        """Mean, standard deviation and interval by measure."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out, and why."""


class Finding(NamedTuple):
    """One measure in words: title, grade, and a sentence."""

    name: str
    verdict: Verdict
    sentence: str


def measures_of(scores: Scored, explanation: Explanation) -> list[dict[str, float]]:
    """Return the measures of each answer, by name.

    Raises
    ------
    DataError
        If the scores are not those of this explanation.
    """
    frame = scores.per_query
    statuses = [str(status) for status in frame["status"]] if "status" in frame else []
    if statuses != [str(status) for status in explanation.status]:
        raise DataError(
            f"the scores are of {len(frame)} answers, and not those of this explanation, which has "
            f"{len(explanation)}. Pass the result of sp.evaluate for the same explanation; evaluate a slice separately."
        )
    numbers = frame.select_dtypes("number")
    columns = {str(name): numbers[name].to_numpy(dtype=float).tolist() for name in numbers}
    return [{name: values[i] for name, values in columns.items()} for i in range(len(frame))]


def quality_findings(summary: Mapping[str, Mapping[str, float]]) -> list[Finding]:
    """Return the main measures of a set of answers in words, as far as they are known.

    Parameters
    ----------
    summary
        ``scores.summary``: mean and, where known, 95 % interval by measure.

    Examples
    --------
    >>> found = quality_findings({"valid": {"mean": 0.5, "low": 0.4, "high": 0.6, "n": 20}})
    >>> found[0].verdict, found[0].sentence
    ('poor', '50 % of the 20 answers make the model predict the target (95 % interval: 40 to 60 %).')
    """
    known = {name: line for name, line in summary.items() if not math.isnan(line["mean"])}
    return [describe(known) for name, describe in FINDINGS.items() if name in known]


def _percent(line: Mapping[str, float]) -> str:
    return f"{100 * line['mean']:.0f} %"


def _interval(line: Mapping[str, float]) -> str:
    low, high = line.get("low", math.nan), line.get("high", math.nan)
    return "" if math.isnan(low) or low == high else f" (95 % interval: {100 * low:.0f} to {100 * high:.0f} %)"


def _grade(value: float, good: float, fair: float) -> Verdict:
    """Grade by two thresholds; if ``good`` is the smaller one, lower is better.

    >>> _grade(0.95, 0.9, 0.7), _grade(0.1, 0.2, 0.5), _grade(0.6, 0.2, 0.5)
    ('good', 'good', 'poor')
    """
    sign = 1 if good >= fair else -1
    return "good" if sign * value >= sign * good else "fair" if sign * value >= sign * fair else "poor"


def _valid(known: Mapping[str, Mapping[str, float]]) -> Finding:
    line = known["valid"]
    text = f"{_percent(line)} of the {int(line['n'])} answers make the model predict the target{_interval(line)}."
    return Finding("Validity", _grade(line["mean"], 0.95, 0.8), text)


def _transfer(known: Mapping[str, Mapping[str, float]]) -> Finding:
    line = known["transfer"]
    text = f"Independent judges agree with {_percent(line)} of them{_interval(line)}."
    unseen = known.get("transfer_unseen", line)
    if unseen["mean"] != line["mean"]:
        text += f" Those of other families than the method used itself agree with {_percent(unseen)}."
    verdict = _grade(line["mean"], 0.8, 0.5)
    if verdict == "poor":
        text += " Many may fool the model rather than explain it."
    return Finding("Transfer", verdict, text)


def _direction(known: Mapping[str, Mapping[str, float]]) -> Finding:
    line = known["direction"]
    text = f"The numbers of the judges move towards the target, or are within it, in {_percent(line)} of the cases"
    return Finding("Direction", _grade(line["mean"], 0.9, 0.7), f"{text}{_interval(line)}.")


def _oracle(known: Mapping[str, Mapping[str, float]]) -> Finding:
    line = known["oracle"]
    text = f"The process that generated the data puts {_percent(line)} into the target class{_interval(line)}."
    return Finding("Oracle", _grade(line["mean"], 0.8, 0.5), text)


def _sparsity(known: Mapping[str, Mapping[str, float]]) -> Finding:
    share = known["sparsity"]["mean"]
    text = f"{percent(share)} of the values that may change do"
    if "segments" in known and "segment_length" in known:
        n, length = known["segments"]["mean"], known["segment_length"]["mean"]
        text += f", in {n:.1f} segments of {length:.1f} steps on average"
    return Finding("Sparsity", _grade(share, 0.2, 0.5), f"{text}.")


def _plausibility(known: Mapping[str, Mapping[str, float]]) -> Finding:
    ratio = known["knn_ratio"]["mean"]
    text = f"Their distance to real series of the target is {amount(ratio)} times that of real series (1: like real)."
    return Finding("Plausibility", _grade(ratio, 1.2, 1.5), text)


def _universality(known: Mapping[str, Mapping[str, float]]) -> Finding:
    value = known["universality"]["mean"]
    verdict = _grade(value, 0.5, 0.8)
    text = (
        f"The mean of the other answers predicts {percent(value) if value > 0 else 'nothing'} of what an answer changes"
    )
    if verdict == "poor":
        return Finding(
            "Universality", verdict, f"{text}: much the same change for all says little about single series."
        )
    return Finding("Universality", verdict, f"{text}{'; the rest is its own' if value > 0 else ''}.")


def _limbs(known: Mapping[str, Mapping[str, float]]) -> Finding:
    share = known["limb_deviation"]["mean"]
    text = f"Limbs change their length by {percent(share)} on average."
    return Finding("Geometry", _grade(share, 0.05, 0.15), text)


def _seconds(known: Mapping[str, Mapping[str, float]]) -> Finding:
    line = known["seconds"]
    each = line["mean"] / max(line["n"], 1)
    return Finding("Time", "", f"Explaining took {amount(line['mean'])} s in all, {amount(each)} s per answer.")


FINDINGS: Mapping[str, Callable[[Mapping[str, Mapping[str, float]]], Finding]] = {
    "valid": _valid,
    "transfer": _transfer,
    "direction": _direction,
    "oracle": _oracle,
    "sparsity": _sparsity,
    "knn_ratio": _plausibility,
    "universality": _universality,
    "limb_deviation": _limbs,
    "seconds": _seconds,
}
