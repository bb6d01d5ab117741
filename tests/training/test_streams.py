"""Side by side: the same results in the same order, and on a GPU nobody overtakes what it needs."""

import pytest
import torch

from sparcets.training.cuda import side_by_side

CPU = torch.device("cpu")


def test_results_come_in_the_order_of_the_calls():
    assert side_by_side([lambda i=i: i * i for i in range(5)], CPU) == [0, 1, 4, 9, 16]
    assert side_by_side([], CPU) == [] and side_by_side([lambda: None], CPU) == [None]


def test_an_error_in_one_is_not_swallowed():
    with pytest.raises(ZeroDivisionError):
        side_by_side([lambda: 1, lambda: 1 // 0], CPU)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine")
def test_on_a_gpu_values_and_gradients_are_those_of_one_after_the_other():
    device = torch.device("cuda")
    layers = [torch.nn.Linear(64, 64, device=device) for _ in range(6)]
    x = torch.randn(512, 64, device=device, requires_grad=True)

    def work(layer):
        def run():
            h = x * 2
            for _ in range(20):
                h = torch.tanh(layer(h))
            return h

        return run

    alone = torch.stack([work(layer)() for layer in layers]).square().sum()
    alone.backward()
    expected, x.grad = x.grad, None
    for _ in range(5):
        together = torch.stack(side_by_side([work(layer) for layer in layers], device)).square().sum()
        together.backward()
        torch.testing.assert_close(together, alone)
        torch.testing.assert_close(x.grad, expected)
        x.grad = None
