"""One supervised step: what it learns from, what it reports, what it leaves alone."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from sparcets.networks.fcn import Fcn
from sparcets.training.classifier_step import ClassifierStep

X = torch.randn(6, 5, 2, generator=torch.Generator().manual_seed(0))
Y = torch.tensor([0, 1, 0, 1, 0, 1])


class LastStep(nn.Module):
    """Logits are a linear map of the last step of each series."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(2, 2)
        nn.init.constant_(self.head.weight, 0.1)
        nn.init.zeros_(self.head.bias)

    def forward(self, x, lengths=None):
        last = x[:, -1] if lengths is None else x[torch.arange(len(x)), lengths - 1]
        return self.head(last)


def rows(which):
    return {"rows": which}


def fcn():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Fcn(2, 2, hidden=3, layers=1, dropout=0.0)


def step(network, *, train=(0, 1, 2, 3), watch=(4, 5), lengths=None, lr=0.1):
    parts = {"train_rows": torch.tensor(train), "validation_rows": torch.tensor(watch)}
    return ClassifierStep(network, X, Y, lengths, lr=lr, **parts)


def test_the_loss_is_the_cross_entropy_of_the_training_rows_asked_for():
    network = LastStep()
    expected = F.cross_entropy(network(X[[4, 1]]), Y[[4, 1]]).item()
    loss = step(network, train=(4, 0, 1)).update(rows(torch.tensor([0, 2])))
    assert loss.item() == pytest.approx(expected)
    assert not loss.requires_grad


def test_lengths_reach_the_network():
    network, lengths = LastStep(), torch.tensor([1, 2, 3, 4, 5, 1])
    expected = F.cross_entropy(network(X[[1, 2]], lengths[[1, 2]]), Y[[1, 2]]).item()
    assert step(network, lengths=lengths).update(rows(torch.tensor([1, 2]))).item() == pytest.approx(expected)


def test_a_step_moves_every_weight_and_many_steps_learn():
    network = fcn()
    before = copy.deepcopy(network.state_dict())
    s = step(network)
    losses = [s.update(rows(torch.arange(4))).item() for _ in range(30)]
    assert all(not torch.equal(before[name], p) for name, p in network.named_parameters())
    assert losses[-1] < 0.1 * losses[0]


def test_a_huge_gradient_is_clipped():
    network = LastStep()
    s = step(network)
    s.x = X * 1e6
    s.update(rows(torch.arange(4)))
    norm = torch.stack([p.grad.norm() for p in network.parameters()]).norm()
    assert norm.item() == pytest.approx(1.0, abs=1e-3)


def test_validation_is_on_the_watched_rows_in_evaluation_mode_and_changes_nothing():
    network = fcn()
    before = copy.deepcopy(network.state_dict())
    values = step(network, watch=(1, 2, 5)).validate()
    logits = network.eval()(X[[1, 2, 5]])
    assert values["validation_loss"] == pytest.approx(F.cross_entropy(logits, Y[[1, 2, 5]]).item())
    assert values["validation_error"] == pytest.approx((logits.argmax(1) != Y[[1, 2, 5]]).double().mean().item())
    assert all(torch.equal(before[k], v) for k, v in network.state_dict().items())
    assert all(p.grad is None for p in network.parameters())


@pytest.mark.parametrize("n_steps", [1, 5])
def test_a_lone_series_is_learnt_from_without_statistics_of_its_own(n_steps):
    network = fcn()
    before = copy.deepcopy(network.state_dict())
    s = step(network)
    s.x = X[:, :n_steps]
    assert s.update(rows(torch.tensor([2]))).isfinite()
    after = network.state_dict()
    assert not torch.equal(before["head.weight"], after["head.weight"])
    assert all(torch.equal(before[k], after[k]) for k in before if "running" in k)
    s.update(rows(torch.tensor([0, 1])))  # with company, the statistics are those of the batch again
    assert not torch.equal(before["blocks.0.norm.running_mean"], network.state_dict()["blocks.0.norm.running_mean"])
