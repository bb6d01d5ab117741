"""Discriminators: one logit from the series and the class it claims."""

import pytest
import torch

from sparcets.training.generator import Discriminator

B, T, F = 4, 9, 5


@pytest.fixture(autouse=True)
def _seeded():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def discriminator(backbone="lstm", n_targets=3):
    return Discriminator(n_features=F, n_targets=n_targets, backbone=backbone, hidden=6, layers=1)


def targets(k):
    return torch.full((B,), k)


@pytest.mark.parametrize("backbone", ["lstm", "gru", "tcn"])
def test_the_logit_depends_on_the_claimed_class_and_on_every_series(backbone):
    built, x = discriminator(backbone), torch.randn(B, T, F)
    logits = built(x, targets(0))
    assert logits.shape == (B,)
    assert not torch.allclose(logits, built(x, targets(2)))
    moved = x.clone()
    moved[:, 2, 1] += 1
    assert (logits != built(moved, targets(0))).all()


def test_with_a_single_class_the_claim_does_not_matter():
    built, x = discriminator(n_targets=1), torch.randn(B, T, F)
    assert torch.equal(built(x, targets(0)), built(x, targets(7)))
    assert len(list(built.parameters())) == len(list(discriminator(n_targets=2).parameters())) - 1
