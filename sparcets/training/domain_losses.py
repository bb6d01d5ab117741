"""Loss terms that encode domain knowledge, to be added to the objective; constant limb lengths are the first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from sparcets.skeletons import CATCHING_ARMS, Limb, coordinates

__all__ = ["CATCHING_ARMS", "limb_lengths"]


def limb_lengths(feature_names: Sequence[str], limbs: Sequence[Limb]) -> Callable[[Tensor, Tensor], Tensor]:
    """Return a loss term for constant distances between points of the body.

    Its value is the mean over limbs and steps of the absolute difference between each limb's length and that of the
    query, in the data's own units: bones do not stretch, whatever the class.

    Parameters
    ----------
    feature_names
        Names of the features; a point ``Elbow`` has ``Elbow_x``, ``Elbow_y`` and perhaps ``Elbow_z``.
    limbs
        Pairs of points.

    Examples
    --------
    >>> term = limb_lengths(["A_x", "A_y", "B_x", "B_y"], [("A", "B")])
    >>> query = torch.tensor([[[0.0, 0.0, 3.0, 4.0]]])
    >>> term(query, torch.tensor([[[0.0, 0.0, 6.0, 8.0]]]))
    tensor([5.])
    """
    columns = {point: list(coordinates(point, feature_names)) for limb in limbs for point in limb}
    starts = [columns[a] for a, _ in limbs]
    ends = [columns[b] for _, b in limbs]

    def lengths(x: Tensor) -> Tensor:
        parts = [torch.linalg.vector_norm(x[..., a] - x[..., b], dim=-1) for a, b in zip(starts, ends, strict=True)]
        return torch.stack(parts, dim=-1)  # (B, T, limbs)

    def term(query: Tensor, counterfactual: Tensor) -> Tensor:
        return (lengths(counterfactual) - lengths(query)).abs().mean((1, 2))

    return term
