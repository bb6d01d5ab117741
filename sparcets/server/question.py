"""A question of a request as the arguments of ``explain``."""

from __future__ import annotations

import json
from typing import Any

from sparcets import targets
from sparcets.constraints.spec import Constraints, open_ends
from sparcets.errors import TargetError
from sparcets.explanation.series_info import SeriesInfo


def arguments_of(question: str, info: SeriesInfo) -> dict[str, Any]:
    """Return the arguments of ``explain``.

    Parameters
    ----------
    question
        :class:`~sparcets.server.models.Question` as JSON, without what is as by default.
    info
        What the explainer was fitted on.
    """
    given = json.loads(question)
    target = target_of(given.pop("target", None))
    if target is None and info.outcome is not None:
        raise TargetError(
            f'the model predicts {info.outcome.summary()}: say where they have to lie, such as {{"at_least": 30}}.'
        )
    constraints = given.pop("constraints", None)
    return {**given, "target": target, "constraints": None if constraints is None else constraints_of(constraints)}


def target_of(given: Any) -> Any:
    """Return a target of a request as ``explain`` takes it.

    >>> target_of({"between": [20, 30], "output": "pressure"})
    Between(low=20, high=30, output='pressure')
    """
    if not isinstance(given, dict):
        return given
    output = {"output": given["output"]} if given.get("output") is not None else {}
    if "not" in given:
        return targets.Not(given["not"])
    if "between" in given:
        return targets.Between(*given["between"], **output)
    kinds: dict[str, Any] = {"at_least": targets.AtLeast, "at_most": targets.AtMost, "change": targets.Change}
    return next(kinds[name](given[name], **output) for name in kinds if name in given)


def constraints_of(given: dict[str, Any]) -> Constraints:
    """Return the constraints of a request.

    >>> constraints_of({"ranges": {"pulse": [40, None]}}).ranges
    {'pulse': (40.0, inf)}
    """
    ranges = {feature: open_ends(*ends) for feature, ends in given.get("ranges", {}).items()}
    return Constraints(**{**given, "ranges": ranges})
