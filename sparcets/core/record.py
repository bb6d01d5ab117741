"""Record: a frozen dataclass that is written to JSON, and read from it, by the types of its fields."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from sparcets.core.config import declared

if TYPE_CHECKING:
    from typing_extensions import Self


class Record:
    """Base of what headers of files hold: numbers, texts, arrays, tuples and other records."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; what may be left out is left out where it is None."""
        known = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        optional = {f.name for f in fields(self) if f.default is None}  # type: ignore[arg-type]
        return {name: _plain(value) for name, value in known.items() if value is not None or name not in optional}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Build from :meth:`to_dict`'s output; raise ValueError where a value is of another type."""
        hints = get_type_hints(cls)
        known = [f.name for f in fields(cls) if f.name in data or f.default is MISSING]  # type: ignore[arg-type]
        return cls(**{name: _read(name, data[name], hints[name]) for name in known})


def _plain(value: Any) -> Any:
    if isinstance(value, Record):
        return value.to_dict()
    if isinstance(value, np.ndarray):
        return value.tolist()
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


def _read(name: str, value: Any, hint: Any) -> Any:
    """Turn JSON's lists and dictionaries into the arrays, tuples and records that a field declares."""
    if get_origin(hint) in (Union, types.UnionType) and value is not None:
        (hint,) = (kind for kind in get_args(hint) if kind is not type(None))
    if isinstance(hint, type) and issubclass(hint, Record):
        return hint.from_dict(value)
    if get_origin(hint) is np.ndarray:
        return np.asarray(value, dtype=np.float64 if hint == NDArray[np.floating[Any]] else None)
    try:
        return declared(value, hint, plain=True)
    except TypeError as error:
        raise ValueError(f"its {name} cannot be {value!r}") from error
