"""Config, a frozen and checked set of values, and Record, a header of a file; both convert to plain dictionaries."""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
import math
import numbers
import types
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import MISSING, Field, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from sparcets.core.errors import ConfigError, quoted
from sparcets.core.registry import did_you_mean

if TYPE_CHECKING:
    from typing_extensions import Self

LIMITS: dict[str, Callable[[float], bool]] = {
    ">= 1": lambda value: value >= 1,
    ">= 10": lambda value: value >= 10,
    ">= 0": lambda value: value >= 0,
    "> 0": lambda value: value > 0,
    "in [0, 1)": lambda value: 0 <= value < 1,
    "between 0 and 1": lambda value: 0 < value < 1,
}

_WORDS = {"true": True, "false": False, "none": None, "null": None}


class SignatureOfInit:
    """Gives a class the signature of its ``__init__``."""

    def __get__(self, instance: object, owner: type) -> inspect.Signature:
        _, *others = inspect.signature(owner.__init__).parameters.values()  # type: ignore[misc]
        return inspect.Signature(others)


@dataclass(frozen=True, kw_only=True, slots=True)
class Config:
    """Base of all configurations: defaults are the best settings known, all problems are reported at once.

    Examples
    --------
    >>> import sparcets as sp
    >>> config = sp.NearestConfig(candidates=10)
    >>> config == sp.NearestConfig.from_dict(config.to_dict()), len(config.fingerprint)
    (True, 12)
    """

    limits: ClassVar[dict[str, str]] = {}  # field name to a key of LIMITS; "or None" allows None too
    __signature__ = SignatureOfInit()  # __new__ takes anything

    def __new__(cls, *args: Any, **values: Any) -> Self:
        """Report unknown settings like other problems; a dataclass would raise a TypeError naming only one of them."""
        known = [f.name for f in fields(cls)]
        by_name = ", ".join(f"{name}=…" for name in known)
        problems = [f"settings are given by name ({by_name}), got {quoted(args[0])}"] if args else []
        problems += [_unknown(name, cls) for name in values if name not in known]
        _raise_all(cls.__name__, problems)
        return object.__new__(cls)

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        problems = []
        for field in fields(self):
            value, hint = getattr(self, field.name), hints[field.name]
            try:
                object.__setattr__(self, field.name, declared(value, hint))
            except TypeError:
                problems.append(f"{field.name!r} must be {_describe(hint)}, got {quoted(value)}")
        # Values of the wrong type are not checked further.
        _raise_all(type(self).__name__, problems or self.problems())

    def problems(self) -> list[str]:
        """Return descriptions of what is wrong with the values; empty if they are valid."""
        found = []
        for name in (field.name for field in fields(self) if field.name in self.limits):
            value, limit = getattr(self, name), self.limits[name]
            if value is not None and not LIMITS[limit.removesuffix(" or None")](value):
                found.append(f"{name!r} must be {limit}, got {value}")
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {f.name: _plain(getattr(self, f.name)) for f in fields(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Build from :meth:`to_dict`'s output; unknown keys are an error."""
        if not isinstance(data, Mapping):
            raise ConfigError(f"{cls.__name__} is read from a dictionary, got {quoted(data)}.")
        hints = {f.name: get_type_hints(cls)[f.name] for f in fields(cls)}
        problems = [_unknown(key, cls) for key in data if key not in hints]
        values = {}
        for key in [name for name in hints if name in data]:
            try:
                values[key] = declared(data[key], hints[key], plain=True)
            except TypeError:
                values[key] = data[key]  # reported with the other problems of the values
            except ConfigError as error:
                problems += _inside(key, error)
        return _build(cls, values, problems)

    def override(self, *settings: str) -> Self:
        """Return a copy with settings like ``"lr=1e-3"`` or ``"weights.sparsity=0.5"``, parsed by the field's type."""
        hints = get_type_hints(type(self))
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        names = list(values)
        problems: list[str] = []
        parts: dict[str, list[str]] = {}
        for setting in settings:
            key, equals, text = setting.partition("=") if isinstance(setting, str) else ("", "", "")
            name, dot, rest = key.strip().partition(".")
            if not equals:
                problems.append(f"cannot read the setting {quoted(setting)}: write it as key=value")
            elif name not in names:
                problems.append(_unknown(name, type(self)))
            elif not dot:
                values[name] = _parse(text.strip(), hints[name])
            elif isinstance(values[name], Config):
                parts.setdefault(name, []).append(f"{rest}={text}")
            else:
                problems.append(f"{name!r} has no parts, so {key.strip()!r} means nothing")
        for name, of_part in parts.items():
            try:
                values[name] = values[name].override(*of_part)
            except ConfigError as error:
                problems += _inside(name, error)
        return _build(type(self), values, problems)

    @property
    def fingerprint(self) -> str:
        """Twelve-character hash of the settings."""
        text = json.dumps({"config": type(self).__name__, **self.to_dict()}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]


C = TypeVar("C", bound=Config)


def _build(cls: type[C], values: dict[str, Any], problems: list[str]) -> C:
    """Build the config; raise with the given ``problems`` and those of its values together."""
    try:
        result = cls(**values)
    except ConfigError as error:
        problems = [*error.problems, *problems]
    _raise_all(cls.__name__, problems)
    return result


def _raise_all(owner: str, problems: list[str]) -> None:
    if problems:
        plural = "s" if len(problems) > 1 else ""
        text = "; ".join(problems)
        error = ConfigError(f"{len(problems)} problem{plural} in {owner}: {text}.")
        error.problems = tuple(problems)
        raise error


def _inside(name: str, error: ConfigError) -> list[str]:
    return [f"in {name!r}: {problem}" for problem in error.problems or [str(error).rstrip(".")]]


def _unknown(key: object, cls: type[Config]) -> str:
    """Return a message for an unknown setting: similar names (also in nested configs), and all settings."""
    hints = get_type_hints(cls)
    names = [f.name for f in fields(cls)]
    parts = [name for name in names if isinstance(hints[name], type) and issubclass(hints[name], Config)]
    inside = [f"{part}.{key}" for part in parts if key in [f.name for f in fields(hints[part])]]
    close = f" Did you mean '{inside[0]}'?" if inside else did_you_mean(str(key), names)
    hint = f", d{close[2:]}" if close else ""
    hint += f" Write {cls.__name__}().override('{inside[0]}=…')." if inside else ""
    return f"unknown key {quoted(key)}{hint} (known: {', '.join(names)})"


def check_config(config: Any, kind: type[C], owner: str, *, instead: str = "") -> C:
    """Return the settings of an object; raise if they belong to another class.

    ``instead`` is the call that takes such settings, for the message, such as ``sp.Sparce(clf, config)``.
    """
    if isinstance(config, kind):
        return config
    name = f"{'sp.' if kind.__module__.startswith('sparcets.core.') else ''}{kind.__name__}"
    article = "an" if kind.__name__[0] in "AEIOU" else "a"
    came, hint = type(config).__name__, f"Use {instead}, or {name}()." if instead else f"Pass {name}()."
    if isinstance(config, type):
        came = f"the class {config.__name__}"
        hint = f"Pass an instance: {name}()." if issubclass(config, kind) else hint
    elif isinstance(config, Mapping):
        hint = f"Pass {name}.from_dict(config)."
    raise ConfigError(f"{owner} takes {article} {kind.__name__}, got {came}. {hint}")


def declared(value: Any, hint: Any, *, plain: bool = False) -> Any:
    """Return a value in the type that a field declares, so that 1, 1.0 and NumPy's 1 are the same setting.

    ``plain`` values have JSON's lists and dictionaries for tuples and configs. Raises TypeError for other types.
    """
    origin, args = get_origin(hint), get_args(hint)
    if getattr(value, "shape", None) == () and hasattr(value, "item"):  # a scalar of NumPy or torch
        value = value.item()
    if origin in (Union, types.UnionType):
        for kind in args:
            with suppress(TypeError):
                return declared(value, kind, plain=plain)
    elif origin is Literal:
        if any(type(value) is type(a) and value == a for a in args):
            return value
    elif origin is tuple:
        if isinstance(value, (tuple, list) if plain else tuple):
            return tuple(declared(v, args[0], plain=plain) for v in value)
    elif hint in (int, float):
        if not isinstance(value, bool) and isinstance(value, numbers.Integral if hint is int else numbers.Real):
            with suppress(OverflowError):  # an integer too large for a float
                if hint is int or math.isfinite(value):
                    return hint(value)
    elif plain and issubclass(hint, Config) and isinstance(value, Mapping):
        return hint.from_dict(value)
    elif isinstance(value, hint):
        return value
    raise TypeError


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


def _parse(text: str, hint: Any) -> Any:
    """Parse a value as the field's type; a value that does not fit is returned unchanged, for the message."""
    if hint is str:
        return text
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        value = _WORDS.get(text.lower(), text)
    for read in (value, text):
        with suppress(TypeError):
            return declared(read, hint, plain=isinstance(read, list))
    return value


def _plain(value: Any) -> Any:
    """Return a value in the form in which JSON would return it."""
    if isinstance(value, (Config, Record)):
        return value.to_dict()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, (list, tuple)) else value


class Record:
    """Base of the frozen dataclasses in headers of files: numbers, texts, arrays, tuples and other records."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; optional fields that are None are omitted."""
        values = [(f, getattr(self, f.name)) for f in fields(self)]  # type: ignore[arg-type]
        return {_key(f): _plain(value) for f, value in values if value is not None or f.default is not None}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Build from :meth:`to_dict`'s output; raise ValueError where a value is of another type."""
        hints = get_type_hints(cls)
        known = [f for f in fields(cls) if _key(f) in data or f.default is MISSING]  # type: ignore[arg-type]
        return cls(**{f.name: _read(_key(f), data[_key(f)], hints[f.name]) for f in known})


def _key(field: Field[Any]) -> str:
    """Return the name of a field of a record in files."""
    return str(field.metadata.get("key", field.name))


def _read(name: str, value: Any, hint: Any) -> Any:
    """Turn JSON's lists and dictionaries into the arrays, tuples and records that a field declares."""
    if get_origin(hint) in (Union, types.UnionType) and value is not None:
        (hint,) = (kind for kind in get_args(hint) if kind is not type(None))
    if isinstance(hint, type) and issubclass(hint, Record):
        return hint.from_dict(value)
    if get_origin(hint) in (np.ndarray, NDArray):  # the second from NumPy 2.5 on
        return np.asarray(value, dtype=np.float64 if hint == NDArray[np.floating[Any]] else None)
    try:
        return declared(value, hint, plain=True)
    except TypeError as error:
        raise ValueError(f"its {name} cannot be {value!r}") from error
