"""The exported Python code computes the same explanation as the studio."""

import contextlib
import io
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from .conftest import API, Sample

REQUESTS: list[dict[str, Any]] = [
    {"rows": [3]},
    {"rows": [2, 5], "target": "wild", "sparsity": 0.4, "answers": 2},
    {"rows": [20, 3, 19], "constraints": {"frozen": [[0, 2]], "frozen_features": {"left": [[5, 9]]}}},
    {"rows": [1], "target": "wild", "strokes": [{"feature": "left", "at": 5, "width": 2, "by": 0.5}]},
    {
        "rows": [1],
        "target": "wild",
        "find_rest": False,
        "strokes": [{"feature": "top", "at": 9, "width": 3, "by": 9.0}],
    },
    {"rows": [3], "target": "wild", "constraints": {"like_real": True}},
    {"rows": [3], "target": "wild", "constraints": {"like_real": True, "immutable": ["idle"]}},
    {
        "rows": [4],
        "answers": 2,
        "shown": 1,
        "constraints": {
            "immutable": ["idle"],
            "frozen": [[0, 3], [9, 10]],
            "ranges": {"left": [None, 1.5], "constructor": [-3, 3]},
            "max_step": {"top": 2.0},
            "direction": {"top": "up"},
            "groups": {"both": ["left", "constructor"]},
        },
    },
]


@pytest.mark.parametrize("options", REQUESTS)
def test_the_code_gives_the_same_answer(
    client: TestClient, sample: Sample, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {"explainer": sample.nearest, **options}
    code = client.post(f"{API}/exports/py", json=body).text
    shown = body.pop("shown", 0)
    answers = client.post(f"{API}/explanations", json=body).json()["answers"]
    monkeypatch.chdir(sample.folder)
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(compile(code, "code.py", "exec"), names)
    expected = np.float32([answer["counterfactual"] for answer in answers])
    assert np.array_equal(names["e"].counterfactual, expected)
    assert output.getvalue().startswith(answers[shown]["text"])
    assert (sample.folder / "counterfactual.png").is_file()


def test_the_comments_recreate_the_models(client: TestClient, sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    code = client.post(f"{API}/exports/py", json={"explainer": sample.nearest, "rows": [3]}).text
    monkeypatch.chdir(sample.folder)
    first, names = code.partition("e = ex.explain")[0], {}
    exec(first, names)  # type: ignore[arg-type]
    created_by = [line.partition("# created by: ")[2] for line in code.splitlines() if "created by" in line]
    again = eval(created_by[0], names)  # type: ignore[arg-type]
    X = names["ds"].X_test  # type: ignore[index]
    assert np.allclose(again.predict_proba(X), names["clf"].predict_proba(X), atol=1e-4)  # type: ignore[index]
    assert "sp.NearestConfig.tiny()" in created_by[1]
