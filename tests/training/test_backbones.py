"""Backbones: one vector per step, from the whole series."""

import pytest
import torch

from sparcets.training.generator import build_backbone


@pytest.mark.parametrize("kind", ["lstm", "gru", "tcn"])
def test_every_step_of_a_backbone_depends_on_past_and_future(kind):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        built = build_backbone(kind, 5, 6, 1, 0.0).eval()
        x = torch.randn(1, 9, 5, requires_grad=True)
    states = built(x)
    assert states.shape == (1, 9, 12)
    states[0, 4].sum().backward()
    assert (x.grad[0] != 0).any(1).all()
