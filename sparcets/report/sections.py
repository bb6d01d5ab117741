"""The sections of a report on the whole set: the summary and the settings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

import numpy as np

from sparcets import __version__
from sparcets.explanation.amounts import amount
from sparcets.explanation.layout import STATUSES
from sparcets.explanation.result import Explanation
from sparcets.narrate.method import method_name
from sparcets.narrate.quality import Scored, quality_findings
from sparcets.report.trust import verdicts_table

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


def summary_section(e: Explanation, scores: Scored | None) -> str:
    """Return the numbers of answers by status and class, and their quality in words."""
    n_queries = len(np.unique(e.query_index))
    needed = e.status != "unchanged"
    what = f"{_count(len(e), 'answer')} to {_count(n_queries, 'query', 'queries')}"
    lines = [
        '<h2 id="summary">Summary</h2>',
        f"<p>{what} by <b>{escape(method_name(e) or '?')}</b>; "
        f"{int((e.valid & needed).sum())} of the {int(needed.sum())} that needed a change are valid.</p>",
        f'<div class="scroll">{verdicts_table(e)}</div><div class="scroll beside">{_statuses(e)}{_classes(e)}</div>',
    ]
    if scores is None or "transfer" not in scores.summary:
        lines.append(f'<p class="careful">{CHOSEN_BY if e.families else NOT_ASKED} {TO_JUDGE}</p>')
    if scores is None:
        return "\n".join(lines)
    cards = [
        f'<li class="{f.verdict}"><span class="grade">{f.verdict}</span><b>{escape(f.name)}</b>'
        f"{escape(f.sentence)}</li>"
        for f in quality_findings(scores.summary)
    ]
    lines += [
        "<h3>Quality</h3>",
        f'<ul class="findings">{"".join(cards)}</ul>',
        _all_measures(scores),
    ]
    return "\n".join(lines)


def settings_section(e: Explanation) -> str:
    """Return a table of method, seed, data, constraints and config."""
    info = e.info
    rate = f"{info.sampling_rate:g} Hz" if info.sampling_rate else "not known"
    locked = [name for name, free in zip(info.feature_names, e.mutable, strict=True) if not free]
    facts = {
        "method": method_name(e),
        "seed": e.seed,
        "seconds": amount(e.seconds),
        "series": f"{'up to ' * (e.lengths is not None)}{info.n_steps} steps, {info.n_features} features",
        "sampling rate": rate,
        **({"classes": ", ".join(info.class_names)} if info.outcome is None else {"numbers": info.outcome.summary()}),
        "features that may not change": ", ".join(locked) or "none",
        **{
            f"constraints ({when})": text for when, given in e.constraints.items() if (text := _constraints_text(given))
        },
        **{f"config: {key}": value for key, value in _flat(e.config)},
        "sparcets": __version__,
    }
    rows = "".join(
        f'<tr><th scope="row">{escape(str(k))}</th><td class="words">{escape(str(v))}</td></tr>'
        for k, v in facts.items()
    )
    return f'<h2 id="settings">Settings</h2><div class="scroll"><table>{rows}</table></div>'


def _statuses(e: Explanation) -> str:
    rows = "".join(
        f'<tr><td>{status}</td><td class="number">{int((e.status == status).sum())}</td><td>{MEANING[status]}</td></tr>'
        for status in STATUSES
        if (e.status == status).any()
    )
    head = '<tr><th scope="col">status</th><th scope="col" class="number">answers</th><th scope="col">meaning</th></tr>'
    return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"


def _classes(e: Explanation) -> str:
    """Return a table of the numbers of answers and of valid ones by pair of classes; none for a regressor."""
    if e.numbers is not None:
        return ""
    pairs = sorted(set(zip(e.predicted.tolist(), e.target.tolist(), strict=True)))
    if len(pairs) < 2:
        return ""
    rows = []
    for before, target in pairs:
        of_pair = (e.predicted == before) & (e.target == target)
        names = f"{escape(e.class_names[before])} → {escape(e.class_names[target])}"
        valid = int((of_pair & e.valid).sum())
        rows.append(
            f'<tr><td>{names}</td><td class="number">{int(of_pair.sum())}</td><td class="number">{valid}</td></tr>'
        )
    head = '<tr><th scope="col">from → to</th><th class="number">answers</th><th class="number">valid</th></tr>'
    return f"<table><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"


def _all_measures(scores: Scored) -> str:
    rows = []
    for name, line in scores.summary.items():
        numbers = (_format_number(line.get(key)) for key in ("mean", "std", "low", "high"))
        cells = "".join(f'<td class="number">{number}</td>' for number in numbers)
        rows.append(f"<tr><td>{escape(name)}</td>{cells}<td class='number'>{int(line['n'])}</td></tr>")
    head = "".join(f'<th scope="col" class="number">{h}</th>' for h in ("mean", "std", "low", "high", "n"))
    notes = "".join(f"<p class='soft'>{escape(note)}</p>" for note in scores.notes)
    return (
        f"<details><summary>All measures and notes</summary>{notes}"
        "<p class='soft'>low to high: 95 % interval of the mean.</p>"
        f'<div class="scroll"><table><thead><tr><th scope="col">measure</th>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div></details>"
    )


def _format_number(value: float | None) -> str:
    return "" if value is None or value != value else f"{value:.3f}"


def _count(n: int, one: str, many: str | None = None) -> str:
    return f"{n} {one if n == 1 else many or one + 's'}"


def _constraints_text(constraints: Mapping[str, Any]) -> str:
    """Return the constraints by name, without empty ones."""
    given = {name: value for name, value in constraints.items() if value}
    return "; ".join(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in given.items())


def _flat(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the settings one by one; nested ones have a dotted name."""
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
