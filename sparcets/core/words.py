"""Formatting of numbers and shares for readers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence


def amount(value: float, figures: int = 0) -> str:
    """Format a number for a sentence: two significant digits, three from 100 on, without an exponent where readable.

    Use :func:`amounts` for numbers that readers compare. ``figures`` is a number of additional significant digits.

    >>> amount(0.12345), amount(123.4), amount(12345.6), amount(2e-7), amount(3.0)
    ('0.12', '123', '12,300', '2e-07', '3')
    """
    figures = max(figures, 3 if abs(value) >= 99.5 else 2)
    rounded = float(f"{value:.{figures}g}")
    if not 1000 <= abs(rounded) < 1e7:
        return f"{rounded:.{figures}g}"
    return f"{rounded:,.{max(0, figures - 1 - math.floor(math.log10(abs(rounded))))}f}"


def amounts(*values: float) -> tuple[str, ...]:
    """Format numbers like :func:`amount`, with enough digits to distinguish different ones.

    >>> amounts(0.52, 0.97), amounts(0.521, 0.524), amounts(1_000_000.0, 1_000_001.0)
    (('0.52', '0.97'), ('0.521', '0.524'), ('1,000,000', '1,000,001'))
    """
    return _apart(values, amount, first=2)


def signed(*values: float) -> tuple[str, ...]:
    """Format numbers like :func:`amounts`, with a true minus sign.

    >>> signed(-74.2, 66.0)
    ('−74', '66')
    """
    return tuple(text.replace("-", "−", 1) if text.startswith("-") else text for text in amounts(*values))


def distinct(*values: float, style: str = ".2f") -> tuple[str, ...]:
    """Format numbers with enough digits to distinguish different ones, and at least those of ``style``.

    >>> distinct(0.5, 0.97), distinct(0.501, 0.502), distinct(1_000_000.0, 1_000_000.5, style=".4g")
    (('0.50', '0.97'), ('0.501', '0.502'), ('1000000', '1000000.5'))
    """
    return _apart(values, lambda value, digits: f"{value:.{digits}{style[-1]}}", first=int(style[1:-1]))


def seconds(*times: float) -> tuple[str, ...]:
    """Format times in seconds like :func:`distinct`; only 0 is shown as 0.

    >>> seconds(0.5, 1.25), seconds(1 / 16_000, 3 / 16_000), seconds(0.0)
    (('0.50', '1.25'), ('0.0001', '0.0002'), ('0.00',))
    """
    return distinct(0.0, *times)[1:]


def percents(*shares: float) -> tuple[str, ...]:
    """Format shares like :func:`percent`, with enough digits to distinguish different ones.

    >>> percents(0.12, 0.5), percents(0.121, 0.123)
    (('12 %', '50 %'), ('12.1 %', '12.3 %'))
    """
    texts = tuple(percent(share) for share in shares)
    if len(set(texts)) == len(set(shares)):
        return texts
    return tuple(f"{text} %" for text in amounts(*(100 * share for share in shares)))


def _apart(values: Sequence[float], write: Callable[[float, int], str], *, first: int) -> tuple[str, ...]:
    """Return texts with as few digits as distinguish different values."""
    plain = [float(value) + 0.0 for value in values]  # without -0.0
    for digits in range(first, 18):
        texts = tuple(write(value, digits) for value in plain)
        if len(set(texts)) >= len(set(plain)):
            return texts
    return tuple(repr(value) for value in plain)


def percent(share: float) -> str:
    """Format a share of 1 as a percentage, without an exponent; 100 % and 0 % are shown only for exact values.

    >>> percent(0.123), percent(1.0), percent(0.99951), percent(0.00004), percent(0.0), percent(2.5)
    ('12 %', '100 %', '99.9 %', '0.004 %', '0 %', '250 %')
    """
    if 0 < share < 1e-5:
        return "less than 0.001 %"
    if 0.995 <= share < 1:
        return f"{min(99.9, 100 * share):.1f} %"
    return f"{amount(100 * share)} %"


def missing_amount(value: float, is_enough: Callable[[float], bool], *, style: str = ".2f") -> str:
    """Format a number that is not enough with the digits needed to show it, at least those of ``style``.

    >>> missing_amount(0.97, lambda p: p >= 0.99), missing_amount(0.99987, lambda p: p >= 0.9999)
    ('0.97', '0.99987')
    >>> missing_amount(29.99999, lambda y: y >= 30, style=".4g")
    '29.99999'
    """
    for digits in range(int(style[1:-1]), 18):
        text = f"{value:.{digits}{style[-1]}}"
        if not is_enough(float(text)):
            return text
    return repr(value)


def share_from(share: float) -> str:
    """Format a share with two digits, rounded up, so passing the printed value back is sufficient.

    >>> share_from(1 / 510), share_from(1 / 80), share_from(1.0)
    ('0.002', '0.013', '1')
    """
    unit = 10.0 ** (math.floor(math.log10(share)) - 1)
    return f"{math.ceil(share / unit - 1e-9) * unit:.2g}"


def probability_below(p: float, confidence: float | None) -> str:
    """Return a probability with the digits needed to show that it is below the required confidence.

    >>> probability_below(0.9732, 0.99), probability_below(0.99996, 0.9999999)
    ('0.97', '0.99996')
    """
    return missing_amount(p, lambda written: confidence is not None and written >= confidence)
