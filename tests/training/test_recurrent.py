"""Bidirectional layers: the last step alone is the last of all."""

import pytest
import torch
from torch import nn

from sparcets.training.recurrent import BiGru, BiLstm, Recurrent


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("cell", [nn.LSTM, nn.GRU])
def test_the_last_step_alone_is_the_last_of_all(cell, layers):
    torch.manual_seed(0)
    network = Recurrent(3, 5, layers, 0.0, cell)
    x = torch.randn(4, 7, 3, requires_grad=True)
    whole, alone = network(x)[:, -1], network.last(x)
    torch.testing.assert_close(alone, whole)
    (a,), (b,) = (torch.autograd.grad((h * h).sum(), x) for h in (alone, whole))
    torch.testing.assert_close(a, b)


@pytest.mark.parametrize("kind", [BiLstm, BiGru])
def test_full_lengths_give_the_logits_of_none(kind):
    torch.manual_seed(0)
    network = kind(3, 2, 4, 2, 0.0).eval()
    x = torch.randn(4, 7, 3)
    torch.testing.assert_close(network(x), network(x, torch.full((4,), 7)))
