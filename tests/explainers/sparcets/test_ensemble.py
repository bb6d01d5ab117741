"""Witnesses: several architectures, trained alike, of seeds that no judge has."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from sparcets.classifiers import witnesses as module
from sparcets.explainers.sparcets.ensemble import WITNESS_CONFIG, WITNESSES, train_witnesses
from sparcets.errors import CapabilityError, ConfigError, LabelError
from sparcets.evaluation.judges import judge_config
from sparcets.testing.data import make_series
from sparcets.training.cuda import WARM_UP, CapturedStep

X, Y = make_series(60)
NEW, TRUTH = make_series(60, seed=1)


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(module, "WITNESS_CONFIG", replace(WITNESS_CONFIG, hidden=4, epochs=2))


def states(witnesses):
    return [{k: v.numpy().copy() for k, v in w._network.state_dict().items()} for w in witnesses]


def same(a, b):
    return all(np.array_equal(v, b[k]) for k, v in a.items())


def test_the_settings_that_users_get_are_learnt_with():
    (witness,) = train_witnesses(X, Y, n=1, device="cpu")
    assert (witness.predict(NEW) == TRUTH).mean() > 0.95
    assert (witness.config.noise, witness.config.label_smoothing) == (0.3, 0.05)


@pytest.mark.usefixtures("quick")
def test_architectures_come_in_order_and_the_first_ones_are_the_same_whatever_the_number():
    five = train_witnesses(X, Y, n=5, seed=3, device="cpu")
    assert [w.architecture for w in five] == [*WITNESSES, "fcn"]
    assert len({w.config.seed for w in five}) == 5
    assert not same(*(states(five)[i] for i in (0, 4)))
    torch.manual_seed(9)
    two = train_witnesses(X, Y, n=2, seed=3, device="cpu")
    assert all(same(a, b) for a, b in zip(states(two), states(five), strict=False))
    assert not same(states(train_witnesses(X, Y, n=1, seed=4, device="cpu"))[0], states(two)[0])
    assert train_witnesses(X, Y, n=0) == []


@pytest.mark.usefixtures("quick")
def test_no_witness_is_a_judge():
    judge = judge_config(len(X))
    for seed in range(20):
        (witness,) = train_witnesses(X[:6], Y[:6], n=1, seed=seed, device="cpu")
        assert witness.config.seed != judge.seed


@pytest.mark.usefixtures("quick")
def test_noise_is_what_is_asked_for():
    loud, plain = (train_witnesses(X, Y, n=1, noise=noise, device="cpu") for noise in (2.0, 0.0))
    assert not same(states(loud)[0], states(plain)[0])
    assert loud[0].config.noise == 2.0


@pytest.mark.usefixtures("quick")
def test_names_give_the_order_of_the_classes_and_one_may_have_no_series():
    words = np.array(["calm", "wild", "brisk"])[Y]
    by_name = train_witnesses(X, words, class_names=("calm", "wild", "brisk"), n=1, device="cpu")
    by_index = train_witnesses(X, Y, n=1, device="cpu")
    assert by_name[0].class_names == ("calm", "wild", "brisk") and same(states(by_name)[0], states(by_index)[0])
    (wider,) = train_witnesses(X[Y != 1], Y[Y != 1], class_names=("calm", "wild", "brisk"), n=1, device="cpu")
    assert wider.predict_proba(X[:2]).shape == (2, 3)
    with pytest.raises(LabelError, match="class 1"):
        train_witnesses(X[Y != 1], Y[Y != 1], n=1)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("i", range(4))
def test_gradients_reach_the_series_and_padding_never_matters(i):
    lengths = np.where(np.arange(60) % 2, 20, 14)
    loud = X.copy()
    loud[lengths == 14, 14:] = 1e3
    a, b = (train_witnesses(series, Y, lengths=lengths, n=4, device="cpu")[i] for series in (X, loud))
    assert same(states([a])[0], states([b])[0])
    x = torch.tensor(X[:4], requires_grad=True)
    a.log_proba(x, torch.tensor(lengths[:4]))[:, 0].sum().backward()
    assert x.grad.abs().sum() > 0 and not x.grad[0, 14:].any()
    assert all(p.grad is None for p in a._network.parameters())


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device")
@pytest.mark.usefixtures("quick")
def test_they_can_be_asked_inside_a_cuda_graph():
    witnesses = train_witnesses(X, Y, n=4, device="cuda")
    device = witnesses[0].device

    class Ask:
        names = ("loss",)

        def update(self, batch):
            x = batch["x"].clone().requires_grad_()
            loss = sum(w.log_proba(x)[:, 0].mean() for w in witnesses)
            (gradient,) = torch.autograd.grad(loss, x)
            return torch.stack([loss.detach() + gradient.abs().sum()])

        def validate(self):
            return {}

    plain, captured = Ask(), CapturedStep(Ask(), device)
    for k in range(WARM_UP + 3):
        batch = {"x": torch.tensor(X[10 * k : 10 * k + 10], device=device)}
        torch.testing.assert_close(captured.update(batch), plain.update(batch), rtol=1e-3, atol=1e-4)
    assert captured._graph is not None


@pytest.mark.parametrize("n", [-1, 1.5, True, "2"])
def test_a_number_of_witnesses_that_cannot_be(n):
    with pytest.raises(ConfigError, match="n must be a number of witnesses, 0 or more"):
        train_witnesses(X, Y, n=n)


def test_mistakes_show_before_any_training(monkeypatch):
    monkeypatch.delattr(module.TorchClassifier, "_learn")
    with pytest.raises(ConfigError, match=r"'noise' must be >= 0, got -0.1"):
        train_witnesses(X, Y, noise=-0.1)
    with pytest.raises(CapabilityError, match="no device 'tpu9'"):
        train_witnesses(X, Y, device="tpu9")
