"""``sparcets benchmark``: run methods on data sets, and show the results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sparcets.cli.options import (
    Address,
    DataOptions,
    Device,
    Engine,
    Json,
    Seed,
    Workers,
    parse_options,
    print_json,
    print_table,
)
from sparcets.core.errors import FileFormatError

app = typer.Typer(help="Run methods on data sets; resumable at any point.", no_args_is_help=True)

# Columns of every table: the paper's measures, and others that show whether the answers are true.
COLUMNS = (
    *("valid", "transfer", "transfer_unseen", "oracle", "universality"),
    *("similarity", "sparsity", "smoothness", "knn_ratio"),
)
Many = list[str] | None


@app.command("run")
def run(
    out: Annotated[Path, typer.Option("--out", help="Folder of the results; stored results are not computed again.")],
    dataset: Annotated[
        list[str], typer.Option("--dataset", "-d", help="Name of a data set, or path to a file; may be repeated.")
    ],
    method: Annotated[
        Many,
        typer.Option(
            "--method", "-m", help="Explainer, or peer such as cfts:comte; may be repeated; default: sparcets."
        ),
    ] = None,
    classifier: Annotated[
        Many,
        typer.Option("--classifier", "-c", help="Architecture of the classifier; may be repeated; default: bilstm."),
    ] = None,
    target: Annotated[
        Many,
        typer.Option("--target", "-t", help="Target class; may be repeated; default: the runner-up of each query."),
    ] = None,
    preset: Annotated[str, typer.Option(help="Preset of the settings: default, quick, paper or tiny.")] = "default",
    setting: Annotated[
        Many,
        typer.Option(
            "--set", help="Setting of all explainers, as key=value, or of one, as method:key=value; may be repeated."
        ),
    ] = None,
    classifier_setting: Annotated[
        Many, typer.Option("--set-classifier", help="Setting of the classifiers, as key=value; may be repeated.")
    ] = None,
    option: DataOptions = None,
    sparsity: Annotated[
        float | None, typer.Option(help="Change at most this share of the entries that may change.", min=0.0, max=1.0)
    ] = None,
    seed_count: Annotated[int, typer.Option(help="Number of repetitions, with consecutive seeds.", min=1)] = 1,
    queries: Annotated[int | None, typer.Option(help="Largest number of test series to explain.", min=1)] = None,
    seconds_per_query: Annotated[float | None, typer.Option(help="Time limit of peers per query.")] = None,
    keep: Annotated[int, typer.Option(help="Number of answers of each run to save as an explanation.", min=0)] = 0,
    curve: Annotated[bool, typer.Option("--curve", help="Store ROC curves if the salient entries are known.")] = False,
    workers: Workers = None,
    engine: Engine = "local",
    address: Address = None,
    seed: Seed = 0,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Run every method on every data set; a stopped run continues when the command is repeated.

    Runs that failed, and runs on a file that has changed since, are computed again.
    """
    from sparcets_paper.benchmark.plan import check_plan, grid

    chosen = grid(
        dataset,
        classifier or ["bilstm"],
        method or ["sparcets"],
        range(seed, seed + seed_count),
        target or (None,),
        setting or (),
        options=parse_options(option),
        classifier_config=_classifier_config(classifier_setting, preset),
        preset=preset,
        sparsity=sparsity,
        queries=queries,
        seconds_per_query=seconds_per_query,
        keep=keep,
        curve=curve,
    )
    check_plan(chosen)  # else a mistyped name would be an error of every cell

    from sparcets_paper.benchmark.runner import run_plan
    from sparcets_paper.benchmark.store import format_row

    rows = run_plan(
        chosen,
        out,
        workers=workers,
        device=device,
        engine=engine,
        address=address,
        on_row=lambda row: typer.echo(format_row(row), err=True),
    )
    if json:
        print_json(rows)
    else:
        _print_rows(rows)
    if all("error" in row for row in rows):
        raise typer.Exit(1)


