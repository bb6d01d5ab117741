"""Setup of the speed benchmark: its sizes, and the data, classifier and explainer that its parts share."""

from __future__ import annotations

import multiprocessing
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets.core.arrays import FloatArray
from sparcets.core.errors import CapabilityError
from sparcets.io.engines import starting_process

if TYPE_CHECKING:
    import torch

    from sparcets.models.network import TorchClassifier

MAX_SECONDS = 4.0  # for one rate on a CPU


@dataclass(frozen=True, kw_only=True)
class SpeedSizes:
    """How much is measured."""

    n_series: int = 1200  # training series; enough to use a GPU well
    shape: tuple[int, int] = (50, 50)  # steps, features
    classifier_steps: int = 200
    steps: int = 20  # training steps that are timed
    batches: tuple[int, ...] = (32, 256)  # batch sizes of the training
    queries: int = 64  # explained to measure a rate
    explained: tuple[int, ...] = (1, 32)  # queries per call of explain
    singles: int = 100  # queries explained one at a time
    stream: int = 1000  # queries from a memory map
    decades: tuple[int, ...] = (5, 16, 50, 160)  # sizes over which the exponent of the growth is fitted

    @classmethod
    def quick(cls) -> SpeedSizes:
        """Return sizes that take seconds, to check that everything runs."""
        return cls(
            n_series=60,
            shape=(10, 4),
            classifier_steps=100,
            steps=2,
            batches=(8,),
            queries=16,
            explained=(1, 8),
            singles=5,
            stream=200,
            decades=(4, 8, 16),
        )


