"""Sentences on the verdict on one answer, its doubts, and the quality of a set of answers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sparcets.core import evidence
from sparcets.core.errors import DataError
from sparcets.core.explanation import Explanation
from sparcets.core.info import SPANS
from sparcets.core.series import Series, bend_over, move_over
from sparcets.core.words import amount, amounts, percent, percents, signed
from sparcets.motion.skeleton import find_skeleton
from sparcets.show.changes import only_answer
from sparcets.show.phrases import count, listed_up_to_max, phrases_of, unit_of

if TYPE_CHECKING:
    from sparcets.evaluation.scores import Scores

TINY = 1e-300  # instead of a limit of 0
Measures = Mapping[str, float]  # an answer's row of Scores.per_query, or the means of a set
MIN_LEAD = 0.2  # target's probability minus that of the next class; with less, the prediction is uncertain
MAX_KNN_RATIO = 1.5  # distance to real series, relative to the distances among real series
RARE_STD = 4.0  # standard deviations from the training mean
LARGE_SHARE = 0.5  # of the entries that may change

# The main measures, in the order of display: title, and the limits of good and fair; if the first is smaller, lower is
# better.
MEASURES = {
    "valid": ("Validity", 0.95, 0.8),
    "transfer": ("Transfer", 0.8, 0.5),
    "direction": ("Direction", 0.9, 0.7),
    "oracle": ("Oracle", 0.8, 0.5),
    "sparsity": ("Sparsity", 0.2, 0.5),
    "knn_ratio": ("Plausibility", 1.2, 1.5),
    "universality": ("Universality", 0.5, 0.8),
    "limb_deviation": ("Geometry", 0.05, 0.15),
    "seconds": ("Time", math.nan, math.nan),
}


@dataclass(frozen=True)
class Conclusion:
    """The verdict on one answer."""

    verdict: evidence.Verdict  # with its word, symbol and colour
    sentence: str  # its meaning for this answer; empty if the doubts are enough
    doubts: tuple[str, ...] = ()  # the most serious first: phrases without a capital letter and a full stop

    @property
    def parts(self) -> tuple[str, ...]:
        """Sentence and doubts, for a list."""
        return tuple(part for part in (self.sentence, *self.doubts) if part)

    def __str__(self) -> str:
        """Return symbol, word and all parts; several parts form a list, one line each."""
        head = self.verdict.title
        if len(self.parts) == 1:
            return f"{head}: {self.parts[0]}."
        return "\n".join([f"{head}:", *(f"  - {part}" for part in self.parts)])


def conclude(answer: Explanation) -> Conclusion:
    """Return the verdict on an explanation of length 1, and its doubts."""
    answer = only_answer(answer)
    verdict = evidence.VERDICTS[str(answer.verdict[0])]
    if verdict.word == "unchanged":
        return Conclusion(verdict, "the model predicts the target for this series as it is")
    if verdict.word == "not reached":
        return Conclusion(verdict, _not_reached(answer))
    if verdict.word == "believed":
        kinds = int(evidence.other_kinds(answer.families).sum())
        agree = f"other models of all {kinds} kinds agree"
        return Conclusion(verdict, f"{agree}, and the changed series looks like real ones")
    against = [str(answer.reason[0])] if answer.reason[0] else []
    doubts = (*answer.info.model_doubts, *against, *_disagreement(answer), *_plausibility_doubts(answer))
    if verdict.word == "trick":
        return Conclusion(verdict, "this may fool the model rather than explain it", doubts)
    return Conclusion(verdict, "", doubts)


def _not_reached(answer: Explanation) -> str:
    if answer.valid[0]:
        return "this repeats another answer; fewer answers were found than requested"
    if not answer.changed[0].any():
        return "nothing was found, and nothing is changed"
    if answer.predictions.is_unsure():
        reached = f"with a probability of {answer.predictions.format_after()}; {answer.confidence!r} was asked for"
        return f"the model predicts the target for what is shown, the best attempt, {reached}"
    return "the model does not predict the target for what is shown, the best attempt"


def _disagreement(answer: Explanation) -> list[str]:
    """Return doubts about what other models say; none if at least three kinds were asked and all agree."""
    others = evidence.other_kinds(answer.families)
    support, names = answer.support[0][others], np.array(answer.families)[others].tolist()
    if not names:
        return ["no other models were asked about it"]
    if np.isnan(support).any():
        return ["it is not known what other models say about it"]
    against = [name for name, share in zip(names, support, strict=True) if share <= evidence.MAJORITY]
    if len(against) == len(names):
        return [f"other models do not agree ({', '.join(names)})"]
    doubts = []
    if against:
        kinds = count(len(against), "kind")
        doubts.append(f"other models of {kinds} out of {len(names)} do not agree ({', '.join(against)})")
    if len(names) < evidence.FEWEST_FAMILIES:
        kinds, least = count(len(names), "kind"), evidence.FEWEST_FAMILIES
        doubts.append(f"other models of only {kinds} were asked, and a believed answer needs {least}")
    return doubts


def _plausibility_doubts(answer: Explanation) -> list[str]:
    """Return doubts by the comparison with real series: limbs, steps, values, and what discriminators say."""
    plausibility = {name: float(values[0]) for name, values in answer.plausibility.items()}
    doubts = []
    real = answer.support[0][~evidence.other_kinds(answer.families)]
    if answer.families and not len(real):
        doubts.append("no discriminator was asked whether it looks like a recording")
    elif (real <= evidence.MAJORITY).any():
        doubts.append("discriminators can tell it from recordings")
    if plausibility["stretch"] > evidence.MAX_STRETCH:
        doubts.append(_stretched(answer))
    if plausibility["jumps"] > 0:
        doubts.append(_jumps(answer, int(plausibility["jumps"])))
    if plausibility["outside"] > 0:
        doubts.append(_outside(answer, int(plausibility["outside"])))
    return doubts


def _stretched(answer: Explanation) -> str:
    """Describe the largest change of a limb's length, relative to the query's at that step."""
    skeleton = find_skeleton(answer.feature_names, answer.info.units)
    assert skeleton is not None
    found = []
    for limb in skeleton.limbs:
        before, after = (evidence.limb_length(X, skeleton, limb)[0] for X in (answer.query, answer.counterfactual))
        relative = evidence.relative_change(before, after)
        step = int(relative.argmax())
        found.append((float(relative[step]), float(before[step]), float(after[step]), limb))
    worst, before_m, after_m, limb = max(found)
    word = "longer" if after_m > before_m else "shorter"
    by = f" by up to {percent(worst)}" if np.isfinite(worst) else ""
    unit = unit_of(answer, skeleton.points[limb[0]][0])
    was, becomes = amounts(before_m, after_m)
    return f"the limb from {limb[0]} to {limb[1]} gets {word}{by} ({was} to {becomes}{unit})"


def _jumps(answer: Explanation, n: int) -> str:
    """Describe the move over one or a few steps that is largest relative to the moves of its feature in real series."""
    info, made, changed = answer.info, answer.counterfactual, answer.changed
    near = changed[:, 1:] | changed[:, :-1]
    steps = np.nan_to_num(np.where(near, move_over(made, 1), 0.0))  # (1, time - 1, features)
    excess = ((steps - info.largest_step) / info.scaler.scale).max((0, 1))  # (features,)
    feature = int(excess.argmax())
    if excess[feature] > 0:
        return _too_far(answer, feature, 1, float(steps[..., feature].max()), float(info.largest_step[feature]))
    ratios = []
    for k, fast in enumerate(evidence.excessive(move_over, answer.query, made, changed, Series(made).inside, info)):
        moves = np.where(fast[:, SPANS[k] :], move_over(made, SPANS[k]), 0.0).max((0, 1), initial=0.0)
        limits = np.maximum(info.max_moves[k], TINY)
        ratios += [(float(moves[f] / limits[f]), -k, f, float(moves[f])) for f in np.flatnonzero(moves)]
    sharp = evidence.excessive(bend_over, answer.query, made, changed, Series(made).inside, info).any((0, 1, 2))
    if not ratios and sharp.any():
        return f"{answer.feature_names[int(sharp.argmax())]} bends more sharply than in any real series"
    if not ratios:
        return f"{count(n, 'step')} between two values {'is' if n == 1 else 'are'} larger than any real one"
    _, k, f, largest = max(ratios)  # over the fewest steps if several are equal
    return _too_far(answer, int(f), SPANS[-k], largest, float(info.max_moves[-k, f]))


def _too_far(answer: Explanation, feature: int, span: int, largest: float, limit: float) -> str:
    """Describe how far a feature moves over some steps, and how far real series do at most."""
    unit, rate = unit_of(answer, feature), answer.info.sampling_rate
    within = "one step" if span == 1 else f"{span} steps"
    within = f"{within} ({amount(span / rate)} s)" if rate else within
    verb = "jumps by" if span == 1 else "moves by"
    far, at_most = amounts(largest, limit)
    return (
        f"{answer.feature_names[feature]} {verb} {far}{unit} within {within}; in real series by at most {at_most}{unit}"
    )


def _outside(answer: Explanation, n: int) -> str:
    """Describe the features with values outside the range of the training series, and the furthest value."""
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
    if others := [answer.feature_names[f] for f in over[1:]]:
        real += f"; {listed_up_to_max(others)} also {'leaves' if len(others) == 1 else 'leave'} the real range"
    return f"{answer.feature_names[worst]} goes to {' and '.join(reached)}, where real series have {real}"


def find_doubts(answer: Explanation, measures: Measures) -> list[str]:
    """Return warnings about one valid answer, the most serious first; each a sentence without a capital letter."""
    target, share = str(answer.target_names[0]), float(answer.share_changed[0])
    doubts = []
    votes = find_votes(measures)
    agree = sum(votes.values())
    if votes and agree <= len(votes) / 2:
        who, verb = "none" if agree == 0 else f"only {agree}", "agrees" if agree <= 1 else "agree"
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
    elif not answer.plausibility["outside"][0] > 0:  # otherwise the verdict is more specific
        doubts += _rare_value(answer)
    if answer.proba_after.shape[1] > 1:  # not for numbers
        proba, wanted = answer.proba_after[0], int(answer.target[0])
        lead = float(proba[wanted] - np.delete(proba, wanted).max())
        if lead < MIN_LEAD:
            doubts.append(f"the model is uncertain: {target} leads by {max(lead, 0.0):.2f} only.")
    if answer.status[0] == "neighbour":
        real = phrases_of(answer).real
        whole = share == 1 and answer.mutable.all() and answer.frozen is None
        mixed = f"it combines {real} with this one, and as a whole may never have been recorded"
        doubts.append(f"{f'every value is taken from {real}' if whole else mixed}; it may change more than necessary.")
    if share > LARGE_SHARE:
        doubts.append(f"more than half of the values that may change do ({percent(share)}).")
    return doubts


def find_votes(measures: Measures) -> dict[str, bool]:
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


def _rare_value(answer: Explanation) -> list[str]:
    """Return a warning on the feature with the rarest new value, unless the query's own values are rarer."""
    scaler = answer.info.scaler
    made, query = (np.abs((X[0] - scaler.center) / scaler.scale) for X in (answer.counterfactual, answer.query))
    largest = np.where(answer.changed[0], made, 0.0).max(0)  # (features,)
    rare = np.where((largest > RARE_STD) & (largest > np.fmax.reduce(query)), largest, 0.0)  # gaps do not count
    feature = int(rare.argmax())
    if rare[feature] == 0:
        return []
    return [
        f"{answer.feature_names[feature]} is moved to {rare[feature]:.1f} standard deviations from its mean in the "
        "training data, where values are rare."
    ]


