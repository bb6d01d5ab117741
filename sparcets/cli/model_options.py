"""Options for a model of the user's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sparcets.errors import ConfigError

if TYPE_CHECKING:
    from sparcets.classifiers.own_model import OwnModel

Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        help="Your own model: an .onnx file, or FILE.py:FUNCTION. The Python file is run; its function takes nothing "
        "and returns anything that sp.wrap takes.",
    ),
]
Output = Annotated[
    str | None,
    typer.Option(
        "--output",
        help="What your own model returns: logits, probabilities or sigmoid; the key or index of a part of it; or "
        "both, as logits:KEY.",
    ),
]
Layout = Annotated[
    str | None,
    typer.Option(
        "--layout",
        help="How your own model wants its series: btf (batch, time, features), bft, or flat (batch, time * features).",
    ),
]
Classes = Annotated[
    str | None, typer.Option("--classes", help="Names of your own model's classes in its order, as NAME,NAME,….")
]


def own_model(model: str | None, output: str | None, layout: str | None, classes: str | None) -> OwnModel | None:
    """Return the model that the options name, or None; raise if its file is not there or is not read."""
    given = {"--output": output, "--layout": layout, "--classes": classes}
    if model is None:
        if alone := [name for name, value in given.items() if value is not None]:
            raise ConfigError(f"{alone[0]} is for a model of your own: give --model too.")
        return None
    from sparcets.classifiers.own_model import OwnModel

    names = None if classes is None else tuple(name.strip() for name in classes.split(","))
    return OwnModel(source=model, output=output, layout=layout, class_names=names)
