"""The API conforms to its OpenAPI description for valid and invalid requests (schemathesis)."""

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

schemathesis = pytest.importorskip("schemathesis", reason="needs schemathesis, of the extra dev")

from fastapi.testclient import TestClient  # noqa: E402
from hypothesis import HealthCheck, Phase, assume, given, settings, strategies  # noqa: E402
from hypothesis.errors import Unsatisfiable  # noqa: E402
from schemathesis import GenerationMode  # noqa: E402
from schemathesis.checks import CHECKS  # noqa: E402

from sparcets.server.models import ANSWERED, ExplainResponse  # noqa: E402

from .conftest import BEARER, Fit  # noqa: E402

# The description does not contain which features and classes there are: valid requests may get a 422 response.
SKIPPED_CHECKS = {"positive_data_acceptance"}
EXAMPLES = int(os.environ.get("SPARCETS_EXAMPLES", "12"))  # requests per operation


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
    schema = schemathesis.openapi.from_asgi("/openapi.json", app, headers={"Host": "127.0.0.1", **BEARER})
    checks = [check for check in CHECKS.get_all() if check.__name__ not in SKIPPED_CHECKS]
    statuses = {}
    for result in schema.get_all_operations():
        operation = result.ok()
        statuses[operation.label] = call(operation, mode, checks, fit)
    every = set().union(*statuses.values())
    assert max(every) < 500
    if mode == GenerationMode.POSITIVE:
        assert all(any(code < 300 for code in codes) for codes in statuses.values()), statuses
    else:
        assert 422 in every


def call(operation: Any, mode: Any, checks: list[Any], fit: Fit) -> set[int]:
    """Call one operation with generated requests, check every response, and return the status codes."""
    seen: set[int] = set()

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode), existing=strategies.booleans())
    def check(case: Any, existing: bool) -> None:
        if existing and mode == GenerationMode.POSITIVE and isinstance(case.body, dict):
            number = min(len(case.body["series"]), 3)
            case.body |= {"series": fit.X[:number].tolist(), "target": "wild", "n": 1}
            for name in ("ids", "side", "constraints"):
                case.body.pop(name, None)
        # Parameters that the description does not contain are ignored, as is usual: such a request is not invalid.
        assume(set(case.query or {}) <= {parameter.name for parameter in operation.query})
        response = case.call(headers={"Host": "127.0.0.1", **BEARER})
        seen.add(response.status_code)
        case.validate_response(response, checks=checks)

    with suppress(Unsatisfiable):  # an operation without parameters has no invalid requests
        check()
    return seen
