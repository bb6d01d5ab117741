"""Operations: planted ones are named with their numbers, random changes are not; what is told is told once."""

from __future__ import annotations

import json
import math
import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparcets.core.explanation import Explanation
from sparcets.show.operations import find_operations

BENCHMARK = runpy.run_path(str(Path(__file__).parents[3] / "benchmarks" / "operations.py"))
RESULTS = Path(__file__).parents[3] / "results" / "operations.jsonl"


@pytest.mark.parametrize("what", list(BENCHMARK["SIZES"]))
def test_planted_operations_are_named_right(what: str) -> None:
    """A small dose of ``benchmarks/operations.py``: one of each size, noise and who."""
    rng = np.random.default_rng(0)
    sizes = BENCHMARK["SIZES"][what]
    cases = [(s, w, n) for s, n in zip(sizes, BENCHMARK["NOISES"], strict=True) for w in BENCHMARK["who_of"](what)]
    right = [BENCHMARK["judge"](BENCHMARK["plant"](rng, what, *case))["right"] for case in cases]
    assert sum(right) >= len(right) - 1


def test_planted_operations_are_named_right_across_gaps() -> None:
    rng = np.random.default_rng(0)
    planted = [BENCHMARK["plant"](rng, what, sizes[1], "force", 0.05) for what, sizes in BENCHMARK["SIZES"].items()]
    holes = [replace(one, answer=BENCHMARK["with_gaps"](one.answer, rng, 0.05)) for one in planted]
    assert all(np.isnan(one.answer.query).any() for one in holes)
    assert sum(BENCHMARK["judge"](one)["right"] for one in holes) >= len(holes) - 1


@pytest.mark.parametrize("kind", BENCHMARK["RANDOM"])
def test_random_changes_are_no_operation(kind: str) -> None:
    rng = np.random.default_rng(0)
    assert not any(BENCHMARK["plant_random"](rng, kind).operations(0) for _ in range(15))


@pytest.mark.parametrize("missing", [0.0, 0.05])
def test_the_whole_benchmark_as_it_was_run(missing: float) -> None:
    rows = [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows if row["missing"] == missing]
    planted = [row for row in rows if "right" in row]
    n, right = (sum(row[k] for row in planted) for k in ("n", "right"))
    assert n > 1000 and right >= 0.95 * n
    by_kind = {row["planted"]: [r for r in planted if r["planted"] == row["planted"]] for row in planted}
    assert list(by_kind) == list(BENCHMARK["SIZES"])
    for of_kind in by_kind.values():
        assert sum(row["right"] for row in of_kind) >= (0.93 if missing else 0.95) * sum(row["n"] for row in of_kind)
    others = [row for row in rows if "right" not in row]
    assert sum(row["n"] for row in others) >= 1000 and not any(row["named"] for row in others)


T = np.arange(60)
RISE = 0.4 / (1 + np.exp(-(T - 30) / 3))
WAVE = 0.2 * np.sin(2 * np.pi * T / 30)


def body(query: dict[str, Any], made: dict[str, Any], **other: Any) -> Explanation:
    """Return an answer of 60 steps at 60 Hz in metres; features that are not named are still."""
    planted = BENCHMARK["as_answer"](np.zeros((60, 14)), np.zeros((60, 14)))
    q = np.zeros((1, 60, 14))
    for name, values in query.items():
        q[0, :, planted.feature_names.index(name)] = values
    c = q.copy()
    for name, values in made.items():
        c[0, :, planted.feature_names.index(name)] = values
    info = replace(planted.info, units=("m",) * 14, sampling_rate=60.0, scaler=replace(planted.info.scaler))
    low = np.full(14, -np.inf)
    info = replace(info, low=low, high=-low, max_step=-low, max_moves=np.full((4, 14), np.inf))
    return replace(planted, query=q, counterfactual=c, info=info, **other)


