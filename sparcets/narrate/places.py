"""Coordinates of body points in words: only a height is higher or lower, everything else lies further along an axis."""

from __future__ import annotations

from functools import lru_cache

from sparcets.explanation.result import Explanation
from sparcets.skeletons import LENGTHS, find_skeleton, split_axis


def sideways(answer: Explanation, feature: int) -> tuple[str, str] | None:
    """Return point and axis of a coordinate that is not known to be a height; None for heights, and what is no place.

    Of points in a plane, y is the height; in space, no axis is known to be.
    """
    units = answer.info.units
    return _sideways(answer.feature_names, None if units is None else tuple(units)).get(feature)


@lru_cache(maxsize=16)  # of one data set, thousands of phrases are made
def _sideways(names: tuple[str, ...], units: tuple[str, ...] | None) -> dict[int, tuple[str, str]]:
    if find_skeleton(names, units) is None:
        return {}
    found = {f: split_axis(name) for f, name in enumerate(names)}
    in_space = {stem for stem, axis in found.values() if axis.lower() == "z"}
    return {
        f: (stem, axis)
        for f, (stem, axis) in found.items()
        if axis.lower() in ("x", "y", "z")
        and (units is None or units[f] in LENGTHS)
        and (axis.lower() != "y" or stem in in_space)
    }


def towards(axis: str, rises: bool) -> str:
    """Return a direction along an axis.

    >>> towards("x", True), towards("x", False)
    ('towards +x', 'towards −x')
    """
    return f"towards {'+' if rises else '−'}{axis}"
