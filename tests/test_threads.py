"""One explainer, or several, called from many threads: the answers of one thread, and a model as it was."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pytest
import torch
from torch import nn

import sparcets as sp
from sparcets.methods import EXPLAINERS
from sparcets.testing.data import make_series
from tests.campaigns.material import quick

X, Y = make_series(36, n_steps=10, seed=0)
QUERIES = make_series(6, n_steps=10, seed=1)[0]


class Net(nn.Module):
    """Its answers show whether it was in evaluation mode: batch normalisation, dropout, and a pause between."""

    def __init__(self):
        super().__init__()
        self.norm, self.drop, self.out = nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 3)
        self.norm.running_var.fill_(0.5)
        with torch.no_grad():
            self.out.weight.copy_(8 * torch.eye(3, 4))
            self.out.bias.zero_()

    def forward(self, x):
        h = self.norm(x.mean(1))
        threading.Event().wait(1e-4)  # lets other threads run in the middle of a pass
        return self.out(self.drop(h))


def in_threads(call, arguments, n=8):
    """Return the results of calls in ``n`` threads that begin together and switch often."""
    together = threading.Barrier(n)

    def several(part):
        together.wait(60)
        return [call(argument) for argument in part]

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    try:
        with ThreadPoolExecutor(n) as pool:
            found = list(pool.map(several, [arguments[i::n] for i in range(n)]))
    finally:
        sys.setswitchinterval(interval)
    return [found[i % n][i // n] for i in range(len(arguments))]


@cache
def fitted(method):
    """Return a module, and an explainer that was fitted for it."""
    module = Net()
    return module, quick(method, sp.wrap(module, n_classes=3)).fit(X, Y)


def arrays(e):
    return [getattr(e, name) for name in ("counterfactual", "status", "proba_before", "proba_after")]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("method", list(EXPLAINERS))
def test_one_explainer_in_threads_gives_the_answers_of_one(method, training, left_alone):
    module, explainer = fitted(method)
    module.train(training)
    expected = [explainer.explain(QUERIES[k : k + 2]) for k in range(3)]
    with left_alone(module):
        found = in_threads(lambda i: explainer.explain(QUERIES[i % 3 : i % 3 + 2]), range(8 if method == "ics" else 16))
    for i, one in enumerate(found):
        for array, other in zip(arrays(one), arrays(expected[i % 3]), strict=True):
            assert array.dtype == other.dtype and array.tobytes() == other.tobytes()
    assert np.array_equal(found[0].valid, explainer.classifier.predict(found[0].counterfactual) == found[0].target)


@pytest.mark.parametrize("method", ["sparce", "sparcets"])
def test_fits_in_threads_give_the_result_of_one_after_the_other(method, left_alone):
    module, expected = fitted(method)
    module.train()
    with left_alone(module):
        found = in_threads(lambda _: quick(method, expected.classifier).fit(X, Y)._state(), range(2), n=2)
    before = expected._state()
    for after in found:
        assert before.keys() == after.keys()
        assert [name for name in before if not np.array_equal(before[name], after[name])] == []
