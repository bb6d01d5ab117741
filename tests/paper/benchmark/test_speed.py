"""The speed benchmark: all parts run, rows are stored and read.

No test depends on measured times."""

import json
import multiprocessing
import sys
from dataclasses import replace

import numpy as np
import pytest

from sparcets.__main__ import main
from sparcets.core.errors import ConfigError
from sparcets_paper.benchmark.speed import PARTS, SpeedSizes, _peak, cells, read_rows, run_speed

pytestmark = pytest.mark.long

TINY = replace(SpeedSizes.quick(), n_series=40, classifier_steps=60, decades=(3, 6))


def test_all_parts_run_and_are_stored(tmp_path):
    new = []
    some = ("explaining", "latency", "memory")
    rows = run_speed(device="cpu", sizes=TINY, parts=some, out=tmp_path / "s.jsonl", on_row=new.append)
    assert not [row for row in rows if "error" in row]
    assert rows[0]["part"] == "machine" and rows[0]["device"] == "cpu" and rows[0]["cores"] >= 1
    assert new == rows[1:] and read_rows(tmp_path / "s.jsonl") == json.loads(json.dumps(rows))
    assert {row["part"] for row in rows[1:]} == set(some)
    assert all(np.isfinite(row["value"]) for row in rows[1:])
    answered = [row for row in rows if row["part"] == "explaining" and "ratio" in row]
    assert {row["name"] for row in answered} == {"sparcets", "nearest"}
    assert {row["batch"] for row in answered} == set(TINY.explained)
    first = next(row for row in rows if row["name"] == "ics")
    assert answered[0]["ratio"] == pytest.approx(answered[0]["value"] / first["value"])


def test_a_part_that_fails_is_a_row_and_the_others_continue(tmp_path, monkeypatch):
    def fail(bench):
        raise RuntimeError("CUDA error: out of memory")

    monkeypatch.setitem(PARTS, "latency", fail)
    monkeypatch.setitem(PARTS, "scaling", lambda bench: iter([{"name": "steps", "value": 1.0, "unit": "exponent"}]))
    rows = run_speed(device="cpu", sizes=TINY, parts=("latency", "scaling"), out=tmp_path / "s.jsonl")
    assert rows[1]["error"] == "RuntimeError: CUDA error: out of memory" and rows[2]["value"] == 1.0
    assert read_rows(tmp_path / "s.jsonl") == rows and cells(rows[1])[1].startswith("RuntimeError")
    with pytest.raises(ConfigError, match=r"the speed benchmark has no part 'sped'\. Known: fitting"):
        run_speed(device="cpu", parts=("sped",))


def test_on_the_command_line(tmp_path, capsys, monkeypatch):
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


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere the system has one count only")
def test_a_peak_does_not_begin_with_what_the_starting_process_held():
    held = np.ones(2**26)  # 512 MiB
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        started = pool.apply(_peak)
    assert _peak() > held.nbytes > 2 * started
