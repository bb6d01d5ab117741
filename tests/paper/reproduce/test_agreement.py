"""Equivalent, different or undecided: against SciPy's own test, by hand and by law."""

import pytest
from scipy.stats import ttest_ind_from_stats

from sparcets_paper.benchmark.published import Reported
from sparcets_paper.reproduce.agreement import DIGIT, Runs, agreement, margin

WIDE = [0.39, 0.30, 0.48, 0.33, 0.45]  # mean 0.39


def pvalue(gap, shift=0.0):
    """Return the two-sided p of Welch's test for 0.5 + gap ± 0.02 against 0.5 + shift ± 0.03, five repetitions each."""
    return float(ttest_ind_from_stats(0.5 + gap, 0.02, 5, 0.5 + shift, 0.03, 5, equal_var=False).pvalue)


def five(mean, std):
    """Return five values with this mean and standard deviation."""
    step = std * (4 / 10) ** 0.5
    return [mean + step * k for k in (-2, -1, 0, 1, 2)]


@pytest.mark.parametrize("gap", [0.0, 0.05, 0.08, 0.09, 0.1, 0.12, 0.2])
def test_outcomes_are_those_of_welchs_tests(gap):
    # Equivalence by two one-sided tests at 5 %: the margin of 0.5 is 0.125. Difference at 5 %, beyond half a digit.
    equivalent = gap < 0.125 and pvalue(gap, 0.125) < 0.1
    different = not equivalent and gap > DIGIT and pvalue(gap - DIGIT) < 0.05
    expected = "equivalent" if equivalent else "different" if different else "undecided"
    assert agreement(five(0.5 + gap, 0.02), Reported(0.5, 0.03)) == expected
    assert agreement(five(0.5 - gap, 0.02), Reported(0.5, 0.03)) == expected


def test_nothing_is_said_without_a_spread_within_a_digit_or_near_zero():
    assert agreement([0.4], Reported(0.4, 0.1)) is None and agreement(WIDE, Reported(0.4)) is None
    assert agreement([0.0244, 0.0246, 0.0245], Reported(0.02, 0.0)) != "different"
    assert agreement([0.0344, 0.0346, 0.0345], Reported(0.02, 0.0)) == "different"
    assert margin(0.0) == DIGIT and margin(0.04, error=True) == 0.05 and margin(0.37, error=True) == 0.25 * 0.37
    values = five(0.02, 0.005)
    assert agreement(values, Reported(0.0, 0.0), error=True) == "equivalent"
    assert agreement(values, Reported(0.0, 0.0)) == "different"


def test_of_two_rows_with_one_key_the_last_counts(make_row):
    runs = Runs([make_row(error="RuntimeError: no"), make_row(valid=0.5)])
    assert runs.of("catching", "SPARCE").values("valid") == [0.5]
    assert runs.of("catching", "SPARCE").errors == ()
