"""``sparcets report``: an explanation as a page to read, or one of its answers as a picture for a paper."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sparcets.cli.options import Json, in_bytes, print_json
from sparcets.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sparcets.evaluation.scores import Scores
    from sparcets.explanation import Explanation

PICTURES = (".pdf", ".png", ".svg")


class Picture(str, Enum):
    """What is drawn of one answer."""

    answer = "answer"
    several = "several"
    body = "body"


def report(
    explanation: Annotated[Path, typer.Argument(help="File that `sparcets explain --out` saved (.npz).")],
    out: Annotated[
        Path, typer.Option("--out", help="The page (.html), or with --answer a picture (.pdf, .png or .svg).")
    ] = Path("report.html"),
    scores: Annotated[
        Path | None, typer.Option("--scores", help="What `sparcets evaluate --out` saved: adds judges and real data.")
    ] = None,
    answer: Annotated[int | None, typer.Option("--answer", "-a", help="One answer alone, as a picture.")] = None,
    picture: Annotated[
        Picture, typer.Option(help="Of that answer: before and after, all answers to its query, or the stick figure.")
    ] = Picture.answer,
    title: Annotated[str | None, typer.Option(help="Heading of the page.")] = None,
    json: Json = False,
) -> None:
    """Write one page with the words and pictures of all answers; it needs no network to be read."""
    from sparcets.explanation import load_explanation
    from sparcets.report.html import write_report
    from sparcets.storage import atomic_path

    wanted = (".html", ".htm") if answer is None else PICTURES
    if out.suffix.lower() not in wanted:
        hint = " For a picture, say which answer: --answer 0." if answer is None else ""
        raise ConfigError(f"--out must end in {', '.join(wanted)}, got {out.name!r}.{hint}")
    e = load_explanation(explanation)
    if answer is None:
        write_report(e, out, scores=_scores(e, scores), title=title)
    else:
        figure = _draw(e, answer, picture)
        with atomic_path(out) as temporary:
            figure.savefig(temporary)
    size = out.stat().st_size
    if json:
        print_json({"out": str(out), "answers": len(e) if answer is None else 1, "megabytes": round(size / 1e6, 3)})
        return
    typer.echo(f"saved to {out} ({in_bytes(size)})")


def _scores(e: Explanation, path: Path | None) -> Scores | None:
    """Return the scores that were saved, or what can be measured without data and judges."""
    if path is None and (e.status == "unchanged").all():
        return None
    from sparcets.evaluation.evaluate import evaluate
    from sparcets.evaluation.scores import Scores

    return evaluate(e, progress=False) if path is None else Scores.load(path)


def _draw(e: Explanation, i: int, picture: Picture) -> Figure:
    from sparcets.plots.body import plot_body
    from sparcets.plots.series import plot_answer, plot_answers

    one = e[i]
    if picture is Picture.several:
        return plot_answers(e[e.query_index == one.query_index[0]])
    return plot_body(one) if picture is Picture.body else plot_answer(one)
