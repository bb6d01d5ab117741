"""SeriesInfo: names, units, scale and ranges of the training series, part of every explanation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets.core.config import Record
from sparcets.core.series import BoolArray, FloatArray, IntArray, Scaler, Series, bend_over, move_over
from sparcets.core.side_inputs import SideInputs
from sparcets.core.validation import Task, default_feature_names, feature_index
from sparcets.core.words import distinct, missing_amount, percent

if TYPE_CHECKING:
    from sparcets.data.dataset import Dataset


PER_FEATURE = ("mutable", "binary", "max_moves", "max_bends", "span", "low", "high", "largest_step")
SPANS = (2, 3, 4, 6)  # steps over which a move is compared with those of real series
CHUNK = 1024  # series at a time, bounding memory


STANDARD_ERRORS = 2.0  # by which a model must be better than chance
MIN_LIKELY = 0.7  # agreement with the classes in another order, for that order to be suggested


@dataclass(frozen=True, kw_only=True)
class ModelCheck(Record):
    """Comparison of the model to explain with the labels of the fit; part of every explanation.

    Examples
    --------
    >>> labels = np.arange(60) % 3
    >>> ModelCheck.of_classes(labels, labels, "abc", held_out=True).doubts
    ()
    >>> ModelCheck.of_classes(2 - labels, labels, "abc", held_out=True).doubts[0].partition(":")[0]
    'the classes seem to be in another order'
    """

    # Accuracy of the model, and share of the most frequent class. For numbers, the share of their variance that the
    # model explains, and 0. None where the labels say nothing.
    score: float | None
    chance: float | None
    n_series: int  # number of compared series
    held_out: bool  # whether the model is known not to be trained on these series
    consistent: bool = True  # whether repeated predictions were the same
    # Why no answer for this model is believed; phrases without a capital letter and a full stop. Empty for a model that
    # is better than chance and agrees with itself.
    doubts: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()  # other findings, which do not concern every answer; also phrases

    @classmethod
    def of_classes(cls, said: IntArray, labels: IntArray, class_names: Sequence[str], *, held_out: bool) -> ModelCheck:
        """Compare predicted classes (batch,) with labels (batch,)."""
        n, names = len(labels), list(class_names)
        score, chance = float((said == labels).mean()), float(np.bincount(labels).max() / n)
        p = (score * n + 1) / (n + 2)  # so that a few correct predictions do not give certainty
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
        """Compare predicted numbers with labels (batch, outputs), given the mean and spread of the training labels."""
        n, where = len(labels), _where(len(labels), held_out)
        errors, spread = ((((values - labels) / scale) ** 2).mean(1) for values in (said, np.asarray(center)))
        if spread.mean() == 0:
            doubt = f"the labels of {where} are all equal, which cannot show what the model knows"
            return cls(score=None, chance=None, n_series=n, held_out=held_out, doubts=(doubt,))
        ratio = float(errors.mean() / spread.mean())
        error = float(
            (errors - ratio * spread).std() / (spread.mean() * np.sqrt(n))
        )  # standard error of a ratio of two means
        doubts = []
        if n < 3 or 1 - ratio - STANDARD_ERRORS * error <= 0:
            doubts.append(
                f"the model is not better than chance: of {where}, it explains {1 - ratio:.2f} of the variance of the "
                "labels, and their mean alone explains 0"
            )
        return cls(score=1 - ratio, chance=0.0, n_series=n, held_out=held_out, doubts=tuple(doubts))

    @property
    def findings(self) -> list[str]:
        """All findings, as phrases."""
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


def _where(n: int, held_out: bool) -> str:
    return f"{n} series that it was not trained on" if held_out else f"{n} training series"


def _likely_order(said: IntArray, labels: IntArray, n_classes: int) -> IntArray | None:
    """Return the label that each output of the model seems to stand for (classes,); None if it is the output's own.

    For every exchanged label, most series must be predicted as the same other label.
    """
    from scipy.optimize import linear_sum_assignment

    counts = np.zeros((n_classes, n_classes))  # outputs by labels
    np.add.at(counts, (said, labels), 1)
    # Break ties in favour of the identity: the sum of the additions is less than one series.
    outputs, found = linear_sum_assignment(counts + 0.5 / n_classes * np.eye(n_classes), maximize=True)
    moved = np.flatnonzero(found != outputs)
    agree, given = counts[moved, found[moved]], np.diag(counts)[found[moved]]
    majority = (2 * agree > counts.sum(0)[found[moved]]).all()
    clear = agree.sum() - given.sum() > STANDARD_ERRORS * np.sqrt(agree.sum() + given.sum())
    if not len(moved) or not majority or not clear or counts[outputs, found].sum() < MIN_LIKELY * len(labels):
        return None
    return np.asarray(found, dtype=np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome(Record):
    """Names, units and spread of the numbers that a model predicts, by output."""

    names: tuple[str, ...]
    units: tuple[str, ...] | None
    center: FloatArray  # mean and standard deviation of the training labels; a scale of 1 where they are all equal
    scale: FloatArray

    @classmethod
    def of_labels(
        cls, y: FloatArray, names: tuple[str, ...] | None = None, units: tuple[str, ...] | None = None
    ) -> Outcome:
        """Describe training labels (batch, outputs).

        >>> Outcome.of_labels(np.array([[0.0, 1.0], [2.0, 1.0]]), units=("m", "s")).to_dict()
        {'names': ['output 0', 'output 1'], 'units': ['m', 's'], 'center': [1.0, 1.0], 'scale': [1.0, 1.0]}
        """
        spread = y.std(0)
        names = names or default_output_names(y.shape[1])
        return cls(names=names, units=units, center=y.mean(0), scale=np.where(spread > 0, spread, 1.0))

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return len(self.names)

    def summary(self) -> str:
        """Return a description of the predicted numbers.

        >>> Outcome(names=("pressure",), units=("mmHg",), center=np.zeros(1), scale=np.ones(1)).summary()
        'numbers pressure (mmHg)'
        """
        units = self.units or [""] * self.n_outputs
        return f"numbers {', '.join(f'{n} ({u})' if u else n for n, u in zip(self.names, units, strict=True))}"

    def unit(self, output: int) -> str:
        """Return the unit of an output, with a space before it; empty where it is unknown."""
        return f" {self.units[output]}" if self.units is not None and self.units[output] else ""

    def say(
        self,
        numbers: FloatArray,
        outputs: Sequence[int] | None = None,
        bounds: FloatArray | None = None,
        beside: FloatArray | None = None,
    ) -> str:
        """Return numbers (outputs,), or those of some outputs, as text with units.

        A number has enough digits to show that it is outside its ``bounds`` (outputs, 2), and to differ from the
        number printed ``beside`` it (outputs,).

        >>> pressure = Outcome(names=("p",), units=("mmHg",), center=np.zeros(1), scale=np.ones(1))
        >>> pressure.say(np.array([41.23456])), pressure.say(np.array([29.99999]), bounds=np.array([[30, np.inf]]))
        ('41.23 mmHg', '29.99999 mmHg')
        """
        chosen = range(self.n_outputs) if outputs is None else outputs
        texts = []
        for k in chosen:
            text = _number(float(numbers[k]), None if bounds is None else bounds[k])
            if beside is not None and numbers[k] != beside[k] and text == f"{beside[k]:.4g}":
                text = distinct(float(numbers[k]), float(beside[k]), style=".4g")[0]
            texts.append(f"{text}{self.unit(k)}")
        return ", ".join(texts)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Outcome:
        """Build from :meth:`to_dict`'s output; raise ValueError where values do not fit together."""
        made = super().from_dict(data)
        n, numbers = made.n_outputs, np.array([made.center, made.scale])
        fits = n > 0 and numbers.shape == (2, n) and np.isfinite(numbers).all() and (made.scale > 0).all()
        if not fits or len(made.units or made.names) != n:
            raise ValueError(f"names, units, center and scale of {n} outputs do not fit together")
        return made


