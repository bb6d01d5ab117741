"""HTML report: one self-contained page with text, tables and the data of its figures."""

from __future__ import annotations

import base64
import json
import math
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from sparcets import __version__
from sparcets.core.edits import FREE
from sparcets.core.errors import DataError
from sparcets.core.evidence import VERDICTS, Verdict, find_segments
from sparcets.core.explanation import STATUSES, Explanation
from sparcets.core.series import Series
from sparcets.core.words import amount, percent
from sparcets.io.files import as_utf8, atomic_path
from sparcets.motion.stick_figure import body_figure
from sparcets.show import interactive
from sparcets.show.drawing import agreement_of
from sparcets.show.phrases import advice_note, change_of, count, query_name
from sparcets.show.text import Narrative, build_narrative
from sparcets.show.verdict import Measures, find_votes, measures_of, quality_findings

if TYPE_CHECKING:
    from sparcets.evaluation.scores import Scores

Cell: TypeAlias = str | tuple[str, float]  # markup, optionally with the number by which its column is sorted
NOT_ASKED = "No other models were asked, so that what explains the model cannot be told from what fools it."
CHOSEN_BY = "No independent judges were asked; the verdicts rest on the models by which the answers were chosen."
TO_JUDGE = "Run <code>sparcets evaluate</code> and pass the file it saves to <code>sparcets report --scores</code>."
MEANING = {
    "unchanged": "the model already predicts the target; nothing had to change",
    "generated": "made by the generator, a trained network",
    "refined": "found by a search",
    "neighbour": "taken from a real series, whole or in parts",
    "not_found": "no answer: the target was not reached, or fewer were found than asked for; the best attempt is shown",
}
CAPTIONS = {
    "frequency": "How often each value changes, over all valid answers",
    "curves": "Before and after; changed segments are marked",
    "map": "All changes",
    "body": "Movement",
    "belief": "How much may change, and who believes it",
    "answers": "All answers to this query",
}
MAX_ANSWERS = 500  # shown one by one; longer pages open slowly
WIDE = ("frequency", "body", "belief", "answers")  # span both columns
# No external resource is loaded, even if a name in the data contains markup.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:"
QUESTION = "What would have to be different for the model to say something else?"


def table(columns: Mapping[str, str], rows: Iterable[Sequence[Cell]], attributes: str = "") -> str:
    """Return a table; each column has a class for its cells: ``number``, ``words`` or none."""
    classes = [f' class="{kind}"' if kind else "" for kind in columns.values()]
    heads = (
        f'<th scope="col"{kind if "number" in kind else ""}>{name}</th>'
        for name, kind in zip(columns, classes, strict=True)
    )
    lines = []
    for row in rows:
        both = (cell if isinstance(cell, tuple) else (cell, None) for cell in row)
        sorted_by = ((text, "" if value is None else f' data-value="{value}"') for text, value in both)
        cells = (f"<td{kind}{by}>{text}</td>" for (text, by), kind in zip(sorted_by, classes, strict=True))
        lines.append(f"<tr>{''.join(cells)}</tr>")
    body = f"<tbody>{''.join(lines)}</tbody>"
    return f"<table{attributes}><thead><tr>{''.join(heads)}</tr></thead>{body}</table>"


def badge(verdict: Verdict) -> str:
    """Return symbol and word in the verdict's colours."""
    return f'<span class="verdict {verdict.tone}">{verdict.label}</span>'


def summary_section(e: Explanation, scores: Scores | None) -> str:
    """Return the numbers of answers by status and class, and sentences on their quality."""
    n_queries, needed = len(np.unique(e.query_index)), e.status != "unchanged"
    what = f"{count(len(e), 'answer')} to {n_queries} quer{'y' if n_queries == 1 else 'ies'}"
    counts = {status: int((e.status == status).sum()) for status in STATUSES}
    verdicts = {v: int((e.verdict == v.word).sum()) for v in VERDICTS.values()}
    meanings = [(badge(v), str(n), escape(v.meaning)) for v, n in verdicts.items() if n]
    first = table({"verdict": "", "answers": "number", "meaning": "words"}, meanings)
    statuses = [(status, str(n), MEANING[status]) for status, n in counts.items() if n]
    tables = table({"status": "", "answers": "number", "meaning": ""}, statuses) + _classes(e)
    lines = [
        '<h2 id="summary">Summary</h2>',
        f"<p>{what} by <b>{escape(e.method or '?')}</b>; "
        f"{int((e.valid & needed).sum())} of the {int(needed.sum())} that needed a change are valid.</p>",
        *(f'<p class="careful"><b>Careful:</b> {escape(doubt)}.</p>' for doubt in e.info.model_doubts),
        f'<div class="scroll">{first}</div><div class="scroll beside">{tables}</div>',
    ]
    if scores is None or "transfer" not in scores.summary:
        lines.append(f'<p class="careful">{CHOSEN_BY if e.families else NOT_ASKED} {TO_JUDGE}</p>')
    if scores is not None:
        cards = [
            f'<li class="{grade}"><span class="grade">{grade}</span><b>{name}</b>{escape(sentence)}</li>'
            for name, grade, sentence in quality_findings(scores.summary)
        ]
        lines += ["<h3>Quality</h3>", f'<ul class="findings">{"".join(cards)}</ul>', _all_measures(scores)]
    return "\n".join(lines)


