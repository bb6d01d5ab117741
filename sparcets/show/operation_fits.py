"""Fits of single operations to a change: how much of it each explains, and with which amount."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from sparcets.core.arrays import FloatArray, IntArray
from sparcets.core.explanation import Explanation
from sparcets.motion.skeleton import BodyPart, body_part
from sparcets.show.changes import find_groups

MAX_ENTRIES = 300  # of a stretch; of a longer one, evenly spaced steps are looked at
FADES = (0.0, 0.1, 0.2)  # shares of a stretch in which an operation may fade in, and out


@dataclass(frozen=True)
class Stretch:
    """Steps ``start`` to ``end`` (half-open) of one feature, within which it changes."""

    feature: int
    start: int
    end: int


class Pieces:
    """Stretches of one query and its counterfactual, series (time, features), that one operation may explain.

    Every step of the stretches counts, also unchanged ones; of very long stretches, some steps do. Changes of several
    features are compared in standard deviations.
    """

    def __init__(self, query: FloatArray, made: FloatArray, scale: FloatArray, stretches: tuple[Stretch, ...]) -> None:
        self.query, self.made, self.scale, self.stretches = query, made, scale, stretches
        steps = [np.arange(s.start, s.end, -(-(s.end - s.start) // MAX_ENTRIES)) for s in stretches]
        sizes = [len(of_stretch) for of_stretch in steps]
        # Of every entry (entries,): index of its stretch, step, feature, value of the query, change, and 1 / scale².
        self.owner: IntArray = np.repeat(np.arange(len(sizes)), sizes)
        self.step: IntArray = np.concatenate(steps)
        self.feature: IntArray = np.array([s.feature for s in stretches])[self.owner]
        self.before: FloatArray = query[self.step, self.feature]
        self.delta: FloatArray = made[self.step, self.feature] - self.before
        self.weight: FloatArray = 1 / scale[self.feature] ** 2
        # Factors (fades, entries) by which an operation fades in and out; the first ones are all 1.
        self.fades = np.stack([np.concatenate([_fade(n, share) for n in sizes]) for share in FADES])

    @property
    def energy(self) -> FloatArray:
        """Size of the change of each stretch (stretches,): squared, in standard deviations."""
        return self.sum_by_stretch(self.weight * self.delta**2)

    def sum_by_stretch(self, values: FloatArray) -> FloatArray:
        """Sum values (entries,) within each stretch (stretches,)."""
        return np.asarray(np.bincount(self.owner, values, minlength=len(self.stretches)), dtype=np.float64)

    def select(self, chosen: Sequence[int]) -> Pieces:
        """Return some of the stretches, by index."""
        return Pieces(self.query, self.made, self.scale, tuple(self.stretches[k] for k in chosen))

    def at(self, steps: FloatArray) -> FloatArray:
        """Return the query's values at other steps (…, entries), between steps by linear interpolation.

        Before the first and after the last step, their values are held.
        """
        steps = np.clip(steps, 0, len(self.query) - 1)
        left = np.minimum(steps.astype(np.int64), max(len(self.query) - 2, 0))
        part = steps - left
        right = np.minimum(left + 1, len(self.query) - 1)
        return np.asarray(self.query[left, self.feature] * (1 - part) + self.query[right, self.feature] * part)

    def explained(self, guess: FloatArray) -> FloatArray:
        """Return the share of the change that guesses (…, entries) explain: 1 is all, below 0 is worse than none."""
        left = (self.weight * (self.delta - guess) ** 2).sum(-1)
        return np.asarray(1 - left / (self.weight * self.delta**2).sum())

    def explained_of_each(self, guess: FloatArray) -> FloatArray:
        """Return the share of the change of every stretch (stretches,) that a guess (entries,) explains."""
        left = self.sum_by_stretch(self.weight * (self.delta - guess) ** 2)
        return np.asarray(1 - left / np.maximum(self.energy, 1e-300))


def _fade(n: int, share: float) -> FloatArray:
    """Return factors (n,) that rise to 1 and fall again, each over a share of the steps.

    >>> _fade(6, 0.4).round(2).tolist()
    [0.33, 0.67, 1.0, 1.0, 0.67, 0.33]
    """
    steps = np.arange(1, n + 1)
    width = int(share * n) + 1
    return np.asarray(np.minimum(1.0, np.minimum(steps, steps[::-1]) / width))


Kind = Literal[
    "earlier", "later", "faster", "slower", "larger", "smaller", "higher", "lower", "smoother", "shakier",
    "peak added", "peak removed", "dip added", "dip removed",
]  # fmt: skip

MAX_SHIFT = 0.25  # of the series
MIN_SHIFT, FINEST_SHIFT = 0.5, 0.1  # steps
MIN_WHOLE = 0.5  # explained by a shift of whole steps
MIN_FACTOR = 0.05  # relative change of size or tempo that can be noticed
MIN_SPREAD = 0.1  # the same, of the spread that it makes
MAX_FACTOR = 4.0  # largest factor of a size
TEMPOS = np.concatenate([np.geomspace(0.4, 1 / 1.04, 24), np.geomspace(1.04, 2.5, 24)])
SMOOTHING = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0)  # standard deviations in steps of filters that split slow from fast
CUT_OFF = 0.1325  # times 1 / standard deviation: the frequency (per step) at which such a filter halves the energy
HOPELESS = 0.3  # explained by a coarse search: no finer one, and no smaller group, makes enough of it
MIN_STEPS = 4  # of a stretch; fewer show no course
MIN_FAST_STEPS = 12  # to tell how fast something shakes
MOSTLY = 0.5  # of a change, for it to be fast at all
MIN_TURNS = 8  # to and fro, for the same


@dataclass(frozen=True, eq=False)
class Fit:
    """One operation with its best amount.

    Attributes
    ----------
    kind
        What happens.
    amount
        Always positive: steps of a shift, factor of the tempo minus 1, factor of the spread minus 1, difference or
        height in the feature's unit, share by which the fast part's amplitude falls, or the factor by which it grows.
    explained
        Share of the change that it explains.
    guess
        The change as this operation makes it (entries,).
    at
        Step of a peak; frequency (per step) that parts slow from fast; of another tempo, 0 if the beginning stays where
        it is, 0.5 for the middle and 1 for the end; else NaN.
    """

    kind: Kind
    amount: float
    explained: float
    guess: FloatArray
    at: float = float("nan")


def fit_shift(pieces: Pieces) -> Fit | None:
    """The course of the query, earlier or later."""
    most = max(1, int(MAX_SHIFT * len(pieces.query)))

    def course(shift: FloatArray) -> FloatArray:
        return pieces.at(pieces.step + shift) - pieces.before

    gap = max(1.0, most / 50)
    shift, guess = _best(pieces, np.arange(-most, most + gap, gap), course)
    if pieces.explained(guess) < HOPELESS:
        return None
    while gap > FINEST_SHIFT:
        gap /= 10
        shift, guess = _best(pieces, shift + gap * np.arange(-9, 10), course)
    if abs(shift) < MIN_SHIFT:
        return None
    whole = _best(pieces, np.array([np.floor(shift), np.ceil(shift)]), course)[1]
    if pieces.explained(whole) < MIN_WHOLE:
        return None  # between steps, interpolation smooths: what it explains may be a fast part that is taken away
    return _following(pieces, _fit(pieces, "earlier" if shift > 0 else "later", abs(shift), guess))


def fit_tempo(pieces: Pieces) -> Fit | None:
    """The course of the query, faster or slower from its first step, around its middle, or up to its last step."""
    first, last = min(s.start for s in pieces.stretches), max(s.end for s in pieces.stretches) - 1

    def course(factor: FloatArray, at: float) -> FloatArray:
        anchor = first + at * (last - first)
        return pieces.at(anchor + factor * (pieces.step - anchor)) - pieces.before

    tried = {at: _best(pieces, TEMPOS, partial(course, at=at)) for at in (0.0, 0.5, 1.0)}
    at = max(tried, key=lambda at: float(pieces.explained(tried[at][1])))
    if pieces.explained(tried[at][1]) < HOPELESS:
        return None
    factor, guess = _best(pieces, tried[at][0] * np.linspace(0.97, 1.03, 13), partial(course, at=at))
    if abs(factor - 1) < MIN_FACTOR:
        return None
    return _following(pieces, _fit(pieces, "faster" if factor > 1 else "slower", abs(factor - 1), guess, at=at))


def fit_size(pieces: Pieces) -> Fit | None:
    """The query's distance from its mean, from its usual value, or from the line between the ends, times a factor."""
    found: list[Fit] = []
    for centre in (_means(pieces), np.median(pieces.query, axis=0)[pieces.feature], _lines(pieces)):
        change, guess = _multiple(pieces, pieces.before - centre)
        if abs(change) >= MIN_FACTOR and -1.1 <= change <= MAX_FACTOR - 1:
            found.append(_fit(pieces, "larger" if change > 0 else "smaller", abs(change), guess))
    best = _following(pieces, max(found, key=lambda fit: fit.explained, default=None))
    if best is None:
        return None
    before, after = variance(pieces, pieces.before), variance(pieces, pieces.before + pieces.delta)
    spread = float(np.sqrt(after / before)) - 1 if before else 0.0
    # The spread as it is: a factor that fades in and out would promise more.
    clear = abs(spread) >= MIN_SPREAD and (spread > 0) == (best.kind == "larger")
    return replace(best, amount=abs(spread)) if clear else None


