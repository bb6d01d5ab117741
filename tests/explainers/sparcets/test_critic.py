"""The critic: it hears every step and the claim, and stays smooth while it learns."""

import pytest
import torch

from sparcets.explainers.sparcets.critic import Critic

B, T, F = 6, 12, 4


@pytest.fixture(autouse=True)
def _seeded():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def critic(layers=2, hidden=8):
    return Critic(n_features=F, n_targets=3, hidden=hidden, layers=layers)


def claims(k):
    return torch.full((B,), k)


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_one_logit_each_and_every_entry_is_heard(layers):
    built = critic(layers).eval()
    x = torch.randn(B, T, F, requires_grad=True)
    logits = built(x, claims(1))
    assert logits.shape == (B,)
    logits.sum().backward()
    assert (x.grad != 0).all()


def test_the_claim_enters_by_projection():
    built, x = critic().eval(), torch.randn(B, T, F)
    with torch.no_grad():
        logits = torch.stack([built(x, claims(k)) for k in range(3)])
        h = built.layers[0](x.transpose(1, 2))
        h = torch.nn.functional.leaky_relu(h, 0.2)
        pooled = (h + torch.nn.functional.leaky_relu(built.layers[1](h), 0.2)).mean(2)
        table = built.claimed.weight
        for k in range(3):  # a claim adds the inner product of its row and the pooled states, and nothing else
            torch.testing.assert_close(logits[k] - logits[0], pooled @ (table[k] - table[0]))
    assert not torch.allclose(logits[0], logits[1])
    mixed = built(x, torch.tensor([0, 1, 2, 0, 1, 2]))
    torch.testing.assert_close(mixed, logits[torch.tensor([0, 1, 2, 0, 1, 2]), torch.arange(B)])


def test_every_weight_keeps_a_spectral_norm_of_about_one_while_it_learns():
    built = critic(3)
    optimiser = torch.optim.Adam(built.parameters(), lr=0.05)
    real, fake = torch.randn(B, T, F) + 3, torch.randn(B, T, F)
    first = None
    for _ in range(40):
        optimiser.zero_grad()
        loss = (built(fake, claims(0)) - built(real, claims(0))).mean()
        first = loss.item() if first is None else first
        loss.backward()
        optimiser.step()
    assert loss.item() < first - 0.5  # it does learn
    built.eval()
    grown = []
    for module in (*built.layers, built.head, built.claimed):
        assert torch.linalg.matrix_norm(module.weight.flatten(1), ord=2).item() <= 1.1
        grown.append(torch.linalg.matrix_norm(module.parametrizations.weight.original.flatten(1), ord=2).item())
    assert max(grown) > 1.5  # what lies beneath has grown: it is the normalisation that holds


def test_no_step_of_a_series_moves_the_logit_far():
    built = critic(2)
    built(torch.randn(B, T, F), claims(0))
    built.eval()
    x, far = torch.randn(B, T, F), torch.zeros(B, T, F)
    far[:, 5, 2] = 100.0
    with torch.no_grad():
        apart = (built(x + far, claims(0)) - built(x, claims(0))).abs()
    # Five taps of norm 1, then h + conv(h) with five more, over T steps; twice, for the head and the claim.
    assert (apart <= 100 * 5 * (1 + 5) * 2 / T).all() and (apart > 0).all()