def settings_section(e: Explanation) -> str:
    """Return a table of method, seed, data, constraints and config."""
    info = e.info
    locked = [name for name, free in zip(info.feature_names, e.mutable, strict=True) if not free]
    up_to = "up to " if Series(e.query, e.lengths).unequal else ""
    facts = {
        "method": e.method,
        "seed": e.seed,
        "seconds": amount(e.seconds),
        "series": f"{up_to}{info.n_steps} steps, {info.n_features} features",
        "sampling rate": f"{info.sampling_rate:g} Hz" if info.sampling_rate else "not known",
        **({"numbers": info.numbers.summary()} if info.is_regression else {"classes": ", ".join(info.class_names)}),
        "features that may not change": ", ".join(locked) or "none",
    }
    for when, given in e.constraints.items():
        if text := "; ".join(f"{k}: {json.dumps(v, ensure_ascii=False)}" for k, v in given.items() if v):
            facts[f"constraints ({when})"] = text
    facts |= {f"config: {key}": value for key, value in _flat(e.config)} | {"sparcets": __version__}
    rows = "".join(
        f'<tr><th scope="row">{escape(str(k))}</th><td class="words">{escape(str(v))}</td></tr>'
        for k, v in facts.items()
    )
    return f'<h2 id="settings">Settings</h2><div class="scroll"><table>{rows}</table></div>'


def _classes(e: Explanation) -> str:
    """Return a table of the numbers of answers and of valid ones by pair of classes; empty for a regressor."""
    if e.info.is_regression:
        return ""
    pairs = set(zip(e.predicted.tolist(), e.target.tolist(), strict=True))
    if len(pairs) < 2:
        return ""
    rows = []
    for before, target in sorted(pairs):
        of_pair = (e.predicted == before) & (e.target == target)
        names = f"{escape(e.class_names[before])} → {escape(e.class_names[target])}"
        rows.append((names, str(int(of_pair.sum())), str(int((of_pair & e.valid).sum()))))
    return table({"from → to": "", "answers": "number", "valid": "number"}, rows)


def _all_measures(scores: Scores) -> str:
    shown = ("mean", "std", "low", "high")
    rows = [
        (escape(name), *(f"{line.get(key, math.nan):.3f}".replace("nan", "") for key in shown), str(int(line["n"])))
        for name, line in scores.summary.items()
    ]
    notes = "".join(f"<p class='soft'>{escape(note)}</p>" for note in scores.notes)
    measures = table({"measure": "", **dict.fromkeys((*shown, "n"), "number")}, rows)
    return (
        f"<details><summary>All measures and notes</summary>{notes}"
        f"<p class='soft'>low to high: 95 % interval of the mean.</p><div class=\"scroll\">{measures}</div></details>"
    )