def measures_of(scores: Scores, explanation: Explanation) -> list[Measures]:
    """Return the measures of each answer, by name; raise an error if the scores are not those of this explanation."""
    frame = scores.per_query
    if "status" not in frame or [str(status) for status in frame["status"]] != explanation.status.tolist():
        raise DataError(
            f"the scores are of {len(frame)} answers, and not those of this explanation, which has "
            f"{len(explanation)}. Pass the result of sp.evaluate for the same explanation; evaluate a slice separately."
        )
    rows = frame.select_dtypes("number").astype(float).to_dict("records")
    return [{str(name): value for name, value in row.items()} for row in rows]


class Finding(NamedTuple):
    """Description of a measure: title, grade (``good``, ``fair``, ``poor`` or empty), and a sentence."""

    name: str
    grade: str
    sentence: str


def quality_findings(summary: Mapping[str, Measures]) -> list[Finding]:
    """Return descriptions of the main measures of a set of answers, as far as ``scores.summary`` has them.

    >>> found = quality_findings({"valid": {"mean": 0.5, "low": 0.4, "high": 0.6, "n": 20}})
    >>> found[0].grade, found[0].sentence
    ('poor', '50 % of the 20 answers make the model predict the target (95 % interval: 40 to 60 %).')
    """
    known = {name: line for name, line in summary.items() if not math.isnan(line["mean"])}
    found = []
    for name, (title, good, fair) in MEASURES.items():
        if name in known:
            value, sign = known[name]["mean"], 1 if good >= fair else -1
            grade = "good" if sign * value >= sign * good else "fair" if sign * value >= sign * fair else "poor"
            grade = "" if math.isnan(good) else grade
            found.append(Finding(title, grade, _sentence(name, known, grade)))
    return found


