"""``sparcets benchmark``: measure methods on data sets, and show what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sparcets.cli.options import DataOptions, Device, Json, Seed, parse_options, print_json, print_table
from sparcets.errors import ConfigError, FileFormatError

app = typer.Typer(help="Measure methods on data sets; resumable at any point.", no_args_is_help=True)

# In every table: the paper's measures, and beside them whether the answers are true.
COLUMNS = ("valid", "transfer", "oracle", "universality", "similarity", "sparsity", "smoothness", "knn_ratio")
Many = list[str] | None


@app.command("run")
def run(
    context: typer.Context,
    out: Annotated[Path, typer.Option("--out", help="Folder for the results; what is there already is not run again.")],
    dataset: Annotated[
        Many, typer.Option("--dataset", "-d", help="Name of a data set, or path to a file; repeat it for more.")
    ] = None,
    method: Annotated[
        Many, typer.Option("--method", "-m", help="Explainer, or peer like cfts:comte; repeat it for more.")
    ] = None,
    classifier: Annotated[
        Many, typer.Option("--classifier", "-c", help="Architecture that is explained; repeat it for more.")
    ] = None,
    target: Annotated[
        Many, typer.Option("--target", "-t", help="Wanted class; default: the runner-up of each query.")
    ] = None,
    plan: Annotated[
        Path | None, typer.Option("--plan", help="Plan file (JSON) instead of all options that say what to measure.")
    ] = None,
    preset: Annotated[str, typer.Option(help="Settings to start from: default, paper or tiny.")] = "default",
    setting: Annotated[
        Many,
        typer.Option(
            "--set", help="Setting of the explainers, as key=value, or of one alone, as method:key=value; repeat it."
        ),
    ] = None,
    classifier_setting: Annotated[
        Many, typer.Option("--set-classifier", help="Setting of the classifiers, as key=value.")
    ] = None,
    option: DataOptions = None,
    sparsity: Annotated[
        float | None, typer.Option(help="Largest share of entries that an answer may change.", min=0.0, max=1.0)
    ] = None,
    seed_count: Annotated[int, typer.Option(help="Repetitions, each with the next seed.", min=1)] = 1,
    queries: Annotated[int | None, typer.Option(help="Explain at most so many test series.", min=1)] = None,
    seconds_per_query: Annotated[float | None, typer.Option(help="Time a peer may spend on a query.")] = None,
    keep: Annotated[int, typer.Option(help="Keep so many answers of each run as an explanation.", min=0)] = 0,
    curve: Annotated[
        bool, typer.Option("--curve", help="Store ROC curves where the salient entries are known.")
    ] = False,
    stability: Annotated[
        bool, typer.Option("--stability", help="Also explain again with noise, seeds, models.")
    ] = False,
    workers: Annotated[int, typer.Option(help="Processes side by side.", min=1)] = 1,
    seed: Seed = 0,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Measure every method on every data set; stop it at any time, and start it again to go on.

    What failed, and what was measured on a file that has changed since, is run again too.
    """
    from sparcets.benchmark.plan import Plan, check_plan
    from sparcets.storage import read_json

    if plan is None:
        if not dataset:
            raise ConfigError("say what to measure: --dataset NAME (and --method), or --plan FILE.")
        common: dict[str, Any] = {
            "options": parse_options(option),
            "classifier_config": _classifier_config(classifier_setting, preset),
            "preset": preset,
            "settings": setting or (),
            "sparsity": sparsity,
            "queries": queries,
            "seconds_per_query": seconds_per_query,
            "keep": keep,
            "curve": curve,
            "stability": stability,
        }
        seeds = range(seed, seed + seed_count)
        methods, targets = method or ["sparce"], target or (None,)
        wanted = Plan.grid(dataset, classifier or ["bilstm"], methods, seeds, targets, **common)
    else:
        beside = _given(context, but=("out", "plan", "workers", "device", "json"))
        if beside:
            raise ConfigError(f"--plan says all of what is measured: leave {', '.join(beside)} out.")
        wanted = Plan.from_dict(read_json(plan, "a plan file"))
    check_plan(wanted)  # a mistyped name would be an error of every cell

    from sparcets.benchmark.runner import run_plan
    from sparcets.benchmark.store import brief

    rows = run_plan(
        wanted,
        out,
        workers=workers,
        device=device,
        on_row=lambda row: typer.echo(brief(row), err=True),
    )
    if json:
        print_json(rows)
    else:
        _print_rows(rows)
    if all("error" in row for row in rows):
        raise typer.Exit(1)


