"""A report: one page that holds everything, words, tables and the numbers of its pictures, and loads nothing."""

from __future__ import annotations

import base64
import json
import os
import zlib
from collections.abc import Iterator
from html import escape
from importlib.resources import files
from pathlib import Path

import numpy as np

from sparcets.errors import DataError
from sparcets.explanation import Explanation
from sparcets.narrate.doubts import find_votes
from sparcets.narrate.quality import Scored, measures_of
from sparcets.narrate.text import Measures, Story, tell
from sparcets.plots.interactive import (
    PageFigure,
    answers_figure,
    curves_figure,
    frequency_figure,
    map_figure,
    plotly_js,
)
from sparcets.plots.interactive_body import body_figure
from sparcets.report.sections import settings_section, summary_section
from sparcets.segments import find_segments
from sparcets.storage import atomic_path

CAPTIONS = {
    "frequency": "How often each value changes, over all valid answers",
    "curves": "Before and after; changed stretches are marked",
    "map": "Every change",
    "body": "The movement",
    "answers": "All answers to this query",
}
MOST = 500  # answers told one by one; a page of more is slow to open, and nobody reads it
WIDE = ("frequency", "body", "answers")  # over both columns
# Nothing may be loaded, whatever a name in the data tries to smuggle in.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:"

Figures = dict[str, PageFigure]


def write_report(
    explanation: Explanation,
    path: str | os.PathLike[str],
    *,
    scores: Scored | None = None,
    title: str | None = None,
) -> Path:
    """Write a page on all answers of an explanation, whole or not at all; needs ``sparcets[plots]``.

    The page holds a summary, the quality of the set in words, a table to sort, the words and pictures of each answer,
    and the settings that made it. It is one file, and nothing in it is loaded from elsewhere.

    Parameters
    ----------
    explanation
        What it is about. The summary is of all answers; told one by one are the first 500, and the page says so.
    path
        The file, ``report.html``.
    scores
        What :func:`sparcets.evaluate` found about it; without, nothing is said of judges and of real data.
    title
        The heading; by default the method and the classes asked for.

    Examples
    --------
    >>> import sparcets as sp
    >>> from tempfile import TemporaryDirectory
    >>> from sparcets.testing.data import make_series
    >>> from sparcets.testing.mocks import mean_proba
    >>> X, y = make_series(60)
    >>> e = sp.Nearest(sp.wrap(mean_proba)).fit(X, y).explain(X[y == 0][:3], target=1)
    >>> with TemporaryDirectory() as folder:
    ...     page = write_report(e, f"{folder}/report.html").read_text(encoding="utf-8")
    >>> page.count("<article"), "https://" in page.split('id="plotly"')[0]
    (3, False)
    """
    if not len(explanation):
        raise DataError("there is nothing to report: the explanation holds no answers. Explain at least one series.")
    measures: list[Measures] = [{}] * len(explanation) if scores is None else list(measures_of(scores, explanation))
    page = _page(explanation, measures, scores, title or _title(explanation))
    final = Path(path)
    with atomic_path(final) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return final


def _page(e: Explanation, measures: list[Measures], scores: Scored | None, title: str) -> str:
    script = plotly_js()  # first of all: without it there is no page
    stories = [tell(e[i], measures=measures[i]) for i in range(min(len(e), MOST))]
    left_out = len(e) - len(stories)
    whole = (e.valid & (e.status != "unchanged")).any()
    parts = [
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        f"<style>{_template('report.css')}</style></head><body>",
        f"<header><h1>{escape(title)}</h1>",
        '<p class="soft">What would have to be different for the model to say something else?</p>',
        '<nav aria-label="parts of this page"><a href="#summary">Summary</a><a href="#table">Table</a>'
        '<a href="#explanations">Explanations</a><a href="#settings">Settings</a></nav></header><main>',
        summary_section(e, scores),
        _pictures("set", {"frequency": frequency_figure(e)}) if whole else "",
        _table(e, measures, stories),
        '<h2 id="explanations">Explanations</h2>',
        f'<p class="careful">Table and explanations hold the first {MOST}; {left_out} more are left out. '
        "Make a page of each part, as explanation[500:1000].</p>"
        if left_out
        else "",
        *(_article(e, i, story) for i, story in enumerate(stories)),
        settings_section(e),
        "</main><footer class='soft'>Made by sparcets. This page is one file and loads nothing.</footer>",
        # As text: the browser reads the page at once, and plotly.js when the first picture is drawn.
        f'<script type="text/plain" id="plotly">{_packed(script)}</script>',
        f"<script>{_template('report.js')}</script></body></html>",
    ]
    return "\n".join(parts)


def _title(e: Explanation) -> str:
    wanted = [e.class_names[k] for k in np.unique(e.target)]
    towards = f" towards {wanted[0]}" if len(wanted) == 1 else ""
    return f"{len(e)} explanation{'' if len(e) == 1 else 's'}{towards}"


def _template(name: str) -> str:
    return (files("sparcets.report") / "templates" / name).read_text(encoding="utf-8")


