"""Targets of ``explain``: a class, one class per query, the runner-up of each, or any class but one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sparcets.errors import ConfigError, TargetError
from sparcets.validation import check_target


@dataclass(frozen=True)
class Not:
    """A target of ``explain``: any class but this one, the one that is easiest to believe.

    Examples
    --------
    >>> Not("sick")
    Not(label='sick')
    """

    label: int | str


def excluded_class(target: Not, class_names: tuple[str, ...], *, own: int | None, owner: str) -> int:
    """Return the index of the class that must not be reached.

    Parameters
    ----------
    target
        As given to ``explain``.
    class_names
        Names of the classes.
    own
        The only class that the explainer was fitted for, or None.
    owner
        Name of the explainer, for messages.
    """
    if own is not None:
        raise TargetError(
            f"this {owner} was fitted for the target {class_names[own]!r} alone, so it cannot choose a class. "
            "Fit one with target=None for every class."
        )
    return int(check_target(target.label, n_queries=1, class_names=class_names)[0])


def check_confidence(confidence: Any) -> float:
    """Return the least probability that counts as reached."""
    is_number = isinstance(confidence, (int, float, np.integer, np.floating)) and not isinstance(confidence, bool)
    if not is_number or not 0 < confidence < 1:
        raise ConfigError(f"confidence must be a probability between 0 and 1, got {confidence!r}.")
    return float(confidence)
