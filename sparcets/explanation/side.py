"""Side inputs of answers: taken off the series, selected, joined, and stored with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets.side_inputs import Side

if TYPE_CHECKING:
    from sparcets.explanation.result import Explanation

PREFIX = "side_"  # of the names of their arrays in a file


def side_apart(answers: Explanation) -> Explanation:
    """Return answers whose side inputs are attached to their series with series alone, and side inputs beside them."""
    known = answers.info.side
    if known is None:
        return answers
    query, side = known.split(answers.query)
    counterfactual, _ = known.split(answers.counterfactual)
    return replace(
        answers,
        query=np.ascontiguousarray(query),
        counterfactual=np.ascontiguousarray(counterfactual),
        mutable=answers.mutable[: query.shape[2]],
        info=answers.info.of_series,
        side=known.typed(side),
    )


def join_side(parts: Sequence[Side | None]) -> Side | None:
    """Concatenate the side inputs of the parts of an explanation, all of which have them or none."""
    known = [part for part in parts if part is not None]
    return {name: np.concatenate([part[name] for part in known]) for name in known[0]} if known else None


def side_to_arrays(side: Side | None) -> dict[str, np.ndarray[Any, Any]]:
    """Return side inputs as the arrays of a file."""
    return {f"{PREFIX}{name}": array for name, array in (side or {}).items()}


def side_from_arrays(arrays: Mapping[str, Any]) -> Side | None:
    """Return the side inputs among the arrays of a file, or None if there are none."""
    found = {name.removeprefix(PREFIX): array for name, array in arrays.items() if name.startswith(PREFIX)}
    return found or None
