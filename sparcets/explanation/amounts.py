"""Numbers and shares as they are written for readers."""

from __future__ import annotations


def amount(value: float) -> str:
    """Format a number for a sentence: two significant digits, three from 100 on, without an exponent where readable.

    >>> amount(0.12345), amount(123.4), amount(12345.6), amount(2e-7), amount(3.0)
    ('0.12', '123', '12,300', '2e-07', '3')
    """
    figures = 3 if abs(value) >= 99.5 else 2
    rounded = float(f"{value:.{figures}g}")
    return f"{rounded:,.0f}" if 1000 <= abs(rounded) < 1e7 else f"{rounded:.{figures}g}"


def percent(share: float) -> str:
    """Format a share of 1 as a percentage, without an exponent; all is told from nearly all, nothing from little.

    >>> percent(0.123), percent(1.0), percent(0.99951), percent(0.00004), percent(0.0), percent(2.5)
    ('12 %', '100 %', '99.9 %', '0.004 %', '0 %', '250 %')
    """
    if 0 < share < 1e-5:
        return "less than 0.001 %"
    if 0.995 <= share < 1:
        return f"{min(99.9, 100 * share):.1f} %"
    return f"{amount(100 * share)} %"