def test_both_arms_rise_earlier() -> None:
    """Instead of one line for each of six joints."""
    points = [f"{side}{point}" for side in ("Left", "Right") for point in ("Elbow", "Wrist", "Hand")]
    names = [f"{point}_y" for point in points]
    earlier = np.interp(T + 4.8, T, RISE)
    e = body(dict.fromkeys(names, RISE), dict.fromkeys(names, earlier))
    (operation,) = e.operations(0)
    assert operation.text == "both arms rise 0.08 s earlier from 0.00 to 0.98 s"
    assert (operation.kind, operation.what, operation.unit) == ("earlier", "both arms", "s")
    assert operation.amount == pytest.approx(0.08, abs=0.002) and set(operation.features) == set(names)
    assert operation.explained > 0.99 and operation.share == pytest.approx(1)
    lines = e.text(0).splitlines()
    assert "  - both arms rise 0.08 s earlier from 0.00 to 0.98 s" in lines
    assert "raise" not in e.text(0) and sum(line.startswith("  - both") for line in lines) == 1


@pytest.mark.parametrize(
    ("query", "made", "text"),
    [
        ({"force": RISE}, {"force": RISE + 0.05}, "force is 0.05 m higher from 0.00 to 1.00 s"),
        ({"force": WAVE}, {"force": 1.5 * WAVE},
         "the range of force is larger, 0.6 instead of 0.4 m, from 0.02 to 1.00 s"),
        (
            {"LeftWrist_x": WAVE, "LeftWrist_y": RISE - 0.2},
            {"LeftWrist_x": 0.5 * WAVE, "LeftWrist_y": 0.5 * (RISE - 0.2)},
            "the movement of LeftWrist is 50 % smaller from 0.00 to 1.00 s",
        ),
        ({"force": 0 * T}, {"force": 0.3 * np.exp(-0.5 * ((T - 30) / 3) ** 2) * (abs(T - 30) < 10)},
         "force gets a peak of 0.3 m at 0.50 s"),
        ({"force": -0.3 * np.exp(-0.5 * ((T - 30) / 3) ** 2)}, {"force": 0 * T},
         "force loses its dip of 0.3 m at 0.50 s"),
        ({"LeftWrist_y": RISE, "RightWrist_y": RISE}, {"LeftWrist_y": RISE - 0.05, "RightWrist_y": RISE - 0.05},
         "both wrists are 0.05 m lower from 0.00 to 1.00 s"),
        ({"LeftWrist_x": RISE, "RightWrist_x": RISE}, {"LeftWrist_x": RISE - 0.05, "RightWrist_x": RISE - 0.05},
         "both wrists are 0.05 m further towards −x from 0.00 to 1.00 s"),
        ({"force": WAVE}, {"force": WAVE + 0.1 * np.sin(2 * np.pi * T / 4)}, "force is shakier, with "),
        ({"force": WAVE + 0.1 * np.sin(2 * np.pi * T / 4)}, {"force": WAVE}, "force is smoother, with "),
        ({"force": RISE}, {"force": np.interp(59 + 0.7 * (T - 59), T, RISE)},
         "force moves 31 % slower, starting earlier, from 0.00 to 0.98 s"),
    ],
    ids=["higher", "larger", "smaller", "peak", "dip", "both sides", "axis", "shakier", "smoother", "slower"],
)  # fmt: skip
def test_what_is_said(query: Any, made: Any, text: str) -> None:
    (operation,) = body(query, made).operations(0)
    assert operation.text.startswith(text)
    assert operation.amount > 0 and not math.isnan(operation.amount)


@pytest.mark.parametrize(
    "left", [np.where(T < 40, 0.05, 0.0), np.full(60, 0.12)], ids=["times differ", "numbers differ"]
)
def test_both_sides_only_where_number_and_time_hold_for_each(left: Any) -> None:
    e = body({"LeftWrist_y": RISE, "RightWrist_y": RISE}, {"LeftWrist_y": RISE + left, "RightWrist_y": RISE + 0.05})
    assert sorted(operation.what for operation in e.operations(0)) == ["LeftWrist_y", "RightWrist_y"]