def fit_level(pieces: Pieces) -> Fit | None:
    """The query plus one number."""
    level, guess = _multiple(pieces, np.ones(len(pieces.delta)))
    if level == 0:
        return None
    # The mean as it is: a level that fades in and out would promise more.
    return _fit(pieces, "higher" if level > 0 else "lower", abs(float(pieces.delta.mean())), guess)


def fitfast_part(pieces: Pieces) -> Fit | None:
    """Less of the query's fast part, or more fast movement than it has."""
    if min(s.end - s.start for s in pieces.stretches) < MIN_FAST_STEPS:
        return None
    shortest = min(s.end - s.start for s in pieces.stretches)
    widths = [width for width in SMOOTHING if 8 * width <= shortest]
    used, column = np.unique(pieces.feature, return_inverse=True)
    query, change = pieces.query[:, used], pieces.made[:, used] - pieces.query[:, used]
    if pieces.explained(fast_part(change, widths[-1])[pieces.step, column]) < MOSTLY or not _is_spread(pieces):
        return None
    found: list[Fit] = []
    for width in widths:
        fast, fast_change = (fast_part(x, width)[pieces.step, column] for x in (query, change))
        fast_after = fast + fast_change
        before, after = (float((pieces.weight * x**2).sum()) for x in (fast, fast_after))
        cut_off = CUT_OFF / width
        if 0 < after < before / 2:
            guess = _multiple(pieces, fast)[1]
            found.append(_fit(pieces, "smoother", 1 - float(np.sqrt(after / before)), guess, at=cut_off))
        if after > 2 * before and 16 * width <= shortest:
            amount = float(np.sqrt(after / before)) if before else np.inf
            found.append(_fit(pieces, "shakier", amount, fast_change, at=cut_off))
    return max(found, key=lambda fit: fit.explained, default=None)


