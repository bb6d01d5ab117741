"""Parts of sentences: times, amounts, counts and lists."""

from __future__ import annotations

from collections.abc import Sequence

from sparcets.explanation.amounts import amount
from sparcets.explanation.result import Explanation

MAX_NAMES = 6  # features named in a list before the rest is counted


def when_phrase(start: int, end: int, rate: float | None, *, throughout: bool = True) -> str:
    """Describe a half-open range of steps; in seconds, the last step lasts until the next would begin.

    Parameters
    ----------
    start, end
        The range.
    rate
        Steps per second, or None.
    throughout
        Whether it is true of all the time, or of several features for parts of it.

    Examples
    --------
    >>> when_phrase(2, 5, None), when_phrase(2, 3, None), when_phrase(2, 5, 4.0)
    ('in steps 2 to 4', 'in step 2', 'from 0.50 to 1.25 s')
    >>> when_phrase(2, 5, 4.0, throughout=False)
    'at times between 0.50 and 1.25 s'
    """
    if not throughout:
        return (
            f"at times between {start / rate:.2f} and {end / rate:.2f} s"
            if rate
            else f"at times in steps {start} to {end - 1}"
        )
    if rate:
        return f"from {start / rate:.2f} to {end / rate:.2f} s"
    return f"in step {start}" if end - start == 1 else f"in steps {start} to {end - 1}"


PEAK_RATIO = 1.5  # the largest change is mentioned if it exceeds the mean by this factor


def at_most(peak: float, mean: float, unit: str) -> str:
    """Return the largest change in brackets if it is much larger than the mean, else nothing.

    >>> at_most(0.2, 0.1, " m"), at_most(0.12, 0.1, " m")
    (' (at most 0.2 m)', '')
    """
    return f" (at most {amount(peak)}{unit})" if peak > PEAK_RATIO * mean else ""


def signed(value: float) -> str:
    """Format a number like :func:`amount`, with a true minus sign.

    >>> signed(-74.2), signed(66.0)
    ('−74', '66')
    """
    return f"−{amount(-value)}" if value < 0 else amount(value)


def unit_of(e: Explanation, feature: int) -> str:
    """Return the unit of a feature as it follows a number: with a space unless it is a degree sign; may be empty."""
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
