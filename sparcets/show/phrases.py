"""Parts of sentences: times, amounts, counts, lists, coordinates, and predictions of the model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from sparcets.core.explanation import Explanation
from sparcets.core.words import distinct, probability_below, seconds
from sparcets.motion.skeleton import LENGTHS, find_skeleton, split_axis

MAX_NAMES = 6  # features named in a list before the rest is counted
MAX_TITLE = 40  # characters of a name in a title

NO_ADVICE = "This describes the model; it is no advice for treatment."


def when_phrase(start: int, end: int, rate: float | None) -> str:
    """Describe a half-open range of steps; in seconds, it ends where the next step begins.

    >>> when_phrase(2, 5, None), when_phrase(2, 3, None), when_phrase(2, 5, 4.0)
    ('in steps 2 to 4', 'in step 2', 'from 0.50 to 1.25 s')
    """
    if rate:
        first, last = seconds(start / rate, end / rate)
        return f"from {first} to {last} s"
    return f"in step {start}" if end - start == 1 else f"in steps {start} to {end - 1}"


def unit_of(e: Explanation, feature: int) -> str:
    """Return the unit of a feature to append to a number: with a space unless it is a degree sign; may be empty."""
    unit = e.info.units[feature] if e.info.units else ""
    return f" {unit}" if unit and unit != "°" else unit


def count(n: int, word: str) -> str:
    """Return a count with its noun.

    >>> count(1, "judge"), count(3, "judge")
    ('1 judge', '3 judges')
    """
    return f"{n} {word}{'' if n == 1 else 's'}"


def listed(parts: Sequence[str]) -> str:
    """Join phrases with commas and an "and".

    >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]


def listed_up_to_max(names: Sequence[str]) -> str:
    """Join names like :func:`listed`, but only count those beyond the first few.

    >>> listed_up_to_max(["a", "b", "c", "d", "e", "f", "g", "h"])
    'a, b, c, d, e, f and 2 more'
    """
    if len(names) <= MAX_NAMES + 1:  # "and 1 more" is as long as a name
        return listed(names)
    return f"{', '.join(names[:MAX_NAMES])} and {len(names) - MAX_NAMES} more"


class Place(NamedTuple):
    """A coordinate of a body point: the point's name, the axis, and whether it is a height."""

    point: str
    axis: str
    is_height: bool


def place_of(answer: Explanation, feature: int) -> Place | None:
    """Return the point and axis of a feature; None if it is not a coordinate of a body point.

    For points in a plane, y is the height; in space, the height is not known.
    """
    units = answer.info.units
    return _places(answer.feature_names, None if units is None else tuple(units)).get(feature)


@lru_cache(maxsize=16)  # one data set needs thousands of phrases
def _places(names: tuple[str, ...], units: tuple[str, ...] | None) -> dict[int, Place]:
    if find_skeleton(names, units) is None:
        return {}
    found = {f: split_axis(name) for f, name in enumerate(names)}
    in_space = {stem for stem, axis in found.values() if axis.lower() == "z"}
    return {
        f: Place(stem, axis, axis.lower() == "y" and stem not in in_space)
        for f, (stem, axis) in found.items()
        if axis.lower() in ("x", "y", "z") and (units is None or units[f] in LENGTHS)
    }


def further(answer: Explanation, feature: int, rises: bool) -> str:
    """Return the direction of a coordinate that gets larger or smaller: ``higher``, ``further towards −x``."""
    place = place_of(answer, feature)
    if place is None or place.is_height:
        return "higher" if rises else "lower"
    return f"further towards {'+' if rises else '−'}{place.axis}"


class Phrases(NamedTuple):
    """Phrases about the model's predictions for one answer."""

    moved: str  # change of the prediction, for a title
    reached: str  # prediction for the counterfactual, for a legend
    real: str  # name of a real series of the target
    real_ones: str  # name of several
    already: str  # sentence for a query that is in its target already
    opening: str  # purpose of the changes
    brief: str  # the same with the new prediction, in a few words
    moves: str  # sentence on the change of the prediction
    stands: str  # prediction for the query, without a full stop
    not_found: str  # sentence for a missing answer, without a full stop
    attempt: str  # prediction for the best attempt


def phrases_of(answer: Explanation) -> Phrases:
    """Return the phrases for an explanation of length 1."""
    said, target = answer.predictions, str(answer.target_names[0])
    before, after = said.format_before(), said.format_after()
    if answer.info.is_regression:
        name = said.subject
        stands = f"The model predicts {name} of {before}"
        return Phrases(
            moved=f"{name} {before} → {after}",
            reached=after,
            real="a real series within the target",
            real_ones="real series within the target",
            already=f"The model already predicts {after}, within the target ({target}); nothing has to change.",
            opening=f"{stands}. For {target}:",
            brief=f"{name} from {before} to {after} ({target})",
            moves=f"The model's prediction of {name} goes from {before} to {after}.",
            stands=stands,
            not_found=f"No change was found that takes {name} from {before} to the target ({target})",
            attempt=f"the best attempt reached {after}",
        )
    own, p = float(answer.proba_before[0, int(answer.target[0])]), float(answer.probability[0])
    asked = answer.confidence
    title = distinct(own, p) if f"{own:.2f}" == after else (f"{own:.2f}", after)
    was = f"{own:.2f}" if asked is None or own >= asked else probability_below(own, asked)
    was, becomes = distinct(own, p) if was == after else (was, after)
    opening, instead, stands = f"For it to say {target}", f" instead of {before}", f"The model says {before}"
    if asked is not None and before == target:  # below the required confidence
        opening, instead = f"For a probability of {asked!r}", f" with a probability of {asked!r}"
        stands = f"The model says {before} with a probability of {was}"
    return Phrases(
        moved=f"p({target}) {title[0]} → {title[1]}",
        reached=f"p {after}",
        real=f"a real {target} series",
        real_ones=f"real series of {target}",
        already=f"The model already says {target} (probability {becomes}); nothing has to change.",
        opening=f"{stands}. {opening}:",
        brief=f"{target}{instead} (probability {was} → {becomes})",
        moves=f"The model's probability of {target} goes from {was} to {becomes}.",
        stands=stands,
        not_found=f"No change was found that makes the model say {target}{instead}",
        attempt=f"the best attempt reached a probability of {becomes}",
    )


def query_name(e: Explanation, i: int = 0) -> str:
    """Return the name of answer ``i``'s query, with the recorded person if known: ``trial 7, subject P3``."""
    parts = [f"query {int(e.query_index[i])}" if e.ids is None else _shortened(str(e.ids[i]))]
    if e.subjects is not None:
        parts.append(f"subject {_shortened(str(e.subjects[i]))}")
    return ", ".join(parts)


def change_of(e: Explanation, i: int = 0) -> str:
    """Return the prediction for answer ``i``'s query, and the target."""
    before, target = e.predictions.format_before(i), str(e.target_names[i])
    return f"{before} → {target}" if e.status[i] != "unchanged" else f"{before}, already the target"


def has_name(e: Explanation) -> bool:
    """Return whether the queries have ids or subjects."""
    return e.ids is not None or e.subjects is not None


def _shortened(name: str) -> str:
    return name if len(name) <= MAX_TITLE else f"{name[: MAX_TITLE - 1]}…"


def advice_note(e: Explanation) -> str:
    """Return the note if the series are from people, by their subjects or by a skeleton; else an empty text."""
    people = e.subjects is not None or find_skeleton(e.feature_names) is not None
    return NO_ADVICE if people else ""
