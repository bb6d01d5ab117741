"""``sparcets report``: an explanation as an HTML page, or one answer as a figure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from sparcets.cli.options import Json, in_bytes, print_json
from sparcets.core.errors import ConfigError

if TYPE_CHECKING:
    from sparcets.core.explanation import Explanation
    from sparcets.evaluation.scores import Scores

PICTURES = (".pdf", ".png", ".svg")
Picture: TypeAlias = Literal["answer", "several", "body"]


def report(
    explanation: Annotated[Path, typer.Argument(help="File saved by `sparcets explain --out` (.npz).")],
    out: Annotated[
        Path,
        typer.Option(help="File for the page (.html), or with --answer for the figure (.pdf, .png or .svg)."),
    ] = Path("report.html"),
    scores: Annotated[
        Path | None,
        typer.Option(help="File saved by `sparcets evaluate --out`; adds measures that need data or judges."),
    ] = None,
    answer: Annotated[
        int | None, typer.Option("--answer", "-a", help="Index of an answer, to draw a figure of it instead of a page.")
    ] = None,
    picture: Annotated[
        Picture, typer.Option(help="Figure of the answer: the series, all answers to its query, or a stick figure.")
    ] = "answer",
    title: Annotated[str | None, typer.Option(help="Heading of the page.")] = None,
    json: Json = False,
) -> None:
    """Write a self-contained HTML page with texts and figures of all answers, or a figure of one answer."""
    from sparcets.io.explanations import load_explanation
    from sparcets.io.files import atomic_path, file_to_write
    from sparcets.motion.stick_figure import plot_body
    from sparcets.show.plots import plot_answer, plot_answers
    from sparcets.show.report import write_report

    file_to_write(out)  # raises before anything is computed
    suffixes = (".html", ".htm") if answer is None else PICTURES
    if out.suffix.lower() not in suffixes:
        hint = " For a figure, choose an answer: --answer 0." if answer is None else ""
        raise ConfigError(f"--out must end in {', '.join(suffixes)}, got {out.name!r}.{hint}")
    e = load_explanation(explanation)
    if answer is None:
        write_report(e, out, scores=_scores(e, scores), title=title)
    else:
        one = e[answer]
        if picture == "several":
            figure = plot_answers(e[e.query_index == one.query_index[0]])
        else:
            figure = plot_body(one) if picture == "body" else plot_answer(one)
        with atomic_path(out) as temporary:
            figure.savefig(temporary)
    size = out.stat().st_size
    if json:
        print_json({"out": str(out), "answers": len(e) if answer is None else 1, "megabytes": round(size / 1e6, 3)})
        return
    typer.echo(f"saved to {out} ({in_bytes(size)})")


def _scores(e: Explanation, path: Path | None) -> Scores | None:
    """Return the saved scores, or the measures that need neither data nor judges."""
    if path is None and (e.status == "unchanged").all():
        return None
    from sparcets.evaluation.evaluate import evaluate
    from sparcets.evaluation.scores import Scores

    return evaluate(e, progress=False) if path is None else Scores.load(path)
