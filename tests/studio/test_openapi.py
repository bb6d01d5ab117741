"""The API keeps to its own description, whatever it is asked (schemathesis)."""

import os
from contextlib import suppress
from typing import Any

import pytest

schemathesis = pytest.importorskip("schemathesis", reason="needs schemathesis, of the extra dev")

from hypothesis import HealthCheck, Phase, given, settings, strategies  # noqa: E402
from hypothesis.errors import Unsatisfiable  # noqa: E402
from schemathesis import GenerationMode  # noqa: E402
from schemathesis.checks import CHECKS  # noqa: E402
from starlette.testclient import TestClient  # noqa: E402

from sparcets.studio.ahead import Ahead  # noqa: E402
from sparcets.studio.app import create_app  # noqa: E402
from sparcets.studio.jobs import Jobs  # noqa: E402
from sparcets.studio.limits import Limits  # noqa: E402

from .conftest import Made  # noqa: E402

# A description cannot say which rows exist and which classes the data have: such requests are refused with 422.
LEFT_OUT = {"positive_data_acceptance"}
EXAMPLES = int(os.environ.get("SPARCETS_EXAMPLES", "12"))  # requests per operation


def test_a_document_describes_the_api(client: TestClient) -> None:
    document = client.get("/api/v1/openapi.json").json()
    assert document["openapi"].startswith("3.")
    operations = [o for path in document["paths"].values() for o in path.values()]
    assert len(operations) >= 17
    assert all(o["description"] and o["tags"] for o in operations)
    assert all("4XX" in o["responses"] for o in operations)
    assert all(path.startswith("/api/v1/") for path in document["paths"])


@pytest.fixture
def app(made: Made, monkeypatch: pytest.MonkeyPatch) -> Any:
    # What is checked are the answers, not the trainings, which would take seconds each.
    monkeypatch.setattr(Jobs, "_work", lambda self: None)
    monkeypatch.setattr(Ahead, "think", lambda self, questions: None)
    return create_app(made.folder, device="cpu", limits=Limits(jobs_waiting=10_000))


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["as described", "otherwise"])
def test_every_operation_keeps_to_its_description(app: Any, made: Made, mode: Any) -> None:
    schema = schemathesis.openapi.from_asgi("/api/v1/openapi.json", app, headers={"Host": "127.0.0.1"})
    checks = [check for check in CHECKS.get_all() if check.__name__ not in LEFT_OUT]
    seen = {}
    for result in schema.get_all_operations():
        operation = result.ok()
        seen[operation.label] = answered(operation, mode, checks, made)
    every = set().union(*seen.values())
    assert max(every) < 500
    if mode == GenerationMode.POSITIVE:
        # Something of the workspace was reached by each, so that it is not only errors that were checked.
        reached = {label for label, statuses in seen.items() if any(status < 300 for status in statuses)}
        assert {label for label in seen if not label.startswith("DELETE")} - reached <= CANNOT, seen
    else:
        assert 422 in every


def answered(operation: Any, mode: Any, checks: list[Any], made: Made) -> set[int]:
    """Ask one operation in many ways, check every answer, and return their statuses."""
    seen: set[int] = set()

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode), there=strategies.booleans())
    def check(case: Any, there: bool) -> None:
        if there and mode == GenerationMode.POSITIVE and case.method != "DELETE":
            name_what_is_there(case, made)
        response = case.call(headers={"Host": "127.0.0.1"})
        seen.add(response.status_code)
        case.validate_response(response, checks=checks)

    with suppress(Unsatisfiable):  # what takes nothing cannot be asked otherwise
        check()
    return seen


# Names of data sets and files are made up; no training has been begun.
CANNOT = {"POST /api/v1/datasets", "POST /api/v1/datasets/upload", "GET /api/v1/jobs/{name}"}


def name_what_is_there(case: Any, made: Made) -> None:
    """Put what the workspace holds in the place of made-up ids."""
    ids = {"dataset": made.dataset, "classifier": made.classifier, "explainer": made.nearest}
    kind = case.path.split("/")[3].removesuffix("s")
    if "name" in case.path_parameters and kind in ids:
        case.path_parameters["name"] = ids[kind]
    if "row" in case.path_parameters:
        case.path_parameters["row"] %= 18
    for name in ("predicted", "dataset", "classifier"):
        case.query.pop(name, None)
    if isinstance(case.body, dict):
        case.body.update({name: ids[name] for name in ids if name in case.body})
        for name, value in {"architecture": "fcn", "method": "nearest", "target": None}.items():
            if name in case.body:
                case.body[name] = value
        if "rows" in case.body:
            case.body.update(rows=[row % 18 for row in case.body["rows"]][:8], answers=1, shown=0, constraints={})
            if "exports" not in case.path:
                del case.body["shown"]
