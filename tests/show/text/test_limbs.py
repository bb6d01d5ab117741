"""Points of one limb that move together: one sentence, with numbers and times that are true of each."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sparcets.core.explanation import Explanation
from sparcets.motion.words import LimbMove, join_limbs
from sparcets.show.text import _largest_first, narrate

Make = Callable[..., Explanation]
POINTS = ("LeftShoulder", "LeftElbow", "LeftWrist", "LeftHand", "RightWrist", "RightHand")
NAMES = tuple(f"{point}_{axis}" for point in POINTS for axis in "xy")


def at(name: str, start: int, end: int, size: float) -> dict[tuple[int, int], float]:
    # Two levels, so that it is no operation.
    return {(t, NAMES.index(name)): size * (1 + 0.8 * (t % 2)) for t in range(start, end)}


def test_points_of_an_arm_are_one_sentence_with_a_range(answer: Make) -> None:
    arm = at("LeftElbow_x", 10, 30, 0.5) | at("LeftWrist_x", 10, 30, 1.0) | at("LeftHand_x", 20, 30, 1.5)
    text = narrate(answer(arm, names=NAMES, n_steps=60, rate=10.0, units=("m",) * 12))
    said = "the left arm (elbow, wrist and hand) is 0.7 to 2.1 m further towards +x at times between 1.00 and 3.00 s"
    assert f"  - {said}\n" in text


def test_a_time_of_all_is_told_as_such_and_heights_as_heights(answer: Make) -> None:
    hand = at("LeftWrist_y", 10, 30, -1.0) | at("LeftHand_y", 10, 29, -1.0)
    text = narrate(answer(hand, names=NAMES, n_steps=60))
    assert "  - the left wrist and hand are 1.4 lower in steps 10 to 29\n" in text, "without an elbow, it is no arm"


@pytest.mark.parametrize(
    "other",
    [
        at("LeftHand_x", 10, 30, -1.0),  # another direction
        at("LeftHand_y", 10, 30, 1.0),  # another axis
        at("RightHand_x", 10, 30, 1.0),  # another side
        at("LeftHand_x", 28, 48, 1.0),  # another time
        at("LeftHand_x", 12, 16, 1.0),  # most of it another time
        at("LeftHand_x", 10, 30, 0.1),  # another size
    ],
)
def test_what_differs_is_told_apart(answer: Make, other: dict[tuple[int, int], float]) -> None:
    e = answer(at("LeftWrist_x", 10, 30, 1.0) | other, names=NAMES, n_steps=60)
    assert not any(isinstance(item, LimbMove) for item in _largest_first(e))


def test_nothing_is_lost_or_told_twice(answer: Make) -> None:
    """What is joined, and what is left, make up the whole change."""
    some = at("LeftElbow_x", 5, 25, 0.5) | at("LeftWrist_x", 5, 25, 1.0) | at("LeftWrist_y", 5, 25, -2.0)
    e = answer(some | at("RightHand_y", 40, 50, 1.0), names=NAMES, n_steps=60)
    items = _largest_first(e)
    assert any(isinstance(item, LimbMove) for item in items) and len(items) == 3
    assert sum(item.weight for item in items) == pytest.approx(abs(e.delta).sum())


def test_without_a_body_nothing_is_joined(answer: Make) -> None:
    e = answer({(t, f): 1.0 + t % 2 for t in range(3, 9) for f in (0, 1)})
    given = _largest_first(e)
    assert join_limbs(e, given) == given  # type: ignore[arg-type]
