"""What the speed benchmark measures with: how much of it, and what its parts share: data, classifier, explainer."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparcets.arrays import FloatArray


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How much is measured."""

    n_series: int = 1200  # training series: enough for a GPU to be made use of
    shape: tuple[int, int] = (50, 50)  # steps, features
    classifier_steps: int = 200
    epochs: int = 4  # of the generator that explains; its quality has no part in the timing
    steps: int = 20  # of training, timed
    batches: tuple[int, ...] = (32, 256)  # of training
    queries: int = 1024  # explained for a rate
    explained: tuple[int, ...] = (1, 32, 256, 1024)  # batch sizes of explaining
    singles: int = 200  # queries one by one
    stream: int = 10_000  # queries from a memory map
    decades: tuple[int, ...] = (5, 16, 50, 160, 500)  # sizes over which the growth of time is fitted

    @classmethod
    def quick(cls) -> Sizes:
        """Return sizes that take seconds, to see whether everything runs."""
        return cls(
            n_series=60,
            shape=(10, 4),
            classifier_steps=100,
            epochs=2,
            steps=2,
            batches=(8,),
            queries=16,
            explained=(1, 8),
            singles=5,
            stream=200,
            decades=(4, 8, 16),
        )


class Bench:
    """Data, a classifier and an explainer, made once and shared by the parts."""

    def __init__(self, *, device: str, sizes: Sizes, seed: int) -> None:
        from sparcets.training.device import resolve_device

        self.device, self.sizes, self.seed = resolve_device(device), sizes, seed
        self.X, self.y = series(sizes.n_series, *sizes.shape, seed=seed)
        self._made: dict[str, Any] = {}

    def machine(self) -> dict[str, Any]:
        """Return where and with what this is measured."""
        import torch

        from sparcets import __version__

        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        gpu = torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else None
        return {
            "name": gpu or platform.processor() or platform.machine(),
            "device": self.device.type,
            "cores": cores,
            "threads": torch.get_num_threads(),
            "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
            "torch": torch.__version__,
            "sparcets": __version__,
            "steps": self.sizes.shape[0],
            "features": self.sizes.shape[1],
            "series": self.sizes.n_series,
        }

    def classifier(self) -> Any:
        """Return the explained classifier: a bi-LSTM of the usual size."""
        if "classifier" not in self._made:
            self._made["classifier"] = train_classifier(self, self.X, self.y)
        return self._made["classifier"]

    def explainer(self) -> Any:
        """Return a Sparce by the default recipe, briefly trained."""
        if "explainer" not in self._made:
            self._made["explainer"] = fit_sparce(self, self.classifier(), self.X, self.y)
        return self._made["explainer"]

    def queries(self, n: int) -> FloatArray:
        """Return ``n`` series that are in class 0."""
        some = self.X[self.classifier().predict(self.X) == 0]
        return np.ascontiguousarray(np.resize(some if len(some) else self.X, (n, *self.X.shape[1:])))

    @contextmanager
    def timer(self) -> Iterator[Callable[[], float]]:
        """Yield a function that gives the seconds since the start, the device's work done."""
        import torch

        def wait() -> None:
            if self.device.type == "cuda":
                torch.cuda.synchronize(self.device)

        def seconds() -> float:
            wait()
            return time.perf_counter() - start

        wait()
        start = time.perf_counter()
        yield seconds


def series(n: int, n_steps: int, n_features: int, *, seed: int) -> tuple[FloatArray, Any]:
    """Return noise in two classes, of which one has half of its features lifted: (n, time, features) and labels.

    Easy to learn in seconds: what is timed is a generator that answers, not what it takes to repair a bad one.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, n_steps, n_features)).astype(np.float32)
    y = np.arange(n) % 2
    X[y == 1, :, : (n_features + 1) // 2] += 1.0
    return X, y


def train_classifier(bench: Bench, X: FloatArray, y: Any) -> Any:
    """Return a bi-LSTM of the usual size, briefly trained."""
    from sparcets.classifiers.torch_classifier import TorchClassifier
    from sparcets.config.models import ClassifierConfig

    epochs = -(-32 * bench.sizes.classifier_steps // len(X))
    config = ClassifierConfig(epochs=epochs, patience=epochs, device=str(bench.device), seed=bench.seed)
    return TorchClassifier("bilstm", config).fit(X, y, progress=False)


def fit_sparce(bench: Bench, classifier: Any, X: FloatArray, y: Any) -> Any:
    """Return a Sparce by the default recipe, briefly trained."""
    from sparcets.config.explainers import SparceConfig
    from sparcets.explainers.sparce import Sparce

    brief = (f"train.epochs={bench.sizes.epochs}", "weights.sparsity=0.3", "guide=never")
    usual = (*brief, f"device={bench.device}", f"seed={bench.seed}")
    return Sparce(classifier, SparceConfig().override(*usual)).fit(X, y, progress=False)
