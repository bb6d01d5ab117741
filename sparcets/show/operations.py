"""The operations that one answer performs: which groups of features do one thing together, and what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sparcets.core.arrays import BoolArray, FloatArray
from sparcets.core.evidence import find_segments
from sparcets.core.explanation import Explanation
from sparcets.core.words import amount, amounts, percent, seconds
from sparcets.motion.skeleton import split_axis
from sparcets.show.changes import only_answer
from sparcets.show.operation_fits import FITS, MIN_STEPS, Fit, Group, Kind, Pieces, Stretch, fast_part, feature_groups
from sparcets.show.phrases import at_most, further, place_of, towards, unit_of, when_phrase

MIN_EXPLAINED = 0.8  # of the change that an operation is named for
MIN_OF_EACH = 0.7  # of the change of every feature in it
MIN_KEPT = 0.7  # of a group's change: what may be left out of it, because it does something else, is less
MIN_TOGETHER = 0.9  # of the time of a level that several features share: what each of them lasts
MIN_SLOW = 0.85  # of the slow part of the change
# Of operations on the course of the query, which smooth changes of few features often look like by chance:
COURSES = ("earlier", "later", "faster", "slower", "larger", "smaller")
MIN_EVIDENCE = 8.0  # against chance, see _is_beyond_chance
NOISE = 1.7  # squared steps of what is left, over its squares: 2 of white noise, 0 of a course of its own
NEGLIGIBLE = 0.005  # of the slow part of the change
MIN_FAST = 0.9  # of a change that is described as fast
MAX_STRETCHES = 40  # the largest ones are looked at; fewer are ever described
MAX_MISSING = 0.2  # of the entries of a stretch
SLOW = 2.0  # standard deviation in steps of the filter that leaves the slow part
PREFERENCE = {"faster": -0.005, "slower": -0.005} | dict.fromkeys(  # of kinds that explain about as much
    ("peak added", "peak removed", "dip added", "dip removed"), 0.01
)


class Found(NamedTuple):
    """An operation on some stretches of an answer: who does what, and where."""

    group: Group
    fit: Fit
    pieces: Pieces

    @property
    def energy(self) -> float:
        """Size of the change: squared, in standard deviations."""
        return float(self.pieces.energy.sum())


def find_operations(answer: Explanation) -> list[Found]:
    """Return the operations of one answer, the largest change first; no two of them share an entry.

    Parameters
    ----------
    answer
        An explanation of length 1.
    """
    query, made = (_across_gaps(X[0].astype(np.float64)) for X in (answer.query, answer.counterfactual))
    stretches = _stretches(answer)
    if not stretches:
        return []
    whole = Pieces(query, made, answer.info.scaler.scale, stretches)
    free, found = set(range(len(stretches))), []
    for group in feature_groups(answer):
        mine = [k for k in sorted(free) if stretches[k].feature in group.features]
        for cluster in _overlapping(stretches, mine):
            if not group.is_met([stretches[k].feature for k in cluster]):
                continue  # a smaller group says less
            best = _best(group, whole.select(cluster), answer)
            if best is not None:
                found.append(best)
                taken = {(s.feature, s.start) for s in best.pieces.stretches}
                free -= {k for k in cluster if (stretches[k].feature, stretches[k].start) in taken}
    return sorted(found, key=lambda f: -f.energy)


def _across_gaps(x: FloatArray) -> FloatArray:
    """Return a series (time, features) with lines across the gaps between measured values.

    >>> _across_gaps(np.array([[1.0], [np.nan], [3.0]]))[:, 0].tolist()
    [1.0, 2.0, 3.0]
    """
    steps, measured = np.arange(len(x)), ~np.isnan(x)
    for f in np.flatnonzero(measured.any(0) & ~measured.all(0)):
        x[:, f] = np.interp(steps, steps[measured[:, f]], x[measured[:, f], f])
    return x


def _stretches(answer: Explanation) -> tuple[Stretch, ...]:
    """Return the largest changed stretches in which nearly all is measured; those few steps apart are one."""
    gap = max(2, answer.query.shape[1] // 15)
    runs = find_segments(answer.changed)
    joined: list[Stretch] = []
    for feature, start, end in zip(runs.feature.tolist(), runs.start.tolist(), runs.end.tolist(), strict=True):
        last = joined[-1] if joined else None
        if last is not None and last.feature == feature and start - last.end <= gap:
            joined[-1] = Stretch(feature, last.start, end)
        else:
            joined.append(Stretch(feature, start, end))
    gaps = np.isnan(answer.query[0])
    size = np.abs(answer.delta[0] / answer.info.scaler.scale)  # (time, features)
    chosen = [
        s for s in joined if s.end - s.start >= MIN_STEPS and gaps[s.start : s.end, s.feature].mean() <= MAX_MISSING
    ]
    chosen.sort(key=lambda s: -float(size[s.start : s.end, s.feature].sum()))
    return tuple(sorted(chosen[:MAX_STRETCHES], key=lambda s: (s.feature, s.start)))


def _overlapping(stretches: Sequence[Stretch], chosen: Sequence[int]) -> Iterator[list[int]]:
    """Yield those of the stretches that overlap in time, directly or by others between them."""
    cluster: list[int] = []
    end = -1
    for k in sorted(chosen, key=lambda k: stretches[k].start):
        if cluster and stretches[k].start >= end:
            yield cluster
            cluster, end = [], -1
        cluster.append(k)
        end = max(end, stretches[k].end)
    if cluster:
        yield cluster


def _best(group: Group, pieces: Pieces, answer: Explanation) -> Found | None:
    """Return the operation that explains most of a group's change, or None if none explains enough."""
    found = []
    for fit_kind in FITS.values():
        first = fit_kind(pieces)
        if first is None:
            continue
        each = pieces.explained_of_each(first.guess)
        kept = [k for k, share in enumerate(each) if share >= MIN_OF_EACH]
        fit, part = first, pieces
        if len(kept) < len(each):  # some do something else
            if not kept or pieces.energy[kept].sum() < MIN_KEPT * pieces.energy.sum():
                continue
            part = pieces.select(kept)
            again = fit_kind(part)
            if again is None or again.kind != first.kind:
                continue
            fit = again
        if _is_enough(fit, part) and _is_sayable(group, fit, part, answer):
            found.append(Found(group, fit, part))
    return max(found, key=lambda f: f.fit.explained + PREFERENCE.get(f.fit.kind, 0.0), default=None)


