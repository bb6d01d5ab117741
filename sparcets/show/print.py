"""Static pictures of answers as SVG, for paper and PDF: drawn in milliseconds, without matplotlib and scripts."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import NamedTuple

import numpy as np

from sparcets.core.arrays import FloatArray
from sparcets.core.evidence import find_segments
from sparcets.core.explanation import Explanation
from sparcets.core.words import seconds, signed
from sparcets.show import style
from sparcets.show.plots import look_of, most_changed, n_steps_of, name_of, only_answer, time_label, times_of, unit_of

WIDTH, LEFT, RIGHT = 720.0, 60.0, 10.0  # pixels: whole picture, and what is left and right of the panels
TOP, PANEL, GAP, BOTTOM = 34.0, 52.0, 20.0, 34.0
MAX_POINTS = 400  # of a curve: about what a page can show
DASHES = {"solid": "", "dash": "7 3", "dot": "2 2", "longdash": "9 5"}
TICKS = 6  # of the time axis


class _Scale(NamedTuple):
    """A linear map from values to pixels."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def curves_svg(answer: Explanation) -> str:
    """Return the curves of the most changed features of one answer before and after, as an SVG element of an HTML page.

    Parameters
    ----------
    answer
        An explanation of length 1.

    Examples
    --------
    >>> import sparcets as sp
    >>> from sparcets.testing.data import make_series
    >>> from sparcets.testing.mocks import mean_proba
    >>> X, y = make_series(60)
    >>> picture = curves_svg(sp.Nearest(sp.wrap(mean_proba)).fit(X, y).explain(X[y == 0][:1], target=1))
    >>> picture[:4], picture.count("<polyline") >= 2, "attempt (? doubtful)" in picture
    ('<svg', True, True)
    """
    shown, times = most_changed(only_answer(answer)), times_of(answer)
    half = 0.5 / (answer.info.sampling_rate or 1.0)
    x = _Scale(float(times[0]) - half, float(times[-1]) + half, LEFT, WIDTH - RIGHT)
    height = TOP + len(shown) * (PANEL + GAP) - GAP + BOTTOM
    parts = [
        f'<svg viewBox="0 0 {WIDTH:g} {height:g}" role="img" '
        f'aria-label="{escape(name_of(answer))}" font-family="system-ui, sans-serif" font-size="10" fill="#222">',
        *_legend(answer),
    ]
    for row, feature in enumerate(shown):
        parts += _panel(answer, feature, x, TOP + row * (PANEL + GAP))
    parts += _time_axis(answer, x, height - BOTTOM)
    return "".join([*parts, "</svg>"])


def _legend(answer: Explanation) -> Iterator[str]:
    look = look_of(answer)
    signs = ((style.BEFORE, "", "recorded"), (look.colour, DASHES[look.dash], name_of(answer)))
    x = LEFT
    for colour, dash, text in signs:
        yield f'<line x1="{x:g}" x2="{x + 26:g}" y1="7" y2="7" stroke="{colour}" stroke-width="2"{_dashed(dash)}/>'
        yield f'<text x="{x + 31:g}" y="10">{escape(text)}</text>'
        x += 46 + 6 * len(text)
    yield f'<rect x="{x:g}" y="1" width="14" height="11" fill="{style.MARK}" fill-opacity="0.25"/>'
    yield f'<text x="{x + 19:g}" y="10">changed</text>'


def _panel(answer: Explanation, feature: int, x: _Scale, top: float) -> Iterator[str]:
    """Yield one feature: changed segments shaded, both curves, its name and the range of its values."""
    n = n_steps_of(answer)
    before, after = (series[0, :n, feature].astype(np.float64) for series in (answer.query, answer.counterfactual))
    low, high = float(np.nanmin([before, after])), float(np.nanmax([before, after]))
    y = _Scale(low, high if high > low else low + 1, top + PANEL - 2, top + 2)
    times, half = times_of(answer), 0.5 / (answer.info.sampling_rate or 1.0)
    found = find_segments(answer.changed[:1, :n, [feature]])
    for start, end in zip(found.start, found.end, strict=True):
        left, right = x(float(times[start]) - half), x(float(times[end - 1]) + half)
        yield (
            f'<rect x="{left:.1f}" y="{top:g}" width="{right - left:.1f}" height="{PANEL:g}" fill="{style.MARK}" '
            'fill-opacity="0.25"/>'
        )
    yield f'<path d="M{x.start:g} {top:g}V{top + PANEL:g}H{x.end:g}" fill="none" stroke="{style.FIXED}"/>'
    look = look_of(answer)
    yield _line(times, after, x, y, look.colour, DASHES[look.dash])
    yield _line(times, before, x, y, style.BEFORE, "")
    name = f"{answer.feature_names[feature]} {unit_of(answer, feature)}"
    yield f'<text x="{x.start:g}" y="{top - 4:g}">{escape(name)}</text>'
    for value, at in zip(signed(high, low), (top + 8, top + PANEL), strict=True):
        yield f'<text x="{x.start - 4:g}" y="{at:g}" text-anchor="end">{value}</text>'


def _line(times: FloatArray, values: FloatArray, x: _Scale, y: _Scale, colour: str, dash: str) -> str:
    """Return a curve; where values are missing, it is interrupted."""
    every = -(-len(times) // MAX_POINTS)
    runs: list[list[str]] = [[]]
    for t, value in zip(times[::every].tolist(), values[::every].tolist(), strict=True):
        if value != value:
            runs.append([])
        else:
            runs[-1].append(f"{x(t):.1f},{y(value):.1f}")
    look = f'fill="none" stroke="{colour}" stroke-width="1.5"{_dashed(dash)}'
    return "".join(f'<polyline points="{" ".join(run)}" {look}/>' for run in runs if run)


def _time_axis(answer: Explanation, x: _Scale, top: float) -> Iterator[str]:
    times = times_of(answer)
    ticks = sorted({round(k * (len(times) - 1) / (TICKS - 1)) for k in range(TICKS)})
    for k, written in zip(ticks, seconds(*(float(times[k]) for k in ticks)), strict=True):
        at = x(float(times[k]))
        yield f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{top:g}" y2="{top + 4:g}" stroke="{style.FIXED}"/>'
        text = written.rstrip("0").rstrip(".")
        yield f'<text x="{at:.1f}" y="{top + 14:g}" text-anchor="middle">{text}</text>'
    middle = (x.start + x.end) / 2
    yield f'<text x="{middle:g}" y="{top + 28:g}" text-anchor="middle">{time_label(answer)}</text>'


def _dashed(dash: str) -> str:
    return f' stroke-dasharray="{dash}"' if dash else ""
