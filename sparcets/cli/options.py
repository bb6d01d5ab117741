"""Options that several commands share, and functions that print results."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparcets.core.errors import ConfigError

if TYPE_CHECKING:
    from sparcets.core.constraints import Constraints
    from sparcets.core.info import SeriesInfo
    from sparcets.models.own_model import OwnModel


Seed = Annotated[int, typer.Option(help="Random seed.")]
Device = Annotated[str, typer.Option(help="Device of the networks: auto, cpu, cuda, cuda:1 or mps.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Engine = Annotated[
    str, typer.Option(help="Where the work is done: local (processes on this machine), or ray (a cluster).")
]
Address = Annotated[
    str | None,
    typer.Option(help="Address of the Ray cluster, host:port; default: that of this machine, or a new one on it."),
]
Workers = Annotated[
    int | None,
    typer.Option(help="Number of processes; default: 1, or with Ray one per GPU or core of the cluster.", min=1),
]
Data = Annotated[
    str, typer.Option("--dataset", "-d", help="Name of a data set, or path to a .npz, .csv, .parquet or .ts file.")
]
Many = list[str] | None


def repeated(about: str, *names: str) -> Any:
    """Return an option that may be given several times."""
    return typer.Option(*names, help=f"{about}; may be repeated.")


DataOptions = Annotated[
    Many,
    typer.Option(
        "--option", "-o", help="Option of the data set, as key=value; may be repeated; sparcets data info lists them."
    ),
]


def print_json(data: Any) -> None:
    """Print JSON on stdout."""
    typer.echo(json.dumps(data, indent=2, ensure_ascii=False))


def in_bytes(size: int) -> str:
    """Format a file size.

    >>> in_bytes(61_300), in_bytes(6_582_118)
    ('61 kB', '6.6 MB')
    """
    return f"{size / 1e3:.0f} kB" if size < 1e6 else f"{size / 1e6:.1f} MB"


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, title: str | None = None) -> None:
    """Print a table on stdout: formatted on a terminal, tab-separated otherwise."""
    import sys

    if not sys.stdout.isatty():
        for line in [columns, *rows]:
            typer.echo("\t".join(str(cell) for cell in line))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*columns, title=title, title_justify="left", box=None, pad_edge=False)
    for row in rows:  # as Text: brackets in names are no markup
        table.add_row(*(Text(str(cell), getattr(cell, "terminal_style", "")) for cell in row))
    Console().print(table)


def parse_options(settings: list[str] | None) -> dict[str, Any]:
    """Convert ``["split=subject", "n=3"]`` to keyword arguments; numbers, lists, true, false and none are parsed."""
    import ast

    words: dict[str, Any] = {"true": True, "false": False, "none": None}
    result: dict[str, Any] = {}
    for setting in settings or []:
        key, equals, text = setting.partition("=")
        if not equals:
            raise ConfigError(f"cannot read the option {setting!r}: write it as key=value.")
        try:
            result[key.strip()] = words.get(text.lower(), ast.literal_eval(text)) if text else ""
        except (SyntaxError, ValueError):
            result[key.strip()] = words.get(text.lower(), text.split(",") if "," in text else text)
    return result


class Options(SimpleNamespace):
    """The options of a command, by the names of its parameters: ``Options(**locals())``."""


def parse_constraints(asked: Options) -> Constraints:
    """Return the constraints of ``sparcets explain``."""
    from sparcets.core.constraints import Constraints

    try:
        return Constraints(
            immutable=[_feature(f) for f in asked.immutable or []],
            frozen=_frozen(asked.frozen or []),
            ranges={_feature(k): _ends(v, "LOW:HIGH", float, -inf, inf) for k, v in _pairs(asked.value_range)},
            max_step={_feature(k): float(v) for k, v in _pairs(asked.max_step)},
            direction={_feature(k): v for k, v in _pairs(asked.direction)},
            groups={k: [_feature(f) for f in v.split(",")] for k, v in _pairs(asked.group)},
            max_features=asked.max_features,
            integer=[_feature(f) for f in asked.integer or []],
            monotone={_feature(k): v for k, v in _pairs(asked.monotone)},
            fixed_sum=[tuple(_feature(f) for f in members.split(",")) for members in asked.fixed_sum or []],
        )
    except ValueError as error:
        raise ConfigError(f"invalid constraint: {error}. See sparcets explain --help.") from error


def _pairs(settings: Many) -> list[tuple[str, str]]:
    pairs = []
    for setting in settings or []:
        key, equals, value = setting.partition("=")
        if not equals:
            raise ValueError(f"{setting!r} is not FEATURE=VALUE")
        pairs.append((key, value))
    return pairs


def _frozen(texts: list[str]) -> Any:
    of_features = [text for text in texts if "=" in text]
    if of_features and len(of_features) < len(texts):
        raise ValueError("--frozen is START:STOP for all features or FEATURE=START:STOP, not both")
    if not of_features:
        return [_ends(text, "START:STOP", int) for text in texts]
    windows: dict[int | str, list[Any]] = {}
    for feature, text in _pairs(texts):
        windows.setdefault(_feature(feature), []).append(_ends(text, "START:STOP", int))
    return windows


def _ends(text: str, form: str, convert: Callable[[str], Any], low: Any = None, high: Any = None) -> tuple[Any, Any]:
    """Return the ends of an interval; one that is left out is ``low`` or ``high``."""
    start, colon, stop = text.partition(":")
    if not colon:
        raise ValueError(f"{text!r} is not {form}")
    return convert(start) if start else low, convert(stop) if stop else high


def _feature(text: str) -> int | str:
    return int(text) if text.isdigit() else text


Target = Annotated[
    str | None, typer.Option("--target", "-t", help="Target class; default: the runner-up of each query.")
]
Excluded = Annotated[str | None, typer.Option("--not", help="Instead of a target: any class but this one.")]
Confidence = Annotated[float | None, typer.Option(help="Least probability of the target that counts as reached.")]
AtLeast = Annotated[float | None, typer.Option(help="For a model of numbers: the least that counts as reached.")]
AtMost = Annotated[float | None, typer.Option(help="For a model of numbers: the most that counts as reached.")]
Between = Annotated[str | None, typer.Option(help="For a model of numbers: the range, as LOW:HIGH.")]
Change = Annotated[
    float | None,
    typer.Option(help="For a model of numbers: at least so much more than now; if negative, less."),
]
Of = Annotated[str | None, typer.Option(help="Name or index of the number that is asked for; default: all of them.")]


TARGETS = ("target", "excluded", "at_least", "at_most", "between", "change")


def parse_target(asked: Options, info: SeriesInfo) -> Any:
    """Return what ``explain`` is asked for, of a fit to classes or to numbers."""
    from sparcets.core import target as targets

    given: dict[Any, Any] = {name: value for name in TARGETS if (value := getattr(asked, name)) is not None}
    named = ["--not" if name == "excluded" else f"--{name.replace('_', '-')}" for name in given]
    kind, value = next(iter(given.items()), (None, ""))
    of = asked.of
    if len(given) > 1:
        raise ConfigError(f"give {' or '.join(named)}, not both.")
    if not info.is_regression:
        if of is not None or kind not in (None, "target", "excluded"):
            raise ConfigError(
                f"{named[0] if of is None else '--of'} is for a model that predicts numbers; this one predicts the "
                f"classes {', '.join(info.class_names)}. Give --target or --not."
            )
        if kind is None:
            return None
        wanted = targets.name_or_index(value, info.class_names)
        return targets.Not(wanted) if kind == "excluded" else wanted
    if kind in (None, "target", "excluded"):
        said = f"it has no classes for {named[0]}" if named else "say where they have to lie"
        raise ConfigError(
            f"the model predicts {info.predicts}: {said}. Give --at-least 30, --at-most 30, --between 20:30 or "
            "--change -5."
        )
    output = None if of is None else targets.name_or_index(of, info.numbers.names)
    if kind == "between":
        try:
            low, high = map(float, value.split(":"))
        except ValueError:
            raise ConfigError(f"--between must be two numbers, as LOW:HIGH, got {value!r}.") from None
        return targets.Between(low, high, output=output)
    kinds: dict[Any, Any] = {"at_least": targets.AtLeast, "at_most": targets.AtMost, "change": targets.Change}
    return kinds[kind](value, output=output)


Model = Annotated[
    str | None,
    typer.Option(
        help="Your own model: an .onnx file, or FILE.py:FUNCTION. The Python file is run; its function takes nothing "
        "and returns anything that sp.wrap takes.",
    ),
]
NamedAgain = Annotated[
    str | None,
    typer.Option(
        "--model",
        help="FILE.py:FUNCTION, if the folder was fitted to such a model of your own. The file must be that of the "
        "fit; it is run, and never without being named here.",
    ),
]
Output = Annotated[
    str | None,
    typer.Option(
        help="What your own model returns: logits, probabilities or sigmoid; the key or index of a part of it; or "
        "both, as logits:KEY.",
    ),
]
Layout = Annotated[
    str | None,
    typer.Option(
        help="How your own model wants its series: btf (batch, time, features), bft, or flat (batch, time * features).",
    ),
]
Classes = Annotated[str | None, typer.Option(help="Names of your own model's classes in its order, as NAME,NAME,….")]


def own_model(model: str | None, output: str | None, layout: str | None, classes: str | None) -> OwnModel | None:
    """Return the model that the options name, or None; raise if its file is not there or is not read."""
    given = {"--output": output, "--layout": layout, "--classes": classes}
    if model is None:
        if alone := [name for name, value in given.items() if value is not None]:
            raise ConfigError(f"{alone[0]} is for a model of your own: give --model too.")
        return None
    from sparcets.models.own_model import OwnModel

    names = None if classes is None else tuple(name.strip() for name in classes.split(","))
    return OwnModel(source=model, output=output, layout=layout, class_names=names)


def check_named(folder: Path, model: str | None, *command: object) -> None:
    """Raise, with the command to type, if a fit needs a Python file that the user has not named by --model."""
    from sparcets.io.folders import inside
    from sparcets.methods.folder import CLASSIFIER
    from sparcets.models import own_model

    own_model.check_named(inside(folder, CLASSIFIER), model, shlex.join(["sparcets", *map(str, command)]))