def _is_sayable(group: Group, fit: Fit, pieces: Pieces, answer: Explanation) -> bool:
    """Return whether the words of an operation are true of a group that does it."""
    features = [s.feature for s in pieces.stretches]
    if not group.is_met(features):
        return False
    if fit.kind not in ("higher", "lower") or len(features) == 1:
        return True
    # One number and one time for all: only of the same coordinate, in the same unit, and if they hold for each.
    axes = {split_axis(answer.feature_names[f])[1] for f in features}
    units = {answer.info.units[f] if answer.info.units else "" for f in features}
    whole = max(s.end for s in pieces.stretches) - min(s.start for s in pieces.stretches)
    lasting = min(s.end - s.start for s in pieces.stretches) >= MIN_TOGETHER * whole
    alike = bool((pieces.explained_of_each(fit.guess) >= MIN_EXPLAINED).all())
    return len(axes) == len(units) == 1 and lasting and alike


def _is_enough(fit: Fit, pieces: Pieces) -> bool:
    """Return whether an operation explains enough of a change to be named."""
    if fit.kind == "shakier":
        return fit.explained >= MIN_FAST
    if fit.explained < MIN_EXPLAINED or (slow := _slow_part_explained(fit, pieces)) < MIN_SLOW:
        return False
    return fit.kind not in COURSES or _is_beyond_chance(fit, pieces, slow)


def _is_beyond_chance(fit: Fit, pieces: Pieces, slow: float) -> bool:
    """Return whether a change that has nothing to do with the query would hardly be explained as well.

    Either what is left is noise; or the slow part of the change has so many free values that a share ``slow`` of it is
    not explained by chance: of n of them, that happens with a probability of about (1 − slow)^((n − 1) / 2).
    """
    if 1 - slow <= NEGLIGIBLE:
        return True
    steps = squares = n_free = 0.0
    for k, s in enumerate(pieces.stretches):
        of_stretch = pieces.owner == k
        change, left = (x[of_stretch] / pieces.scale[s.feature] for x in (pieces.delta, pieces.delta - fit.guess))
        steps, squares = steps + float((np.diff(left) ** 2).sum()), squares + float((left**2).sum())
        n_free += _free_values(change - fast_part(change[:, None], SLOW)[:, 0])
    return steps >= NOISE * squares or -(n_free - 1) / 2 * np.log(1 - slow) >= MIN_EVIDENCE


def _free_values(change: FloatArray) -> float:
    """Return how many frequencies make up a change (time,): its participation ratio, 1 for a single cosine.

    >>> t = np.arange(8) + 0.5
    >>> round(_free_values(np.cos(np.pi * t / 8) + np.cos(3 * np.pi * t / 8)), 6)
    2.0
    """
    steps = np.arange(len(change))
    cosines = np.cos(np.pi * (steps + 0.5) * steps[:, None] / len(change))
    cosines[0] /= np.sqrt(2)
    power = (cosines @ change) ** 2
    return float(power.sum() ** 2 / (power**2).sum()) if power.any() else 0.0


