"""Verdicts: how far an answer can be trusted, each with the word, the symbol and the colour that show it everywhere.

Words, figures, reports, tables, the command line and the studio take them from here, so that they never differ.
"""

from __future__ import annotations

from typing import NamedTuple


class Verdict(NamedTuple):
    """One verdict, as readers see it; never by its colour alone.

    Attributes
    ----------
    word
        As in ``Explanation.verdict``.
    symbol
        One character.
    tone
        Name of the colour: ``green``, ``amber``, ``red`` or ``grey``.
    colour, tint
        For text and lines on white, with a contrast of at least 4.5; and a light one, for backgrounds.
    meaning
        What it says, without a full stop.

    Examples
    --------
    >>> VERDICTS["trick"].label, VERDICTS["trick"].tone
    ('✗ trick', 'red')
    """

    word: str
    symbol: str
    tone: str
    colour: str
    tint: str
    meaning: str

    @property
    def label(self) -> str:
        """Symbol and word, as in a table."""
        return f"{self.symbol} {self.word}"

    @property
    def title(self) -> str:
        """Symbol and word, as at the beginning of a text."""
        return f"{self.symbol} {self.word.capitalize()}"

    @property
    def terminal_style(self) -> str:
        """Colour by the names that terminals have, so that dark and light ones show it well."""
        return {"green": "green", "amber": "yellow", "red": "red", "grey": "dim"}[self.tone]

    def __str__(self) -> str:
        """Return the label."""
        return self.label


VERDICTS = {
    verdict.word: verdict
    for verdict in (
        Verdict(
            "believed",
            "✓",
            "green",
            "#15703f",
            "#e6f4ec",
            "the model predicts the target, other models of every kind agree, and the series looks real",
        ),
        Verdict(
            "doubtful",
            "?",
            "amber",
            "#9a5b00",
            "#fdf3e0",
            "the model predicts the target, but not all that was asked for a believed answer holds",
        ),
        Verdict(
            "trick",
            "✗",
            "red",
            "#b3261e",
            "#fbeae9",
            "the model predicts the target, but fewer than half of the kinds of other models do",
        ),
        Verdict("not reached", "○", "grey", "#5b5b5b", "#f0f0f0", "the model does not predict the target"),
        Verdict("unchanged", "=", "grey", "#5b5b5b", "#f0f0f0", "the model predicts the target for the query itself"),
    )
}
