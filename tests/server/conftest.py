"""A small fit, and the server on it in this process: a worker that is a thread, and a client without a network."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
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
from sparcets.server.answers import Outcome, Query, answer_batch
from sparcets.server.app import create_app
from sparcets.server.batching import Batcher, ServerLimits
from sparcets.server.metrics import Metrics
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
def fit(tmp_path_factory: pytest.TempPathFactory) -> Fit:
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

    def __init__(self, explainer: Any, before: Callable[[Sequence[Query]], object] = lambda _: None) -> None:
        self._explainer, self._before, self._thread = explainer, before, ThreadPoolExecutor(1)
        self.batches: list[int] = []

    def ask(self, question: str, queries: Sequence[Query]) -> Future[list[Outcome]]:
        def answer() -> list[Outcome]:
            self.batches.append(len(queries))
            self._before(queries)
            return answer_batch(self._explainer, question, queries)

        return self._thread.submit(answer)

    def watch(self, ended: Callable[[], object]) -> None:
        pass

    def replace(self, started: Callable[[], object]) -> None:
        self._thread.submit(started)

    def close(self) -> None:
        self._thread.shutdown()


def make_batcher(workers: Sequence[Any], **limits: Any) -> Batcher:
    return Batcher(workers, ServerLimits(**limits), Metrics())


@pytest.fixture
def start(fit: Fit) -> Iterator[Callable[..., TestClient]]:
    """Return a function that starts the server with the given limits."""
    opened: list[Any] = []

    def start_client(explainer: Any = fit.explainer, headers: dict[str, str] = BEARER, **limits: Any) -> TestClient:
        metrics, own, worker = Metrics(), ServerLimits(**limits), Thread(explainer)
        batcher = Batcher([worker], own, metrics)  # type: ignore[list-item]
        app = create_app(describe(explainer), batcher, token=TOKEN, hosts=None, limits=own, metrics=metrics)
        client = TestClient(app, base_url="http://127.0.0.1", headers=headers)
        client.__enter__()
        opened.extend([client, worker])
        return client

    yield start_client
    for one in opened:
        one.close()


@pytest.fixture
def client(start: Callable[..., TestClient]) -> TestClient:
    return start()
