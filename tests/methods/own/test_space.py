"""What edits act on: groups of features that move together, their names, and what less may change."""

from typing import Any

import numpy as np
import pytest

import sparcets as sp
from sparcets.core.edits import Coordinates, Limb
from sparcets.core.errors import ConfigError
from sparcets.methods.own.space import MOST_GROUPS, EditSpace, Group, find_groups

Y = np.arange(60) % 2


def together(sizes: list[int], seed: int = 0, noise: float = 0.2) -> np.ndarray:
    """Return series (60, 20, features) whose features follow one course in each part."""
    rng = np.random.default_rng(seed)
    parts = []
    for size in sizes:
        course = rng.normal(size=(60, 20, 1)).cumsum(1)
        parts.append(course * rng.choice([-3.0, 1.0, 5.0], size) + noise * rng.normal(size=(60, 20, size)))
    return np.concatenate(parts, axis=2)


def groups(X: np.ndarray, coordinates: Coordinates | None = None, **options: Any) -> tuple[Group, ...]:
    n = X.shape[2]
    known: dict[str, Any] = {"mutable": np.ones(n, dtype=bool), "names": [f"f{i}" for i in range(n)], **options}
    return find_groups(X, Y, coordinates or Coordinates(tolerance=np.zeros(n)), seed=0, **known)


def test_features_whose_differences_go_together_are_a_group() -> None:
    X = together([3, 2, 1])
    assert [group.columns for group in groups(X)] == [(0, 1, 2), (3, 4), (5,)]
    assert groups(X)[1].name == "f3 and f4"
    mixed = groups(X[:, :, [5, 0, 3, 1, 4, 2]])
    assert {group.columns for group in mixed} == {(0,), (1, 3, 5), (2, 4)}


def test_there_are_few_groups_however_many_features_there_are() -> None:
    found = groups(together([1] * 20))
    assert len(found) <= MOST_GROUPS and sorted(sum((group.columns for group in found), ())) == list(range(20))


def test_names_are_told_apart() -> None:
    names = [f"{side}{point}_{axis}" for side in ("Left", "Right") for point in ("Elbow", "Hand") for axis in "xy"]
    found = groups(together([2, 2, 2, 2]), names=names)
    assert len({group.name for group in found}) == len(found) == 4
    (both,) = groups(together([8]), names=names)
    assert both.name == "both arms" and both.columns == tuple(range(8))


def test_what_may_not_change_is_in_no_group_and_what_follows_others_in_that_of_the_first_of_them() -> None:
    X = together([3, 2])
    mutable = np.array([True, False, True, True, True])
    assert [group.columns for group in groups(X, mutable=mutable)] == [(0, 2), (3, 4)]
    follows = Coordinates(tolerance=np.zeros(5), dependent=(4,), weights=np.array([[0.01, 0, 0, 1, 0]]))
    assert [group.columns for group in groups(X, follows)] == [(0, 1, 2), (3, 4)]
    alone = groups(X, follows, mutable=np.array([True, True, True, False, True]))
    assert [group.columns for group in alone] == [(0, 1, 2), (4,)]
    copy = Coordinates(tolerance=np.zeros(5), dependent=(4,), weights=np.array([[2.0, 0, 0, 0, 0]]))
    assert [group.columns for group in groups(together([1] * 5), copy)] == [(0, 4), (1,), (2,), (3,)]
    assert groups(X, mutable=np.zeros(5, dtype=bool)) == ()


def test_the_coordinates_of_a_point_are_never_apart() -> None:
    X = together([1, 1, 1, 1])
    arm = Coordinates(tolerance=np.zeros(4), limbs=(Limb(start=(0, 1), end=(2, 3)),))
    found = [set(group.columns) for group in groups(arm.to_coordinates(X), arm)]
    assert found in ([{0, 1}, {2, 3}], [{0, 1, 2, 3}])


def test_shoulders_at_one_height_are_one_group() -> None:
    names = [f"{side}{point}_{axis}" for point in ("Shoulder", "Elbow") for side in ("Left", "Right") for axis in "xy"]
    limbs = (Limb(start=(0, 1), end=(4, 5)), Limb(start=(2, 3), end=(6, 7)))
    level = np.eye(8)[[1]]
    body = Coordinates(tolerance=np.zeros(8), limbs=limbs, dependent=(3,), weights=level)
    found = {group.name: group.columns for group in groups(together([1] * 8), body, names=names)}
    assert found["both shoulders"] == (0, 1, 2, 3)


def test_groups_of_the_user_come_first() -> None:
    X = together([3, 2])
    found = {group.columns for group in groups(X, given=[["f0", "f4"]])}
    assert found == {(0, 4), (1, 2), (3,)}
    with pytest.raises(ConfigError, match="'groups' names 'f9', which is no feature"):
        groups(X, given=[["f0", "f9"]])
    assert {g.columns for g in groups(X, given=[["f0", "f1", "f2", "f3", "f4"]])} == {(0, 1, 2, 3, 4)}


def test_one_class_or_one_feature() -> None:
    assert [group.columns for group in groups(together([1]))] == [(0,)]
    X = together([2, 1])
    alone = find_groups(X, None, Coordinates(tolerance=np.zeros(3)), np.ones(3, dtype=bool), list("abc"), 0)
    assert [group.columns for group in alone] == [(0, 1), (2,)]
    same = np.zeros(60, dtype=int)
    assert find_groups(X, same, Coordinates(tolerance=np.zeros(3)), np.ones(3, dtype=bool), list("abc"), 0) == alone


def test_a_space_where_less_may_change_and_stored() -> None:
    X = together([3, 2])
    ds = sp.Dataset.from_arrays(X, Y, split=(np.arange(60), np.arange(4)))
    config = sp.ExplainerConfig.tiny().override('families=["intervals"]', 'groups=[["f0","f1"]]')
    model = sp.wrap(lambda x: np.stack([(x[:, 0, 0] > 0), (x[:, 0, 0] <= 0)], 1).astype(float), n_classes=2)
    with pytest.warns(sp.ModelWarning):
        ex = sp.Explainer(model, config).fit(ds, progress=False)
    assert ex.groups_ == {"f0 and f1": ("f0", "f1"), "f2": ("f2",), "f3 and f4": ("f3", "f4")}
    space = ex._fitted_model().space
    mutable, measured = np.array([True, True, False, False, True]), np.array([True, False, True, True, True])
    assert [group.columns for group in space.within(mutable, mutable).groups] == [(0, 1), (4,)]
    assert [group.columns for group in space.within(mutable, measured).groups] == [(0,), (4,)]
    again = EditSpace.from_dict(space.to_dict())
    assert again.to_dict() == space.to_dict() and again.groups == space.groups and again.laws == space.laws
