"""One supervised step: what it learns from, what it reports, what it leaves alone."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from sparcets.core.settings import ClassifierConfig
from sparcets.models.network import TorchClassifier
from sparcets.testing.data import make_series
from sparcets.training.architectures import Fcn
from sparcets.training.steps import ClassifierStep

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
    return ClassifierStep(network, X, Y, lengths, (np.array(train), np.array(watch)), ClassifierConfig(lr=lr))


def test_the_loss_is_that_of_the_training_rows_and_its_gradient_is_clipped():
    network = LastStep()
    expected = F.cross_entropy(network(X[[4, 1]]), Y[[4, 1]]).item()
    loss = step(network, train=(4, 0, 1)).update(rows(torch.tensor([0, 2])))
    assert loss.item() == pytest.approx(expected) and not loss.requires_grad
    network = LastStep()
    s = step(network)
    s.x = X * 1e6
    s.update(rows(torch.arange(4)))
    norm = torch.stack([p.grad.norm() for p in network.parameters()]).norm()
    assert norm.item() == pytest.approx(1.0, abs=1e-3)


def test_a_step_moves_every_weight_and_many_steps_learn():
    network = fcn()
    before = copy.deepcopy(network.state_dict())
    s = step(network)
    losses = [s.update(rows(torch.arange(4))).item() for _ in range(30)]
    assert all(not torch.equal(before[name], p) for name, p in network.named_parameters())
    assert losses[-1] < 0.1 * losses[0]


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


def spying(network):
    """Keep what the network is given."""
    seen = []
    network.register_forward_pre_hook(lambda _, given: seen.append(given[0].detach().clone()))
    return seen


def noisy(network, **settings):
    y, lengths = settings.pop("y", Y), settings.pop("lengths", None)
    split = np.arange(4), np.array([4, 5])
    return ClassifierStep(network, X, y, lengths, split, ClassifierConfig(lr=0.1, **settings))


def test_noise_is_gaussian_of_the_given_size_and_drawn_with_the_seed_alone():
    network = LastStep()
    seen, s = spying(network), noisy(network, noise=0.5)
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        s.update(rows(torch.tensor([2, 0])))
    torch.manual_seed(1)
    own = X[[2, 0]].std(dim=1, keepdim=True, correction=0)  # of each series: what hardly moves is not drowned
    torch.testing.assert_close(seen[0], X[[2, 0]] + 0.5 * own * torch.randn(2, 5, 2))
    assert torch.equal(seen[0], seen[1]) and not torch.equal(seen[0], seen[2])


def test_noise_leaves_padding_and_what_is_watched_alone():
    network, lengths = LastStep(), torch.tensor([2, 2, 3, 4, 5, 1])
    seen, s = spying(network), noisy(network, noise=0.5, lengths=lengths)
    s.update(rows(torch.arange(4)))
    s.validate()
    for i, end in enumerate(lengths[:4]):
        assert torch.equal(seen[0][i, end:], X[i, end:]) and (seen[0][i, :end] != X[i, :end]).all()
    assert torch.equal(seen[1], X[[4, 5]])


def test_label_smoothing_and_probabilities_as_labels_by_hand():
    # Two classes and a share s: the label counts 1 - s / 2, the other class s / 2.
    network = LastStep()
    p = network(X[:4]).log_softmax(1).detach()
    right, wrong = p[torch.arange(4), Y[:4]], p[torch.arange(4), 1 - Y[:4]]
    plain = noisy(LastStep(), label_smoothing=0.2).validate()
    assert plain == noisy(LastStep()).validate()
    loss = noisy(network, label_smoothing=0.2).update(rows(torch.arange(4)))
    assert loss.item() == pytest.approx(-(0.9 * right + 0.1 * wrong).mean().item())
    soft = torch.tensor([[0.7, 0.3], [0.2, 0.8], [1.0, 0.0], [0.5, 0.5], [0.9, 0.1], [0.4, 0.6]])
    network = LastStep()
    p, watched = network(X[:4]).log_softmax(1).detach(), network(X[4:]).log_softmax(1).detach()
    s = noisy(network, y=soft)
    values = s.validate()
    assert values["validation_loss"] == pytest.approx(-(soft[4:] * watched).sum(1).mean().item())
    assert values["validation_error"] == (watched.argmax(1) != torch.tensor([0, 1])).double().mean().item()
    assert s.update(rows(torch.arange(4))).item() == pytest.approx(-(soft[:4] * p).sum(1).mean().item())


@pytest.mark.parametrize("architecture", ["fcn", "bigru"])
def test_the_settings_reach_the_training_and_the_same_seed_gives_the_same_weights(architecture):
    series, labels = make_series(40, n_steps=12)

    def weights(**changes):
        config = replace(ClassifierConfig.tiny(), device="cpu", epochs=2, **changes)
        return TorchClassifier(architecture, config).fit(series, labels)._network.state_dict()

    def same(a, b):
        return all(torch.equal(v, b[k]) for k, v in a.items())

    plain, loud, soft = weights(), weights(noise=0.5), weights(label_smoothing=0.3)
    assert same(loud, weights(noise=0.5)) and same(plain, weights(noise=0.0, label_smoothing=0.0))
    assert not same(plain, loud) and not same(plain, soft)
