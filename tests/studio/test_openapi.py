"""The API conforms to its OpenAPI description for valid and invalid requests (schemathesis)."""

import sys
from functools import partial

import pytest

from sparcets.studio.app import create_app
from sparcets.studio.jobs import Jobs
from sparcets.studio.models import Limits
from tests.http_api import statuses_of

from .conftest import API, BEARER, N_TEST, TOKEN

pytest.importorskip("schemathesis", reason="needs schemathesis, of the extra dev")
HEADERS = {"Host": "127.0.0.1", **BEARER}


def test_the_api_is_documented(client):
    document = client.get(f"{API}/openapi.json").json()
    assert document["openapi"].startswith("3.")
    operations = [o for path in document["paths"].values() for o in path.values()]
    assert len(operations) >= 17 and all(o["description"] and o["tags"] for o in operations)
    assert all("4XX" in o["responses"] for o in operations)
    assert all(path.startswith(f"{API}/") for path in document["paths"])


@pytest.fixture
def app(sample, monkeypatch):
    # The worker exits at once: training would take seconds per request and is tested elsewhere.
    worker = [sys.executable, "-S", "-c", "input()"]
    monkeypatch.setattr("sparcets.studio.app.Jobs", partial(Jobs, worker=worker))
    return create_app(sample.folder, token=TOKEN, device="cpu", limits=Limits(queued_jobs=10_000))


@pytest.mark.parametrize("valid", [True, False])
def test_every_operation_conforms_to_its_description(app, sample, valid):
    statuses = statuses_of(app, f"{API}/openapi.json", valid, HEADERS, partial(use_existing_items, sample=sample))
    if valid:  # every operation also succeeded at least once, so that not only error responses were checked
        succeeded = {label for label, codes in statuses.items() if any(code < 300 for code in codes)}
        assert {label for label in statuses if not label.startswith("DELETE")} - succeeded <= NEVER_VALID, statuses


# Names of data sets, files and jobs are generated, so these operations never succeed.
NEVER_VALID = {f"POST {API}/datasets", f"POST {API}/datasets/upload", f"POST {API}/datasets/{{name}}/recordings"}


def use_existing_items(case, sample):
    """Replace generated ids and rows by those of the workspace."""
    if case.method == "DELETE":
        return
    if case.path.endswith("/login"):
        case.body = {"token": TOKEN}
        return
    ids = {"dataset": sample.dataset, "classifier": sample.classifier, "explainer": sample.nearest}
    kind = case.path.split("/")[3].removesuffix("s")
    if "name" in case.path_parameters and kind in ids:
        case.path_parameters["name"] = ids[kind]
    if "row" in case.path_parameters:
        case.path_parameters["row"] %= N_TEST
    for name in ("predicted", "dataset", "classifier"):
        case.query.pop(name, None)
    if isinstance(case.body, dict):
        case.body.update({name: ids[name] for name in ids if name in case.body})
        for name, value in {"architecture": "fcn", "method": "nearest", "target": None}.items():
            if name in case.body:
                case.body[name] = value
        if "rows" in case.body:
            case.body.update(rows=[row % N_TEST for row in case.body["rows"]][:8], answers=1, shown=0, constraints={})
            if "exports" not in case.path:
                del case.body["shown"]
