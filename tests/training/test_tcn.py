"""The causal stack: no step sees a later one, and it sees exactly as far back as its kernels reach."""

import torch

from sparcets.training.convolutional import KERNEL, CausalStack


def stack(blocks):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return CausalStack(3, 8, blocks, dropout=0.2).double().eval()


def test_no_step_depends_on_a_later_one():
    net, x = stack(3), torch.randn(2, 40, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    before = net(x)
    for t in (0, 17, 39):
        changed = x.clone()
        changed[:, t:] += 1.0
        after = net(changed)
        assert torch.equal(after[:, :t], before[:, :t])
        assert not torch.equal(after[:, t], before[:, t])


def test_a_step_sees_two_kernels_of_each_dilation_back_and_no_further():
    blocks = 2
    reach = 2 * (KERNEL - 1) * sum(2**i for i in range(blocks))  # 24 steps
    assert reach == 24
    x = torch.randn(64, reach + 2, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(2)).requires_grad_()
    stack(blocks)(x)[:, -1].square().sum().backward()
    seen = x.grad.abs().amax((0, 2)) > 0
    assert seen.tolist() == [False] + [True] * (reach + 1)
