"""The API conforms to its OpenAPI description for valid and invalid requests (schemathesis)."""

from functools import partial

import pytest

from tests.http_api import statuses_of

from .conftest import BEARER

pytest.importorskip("schemathesis", reason="needs schemathesis, of the extra dev")
HEADERS = {"Host": "127.0.0.1", **BEARER}


def test_the_api_is_documented(client, fit):
    document = client.get("/openapi.json").json()
    operations = {path: next(iter(o.values())) for path, o in document["paths"].items()}
    assert set(operations) == {"/explain", "/model", "/metrics", "/health", "/ready"}
    assert all(o["description"] and o["tags"] for o in operations.values())
    assert operations["/explain"]["security"] and "security" not in operations["/health"]
    example = document["components"]["schemas"]["ExplainRequest"]["examples"][0]
    example["series"] = [[step * 2 for step in example["series"][0]]]  # of as many features as this model has
    assert "10 steps" in client.post("/explain", json=example).text


@pytest.mark.parametrize("valid", [True, False])
def test_every_operation_conforms_to_its_description(start, fit, valid):
    statuses = statuses_of(start().app, "/openapi.json", valid, HEADERS, partial(use_existing_series, fit=fit))
    assert not valid or all(any(code < 300 for code in codes) for codes in statuses.values()), statuses


def use_existing_series(case, fit):
    """Replace generated series by those the model was fitted on."""
    if isinstance(case.body, dict):
        number = min(len(case.body["series"]), 3)
        case.body |= {"series": fit.X[:number].tolist(), "target": "wild", "n": 1}
        for name in ("ids", "side", "constraints"):
            case.body.pop(name, None)
