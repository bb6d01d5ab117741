"""The API conforms to its OpenAPI description for valid and invalid requests (schemathesis)."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

schemathesis = pytest.importorskip("schemathesis", reason="needs schemathesis, of the extra dev")

from fastapi.testclient import TestClient  # noqa: E402
from schemathesis import GenerationMode  # noqa: E402
from schemathesis.checks import CHECKS  # noqa: E402

from sparcets.server.models import ANSWERED, ExplainResponse  # noqa: E402
from tests.http_api import call  # noqa: E402

from .conftest import BEARER, Fit  # noqa: E402

# The description does not contain which features and classes there are: valid requests may get a 422 response.
SKIPPED_CHECKS = {"positive_data_acceptance"}
HEADERS = {"Host": "127.0.0.1", **BEARER}


def test_the_api_is_documented(client: TestClient, fit: Fit) -> None:
    document = client.get("/openapi.json").json()
    operations = {path: next(iter(o.values())) for path, o in document["paths"].items()}
    assert set(operations) == {"/explain", "/model", "/metrics", "/health", "/ready"}
    assert all(o["description"] and o["tags"] for o in operations.values())
    assert operations["/explain"]["security"] and "security" not in operations["/health"]
    assert document["components"]["schemas"]["ExplainResponse"]["examples"]  # FastAPI leaves out what is null
    ExplainResponse.model_validate(ANSWERED, strict=True)
    example = document["components"]["schemas"]["ExplainRequest"]["examples"][0]
    example["series"] = [[step * 2 for step in example["series"][0]]]  # of as many features as this model has
    assert "10 steps" in client.post("/explain", json=example).text


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["valid", "invalid"])
def test_every_operation_conforms_to_its_description(start: Callable[..., TestClient], fit: Fit, mode: Any) -> None:
    app = start().app
    schema = schemathesis.openapi.from_asgi("/openapi.json", app, headers=HEADERS)
    checks = [check for check in CHECKS.get_all() if check.__name__ not in SKIPPED_CHECKS]
    statuses = {}
    for result in schema.get_all_operations():
        operation = result.ok()
        statuses[operation.label] = call(operation, mode, checks, HEADERS, partial(use_existing_series, fit=fit))
    every = set().union(*statuses.values())
    assert max(every) < 500
    if mode == GenerationMode.POSITIVE:
        assert all(any(code < 300 for code in codes) for codes in statuses.values()), statuses
    else:
        assert 422 in every


def use_existing_series(case: Any, fit: Fit) -> None:
    """Replace generated series by those the model was fitted on."""
    if isinstance(case.body, dict):
        number = min(len(case.body["series"]), 3)
        case.body |= {"series": fit.X[:number].tolist(), "target": "wild", "n": 1}
        for name in ("ids", "side", "constraints"):
            case.body.pop(name, None)
