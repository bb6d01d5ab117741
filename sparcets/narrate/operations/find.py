"""The operations that one answer performs: which groups of features do one thing together, and what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sparcets.arrays import FloatArray
from sparcets.explanation.result import Explanation
from sparcets.explanation.segments import find_segments
from sparcets.narrate.operations.fits import FITS, MIN_STEPS, Fit, fast_part
from sparcets.narrate.operations.groups import Group, feature_groups
from sparcets.narrate.operations.pieces import Pieces, Stretch
from sparcets.skeletons import split_axis

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


@dataclass(frozen=True, eq=False)
class Found:
    """An operation on some stretches of an answer.

    Attributes
    ----------
    group
        Who does it.
    fit
        What is done.
    pieces
        Where.
    """

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
    n_steps = int(answer.query.shape[1] if answer.lengths is None else answer.lengths[0])
    query = _across_gaps(answer.query[0, :n_steps].astype(np.float64))
    made = _across_gaps(answer.counterfactual[0, :n_steps].astype(np.float64))
    stretches = _stretches(answer, n_steps)
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


def _stretches(answer: Explanation, n_steps: int) -> tuple[Stretch, ...]:
    """Return the largest changed stretches in which nearly all is measured; those few steps apart are one."""
    gap = max(2, n_steps // 15)
    runs = find_segments(answer.changed[:1, :n_steps])
    joined: list[Stretch] = []
    for feature, start, end in zip(runs.feature.tolist(), runs.start.tolist(), runs.end.tolist(), strict=True):
        last = joined[-1] if joined else None
        if last is not None and last.feature == feature and start - last.end <= gap:
            joined[-1] = Stretch(feature, last.start, end)
        else:
            joined.append(Stretch(feature, start, end))
    gaps = np.isnan(answer.query[0, :n_steps])
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