class Bench:
    """Data, a classifier and an explainer, created once and shared by the parts of the benchmark."""

    def __init__(self, *, device: str, sizes: SpeedSizes, seed: int) -> None:
        from sparcets.training.device import resolve_device

        self.device, self.sizes, self.seed = resolve_device(device), sizes, seed
        self.X, self.y = series(sizes.n_series, *sizes.shape, seed=seed)
        self._created: dict[str, Any] = {}

    def machine(self) -> dict[str, Any]:
        """Return the row that describes the machine, the versions and the data."""
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
        """Return the classifier to explain: a bi-LSTM of the default size."""
        if "classifier" not in self._created:
            self._created["classifier"] = self.fit_classifier(self.X, self.y)
        return self._created["classifier"]

    def explainer(self) -> Any:
        """Return a fitted explainer with default settings."""
        if "explainer" not in self._created:
            self._created["explainer"] = self.fit_explainer(self.classifier(), self.X, self.y)
        return self._created["explainer"]

    def queries(self, n: int) -> FloatArray:
        """Return ``n`` series (n, time, features) that the classifier puts into class 0."""
        found = self.X[self.classifier().predict(self.X) == 0]
        return np.ascontiguousarray(np.resize(found if len(found) else self.X, (n, *self.X.shape[1:])))

    def fit_classifier(self, X: FloatArray, y: Any) -> Any:
        """Return a bi-LSTM of the default size, trained for a few steps."""
        from sparcets.core.settings import ClassifierConfig
        from sparcets.models.network import TorchClassifier

        epochs = -(-32 * self.sizes.classifier_steps // len(X))
        config = ClassifierConfig(epochs=epochs, patience=epochs, device=str(self.device), seed=self.seed)
        return TorchClassifier("bilstm", config).fit(X, y, progress=False)

    def fit_explainer(self, classifier: Any, X: FloatArray, y: Any) -> Any:
        """Return a fitted explainer with default settings."""
        from sparcets.core.settings import ExplainerConfig
        from sparcets.methods.own.explainer import Explainer

        config = ExplainerConfig().override(f"device={self.device}", f"seed={self.seed}")
        return Explainer(classifier, config).fit(X, y, progress=False)

    def with_sizes(self, sizes: SpeedSizes) -> Bench:
        """Return a bench of other sizes on the same device."""
        return type(self)(device=str(self.device), sizes=sizes, seed=self.seed)

    def rate(self, call: Callable[[], Any], times: int) -> float:
        """Return the calls per second after a warm-up; on a CPU, it stops after ``MAX_SECONDS``."""
        with self.timer() as seconds:
            for _ in range(5):  # capturing a CUDA graph takes three plain steps first
                call()
                if self.device.type == "cpu" and seconds() > MAX_SECONDS / 2:
                    break
        with self.timer() as seconds:
            done = 0
            while done < times:
                call()
                done += 1
                if (
                    self.device.type == "cpu" and seconds() > MAX_SECONDS
                ):  # on a GPU, reading the time would wait for it
                    break
            return done / seconds()

    @contextmanager
    def timer(self) -> Iterator[Callable[[], float]]:
        """Yield a function that returns the seconds since the start, after waiting for the device."""
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
    """Return noise (n, time, features) and labels of two classes; in class 1, half of the features are shifted by 1.

    The classes are learnt in seconds.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, n_steps, n_features)).astype(np.float32)
    y = np.arange(n) % 2
    X[y == 1, :, : (n_features + 1) // 2] += 1.0
    return X, y


def memory_of_stream(explainer: Any, queries: FloatArray, n: int, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield rows: peak memory of explaining ``n`` queries, its growth after the first tenth, and the rate.

    Parameters
    ----------
    explainer
        Fitted explainer of a ``TorchClassifier``.
    queries
        Series (batch, time, features), repeated until there are ``n``.
    n
        Number of queries.
    folder
        Folder for the memory map and the answers; needs three times the size of the queries.
    """
    _peak()  # raises where it cannot be read
    explainer.classifier.save(folder / "classifier")
    explainer.save(folder / "explainer")
    shape = (n, *queries.shape[1:])
    X = np.lib.format.open_memmap(folder / "X.npy", "w+", queries.dtype, shape)  # type: ignore[no-untyped-call]
    for start in range(0, n, len(queries)):
        X[start : start + len(queries)] = queries[: n - start]
    X.flush()
    del X
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    worker = context.Process(target=_stream, args=(folder, str(explainer.config.device), sender))
    with starting_process():
        worker.start()
    sender.close()
    try:
        early, peak, seconds = receiver.recv()
    except EOFError as error:
        raise RuntimeError("the process that measures memory died, perhaps for lack of memory") from error
    finally:
        worker.join()
    name = f"{n:,} queries from a memory map to a folder"
    yield {"name": f"{name}: peak", "value": peak / 2**20, "unit": "MiB"}
    yield {"name": f"{name}: growth after the first tenth", "value": (peak - early) / 2**20, "unit": "MiB"}
    yield {"name": f"{name}: rate", "value": (n - n // 10) / seconds, "unit": "explanations/s"}


def _peak() -> int:
    """Return the peak memory of this process, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss would include the peak of the parent process
        lines = dict(line.split(":", 1) for line in status.read_text(encoding="utf-8").splitlines())
        return 1024 * int(lines["VmHWM"].split()[0])
    try:
        import resource
    except ImportError as error:
        raise CapabilityError("peak memory cannot be read here: there is neither /proc nor getrusage.") from error
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, kibibytes elsewhere
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _stream(folder: Path, device: str, sender: Any) -> None:
    import time

    from sparcets.methods.folder import load
    from sparcets.models.network import load_classifier

    explainer = load(folder / "explainer", classifier=load_classifier(folder / "classifier", device=device))
    X = np.load(folder / "X.npy", mmap_mode="r")
    explainer.explain(X[: len(X) // 10], target=1, out=folder / "tenth", progress=False)
    early, start = _peak(), time.perf_counter()
    explainer.explain(X[len(X) // 10 :], target=1, out=folder / "rest", progress=False)
    sender.send((early, _peak(), time.perf_counter() - start))


def plain_step(
    X: FloatArray, classifier: TorchClassifier, target: int, device: torch.device, *, batch: int = 32, hidden: int = 256
) -> Callable[[], float]:
    """Return a function that performs one training step of the paper's SPARCE and returns the sum of all losses.

    The reference for training speeds, in which nothing is optimised: eager execution, generator and discriminator on
    the device, the explained classifier on the CPU, and every loss is copied to the CPU after each step.

    Parameters
    ----------
    X
        Training series (batch, time, features), standardised; queries and real series are both drawn from them.
    classifier
        The classifier to explain; it runs on the CPU.
    target
        Target class.
    device
        Device of generator and discriminator.
    batch, hidden
        The paper's sizes.
    """
    import torch
    import torch.nn.functional as F
    from torch import nn

    n_features = X.shape[2]
    series = torch.tensor(X, dtype=torch.float32)
    explained = classifier._fitted().cpu()
    recurrent = nn.LSTM(n_features, hidden, 2, batch_first=True, bidirectional=True, dropout=0.4).to(device)
    up, down = (nn.Linear(2 * hidden, n_features).to(device) for _ in range(2))
    reader = nn.LSTM(n_features, 16, batch_first=True, bidirectional=True).to(device)
    output = nn.Linear(32, 1).to(device)
    generator = nn.ModuleList([recurrent, up, down])
    discriminator = nn.ModuleList([reader, output])
    adam = {"lr": 2e-4, "betas": (0.5, 0.999)}
    generator_adam = torch.optim.Adam(generator.parameters(), **adam)  # type: ignore[arg-type]
    discriminator_adam = torch.optim.Adam(discriminator.parameters(), **adam)  # type: ignore[arg-type]
    rng = torch.Generator().manual_seed(0)

    def real_logit(x: torch.Tensor) -> torch.Tensor:
        return output(reader(x)[0][:, -1])[:, 0]  # type: ignore[no-any-return]

    def step() -> float:
        rows = torch.randint(len(series), (2, batch), generator=rng)
        query, real = series[rows[0]].to(device), series[rows[1]].to(device)
        h = recurrent(query)[0]
        delta = torch.relu(up(h)) - torch.relu(down(h))
        counterfactual = query + delta
        adversarial = F.softplus(-real_logit(counterfactual)).mean()
        log_proba = explained(counterfactual.cpu()).log_softmax(1)
        classification = F.nll_loss(log_proba, torch.full((batch,), target)).to(device)
        similarity = delta.abs().mean()
        sparsity = (delta != 0).float().mean()
        smoothness = torch.linalg.vector_norm(torch.diff(delta, dim=1), dim=2).mean() / n_features
        loss = adversarial + classification + similarity + sparsity + smoothness
        generator_adam.zero_grad()
        loss.backward()
        generator_adam.step()
        fake_logit = real_logit(counterfactual.detach())
        discrimination = (F.softplus(-real_logit(real)) + F.softplus(fake_logit)).mean() / 2
        discriminator_adam.zero_grad()
        discrimination.backward()  # type: ignore[no-untyped-call]
        discriminator_adam.step()
        terms = (adversarial, classification, similarity, sparsity, smoothness, discrimination)
        return sum(term.item() for term in terms)

    return step
