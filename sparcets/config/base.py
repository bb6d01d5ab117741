"""Config: a frozen, checked set of values that can be read from and written to plain dictionaries."""

from __future__ import annotations

import ast
import hashlib
import json
import types
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

from sparcets.errors import ConfigError
from sparcets.registry import did_you_mean

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True, kw_only=True, slots=True)
class Config:
    """Base of all configurations: defaults are our best recipe, every problem is reported at once."""

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        problems = [
            f"{f.name!r} must be {_describe(hints[f.name])}, got {getattr(self, f.name)!r}"
            for f in fields(self)
            if not _fits(getattr(self, f.name), hints[f.name])
        ]
        # Values of the wrong type would only confuse the checks of their size.
        problems = problems or self.problems()
        if problems:
            raise ConfigError(_list_problems(type(self).__name__, problems))

    def problems(self) -> list[str]:
        """Say in words what is wrong with the values; an empty list if nothing is."""
        return []

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return plain

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Build from :meth:`to_dict`'s output; unknown keys are an error."""
        names = [f.name for f in fields(cls)]
        unknown = [f"unknown key {k!r}{_hint(k, names)}" for k in data if k not in names]
        if unknown:
            raise ConfigError(_list_problems(cls.__name__, unknown))
        hints = get_type_hints(cls)
        return cls(**{k: _from_plain(v, hints[k]) for k, v in data.items()})

    def override(self, *settings: str) -> Self:
        """Return a copy with settings like ``"lr=1e-3"`` or ``"weights.sparsity=0.5"``, parsed by the field's type."""
        result = self
        for setting in settings:
            key, equals, text = setting.partition("=")
            if not equals:
                raise ConfigError(f"cannot read the setting {setting!r}: write it as key=value.")
            result = result._with(key.strip(), text.strip())
        return result

    def _with(self, key: str, text: str) -> Self:
        name, _, rest = key.partition(".")
        names = [f.name for f in fields(self)]
        if name not in names:
            raise ConfigError(_list_problems(type(self).__name__, [f"unknown key {name!r}{_hint(name, names)}"]))
        value = getattr(self, name)
        if rest:
            if not isinstance(value, Config):
                raise ConfigError(f"{name!r} of {type(self).__name__} has no parts, so {key!r} means nothing.")
            return replace(self, **{name: value._with(rest, text)})
        return replace(self, **{name: _parse(text, get_type_hints(type(self))[name])})

    @property
    def fingerprint(self) -> str:
        """Twelve letters that name this set of values."""
        text = json.dumps({"config": type(self).__name__, **self.to_dict()}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def _list_problems(owner: str, problems: list[str]) -> str:
    return f"{len(problems)} problem{'s' if len(problems) > 1 else ''} in {owner}: {'; '.join(problems)}."


def _hint(key: str, names: list[str]) -> str:
    close = did_you_mean(key, names).strip().rstrip("?")
    return f", {close[0].lower()}{close[1:]}?" if close else f" (known: {', '.join(names)})"


def _fits(value: Any, hint: Any) -> bool:
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(_fits(value, a) for a in args)
    if origin is Literal:
        return value in args
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(v, args[0]) for v in value)
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)


def _describe(hint: Any) -> str:
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(_describe(a) for a in args)
    if origin is Literal:
        return "one of " + ", ".join(repr(a) for a in args)
    if origin is tuple:
        return f"a tuple of {_describe(args[0])}"
    names = {int: "a whole number", float: "a number", bool: "True or False", str: "text", type(None): "None"}
    return names.get(hint, getattr(hint, "__name__", str(hint)))


def _from_plain(value: Any, hint: Any) -> Any:
    if get_origin(hint) is tuple and isinstance(value, list):
        return tuple(value)
    if is_dataclass(hint) and isinstance(hint, type) and issubclass(hint, Config) and isinstance(value, dict):
        return hint.from_dict(value)
    return value


def _parse(text: str, hint: Any) -> Any:
    if _fits(text, hint) and hint is str:
        return text
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        value = text
    if isinstance(value, list):
        value = tuple(value)
    return value
