"""Limb lengths, by hand and for the arms of the catching data."""

import pytest
import torch

from sparcets.core.errors import UnknownNameError
from sparcets.motion.catching import FEATURES
from sparcets.training.losses import CATCHING_ARMS, limb_lengths


def test_limb_lengths_by_hand():
    term = limb_lengths(["A_x", "A_y", "B_x", "B_y", "C_x", "C_y"], [("A", "B"), ("B", "C")])
    query = torch.tensor([[[0.0, 0, 3, 4, 3, 5], [0.0, 0, 0, 2, 0, 2]]])  # lengths 5 and 1, then 2 and 0
    other = torch.tensor([[[0.0, 0, 6, 8, 6, 9], [0.0, 0, 0, 2, 0, 2]]])  # lengths 10 and 1, then the same
    torch.testing.assert_close(term(query, other), torch.tensor([5 / 4]))
    assert term(query, query + 7).item() == pytest.approx(0, abs=1e-6)  # a body that moves as a whole keeps its limbs


def test_limb_lengths_know_the_arms_of_the_catching_data():
    term = limb_lengths(FEATURES, CATCHING_ARMS)
    query = torch.randn(2, 5, len(FEATURES), generator=torch.Generator().manual_seed(0))
    moved = query.clone().requires_grad_(True)
    bent = torch.zeros_like(query)
    bent[..., FEATURES.index("LeftWrist_x")] = 1.0
    term(query, moved + bent).sum().backward()
    touched = {FEATURES[f] for f in (moved.grad != 0).any(0).any(0).nonzero().ravel().tolist()}
    assert touched == {"LeftElbow_x", "LeftElbow_y", "LeftWrist_x", "LeftWrist_y"}
    still = query.clone().requires_grad_(True)
    term(query, still).sum().backward()
    assert torch.isfinite(still.grad).all()


def test_an_unknown_point_is_an_error_that_suggests():
    with pytest.raises(UnknownNameError, match=r"no point 'LeftElbo'. Did you mean 'LeftElbow'\?"):
        limb_lengths(FEATURES, [("LeftElbo", "LeftWrist")])
