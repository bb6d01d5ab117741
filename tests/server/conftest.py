"""A small fit, and the server on it in this process: a worker that is a thread, and a client without a network."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the server needs the extra sparcets[serve]")
pytest.importorskip("prometheus_client", reason="the server needs the extra sparcets[serve]")
pytest.importorskip("httpx2", reason="the tests of the server need httpx2")

from fastapi.testclient import TestClient

import sparcets as sp
from sparcets.methods.folder import write_fit
from sparcets.server.answers import answer_batch
from sparcets.server.app import create_app
from sparcets.server.batching import Batcher, Metrics, ServerLimits
from sparcets.server.pool import describe
from sparcets.testing.data import make_series

TOKEN = "a-token-of-tests"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
NAMES = ["left", "right", "top", "idle"]


class Fit(NamedTuple):
    """A fitted explainer, the folder it is stored in, and series that it has not seen (batch, time, features)."""

    explainer: Any
    folder: Path
    X: Any


@pytest.fixture(scope="session")
def fit(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    X, y = make_series(60, n_steps=10)
    data = folder / "own.npz"
    np.savez(data, X=X, y=np.array(["calm", "brisk", "wild"])[y], feature_names=NAMES)
    ds = sp.load_dataset(data)
    clf = sp.TorchClassifier("fcn", sp.ClassifierConfig.tiny().override("epochs=6")).fit(ds, progress=False)
    explainer = sp.Nearest(clf, sp.NearestConfig.tiny()).fit(ds)
    (out := folder / "model").mkdir()
    write_fit(out, clf.save, explainer, {"dataset": str(data), "dataset_options": {}})
    return Fit(explainer, out, make_series(40, n_steps=10, seed=1)[0].astype(np.float64))


class Thread:
    """Stands for a worker: answers in a thread of this process, after an event if there is one."""

    def __init__(self, explainer, before=lambda _: None):
        self._explainer, self._before, self._thread = explainer, before, ThreadPoolExecutor(1)
        self.batches = []

    def ask(self, question, queries):
        def answer():
            self.batches.append(len(queries))
            self._before(queries)
            return answer_batch(self._explainer, question, queries)

        return self._thread.submit(answer)

    def watch(self, ended):
        pass

    def replace(self, started):
        self._thread.submit(started)

    def close(self):
        self._thread.shutdown()


def make_batcher(workers, **limits):
    return Batcher(workers, ServerLimits(**limits), Metrics())


@pytest.fixture
def start(fit):
    """Return a function that starts the server with the given limits."""
    opened = []

    def start_client(explainer=fit.explainer, headers=BEARER, **limits):
        metrics, own, worker = Metrics(), ServerLimits(**limits), Thread(explainer)
        batcher = Batcher([worker], own, metrics)
        app = create_app(describe(explainer), batcher, token=TOKEN, hosts=None, limits=own, metrics=metrics)
        client = TestClient(app, base_url="http://127.0.0.1", headers=headers)
        client.__enter__()
        opened.extend([client, worker])
        return client

    yield start_client
    for one in opened:
        one.close()


@pytest.fixture
def client(start):
    return start()
