"""The constraints as a differentiable layer, so that a generator is trained under the constraints of its answers.

``BoundConstraints.enforce`` in :mod:`sparcets.core.enforcement` does the same for finished answers, exact to the
last bit; a test compares the two.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from sparcets.core.enforcement import BoundConstraints
from sparcets.core.series import Scaler
from sparcets.training.networks import blank_padding, fill_gaps, inside

FAR = 1e6  # standard deviations


class Projection(nn.Module):
    """Moves residuals (batch, time, features) back until the constraints hold; everything in standardised units.

    With ``gaps``, entries of the queries may be missing (NaN); these never change.
    """

    editable: Tensor
    low: Tensor
    high: Tensor
    limit: Tensor
    sign: Tensor
    limited: Tensor

    def __init__(self, bound: BoundConstraints, scaler: Scaler, *, gaps: bool = False) -> None:
        super().__init__()
        self.gaps = gaps
        center, scale = scaler.center, scaler.scale
        tensors = {
            "editable": torch.tensor(bound.editable),
            "low": torch.tensor((bound.low - center) / scale, dtype=torch.float32),
            "high": torch.tensor((bound.high - center) / scale, dtype=torch.float32),
            "limit": torch.tensor(bound.max_step / scale, dtype=torch.float32),
            "sign": torch.tensor(bound.direction),
        }
        for name, tensor in tensors.items():
            self.register_buffer(name, tensor, persistent=False)
        # Evaluated once here, on the host: a captured step must not synchronise with the device.
        self.has_ranges = bool(np.isfinite(bound.low).any() or np.isfinite(bound.high).any())
        self.has_directions = bool((bound.direction != 0).any())
        self.register_buffer("limited", torch.tensor(np.flatnonzero(np.isfinite(bound.max_step))), persistent=False)
        whole = [members for members in bound.groups if bound.mutable[members].all()]
        self.n_groups = len(whole)
        for i, members in enumerate(whole):
            self.register_buffer(f"group_{i}", torch.tensor(members), persistent=False)

    def forward(self, query: Tensor, delta: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return residuals within the constraints; unchanged where they are already.

        Beyond the true ``lengths`` (batch,) of padded series, nothing changes.
        """
        delta = torch.where(self.editable_entries(query), delta, 0.0)
        delta = blank_padding(delta, lengths)
        if self.gaps:
            query = fill_gaps(query, lengths=lengths, otherwise=0.0)
        if self.has_ranges:
            clipped = (query + delta).clamp(self.low, self.high) - query
            delta = torch.where(delta != 0, clipped, delta)
        if self.has_directions:
            wrong = ((self.sign > 0) & (delta < 0)) | ((self.sign < 0) & (delta > 0))
            delta = torch.where(wrong, 0.0, delta)
        if len(self.limited):
            delta = self._limit_steps(query, delta, inside(lengths, query))
        for members in self.groups():
            of_group = delta.index_select(2, members)
            together = (of_group != 0).all(-1, keepdim=True)
            delta = delta.index_copy(2, members, torch.where(together, of_group, 0.0))
        return delta

    def editable_entries(self, query: Tensor) -> Tensor:
        """Return which entries may change: (time, features), or (batch, time, features) if some may be missing."""
        return self.editable & ~query.isnan() if self.gaps else self.editable

    def groups(self) -> list[Tensor]:
        """Return the features (members,) of each group that may change together only."""
        return [self.get_buffer(f"group_{i}") for i in range(self.n_groups)]

    def _limit_steps(self, query: Tensor, delta: Tensor, steps: Tensor | None) -> Tensor:
        q, d = query.index_select(2, self.limited), delta.index_select(2, self.limited)
        x = q + d
        own = torch.diff(q, dim=1, prepend=q[:, :1]).abs()
        limit = self.limit.index_select(0, self.limited)  # (L,)
        furthest = torch.maximum(limit, own)
        if steps is not None:
            furthest = torch.where(steps, furthest, FAR)  # no limit into the padding
        reach = furthest.cumsum(1)  # (B, T, L): the distance travelled so far
        above = _lower_envelope(x, reach)
        below = -_lower_envelope(-torch.minimum(q, x), reach)
        moved = torch.where(d == 0, 0.0, torch.maximum(above, below) - q)
        return delta.index_copy(2, self.limited, moved)


def _lower_envelope(x: Tensor, reach: Tensor) -> Tensor:
    """Return min over s of x_s + |reach_t − reach_s|: the largest series below ``x`` whose steps keep the limits."""
    from_past = (x - reach).cummin(1).values + reach
    from_future = (x + reach).flip(1).cummin(1).values.flip(1) - reach
    return torch.minimum(from_past, from_future)
