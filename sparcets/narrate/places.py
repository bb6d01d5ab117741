"""Coordinates of body points in words: only a height is higher or lower, everything else lies further along an axis."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from sparcets.explanation.result import Explanation
from sparcets.skeletons import LENGTHS, find_skeleton, split_axis


class Place(NamedTuple):
    """A coordinate of a body point: the point's name, the axis, and whether it is known to be a height."""

    point: str
    axis: str
    is_height: bool


def place_of(answer: Explanation, feature: int) -> Place | None:
    """Return what a feature is a coordinate of; None if it is no place of a body.

    Of points in a plane, y is the height; in space, no axis is known to be.
    """
    units = answer.info.units
    return _places(answer.feature_names, None if units is None else tuple(units)).get(feature)


@lru_cache(maxsize=16)  # of one data set, thousands of phrases are made
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
    """Return where a coordinate goes that gets larger, or smaller: ``higher``, ``further towards −x``."""
    place = place_of(answer, feature)
    if place is None or place.is_height:
        return "higher" if rises else "lower"
    return f"further {towards(place.axis, rises)}"


def towards(axis: str, rises: bool) -> str:
    """Return a direction along an axis.

    >>> towards("x", True), towards("x", False)
    ('towards +x', 'towards −x')
    """
    return f"towards {'+' if rises else '−'}{axis}"
