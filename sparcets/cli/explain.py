"""``sparcets explain``: counterfactuals for test series, by a saved explainer."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from sparcets.cli import options
from sparcets.cli.options import Many, repeated
from sparcets.core.errors import ConfigError, FeatureMismatchError, StorageError
from sparcets.core.registry import unknown_name

if TYPE_CHECKING:
    from sparcets.core.explanation import Explanation
    from sparcets.core.info import SeriesInfo
    from sparcets.core.series import IntArray
    from sparcets.data.dataset import Dataset
    from sparcets.methods.base import BaseExplainer


def check_together(asked: options.Options) -> None:
    """Raise if options were given that do not go together."""
    if asked.option and asked.dataset is None:
        raise ConfigError("--option belongs to a data set: give --dataset too.")
    usual = {"rows": ROWS, "engine": "local", "curve": False}
    of_files = ("id_column", "time_column", "workers", "engine", "address")
    of_data = ("rows", "predicted", "dataset", "plots", "curve")
    given = [
        f"--{name.replace('_', '-')}"
        for name in (of_files if asked.queries is None else of_data)
        if getattr(asked, name) != usual.get(name)
    ]
    if asked.queries is None:
        if given:
            raise ConfigError(f"{', '.join(given)}: only for Parquet or Arrow files, by --queries.")
    elif given:
        raise ConfigError(f"--queries cannot be combined with {', '.join(given)}.")
    elif asked.out is None:
        raise ConfigError("--queries needs --out, a folder for the Parquet files of the answers.")


def explain_files(asked: options.Options, question: dict[str, Any]) -> None:
    """Explain all series of files, and print what became of them."""
    from sparcets.methods.archive import explain_parquet

    names = ("id_column", "time_column", "seed", "device", "engine", "workers", "address")
    given = {name: getattr(asked, name) for name in names}
    result = explain_parquet(asked.model, asked.queries, asked.out, own_model=asked.own, **question, **given)
    if asked.json:
        facts = ("queries", "answers", "errors", "shards", "computed", "unfinished", "seconds", "explain_s")
        options.print_json({"folder": str(asked.out), **{name: getattr(result, name) for name in facts}})
    else:
        before = result.shards - result.computed - len(result.unfinished)
        rate = f", {result.queries / max(result.seconds, 1e-9):,.0f} per second"
        there = f" ({before} of {result.shards} shards were there already)" if before else rate
        typer.echo(f"{result.queries:,} series explained: {result.answers:,} answers in {result.seconds:.0f} s{there}")
        if result.errors:
            typer.echo(f"{result.errors:,} series could not be explained; the column error of their rows says why")
        typer.echo(f"saved to {asked.out}")
    for part, why in list(result.unfinished.items())[:3]:
        typer.echo(f"not written: {part}: {why}", err=True)
    if result.unfinished:
        missing = f"{len(result.unfinished)} of {result.shards} shards are missing"
        typer.echo(f"{missing}; the same command tries them again", err=True)
    if result.unfinished or result.errors == result.queries:
        raise typer.Exit(1)


MAX_NAME = 60  # characters of an id in the name of a file
SOFTWARE = "sparcets"  # in the pictures, by which they are recognised


def with_numbers(answer: Explanation, series: IntArray) -> Explanation:
    """Return the answer with the numbers of the series (answers,) as ids, unless the data have ids of their own."""
    return answer if answer.ids is not None else replace(answer, ids=np.array([f"series {k}" for k in series]))


def save_pictures(answer: Explanation, folder: Path, series: IntArray) -> list[Path]:
    """Save a figure of every answer that changes something to a folder; return the files.

    Their names hold the numbers of the series (answers,): ``series-007.png``, or ``series-007-trial_4.png`` with an id;
    of several answers to one query, ``series-007_2.png`` is the second.
    """
    from sparcets.io.files import atomic_path

    named, files = with_numbers(answer, series), []
    for i in np.flatnonzero(np.asarray(answer.status) != "unchanged").tolist():
        name = "" if answer.ids is None else "-" + re.sub(r"[^0-9A-Za-z.-]+", "_", str(answer.ids[i]))[:MAX_NAME]
        nth = 1 + int((answer.query_index[:i] == answer.query_index[i]).sum())
        file = folder / f"series-{series[i]:03d}{name}{f'_{nth}' if nth > 1 else ''}.png"
        if file.exists() and not _is_ours(file):
            raise StorageError(f"{file} is in the way: it is not a picture by sparcets. Choose another folder.")
        with atomic_path(file) as temporary:
            named.plot(i).savefig(temporary, metadata={"Software": SOFTWARE})
        files.append(file)
    return files


def _is_ours(file: Path) -> bool:
    """Return whether a file is a picture that :func:`save_pictures` wrote."""
    if not file.is_file():
        return False
    with file.open("rb") as opened:
        return f"Software\0{SOFTWARE}".encode() in opened.read(1000)


N_ROWS = 10  # test series that are explained unless others are named
ROWS = f"0:{N_ROWS}"
N_TEXTS = 3  # answers described in words on the terminal


def explain(
    model: Annotated[
        Path, typer.Argument(help="Folder written by `sparcets fit`; a Python file of your own is named by --model.")
    ],
    own: options.NamedAgain = None,
    target: options.Target = None,
    excluded: options.Excluded = None,
    confidence: options.Confidence = None,
    at_least: options.AtLeast = None,
    at_most: options.AtMost = None,
    between: options.Between = None,
    change: options.Change = None,
    of: options.Of = None,
    rows: Annotated[str, typer.Option(help="Test series to explain, by index: 7, 0:10 or 1,4,9; or by id.")] = ROWS,
    predicted: Annotated[
        str | None, typer.Option(help="Only test series that the model predicts as this class; the first ten of them.")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option("--dataset", "-d", help="Data set or file; default: the one it was fitted on.")
    ] = None,
    option: options.DataOptions = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            help="Parquet or Arrow file, or folder of them: explain all series in it, into the folder --out.",
        ),
    ] = None,
    id_column: Annotated[
        str | None, typer.Option(help="With --queries: column with the name of each series; default: id.")
    ] = None,
    time_column: Annotated[
        str | None,
        typer.Option(help="With --queries: column with the time of each row; default: time, if there is one."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="File for the explanation (.npz); with --queries, folder of Parquet files."),
    ] = None,
    plots: Annotated[
        Path | None, typer.Option(help="Folder for a figure of each answer that changes something.")
    ] = None,
    sparsity: Annotated[
        float | None, typer.Option(help="Change at most this share of the entries that may change.")
    ] = None,
    n: Annotated[int, typer.Option("-n", help="Answers per query.")] = 1,
    edits: Annotated[
        int | None, typer.Option(help="Largest number of edits of an answer; for the method sparcets.", min=1)
    ] = None,
    curve: Annotated[
        bool, typer.Option("--curve", help="Also measure how few changes are enough; only for sparcets.")
    ] = False,
    immutable: Annotated[Many, repeated("Feature that may not change")] = None,
    frozen: Annotated[Many, repeated("Steps that may not change, as START:STOP, or FEATURE=START:STOP for one")] = None,
    value_range: Annotated[
        Many, repeated("Bounds of a feature, as FEATURE=LOW:HIGH, FEATURE=LOW: or FEATURE=:HIGH", "--range")
    ] = None,
    max_step: Annotated[Many, repeated("Largest change of a feature per step, as FEATURE=VALUE")] = None,
    direction: Annotated[Many, repeated("Direction of the change, as FEATURE=up or FEATURE=down")] = None,
    group: Annotated[Many, repeated("Features that change together, as NAME=FEATURE,FEATURE,…")] = None,
    max_features: Annotated[int | None, typer.Option(help="Largest number of features that may change.")] = None,
    integer: Annotated[Many, repeated("Feature of whole numbers")] = None,
    monotone: Annotated[
        Many, typer.Option(help="Feature whose changed stretches rise or fall, as FEATURE=up or FEATURE=down.")
    ] = None,
    fixed_sum: Annotated[Many, repeated("Features whose sum stays as it is, as FEATURE,FEATURE,…")] = None,
    workers: options.Workers = None,
    engine: options.Engine = "local",
    address: options.Address = None,
    seed: Annotated[int | None, typer.Option(help="Random seed; default: the one it was fitted with.")] = None,
    device: options.Device = "auto",
    json: options.Json = False,
) -> None:
    """Explain series: what would have to change for the model to predict another class, or another number?

    Test series of a data set; or with --queries all series of Parquet or Arrow files, also by a cluster.
    """
    from sparcets.io.files import check_folder, file_to_write
    from sparcets.methods.folder import load_fit
    from sparcets.show.phrases import has_name, query_name

    asked = options.Options(**locals())
    constraints = options.parse_constraints(asked)
    check_together(asked)
    if out is not None and queries is None:
        file_to_write(out)  # raises before anything is computed
    if plots is not None:
        check_folder(plots)
    options.check_named(model, own, "explain", model)
    # The machine that only hands out work may have no GPU.
    run, explainer = load_fit(model, device=device if engine == "local" else "auto", model=own)
    info = explainer._fitted()
    question = {"target": options.parse_target(asked, info), "constraints": constraints}
    question |= {"sparsity": sparsity, "n": n, "confidence": confidence, "edits": edits}
    if queries is not None:
        explain_files(asked, question)
        _tell_doubts(info)
        return
    answer, series = _explain_tests(asked, run, explainer, question)
    _tell_doubts(info)
    if out is not None:
        with_numbers(answer, series).save(out)
    pictures = [] if plots is None else save_pictures(answer, plots, series)
    if json:
        options.print_json([_as_dict(answer, i, int(series[i])) for i in range(len(answer))])
        return
    print_answers(answer, series)
    described = np.flatnonzero(np.asarray(answer.status) != "unchanged").tolist()
    for i in described[:N_TEXTS]:
        name = f" ({query_name(answer, i)})" if has_name(answer) else ""
        typer.echo(f"\nseries {series[i]}{name}: {answer.text(i)}")
    if len(described) > N_TEXTS:
        typer.echo(f"\n… and {len(described) - N_TEXTS} more; --json has the texts of all")
    said = [] if out is None else [f"saved to {out}"]
    if plots is not None:
        said.append(f"pictures in {plots}" if pictures else "no pictures: no answer changes anything")
    if said:
        typer.echo("\n" + "\n".join(said))


def _explain_tests(
    asked: options.Options, run: dict[str, Any], explainer: BaseExplainer[Any], question: dict[str, Any]
) -> tuple[Explanation, IntArray]:
    """Explain the test series that are asked for; return the answers, and the number of the series of each."""
    from sparcets.core.side_inputs import take_rows
    from sparcets.data.load import load_dataset
    from sparcets.methods.folder import data_asked_for

    name, of_data = data_asked_for(run, asked.dataset, seed=0)
    if asked.seed is not None:
        explainer.config = explainer.config.override(f"seed={asked.seed}")
    data = load_dataset(name or run["dataset"], **{**of_data, **options.parse_options(asked.option)})
    info, names, fitted = explainer._fitted(), data.feature_names or explainer.feature_names, explainer.feature_names
    if sorted(names) != sorted(fitted):
        raise FeatureMismatchError(
            f"the data have the features {', '.join(names)}; the explainer was fitted on {', '.join(fitted)}."
        )
    columns = slice(None) if names == fitted else [names.index(name) for name in fitted]
    # Where the lengths of a fit differ, those of equally long series are needed too.
    lengths = np.full(len(data.X_test), data.n_steps) if info.unequal else None
    lengths = lengths if data.lengths_test is None else data.lengths_test
    chosen = _rows(asked.rows, data)
    if asked.predicted is not None:
        said = _predicted(explainer, data, columns, lengths, asked.predicted)
        chosen = said[:N_ROWS] if asked.rows == ROWS else [row for row in chosen if row in said]
    if not chosen:
        raise ConfigError(f"the model predicts {asked.predicted!r} for none of these test series. Choose other --rows.")
    known = {"lengths": lengths, "ids": data.ids_test, "subjects": data.subjects_test}
    of_chosen: dict[str, Any] = {name: None if values is None else values[chosen] for name, values in known.items()}
    answer = explainer.explain(
        data.X_test[chosen][:, :, columns],
        side=None if info.side is None else take_rows(data.side_test, chosen),
        curve=asked.curve,
        **of_chosen,
        **question,
    )
    return answer, np.asarray(chosen)[answer.query_index]


def print_answers(answer: Explanation, series: Any) -> None:
    """Print one line per answer."""
    from sparcets.show.text import table_of_answers

    heads, rows = table_of_answers(answer)
    lines = [(int(number), *row) for number, row in zip(series, rows, strict=True)]
    options.print_table(["series", *heads], lines)


def _as_dict(answer: Explanation, i: int, series: int) -> dict[str, Any]:
    from sparcets.show.edit_text import as_dict
    from sparcets.show.verdict import conclude

    return {
        "series": series,
        "id": None if answer.ids is None else str(answer.ids[i]),
        "subject": None if answer.subjects is None else str(answer.subjects[i]),
        "verdict": str(answer.verdict[i]),
        "doubts": list(conclude(answer[i]).doubts),
        "predicted": answer.predictions.format_before(i),
        "target": str(answer.target_names[i]),
        "status": str(answer.status[i]),
        "valid": bool(answer.valid[i]),
        "believed": bool(answer.believed[i]),
        **answer.predictions.as_dict(i),
        "share_changed": float(answer.share_changed[i]),
        "reason": str(answer.reason[i]),
        "edits": [as_dict(edit) for edit in answer.edits(i)],
        "text": answer.text(i),
    }


def _predicted(explainer: BaseExplainer[Any], data: Dataset, columns: Any, lengths: Any, name: str) -> list[int]:
    """Return the test series that the model predicts as a class."""
    info = explainer._fitted()
    if info.task == "regression":
        raise ConfigError("--predicted names a class, and this model predicts numbers. Choose --rows instead.")
    if name not in info.class_names:
        raise unknown_name("class", name, info.class_names)
    side = None if info.side is None else data.side_test
    said = explainer.classifier.predict(data.X_test[:, :, columns], lengths, side=side)
    return [row for row, k in enumerate(said.tolist()) if info.class_names[k] == name]


def _tell_doubts(info: SeriesInfo) -> None:
    """Say beside the answers what is wrong with the model."""
    for doubt in info.model_doubts:
        typer.echo(f"careful: {doubt}; no answer is believed", err=True)


def _rows(text: str, data: Dataset) -> list[int]:
    """Return the indices of test series that ``--rows`` names: by index, by range, or by id."""
    n, ids = len(data.X_test), [] if data.ids_test is None else data.ids_test.tolist()
    try:
        if ":" in text:
            start, stop = (int(v) if v else None for v in text.split(":"))
            rows = list(range(n))[slice(start, stop)]
        else:
            rows = [int(v) for v in text.split(",")]
    except ValueError as error:
        named = [name for name in (text, *text.split(",")) if name in ids]
        if named and ",".join(named) == text:
            return [ids.index(name) for name in named]
        also = f", or ids of test series, such as {ids[0]}" if ids else ""
        raise ConfigError(f"--rows must have the form 7, 0:10 or 1,4,9{also}, got {text!r}.") from error
    if not rows or min(rows) < 0 or max(rows) >= n:
        raise ConfigError(f"--rows must be within the {n} test series, 0 to {n - 1}, got {text}.")
    return rows