def fit_peak(pieces: Pieces) -> Fit | None:
    """One bump, if it makes a peak or a dip where there was none, or takes one away."""
    if len(pieces.stretches) != 1:
        return None
    stretch = pieces.stretches[0]
    n = stretch.end - stretch.start
    centres = stretch.start + np.linspace(0.1, 0.9, 33) * (n - 1)
    height, centre, width = _best_bump(pieces, centres, np.geomspace(0.8, max(1.0, n / 5), 10))
    around = centre + np.linspace(-1, 1, 9) * n / 40
    height, centre, width = _best_bump(pieces, around, width * np.geomspace(0.8, 1.25, 7))
    if centre - 2 * width < stretch.start or centre + 2 * width > stretch.end - 1:
        return None  # cut off: it does not come back
    sign = np.sign(height)
    query = pieces.query[:, stretch.feature]
    made = query + height * _bump(np.arange(len(query)), centre, width)  # without noise
    before, after, actual = (
        [_prominence(side * x, centre, width) / abs(height) for side in (sign, -sign)]
        for x in (query, made, pieces.made[:, stretch.feature])
    )
    # A raised bump adds a peak, or fills a dip; a lowered one adds a dip, or removes a peak.
    up, down = ("peak added", "dip removed") if sign > 0 else ("dip added", "peak removed")
    kind: Kind
    # With all that changes around it, too, it must stand out.
    if min(after[0], actual[0]) >= CLEAR and before[0] <= FAINT:
        kind = up  # type: ignore[assignment]
    elif before[1] >= WHOLE and after[1] <= FAINT:
        kind = down  # type: ignore[assignment]
    else:
        return None
    return _fit(pieces, kind, abs(height), height * _bump(pieces.step, centre, width), at=centre)


