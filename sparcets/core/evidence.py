"""Evidence on answers: support by models of other kinds, plausibility, and how few changes are enough."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sparcets.core.errors import DataError, ShapeError
from sparcets.core.info import SPANS, SeriesInfo
from sparcets.core.series import BoolArray, FloatArray, IntArray, Series, bend_over, compare_pairs, differs, move_over
from sparcets.core.side_inputs import side_apart
from sparcets.motion.skeleton import Limb, Skeleton, find_skeleton

if TYPE_CHECKING:
    from sparcets.core.explanation import Explanation

PLAUSIBILITY = ("distance", "outside", "jumps", "stretch")
CURVE = ("share", "support", "valid")
REAL = "real"  # among the families: discriminators that tell answers from recordings
MAJORITY = 0.5  # a family agrees if more than this share of it predicts the target
FEWEST_FAMILIES = 3  # that are asked about a believed answer, beside the discriminators
MAX_STRETCH = 0.1  # relative change of a limb's length
FRAGILE = 4  # times as many changes are needed to convince the selector as to flip the model
PREFIX = "evidence_"  # of the arrays in a file
# By tone: for text on white, for backgrounds, and the name of a terminal colour.
TONES = {
    "green": ("#15703f", "#e6f4ec", "green"),
    "amber": ("#9a5b00", "#fdf3e0", "yellow"),
    "red": ("#b3261e", "#fbeae9", "red"),
    "grey": ("#5b5b5b", "#f0f0f0", "dim"),
}
SHAPE = ("outside", "jumps", "stretch")  # measures of plausibility that need no reference series
TOLERANCE = 1e-6  # of a feature's span: differences below it are rounding
JUMP_MARGIN = 1.25  # of the largest real move over several steps: more is a jump
CHUNK = 1024  # answers at a time, bounding memory
PER_CLASS = 500  # reference series of each class
DISTANCE_NEIGHBOURS = 5  # reference series whose mean distance counts
EQUAL = 1e-5  # relative difference below which distances are equal


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """Evidence on each answer besides the explained classifier.

    Examples
    --------
    >>> evidence = Evidence(families=("intervals", "quantiles"), support=np.array([[1.0, 0.8], [1.0, 0.4]]))
    >>> evidence.plausibility["distance"].tolist(), evidence.curve["share"].shape
    ([nan, nan], (2, 0))
    """

    families: tuple[str, ...]  # names of the selector's families: models of other kinds, trained on the same data
    support: FloatArray  # share of each family that predicts the target (answers, families); NaN where unknown
    # The names of PLAUSIBILITY to arrays (answers,), from PlausibilityReference; NaN where unknown.
    plausibility: Mapping[str, FloatArray] = field(default_factory=dict)
    # Names to arrays (answers, points): share of mutable entries changed, smallest support over the families, and valid
    # (1 where the explained classifier predicts the target, else 0). NaN where an answer has fewer points; no points if
    # no curve was requested.
    curve: Mapping[str, FloatArray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n = len(self.support)
        if not self.plausibility:
            object.__setattr__(self, "plausibility", {name: np.full(n, np.nan) for name in PLAUSIBILITY})
        if not self.curve:
            object.__setattr__(self, "curve", {name: np.zeros((n, 0)) for name in CURVE})
        shapes = {name: values.shape for name, values in self.plausibility.items()}
        curves = {name: values.shape for name, values in self.curve.items()}
        if (
            self.support.shape != (n, len(self.families))
            or shapes != dict.fromkeys(PLAUSIBILITY, (n,))
            or sorted(curves) != sorted(CURVE)
            or len({*curves.values()}) > 1
            or any(len(shape) != 2 or shape[0] != n for shape in curves.values())
        ):
            raise ShapeError(
                f"evidence needs support (answers, {len(self.families)} families), {', '.join(PLAUSIBILITY)} "
                f"(answers,) and the curve's {', '.join(CURVE)} (answers, points); got support {self.support.shape}, "
                f"plausibility {shapes}, curve {curves}."
            )

    @classmethod
    def none(cls, n_answers: int) -> Evidence:
        """Return no evidence on ``n_answers`` answers, for methods without a selector."""
        return cls(families=(), support=np.zeros((n_answers, 0)))

    def with_curve(self, curve: Mapping[str, FloatArray], rows: IntArray) -> Evidence:
        """Return this evidence with the curve of the answers ``rows``; the others get no points."""
        whole = {name: np.full((len(self), values.shape[1]), np.nan) for name, values in curve.items()}
        for name, values in curve.items():
            whole[name][rows] = values
        return replace(self, curve=whole)

    def __len__(self) -> int:
        return len(self.support)

    def __getitem__(self, rows: slice | IntArray | BoolArray) -> Evidence:
        """Select answers by slice, mask or indices."""
        return replace(
            self,
            support=self.support[rows],
            plausibility={name: values[rows] for name, values in self.plausibility.items()},
            curve={name: values[rows] for name, values in self.curve.items()},
        )

    @classmethod
    def join(cls, parts: Sequence[Evidence]) -> Evidence:
        """Concatenate; parts without families, and shorter curves, are filled with NaN.

        Raises
        ------
        DataError
            If the parts have different families.
        """
        families = next((part.families for part in parts if part.families), ())
        others = {part.families for part in parts} - {(), families}
        if others:
            raise DataError(
                f"evidence of different families cannot be joined: {families} and {others.pop()}. "
                "Join answers of the same explainer."
            )
        points = max(part.curve["share"].shape[1] for part in parts)
        return cls(
            families=families,
            support=np.concatenate([_widen(part.support, len(families)) for part in parts]),
            plausibility={name: np.concatenate([part.plausibility[name] for part in parts]) for name in PLAUSIBILITY},
            curve={name: np.concatenate([_widen(part.curve[name], points) for part in parts]) for name in CURVE},
        )

    def to_arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return everything as plain arrays by name, for a file."""
        arrays: dict[str, np.ndarray[Any, Any]] = {
            f"{PREFIX}families": np.array(self.families, dtype=str),
            f"{PREFIX}support": self.support,
        }
        arrays |= {f"{PREFIX}{name}": values for name, values in self.plausibility.items()}
        return arrays | {f"{PREFIX}curve_{name}": values for name, values in self.curve.items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Evidence:
        """Build from arrays that include the output of :meth:`to_arrays`; raise DataError if one is not of floats."""
        for name in ("support", *PLAUSIBILITY, *(f"curve_{name}" for name in CURVE)):
            if arrays[f"{PREFIX}{name}"].dtype.kind != "f":
                raise DataError(f"{PREFIX}{name} must be floats, got {arrays[f'{PREFIX}{name}'].dtype}.")
        return cls(
            families=tuple(arrays[f"{PREFIX}families"].tolist()),
            support=arrays[f"{PREFIX}support"],
            plausibility={name: arrays[f"{PREFIX}{name}"] for name in PLAUSIBILITY},
            curve={name: arrays[f"{PREFIX}curve_{name}"] for name in CURVE},
        )


def other_kinds(families: Sequence[str]) -> BoolArray:
    """Return which families are models of other kinds (families,): all but the discriminators.

    >>> other_kinds(("intervals", "real")).tolist()
    [True, False]
    """
    return np.array([name != REAL for name in families], dtype=bool)


def _widen(values: FloatArray, n_columns: int) -> FloatArray:
    """Append columns of NaN to (answers, columns)."""
    return np.pad(values, ((0, 0), (0, n_columns - values.shape[1])), constant_values=np.nan)


class Verdict(NamedTuple):
    """How a verdict is displayed; colour is never the only cue.

    Examples
    --------
    >>> VERDICTS["trick"].label, VERDICTS["trick"].tone
    ('✗ trick', 'red')
    """

    word: str  # as in Explanation.verdict
    symbol: str  # one character
    tone: str  # name of the colour: green, amber, red or grey
    meaning: str  # one sentence, without a full stop

    @property
    def colour(self) -> str:
        """For text and lines on white, with a contrast of at least 4.5."""
        return TONES[self.tone][0]

    @property
    def tint(self) -> str:
        """A light colour, for backgrounds."""
        return TONES[self.tone][1]

    @property
    def label(self) -> str:
        """Symbol and word, for tables."""
        return f"{self.symbol} {self.word}"

    @property
    def title(self) -> str:
        """Symbol and capitalised word, for the beginning of a text."""
        return f"{self.symbol} {self.word.capitalize()}"

    @property
    def terminal_style(self) -> str:
        """Name of a terminal colour that is readable on dark and light backgrounds."""
        return TONES[self.tone][2]

    def __str__(self) -> str:
        """Return the label."""
        return self.label


_IS = "the model predicts the target"
_NOT = "the target is not reached: the model predicts something else, or is less sure than was asked for"
_VERDICTS = (
    Verdict("believed", "✓", "green", f"{_IS}, other models of every kind agree, and the series looks real"),
    Verdict("doubtful", "?", "amber", f"{_IS}, but not all that was asked for a believed answer holds"),
    Verdict("trick", "✗", "red", f"{_IS}, but fewer than half of the kinds of other models do"),
    Verdict("not reached", "○", "grey", _NOT),
    Verdict("unchanged", "=", "grey", f"{_IS} for the query itself"),
)
VERDICTS = {verdict.word: verdict for verdict in _VERDICTS}


@dataclass(frozen=True, eq=False)
class Segments:
    """Contiguous changed steps, as parallel arrays sorted by series, feature and start.

    The range of steps is half-open.
    """

    series: IntArray
    feature: IntArray
    start: IntArray
    end: IntArray

    def __len__(self) -> int:
        return len(self.start)


def find_segments(changed: BoolArray | FloatArray) -> Segments:
    """Find the runs of steps of each feature that have the same value other than 0.

    The input is a mask of changed entries (batch, time, features), or the signs of changes, where a run only rises or
    only falls.

    >>> found = find_segments(np.array([[1, 1, 0, 1]], dtype=bool)[..., None])
    >>> list(zip(found.start.tolist(), found.end.tolist()))
    [(0, 2), (3, 4)]
    >>> found = find_segments(np.sign([[0.5, 0.1, -0.2, 0.0]])[..., None])
    >>> list(zip(found.start.tolist(), found.end.tolist()))
    [(0, 2), (2, 3)]
    """
    by_feature = changed.transpose(0, 2, 1).astype(np.int8)  # (batch, features, time)
    padded = np.pad(by_feature, ((0, 0), (0, 0), (1, 1)))
    other = padded[:, :, 1:] != padded[:, :, :-1]  # (batch, features, time + 1): differs from the step before
    series, feature, start = np.nonzero(other[:, :, :-1] & (by_feature != 0))
    end = np.nonzero(other[:, :, 1:] & (by_feature != 0))[2] + 1
    return Segments(series=series, feature=feature, start=start, end=end)


def shape_of(answers: Explanation, info: SeriesInfo, skeleton: Skeleton | None) -> dict[str, FloatArray]:
    """Return three measures (answers,) of each counterfactual; padding and missing entries do not count.

    - ``outside``: number of changed entries outside the range of their feature in the training series
    - ``jumps``: number of steps, from or to a changed entry, in which a feature changes more than in any training
      series, plus the number of moves over two to six steps, and of bends, that are a quarter larger than any in the
      training series and larger than the query's
    - ``stretch``: largest relative change of a limb's length against the query's at the same step; NaN if the features
      form no limb
    """
    query, made = answers.query, answers.counterfactual
    inside = Series(query, answers.lengths).inside
    rows = [slice(i, i + CHUNK) for i in range(0, max(len(query), 1), CHUNK)]
    parts = [compare_shape(query[r], made[r], inside[r], info, skeleton) for r in rows]
    return {name: np.concatenate([part[name] for part in parts]) for name in SHAPE}


def compare_shape(
    query: FloatArray, made: FloatArray, inside: BoolArray, info: SeriesInfo, skeleton: Skeleton | None
) -> dict[str, FloatArray]:
    """Return the measures of :func:`shape_of` for series (batch, time, features), counting only steps ``inside``."""
    changed = differs(made, query) & inside[..., None]
    measured = dict.fromkeys(SHAPE, np.full(len(made), np.nan))
    tolerance = TOLERANCE * info.span
    beyond = (made < info.low - tolerance) | (made > info.high + tolerance)
    steep = np.abs(np.diff(made, axis=1)) > info.largest_step + tolerance  # (answers, time - 1, features)
    steep &= (changed[:, 1:] | changed[:, :-1]) & inside[:, 1:, None]
    fast = excessive(move_over, query, made, changed, inside, info).any(0)
    measured["outside"] = (beyond & changed).sum((1, 2)).astype(np.float64)
    sharp = excessive(bend_over, query, made, changed, inside, info).any(0)
    measured["jumps"] = (steep.sum((1, 2)) + (fast | sharp).sum((1, 2))).astype(np.float64)
    if skeleton is not None:
        stretch = [relative_change(*(limb_length(X, skeleton, limb) for X in (query, made))) for limb in skeleton.limbs]
        measured["stretch"] = np.where(inside, np.maximum.reduce(stretch), 0.0).max(1)
    return measured


Measure = Callable[[FloatArray, int], FloatArray]  # move_over or bend_over


def excessive(
    measure: Measure, query: FloatArray, made: FloatArray, changed: BoolArray, inside: BoolArray, info: SeriesInfo
) -> BoolArray:
    """Return where moves over several steps, or bends, are larger than in real series (spans, answers, time, features).

    A limit on single steps alone would allow several large steps in a row, which no real series has.
    """
    spans, limits = (SPANS, info.max_moves) if measure is move_over else ((1, *SPANS), info.max_bends)
    found = np.zeros((len(spans), *made.shape), dtype=bool)
    for k, span in enumerate(spans):
        sizes = measure(made, span)
        limit = np.maximum(JUMP_MARGIN * limits[k] + TOLERANCE * info.span, measure(query, span))
        n, last = sizes.shape[1], made.shape[1] - sizes.shape[1]  # each ends that many steps after its first
        if n > 0:
            either = np.logical_or.reduce([changed[:, at : at + n] for at in range(0, last + 1, span)])
            found[k, :, last:] = (sizes > limit) & either & inside[:, last:, None]
    return found


def limb_length(X: FloatArray, skeleton: Skeleton, limb: Limb) -> FloatArray:
    """Return the length of a limb at every step (batch, time) of series (batch, time, features)."""
    start, end = (list(skeleton.points[point]) for point in limb)
    return np.asarray(np.linalg.norm(X[..., end].astype(np.float64) - X[..., start], axis=-1))


def relative_change(before: FloatArray, after: FloatArray) -> FloatArray:
    """Return how much lengths change, relative to what they were; infinite from 0, and 0 where they are missing.

    >>> relative_change(np.array([2.0, 0.0, np.nan]), np.array([3.0, 1.0, np.nan])).tolist()
    [0.5, inf, 0.0]
    """
    change = np.where(np.isnan(before), 0.0, np.abs(after - before))
    return np.asarray(np.divide(change, before, out=np.where(change > 0, np.inf, 0.0), where=before > 0))


@dataclass(frozen=True, kw_only=True, eq=False)
class PlausibilityReference:
    """Real series to compare answers with; build it with :meth:`fit`.

    Examples
    --------
    >>> import sparcets as sp
    >>> from sparcets.testing.data import make_series
    >>> from sparcets.testing.mocks import mean_proba
    >>> X, y = make_series()
    >>> e = sp.Nearest(sp.wrap(mean_proba)).fit(X, y).explain(X[:4], target=1)
    >>> measured = PlausibilityReference.fit(Series(X), y, e.info).measure(e)
    >>> {name: values.shape for name, values in measured.items()}
    {'distance': (4,), 'outside': (4,), 'jumps': (4,), 'stretch': (4,)}
    >>> measured["outside"].tolist()
    [0.0, 0.0, 0.0, 0.0]
    """

    series: Series  # at most 500 training series of each class, standardised, in float32
    labels: IntArray  # their classes
    own_distance: FloatArray  # mean distance of each to its nearest neighbours of the same class
    info: SeriesInfo
    skeleton: Skeleton | None  # the limbs that the features form

    @classmethod
    def fit(
        cls, series: Series, y: IntArray, info: SeriesInfo, *, rows: IntArray | None = None
    ) -> PlausibilityReference:
        """Choose reference series, evenly spaced within each class, and measure the distances between them.

        ``rows`` are the reference series, if they are chosen already.
        """
        info = info.of_series  # side inputs never change
        if rows is None:
            of_each = [_evenly_spaced(np.flatnonzero(y == label)) for label in range(info.n_classes)]
            rows = np.concatenate(of_each).astype(np.int64)
        chosen, labels = _standardised(series[rows], info), np.asarray(y[rows], dtype=np.int64)
        own = np.full(len(rows), np.nan)
        for label in np.unique(labels):
            own[labels == label] = _own_distances(chosen[labels == label])
        skeleton = find_skeleton(info.feature_names, info.units)
        return cls(series=chosen, labels=labels, own_distance=own, info=info, skeleton=skeleton)

    def restricted(self, rows: IntArray) -> PlausibilityReference:
        """Return a reference to some of the series alone, all of class 0."""
        series = self.series[rows]
        own = _own_distances(series) if len(rows) > 1 else np.full(len(rows), np.nan)
        return replace(self, series=series, labels=np.zeros(len(rows), dtype=np.int64), own_distance=own)

    def measure(self, answers: Explanation) -> dict[str, FloatArray]:
        """Return four measures (answers,) of each counterfactual: ``distance``, and those of :func:`shape_of`.

        ``distance`` is the mean distance to the 5 nearest reference series of the target class (root mean square of
        the standardised differences over the shared steps), as a percentile: the share of reference series of that
        class that are closer to their own nearest ones. NaN if the class has fewer than two series.
        """
        answers = answers if answers.info.side is None else side_apart(answers)
        n_steps = self.info.n_steps  # no reference series is longer
        made = Series(answers.counterfactual, answers.lengths)
        made = Series(made.values[:, :n_steps], np.minimum(made.steps, n_steps))
        rows = [slice(i, i + CHUNK) for i in range(0, max(len(made.values), 1), CHUNK)]
        distance = np.concatenate([self._distance(made[part], answers.target[part]) for part in rows])
        return {"distance": distance, **shape_of(answers, self.info, self.skeleton)}

    def _distance(self, made: Series, target: IntArray) -> FloatArray:
        """Return the percentile of the distance to the target class (answers,)."""
        percentile = np.full(len(target), np.nan)
        for label in np.unique(target):
            rows, of_class = np.flatnonzero(target == label), self.labels == label
            if of_class.sum() < 2:
                continue
            distances = _distances(_standardised(made[rows], self.info), self.series[of_class])
            nearest = _mean_of_nearest(distances, distances.shape[1])
            nearest *= 1 - EQUAL  # equal distances may differ in their last bits
            percentile[rows] = np.searchsorted(np.sort(self.own_distance[of_class]), nearest) / distances.shape[1]
        return percentile

    def to_arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return everything but ``info`` as plain arrays by name, for a file."""
        series = {"series": self.series.values, "lengths": self.series.steps}
        return {**series, "labels": self.labels, "own_distance": self.own_distance}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any], info: SeriesInfo) -> PlausibilityReference:
        """Build from :meth:`to_arrays`'s output; ``info`` is that of the fit."""
        series, info = Series(arrays["series"], arrays["lengths"]), info.of_series
        skeleton, own = find_skeleton(info.feature_names, info.units), arrays["own_distance"]
        return cls(series=series, labels=arrays["labels"], own_distance=own, info=info, skeleton=skeleton)


def _evenly_spaced(rows: IntArray) -> IntArray:
    """Return at most 500 of the rows, at equal distances."""
    if len(rows) <= PER_CLASS:
        return rows
    return np.asarray(rows[np.linspace(0, len(rows) - 1, PER_CLASS).round().astype(np.int64)])


def _standardised(series: Series, info: SeriesInfo) -> Series:
    """Return standardised series in float32, zero in padding."""
    standard = info.scaler.transform(series.values[:, :, : info.n_features])
    return Series(np.where(series.inside[..., None], standard, 0.0).astype(np.float32), series.steps)


def _own_distances(series: Series) -> FloatArray:
    """Return the mean distance of each series to its nearest neighbours among the others."""
    distances = _distances(series, series)
    np.fill_diagonal(distances, np.inf)
    return _mean_of_nearest(distances, len(series))


def _distances(a: Series, b: Series) -> FloatArray:
    """Return root mean square differences (rows of a, rows of b) over the entries that both series have.

    The mean is over steps, the sum over features; infinite where no entry is shared.
    """
    squares, whole, common = compare_pairs(a, b)
    squares[squares < EQUAL * whole] = 0.0  # equal series, but for rounding
    return np.asarray(np.sqrt(np.divide(squares, common, out=np.full(common.shape, np.inf), where=common > 0)))


def _mean_of_nearest(distances: FloatArray, n_references: int) -> FloatArray:
    """Return the mean of the 5 smallest distances of each row (rows, references); NaN with fewer than 2 references."""
    k = min(DISTANCE_NEIGHBOURS, n_references - 1)  # a reference series is no neighbour of itself
    if k < 1:
        return np.full(len(distances), np.nan)
    return np.asarray(np.partition(distances, k - 1, axis=1)[:, :k].mean(1))
