"""Explanations on disk: round trips, damaged files, a full disk."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparcets.core.errors import FileFormatError, StorageError
from sparcets.core.explanation import Explanation
from sparcets.core.info import SeriesInfo
from sparcets.io.explanations import load_explanation

INFO = dataclasses.replace(
    SeriesInfo.from_series(np.arange(12.0).reshape(2, 3, 2), ("krank – 病", "gesund 🙂")),
    feature_names=("größe", "加速度"),
    units=("m/s²", ""),
    sampling_rate=50.0,
)


def explanation(n: int = 3, **changes: Any) -> Explanation:
    rng = np.random.default_rng(0)
    values: dict[str, Any] = {
        "query": rng.normal(size=(n, 3, 2)).astype(np.float32),
        "counterfactual": rng.normal(size=(n, 3, 2)).astype(np.float32),
        "target": np.zeros(n, dtype=np.int64),
        "status": np.full(n, "generated"),
        "reason": np.full(n, "weil „zu wenig“ ändern darf"),
        "query_index": np.arange(n),
        "proba_before": rng.dirichlet([1, 1], n),
        "proba_after": rng.dirichlet([1, 1], n),
        "info": INFO,
        "mutable": np.array([True, False]),
        "lengths": np.full(n, 2),
        "method": "nearest",
        "config": {"seed": 3, "nested": {"lr": 0.1}},
        "constraints": {"frozen": [[0, 1]]},
        "seed": 3,
        "seconds": 1.25,
    }
    return Explanation(**{**values, **changes})


def assert_same(one: Explanation, two: Explanation) -> None:
    for field in dataclasses.fields(Explanation):
        a, b = getattr(one, field.name), getattr(two, field.name)
        if isinstance(a, np.ndarray):
            assert a.dtype == b.dtype and a.tobytes() == b.tobytes(), field.name
        elif field.name == "info":
            assert a.to_dict() == b.to_dict()
        elif field.name == "evidence":
            np.testing.assert_equal(a.to_arrays(), b.to_arrays())
        else:
            assert a == b, field.name


@pytest.mark.parametrize("name", ["run.npz", "run", "läuft 病.npz"])
def test_round_trip(tmp_path: Path, name: str) -> None:
    e = explanation()
    e.save(tmp_path / name)
    assert [p.name for p in tmp_path.iterdir()] == [name], "the file has exactly the given name"
    assert_same(load_explanation(tmp_path / name), e)
    with np.load(tmp_path / name, allow_pickle=False) as stored:
        assert all(stored[part].dtype.kind in "fiubU" for part in stored.files)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_round_trip_without_answers_or_lengths(tmp_path: Path, dtype: Any) -> None:
    for e in (explanation(lengths=None), explanation()[:0]):
        e = dataclasses.replace(e, query=e.query.astype(dtype), counterfactual=e.counterfactual.astype(dtype))
        e.save(str(tmp_path / "run.npz"))
        assert_same(load_explanation(str(tmp_path / "run.npz")), e)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=r"no file .*run.npz. Pass an .npz file written by Explanation.save."):
        load_explanation(tmp_path / "run.npz")
    with pytest.raises(FileFormatError, match="is not a folder of answers"):
        load_explanation(tmp_path)


@pytest.mark.parametrize("content", [b"", b"query,target\n1,2\n", b"\x93NUMPY\x01\x00", b"PK\x03\x04"])
def test_other_formats(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "run.npz").write_bytes(content)
    with pytest.raises(FileFormatError, match=r"run.npz is not an explanation, or it is truncated"):
        load_explanation(tmp_path / "run.npz")
    np.savez(tmp_path / "data.npz", X=np.zeros((1, 2, 3)), y=np.zeros(1))
    with pytest.raises(FileFormatError, match=r"data.npz is not an explanation: it has no header"):
        load_explanation(tmp_path / "data.npz")
    newer = rewritten(tmp_path / "newer.npz", header=lambda header: {**header, "schema": 2})
    with pytest.raises(FileFormatError, match=r"has layout 2, this version of sparcets reads layout 1"):
        load_explanation(newer)


def rewritten(file: Path, *, header: Any = None, without: str = "", **arrays: Any) -> Path:
    """Save an explanation with some of its parts replaced."""
    explanation().save(file)
    with np.load(file) as stored:
        parts = {name: stored[name] for name in stored.files if name != without} | arrays
    if header is not None:
        parts["header"] = np.array(json.dumps(header(json.loads(str(parts["header"])))))
    np.savez(file, **parts)
    return file


@pytest.mark.parametrize(
    "change",
    [
        {"header": lambda h: []},
        {"header": lambda h: {"schema": 1}},
        {"header": lambda h: {**h, "info": {}}},
        {"without": "target"},
        {"surplus": np.zeros(3)},
        {"target": np.zeros(2, dtype=np.int64)},
        {"counterfactual": np.zeros((3, 3, 9))},
        {"reason": np.array([None, None, None], dtype=object)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_damaged_parts(tmp_path: Path, change: dict[str, Any]) -> None:
    with pytest.raises(FileFormatError, match=r"run.npz is not an explanation, or it is damaged: "):
        load_explanation(rewritten(tmp_path / "run.npz", **change))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.floats(0, 0.999), flips=st.lists(st.tuples(st.floats(0, 1), st.integers(1, 255)), max_size=3))
def test_truncated_or_flipped_bytes_raise_no_other_error(tmp_path: Path, cut: float, flips: Any) -> None:
    file = tmp_path / "run.npz"
    explanation().save(file)
    content = bytearray(file.read_bytes())
    for position, mask in flips:
        content[int(position * (len(content) - 1))] ^= mask
    file.write_bytes(content if flips else content[: int(cut * len(content))])
    rejected = False
    try:
        load_explanation(file)
    except FileFormatError:
        rejected = True
    assert rejected or flips, "a truncated file was read"


FULL_DISK = """
import resource, runpy, sys
explanation = runpy.run_path(sys.argv[2])["explanation"]
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
try:
    explanation(n=2000).save(sys.argv[1])
except OSError as error:
    sys.exit(f"{type(error).__name__}: {error}")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits on the size of files are POSIX")
def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    file, old = tmp_path / "run.npz", explanation()
    old.save(file)
    command = [sys.executable, "-W", "error", "-c", FULL_DISK, str(file), __file__]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    expected = f"{StorageError.__name__}: cannot write {file}: File too large. Nothing was overwritten; free some space"
    assert done.returncode == 1 and done.stderr.startswith(expected), done.stderr
    assert_same(load_explanation(file), old)
    assert [p.name for p in tmp_path.iterdir()] == ["run.npz"]
