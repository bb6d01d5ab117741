"""``sparcets explain``: counterfactuals for some series, by what ``sparcets fit`` saved."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparcets.cli.fit import RUN
from sparcets.cli.options import Device, Json, print_json, print_table
from sparcets.errors import ConfigError, FeatureMismatchError, FileFormatError

if TYPE_CHECKING:
    from sparcets.constraints import Constraints
    from sparcets.explanation import Explanation

Many = list[str] | None
TOLD = 3  # answers told in words on the terminal


def explain(
    model: Annotated[Path, typer.Argument(help="Folder that `sparcets fit` wrote.")],
    target: Annotated[str | None, typer.Option("--target", "-t", help="Wanted class; default: the runner-up.")] = None,
    rows: Annotated[str, typer.Option(help="Test series to explain: 7, 0:10 or 1,4,9.")] = "0:10",
    dataset: Annotated[str | None, typer.Option("--dataset", "-d", help="Other data than it was fitted on.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="File to save the explanation to (.npz).")] = None,
    plots: Annotated[Path | None, typer.Option("--plots", help="Folder for a picture of each answer.")] = None,
    sparsity: Annotated[float | None, typer.Option(help="Largest share of entries that may change.")] = None,
    n: Annotated[int, typer.Option("-n", help="Answers per query.")] = 1,
    immutable: Annotated[Many, typer.Option(help="Feature that stays as it is; repeat it for more.")] = None,
    frozen: Annotated[Many, typer.Option(help="Steps that stay as they are, as START:STOP.")] = None,
    value_range: Annotated[Many, typer.Option("--range", help="FEATURE=LOWEST:HIGHEST.")] = None,
    max_step: Annotated[Many, typer.Option(help="FEATURE=LARGEST change per step.")] = None,
    direction: Annotated[Many, typer.Option(help="FEATURE=up or FEATURE=down.")] = None,
    group: Annotated[Many, typer.Option(help="NAME=FEATURE,FEATURE,… that change together.")] = None,
    seed: Annotated[int | None, typer.Option(help="Default: the seed it was fitted with.")] = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Say what would have to be different in test series for the classifier to say something else."""
    import numpy as np

    from sparcets.classifiers.torch_classifier import load_classifier
    from sparcets.datasets.load import load_dataset
    from sparcets.explainers.load import load
    from sparcets.storage import read_json

    run = read_json(model / RUN, "a folder that `sparcets fit` wrote")
    try:
        name, options = (dataset, {}) if dataset else (run["dataset"], run["dataset_options"])
    except KeyError as error:
        raise FileFormatError(f"{model / RUN} lacks {error}; fit again.") from error
    constraints = _constraints(immutable, frozen, value_range, max_step, direction, group)
    explainer = load(model / "explainer", classifier=load_classifier(model / "classifier", device=device))
    if seed is not None:
        explainer.config = explainer.config.override(f"seed={seed}")
    data = load_dataset(name, **options)
    columns = _columns(data.feature_names, explainer.feature_names)
    chosen = _rows(rows, len(data.X_test))
    wanted: Any = int(target) if target is not None and target.isdigit() and target not in data.class_names else target
    answer = explainer.explain(
        data.X_test[chosen][:, :, columns],
        wanted,
        constraints=constraints,
        sparsity=sparsity,
        n=n,
        lengths=None if data.lengths_test is None else data.lengths_test[chosen],
    )
    if out is not None:
        answer.save(out)
    if plots is not None:
        save_pictures(answer, plots)
    series = np.asarray(chosen)[answer.query_index]
    if json:
        print_json([_as_dict(answer, i, int(series[i])) for i in range(len(answer))])
        return
    print_answers(answer, series)
    told = [i for i in range(len(answer)) if answer.status[i] != "unchanged"]
    for i in told[:TOLD]:
        typer.echo(f"\nseries {series[i]}: {answer.text(i)}")
    if len(told) > TOLD:
        typer.echo(f"\n… and {len(told) - TOLD} more; --json has the words of all")
    if out is not None:
        typer.echo(f"\nsaved to {out}")


