"""ModelCheck: how a model compares with the labels of a fit, and with itself when it is asked twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparcets.core.arrays import FloatArray, IntArray
from sparcets.core.words import percent

STANDARD_ERRORS = 2.0  # by which a model must be better than chance
MIN_LIKELY = 0.7  # agreement with the classes in another order, for that order to be suggested


@dataclass(frozen=True, kw_only=True)
class ModelCheck:
    """What ``fit`` found out about the model to explain; part of every explanation.

    Attributes
    ----------
    score, chance
        Share of the labels that the model agrees with, and of the most frequent class. For numbers, the share of their
        variance that the model explains, and 0. None where the labels say nothing.
    n_series, held_out
        Number of series that were compared, and whether they are known to be others than those it was trained on.
    doubts
        Why no answer for this model is believed; phrases without a capital letter and a full stop. None for a model
        that is better than chance and agrees with itself.
    remarks
        What else was found, which does not concern every answer; such phrases, too.
    consistent
        Whether it predicted the same when it was asked again.

    Examples
    --------
    >>> labels = np.arange(60) % 3
    >>> ModelCheck.of_classes(labels, labels, "abc", held_out=True).doubts
    ()
    >>> ModelCheck.of_classes(2 - labels, labels, "abc", held_out=True).doubts[0].partition(":")[0]
    'the classes seem to be in another order'
    """

    score: float | None
    chance: float | None
    n_series: int
    held_out: bool
    doubts: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    consistent: bool = True

    @classmethod
    def of_classes(cls, said: IntArray, labels: IntArray, class_names: Sequence[str], *, held_out: bool) -> ModelCheck:
        """Compare predicted classes (batch,) with labels (batch,)."""
        n, names = len(labels), list(class_names)
        score, chance = float((said == labels).mean()), float(np.bincount(labels).max() / n)
        p = (score * n + 1) / (n + 2)  # so that few series, all of them right, are no certainty
        where = _where(n, held_out)
        doubts = []
        if chance == 1:
            doubts.append(f"all of {where} are of class {names[labels[0]]!r}, which cannot show what the model knows")
        elif (said == said[0]).all():
            doubts.append(f"the model predicts {names[said[0]]!r} for all of {where}")
        elif (likely := _likely_order(said, labels, len(names))) is not None:
            order, agreement = [names[k] for k in likely], float((likely[said] == labels).mean())
            doubts.append(
                f"the classes seem to be in another order: class_names={order} would agree with {percent(agreement)} "
                f"of the labels, the given order with {percent(score)}"
            )
        elif score - STANDARD_ERRORS * np.sqrt(p * (1 - p) / n) <= chance:
            doubts.append(
                f"the model is not better than chance: it agrees with {percent(score)} of the labels of {where}, and "
                f"{percent(chance)} of them are of one class"
            )
        return cls(score=score, chance=chance, n_series=n, held_out=held_out, doubts=tuple(doubts))

    @classmethod
    def of_numbers(cls, said: FloatArray, labels: FloatArray, center: Any, scale: Any, *, held_out: bool) -> ModelCheck:
        """Compare predicted numbers with labels (batch, outputs), whose mean and spread in training are given."""
        n, where = len(labels), _where(len(labels), held_out)
        errors, spread = ((((values - labels) / scale) ** 2).mean(1) for values in (said, np.asarray(center)))
        if spread.mean() == 0:
            doubt = f"the labels of {where} are all equal, which cannot show what the model knows"
            return cls(score=None, chance=None, n_series=n, held_out=held_out, doubts=(doubt,))
        ratio = float(errors.mean() / spread.mean())
        error = float((errors - ratio * spread).std() / (spread.mean() * np.sqrt(n)))  # of a ratio of two means
        doubts = []
        if n < 3 or 1 - ratio - STANDARD_ERRORS * error <= 0:
            doubts.append(
                f"the model is not better than chance: of {where}, it explains {1 - ratio:.2f} of the variance of the "
                "labels, and their mean alone explains 0"
            )
        return cls(score=1 - ratio, chance=0.0, n_series=n, held_out=held_out, doubts=tuple(doubts))

    @property
    def findings(self) -> list[str]:
        """All that was found, in words."""
        return [*self.doubts, *self.remarks]

    def describe(self) -> list[str]:
        """Return sentences for a summary.

        >>> ModelCheck(score=0.96, chance=0.4, n_series=50, held_out=True).describe()
        ['The model agrees with 96 % of the labels of 50 series that it was not trained on; 40 % are of one class.']
        """
        where = _where(self.n_series, self.held_out)
        unknown = "" if self.held_out else " (it may have been trained on them)"
        lines = []
        if self.score is not None and self.chance == 0:
            lines.append(f"The model explains {self.score:.2f} of the variance of the labels of {where}{unknown}.")
        elif self.score is not None and self.chance is not None:
            agrees = f"The model agrees with {percent(self.score)} of the labels of {where}{unknown}"
            lines.append(f"{agrees}; {percent(self.chance)} are of one class.")
        lines += [f"Careful: {doubt}. No answer is believed." for doubt in self.doubts]
        return lines + [f"Careful: {remark}." for remark in self.remarks]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        lists = {"doubts": list(self.doubts), "remarks": list(self.remarks)}
        return {name: getattr(self, name) for name in _KINDS} | lists

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ModelCheck:
        """Build from :meth:`to_dict`'s output; raise ValueError where a value cannot be one of it."""
        texts: dict[str, Any] = {name: tuple(data[name]) for name in ("doubts", "remarks")}
        wrong = [name for name, kinds in _KINDS.items() if not isinstance(data[name], kinds)]
        wrong += [name for name, values in texts.items() if not all(isinstance(text, str) for text in values)]
        if wrong:
            raise ValueError(f"{', '.join(wrong)} of the model cannot be {[data[name] for name in wrong]}")
        return cls(**{name: data[name] for name in _KINDS}, **texts)


_KINDS: dict[str, Any] = {
    "score": (float, type(None)),
    "chance": (float, type(None)),
    "n_series": int,
    "held_out": bool,
    "consistent": bool,
}


def _where(n: int, held_out: bool) -> str:
    return f"{n} series that it was not trained on" if held_out else f"{n} training series"


def _likely_order(said: IntArray, labels: IntArray, n_classes: int) -> IntArray | None:
    """Return the label that each output of the model seems to stand for (classes,); None if that is its own.

    Most series of every label that is exchanged must be predicted as the same other one.
    """
    from scipy.optimize import linear_sum_assignment

    counts = np.zeros((n_classes, n_classes))  # outputs by labels
    np.add.at(counts, (said, labels), 1)
    # Among equals, as it is: the sum of what is added is less than one series.
    outputs, found = linear_sum_assignment(counts + 0.5 / n_classes * np.eye(n_classes), maximize=True)
    moved = np.flatnonzero(found != outputs)
    agree, given = counts[moved, found[moved]], np.diag(counts)[found[moved]]
    majority = (2 * agree > counts.sum(0)[found[moved]]).all()
    clear = agree.sum() - given.sum() > STANDARD_ERRORS * np.sqrt(agree.sum() + given.sum())
    if not len(moved) or not majority or not clear or counts[outputs, found].sum() < MIN_LIKELY * len(labels):
        return None
    return np.asarray(found, dtype=np.int64)
