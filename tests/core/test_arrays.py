"""The mask of the steps within each series."""

import numpy as np

from sparcets.core.arrays import length_mask


def test_steps_within_by_hand() -> None:
    inside = length_mask(np.array([1, 4, 2]), 3, 4)
    assert inside.dtype == bool
    assert inside.astype(int).tolist() == [[1, 0, 0, 0], [1, 1, 1, 1], [1, 1, 0, 0]]


def test_without_lengths_every_step_is_inside() -> None:
    assert length_mask(None, 2, 3).tolist() == [[True] * 3] * 2