def test_an_arm_is_moved_only_with_its_elbow() -> None:
    names = ["LeftWrist_y", "LeftHand_y"]
    e = body(dict.fromkeys([*names, "LeftElbow_y"], RISE), dict.fromkeys(names, RISE + 0.05) | {"LeftElbow_y": RISE})
    assert sorted(operation.what for operation in e.operations(0)) == sorted(names)


def test_without_times_and_units_steps_are_told() -> None:
    e = body({"force": RISE}, {"force": np.interp(T - 3, T, RISE)})
    e = replace(e, info=replace(e.info, units=None, sampling_rate=None))
    assert e.operations(0)[0].text == "force rises 3 steps later in steps 1 to 59"


def test_the_rest_is_told_as_before_and_nothing_twice() -> None:
    """Every changed entry is in one operation or in one other change."""
    rng = np.random.default_rng(1)
    noise = np.where((T > 10) & (T < 40), rng.permutation(np.repeat([-1.0, 1.0, 0.3, -0.4], 15)), 0.0)
    e = body({"force": RISE, "pulse": WAVE}, {"force": RISE + 0.05, "pulse": WAVE + noise})
    text = e.text(0)
    assert text.count("force") == 1 and "force is 0.05 m higher" in text
    assert "change pulse both ways" in text and [o.what for o in e.operations(0)] == ["force"]


def test_two_operations_of_one_feature() -> None:
    made = WAVE.copy()
    made[5:20] += 0.1
    made[35:55] -= 0.2
    first, second = body({"force": WAVE}, {"force": made}).operations(0)
    assert (first.kind, first.start, first.end) == ("lower", 35, 55)
    assert (second.kind, second.start, second.end) == ("higher", 5, 20)
    assert first.share + second.share == pytest.approx(1) and first.share > second.share


def test_no_operations_where_there_is_no_answer() -> None:
    e = body({"force": RISE}, {"force": RISE + 0.05})
    assert len(e.operations(0)) == 1
    assert replace(e, proba_after=np.array([[0.9, 0.1]])).operations(0) == []
    assert replace(e, status=np.array(["unchanged"])).operations(0) == []


def test_a_fast_part_that_is_taken_away_is_no_shift() -> None:
    """Between steps, interpolation takes a fast oscillation away; a period later the slow one is the same."""
    slow, fast = np.sin(2 * np.pi * T / 10), 0.9 * np.sin(2 * np.pi * 0.45 * T)
    e = body({"force": slow + fast}, {"force": slow + 0.1 * fast})
    assert [(o.kind, o.what) for o in e.operations(0)] == [("smoother", "force")]
    half = np.interp(T + 10.5, T, slow + fast)
    e = body({"force": slow + fast}, {"force": np.where(T < 48, half, slow + fast)})
    assert not {"earlier", "later"} & {o.kind for o in e.operations(0)}


def test_missing_values_padding_and_single_steps() -> None:
    e = body({"force": RISE, "pulse": WAVE}, {"force": RISE + 0.05, "pulse": WAVE + 0.1})
    e.query[0, ::7, 13] = e.counterfactual[0, ::7, 13] = np.nan
    assert [o.text for o in e.operations(0)] == [
        "pulse is 0.1 m higher from 0.02 to 1.00 s",
        "force is 0.05 m higher from 0.00 to 1.00 s",
    ], "gaps are bridged"
    e.query[0, ::4, 13] = e.counterfactual[0, ::4, 13] = np.nan
    assert [o.what for o in e.operations(0)] == ["force"], "not where much is missing"
    padded = replace(e, lengths=np.array([40]))
    padded.counterfactual[0, 40:] = padded.query[0, 40:] = 0.0
    assert padded.operations(0)[0].end == 40
    one = body({"force": RISE}, {"force": np.where(T == 5, 1.0, RISE)})
    assert one.operations(0) == [] and "raise force by" in one.text(0)


def test_of_long_and_wide_series_the_largest_changes_are_looked_at() -> None:
    rng = np.random.default_rng(0)
    planted = BENCHMARK["as_answer"](*(rng.normal(size=(2000, 14)).cumsum(0) for _ in range(2)))
    assert len(find_operations(planted)) <= 40
