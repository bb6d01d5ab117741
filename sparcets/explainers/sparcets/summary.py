"""What a fit has given, in a few lines: how queries are answered, how good it is, and what to do if it is not."""

from __future__ import annotations

from collections.abc import Sequence

from sparcets.explainers.sparcets.ensemble import weaker_than_families
from sparcets.explainers.sparcets.grid import LongSeries
from sparcets.explainers.sparcets.model import FittedModel
from sparcets.explainers.sparcets.operating_point import (
    ADVICE,
    ADVICE_GENERATOR,
    OperatingPoint,
    default_point,
    summarise,
)

GOOD_SHARE = 0.9  # valid and transfer on held-out series; below it, the summary gives advice


def describe_fit(
    points: Sequence[OperatingPoint],
    families: Sequence[str],
    *,
    model: FittedModel | None,
    long: LongSeries | None,
    epochs: int,
    black_box: bool,
    silent: Sequence[str],
) -> list[str]:
    """Return the lines of a summary.

    Parameters
    ----------
    points
        The trade-off.
    families
        Names of the families that answers are chosen by.
    model
        What was fitted to classes; None for numbers.
    long
        How answers are carried to long series, or None.
    epochs
        For which the generator was trained.
    black_box
        Whether the explained model has no gradients.
    silent
        Features that the generator never changes.
    """
    kind, uses_generator = "model", False
    if model is not None:
        kind, uses_generator = "classifier", model.generator is not None
    how = "A search answers each query"
    if uses_generator:
        how = f"A generator, trained for {epochs} epochs, answers; where its answer is not believed, a search does"
    lines = [f"{how}.", summarise(points, uses_generator=uses_generator)]
    if families:
        lines.append(f"Answers are chosen by models of other kinds: {', '.join(families)}.")
    else:
        lines.append(f"The {kind} alone decides: answers may be adversarial, and show what flips it, not what is true.")
    if model is not None:
        lines += weaker_than_families(model.ensemble)
    if long is not None:
        lines.append(long.describe(kind))
    elif black_box:
        lines.append(
            f"The {kind} is a black box: a surrogate, trained to predict as it does, shows where to change a series; "
            "the black box itself decides what is valid."
        )
    if silent:
        lines.append(f"Never changed by the generator: {', '.join(silent)}.")
    if default_point(points, uses_generator=uses_generator).score < GOOD_SHARE:
        lines.append(ADVICE_GENERATOR if uses_generator else ADVICE)
    return lines
