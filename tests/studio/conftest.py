"""A small workspace that several tests look at, and a client that talks to the app without a network."""

import io
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the studio needs the extra sparcets[studio]")
pytest.importorskip("httpx2", reason="the tests of the studio talk to it through httpx2")

from starlette.testclient import TestClient

from sparcets.studio.app import create_app
from sparcets.studio.data import describe, parse
from sparcets.studio.limits import Limits
from sparcets.studio.models import FitExplainer, TrainClassifier
from sparcets.studio.worker import fit_explainer, train_classifier
from sparcets.studio.workspace import Workspace, write_record
from sparcets.testing.data import make_series

HOST = "http://127.0.0.1"
NAMES = ["left", "right", "top", "idle"]


def npz(n: int = 90) -> bytes:
    """Return the bytes of a file of three classes that differ in the first three features."""
    X, y = make_series(n)
    made = io.BytesIO()
    labels = np.array(["calm", "brisk", "wild"])[y]
    np.savez(made, X=X, y=labels, feature_names=NAMES, units=["m", "m", "m", "V"], sampling_rate=10.0)
    return made.getvalue()


class Made(NamedTuple):
    """A workspace with a data set, a classifier, and two explainers of it."""

    folder: Path
    dataset: str = "own"
    classifier: str = "fcn"
    nearest: str = "nearest"
    ics: str = "ics"


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    workspace = Workspace(tmp_path_factory.mktemp("workspace"))
    with workspace.making("datasets", "own") as folder:
        (folder / "own.npz").write_bytes(npz())
        dataset = parse(folder / "own.npz", Limits(), seed=0)
        write_record(folder, describe(dataset, "own", source="own.npz", uploaded=True, seed=0))
    train_classifier(workspace, "fcn", TrainClassifier(dataset="own", architecture="fcn", preset="tiny"), 0, "cpu")
    for method in ("nearest", "ics"):
        fit_explainer(workspace, method, FitExplainer(classifier="fcn", method=method, preset="tiny"), 0, "cpu")
    return workspace.folder


@pytest.fixture
def made(template: Path, tmp_path: Path) -> Made:
    """Return a copy that a test may do with as it likes."""
    shutil.copytree(template, tmp_path / "workspace")
    return Made(tmp_path / "workspace")


@pytest.fixture
def start(made: Made) -> Iterator[Callable[..., TestClient]]:
    """Return a function that starts the studio of the workspace, with options of its own."""
    begun: list[TestClient] = []

    def starting(**options: Any) -> TestClient:
        client = TestClient(create_app(made.folder, device="cpu", **options), base_url=HOST)
        client.__enter__()
        begun.append(client)
        return client

    yield starting
    for client in begun:
        client.__exit__(None, None, None)


@pytest.fixture
def client(start: Callable[..., TestClient]) -> TestClient:
    return start()


def error(response: Any, status: int) -> dict[str, Any]:
    """Check the one shape of errors, and return what it holds."""
    assert response.status_code == status, response.text
    body = response.json()
    assert set(body) == {"error"} and set(body["error"]) == {"code", "message", "details"}
    assert body["error"]["message"].strip() and "Traceback" not in response.text
    held: dict[str, Any] = body["error"]
    return held