def print_answers(answer: Explanation, series: Any) -> None:
    """Print one line per answer."""
    names = answer.class_names
    lines = [
        (
            int(series[i]),
            names[int(answer.predicted[i])],
            names[int(answer.target[i])],
            answer.status[i],
            f"{float(answer.probability[i]):.2f}",
            f"{100 * float(answer.share_changed[i]):.0f} %",
        )
        for i in range(len(answer))
    ]
    print_table(["series", "predicted", "target", "status", "p(target)", "changed"], lines)


def save_pictures(answer: Explanation, folder: Path) -> list[Path]:
    """Draw every answer into a folder; return the files."""
    from sparcets.storage import atomic_path

    files = []
    for i in range(len(answer)):
        file = folder / f"answer-{i:03d}.png"
        with atomic_path(file) as temporary:
            answer.plot(i).savefig(temporary)
        files.append(file)
    return files


def _as_dict(answer: Explanation, i: int, series: int) -> dict[str, Any]:
    return {
        "series": series,
        "predicted": answer.class_names[int(answer.predicted[i])],
        "target": answer.class_names[int(answer.target[i])],
        "status": str(answer.status[i]),
        "valid": bool(answer.valid[i]),
        "probability": float(answer.probability[i]),
        "share_changed": float(answer.share_changed[i]),
        "reason": str(answer.reason[i]),
        "text": answer.text(i),
    }


def _rows(text: str, n: int) -> list[int]:
    try:
        if ":" in text:
            start, stop = (int(v) if v else None for v in text.split(":"))
            rows = list(range(n))[slice(start, stop)]
        else:
            rows = [int(v) for v in text.split(",")]
    except ValueError as error:
        raise ConfigError(f"cannot read --rows {text!r}: write 7, 0:10 or 1,4,9.") from error
    if not rows or min(rows) < 0 or max(rows) >= n:
        raise ConfigError(f"--rows {text} names series that are not there: the test part has {n}, 0 to {n - 1}.")
    return rows


def _columns(names: tuple[str, ...] | None, fitted: tuple[str, ...]) -> Any:
    """Return the features in the order of the fit: matched by name, where the data have names."""
    if names is None or names == fitted:
        return slice(None)
    if sorted(names) != sorted(fitted):
        raise FeatureMismatchError(
            f"the data have the features {', '.join(names)}; the explainer was fitted on {', '.join(fitted)}."
        )
    return [names.index(name) for name in fitted]


def _constraints(
    immutable: Many, frozen: Many, value_range: Many, max_step: Many, direction: Many, group: Many
) -> Constraints:
    from sparcets.constraints import Constraints

    try:
        return Constraints(
            immutable=[_feature(f) for f in immutable or []],
            frozen=[_window(w) for w in frozen or []],
            ranges={_feature(k): _interval(v) for k, v in _pairs(value_range)},
            max_step={_feature(k): float(v) for k, v in _pairs(max_step)},
            direction={_feature(k): v for k, v in _pairs(direction)},
            groups={k: [_feature(f) for f in v.split(",")] for k, v in _pairs(group)},
        )
    except ValueError as error:
        raise ConfigError(f"cannot read a constraint: {error}. See sparcets explain --help for the forms.") from error


def _pairs(settings: Many) -> list[tuple[str, str]]:
    pairs = []
    for setting in settings or []:
        key, equals, value = setting.partition("=")
        if not equals:
            raise ValueError(f"{setting!r} is not FEATURE=VALUE")
        pairs.append((key, value))
    return pairs


def _window(text: str) -> tuple[int, int]:
    start, colon, stop = text.partition(":")
    if not colon:
        raise ValueError(f"--frozen {text!r} is not START:STOP")
    return int(start), int(stop)


def _interval(text: str) -> tuple[float, float]:
    low, colon, high = text.partition(":")
    if not colon:
        raise ValueError(f"--range {text!r} is not LOWEST:HIGHEST")
    return float(low), float(high)


def _feature(text: str) -> int | str:
    return int(text) if text.isdigit() else text
