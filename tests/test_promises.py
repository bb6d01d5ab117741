"""What is promised of every registered method: the same bits for any batch size, company and number of threads."""

import copy
from functools import cache

import numpy as np
import pytest
import torch
from torch import nn

import sparcets as sp
from sparcets.core.explanation import join
from sparcets.core.series import Scaler, Series
from sparcets.methods import EXPLAINERS
from sparcets.methods.own.prototypes import Prototypes
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule

EPOCHS = 3  # of a generator: a bad one answers as reproducibly as a good one


def noisy(n, seed):
    X, y = make_series(n, seed=seed)
    return X + np.random.default_rng(seed).normal(0, 0.5, X.shape).astype(np.float32), y


X, Y = noisy(90, seed=0)


@cache
def classifier(architecture):
    return sp.TorchClassifier(architecture, sp.ClassifierConfig.tiny()).fit(X, Y)


@cache
def queries(architecture):
    found = noisy(40, seed=1)[0]
    return found[classifier(architecture).predict(found) != 1][:18]  # more than one block of sp.Ics


def fit(method, architecture):
    kind = EXPLAINERS.load(method)
    config = kind.config_class.tiny()
    if hasattr(config, "train"):
        config = config.override(f"train.epochs={EPOCHS}")
    return kind(classifier(architecture), config).fit(X, Y)


@cache
def fitted(method):
    return fit(method, "fcn")


@cache
def answers(method):
    return fitted(method).explain(queries("fcn"), target=1)


def n_different(a, b):
    same = (a.counterfactual == b.counterfactual).all((1, 2)) & (a.status == b.status) & (a.reason == b.reason)
    return int((~same).sum())


@pytest.fixture
def _threads_as_before():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("method", EXPLAINERS)
def test_other_queries_do_not_change_an_answer(method):
    explainer, Q = fitted(method), queries("fcn")
    order = np.random.default_rng(0).permutation(len(Q))
    assert n_different(explainer.explain(Q[order], target=1), answers(method)[order]) == 0
    alone = join([explainer.explain(Q[i : i + 1], target=1) for i in range(6)])
    assert n_different(alone, answers(method)[:6]) == 0


@pytest.mark.usefixtures("_threads_as_before")
@pytest.mark.parametrize("method", EXPLAINERS)
def test_the_number_of_threads_does_not_change_an_answer(method):
    found = []
    for n in (1, 2):
        torch.set_num_threads(n)
        found.append(fit(method, "bilstm").explain(queries("bilstm")[:6], target=1))
        assert torch.get_num_threads() == n
    assert n_different(*found) == 0


@pytest.mark.usefixtures("_threads_as_before")
def test_a_classifier_does_not_depend_on_the_number_of_threads():
    torch.set_num_threads(2)
    again = sp.TorchClassifier("bilstm", sp.ClassifierConfig.tiny()).fit(X, Y)
    torch.set_num_threads(1)
    assert again.digest() == classifier("bilstm").digest()


def test_of_equally_near_prototypes_the_first_is_taken_however_many_queries_there_are():
    rng = np.random.default_rng(0)
    series = np.repeat(rng.normal(size=(4, 20, 4)).astype(np.float32), 10, axis=0)  # each ten times
    classes, rows = np.zeros(len(series), dtype=np.int64), np.arange(len(series))
    prototypes = Prototypes(Series(series), classes, rows, Scaler(np.zeros(4), np.ones(4)))
    x, target = torch.tensor(rng.normal(size=(40, 20, 4)), dtype=torch.float32), np.zeros(40, dtype=np.int64)
    together = prototypes.nearest(x, target, 6)
    alone = np.concatenate([prototypes.nearest(x[i : i + 1], target[:1], 6) for i in range(len(x))])
    assert np.array_equal(together, alone)
    assert np.array_equal(together % 10, np.tile(np.arange(6), (len(x), 1)))


class Given(nn.Module):
    """Its outputs are the first values of a series, whatever their size."""

    def __init__(self, n_outputs, dtype):
        super().__init__()
        self.n_outputs, self.one = n_outputs, nn.Parameter(torch.ones((), dtype=dtype))

    def forward(self, x):
        return self.one * x[:, 0, : self.n_outputs]


def series_of(outputs, dtype):
    return np.array(outputs, dtype=dtype)[:, None]


LOGITS = [[1, 1, 1], [1, 1, 0], [0, 1, 1], [1e-9, 2e-9, 0], [-2e-9, -3e-9, -1e-9], [3e-20, 1e-20, 4e-20]]
LOGITS.append([9e9, 9e9, 8e9])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_network_predicts_the_largest_of_its_logits_also_where_probabilities_are_equal(dtype):
    X = series_of(LOGITS, dtype)
    module = Given(3, torch.float32 if dtype is np.float32 else torch.float64)
    model = sp.wrap(module, n_classes=3)
    with torch.no_grad():
        expected = module(torch.tensor(X)).argmax(1).tolist()
    assert model.predict(X).tolist() == expected == [0, 0, 1, 1, 2, 2, 0]
    proba = model.predict_proba(X)
    assert proba.argmax(1).tolist() == expected
    np.testing.assert_allclose(proba.sum(1), 1, atol=1e-6)


def test_one_logit_or_probability_is_compared_as_the_model_does():
    X = series_of([[0.0], [1e-9], [-1e-9], [3e-20]], np.float32)
    assert sp.wrap(Given(1, torch.float32), n_classes=2).predict(X).tolist() == [0, 1, 0, 1]
    X = series_of([[0.5], [np.nextafter(np.float32(0.5), np.float32(1))], [0.25]], np.float32)
    assert sp.wrap(Given(1, torch.float32), output="sigmoid").predict(X).tolist() == [0, 1, 0]

    third = np.float32(1 / 3)
    rows = [[third, np.nextafter(third, np.float32(1)), third], [0.25, 0.25, 0.5]]
    X, model = series_of(rows, np.float32), sp.wrap(Given(3, torch.float32), output="probabilities")
    assert model.predict(X).tolist() == [1, 2]


def test_a_trained_classifier_predicts_the_largest_of_its_logits():
    model = copy.deepcopy(classifier("fcn"))
    last = model._fitted().head
    with torch.no_grad():
        last.weight *= 1e-9
        last.bias *= 1e-9
    assert np.ptp(model.predict_proba(X)) < 1e-6
    assert np.array_equal(model.predict(X), classifier("fcn").predict(X))


@pytest.mark.parametrize("method", ["nearest", "sparcets"])
def test_status_and_valid_follow_the_module_where_probabilities_are_equal(method):
    module = MeanModule(sharpness=1e-9)
    kind = EXPLAINERS.load(method)
    plain = make_series(60, seed=0)
    Q = make_series(12, seed=1)[0]
    e = kind(sp.wrap(module, n_classes=3), kind.config_class.tiny()).fit(*plain).explain(Q, target=1)
    with torch.no_grad():
        before, after = (module(torch.tensor(x)).argmax(1).numpy() for x in (e.query, e.counterfactual))
    assert np.array_equal(e.status == "unchanged", before == 1) and 0 < (before == 1).sum() < len(Q)
    assert np.array_equal(e.valid, after == 1) and e.valid.all()
    assert np.array_equal(e.predicted, before)
