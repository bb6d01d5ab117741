"""What edits act on: the coordinates of the data, and the groups of them that move together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from sparcets.core.edits import Coordinates
from sparcets.core.errors import ConfigError, quoted
from sparcets.core.laws import Law, find_laws
from sparcets.core.seeding import generator
from sparcets.core.series import BoolArray, FloatArray
from sparcets.core.settings import ExplainerConfig
from sparcets.methods.request import FitJob
from sparcets.motion.skeleton import group_name

MOST_GROUPS = 8
TOGETHER = 0.5  # mean correlation from which on features are of one group
PAIRS = 3000  # of series of different classes whose differences are compared
MOST_STEPS = 100_000


class Group(NamedTuple):
    """Coordinates that are edited together.

    Attributes
    ----------
    name
        Such as ``both arms``, or ``f1, f2 and f5``.
    columns
        The coordinates.
    """

    name: str
    columns: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class EditSpace:
    """Coordinates, their groups and standard deviations, and the laws that hold in all training series."""

    coordinates: Coordinates
    groups: tuple[Group, ...]
    laws: tuple[Law, ...]
    spread: FloatArray

    @classmethod
    def fit(cls, job: FitJob, config: ExplainerConfig, seed: int) -> EditSpace:
        """Find laws and groups in the training series of a fit."""
        series, of_series = job.series, job.info.of_series  # side inputs, the last columns, obey no laws
        n = of_series.n_features
        laws, coordinates = find_laws(
            series.with_values(series.values[..., :n]),
            of_series.feature_names,
            units=of_series.units,
            tolerance=job.constraints.tolerance[:n],
            seed=seed,
            without=config.without_laws,
        )
        mutable = job.constraints.mutable
        labels = None if job.info.outcome else job.y
        values = coordinates.to_coordinates(series.values)
        inside = np.where(series.inside[..., None], values, np.nan)
        found = find_groups(inside, labels, coordinates, mutable, job.info.feature_names, seed, given=config.groups)
        return cls(coordinates, found, laws, np.nanstd(values[series.inside], axis=0))

    def within(self, mutable: BoolArray, measured: BoolArray) -> EditSpace:
        """Return the space where fewer features (features,) may change, or are known at all."""
        coordinates = self.coordinates.restrict_to(mutable)
        kept = [Group(g.name, tuple(c for c in g.columns if mutable[c] and measured[c])) for g in self.groups]
        moving = tuple(g for g in kept if not set(g.columns) <= set(coordinates.dependent))
        return replace(self, coordinates=coordinates, groups=moving)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "coordinates": self.coordinates.to_dict(),
            "groups": [[group.name, list(group.columns)] for group in self.groups],
            "spread": self.spread.tolist(),
            "laws": [[law.kind, list(law.features), law.text, law.name] for law in self.laws],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> EditSpace:
        """Build from :meth:`to_dict`'s output."""
        laws = (Law(kind=k, features=tuple(f), text=t, name=n) for k, f, t, n in data["laws"])
        groups = tuple(Group(str(name), tuple(int(c) for c in columns)) for name, columns in data["groups"])
        return cls(Coordinates.from_dict(data["coordinates"]), groups, tuple(laws), np.array(data["spread"]))


def find_groups(
    values: FloatArray,
    labels: Any,
    coordinates: Coordinates,
    mutable: BoolArray,
    names: Sequence[str],
    seed: int,
    given: Sequence[Sequence[str]] = (),
) -> tuple[Group, ...]:
    """Return groups of coordinates whose differences between series of different classes go together.

    The coordinates of a point are never apart, nor is a feature from the one that it follows.

    Parameters
    ----------
    values, labels
        Coordinates of the training series (batch, time, features), and their classes (batch,); None where they have
        numbers.
    coordinates
        The map that edits act through.
    mutable
        Which features may change (features,).
    names
        Of the features.
    seed
        Of the pairs of series.
    given
        Groups of the user, names of features; only the others are grouped by their differences.
    """
    taken = {name: number for number, group in enumerate(given) for name in group}
    unknown = [name for name in taken if name not in names]
    if unknown:
        raise ConfigError(f"'groups' names {quoted(unknown[0])}, which is no feature. Known: {', '.join(names)}.")
    units = _units(coordinates, mutable)
    mine = [
        tuple(c for unit in units if any(taken.get(names[d]) == number for d in unit) for c in unit)
        for number in range(len(given))
    ]
    groups = [Group(group_name([names[c] for c in columns], names), columns) for columns in mine if columns]
    units = [unit for unit in units if not any(names[c] in taken for c in unit)]
    if not units:
        return tuple(groups)
    alike = _likeness(values, labels, units, generator(seed, "groups"))
    numbers = _cluster(1.0 - alike)
    for number in np.unique(numbers):
        columns = tuple(sorted(c for i in np.flatnonzero(numbers == number).tolist() for c in units[i]))
        groups.append(Group(group_name([names[c] for c in columns], names), columns))
    groups = _with_followers(groups, coordinates, mutable, np.nanstd(values, axis=(0, 1)), names)
    groups.sort(key=lambda group: group.columns)
    known = [group.name for group in groups]
    # Two groups of one name, such as two parts of the same arm, are told apart by their features.
    return tuple(
        group if known.count(group.name) == 1 else Group(", ".join(names[c] for c in group.columns), group.columns)
        for group in groups
    )