def _slow_part_explained(fit: Fit, pieces: Pieces) -> float:
    """Return the share that is explained of the slow part of the change: noise is left out, another course is not."""
    left = there = 0.0
    for k, s in enumerate(pieces.stretches):
        of_stretch = pieces.owner == k
        both = np.stack([pieces.delta[of_stretch], fit.guess[of_stretch]], axis=1) / pieces.scale[s.feature]
        change, guess = (both - fast_part(both, SLOW)).T
        left += float(((change - guess) ** 2).sum())
        there += float((change**2).sum())
    # Of a fast change, little is slow: it says nothing.
    return 1 - left / there if there > 0.1 * pieces.energy.sum() else 1.0


MIN_NET = 0.6  # of its range in a stretch: what goes that far up, rises


@dataclass(frozen=True)
class Operation:
    """What one answer does to a feature, a joint, a limb or both sides, as people would say it.

    Attributes
    ----------
    kind
        ``earlier``, ``later``; ``faster``, ``slower``; ``larger``, ``smaller``; ``higher``, ``lower``; ``smoother``,
        ``shakier``; ``peak added``, ``peak removed``, ``dip added`` or ``dip removed``.
    what
        Who does it: the name of a feature or of a group, ``the left arm``, ``both wrists``.
    features
        The features that change so.
    start, end
        Steps (half-open).
    amount, unit
        How much, always positive: seconds (or steps) earlier; percent faster, larger or smoother; the difference or the
        height of a peak in the unit of the data; how many times as much fast movement.
    explained
        Share of the change there that the operation explains, 0.8 to 1.
    share
        Share of the whole change of the answer that lies there.
    text
        The operation in words.

    Examples
    --------
    >>> import sparcets as sp
    >>> from sparcets.testing import data, mocks
    >>> X, y = data.make_series(30)
    >>> e = sp.Nearest(sp.wrap(mocks.mean_proba)).fit(X, y).explain(X[y == 0][:1], target=1)
    >>> all(operation.explained >= 0.8 for operation in e.operations(0))
    True
    """

    kind: Kind
    what: str
    features: tuple[str, ...]
    start: int
    end: int
    amount: float
    unit: str
    explained: float
    share: float
    text: str


class Described(NamedTuple):
    """An operation, with what is needed to tell the other changes beside it."""

    operation: Operation
    weight: float  # standard deviations times steps
    entries: BoolArray  # which entries (time, features) it covers


def operations_of(answer: Explanation) -> list[Operation]:
    """Return the operations of an explanation of length 1; see :meth:`Explanation.operations`."""
    return [each.operation for each in describe_operations(answer)]


def describe_operations(answer: Explanation) -> list[Described]:
    """Return the operations of an explanation of length 1 with their weights, the largest first."""
    answer = only_answer(answer)
    if answer.verdict[0] in ("unchanged", "not reached"):
        return []
    found = find_operations(answer)
    size = np.abs(answer.delta[0] / answer.info.scaler.scale)  # (time, features)
    described = []
    for each in found:
        entries = np.zeros(size.shape, dtype=bool)
        for s in each.pieces.stretches:
            entries[s.start : s.end, s.feature] = True
        share = float((size[entries] ** 2).sum() / (size**2).sum())
        described.append(Described(_operation(answer, each, share), float(size[entries].sum()), entries))
    return sorted(described, key=lambda d: -d.weight)


def _operation(answer: Explanation, found: Found, share: float) -> Operation:
    fit, stretches = found.fit, found.pieces.stretches
    start, end = min(s.start for s in stretches), max(s.end for s in stretches)
    size, unit = _size(answer, found)
    features = dict.fromkeys(s.feature for s in stretches)
    shortest = min(sum(s.end - s.start for s in stretches if s.feature == f) for f in features)
    throughout = shortest >= MIN_TOGETHER * (end - start)
    when = when_phrase(start, end, answer.info.sampling_rate, throughout=throughout)
    return Operation(
        kind=fit.kind,
        what=found.group.name,
        features=tuple(answer.feature_names[f] for f in features),
        start=start,
        end=end,
        amount=size,
        unit=unit,
        explained=fit.explained,
        share=share,
        text=f"{_phrase(answer, found, size)}{'' if fit.kind.endswith('ed') else f' {when}'}",
    )


def _size(answer: Explanation, found: Found) -> tuple[float, str]:
    """Return the amount of an operation in the unit of its text."""
    fit, rate = found.fit, answer.info.sampling_rate
    if fit.kind in ("earlier", "later"):
        return (fit.amount / rate, "s") if rate else (fit.amount, "steps")
    if fit.kind in ("faster", "slower", "larger", "smaller", "smoother"):
        return 100 * fit.amount, "%"
    if fit.kind == "shakier":
        return fit.amount, "times"
    units = answer.info.units
    return fit.amount, units[found.pieces.stretches[0].feature] if units else ""


