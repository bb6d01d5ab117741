"""Registry: names of classes and functions that are imported on first use.

A registry is data, ``{"nearest": "sparcets.methods.nearest:Nearest"}``, so listing its names imports nothing.
Other packages add entries through an entry point group in their ``pyproject.toml``.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from typing import Any

from sparcets.core.errors import ConfigError, MissingExtraError, UnknownNameError, quoted


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``" Did you mean 'x'?"`` for the closest known name, or an empty string.

    >>> did_you_mean("counterganx", ["countergan", "gan"])
    " Did you mean 'countergan'?"
    >>> did_you_mean("gan", ["countergan", "gan"])  # the spelling is correct
    ''
    """
    names = list(known)
    if name in names:
        return ""
    by_lower = {n.lower(): n for n in names}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return f" Did you mean '{by_lower[close[0]]}'?" if close else ""


def unknown_name(kind: str, name: object, known: Iterable[str]) -> UnknownNameError:
    """Build the error for an unknown name, with a suggestion and the known names."""
    names = list(known)
    shown = ", ".join(names[:30]) + (f", … ({len(names)} in all)" if len(names) > 30 else "")
    # Names are text: of 3 features, the index 5 does not exist, even if a feature is called "5".
    given = name if isinstance(name, str) else quoted(name)
    is_name = not isinstance(name, str) and given in names
    hint = f" For the name, write {given!r}." if is_name else did_you_mean(given, names)
    return UnknownNameError(f"no {kind} {quoted(name)}.{hint} Known: {shown}.")


def require_extra(module: str, purpose: str, extra: str) -> Any:
    """Import an optional package, or raise an error that names the extra to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.split(".")[0]
        raise MissingExtraError(
            f"{purpose} need{'' if purpose.endswith('s') else 's'} {package}. "
            f"Install it with: pip install 'sparcets[{extra}]'"
        ) from error


class Registry:
    """Names of one kind of object, each with its location ``module:attribute`` and a line about it for listings.

    Other packages can register entries under an entry point group.
    """

    def __init__(
        self,
        kind: str,
        entries: Mapping[str, str],
        *,
        about: Mapping[str, str] | None = None,
        entry_point_group: str | None = None,
    ) -> None:
        self.kind = kind
        self.about = dict(about or {})
        self._group = entry_point_group
        self._entries = dict(entries)

    def add(self, name: str, location: str) -> None:
        """Register ``location`` (``"module:attribute"``) under a new name."""
        if name in self._all():
            raise ConfigError(f"the {self.kind} name {name!r} is taken by {self._all()[name]}; choose another name.")
        self._entries[name] = location

    def load(self, name: str) -> Any:
        """Import and return the object registered under ``name``."""
        module, _, attribute = self.location(name).partition(":")
        return getattr(importlib.import_module(module), attribute)

    def location(self, name: str) -> str:
        """Return the ``"module:attribute"`` registered under ``name``, without importing it."""
        entries = self._all()
        if not isinstance(name, str) or name not in entries:
            raise unknown_name(self.kind, name, sorted(entries))
        return entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._all()))

    def __contains__(self, name: object) -> bool:
        return name in self._all()

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> dict[str, str]:
        if self._group is not None:
            group, self._group = self._group, None  # read once
            for point in metadata.entry_points(group=group):
                self.add(point.name, point.value)
        return self._entries
