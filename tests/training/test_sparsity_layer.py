"""The sparsity layer, by hand."""

import torch

from sparcets.training.generator import SparsityLayer


def layer():
    """Return a layer with δ_pos = (h0, h1 − 1) and δ_neg = (−h0 − 1, 1)."""
    result = SparsityLayer(2, 2)
    with torch.no_grad():
        result.positive.weight.copy_(torch.eye(2))
        result.positive.bias.copy_(torch.tensor([0.0, -1.0]))
        result.negative.weight.copy_(torch.tensor([[-1.0, 0.0], [0.0, 0.0]]))
        result.negative.bias.copy_(torch.tensor([-1.0, 1.0]))
    return result


def test_by_hand_on_two_series_of_three_steps():
    h = torch.tensor([[[2.0, 0.0], [0.5, 3.0], [-0.5, 2.0]], [[-3.0, 1.0], [0.0, 1.5], [-1.0, 5.0]]])
    #   relu(h0) - relu(-h0 - 1)    relu(h1 - 1) - 1
    expected = [[[2.0, -1.0], [0.5, 1.0], [0.0, 0.0]], [[-2.0, -1.0], [0.0, -0.5], [0.0, 3.0]]]
    assert layer()(h).tolist() == expected


def test_zeros_are_exact_and_both_signs_possible():
    torch.manual_seed(0)
    delta = SparsityLayer(4, 3)(torch.randn(5, 7, 4))
    assert (delta == 0).any() and (delta > 0).any() and (delta < 0).any()


def test_a_silent_pair_takes_no_gradient():
    built = layer()
    built(torch.tensor([[[-0.5, 5.0]]]))[..., 0].sum().backward()  # h0 in the dead zone between the two
    assert (built.positive.weight.grad == 0).all() and (built.negative.weight.grad == 0).all()
