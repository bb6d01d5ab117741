"""The Python lines give, when they are run, what was on the screen."""

import contextlib
import io
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from .conftest import Made

QUESTIONS: list[dict[str, Any]] = [
    {"rows": [3]},
    {"rows": [2, 5], "target": "wild", "sparsity": 0.4, "answers": 2},
    {
        "rows": [4],
        "answers": 2,
        "shown": 1,
        "constraints": {
            "immutable": ["idle"],
            "frozen": [[0, 3], [9, 10]],
            "ranges": {"left": [None, 1.5], "right": [-3, 3]},
            "max_step": {"top": 2.0},
            "direction": {"top": "up"},
            "groups": {"both": ["left", "right"]},
        },
    },
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_lines_give_the_same_answer(
    client: TestClient, made: Made, question: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {"explainer": made.nearest, **question}
    lines = client.post("/api/v1/exports/py", json=asked).text
    shown = asked.pop("shown", 0)
    answers = client.post("/api/v1/explanations", json=asked).json()["answers"]
    monkeypatch.chdir(made.folder)
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(compile(lines, "lines.py", "exec"), names)
    got = np.float32([answer["counterfactual"] for answer in answers])
    assert np.array_equal(names["e"].counterfactual, got)
    assert said.getvalue().startswith(answers[shown]["text"])
    assert (made.folder / "answer.png").is_file()


def test_how_it_was_made_is_told_and_is_true(client: TestClient, made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = client.post("/api/v1/exports/py", json={"explainer": made.nearest, "rows": [3]}).text
    monkeypatch.chdir(made.folder)
    first, names = lines.partition("e = ex.explain")[0], {}
    exec(first, names)  # type: ignore[arg-type]
    made_by = [line.partition("# was made by: ")[2] for line in lines.splitlines() if "was made by" in line]
    again = eval(made_by[0], names)  # type: ignore[arg-type]
    X = names["ds"].X_test  # type: ignore[index]
    assert np.allclose(again.predict_proba(X), names["clf"].predict_proba(X), atol=1e-4)  # type: ignore[index]
    assert "sp.NearestConfig.tiny()" in made_by[1]
