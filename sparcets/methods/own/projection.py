"""Projection: from proposals for one query to series within its constraints and the laws of the data.

Laws tie features to one another. Where some of them may not change, what is tied to them does not change either; and
where a constraint breaks a law at a step, the tied features keep the query's values there. Only if no answer is found
so, the constraints win, and the answer says which law it breaks.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sparcets.core.edits import Edit, apply_edits, free_edits
from sparcets.core.enforcement import IMMUTABLE
from sparcets.core.evidence import find_segments
from sparcets.core.laws import Law, violates, violations
from sparcets.core.series import BoolArray, FloatArray, IntArray
from sparcets.methods.own.space import EditSpace
from sparcets.methods.request import Request

REPAIRS = 8  # times that what breaks a law is taken back, before all of a proposal is


class Projection:
    """What may change of a query, and how proposals are moved to where they may lie.

    Parameters
    ----------
    request
        One query, without padding.
    space
        What edits act on, and the laws.
    lawful
        Whether no law may be broken; else constraints break laws.

    Attributes
    ----------
    space
        What may be edited.
    active
        Whether proposals have to be moved at all.
    free
        Entries (time, features) that may change.
    yields
        Whether laws have prevented anything that the constraints alone allow.
    """

    def __init__(self, request: Request, space: EditSpace, *, lawful: bool = True) -> None:
        bound, self.query, self.laws = request.constraints, request.X[0], space.laws
        self.coordinates, self.lawful = space.coordinates, lawful
        mutable = np.asarray(bound.allowed.any(0))
        solved = space.coordinates.solve_for(mutable) if lawful else space.coordinates.without_mixed_laws(mutable)
        self.free: BoolArray = solved.free_entries(bound.allowed) if lawful else bound.allowed
        self.yields = bool((self.free != bound.allowed).any()) or solved.dependent != space.coordinates.dependent
        open_, measured = (np.asarray(entries.any(0)) for entries in (self.free, request.series.measured[0]))
        self.space = replace(space, coordinates=solved).within(open_, measured)
        self.active = not set(bound.active_kinds()) <= {IMMUTABLE}
        self._tolerance = bound.tolerance
        limits = replace(bound, editable=bound.editable & self.free)
        self._request = replace(request, at_most=None, constraints=limits)

    @property
    def borders(self) -> list[int]:
        """Steps at which frozen windows begin or end."""
        return [int(step) + 1 for step in np.flatnonzero((self.free[1:] != self.free[:-1]).any(1))]

    def __call__(self, made: FloatArray) -> FloatArray:
        """Return series (proposals, time, features) within the constraints, and within the laws if they are kept."""
        if not self.active:
            return made
        limited = self._limits(made)
        if not self.coordinates.have_laws:
            return limited
        kept, query = self.space.coordinates, np.broadcast_to(self.query, made.shape)
        for _ in range(REPAIRS):
            limited = self._limits(kept.to_series(kept.to_coordinates(limited), query))
            broken = self._broken(limited) if self.lawful else None
            if broken is None or not broken.any():
                return limited
            self.yields = True
            limited = np.where(broken, query, limited)
        broken = violates(self.coordinates, limited, query)
        return np.where(broken[:, None, None], query, limited)

    def altered(self, made: FloatArray, limited: FloatArray) -> IntArray:
        """Return how many edits (proposals,) what was moved by more than rounding would be."""
        moved = np.abs(limited.astype(np.float64) - made) >= self._tolerance
        return np.bincount(find_segments(moved).series, minlength=len(made))

    def edits(self, smooth: list[Edit]) -> list[Edit]:
        """Return edits of the query, and after them what is altered by the projection."""
        if not self.active:
            return smooth
        made = apply_edits(self.query, smooth)
        limited = self(made[None])[0]
        near = np.where(np.abs(limited.astype(np.float64) - made) < self._tolerance, made, limited)
        fits = np.array_equal(self._limits(near[None])[0], near, equal_nan=True)
        if fits and not (self.lawful and violates(self.coordinates, near[None], self.query[None])[0]):
            limited = near  # by rounding alone nothing is altered
        if np.array_equal(limited, self.query, equal_nan=True):
            return []  # all is taken back
        return smooth + free_edits(made, limited, self._request.info.feature_names)

    def broken_laws(self, made: FloatArray) -> list[Law]:
        """Return the laws that a series (time, features) breaks."""
        names, found = self._request.info.feature_names, []
        for kind, features, where in violations(self.coordinates, made[None], self.query[None]):
            if where.any():
                told = tuple(names[f] for f in features)
                found += [law for law in self.laws if law.kind == kind and law.features == told]
        return found

    def are_lawful(self, made: FloatArray) -> BoolArray:
        """Return whether series (proposals, time, features) break no law (proposals,)."""
        if (self.lawful and not self.active) or not self.coordinates.have_laws:
            return np.ones(len(made), dtype=bool)
        return ~violates(self.coordinates, made, np.broadcast_to(self.query, made.shape))

    def _limits(self, made: FloatArray) -> FloatArray:
        return self._request.apply_limits(made, np.zeros(len(made), dtype=np.int64))

    def _broken(self, made: FloatArray) -> BoolArray:
        """Return the entries (proposals, time, features) of laws that are broken, and all that limbs tie to them."""
        broken = np.zeros(made.shape, dtype=bool)
        body = sorted({f for limb in self.coordinates.limbs for f in (*limb.start, *limb.end)})
        for kind, features, where in violations(self.coordinates, made, np.broadcast_to(self.query, made.shape)):
            broken[..., body if kind in ("limb", "joint") else list(features)] |= where[..., None]
        return broken
