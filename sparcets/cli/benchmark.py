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
        Path | None, typer.Option("--plan", help="Plan file (JSON) instead of --dataset, --method and the like.")
    ] = None,
    preset: Annotated[str, typer.Option(help="Settings to start from: default, paper or tiny.")] = "default",
    setting: Annotated[Many, typer.Option("--set", help="Setting of the explainers, as key=value.")] = None,
    classifier_setting: Annotated[
        Many, typer.Option("--set-classifier", help="Setting of the classifiers, as key=value.")
    ] = None,
    option: DataOptions = None,
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
    retry_errors: Annotated[bool, typer.Option("--retry-errors", help="Run again what ended in an error.")] = False,
    seed: Seed = 0,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Measure every method on every data set; stop it at any time, and start it again to go on."""
    from sparcets.benchmark.plan import Plan
    from sparcets.storage import read_json

    if plan is None:
        if not dataset:
            raise ConfigError("say what to measure: --dataset NAME (and --method), or --plan FILE.")
        common = {
            "options": parse_options(option),
            "classifier_config": _classifier_config(classifier_setting, preset),
            "preset": preset,
            "settings": tuple(setting or ()),
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
        if dataset or method or classifier or target:
            raise ConfigError("--plan says what is measured: leave --dataset, --method, --classifier and --target out.")
        wanted = Plan.from_dict(read_json(plan, "a plan file"))
    _check_names(wanted)

    from sparcets.benchmark.runner import run_plan
    from sparcets.benchmark.store import brief

    rows = run_plan(
        wanted,
        out,
        workers=workers,
        device=device,
        retry_errors=retry_errors,
        on_row=lambda row: typer.echo(brief(row), err=True),
    )
    if json:
        print_json(rows)
    else:
        _print_rows(rows)


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


def _classifier_config(settings: Many, preset: str) -> dict[str, Any]:
    from sparcets.config.models import ClassifierConfig

    config = ClassifierConfig.tiny() if preset == "tiny" else ClassifierConfig()
    chosen = config.override(*(settings or [])).to_dict()
    return {name: value for name, value in chosen.items() if value != ClassifierConfig().to_dict()[name]}


def _check_names(plan: Any) -> None:
    """Tell a mistyped name now; in a run it would be an error of every cell."""
    from sparcets.benchmark.plan import registry_of
    from sparcets.networks import ARCHITECTURES

    for cell in plan.cells:
        registry_of(cell.method).location(cell.method)
        ARCHITECTURES.location(cell.classifier)


def _print_rows(rows: list[dict[str, Any]]) -> None:
    """Print one line per run, over its repetitions."""
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        name = (row["experiment"], row["dataset"], row["classifier"], row["label"], row["target"] or "runner-up")
        groups.setdefault(name, []).append(row)
    experiments = any(row["experiment"] for row in rows)
    lines = []
    for run_name, group in groups.items():
        fine = [row for row in group if "error" not in row]
        numbers = [_number([row["measures"].get(column) for row in fine]) for column in COLUMNS]
        seconds = _number([row["fit_s"] + row["explain_s"] for row in fine])
        failed = len(group) - len(fine)
        runs = f"{len(fine)}" + (f" + {failed} failed" if failed else "")
        lines.append([*run_name[0 if experiments else 1 :], *numbers, seconds, runs])
    names = ["experiment", "data", "classifier", "method", "target"][0 if experiments else 1 :]
    print_table([*names, *COLUMNS, "seconds", "runs"], lines)
    failures = sum("error" in row for row in rows)
    if failures:
        typer.echo(f"{failures} of {len(rows)} runs failed; run again with --retry-errors to try once more", err=True)


def _number(values: list[float | None]) -> str:
    """Return mean ± standard deviation, as far as there are numbers."""
    from statistics import fmean, stdev

    known = [value for value in values if value is not None]
    if not known:
        return "–"
    return f"{fmean(known):.3f}" + (f" ± {stdev(known):.3f}" if len(known) > 1 else "")
