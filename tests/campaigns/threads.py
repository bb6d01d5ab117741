"""Many threads at once: each gives what one thread gives, bit for bit, and everything is left as it was."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import sparcets as sp
from sparcets.evaluation.families import FamilyJudge
from sparcets.methods import EXPLAINERS
from sparcets.methods.base import BaseExplainer
from sparcets.models.base import Classifier
from sparcets.testing.data import make_series
from tests.campaigns.material import quick
from tests.campaigns.registry import OK, Trial, campaign
from tests.global_state import global_state

N_THREADS = 8
EACH = 3  # calls of a thread in a round, one after the other
MODELS = ("wrapped", "bigru", "transformer")
KINDS = {"explain": 0.4, "predict": 0.25, "predict_proba": 0.25, "fit": 0.07, "evaluate": 0.03}  # how often
X, Y = make_series(36, n_steps=10, seed=0)
QUERIES = make_series(6, n_steps=10, seed=1)[0]


class Net(nn.Module):
    """Its answers show whether it was in evaluation mode: batch normalisation, dropout, and a pause between."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.drop, self.out = nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 3)
        self.norm.running_var.fill_(0.5)
        with torch.no_grad():
            self.out.weight.copy_(8 * torch.eye(3, 4))
            self.out.bias.zero_()

    def forward(self, x: Tensor) -> Tensor:
        h = self.norm(x.mean(1))
        threading.Event().wait(1e-4)  # lets other threads run in the middle of a pass
        return self.out(self.drop(h))


class Shared:
    """A model, its explainers and what they give in one thread; made on use, then kept."""

    def __init__(self, model: str) -> None:
        self.module: nn.Module = Net()
        self.classifier: Classifier = sp.wrap(self.module, n_classes=3)
        if model != "wrapped":
            made = sp.TorchClassifier(model, sp.ClassifierConfig.tiny().override("epochs=4")).fit(X, Y)
            self.classifier, self.module = made, made._fitted()
        self._explainers: dict[str, BaseExplainer[Any]] = {}
        self._expected: dict[tuple[str, str, int], list[Any]] = {}

    def explainer(self, method: str) -> BaseExplainer[Any]:
        """Return the explainer that all threads share."""
        if method not in self._explainers:
            self._explainers[method] = quick(method, self.classifier, batch_size=2).fit(X, Y, progress=False)
        return self._explainers[method]

    @cached_property
    def evaluated(self) -> tuple[sp.Explanation, sp.Dataset, dict[str, Any]]:
        """Return answers, data and judges: what ``evaluate`` takes."""
        rows = np.arange(len(X))
        data = sp.Dataset.from_rows(X, Y, train=rows, test=rows[:9])
        judges = {"statistics": FamilyJudge("statistics").fit(data), "same": self.classifier}
        return self.explainer("nearest").explain(data.X_test), data, judges

    def call(self, kind: str, method: str, k: int) -> list[Any]:
        """Make a call, and return what it gives as arrays and plain values."""
        part = QUERIES[k : k + 2]
        if kind == "predict":
            return [self.classifier.predict(part)]
        if kind == "predict_proba":
            return [self.classifier.predict_proba(part)]
        if kind == "evaluate":
            e, data, judges = self.evaluated
            scores = sp.evaluate(e, data, classifier=self.classifier, judges=judges, progress=False)
            return [scores.per_query.to_csv(), repr(scores.summary), repr(scores.judges), scores.notes]
        if kind == "fit":
            state = quick(method, self.classifier).fit(X, Y, progress=False)._state()
            return [value for name, value in sorted(state.items())]
        e = self.explainer(method).explain(part, progress=False)
        names = ("query", "counterfactual", "status", "reason", "proba_before", "proba_after", "support")
        return [*(getattr(e, name) for name in names), *e.plausibility.values()]

    def expected(self, *what: Any) -> list[Any]:
        """Return what a call gives in one thread."""
        if what not in self._expected:
            self._expected[what] = self.call(*what)
        return self._expected[what]


@campaign("threads give what one thread gives", trials=2_016, dose=N_THREADS * EACH, parts=4)
def run(trials: int, rng: np.random.Generator, folder: Path) -> Iterator[Trial]:
    """Call one model and its explainers from eight threads at once; every call is a trial."""
    shared: dict[str, Shared] = {}
    few = trials <= N_THREADS * EACH  # then of one model, without the methods that take long to fit
    for number in range(-(-trials // (N_THREADS * EACH))):
        model = MODELS[0] if few else str(rng.choice(MODELS))
        if model not in shared:
            shared[model] = Shared(model)
        one, training = shared[model], bool(rng.integers(2))
        methods = [name for name in EXPLAINERS if name != "sparcets"] if few else list(EXPLAINERS)
        calls = [
            (str(rng.choice(list(KINDS), p=list(KINDS.values()))), str(rng.choice(methods)), int(rng.integers(4)))
            for _ in range(N_THREADS * EACH)
        ]
        calls = [(kind, "gan" if (kind, method) == ("fit", "sparcets") else method, k) for kind, method, k in calls]
        where = f"round {number} of {trials} calls, {model}, {'training' if training else 'evaluation'} mode"
        yield from check_round(one, calls, training, where)


def check_round(shared: Shared, calls: Sequence[tuple[str, str, int]], training: bool, where: str) -> list[Trial]:
    """Make the calls in eight threads that begin together; return one outcome each."""
    shared.module.train(training)
    with torch_threads(2):
        expected = [shared.expected(*call) for call in calls]
        before = global_state(shared.module)
        found = in_threads(lambda call: shared.call(*call), calls)
        after = global_state(shared.module)
    left = [name for name in before if before[name] != after[name]]
    trials = []
    for call, one, other in zip(calls, found, expected, strict=True):
        problem = f"{type(one).__name__}: {one}" if isinstance(one, Exception) else ""
        if not problem and not same(one, other):
            problem = "another result than in one thread"
        trials.append(Trial(f"{where}, {call}: {problem}") if problem else OK)
    if left:
        trials[0] = Trial(f"{where}, {calls}: {', '.join(left)} is not as before")
    return trials


def in_threads(call: Callable[[Any], Any], arguments: Sequence[Any], n: int = N_THREADS) -> list[Any]:
    """Return results or errors of calls in ``n`` threads that begin together and switch often."""
    together = threading.Barrier(n)

    def several(part: Sequence[Any]) -> list[Any]:
        results: list[Any] = []
        together.wait(60)
        for argument in part:
            try:
                results.append(call(argument))
            except Exception as error:  # whatever it is, it is the result of this call
                results.append(error)
        return results

    parts = [arguments[i::n] for i in range(n)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    try:
        with ThreadPoolExecutor(n) as pool:
            found = list(pool.map(several, parts))
    finally:
        sys.setswitchinterval(interval)
    return [found[i % n][i // n] for i in range(len(arguments))]


@contextmanager
def torch_threads(n: int) -> Iterator[None]:
    """Give torch several threads, as users have them."""
    before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def same(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Return whether results are the same, bit for bit."""

    def bits(value: Any) -> Any:
        return (value.dtype, value.shape, value.tobytes()) if isinstance(value, np.ndarray) else value

    return [bits(value) for value in a] == [bits(value) for value in b]