UNLIKE = 0.5  # of the changed series' variance: what may be left that an operation does not explain
FLAT = 0.1  # of the query's variance: less is left of a series that was flattened
CLEAR, FAINT = 0.5, 0.25  # of a bump's height: how far a peak stands out that is there, or that is not
WHOLE = 0.7  # the same, of a peak that is removed: a smaller one is only a part of what a bump takes away

FITS: Mapping[str, Callable[[Pieces], Fit | None]] = {
    "shift": fit_shift,
    "tempo": fit_tempo,
    "size": fit_size,
    "level": fit_level,
    "fast part": fitfast_part,
    "peak": fit_peak,
}


def _fit(pieces: Pieces, kind: Kind, amount: float, guess: FloatArray, at: float = float("nan")) -> Fit:
    return Fit(kind, float(amount), float(pieces.explained(guess)), guess, at)


def _best(pieces: Pieces, amounts: FloatArray, change: Callable[[FloatArray], FloatArray]) -> tuple[float, FloatArray]:
    """Return the amount whose change explains most, and that change (entries,)."""
    guesses = change(amounts[:, None])  # (amounts, entries)
    # Σ (δ - f g)² = Σ δ² - 2 Σ f g δ + Σ f² g², for all guesses g and fades f at once.
    gain = (
        2 * guesses @ (pieces.weight * pieces.delta * pieces.fades).T - guesses**2 @ (pieces.weight * pieces.fades**2).T
    )
    best, fade = np.unravel_index(gain.argmax(), gain.shape)
    return float(amounts[best]), pieces.fades[fade] * guesses[best]


def _bump(steps: Any, centre: Any, width: Any) -> FloatArray:
    """Return a bump of height 1 at some steps."""
    return np.asarray(np.exp(-0.5 * ((steps - centre) / width) ** 2))


def _best_bump(pieces: Pieces, centres: FloatArray, widths: FloatArray) -> tuple[float, float, float]:
    """Return height, centre and width of the bump that explains most of one stretch."""
    bumps = _bump(pieces.step, centres[:, None, None], widths[:, None])  # (centres, widths, entries)
    norms = (bumps**2).sum(-1)
    heights = bumps @ pieces.delta / norms
    i, k = np.unravel_index(np.argmax(heights**2 * norms), norms.shape)
    return float(heights[i, k]), float(centres[i]), float(widths[k])


def _multiple(pieces: Pieces, shape: FloatArray) -> tuple[float, FloatArray]:
    """Return the factor of a shape (entries,), faded in and out, that explains most, and that change (entries,)."""
    shapes = pieces.fades * shape
    norms = np.maximum((pieces.weight * shapes**2).sum(-1), 1e-300)
    factors = (pieces.weight * shapes * pieces.delta).sum(-1) / norms
    best = int(np.argmax(factors**2 * norms))
    return float(factors[best]), factors[best] * shapes[best]


def _means(pieces: Pieces) -> FloatArray:
    """Return the mean of the query over the stretch of each entry (entries,)."""
    sizes = np.bincount(pieces.owner)
    return np.asarray((pieces.sum_by_stretch(pieces.before) / sizes)[pieces.owner])


def _lines(pieces: Pieces) -> FloatArray:
    """Return the line from the first to the last value of each stretch (entries,)."""
    of_stretches = (pieces.before[pieces.owner == k] for k in range(len(pieces.stretches)))
    return np.concatenate([np.linspace(values[0], values[-1], len(values)) for values in of_stretches])


def fast_part(x: FloatArray, width: float) -> FloatArray:
    """Return what a Gaussian filter of this width takes out of series (time, features)."""
    half = int(np.ceil(3 * width))
    half = min(half, len(x) - 1)
    kernel = np.exp(-0.5 * (np.arange(-half, half + 1) / width) ** 2)
    kernel /= kernel.sum()
    padded = np.pad(x, ((half, half), (0, 0)), mode="reflect", reflect_type="odd")
    windows = np.lib.stride_tricks.sliding_window_view(padded, len(kernel), axis=0)  # (time, features, kernel)
    return np.asarray(x - windows @ kernel)


