"""The verdict on one answer in words, and what is doubted about it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparcets.arrays import length_mask
from sparcets.explanation.amounts import amount, percent
from sparcets.explanation.evidence import MAJORITY, MAX_DISTANCE, MAX_STRETCH
from sparcets.explanation.result import Explanation
from sparcets.explanation.series_info import SPANS, move_over
from sparcets.explanation.shape import fast_moves, limb_length, relative_change
from sparcets.explanation.verdict import VERDICTS, Verdict
from sparcets.narrate.phrases import count, listed_up_to_max, signed, unit_of
from sparcets.skeletons import find_skeleton

TINY = 1e-300  # instead of a limit of 0


@dataclass(frozen=True)
class Conclusion:
    """The verdict on one answer.

    Attributes
    ----------
    verdict
        With its word, symbol and colour.
    sentence
        What it means for this answer; empty where the doubts say all.
    doubts
        What is doubted, the most serious first: phrases without a capital letter and a full stop.
    """

    verdict: Verdict
    sentence: str
    doubts: tuple[str, ...] = ()

    @property
    def parts(self) -> tuple[str, ...]:
        """Sentence and doubts, for a list."""
        return tuple(part for part in (self.sentence, *self.doubts) if part)

    def __str__(self) -> str:
        """Return symbol, word and all that is said; several parts are a list, one line each."""
        head = self.verdict.title
        if len(self.parts) == 1:
            return f"{head}: {self.parts[0]}."
        return "\n".join([f"{head}:", *(f"  - {part}" for part in self.parts)])


def conclude(answer: Explanation) -> Conclusion:
    """Return the verdict on an explanation of length 1, and what is doubted about it."""
    verdict = VERDICTS[str(answer.verdict[0])]
    if verdict.word == "unchanged":
        return Conclusion(verdict, "the model predicts the target for this series as it is")
    if verdict.word == "not reached":
        return Conclusion(verdict, _not_reached(answer))
    kinds = len(answer.families)
    if verdict.word == "believed":
        all_of_them = "other models agree" if kinds == 1 else f"other models of all {kinds} kinds agree"
        return Conclusion(verdict, f"{all_of_them}, and the changed series looks like real ones")
    doubts = (*_others(answer), *_looks(answer))
    if verdict.word == "trick":
        return Conclusion(verdict, "this may fool the model rather than explain it", doubts)
    return Conclusion(verdict, "", doubts)


def _not_reached(answer: Explanation) -> str:
    if answer.valid[0]:
        return "this repeats another answer; fewer answers were found than requested"
    if not answer.changed[0].any():
        return "nothing was found, and nothing is changed"
    return "the model does not predict the target for what is shown, the best attempt"


def _others(answer: Explanation) -> list[str]:
    """Return a doubt by what other models say; none if every kind agrees."""
    support, names = answer.support[0], answer.families
    if not names:
        return ["no other models were asked about it"]
    if np.isnan(support).any():
        return ["it is not known what other models say about it"]
    against = [name for name, share in zip(names, support, strict=True) if share <= MAJORITY]
    if not against:
        return []
    if len(against) == len(names):
        return [f"other models do not agree ({', '.join(names)})"]
    return [f"other models of {count(len(against), 'kind')} out of {len(names)} do not agree ({', '.join(against)})"]


def _looks(answer: Explanation) -> list[str]:
    """Return doubts by the comparison with real series: limbs, steps, values, distance."""
    looks = {name: float(values[0]) for name, values in answer.plausibility.items()}
    doubts = []
    if looks["stretch"] > MAX_STRETCH:
        doubts.append(_stretched(answer))
    if looks["jumps"] > 0:
        doubts.append(_jumps(answer, int(looks["jumps"])))
    if looks["outside"] > 0:
        doubts.append(_outside(answer, int(looks["outside"])))
    if looks["distance"] > MAX_DISTANCE:
        target = f"series of {answer.target_names[0]}" if answer.numbers is None else "series within the target"
        doubts.append(f"it lies further from real {target} than {percent(MAX_DISTANCE)} of them lie from each other")
    elif answer.families and np.isnan(looks["distance"]):
        doubts.append("there are too few real series of the target to compare it with")
    return doubts


def _stretched(answer: Explanation) -> str:
    """Name the limb whose length changes most, relative to what it was at that step."""
    skeleton = find_skeleton(answer.feature_names, answer.info.units)
    assert skeleton is not None
    n_steps = int(answer.query.shape[1] if answer.lengths is None else answer.lengths[0])
    found = []
    for limb in skeleton.limbs:
        before, after = (limb_length(X[:1, :n_steps], skeleton, limb)[0] for X in (answer.query, answer.counterfactual))
        relative = relative_change(before, after)
        step = int(relative.argmax())
        found.append((float(relative[step]), float(before[step]), float(after[step]), limb))
    worst, before_m, after_m, limb = max(found)
    word = "longer" if after_m > before_m else "shorter"
    by = f" by up to {percent(worst)}" if np.isfinite(worst) else ""
    unit = unit_of(answer, skeleton.points[limb[0]][0])
    return f"the limb from {limb[0]} to {limb[1]} gets {word}{by} ({amount(before_m)} to {amount(after_m)}{unit})"


def _jumps(answer: Explanation, n: int) -> str:
    """Name the move over one step, or over few, that is largest compared with those of its feature in real series."""
    info, made, changed = answer.info, answer.counterfactual[:1], answer.changed[:1]
    unnamed = f"{count(n, 'step')} between two values {'is' if n == 1 else 'are'} larger than any real one"
    if info.max_step is None:
        return unnamed
    near = changed[:, 1:] | changed[:, :-1]
    steps = np.nan_to_num(np.where(near, move_over(made, 1), 0.0))  # (1, time - 1, features)
    excess = ((steps - info.max_step) / info.scaler.scale).max((0, 1))  # (features,)
    feature = int(excess.argmax())
    if excess[feature] > 0 or info.max_moves is None:
        return _too_far(answer, feature, 1, float(steps[..., feature].max()), float(info.max_step[feature]))
    inside = length_mask(None if answer.lengths is None else answer.lengths[:1], 1, made.shape[1])
    ratios = []
    for k, fast in enumerate(fast_moves(answer.query[:1], made, changed, inside, info)):
        moves = np.where(fast[:, SPANS[k] :], move_over(made, SPANS[k]), 0.0).max((0, 1), initial=0.0)
        limits = np.maximum(info.max_moves[k], TINY)
        ratios += [(float(moves[f] / limits[f]), -k, f, float(moves[f])) for f in np.flatnonzero(moves)]
    if not ratios:
        return unnamed
    _, k, f, largest = max(ratios)  # of equal ones, over the fewest steps
    return _too_far(answer, int(f), SPANS[-k], largest, float(info.max_moves[-k, f]))


def _too_far(answer: Explanation, feature: int, span: int, largest: float, limit: float) -> str:
    """Say how far a feature moves over some steps, and how far real series do at most."""
    unit, rate = unit_of(answer, feature), answer.info.sampling_rate
    within = "one step" if span == 1 else f"{span} steps"
    within = f"{within} ({amount(span / rate)} s)" if rate else within
    verb = "jumps by" if span == 1 else "moves by"
    return (
        f"{answer.feature_names[feature]} {verb} {amount(largest)}{unit} within {within}; in real series by at most "
        f"{amount(limit)}{unit}"
    )


def _outside(answer: Explanation, n: int) -> str:
    """Name the features with values outside the range of the training series, and the furthest value."""
    low, high = answer.info.low, answer.info.high
    if low is None or high is None:
        return f"{count(n, 'value')} {'lies' if n == 1 else 'lie'} outside the range of real series"
    made = np.where(answer.changed[0], answer.counterfactual[0].astype(np.float64), np.nan)  # (time, features)
    lowest, highest = np.fmin.reduce(made), np.fmax.reduce(made)  # NaN for features without a change
    beyond = np.fmax(low - lowest, highest - high) / answer.info.scaler.scale
    order = np.argsort(-np.where(np.isnan(beyond), -np.inf, beyond), kind="stable")
    over = [int(f) for f in order if beyond[f] > 0]
    worst = over[0] if over else int(order[0])
    reached = [
        f"{signed(float(value))}{unit_of(answer, worst)}"
        for value, out in ((lowest[worst], lowest[worst] < low[worst]), (highest[worst], highest[worst] > high[worst]))
        if out
    ]
    real = f"{signed(float(low[worst]))} to {signed(float(high[worst]))}{unit_of(answer, worst)}"
    others = [answer.feature_names[f] for f in over[1:]]
    more = (
        f"; {listed_up_to_max(others)} also {'leaves' if len(others) == 1 else 'leave'} the real range"
        if others
        else ""
    )
    return f"{answer.feature_names[worst]} goes to {' and '.join(reached)}, where real series have {real}{more}"
