"""What a user's model is given for series of unequal length."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

import sparcets as sp
from sparcets.core.errors import DataError
from sparcets.models.views import at_length

RNG = np.random.default_rng(0)
SERIES = [RNG.normal(size=(n, 2)).astype(np.float32) for n in (3, 5, 1, 4)]
LENGTHS = [3, 5, 1, 4]
MEANS = np.array([one.mean(0) for one in SERIES])


def proba(scores):
    weights = np.exp(np.asarray(scores, dtype=np.float64))
    return weights / weights.sum(1, keepdims=True)


def mean_of_padded(x, lengths):
    return x.sum(1) / lengths[:, None]


class ByKeyword(nn.Module):
    def forward(self, x, *, seq_lengths):
        return mean_of_padded(x, seq_lengths)


class ByPosition(nn.Module):
    def forward(self, x, how_long):
        return mean_of_padded(x, how_long)


class Packed(nn.Module):
    def forward(self, packed):
        assert isinstance(packed, PackedSequence)
        return mean_of_padded(*pad_packed_sequence(packed, batch_first=True))


class Listed(nn.Module):
    def forward(self, series):
        return torch.stack([one.mean(0) for one in series])


class Plain(nn.Module):
    def forward(self, x):
        assert not x[0, 3:].any() and not x[2, 1:].any()  # zeros, whatever the padding held
        return x.sum(1)


MODULES = [(ByKeyword(), {}), (Packed(), {"lengths": "packed"}), (Listed(), {"lengths": "list"})]
MODULES += [(ByPosition(), {"lengths": "argument"})]


@pytest.mark.parametrize(("module", "options"), MODULES, ids=lambda v: type(v).__name__)
@pytest.mark.parametrize("batch", [None, (1, 3), (6, 8)])
def test_modules_are_told_the_lengths_as_they_expect(module, options, batch):
    clf = sp.wrap(module, n_classes=2, batch=batch, **options)
    np.testing.assert_allclose(clf.predict_proba(SERIES), proba(MEANS), atol=1e-6)
    noisy = np.full((4, 7, 2), np.nan, dtype=np.float32)
    for row, one in zip(noisy, SERIES, strict=True):
        row[: len(one)] = one
    np.testing.assert_array_equal(clf.predict_proba(noisy, LENGTHS), clf.predict_proba(SERIES))
    whole = noisy[1:2, :5]
    np.testing.assert_allclose(clf.predict_proba(whole), clf.predict_proba(whole, [5]), atol=1e-7)  # not padded
    x = torch.randn(2, 6, 2, requires_grad=True)  # gradients reach true steps and no padding
    clf.log_proba(x, torch.tensor([4, 6]))[:, 0].sum().backward()
    assert (x.grad[0, :4] != 0).all() and not x.grad[0, 4:].any() and (x.grad[1] != 0).all()


def test_plain_models_are_given_zeros():
    padded = np.full((4, 6, 2), 9.0, dtype=np.float32)
    for row, one in zip(padded, SERIES, strict=True):
        row[: len(one)] = one
    sums = np.array([one.sum(0) for one in SERIES])
    clf = sp.wrap(Plain(), n_classes=2)
    np.testing.assert_allclose(clf.predict_proba(padded, LENGTHS), proba(sums), atol=1e-6)
    with torch.no_grad():
        direct = clf.log_proba(torch.tensor(padded), torch.tensor(LENGTHS)).exp()
    np.testing.assert_allclose(direct, proba(sums), atol=1e-6)
    flat = sp.wrap(lambda X: proba(X.reshape(4, -1, 2).sum(1)), layout="flat")
    np.testing.assert_allclose(flat.predict_proba(padded, LENGTHS), proba(sums), atol=1e-6)
    # Functions are told the lengths too.
    by_name = sp.wrap(lambda X, lengths: proba(mean_of_padded(X, lengths)))
    as_list = sp.wrap(lambda X: proba([one.mean(1) for one in X]), lengths="list", layout="bft")
    for clf in (by_name, as_list):
        np.testing.assert_allclose(clf.predict_proba(SERIES), proba(MEANS), atol=1e-6)


@pytest.mark.filterwarnings("ignore")  # of numba
def test_an_estimator_of_aeon_that_takes_lists_is_given_lists():
    distances = pytest.importorskip("aeon.classification.distance_based")
    before = torch.get_num_threads()
    model = distances.KNeighborsTimeSeriesClassifier(distance="dtw", n_neighbors=1)
    model.fit([np.ascontiguousarray(one.T) for one in SERIES], np.array(["a", "b", "a", "b"]))
    torch.set_num_threads(before)  # which numba has set
    clf = sp.wrap(model)
    assert clf.interface.lengths == "list" and clf.predict(SERIES).tolist() == [0, 1, 0, 1]
    assert torch.get_num_threads() == before


def test_a_trained_classifier_asks_for_lengths(tmp_path):
    X = [RNG.normal(size=(4 + i % 3, 2)).astype(np.float32) for i in range(24)]
    y = np.arange(24) % 2
    clf = sp.TorchClassifier("fcn", sp.ClassifierConfig.tiny()).fit(X, y)
    clf.save(tmp_path)
    for one in (clf, sp.load_classifier(tmp_path)):
        assert one.unequal and one.predict(X[:3]).shape == (3,) and one.predict([X[0]]).shape == (1,)
        with pytest.raises(DataError, match="fitted on series of unequal length"):
            one.predict(np.zeros((2, 6, 2), dtype=np.float32))
    equal = sp.TorchClassifier("fcn", sp.ClassifierConfig.tiny()).fit(np.stack([x[:4] for x in X]), y, lengths=[4] * 24)
    assert not equal.unequal


@pytest.mark.parametrize("model", [ByKeyword(), lambda X, lengths: proba(mean_of_padded(X, lengths))], ids=["net", "f"])
def test_a_classifier_at_one_length(model):
    clf = sp.wrap(model, n_classes=2)
    short = at_length(clf, 3, 8)
    X = RNG.normal(size=(5, 3, 2)).astype(np.float32)
    np.testing.assert_allclose(short.predict_proba(X), proba(X.mean(1)), atol=1e-6)
    assert at_length(clf, 8, 8) is clf and short.name == clf.name
    assert short.differentiable == clf.differentiable