def _phrase(answer: Explanation, found: Found, size: float) -> str:
    """Return who does what, and by how much."""
    fit, group, feature = found.fit, found.group, found.pieces.stretches[0].feature
    plural, unit = group.plural, unit_of(answer, feature)
    # One coordinate of a body point is called by the point, and where it goes says the axis.
    place = place_of(answer, feature) if len(group.features) == 1 else None
    who = place.point if place else group.name
    along = (" up and down" if place.is_height else f" along {place.axis}") if place else ""
    if fit.kind in ("earlier", "later"):
        by = f"{amount(size)} s" if answer.info.sampling_rate else _steps(size)
        course = _course(answer, found)
        return f"{who} {course}{along if course.startswith('move') else ''} {by} {fit.kind}"
    if fit.kind in ("faster", "slower"):
        first, last = ("earlier", "later") if fit.kind == "faster" else ("later", "earlier")
        ends = {0.0: f", ending {first},", 1.0: f", starting {last},"}.get(fit.at, "")
        return f"{who} {'move' if plural else 'moves'} {percent(fit.amount)} {fit.kind}{along}{ends}"
    if fit.kind in ("larger", "smaller"):
        if len(group.features) > 1:
            return f"the movement of {who} is {percent(fit.amount)} {fit.kind}"
        s = found.pieces.stretches[0]
        before, after = amounts(
            *(float(np.ptp(x[s.start : s.end, s.feature])) for x in (found.pieces.query, found.pieces.made))
        )
        what = "movement" if place else "range"
        return f"the {what} of {who}{along} is {fit.kind}, {after} instead of {before}{unit},"
    if fit.kind in ("higher", "lower"):
        name = who if place_of(answer, feature) else _coordinate(answer, found)
        verb = "are" if plural and name == who else "is"
        peak = max(float(np.abs(found.pieces.delta).max()), size)
        most = at_most(peak, size, unit)
        way = further(answer, feature, fit.kind == "higher")
        return f"{name} {verb} {amount(size)}{unit}{most and f' on average{most}'} {way}"
    if fit.kind in ("smoother", "shakier"):
        if fit.kind == "smoother":
            much = f"{percent(fit.amount)} less"
        else:
            much = f"{amount(fit.amount)} times as much" if np.isfinite(fit.amount) else "new"
        return f"{who} {'are' if plural else 'is'} {fit.kind}{along}, with {much} movement {_above(answer, fit.at)}"
    rate = answer.info.sampling_rate
    at = f"{seconds(fit.at / rate)[0]} s" if rate else f"step {fit.at:.0f}"
    if place:
        verb = "swings" if fit.kind.endswith("added") else "no longer swings"
        up = fit.kind.startswith("peak")
        way = ("up" if up else "down") if place.is_height else towards(place.axis, up)
        return f"{who} {verb} {amount(size)}{unit} {way} and back at {at}"
    verb = "gets a" if fit.kind.endswith("added") else "loses its"
    return f"{who} {verb} {fit.kind.split()[0]} of {amount(size)}{unit} at {at}"


def _steps(size: float) -> str:
    return f"{amount(size)} step{'' if amount(size) == '1' else 's'}"


def _above(answer: Explanation, frequency: float) -> str:
    rate = answer.info.sampling_rate
    return f"above {amount(frequency * rate)} Hz" if rate else f"in cycles of less than {amount(1 / frequency)} steps"


def _course(answer: Explanation, found: Found) -> str:
    """Return what the query does where it is shifted: it rises, it falls, or it moves."""
    stretches, names = found.pieces.stretches, answer.feature_names
    heights = stretches
    if len(found.group.features) > 1:
        heights = tuple(s for s in stretches if _is_height(names, s.feature))
    elif (place := place_of(answer, stretches[0].feature)) and not place.is_height:
        heights = ()
    ways = set()
    for s in heights:
        values = found.pieces.query[s.start : s.end, s.feature]
        net = float(values[-1] - values[0])
        ways.add(float(np.sign(net)) if abs(net) >= MIN_NET * float(np.ptp(values)) else 0.0)
    verb = {1.0: "rise", -1.0: "fall"}.get(ways.pop(), "move") if len(ways) == 1 else "move"
    return verb if found.group.plural else f"{verb}s"


def _coordinate(answer: Explanation, found: Found) -> str:
    """Return who is higher or lower: a group by its height, else one of its coordinates."""
    if len(found.group.features) == 1:
        return found.group.name
    names, feature = answer.feature_names, found.pieces.stretches[0].feature
    axis = split_axis(names[feature])[1]
    return f"{axis} of {found.group.name}" if axis and not _is_height(names, feature) else found.group.name


def _is_height(names: Sequence[str], feature: int) -> bool:
    """Return whether a coordinate is a height: of points in a plane, y is; in space, it need not be."""
    axes = [split_axis(name)[1].lower() for name in names]
    return axes[feature] == "y" and "z" not in axes
