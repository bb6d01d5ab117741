"""Coordinates in which the laws of the data cannot be broken: directions of limbs, features that follow from others.

An edit changes coordinates; the series is computed back from them. A limb is the direction from one point to the next:
whatever is done to a direction, the limb keeps the length that it has in the query. A feature that is a linear function
of others, such as stride = swing + stance, follows them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from sparcets.core.series import BoolArray, FloatArray


@dataclass(frozen=True, kw_only=True)
class Limb:
    """Two points of a body whose distance is constant: a direction is turned, never stretched."""

    start: tuple[int, ...]  # features of the point nearer to the trunk, and of the other: x and y, or x, y and z
    end: tuple[int, ...]
    # Smallest and largest angle to the limb before, in radians: signed in two coordinates, unsigned in three; None
    # where no limb comes before, or any angle occurs.
    bend: tuple[float, float] | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Coordinates:
    """A map from series (…, time, features) to as many coordinates, and back.

    Examples
    --------
    >>> arm = Coordinates(tolerance=np.zeros(4), limbs=(Limb(start=(0, 1), end=(2, 3)),))
    >>> query = np.array([[0.0, 0.0, 2.0, 0.0]])
    >>> coordinates = arm.of(query)
    >>> coordinates[0, 2:] = [0.0, 1.0]
    >>> arm.series(coordinates, query).tolist()
    [[0.0, 0.0, 0.0, 2.0]]
    """

    tolerance: FloatArray  # changes of a feature below it are none (features,): the query's own bits stay
    limbs: tuple[Limb, ...] = ()  # from the trunk outwards; the features of an end hold its direction, a unit vector
    # Features that are linear functions of others, and the weights (dependent, features) by which they follow. None of
    # them, nor of orders, belongs to the end of a limb.
    dependent: tuple[int, ...] = ()
    weights: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    orders: tuple[tuple[int, int], ...] = ()  # features of which the first is never larger than the second
    whole: tuple[int, ...] = ()  # features of whole numbers

    def of(self, series: FloatArray) -> FloatArray:
        """Return the coordinates of series (…, time, features), as float64."""
        coordinates = series.astype(np.float64)
        for limb in self.limbs:
            start, end = list(limb.start), list(limb.end)
            way = series[..., end].astype(np.float64) - series[..., start]
            coordinates[..., end] = _unit(way)
        return coordinates

    def series(self, coordinates: FloatArray, query: FloatArray) -> FloatArray:
        """Return the series with these coordinates (…, time, features), of the type of the query.

        Limbs have the lengths of the query (…, time, features). Where the query is missing, or a change is below the
        tolerance, the series has the query's own bits; so have columns after the features, which are side inputs.
        """
        n = len(self.tolerance)
        if query.shape[-1] > n:
            return np.concatenate([self.series(coordinates[..., :n], query[..., :n]), query[..., n:]], axis=-1)
        own = query.astype(np.float64)
        made = coordinates.copy()
        if self.dependent:
            change = np.nan_to_num(made - own)
            for feature, weights in zip(self.dependent, self.weights, strict=True):
                made[..., feature] = own[..., feature] + change @ weights
        before: dict[tuple[int, ...], tuple[FloatArray, FloatArray]] = {}  # directions, now and of the query
        for limb in self.limbs:
            start, end = list(limb.start), list(limb.end)
            way = own[..., end] - own[..., start]
            length = np.linalg.norm(way, axis=-1, keepdims=True)
            direction, real = _unit(coordinates[..., end]), _unit(way)
            if limb.bend is not None and limb.start in before:
                direction = _bent(direction, real, before[limb.start], limb.bend)
            before[limb.end] = direction, real
            made[..., end] = made[..., start] + length * direction
        if self.whole:
            whole = list(self.whole)
            made[..., whole] = np.where(made[..., whole] != own[..., whole], np.rint(made[..., whole]), own[..., whole])
        stays = ~(np.abs(made - own) >= self.tolerance) | np.isnan(own)
        cast: FloatArray = np.where(stays, query, made.astype(query.dtype))
        return self._ordered(cast, query) if self.orders else cast

    def _ordered(self, made: FloatArray, query: FloatArray) -> FloatArray:
        """Return series in which the orders hold that hold in the query; what does not change gives no way."""
        held = {pair: query[..., pair[0]] <= query[..., pair[1]] for pair in self.orders}
        most = np.where(made != query, np.inf, made)
        for low, high in reversed(self._upwards):
            most[..., low] = np.where(held[low, high], np.minimum(most[..., low], most[..., high]), most[..., low])
        made = np.minimum(made, most).astype(made.dtype)
        for low, high in self._upwards:
            raised = np.maximum(made[..., low], made[..., high])
            made[..., high] = np.where(held[low, high], raised, made[..., high])
        return made

    @cached_property
    def _upwards(self) -> tuple[tuple[int, int], ...]:
        """The orders such that each follows those that end where it begins."""
        depth = [0] * len(self.tolerance)
        for _ in self.orders:
            for low, high in self.orders:
                depth[high] = min(max(depth[high], depth[low] + 1), len(depth))
        return tuple(sorted(self.orders, key=lambda pair: depth[pair[0]]))

    def moved_by(self, columns: Iterable[int]) -> tuple[int, ...]:
        """Return the features that move where these coordinates do: ends of limbs, and what depends on them."""
        moved = set(columns)
        for limb in self.limbs:
            if moved & {*limb.start, *limb.end}:
                moved |= set(limb.end)
        for feature, weights in zip(self.dependent, self.weights, strict=True):
            if moved & set(np.flatnonzero(weights).tolist()):
                moved.add(feature)
        return tuple(sorted(moved))

    def solved(self, mutable: BoolArray) -> Coordinates:
        """Return the coordinates in which identities whose first feature may not change are solved for another one.

        Features that have laws of their own, and all of an identity of which no other may change, stay as they are.
        """
        taken = {*self.whole, *(f for pair in self.orders for f in pair), *(f for limb in self.limbs for f in limb.end)}
        dependent, weights = list(self.dependent), self.weights.copy()
        for row, feature in enumerate(self.dependent):
            others = [f for f in np.flatnonzero(weights[row]).tolist() if mutable[f] and f not in taken]
            if mutable[feature] or not others:
                continue
            other = max(others, key=lambda f: abs(weights[row, f]))
            solved = -weights[row] / weights[row, other]
            solved[feature], solved[other] = 1 / weights[row, other], 0.0
            weights += np.outer(weights[:, other], solved)
            weights[:, other] = 0.0
            dependent[row], weights[row] = other, solved
        return replace(self, dependent=tuple(dependent), weights=weights)

    def open(self, allowed: BoolArray) -> BoolArray:
        """Return which entries (time, features) may change so that no law is broken by those that may not.

        A point that stays is the end of no limb that turns or moves. A feature that follows others holds them where it
        stays, and stays where they do.
        """
        free: BoolArray = allowed.copy()
        for limb in reversed(self.limbs):
            held = ~free[:, list(limb.end)].all(1)
            free[np.ix_(held, np.array([*limb.start, *limb.end]))] = False
        for feature, weights in zip(self.dependent, self.weights, strict=True):
            terms = np.flatnonzero(weights)
            free[np.ix_(~free[:, feature], terms)] = False
            free[:, feature] &= free[:, terms].any(1)
        return free

    def without_mixed(self, mutable: BoolArray) -> Coordinates:
        """Return the coordinates without identities and orders of which some features may not change."""
        tied = [
            [feature, *np.flatnonzero(row).tolist()] for feature, row in zip(self.dependent, self.weights, strict=True)
        ]
        kept = [i for i, features in enumerate(tied) if mutable[features].all()]
        orders = tuple(pair for pair in self.orders if mutable[list(pair)].all())
        dependent = tuple(self.dependent[i] for i in kept)
        return replace(self, dependent=dependent, weights=self.weights[kept], orders=orders)

    @property
    def have_laws(self) -> bool:
        """Whether anything is kept at all."""
        return bool(self.limbs or self.dependent or self.orders or self.whole)

    def within(self, mutable: BoolArray) -> Coordinates:
        """Return the coordinates where some features (features,) may not change: they neither turn nor follow.

        A law of a feature that may not change, and of one that may, is given up: the constraint wins.
        """
        limbs = tuple(limb for limb in self.limbs if mutable[list(limb.end)].all())
        kept = [i for i, feature in enumerate(self.dependent) if mutable[feature]]
        orders = tuple(pair for pair in self.orders if mutable[list(pair)].any())
        return replace(
            self,
            limbs=limbs,
            dependent=tuple(self.dependent[i] for i in kept),
            weights=self.weights[kept],
            orders=orders,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "tolerance": self.tolerance.tolist(),
            "limbs": [[list(limb.start), list(limb.end), limb.bend and list(limb.bend)] for limb in self.limbs],
            "dependent": list(self.dependent),
            "weights": self.weights.tolist(),
            "orders": [list(pair) for pair in self.orders],
            "whole": list(self.whole),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Coordinates:
        """Build from :meth:`to_dict`'s output; raise ValueError where values do not fit together."""
        tolerance = np.asarray(data["tolerance"], dtype=np.float64)
        n = len(tolerance)
        limbs = tuple(
            Limb(start=tuple(start), end=tuple(end), bend=None if bend is None else (float(bend[0]), float(bend[1])))
            for start, end, bend in data["limbs"]
        )
        made = cls(
            tolerance=tolerance,
            limbs=limbs,
            dependent=tuple(data["dependent"]),
            weights=np.asarray(data["weights"], dtype=np.float64).reshape(len(data["dependent"]), n),
            orders=tuple((int(low), int(high)) for low, high in data["orders"]),
            whole=tuple(data["whole"]),
        )
        features = {*made.dependent, *made.whole, *(f for pair in made.orders for f in pair)}
        features |= {f for limb in limbs for f in (*limb.start, *limb.end)}
        sizes_fit = all(len(limb.start) == len(limb.end) in (2, 3) for limb in limbs)
        if not sizes_fit or not all(isinstance(f, int) and 0 <= f < n for f in features):
            raise ValueError("limbs, dependent features, orders and tolerances do not fit together")
        return made


