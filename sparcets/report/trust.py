"""Verdicts in a report: badges, boxes and their colours."""

from __future__ import annotations

from html import escape

from sparcets.explanation.result import Explanation
from sparcets.explanation.verdict import VERDICTS, Verdict
from sparcets.narrate.conclusion import Conclusion


def badge(verdict: Verdict) -> str:
    """Return symbol and word, in the verdict's colours."""
    return f'<span class="verdict {verdict.tone}">{verdict.label}</span>'


def conclusion_box(conclusion: Conclusion) -> str:
    """Return the verdict on an answer, with all that is said about it."""
    parts, verdict = conclusion.parts, conclusion.verdict
    text = f"{escape(parts[0])}." if len(parts) == 1 else f"<ul>{''.join(f'<li>{escape(p)}</li>' for p in parts)}</ul>"
    return f'<div class="conclusion {verdict.tone}"><b>{verdict.title}:</b> {text}</div>'


def verdicts_table(e: Explanation) -> str:
    """Return a table of the number of answers by verdict, with its meaning."""
    verdicts = e.verdict
    rows = "".join(
        f'<tr><td>{badge(v)}</td><td class="number">{n}</td><td class="words">{escape(v.meaning)}</td></tr>'
        for v in VERDICTS.values()
        if (n := int((verdicts == v.word).sum()))
    )
    heads = (("verdict", ""), ("answers", " class=number"), ("meaning", ""))
    head = "".join(f'<th scope="col"{number}>{name}</th>' for name, number in heads)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def verdict_css() -> str:
    """Return the colours of the verdicts as CSS."""
    looks = {v.tone: v for v in VERDICTS.values()}
    return "".join(
        f".{tone}.verdict,.{tone}.conclusion{{color:{v.colour};background:{v.tint};border-color:{v.colour}}}\n"
        for tone, v in looks.items()
    )