def _following(pieces: Pieces, fit: Fit | None) -> Fit | None:
    """Return the fit if the changed series follows what it makes of the query, or is flat.

    A change to something else also takes away what was there: most of such a change is explained, its result is not.
    """
    if fit is None:
        return None
    left, made = variance(pieces, pieces.delta - fit.guess), variance(pieces, pieces.before + pieces.delta)
    return fit if left <= UNLIKE * made or made <= FLAT * variance(pieces, pieces.before) else None


def variance(pieces: Pieces, values: FloatArray) -> float:
    """Return the sum of squared differences of values (entries,) from their mean in each stretch."""
    means = pieces.sum_by_stretch(values) / np.bincount(pieces.owner)
    return float((pieces.weight * (values - means[pieces.owner]) ** 2).sum())


def _is_spread(pieces: Pieces) -> bool:
    """Return whether the change goes to and fro, and not all of it within a quarter of a stretch."""
    for k, s in enumerate(pieces.stretches):
        delta = pieces.delta[pieces.owner == k]
        quarters = np.array([(part**2).sum() for part in np.array_split(delta, 4)])
        turns = int((np.sign(delta[1:]) * np.sign(delta[:-1]) < 0).sum())
        if quarters.max() > 0.8 * quarters.sum() or turns < max(MIN_TURNS, (s.end - s.start) / 10):
            return False
    return True


def _prominence(values: FloatArray, centre: float, width: float) -> float:
    """Return how far the highest value near ``centre`` stands out from the lowest on either side of it."""
    near = slice(max(0, round(centre - width)), round(centre + width) + 1)
    top = near.start + int(values[near].argmax())
    reach = round(3 * width) + 1
    left, right = values[max(0, top - reach) : top + 1], values[top : top + reach + 1]
    return float(values[top] - max(left.min(), right.min()))


PLURALS = {"foot": "feet"}
ROOTS = ("shoulder", "hip")  # points at which a limb may turn without moving them


@dataclass(frozen=True)
class Group:
    """Features that may do one thing together, and what they are called."""

    name: str
    features: frozenset[int]
    plural: bool  # whether the name is one
    sides: tuple[frozenset[int], ...] = ()  # each must have a change, or the name would say too much
    points: tuple[frozenset[int], ...] = ()  # the same: of a still elbow, no arm is moved

    def is_met(self, changed: Collection[int]) -> bool:
        """Return whether changes of these features are changes of this group."""
        enough = len(set(changed)) >= min(2, len(self.features))
        return enough and all(part.intersection(changed) for part in (*self.sides, *self.points))


def feature_groups(answer: Explanation) -> Iterator[Group]:
    """Yield the groups of an explanation's features, the largest first, then every feature alone."""
    names = answer.feature_names
    parts = [body_part(name) for name in names]
    yield from _limbs(parts)
    named = find_groups(answer)
    yield from _both_sides(parts)
    for name, members in sorted(named.items(), key=lambda item: -len(item[1])):
        yield Group(name, frozenset(members), plural=False)
    for i, name in enumerate(names):
        yield Group(name, frozenset([i]), plural=False)


def _limbs(parts: Sequence[BodyPart]) -> Iterator[Group]:
    """Yield both arms, both legs, then each alone."""
    for limb in ("arm", "leg"):
        of_side = {side: _of(parts, limb=limb, side=side) for side in ("left", "right", "")}
        named = dict.fromkeys(part.point for part in parts if part.limb == limb and part.point not in ROOTS)
        points = tuple(_of(parts, limb=limb, point=point) for point in named)
        left, right = of_side["left"], of_side["right"]
        if left and right:
            yield Group(f"both {limb}s", left | right, plural=True, sides=(left, right), points=points)
        for side, members in of_side.items():
            if members:
                yield Group(f"the {side} {limb}" if side else f"the {limb}", members, plural=False, points=points)


def _both_sides(parts: Sequence[BodyPart]) -> Iterator[Group]:
    """Yield what is there on the left and on the right: ``both wrists``."""
    for point in dict.fromkeys(part.point for part in parts if part.side):
        left, right = (_of(parts, point=point, side=side) for side in ("left", "right"))
        if left and right:
            plural = PLURALS.get(point, f"{point}s") if " " not in point else ""
            name = f"both {plural}" if plural else f"{point} on both sides"
            yield Group(name, left | right, plural=bool(plural), sides=(left, right))


def _of(parts: Sequence[BodyPart], **wanted: str) -> frozenset[int]:
    return frozenset(
        i for i, part in enumerate(parts) if all(getattr(part, name) == value for name, value in wanted.items())
    )