def _unit(vectors: FloatArray) -> FloatArray:
    """Return vectors (…, coordinates) of length 1; zero where they have none."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0))


def _bent(
    direction: FloatArray, own: FloatArray, before: tuple[FloatArray, FloatArray], bend: tuple[float, float]
) -> FloatArray:
    """Return directions (…, 2 or 3) turned back to the largest angle to the limb before that recordings have.

    Where the query's ``own`` angle is larger, that is the limit.
    """
    previous, real = before
    angle, own_angle = bend_of(previous, direction), bend_of(real, own)
    wanted = np.clip(angle, np.minimum(bend[0], own_angle), np.maximum(bend[1], own_angle))
    off = wanted != angle
    if not off.any():
        return direction
    if direction.shape[-1] == 2:
        cosine, sine = np.cos(wanted), np.sin(wanted)
        x, y = previous[..., 0], previous[..., 1]
        turned = np.stack([cosine * x - sine * y, sine * x + cosine * y], axis=-1)
    else:  # in the plane of both limbs
        across = _unit(direction - (direction * previous).sum(-1, keepdims=True) * previous)
        turned = np.cos(wanted)[..., None] * previous + np.sin(wanted)[..., None] * across
    return np.asarray(np.where(off[..., None], turned, direction))


def bend_of(before: FloatArray, direction: FloatArray) -> FloatArray:
    """Return the angle from one unit vector to the next (…,), signed in two coordinates, unsigned in three.

    >>> round(float(bend_of(np.array([1.0, 0.0]), np.array([0.0, 1.0]))), 3)
    1.571
    """
    along = (before * direction).sum(-1)
    if direction.shape[-1] == 2:
        return np.asarray(np.arctan2(before[..., 0] * direction[..., 1] - before[..., 1] * direction[..., 0], along))
    return np.asarray(np.arccos(np.clip(along, -1.0, 1.0)))
