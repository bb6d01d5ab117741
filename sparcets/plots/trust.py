"""How far answers can be trusted, in figures: lines and names of counterfactuals, and titles with the verdict."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any, NamedTuple

from sparcets.explanation.result import Explanation
from sparcets.explanation.verdict import VERDICTS
from sparcets.narrate.conclusion import conclude
from sparcets.narrate.doubts import find_doubts
from sparcets.narrate.people import advice_note
from sparcets.plots import style
from sparcets.plots.labels import title_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_LETTERS = 9.5  # of a title in bold, per inch of width
PAD = 3 / 72  # inches above a title in matplotlib's constrained layout
LIGHTER = 0.15  # of the way to white: each further one of several answers


class Look(NamedTuple):
    """Colour, line styles (of matplotlib and of plotly) and name of a counterfactual in a figure."""

    colour: str
    line: Any
    dash: str
    name: str


# Only a believed answer is drawn as one.
LOOKS = {
    "believed": Look(style.AFTER, "-", "solid", "counterfactual"),
    "doubtful": Look(VERDICTS["doubtful"].colour, (0, (5, 1.5)), "dash", "attempt"),
    "trick": Look(VERDICTS["trick"].colour, (0, (1.5, 1)), "dot", "attempt"),
    "not reached": Look(VERDICTS["not reached"].colour, (0, (5, 3)), "longdash", "best attempt"),
    "unchanged": Look(style.AFTER, "-", "solid", "unchanged"),
}


def look_of(answer: Explanation) -> Look:
    """Return how the counterfactual of an explanation of length 1 is drawn."""
    return LOOKS[str(answer.verdict[0])]


def shade_of(answer: Explanation, number: int) -> str:
    """Return the colour of one of several answers: that of its verdict, lighter for later ones."""
    colour = look_of(answer).colour
    parts = [int(colour[k : k + 2], 16) for k in (1, 3, 5)]
    lighter = LIGHTER * number
    return "#" + "".join(f"{round(part + lighter * (255 - part)):02x}" for part in parts)


def name_of(answer: Explanation) -> str:
    """Return what the counterfactual of an explanation of length 1 is called, with its verdict.

    >>> import sparcets as sp
    >>> from sparcets.testing.data import make_series
    >>> from sparcets.testing.mocks import mean_proba
    >>> X, y = make_series(60)
    >>> name_of(sp.Nearest(sp.wrap(mean_proba)).fit(X, y).explain(X[y == 0][:1], target=1))
    'attempt (? doubtful)'
    """
    look, verdict = look_of(answer), VERDICTS[str(answer.verdict[0])]
    return look.name if verdict.word == "unchanged" else f"{look.name} ({verdict.label})"


def add_title(figure: Figure, answer: Explanation, legend: str = "") -> None:
    """Put the verdict and a title above a figure, and below it the meaning of its signs and what readers must know."""
    conclusion = conclude(answer)
    width = int(MAX_LETTERS * figure.get_size_inches()[0])
    said = f"{conclusion.verdict.title}: {'; '.join(conclusion.parts)}"
    lines = textwrap.wrap(said, width, max_lines=2, placeholder=" …")
    reached = conclusion.verdict.word not in ("unchanged", "not reached")
    for doubt in find_doubts(answer, {})[:1] if reached else ():
        lines += textwrap.wrap(f"Careful: {doubt}", width, max_lines=2, placeholder=" …")
    look: dict[str, Any] = {"x": 0.01, "ha": "left", "va": "top", "fontweight": "bold", "fontsize": "large"}
    # Empty lines in the title, for which the layout makes room, and the verdict in them, in its own colour.
    figure.suptitle("\n" * len(lines) + style.escape_mathtext(title_of(answer)), **look)
    top = 1 - PAD / float(figure.get_size_inches()[1])
    figure.text(y=top, s=style.escape_mathtext("\n".join(lines)), color=conclusion.verdict.colour, **look)
    note = ".  ".join(part for part in (legend, advice_note(answer)) if part)
    if note:
        figure.supxlabel(style.escape_mathtext(note), fontsize=style.TICKS)
