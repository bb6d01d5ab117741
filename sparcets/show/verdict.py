"""The verdict on one answer in words, and what is doubted about it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sparcets.core.arrays import length_mask
from sparcets.core.evidence import (
    MAJORITY,
    MAX_DISTANCE,
    MAX_STRETCH,
    VERDICTS,
    Verdict,
    fast_moves,
    limb_length,
    relative_change,
)
from sparcets.core.explanation import Explanation
from sparcets.core.info import SPANS, move_over
from sparcets.core.words import amount, amounts, percent, percents, signed
from sparcets.motion.skeleton import find_skeleton
from sparcets.show.phrases import count, listed_up_to_max, unit_of

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
    against = [str(answer.reason[0])] if answer.reason[0] else []
    doubts = (*answer.info.model_doubts, *against, *_others(answer), *_looks(answer))
    if verdict.word == "trick":
        return Conclusion(verdict, "this may fool the model rather than explain it", doubts)
    return Conclusion(verdict, "", doubts)


def _not_reached(answer: Explanation) -> str:
    if answer.valid[0]:
        return "this repeats another answer; fewer answers were found than requested"
    if not answer.changed[0].any():
        return "nothing was found, and nothing is changed"
    if answer.predictions.is_unsure():
        reached = f"with a probability of {answer.predictions.say_after()}; {answer.confidence!r} was asked for"
        return f"the model predicts the target for what is shown, the best attempt, {reached}"
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
    was, becomes = amounts(before_m, after_m)
    return f"the limb from {limb[0]} to {limb[1]} gets {word}{by} ({was} to {becomes}{unit})"


def _jumps(answer: Explanation, n: int) -> str:
    """Name the move over one step, or over few, that is largest compared with those of its feature in real series."""
    info, made, changed = answer.info, answer.counterfactual[:1], answer.changed[:1]
    unnamed = f"{count(n, 'step')} between two values {'is' if n == 1 else 'are'} larger than any real one"
    near = changed[:, 1:] | changed[:, :-1]
    steps = np.nan_to_num(np.where(near, move_over(made, 1), 0.0))  # (1, time - 1, features)
    excess = ((steps - info.max_step) / info.scaler.scale).max((0, 1))  # (features,)
    feature = int(excess.argmax())
    if excess[feature] > 0:
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
    far, at_most = amounts(largest, limit)
    return (
        f"{answer.feature_names[feature]} {verb} {far}{unit} within {within}; in real series by at most {at_most}{unit}"
    )


def _outside(answer: Explanation, n: int) -> str:
    """Name the features with values outside the range of the training series, and the furthest value."""
    low, high = answer.info.low, answer.info.high
    made = np.where(answer.changed[0], answer.counterfactual[0].astype(np.float64), np.nan)  # (time, features)
    lowest, highest = np.fmin.reduce(made), np.fmax.reduce(made)  # NaN for features without a change
    beyond = np.fmax(low - lowest, highest - high) / answer.info.scaler.scale
    order = np.argsort(-np.where(np.isnan(beyond), -np.inf, beyond), kind="stable")
    over = [int(f) for f in order if beyond[f] > 0]
    worst = over[0] if over else int(order[0])
    unit, ends = unit_of(answer, worst), (low[worst], high[worst])
    out = [lowest[worst]] * bool(lowest[worst] < ends[0]) + [highest[worst]] * bool(highest[worst] > ends[1])
    least, most, *far = signed(*(float(value) for value in (*ends, *out)))
    reached, real = [f"{value}{unit}" for value in far], f"{least} to {most}{unit}"
    others = [answer.feature_names[f] for f in over[1:]]
    more = (
        f"; {listed_up_to_max(others)} also {'leaves' if len(others) == 1 else 'leave'} the real range"
        if others
        else ""
    )
    return f"{answer.feature_names[worst]} goes to {' and '.join(reached)}, where real series have {real}{more}"


MIN_LEAD = 0.2  # of the target's probability over the next class's; with less, the prediction is uncertain
MAX_KNN_RATIO = 1.5  # distance to real series, relative to the distances among real series
RARE_STD = 4.0  # standard deviations from the training mean
LARGE_SHARE = 0.5  # of the entries that may change


def find_doubts(answer: Explanation, measures: Mapping[str, float]) -> list[str]:
    """Return warnings about one valid answer, the most serious first; each a sentence without a capital letter.

    Parameters
    ----------
    answer
        An explanation of length 1.
    measures
        The answer's measures from an evaluation, by name; may be empty.
    """
    target = str(answer.target_names[0])
    doubts = []
    votes = find_votes(measures)
    agree = sum(votes.values())
    if votes and agree <= len(votes) / 2:
        who = "none" if agree == 0 else f"only {agree}"
        verb = "agrees" if agree <= 1 else "agree"
        doubts.append(
            f"{who} of {len(votes)} independent judges {verb}, so this may fool the model rather than explain it."
        )
    if answer.fragile[0]:
        alone, all_of_them = percents(float(answer.flips_at[0]), float(answer.least_believed[0]))
        flips = "flips" if answer.confidence is None else f"reaches p = {answer.confidence!r}"
        doubts.append(
            f"the model is fragile here: it {flips} when {alone} of the values that may change do, but other models of "
            f"every kind follow only at {all_of_them}."
        )
    if measures.get("oracle", math.nan) == 0:
        doubts.append(f"the process that generated the data does not put the result into {target}.")
    distance = measures.get("knn_ratio", math.nan)
    if distance > MAX_KNN_RATIO:
        doubts.append(
            f"the result is {distance:.1f} times as far from the training series of {target} as real series are."
        )
    elif not answer.plausibility["outside"][0] > 0:  # otherwise the verdict says more
        doubts += _rare_value(answer)
    lead = _lead(answer)
    if lead < MIN_LEAD:
        doubts.append(f"the model is uncertain: {target} leads by {max(lead, 0.0):.2f} only.")
    if answer.status[0] == "neighbour":
        doubts.append(f"{_from_a_real_series(answer)}; it may change more than necessary.")
    if answer.share_changed[0] > LARGE_SHARE:
        share = percent(float(answer.share_changed[0]))
        doubts.append(f"more than half of the values that may change do ({share}).")
    return doubts


def find_votes(measures: Mapping[str, float]) -> dict[str, bool]:
    """Return whether each judge puts the result into the target class.

    >>> find_votes({"valid": 1.0, "transfer": 0.5, "transfer_fcn": 1.0, "transfer_tcn": 0.0})
    {'fcn': True, 'tcn': False}
    """
    judges = {
        str(name)[len("transfer_") :]: float(vote)
        for name, vote in measures.items()
        if str(name).startswith("transfer_") and name != "transfer_unseen"  # a mean over judges
    }
    return {name: vote == 1 for name, vote in judges.items() if not math.isnan(vote)}


def _lead(answer: Explanation) -> float:
    """Return the target's probability minus that of the next class; of numbers, there is no doubt by it."""
    if answer.numbers is not None:
        return 1.0
    proba = answer.proba_after[0]
    others = np.delete(proba, int(answer.target[0]))
    return float(proba[int(answer.target[0])] - others.max()) if len(others) else 1.0


def _from_a_real_series(answer: Explanation) -> str:
    """Say what comes from a real series: all of it, or parts of it."""
    real = f"a real {answer.target_names[0]} series" if answer.numbers is None else "a real series within the target"
    if answer.share_changed[0] == 1 and answer.mutable.all() and answer.frozen is None:
        return f"every value is taken from {real}"
    return f"it combines {real} with this one, and as a whole may never have been recorded"


def _rare_value(answer: Explanation) -> list[str]:
    """Return a warning on the feature that is changed to the rarest value, unless the query has rarer ones itself."""
    scaler = answer.info.scaler
    changed = answer.changed[0]
    after = np.abs((answer.counterfactual[0] - scaler.center) / scaler.scale)  # (time, features)
    after = np.where(changed, after, 0.0)
    before = np.fmax.reduce(np.abs((answer.query[0] - scaler.center) / scaler.scale))  # (features,); ignores gaps
    largest = after.max(0)
    rare = np.where((largest > RARE_STD) & (largest > before), largest, 0.0)
    feature = int(rare.argmax())
    if rare[feature] == 0:
        return []
    return [
        f"{answer.feature_names[feature]} is moved to {rare[feature]:.1f} standard deviations from its mean in the "
        "training data, where values are rare."
    ]
