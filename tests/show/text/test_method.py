"""The name of the method, also of explanations saved before the package's own method had its own name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sparcets.core.explanation import Explanation
from sparcets.show.text import method_name


@pytest.mark.parametrize(
    ("method", "config", "name"),
    [
        ("sparcets", {}, "sparcets"),
        ("sparce", {"recipe": "true"}, "sparcets"),
        ("sparce", {"recipe": "paper"}, "sparce"),
        ("sparce", {}, "sparce"),
        ("gan", {"recipe": "true"}, "gan"),
    ],
)
def test_the_name_of_the_method(
    answer: Callable[..., Explanation], method: str, config: dict[str, Any], name: str
) -> None:
    assert method_name(answer({}, method=method, config=config)) == name
