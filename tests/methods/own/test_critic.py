"""The critic: it depends on every entry and on the class, and its weights stay normalised while it trains."""

import pytest
import torch
import torch.nn.functional as functional

from sparcets.methods.own.generator import Critic

B, T, F = 6, 12, 4


@pytest.fixture(autouse=True)
def _seeded():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def critic(layers=2, hidden=8):
    return Critic(n_features=F, n_targets=3, hidden=hidden, layers=layers)


def all_of_class(k):
    return torch.full((B,), k)


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_one_logit_per_series_that_depends_on_every_entry(layers):
    x = torch.randn(B, T, F, requires_grad=True)
    logits = critic(layers).eval()(x, all_of_class(1))
    assert logits.shape == (B,)
    logits.sum().backward()
    assert (x.grad != 0).all()


def test_the_class_enters_by_projection():
    net, x = critic().eval(), torch.randn(B, T, F)
    with torch.no_grad():
        logits = torch.stack([net(x, all_of_class(k)) for k in range(3)])
        h = functional.leaky_relu(net.layers[0](x.transpose(1, 2)), 0.2)
        pooled = (h + functional.leaky_relu(net.layers[1](h), 0.2)).mean(2)
        table = net.class_embedding.weight
        for k in range(3):  # a class adds the inner product of its row and the pooled states, and nothing else
            torch.testing.assert_close(logits[k] - logits[0], pooled @ (table[k] - table[0]))
    assert not torch.allclose(logits[0], logits[1])
    classes = torch.tensor([0, 1, 2, 0, 1, 2])
    torch.testing.assert_close(net(x, classes), logits[classes, torch.arange(B)])


def test_every_weight_keeps_a_spectral_norm_of_about_one_while_it_trains():
    net = critic(3)
    optimiser = torch.optim.Adam(net.parameters(), lr=0.05)
    real, fake = torch.randn(B, T, F) + 3, torch.randn(B, T, F)
    losses = []
    for _ in range(40):
        optimiser.zero_grad()
        loss = (net(fake, all_of_class(0)) - net(real, all_of_class(0))).mean()
        losses.append(loss.item())
        loss.backward()
        optimiser.step()
    assert losses[-1] < losses[0] - 0.5  # it does train
    net.eval()
    unnormalised = []
    for module in (*net.layers, net.head, net.class_embedding):
        assert torch.linalg.matrix_norm(module.weight.flatten(1), ord=2).item() <= 1.1
        unnormalised.append(torch.linalg.matrix_norm(module.parametrizations.weight.original.flatten(1), ord=2).item())
    assert max(unnormalised) > 1.5  # the parameters have grown: it is the normalisation that bounds the weights


def test_a_change_at_one_step_changes_the_logit_by_a_bounded_amount():
    net = critic(2)
    net(torch.randn(B, T, F), all_of_class(0))
    net.eval()
    x, change = torch.randn(B, T, F), torch.zeros(B, T, F)
    change[:, 5, 2] = 100.0
    with torch.no_grad():
        difference = (net(x + change, all_of_class(0)) - net(x, all_of_class(0))).abs()
    # Five taps of norm 1, then h + conv(h) with five more, over T steps; twice, for the head and the class.
    assert (difference <= 100 * 5 * (1 + 5) * 2 / T).all() and (difference > 0).all()