def _sentence(name: str, known: Mapping[str, Measures], grade: str) -> str:
    line = known[name]
    mean, low, high = line["mean"], line.get("low", math.nan), line.get("high", math.nan)
    share = f"{100 * mean:.0f} %"
    interval = "" if math.isnan(low) or low == high else f" (95 % interval: {100 * low:.0f} to {100 * high:.0f} %)"
    match name:
        case "valid":
            return f"{share} of the {int(line['n'])} answers make the model predict the target{interval}."
        case "transfer":
            text = f"Independent judges agree with {share} of them{interval}."
            unseen = known.get("transfer_unseen", line)["mean"]
            if unseen != mean:
                text += f" Those of other families than the method used itself agree with {100 * unseen:.0f} %."
            return f"{text}{' Many may fool the model rather than explain it.' if grade == 'poor' else ''}"
        case "direction":
            moves = "The numbers of the judges move towards the target, or are within it"
            return f"{moves}, in {share} of the cases{interval}."
        case "oracle":
            return f"The process that generated the data puts {share} into the target class{interval}."
        case "sparsity":
            text = f"{percent(mean)} of the values that may change do"
            if "segments" in known and "segment_length" in known:
                n, length = known["segments"]["mean"], known["segment_length"]["mean"]
                text += f", in {n:.1f} segments of {length:.1f} steps on average"
            return f"{text}."
        case "knn_ratio":
            times = f"{amount(mean)} times that of real series"
            return f"Their distance to real series of the target is {times} (1: like real)."
        case "universality":
            part = percent(mean) if mean > 0 else "nothing"
            text = f"The mean of the other answers predicts {part} of what an answer changes"
            if grade == "poor":
                return f"{text}: much the same change for all says little about single series."
            return f"{text}{'; the rest is its own' if mean > 0 else ''}."
        case "limb_deviation":
            return f"Limbs change their length by {percent(mean)} on average."
        case _:
            each = amount(mean / max(line["n"], 1))
            return f"Explaining took {amount(mean)} s in all, {each} s per answer."