def _flat(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the settings; nested ones have a dotted name."""
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def write_report(
    explanation: Explanation,
    path: str | os.PathLike[str],
    *,
    scores: Scores | None = None,
    title: str | None = None,
) -> Path:
    """Write an HTML report on an explanation, atomically; needs ``sparcets[plots]``.

    The page has a summary, sentences on the quality of the set, a sortable table, text and figures for each answer, and
    the settings. It is one file and loads no external resource. In print, each answer has a static picture.

    Parameters
    ----------
    explanation
        The answers. The summary covers all of them; the first 500 are shown one by one, which the page states.
    path
        The file, ``report.html``.
    scores
        The result of :func:`sparcets.evaluate` for it; without it, judges and distances to real data are omitted.
    title
        The heading; by default the number of explanations and the target class.

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
        raise DataError("there is nothing to report: the explanation has no answers. Explain at least one series.")
    measures: list[Measures] = [{}] * len(explanation) if scores is None else measures_of(scores, explanation)
    targets = [str(name) for name in np.unique(explanation.target_names)]
    usual = f"{count(len(explanation), 'explanation')}{f' towards {targets[0]}' if len(targets) == 1 else ''}"
    page = _page(explanation, measures, scores, title or usual)
    final = Path(path)
    with atomic_path(final) as temporary:
        temporary.write_bytes(as_utf8(page))
    return final


def _page(e: Explanation, measures: list[Measures], scores: Scores | None, title: str) -> str:
    script = interactive.plotly_js()  # first, because it raises an error without plotly
    narratives = [build_narrative(e[i], measures=measures[i]) for i in range(min(len(e), MAX_ANSWERS))]
    left_out = len(e) - len(narratives)
    any_change = (e.valid & (e.status != "unchanged")).any()
    colours = "".join(
        f".{tone}.verdict,.{tone}.conclusion{{color:{v.colour};background:{v.tint};border-color:{v.colour}}}\n"
        for tone, v in {v.tone: v for v in VERDICTS.values()}.items()
    )
    parts = [
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        f"<style>{_template('report.css')}{colours}</style></head><body>",
        f"<header><h1>{escape(title)}</h1>",
        f'<p class="soft">{QUESTION}</p>',
        f"<p><b>{escape(note)}</b></p>" if (note := advice_note(e)) else "",
        '<nav aria-label="parts of this page"><a href="#summary">Summary</a><a href="#table">Table</a>'
        '<a href="#explanations">Explanations</a><a href="#settings">Settings</a></nav></header><main>',
        summary_section(e, scores),
        _figure_boxes("set", {"frequency": interactive.frequency_figure(e)}) if any_change else "",
        _table(e, measures, narratives),
        '<h2 id="explanations">Explanations</h2>',
        f'<p class="careful">Table and explanations show the first {MAX_ANSWERS}; {left_out} more are left out. '
        "Write one report per part, such as explanation[500:1000].</p>"
        if left_out
        else "",
        *(_article(e, i, narrative) for i, narrative in enumerate(narratives)),
        settings_section(e),
        "</main><footer class='soft'>Made by sparcets. This page is one file and loads no other.</footer>",
        # As text, so that the browser parses plotly.js only when the first figure is drawn.
        f'<script type="text/plain" id="plotly">{_packed(script)}</script>',
        f"<script>{_template('report.js')}</script></body></html>",
    ]
    return "\n".join(parts)


def _template(name: str) -> str:
    return (files("sparcets.show") / "templates" / name).read_text(encoding="utf-8")


def _table(e: Explanation, measures: list[Measures], narratives: list[Narrative]) -> str:
    """Return a table with one row per answer, sortable by any column."""
    known = {head: names for head, names in (("id", e.ids), ("subject", e.subjects)) if names is not None}
    votes = [find_votes(of_answer) for of_answer in measures]
    number, reached = ("reached", e.prediction[:, 0]) if e.info.is_regression else ("probability", e.probability)
    columns = ["answer", "query", *known, "verdict", "predicted", "target", "status", number, "changed, %", "segments"]
    columns += [*(["judges"] if any(votes) else []), "warnings"]
    rows: list[list[Cell]] = []
    shares = e.share_changed.tolist()
    for i, narrative in enumerate(narratives):
        query, n_segments = int(e.query_index[i]), len(find_segments(e.changed[i : i + 1]))
        n_warnings, share = len(narrative.conclusion.doubts) + len(narrative.doubts), shares[i]
        agree = sum(votes[i].values()) if votes[i] else -1
        rows.append(
            [
                (f'<a href="#answer-{i}">{i}</a>', i),
                (str(query), query),
                *(escape(str(names[i])) for names in known.values()),
                badge(narrative.conclusion.verdict),
                escape(e.predictions.format_before(i)),
                escape(str(e.target_names[i])),
                str(e.status[i]),
                (e.predictions.format_after(i), float(reached[i])),
                (percent(share).removesuffix(" %"), share),
                (str(n_segments), n_segments),
                *([(f"{agree} of {len(votes[i])}" if votes[i] else "–", agree)] if any(votes) else []),
                (str(n_warnings), n_warnings),
            ]
        )
    words = ("verdict", "predicted", "target", "status", *known)
    heads = {f'<button type="button">{name}</button>': "" if name in words else "number" for name in columns}
    answers = table(heads, rows, ' id="answers"')
    return (
        '<h2 id="table">Table</h2><p class="soft on-screen">Click a heading to sort, or an answer to go to it.</p>'
        f'<div id="answers-box" class="scroll" tabindex="0" role="region" aria-label="table of explanations">'
        f"{answers}</div>"
    )


def _article(e: Explanation, i: int, narrative: Narrative) -> str:
    parts, verdict = narrative.conclusion.parts, narrative.conclusion.verdict
    said = f"{escape(parts[0])}." if len(parts) == 1 else _items(parts)
    return "\n".join(
        [
            f'<article id="answer-{i}" aria-labelledby="heading-{i}">',
            f'<h3 id="heading-{i}">{i}. {escape(change_of(e, i))} <span class="soft">({escape(query_name(e, i))}, '
            f"{escape(str(e.status[i]))})</span></h3>",
            f'<div class="conclusion {verdict.tone}"><b>{verdict.title}:</b> {said}</div>',
            *(f'<p class="careful"><b>Careful:</b> {escape(doubt)}</p>' for doubt in narrative.doubts),
            f"<p>{escape(narrative.opening)}</p>{_items(narrative.changes)}",
            *(f"<p>{escape(text)}</p>" for text in (narrative.rest, narrative.unchanged, narrative.trust) if text),
            edits_table(e, i),
            f'<div class="paper">{interactive.curves_svg(e[i])}</div>',
            _figure_boxes(f"pictures-{i}", dict(_figures(e, i))),
            "</article>",
        ]
    )


def _items(texts: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>" if texts else ""


def edits_table(e: Explanation, i: int) -> str:
    """Return a table of the edits of an answer; empty for methods without edits, and for missing answers."""
    edits = e.edits(i)
    if e.status[i] == "not_found" or all(edit.kind == FREE for edit in edits):
        return ""
    rows = [
        (
            edit.kind if edit.row is None else f"{edit.kind} recording {edit.row}",
            amount(edit.amount),
            f"{edit.start} to {edit.end - 1}",
            escape(", ".join(edit.features)),
            ", ".join(edit.needed_by),
        )
        for edit in edits
    ]
    columns = {"edit": "", "amount": "number", "steps": "", "features": "words", "needed by": ""}
    return f'<div class="scroll">{table(columns, rows)}</div>'


def _figures(e: Explanation, i: int) -> Iterator[tuple[str, interactive.PageFigure]]:
    heat_map = interactive.map_figure(e[i])
    curves = interactive.curves_figure(e[i], min_height=heat_map["layout"]["height"])
    heat_map["layout"]["height"] = curves["layout"]["height"]  # the figures are side by side
    yield "curves", curves
    yield "map", heat_map
    if (body := body_figure(e[i])) is not None:
        yield "body", body
    if (agreement := agreement_of(e[i])) is not None:
        yield "belief", interactive.agreement_figure(agreement)
    others = np.flatnonzero(e.query_index == e.query_index[i])
    if others[0] == i and len(others) > 1:  # once per query, with its first answer
        yield "answers", interactive.answers_figure(e[others])


def _figure_boxes(name: str, figures: Mapping[str, interactive.PageFigure]) -> str:
    """Return placeholders for figures and their data; each is drawn when scrolled into view.

    The title of a figure becomes a paragraph of the page, which can be wrapped.
    """
    boxes = [
        f'<div class="picture{" wide" if key in WIDE else ""}"><h4>{CAPTIONS[key]}</h4>'
        f'<p class="soft small">{escape(figure["layout"].pop("title", {}).get("text", ""))}</p>'
        f'<div class="plot" data-name="{key}" style="min-height:{figure["layout"]["height"]}px" role="figure" '
        f'aria-label="{CAPTIONS[key]}"><p class="waiting">drawn when scrolled into view</p></div></div>'
        for key, figure in figures.items()
    ]
    text = json.dumps(figures, separators=(",", ":"), allow_nan=False)
    return (
        f'<div class="pictures" id="{name}" data-figures="{name}-numbers">{"".join(boxes)}</div>'
        f'<script type="text/plain" id="{name}-numbers">{_packed(text)}</script>'
    )


def _packed(text: str) -> str:
    """Return a text compressed to about a third, as base64."""
    return base64.b64encode(zlib.compress(text.encode(), 6)).decode()
