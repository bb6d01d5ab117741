"""Operations as data and in words: who does what, by how much and when."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparcets.arrays import BoolArray
from sparcets.explanation.amounts import amount, percent
from sparcets.explanation.result import Explanation
from sparcets.narrate.operations.find import MIN_TOGETHER, Found, find_operations
from sparcets.narrate.operations.fits import Kind
from sparcets.narrate.phrases import at_most, unit_of, when_phrase
from sparcets.narrate.places import further, place_of, towards
from sparcets.skeletons import split_axis

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


@dataclass(frozen=True, eq=False)
class Described:
    """An operation, with what is needed to tell the other changes beside it.

    Attributes
    ----------
    operation
        What is said.
    weight
        Size of the change in standard deviations times steps.
    entries
        Whether each entry (time, features) is covered by it.
    """

    operation: Operation
    weight: float
    entries: BoolArray


def operations_of(answer: Explanation) -> list[Operation]:
    """Return the operations of an explanation of length 1; see :meth:`Explanation.operations`."""
    return [each.operation for each in describe_operations(answer)]


def describe_operations(answer: Explanation) -> list[Described]:
    """Return the operations of an explanation of length 1 with their weights, the largest first."""
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
        ends = {
            ("faster", 0.0): ", ending earlier,",
            ("slower", 0.0): ", ending later,",
            ("faster", 1.0): ", starting later,",
            ("slower", 1.0): ", starting earlier,",
        }.get((fit.kind, fit.at), "")
        return f"{who} {'move' if plural else 'moves'} {percent(fit.amount)} {fit.kind}{along}{ends}"
    if fit.kind in ("larger", "smaller"):
        if len(group.features) > 1:
            return f"the movement of {who} is {percent(fit.amount)} {fit.kind}"
        s = found.pieces.stretches[0]
        before, after = (
            amount(float(np.ptp(x[s.start : s.end, s.feature]))) for x in (found.pieces.query, found.pieces.made)
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
    at = f"{fit.at / rate:.2f} s" if rate else f"step {fit.at:.0f}"
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
        # Of points in a plane, y is the height; in space, it need not be.
        axes = {split_axis(name)[1].lower() for name in names}
        heights = tuple(s for s in stretches if split_axis(names[s.feature])[1].lower() == "y" and "z" not in axes)
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
    names = answer.feature_names
    axis = split_axis(names[found.pieces.stretches[0].feature])[1]
    in_a_plane = "z" not in {split_axis(name)[1].lower() for name in names}
    return found.group.name if not axis or (axis.lower() == "y" and in_a_plane) else f"{axis} of {found.group.name}"