def _table(e: Explanation, measures: list[Measures], stories: list[Story]) -> str:
    """Return one line per answer, to be sorted by any column."""
    judged = any(find_votes(m) for m in measures)
    heads = [("answer", 1), ("query", 1), ("model says", 0), ("wanted", 0), ("status", 0), ("probability", 1)]
    heads += [("changed, %", 1), ("stretches", 1), *([("judges", 1)] if judged else []), ("doubts", 1)]
    cells = "".join(
        f'<th scope="col"{" class=number" if numeric else ""}><button type="button">{name}</button></th>'
        for name, numeric in heads
    )
    rows = [_row(e, i, measures[i], story, judged) for i, story in enumerate(stories)]
    return (
        '<h2 id="table">Table</h2><p class="soft">A click on a heading sorts; a click on an answer leads to it.</p>'
        f'<div id="answers-box" class="scroll" tabindex="0" role="region" aria-label="table of explanations">'
        f'<table id="answers"><thead><tr>{cells}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )


def _row(e: Explanation, i: int, measures: Measures, story: Story, judged: bool) -> str:
    votes = find_votes(measures)
    said = [f"{sum(votes.values())} of {len(votes)}" if votes else "–", sum(votes.values()) if votes else -1]
    stretches = len(find_segments(e.changed[i : i + 1]))
    numbers = [
        (f'<a href="#answer-{i}">{i}</a>', i),
        (str(int(e.query_index[i])), int(e.query_index[i])),
        (f"{float(e.probability[i]):.2f}", float(e.probability[i])),
        (f"{100 * float(e.share_changed[i]):.3g}", float(e.share_changed[i])),
        (str(stretches), stretches),
        *([(str(said[0]), said[1])] if judged else []),
        (str(len(story.doubts)), len(story.doubts)),
    ]
    words = [e.class_names[int(e.predicted[i])], e.class_names[int(e.target[i])], str(e.status[i])]
    cells = [f'<td class="number" data-value="{value}">{text}</td>' for text, value in numbers]
    return f"<tr>{''.join(cells[:2])}{''.join(f'<td>{escape(w)}</td>' for w in words)}{''.join(cells[2:])}</tr>"


def _article(e: Explanation, i: int, story: Story) -> str:
    before, wanted = e.class_names[int(e.predicted[i])], e.class_names[int(e.target[i])]
    change = f"{before} → {wanted}" if e.status[i] != "unchanged" else f"{before}, as wanted"
    items = "".join(f"<li>{escape(change)}</li>" for change in story.changes)
    return "\n".join(
        [
            f'<article id="answer-{i}" aria-labelledby="heading-{i}">',
            f'<h3 id="heading-{i}">{i}. {escape(change)} <span class="soft">(query {int(e.query_index[i])}, '
            f"{escape(str(e.status[i]))})</span></h3>",
            f"<p>{escape(story.opening)}</p>{f'<ul>{items}</ul>' if items else ''}",
            *(f"<p>{escape(text)}</p>" for text in (story.rest, story.stayed, story.trust) if text),
            *(f'<p class="careful"><b>Careful:</b> {escape(doubt)}</p>' for doubt in story.doubts),
            _pictures(f"pictures-{i}", dict(_figures(e, i))),
            "</article>",
        ]
    )


def _figures(e: Explanation, i: int) -> Iterator[tuple[str, PageFigure]]:
    curves, every = curves_figure(e[i]), map_figure(e[i])
    tall = max(figure["layout"]["height"] for figure in (curves, every))  # side by side
    curves["layout"]["height"] = every["layout"]["height"] = tall
    yield "curves", curves
    yield "map", every
    if (body := body_figure(e[i])) is not None:
        yield "body", body
    others = np.flatnonzero(e.query_index == e.query_index[i])
    if others[0] == i and len(others) > 1:  # told once, with the first of them
        yield "answers", answers_figure(e[others])


def _pictures(name: str, figures: Figures) -> str:
    """Return room for pictures, and the numbers that they are drawn from when they come into view."""
    places = [_place(key, figure) for key, figure in figures.items()]
    text = json.dumps(figures, separators=(",", ":"), allow_nan=False)
    return (
        f'<div class="pictures" id="{name}" data-figures="{name}-numbers">{"".join(places)}</div>'
        f'<script type="text/plain" id="{name}-numbers">{_packed(text)}</script>'
    )


def _packed(text: str) -> str:
    """Return a text in a third of the room, as letters that a page may hold."""
    return base64.b64encode(zlib.compress(text.encode(), 6)).decode()


def _place(key: str, figure: PageFigure) -> str:
    """Return room for one picture; its title becomes a line of the page, which can be wrapped."""
    note = figure["layout"].pop("title", {}).get("text", "")
    return (
        f'<div class="picture{" wide" if key in WIDE else ""}"><h4>{CAPTIONS[key]}</h4>'
        f'<p class="soft small">{escape(note)}</p>'
        f'<div class="plot" data-name="{key}" style="min-height:{figure["layout"]["height"]}px" role="figure" '
        f'aria-label="{CAPTIONS[key]}"><p class="waiting">drawn when it comes into view</p></div></div>'
    )
