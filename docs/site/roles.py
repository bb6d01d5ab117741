"""An extension of griffe: roles in docstrings, as ``:func:`~sparcets.wrap```, become links or code."""

import re
from typing import Any

import griffe

import sparcets

ROLE = re.compile(r":(?:class|func|meth|mod|attr|data|exc):`~?([^`]+)`")


class Roles(griffe.Extension):
    """Replace roles: by a link for public names, else by the last part of the name as code."""

    def on_instance(self, *, obj: griffe.Object, **given: Any) -> None:
        """Rewrite the docstring of everything that has one."""
        if obj.docstring is not None:
            text = obj.docstring.value.replace("::\n", ":\n")  # the double colon before a block
            obj.docstring.value = ROLE.sub(_replacement, text)


def _replacement(role: re.Match[str]) -> str:
    first, *rest = role[1].removeprefix("sparcets.").split(".")
    last = rest[-1] if rest else first
    return f"[`{last}`][sparcets.{'.'.join((first, *rest))}]" if first in sparcets.__all__ else f"`{last}`"
