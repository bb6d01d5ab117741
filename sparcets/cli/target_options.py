"""The question of ``sparcets explain``: a class, any class but one, or where a number has to lie."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparcets.errors import ConfigError

if TYPE_CHECKING:
    from sparcets.explanation.outcome import Outcome

Target = Annotated[
    str | None, typer.Option("--target", "-t", help="Target class; default: the runner-up of each query.")
]
Excluded = Annotated[str | None, typer.Option("--not", help="Instead of a target: any class but this one.")]
Confidence = Annotated[float | None, typer.Option(help="Least probability of the target that counts as reached.")]
AtLeast = Annotated[
    float | None, typer.Option("--at-least", help="For a model of numbers: the least that counts as reached.")
]
AtMost = Annotated[
    float | None, typer.Option("--at-most", help="For a model of numbers: the most that counts as reached.")
]
Between = Annotated[str | None, typer.Option("--between", help="For a model of numbers: the range, as LOW:HIGH.")]
Change = Annotated[
    float | None,
    typer.Option("--change", help="For a model of numbers: at least so much more than now; if negative, less."),
]
Of = Annotated[
    str | None, typer.Option("--of", help="Name or index of the number that is asked for; default: all of them.")
]


def parse_target(
    *,
    target: str | None,
    excluded: str | None,
    at_least: float | None,
    at_most: float | None,
    between: str | None,
    change: float | None,
    of: str | None,
    class_names: tuple[str, ...],
    outcome: Outcome | None,
) -> Any:
    """Return what ``explain`` is asked for.

    Parameters
    ----------
    target, excluded, at_least, at_most, between, change, of
        The options, None where they were not given.
    class_names, outcome
        The classes of the fit, and None; or none, and what the model's numbers are.
    """
    from sparcets import targets

    options: dict[str, Any] = {"--target": target, "--not": excluded}
    options |= {"--at-least": at_least, "--at-most": at_most, "--between": between, "--change": change}
    given = [name for name, value in options.items() if value is not None]
    if len(given) > 1:
        raise ConfigError(f"give {' or '.join(given)}, not both.")
    about_classes = target is not None or excluded is not None
    if outcome is not None and (about_classes or not given):
        said = f"it has no classes for {given[0]}" if given else "say where they have to lie"
        raise ConfigError(
            f"the model predicts {outcome.summary()}: {said}. Give --at-least 30, --at-most 30, --between 20:30 or "
            "--change -5."
        )
    if outcome is None and (of is not None or (given and not about_classes)):
        raise ConfigError(
            f"{given[0] if of is None else '--of'} is for a model that predicts numbers; this one predicts the classes "
            f"{', '.join(class_names)}. Give --target or --not."
        )
    output = None if of is None or outcome is None else targets.name_or_index(of, outcome.names)
    if at_least is not None:
        return targets.AtLeast(at_least, output=output)
    if at_most is not None:
        return targets.AtMost(at_most, output=output)
    if between is not None:
        return targets.Between(*_interval(between), output=output)
    if change is not None:
        return targets.Change(change, output=output)
    if excluded is not None:
        return targets.Not(targets.name_or_index(excluded, class_names))
    return None if target is None else targets.name_or_index(target, class_names)


def _interval(text: str) -> tuple[float, float]:
    low, colon, high = text.partition(":")
    try:
        if colon:
            return float(low), float(high)
    except ValueError:
        pass
    raise ConfigError(f"--between must be two numbers, as LOW:HIGH, got {text!r}.")
