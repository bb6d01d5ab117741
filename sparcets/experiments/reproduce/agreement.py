"""Whether one of our numbers agrees with the paper's: equivalent, different or undecided.

Both are means over repetitions, so their difference has Welch's confidence interval. Two tests are made:

- *equivalent*: the 90 % interval lies within the margin, that is, both one-sided tests at 5 % say so (TOST). The margin
  is a quarter of the paper's number: the smallest gap in similarity for which the paper calls SPARCE better than
  CounteRGAN is 0.09 against 0.12, so a wider margin would call equal what the paper calls better. It is never smaller
  than half the last printed digit, 0.005; for errors near zero it is 0.05, five queries in a hundred.
- *different*: the 95 % interval, widened by half the last printed digit, does not contain 0.

*Undecided* is neither: the spread over five repetitions is too wide to tell. A number can be equivalent although a
difference is certain, if that is small.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, variance
from typing import Literal

from scipy.special import stdtrit

from sparcets.experiments.benchmark.published import Reported

Outcome = Literal["equivalent", "different", "undecided"]
OUTCOMES: tuple[Outcome, ...] = ("equivalent", "different", "undecided")

REPETITIONS = 5  # of the paper
SHARE = 0.25  # of the paper's number, the margin
DIGIT = 0.005  # half the last digit that the paper prints
NEAR_ZERO, NEAR_ZERO_MARGIN = 0.05, 0.05  # errors up to this are near zero, and their margin


def agreement(values: Sequence[float], published: Reported, *, error: bool = False) -> Outcome | None:
    """Return how our repetitions compare with a number of the paper; None if either has no spread.

    Parameters
    ----------
    values
        Our repetitions.
    published
        The paper's number.
    error
        Whether the number is a classification error, for which near zero the margin is absolute.

    Examples
    --------
    >>> agreement([0.40, 0.42, 0.38, 0.41, 0.39], Reported(0.40, 0.02))
    'equivalent'
    >>> agreement([0.22, 0.24, 0.20, 0.25, 0.19], Reported(0.40, 0.06))
    'different'
    >>> agreement([0.39, 0.30, 0.48, 0.33, 0.45], Reported(0.30, 0.05))
    'undecided'
    """
    if published.std is None or len(values) < 2:
        return None
    gap = fmean(values) - published.mean
    ours, papers = variance(values) / len(values), _variance(published.std) / REPETITIONS
    spread = math.sqrt(ours + papers)
    freedom = (ours + papers) ** 2 / (ours**2 / (len(values) - 1) + papers**2 / (REPETITIONS - 1))
    if abs(gap) + stdtrit(freedom, 0.95) * spread <= margin(published.mean, error=error):
        return "equivalent"
    return "different" if abs(gap) - DIGIT > stdtrit(freedom, 0.975) * spread else "undecided"


def margin(mean: float, *, error: bool = False) -> float:
    """Return the largest difference from the paper's number that counts as none.

    >>> margin(0.4), margin(0.01), margin(0.01, error=True), margin(0.24, error=True)
    (0.1, 0.005, 0.05, 0.06)
    """
    return NEAR_ZERO_MARGIN if error and near_zero(mean) else max(SHARE * mean, DIGIT)


def near_zero(mean: float) -> bool:
    """Return whether an error of the paper is so small that agreeing with it says little."""
    return mean <= NEAR_ZERO


def _variance(std: float) -> float:
    """Return the variance of a printed standard deviation; 0.00 stands for anything below half a digit."""
    return max(std, DIGIT / 2) ** 2
