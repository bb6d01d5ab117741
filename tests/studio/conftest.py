"""A small workspace and an in-process client of the studio's API."""

import io
import json
import shutil
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the studio needs the extra sparcets[studio]")
pytest.importorskip("httpx2", reason="the tests of the studio need httpx2")

from fastapi.testclient import TestClient

import sparcets as sp
from sparcets.studio.app import create_app
from sparcets.studio.models import ExplainerRecord, FitExplainer, Limits, TrainClassifier
from sparcets.studio.processes import fit_explainer, train_classifier
from sparcets.studio.uploads import read_dataset
from sparcets.studio.workspace import Workspace, dataset_record, write_record
from sparcets.testing.data import make_series
from tests.saved import rewrite

API = "/api/v1"
HOST = "http://127.0.0.1"
NAMES = ["left", "constructor", "top", "idle"]  # one that every object of JavaScript has
N_TEST = 18
TOKEN = "a-token-of-tests"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
OPENINGS = {"png": b"\x89PNG", "pdf": b"%PDF", "csv": b"query,id,verdict", "npz": b"PK", "html": b"<!doctype html>"}


def npz_bytes(n=90):
    """Return the content of a file with three classes that differ in the first three features."""
    X, y = make_series(n)
    content = io.BytesIO()
    labels = np.array(["calm", "brisk", "wild"])[y]
    names = {"ids": [f"trial {i}" for i in range(n)], "feature_names": NAMES}
    np.savez(content, X=X, y=labels, **names, units=["m", "m", "m", "V"], sampling_rate=10.0)
    return content.getvalue()


class Sample(NamedTuple):
    """A workspace with a data set, a classifier, and two explainers of it; the shared one has a third."""

    folder: Path
    dataset: str = "own"
    classifier: str = "fcn"
    nearest: str = "nearest"
    ics: str = "ics"
    sparcets: str = "sparcets"

    def state(self, **more):
        """Return a state of the page."""
        mine = {"dataset": self.dataset, "classifier": self.classifier, "explainer": self.nearest, "row": 0}
        return {**mine, **more}


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    workspace = Workspace(tmp_path_factory.mktemp("workspace"))
    with workspace.create("datasets", "own") as folder:
        (folder / "own.npz").write_bytes(npz_bytes())
        dataset = read_dataset(folder / "own.npz", Limits(), seed=0)
        write_record(folder, dataset_record(dataset, "own", source="own.npz", uploaded=True, seed=0))
    train_classifier(workspace, "fcn", TrainClassifier(dataset="own", architecture="fcn", preset="tiny"), 0, "cpu")
    for method in ("nearest", "ics"):
        fit_explainer(workspace, method, FitExplainer(classifier="fcn", method=method, preset="tiny"), 0, "cpu")
    return workspace.folder


@pytest.fixture
def sample(template, tmp_path):
    """Return a copy of the workspace that a test may modify."""
    shutil.copytree(template, tmp_path / "workspace")
    return Sample(tmp_path / "workspace")


@pytest.fixture
def start(sample):
    """Return a function that starts the studio on the workspace, with the given options."""
    clients = []

    def start_client(headers=BEARER, **options):
        app = create_app(sample.folder, token=TOKEN, device="cpu", **options)
        client = TestClient(app, base_url=HOST, headers=headers)
        client.__enter__()
        clients.append(client)
        return client

    yield start_client
    for client in clients:
        client.__exit__(None, None, None)


@pytest.fixture
def client(start):
    return start()


def make_outdated(sample, name):
    """Turn a saved explainer into a ``sparce`` explainer of the previous file format."""
    folder = sample.folder / "explainers" / name
    rewrite(folder / "explainer.safetensors", lambda header: header.update(format=4, method="sparce"))
    record = json.loads((folder / "about.json").read_text())
    del record["sha256"]
    (folder / "about.json").write_text(json.dumps(record | {"method": "sparce"}))


@pytest.fixture(scope="session")
def shared(template, tmp_path_factory):
    """Return a workspace shared by the tests in the browser, which add items and remove none."""
    sample = Sample(tmp_path_factory.mktemp("shared") / "workspace")
    shutil.copytree(template, sample.folder)
    workspace = Workspace(sample.folder)
    clf = sp.load_classifier(sample.folder / "classifiers" / sample.classifier)
    ds = sp.load_dataset(sample.folder / "datasets" / sample.dataset / "own.npz", seed=0)
    explainer = sp.Explainer(clf, sp.ExplainerConfig.quick()).fit(ds)
    like = workspace.record(ExplainerRecord, sample.nearest)
    with workspace.create("explainers", sample.sparcets) as folder:
        explainer.save(folder)
        named = {"id": sample.sparcets, "method": "sparcets", "summary": explainer.summary()}
        write_record(folder, like.model_copy(update=named))
    return sample


@pytest.fixture(scope="session")
def studio(shared):
    """Start the studio with its command."""
    from .visit import running

    with running(shared.folder) as started:
        yield started


@pytest.fixture(scope="module")
def one_visit(browser, studio):
    from .visit import Visit

    visit = Visit(browser, studio)
    yield visit
    visit.context.close()


@pytest.fixture
def visit(one_visit):
    """Return a page of a browser, which all tests of a module use one after the other."""
    one_visit.errors.clear()
    return one_visit
