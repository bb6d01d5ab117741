"""Numbers within the text of ``methods.md``, ``comparison.md`` and ``limits.md``: each is that of a stored row."""

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from statistics import fmean

from comparison import OURS, groups

RESULTS = Path(__file__).parent.parent / "results"
# Other numbers with a decimal point in the text of these pages: settings, not measurements.
SETTINGS = {
    "methods.md": {"0.4", "0.5", "0.999", "1.6", "0.7", "0.1"},
    "comparison.md": {"0.005"},
    "limits.md": {"1.00"},
}


def lines(name: str) -> list[dict]:
    return [json.loads(line) for line in (RESULTS / name).read_text(encoding="utf-8").splitlines()]


@cache
def methods() -> dict[tuple[str, str, str], list[dict]]:
    return groups()


def mean(dataset: str, target: str, label: str, measure: str, places: int = 2) -> str:
    """Return a number of a row of the tables in ``comparison.md``."""
    rows = methods()[dataset, target, label]
    return f"{fmean(row['measures'][measure] for row in rows):.{places}f}"


def gradient(form: str, measure: str) -> str:
    values = [row[measure] for row in lines("sparsity_gradient.jsonl") if row["form"] == form]
    return f"{fmean(values):.2f}"


def perfect(measure: str) -> str:
    (row,) = lines("perfect_answer.jsonl")
    return f"{row[measure]:.2f}"


@cache
def quotes() -> list[tuple[str, str, list[str]]]:
    """Return page, text with {} for each number, and the numbers."""
    subjects = "motionsense_by_subject"
    cpu = f"{OURS} on a CPU"
    return [
        (
            "methods.md",
            "`clip` changes {} of the entries at {} valid answers, the ratio {} at {}",
            [gradient(form, name) for form in ("clip", "ratio") for name in ("sparsity", "valid")],
        ),
        (
            "comparison.md",
            "has oracle {} at {} changed, similarity {}, AUC {}, universality {}.",
            [perfect(name) for name in ("oracle", "sparsity", "similarity", "saliency_auc", "universality")],
        ),
        ("limits.md", "the AUC is {}, where", [mean("moving_box", "1", OURS, "saliency_auc")]),
        (
            "limits.md",
            "judges by elastic distances confirm {} of them; on simulated catching, judges of unused kinds confirm {}.",
            [
                mean("motionsense", "ups", cpu, "transfer_distances"),
                mean("catching", "Control", cpu, "transfer_unseen"),
            ],
        ),
        (
            "limits.md",
            "the answers of SPARCE a transfer of {}, the generating process confirms {} of them",
            [mean("moving_box", "1", "SPARCE", "transfer"), mean("moving_box", "1", "SPARCE", "oracle")],
        ),
        (
            "limits.md",
            "a believed answer changes {} of the entries",
            [mean("basic_motions", "runner-up", cpu, "sparsity")],
        ),
        (
            "limits.md",
            "with at most {} changed have {} segments per feature, and {} without a cap",
            [
                "0.18",
                mean(subjects, "ups", f"{cpu}, at most 0.18 changed", "segments_per_feature", 1),
                mean(subjects, "ups", cpu, "segments_per_feature", 1),
            ],
        ),
    ]


def fill(page: str, text: str) -> str:
    """Return the text of a page with the numbers of the rows; a quote that the page does not have is an error."""
    for name, template, numbers in quotes():
        if name != page:
            continue
        text, found = re.subn(pattern(template), replacement(numbers), text)
        if found != 1:
            raise LookupError(f"{page} should say once: {template}")
    return text


def without_quotes(page: str, text: str) -> str:
    """Return the text of a page without the sentences that are filled in."""
    for name, template, _ in quotes():
        text = re.sub(pattern(template), "", text) if name == page else text
    return text


def pattern(template: str) -> str:
    """Return a pattern for the template, with any number for {} and any white space for a blank."""
    words = [re.escape(part) for part in template.split("{}")]
    return r"(\d[\d.]*\d|\d)".join(re.sub(r"(\\ )+", r"\\s+", part) for part in words)


def replacement(numbers: list[str]) -> Callable[[re.Match[str]], str]:
    """Return a function that replaces the groups of a match, and keeps the words and line breaks between them."""

    def replace(match: re.Match[str]) -> str:
        text, start = match[0], match.start()
        for group in range(len(numbers), 0, -1):
            begin, end = match.span(group)
            text = text[: begin - start] + numbers[group - 1] + text[end - start :]
        return text

    return replace