@app.command("show")
def show(
    folder: Annotated[Path, typer.Argument(help="Folder written by `sparcets benchmark run`.")],
    json: Json = False,
) -> None:
    """Show stored results: means and standard deviations over repetitions."""
    from sparcets_paper.benchmark.store import RESULTS, ResultStore, format_row

    if not (folder / RESULTS).is_file():
        raise FileFormatError(f"{folder} has no {RESULTS}. Give a folder written by `sparcets benchmark run`.")
    rows = ResultStore(folder / RESULTS).rows()
    if json:
        print_json(rows)
        return
    for row in rows:
        if "error" in row:
            typer.echo(format_row(row), err=True)
    _print_rows(rows)


@app.command("speed")
def speed(
    out: Annotated[
        Path | None, typer.Option("--out", help="File for the rows; default: results/speed-cpu.jsonl, or -cuda.")
    ] = None,
    part: Annotated[
        Many,
        typer.Option("--part", help="fitting, explaining, latency, memory or scaling; may be repeated; default: all."),
    ] = None,
    queries: Annotated[
        int, typer.Option(help="Queries explained from a memory map, for the part memory.", min=10)
    ] = 10_000,
    quick: Annotated[bool, typer.Option("--quick", help="Tiny sizes, only to check that it runs.")] = False,
    seed: Seed = 0,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Measure the speed of fitting and explaining on this machine, and of references in the same run."""
    from dataclasses import replace

    from sparcets.io.files import file_to_write
    from sparcets.training.device import resolve_device
    from sparcets_paper.benchmark.speed import COLUMNS as SPEED_COLUMNS
    from sparcets_paper.benchmark.speed import SpeedSizes, cells, run_speed

    file = out if out is not None else Path("results") / f"speed-{resolve_device(device).type}.jsonl"
    file_to_write(file)  # raises before anything is computed
    rows = run_speed(
        device=device,
        sizes=SpeedSizes.quick() if quick else replace(SpeedSizes(), stream=queries),
        parts=tuple(part or ()),
        out=file,
        seed=seed,
        on_row=lambda row: typer.echo("  ".join(cells(row)), err=True),
    )
    if json:
        print_json(rows)
        return
    print_table(SPEED_COLUMNS, [cells(row) for row in rows if row["part"] != "machine"])
    typer.echo(f"saved to {file}", err=True)
    if any("error" in row for row in rows):
        raise typer.Exit(1)


def _classifier_config(settings: Many, preset: str) -> dict[str, Any]:
    from sparcets.core.settings import ClassifierConfig

    config = ClassifierConfig.tiny() if preset == "tiny" else ClassifierConfig()
    chosen = config.override(*(settings or [])).to_dict()
    return {name: value for name, value in chosen.items() if value != ClassifierConfig().to_dict()[name]}


def _print_rows(rows: list[dict[str, Any]]) -> None:
    """Print one line per experiment, over its repetitions; settings that differ are in brackets after the name."""
    from sparcets_paper.benchmark.store import variant
    from sparcets_paper.table import number

    names: dict[tuple[str, ...], dict[tuple[str, ...], list[dict[str, Any]]]] = {}
    for row in rows:
        name = (row["experiment"], row["dataset"], row["classifier"], row["label"], row["target"] or "runner-up")
        names.setdefault(name, {}).setdefault(variant(row), []).append(row)
    first = 0 if any(row["experiment"] for row in rows) else 1
    lines = []
    for (*before, label, target), variants in names.items():
        common = set.intersection(*map(set, variants))
        for settings, group in variants.items():
            special = ", ".join(text for text in settings if text not in common)
            finished = [row for row in group if "error" not in row]
            measured = [[row["measures"].get(column) for row in finished] for column in COLUMNS]
            measured.append([row["fit_s"] + row["explain_s"] for row in finished])
            numbers = [number([value for value in values if value is not None]) for values in measured]
            failed = len(group) - len(finished)
            runs = f"{len(finished)}" + (f" + {failed} failed" if failed else "")
            lines.append([*before[first:], f"{label} [{special}]" if special else label, target, *numbers, runs])
    columns = ["experiment", "data", "classifier", "method", "target"][first:]
    print_table([*columns, *COLUMNS, "seconds", "runs"], lines)
    failures = sum("error" in row for row in rows)
    if failures:
        typer.echo(f"{failures} of {len(rows)} runs failed; repeat the run command to try them again", err=True)