@app.command("show")
def show(
    folder: Annotated[Path, typer.Argument(help="Folder that `sparcets benchmark run` wrote.")],
    json: Json = False,
) -> None:
    """Show what was measured: means over repetitions, with their standard deviations."""
    from sparcets.benchmark.store import RESULTS, ResultStore, brief

    if not (folder / RESULTS).is_file():
        raise FileFormatError(f"{folder} holds no {RESULTS}: give a folder that `sparcets benchmark run` wrote.")
    rows = ResultStore(folder / RESULTS).rows()
    if json:
        print_json(rows)
        return
    for row in rows:
        if "error" in row:
            typer.echo(brief(row), err=True)
    _print_rows(rows)


@app.command("speed")
def speed(
    out: Annotated[
        Path | None, typer.Option("--out", help="File for the rows; default: results/speed-cpu.jsonl, or -cuda.")
    ] = None,
    part: Annotated[
        Many,
        typer.Option(
            "--part", help="training, fitting, explaining, latency, memory or scaling; repeat it; default: all."
        ),
    ] = None,
    queries: Annotated[int, typer.Option(help="Explained from a memory map, for the part memory.", min=10)] = 10_000,
    quick: Annotated[bool, typer.Option("--quick", help="Tiny sizes: only to see whether it runs.")] = False,
    seed: Seed = 0,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Measure how fast training and explaining are on this machine, beside references measured in the same run."""
    from dataclasses import replace

    from sparcets.benchmark.speed import run_speed
    from sparcets.benchmark.speed_setting import Sizes
    from sparcets.benchmark.speed_table import COLUMNS as SPEED_COLUMNS
    from sparcets.benchmark.speed_table import cells
    from sparcets.training.device import resolve_device

    place = out if out is not None else Path("results") / f"speed-{resolve_device(device).type}.jsonl"
    rows = run_speed(
        device=device,
        sizes=Sizes.quick() if quick else replace(Sizes(), stream=queries),
        parts=tuple(part or ()),
        out=place,
        seed=seed,
        on_row=lambda row: typer.echo("  ".join(cells(row)), err=True),
    )
    if json:
        print_json(rows)
        return
    print_table(SPEED_COLUMNS, [cells(row) for row in rows if row["part"] != "machine"])
    typer.echo(f"saved to {place}", err=True)
    if any("error" in row for row in rows):
        raise typer.Exit(1)


def _classifier_config(settings: Many, preset: str) -> dict[str, Any]:
    from sparcets.config.models import ClassifierConfig

    config = ClassifierConfig.tiny() if preset == "tiny" else ClassifierConfig()
    chosen = config.override(*(settings or [])).to_dict()
    return {name: value for name, value in chosen.items() if value != ClassifierConfig().to_dict()[name]}


def _given(context: typer.Context, but: tuple[str, ...]) -> list[str]:
    """Return the options that were typed, less some."""
    names = {parameter.name: parameter.opts[0] for parameter in context.command.params if parameter.name not in but}
    sources = {option: context.get_parameter_source(name) for name, option in names.items() if name}
    return [option for option, source in sources.items() if source is not None and source.name == "COMMANDLINE"]


def _print_rows(rows: list[dict[str, Any]]) -> None:
    """Print one line per measurement, over its repetitions; what tells apart those of one name is in brackets."""
    from sparcets.benchmark.store import variant
    from sparcets.report.tables import number

    names: dict[tuple[str, ...], dict[tuple[str, ...], list[dict[str, Any]]]] = {}
    for row in rows:
        name = (row["experiment"], row["dataset"], row["classifier"], row["label"], row["target"] or "runner-up")
        names.setdefault(name, {}).setdefault(variant(row), []).append(row)
    first = 0 if any(row["experiment"] for row in rows) else 1
    lines = []
    for (*before, label, target), variants in names.items():
        common = set.intersection(*map(set, variants))
        for told, group in variants.items():
            special = ", ".join(text for text in told if text not in common)
            fine = [row for row in group if "error" not in row]
            measured = [[row["measures"].get(column) for row in fine] for column in COLUMNS]
            measured.append([row["fit_s"] + row["explain_s"] for row in fine])
            numbers = [number([value for value in values if value is not None]) for values in measured]
            failed = len(group) - len(fine)
            runs = f"{len(fine)}" + (f" + {failed} failed" if failed else "")
            lines.append([*before[first:], f"{label} [{special}]" if special else label, target, *numbers, runs])
    columns = ["experiment", "data", "classifier", "method", "target"][first:]
    print_table([*columns, *COLUMNS, "seconds", "runs"], lines)
    failures = sum("error" in row for row in rows)
    if failures:
        typer.echo(f"{failures} of {len(rows)} runs failed; the same run command tries them once more", err=True)