def _number(value: float, bounds: FloatArray | None) -> str:
    if bounds is None or bounds[0] <= value <= bounds[1]:
        return f"{value:.4g}"
    return missing_amount(value, lambda written: bool(bounds[0] <= written <= bounds[1]), style=".4g")


def default_output_names(n_outputs: int) -> tuple[str, ...]:
    """Return default names for the numbers that a model predicts.

    >>> default_output_names(1), default_output_names(2)
    (('number',), ('output 0', 'output 1'))
    """
    return ("number",) if n_outputs == 1 else tuple(f"output {k}" for k in range(n_outputs))


@dataclass(frozen=True, kw_only=True, eq=False)
class SeriesInfo(Record):
    """Names, units and statistics of training series of shape (batch, time, features).

    Examples
    --------
    >>> from sparcets.testing.data import make_series
    >>> SeriesInfo.from_series(make_series(30)[0], ("calm", "brisk", "wild")).feature_names
    ('f0', 'f1', 'f2', 'f3')
    """

    feature_names: tuple[str, ...]
    class_names: tuple[str, ...]
    units: tuple[str, ...] | None  # of each feature
    sampling_rate: float | None  # in Hz
    n_steps: int  # of the (padded) series
    unequal: bool = False  # whether the training series have unequal lengths
    mutable: BoolArray  # per feature, whether it may change
    binary: BoolArray  # per feature, whether its training values are 0 and 1
    max_moves: FloatArray  # largest change over at most each number of steps in SPANS (spans, features)
    # Largest bend (difference of consecutive moves of a feature) over one step and over each number of steps in SPANS
    # (1 + spans, features).
    max_bends: FloatArray
    span: FloatArray  # largest minus smallest training value; changes below 1e-6 of it do not count (features,)
    low: FloatArray  # smallest and largest training value (features,)
    high: FloatArray
    # Largest change between two consecutive steps (features,).
    largest_step: FloatArray = field(metadata={"key": "max_step"})
    scaler: Scaler  # mean and standard deviation per feature on the training series
    outcome: Outcome | None = None  # the numbers that the model predicts; None for classes
    side: SideInputs | None = None  # side inputs of the model: the last features here, which never change
    model: ModelCheck | None = None  # comparison of the model with the labels; None before it is known

    @cached_property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.feature_names)

    @cached_property
    def of_series(self) -> SeriesInfo:
        """The same for the series alone, without side inputs."""
        if self.side is None:
            return self
        n = self.n_features - self.side.n_columns
        return replace(
            self,
            feature_names=self.feature_names[:n],
            units=None if self.units is None else self.units[:n],
            scaler=Scaler(self.scaler.center[:n], self.scaler.scale[:n]),
            side=None,
            **{name: getattr(self, name)[..., :n] for name in PER_FEATURE},
        )

    @cached_property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    @cached_property
    def constant(self) -> BoolArray:
        """Per feature, whether its training values differ by rounding only."""
        # The scale of a constant feature is 1; a standard deviation of 1 needs values that are 2 apart.
        return np.asarray((self.scaler.scale == 1) & (self.span < 2))

    @property
    def model_doubts(self) -> tuple[str, ...]:
        """Reasons why no answer for the model is believed, as phrases; empty if there are none."""
        return () if self.model is None else self.model.doubts

    @property
    def task(self) -> Task:
        """Task of models of these series: ``"classification"`` or ``"regression"``."""
        return "regression" if self.is_regression else "classification"

    @property
    def is_regression(self) -> bool:
        """Whether models of these series predict numbers."""
        return self.outcome is not None

    @property
    def numbers(self) -> Outcome:
        """The outputs of a regressor; only for regressors."""
        assert self.outcome, "a classifier predicts no numbers"
        return self.outcome

    @property
    def predicts(self) -> str:
        """Description of what models of these series predict."""
        return self.outcome.summary() if self.outcome else f"classes {', '.join(self.class_names)}"

    def feature_index(self, feature: int | str) -> int:
        """Return the index of a feature of the series, given by index or name."""
        names = self.of_series.feature_names
        return feature_index(feature, names, len(names))

    @classmethod
    def from_series(
        cls,
        X: FloatArray,
        class_names: tuple[str, ...],
        *,
        lengths: IntArray | None = None,
        source: Dataset | None = None,
        outcome: Outcome | None = None,
        side: SideInputs | None = None,
    ) -> SeriesInfo:
        """Compute from training series; names and units are taken from ``source``, the Dataset they come from.

        ``side`` are the side inputs that are attached to the series.
        """
        series, n_features = Series(X, lengths), X.shape[2] - (0 if side is None else side.n_columns)
        names, units, rate, mutable = (
            None if source is None else getattr(source, name)
            for name in ("feature_names", "units", "sampling_rate", "mutable")
        )
        beside = () if side is None else side.column_names
        mutable = np.ones(n_features, dtype=bool) if mutable is None else mutable
        scaler = Scaler.fit(X, lengths)
        values = series.flat  # fmin and fmax ignore entries that are missing
        low, high = np.fmin.reduce(values), np.fmax.reduce(values)
        span = high.astype(np.float64) - low
        moves, bends = _largest(move_over, series), _largest(bend_over, series)
        return cls(
            feature_names=(*(names or default_feature_names(n_features)), *beside),
            class_names=class_names,
            units=None if units is None else (*units, *[""] * len(beside)),
            sampling_rate=rate,
            mutable=np.append(mutable, np.zeros(len(beside), dtype=bool)),
            n_steps=X.shape[1],
            scaler=scaler if side is None else scaler.exact_from(n_features),
            span=span,
            binary=((values == 0) | (values == 1) | np.isnan(values)).all(0) & (span > 0),
            low=low.astype(np.float64),
            high=high.astype(np.float64),
            largest_step=moves[0],
            max_moves=moves[1:],
            max_bends=bends,
            unequal=series.unequal,
            outcome=outcome,
            side=side,
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SeriesInfo:
        """Build from :meth:`to_dict`'s output; raise ValueError where values do not fit together."""
        info = super().from_dict(data)
        F, rate = info.n_features, info.sampling_rate
        numbers = (info.scaler.center, info.scaler.scale, info.span, info.low, info.high, info.largest_step)
        checks = {
            "names": F > 0 and (info.n_classes > 0) != (info.task == "regression"),
            "units": info.units is None or len(info.units) == F,
            "sampling_rate": rate is None or 0 < rate < np.inf,
            "mutable or binary": all(v.shape == (F,) and v.dtype == bool for v in (info.mutable, info.binary)),
            "n_steps": info.n_steps >= 1,
            "side": info.side is None or info.side.n_columns < F,
            "scale or ranges": all(v.shape == (F,) and np.isfinite(v).all() for v in numbers),
            "moves": info.max_moves.shape == (len(SPANS), F) and bool(np.isfinite(info.max_moves).all()),
            "bends": info.max_bends.shape == (1 + len(SPANS), F) and bool(np.isfinite(info.max_bends).all()),
        }
        wrong = [name for name, fine in checks.items() if not fine]
        if wrong:
            raise ValueError(f"{', '.join(wrong)} of the series cannot be those of {F} features")
        return info


def _largest(measure: Callable[[FloatArray, int], FloatArray], series: Series) -> FloatArray:
    """Return the largest moves or bends of each feature, over one step and those of ``SPANS`` (1 + spans, features).

    Padding and gaps do not count.
    """
    largest = np.zeros((1 + len(SPANS), series.n_features))
    for part in series.batches(CHUNK):
        for k, span in enumerate((1, *SPANS)):
            found = measure(part.values, span)
            found = found[part.inside[:, part.n_steps - found.shape[1] :]]
            largest[k] = np.fmax(largest[k], np.fmax.reduce(found, initial=0.0))
    return np.maximum.accumulate(largest)  # series too short for a span say nothing about it
