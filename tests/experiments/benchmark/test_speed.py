"""The speed benchmark runs from end to end, stores what it measures, and its references are what they claim to be.

Nothing here is compared with a clock.
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from sparcets.__main__ import main
from sparcets.errors import ConfigError
from sparcets.experiments.benchmark import speed
from sparcets.experiments.benchmark.plain_step import plain_step
from sparcets.experiments.benchmark.speed import PARTS, read_rows, run_speed
from sparcets.experiments.benchmark.speed_setting import Bench, SpeedSizes
from sparcets.experiments.benchmark.speed_table import cells, short

TINY = replace(SpeedSizes.quick(), n_series=40, classifier_steps=60, decades=(3, 6))


def test_all_parts_run_and_are_stored(tmp_path: Path) -> None:
    told: list[dict] = []
    some = ("training", "explaining", "latency", "memory")
    rows = run_speed(device="cpu", sizes=TINY, parts=some, out=tmp_path / "s.jsonl", on_row=told.append)
    assert not [row for row in rows if "error" in row]
    assert rows[0]["part"] == "machine" and rows[0]["device"] == "cpu" and rows[0]["cores"] >= 1
    assert told == rows[1:] and read_rows(tmp_path / "s.jsonl") == json.loads(json.dumps(rows))
    assert {row["part"] for row in rows[1:]} == set(some)
    assert all(np.isfinite(row["value"]) for row in rows[1:])
    trained = [row for row in rows if row["part"] == "training"]
    assert [row["name"] for row in trained][:3] == ["the paper's step, plain", "sparce", "sparce, paper"]
    plain, ours = trained[:2]
    assert ours["ratio"] == pytest.approx(ours["value"] * ours["batch"] / (plain["value"] * 32))
    answered = [row for row in rows if row["part"] == "explaining" and "ratio" in row]
    assert {row["name"] for row in answered} == {"sparce", "nearest"}
    assert {row["batch"] for row in answered} == set(TINY.explained)
    first = next(row for row in rows if row["name"] == "ics")
    assert answered[0]["ratio"] == pytest.approx(answered[0]["value"] / first["value"])


def test_data_that_lie_on_the_device_are_answered_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "LARGE", 6)  # on a GPU alone it is part of a run; here it must work, too
    bench = Bench(device="cpu", sizes=TINY, seed=0)
    assert speed._rate_on_the_device(bench, bench.explainer()) > 0


def test_growth_is_a_power(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a clock of our own that runs with the entries, time grows with the first power of each size."""
    monkeypatch.setattr(speed, "_explaining_rate", lambda bench, explainer, X: (len(X) / X.size, 1.0))
    monkeypatch.setattr(speed, "fit_explainer", lambda *_: None)
    monkeypatch.setattr(speed, "train_classifier", lambda *_: None)
    monkeypatch.setattr(Bench, "queries", lambda self, n: np.zeros((n, 4, 4)))
    rows = list(speed.scaling(Bench(device="cpu", sizes=TINY, seed=0)))
    assert [row["name"] for row in rows] == ["queries", "features", "steps"]
    assert [row["value"] for row in rows] == pytest.approx([1.0, 1.0, 1.0])
    assert list(rows[0]["seconds"]) == [8 * size for size in TINY.decades]


def test_one_part_is_replaced_and_the_others_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = iter(range(9))
    for name in PARTS:
        monkeypatch.setitem(PARTS, name, lambda bench: iter([{"name": "x", "value": next(made), "unit": "s"}]))
    out = tmp_path / "s.jsonl"
    run_speed(device="cpu", sizes=TINY, parts=("latency", "scaling"), out=out)
    run_speed(device="cpu", sizes=TINY, parts=("scaling",), out=out)
    assert sorted((row["part"], row.get("value")) for row in read_rows(out) if row["part"] != "machine") == [
        ("latency", 0),
        ("scaling", 2),
    ]


def test_a_part_that_fails_is_told_and_the_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(bench: Bench) -> None:
        raise RuntimeError("CUDA error: out of memory")

    monkeypatch.setitem(PARTS, "latency", fail)
    monkeypatch.setitem(PARTS, "scaling", lambda bench: iter([{"name": "steps", "value": 1.0, "unit": "exponent"}]))
    rows = run_speed(device="cpu", sizes=TINY, parts=("latency", "scaling"), out=tmp_path / "s.jsonl")
    assert rows[1]["error"] == "RuntimeError: CUDA error: out of memory" and rows[2]["value"] == 1.0
    assert read_rows(tmp_path / "s.jsonl") == rows
    assert cells(rows[1])[1].startswith("RuntimeError")
    with pytest.raises(ConfigError, match=r"no part 'sped' of the speed benchmark\. Known: training"):
        run_speed(device="cpu", parts=("sped",))


def test_the_plain_step_learns() -> None:
    """The reference is a training step, not a mock-up: its classification loss falls."""
    bench = Bench(device="cpu", sizes=replace(TINY, n_series=60), seed=0)
    torch.manual_seed(0)
    step = plain_step(bench.X, bench.classifier(), 1, torch.device("cpu"), batch=16, hidden=16)
    before = np.mean([step() for _ in range(5)])
    for _ in range(150):
        step()
    assert np.mean([step() for _ in range(5)]) < before - 0.1


def test_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    row = {"name": "one query, p50", "value": 7.123, "unit": "ms"}
    monkeypatch.setitem(PARTS, "latency", lambda bench: iter([row]))
    monkeypatch.chdir(tmp_path)
    command = ["benchmark", "speed", "--quick", "--device", "cpu", "--part", "latency"]
    assert main(command) == 0
    assert "latency\tone query, p50\t\t7.12\tms" in capsys.readouterr().out
    assert read_rows(tmp_path / "results" / "speed-cpu.jsonl")[1] == {"part": "latency", **row}
    assert main([*command, "--json", "--out", "other.jsonl"]) == 0
    assert json.loads(capsys.readouterr().out)[1]["value"] == 7.123
    assert main([*command[:-1], "sped"]) == 2


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (-0.5, "-0.50"), (99.94, "99.9"), (100, "100"), (1e6, "1,000,000")]
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert short(value) == text
