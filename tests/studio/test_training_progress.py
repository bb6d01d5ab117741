"""One bar for a whole training: it never goes back, and the time left follows from it."""

import pytest

from sparcets.studio.jobs import MAX_POINTS, TrainingProgress


def test_stages_count_by_the_time_they_take() -> None:
    progress = TrainingProgress("fitting sparcets")
    shares = []
    for stage, done, total in (
        ("fitting models of other kinds", 0, 7), ("training fcn", 5, 10), ("training fcn", 10, 10),
        ("fitting models of other kinds", 3, 7), ("training resnet", 10, 10), ("fitting models of other kinds", 7, 7),
    ):  # fmt: skip
        progress.update(stage, done, total, "")
        shares.append(progress.share)
    assert shares == sorted(shares) and shares[0] == 0 and shares[-1] == pytest.approx(1)
    assert progress.left(60.0) == pytest.approx(0, abs=1e-9)


def test_nothing_is_said_of_the_time_before_anything_is_known() -> None:
    progress = TrainingProgress("training fcn")
    assert progress.left(3.0) is None
    progress.update("reading", 0, None, "")
    assert progress.left(3.0) is None and progress.share == 0


def test_learning_curves_hold_one_value_per_epoch() -> None:
    progress = TrainingProgress("fitting sparce")
    for epoch in range(1, 4):
        for _ in range(2):  # the same epoch is reported twice
            progress.update("training fcn", epoch, 9, f"loss {1 / epoch:.3g}  validation_loss nan")
    progress.update("fitting models of other kinds", 1, 7, "convolutions")
    assert progress.curves == {"fcn loss": [1.0, 0.5, 0.333], "fcn validation_loss": [None] * 3}
    for epoch in range(5 * MAX_POINTS):
        progress.update("training sparce", epoch + 1, 5 * MAX_POINTS, f"loss {epoch}")
    points = progress.curves["sparce loss"]
    assert len(points) <= MAX_POINTS + 1 and points[0] == 0 and points[-1] == 5 * MAX_POINTS - 1