def _units(coordinates: Coordinates, mutable: BoolArray) -> list[tuple[int, ...]]:
    """Return what is never apart: the coordinates of a point of a body, and copies of a feature."""
    points = {point for limb in coordinates.limbs for point in (limb.start, limb.end)}
    follows = zip(coordinates.dependent, coordinates.weights, strict=True)
    tied = [(feature, *np.flatnonzero(weights).tolist()) for feature, weights in follows]
    copies = [features for features in tied if len(features) == 2]
    unit = list(range(len(mutable)))
    for features in [*points, *copies]:
        known = {unit[f] for f in features}
        unit = [min(known) if number in known else number for number in unit]
    free = set(np.flatnonzero(mutable).tolist()) - {features[0] for features in tied if features not in copies}
    members = [tuple(f for f in sorted(free) if unit[f] == number) for number in sorted(set(unit))]
    return [some for some in members if some]


def _with_followers(
    groups: Sequence[Group], coordinates: Coordinates, mutable: BoolArray, spread: FloatArray, names: Sequence[str]
) -> list[Group]:
    """Return groups with the features that follow several others, each in the group of the one that it follows most."""
    columns = [group.columns for group in groups]
    known = {column for some in columns for column in some}
    for feature, weights in zip(coordinates.dependent, coordinates.weights, strict=True):
        if feature in known or not mutable[feature]:
            continue
        most = int(np.argmax(np.abs(weights) * spread[: len(weights)]))
        at = next((k for k, some in enumerate(columns) if most in some), None)
        if at is None:
            columns.append((feature,))
        else:
            columns[at] = tuple(sorted((*columns[at], feature)))
    return [Group(group_name([names[c] for c in some], names), some) for some in columns]


def _likeness(
    values: FloatArray, labels: Any, units: Sequence[tuple[int, ...]], rng: np.random.Generator
) -> FloatArray:
    """Return the absolute correlation of differences between units (units, units)."""
    one, other = rng.integers(0, len(values), (2, PAIRS))
    apart = one != other if labels is None else labels[one] != labels[other]
    apart = apart if apart.any() else one != other
    difference = (values[one[apart]] - values[other[apart]]).reshape(-1, values.shape[2])
    if len(difference) > MOST_STEPS:
        difference = difference[rng.choice(len(difference), MOST_STEPS, replace=False)]
    difference = np.nan_to_num(difference - np.nanmean(difference, 0))
    spread = np.sqrt((difference**2).mean(0))
    scaled = difference / np.where(spread > 0, spread, 1.0)
    correlation = np.abs(scaled.T @ scaled / max(len(scaled), 1))
    alike = np.eye(len(units))
    for i, mine in enumerate(units):
        for k, others in enumerate(units[:i]):
            block = correlation[np.ix_(mine, others)]
            alike[i, k] = alike[k, i] = (block.max(0).mean() + block.max(1).mean()) / 2
    return alike


def _cluster(distance: FloatArray) -> Any:
    """Return the number of the cluster of each unit, by average linkage."""
    if len(distance) == 1:
        return np.zeros(1, dtype=np.int64)
    from scipy.cluster.hierarchy import fcluster, linkage

    tree = linkage(np.clip(distance, 0.0, None)[np.triu_indices(len(distance), 1)], "average")
    numbers = fcluster(tree, TOGETHER, "distance")
    return numbers if numbers.max() <= MOST_GROUPS else fcluster(tree, MOST_GROUPS, "maxclust")
