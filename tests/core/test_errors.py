"""The hierarchy in the docstring matches the classes, and each error derives from a builtin exception."""

from __future__ import annotations

import inspect
import re

import pytest

from sparcets.core import errors
from sparcets.core.errors import SparcetsError, UnknownNameError

DEFINED = [c for _, c in inspect.getmembers(errors, inspect.isclass) if c.__module__ == errors.__name__]
CLASSES = [c for c in DEFINED if c is not SparcetsError and not issubclass(c, Warning)]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda c: c.__name__)
def test_each_error_is_in_the_tree_with_its_builtin(kind: type[SparcetsError]) -> None:
    assert issubclass(kind, SparcetsError)
    builtins = [b.__name__ for b in kind.__mro__[1:] if b.__module__ == "builtins"]
    assert builtins[0] != "Exception", f"{kind.__name__} derives from no specific builtin exception"
    assert set(re.findall(r"─ (\w+)", errors.__doc__ or "")) == {c.__name__ for c in CLASSES}
    line = re.search(rf"(.*)─ {kind.__name__}\b(.*)", errors.__doc__ or "")
    assert line, f"{kind.__name__} is missing in the docstring's tree"
    if kind.__bases__[0] is SparcetsError:
        assert f"({builtins[0]})" in line[2] and "│" not in line[1]
    else:
        assert "│" in line[1], "it is below its parent"


def test_unknown_name_error_prints_its_message() -> None:
    assert str(UnknownNameError("no method 'x'.")) == "no method 'x'."
    assert str(UnknownNameError()) == ""
