"""Explanations in shards: the folder reads like one explanation, and arrays are read on access."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparcets.core.errors import FileFormatError, StorageError
from sparcets.core.explanation import Explanation
from sparcets.core.info import SeriesInfo
from sparcets.core.series import Series
from sparcets.io.explanations import ExplanationFolder, ShardWriter, load_explanation
from sparcets.io.files import TEMPORARY
from tests.campaigns.folders import snapshot

X = np.random.default_rng(0).normal(size=(5, 3, 2)).astype(np.float32)
SETTINGS = {"n": 1, "method": "nearest"}


def explanation(**changes: Any) -> Explanation:
    values: dict[str, Any] = {
        "query": X,
        "counterfactual": X + np.float32([1, 0]),
        "target": np.array([0, 1, 0, 1, 0]),
        "status": np.array(["generated"] * 4 + ["not_found"]),
        "reason": np.array([""] * 4 + ["too few entries may change"]),
        "query_index": np.arange(5),
        "proba_before": np.full((5, 2), 0.5),
        "proba_after": np.tile([0.25, 0.75], (5, 1)),
        "info": SeriesInfo.from_series(X, ("sick", "well")),
        "mutable": np.array([True, False]),
        "lengths": np.array([3, 2, 1, 3, 2]),
        "method": "nearest",
        "config": {"seed": 3},
        "constraints": {"immutable": [1]},
        "seed": 3,
        "seconds": 0.5,
    }
    return Explanation(**{**values, **changes})


def write(folder: Path, whole: Explanation) -> ExplanationFolder:
    """Write two shards, of the first two answers and of the others."""
    writer = ShardWriter(folder, SETTINGS)
    writer.begin()
    writer.write(0, whole[:2])
    writer.write(1, whole[2:])
    return writer.finish(2)


@pytest.mark.parametrize("lengths", [np.array([3, 2, 1, 3, 2]), None])
def test_every_field_of_the_explanation(tmp_path: Path, lengths: Any) -> None:
    whole = explanation(lengths=lengths)
    folder = write(tmp_path, whole)
    assert isinstance(folder, Explanation) and len(folder) == 5 and folder.n_shards == 2
    for field in dataclasses.fields(Explanation):
        found, expected = getattr(folder, field.name), getattr(whole, field.name)
        if field.name == "info":
            assert found.to_dict() == expected.to_dict()
        elif field.name == "evidence":
            np.testing.assert_equal(found.to_arrays(), expected.to_arrays())
        elif field.name == "seconds":
            assert found == 2 * expected, "the sum over the shards"
        else:
            np.testing.assert_array_equal(found, expected, err_msg=field.name)
    for name in ("delta", "changed", "valid", "probability", "predicted", "share_changed"):
        np.testing.assert_array_equal(getattr(folder, name), getattr(whole, name), err_msg=name)
    assert repr(folder) == repr(whole) and folder.to_frame().equals(whole.to_frame())
    assert folder[[4, 0]].query_index.tolist() == [4, 0] and len(folder[[]]) == 0


@pytest.mark.parametrize("name", ["target", "query", "info", "seed", "seconds", "lengths"])
def test_fields_are_read_only(tmp_path: Path, name: str) -> None:
    folder = write(tmp_path, explanation())
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(folder, name, None)
    with pytest.raises(AttributeError):
        folder.no_such_field  # noqa: B018


def test_arrays_are_read_on_access(tmp_path: Path) -> None:
    folder = write(tmp_path, explanation())
    status = folder.status
    (tmp_path / "shard-000001.npz").unlink()
    assert folder.status is status and folder.info.n_steps == 3 and folder.method == "nearest"
    for name in ("query", "target"):
        with pytest.raises(FileFormatError, match=r"shard-000001.npz is missing or damaged"):
            getattr(folder, name)


def test_unfinished_folder(tmp_path: Path) -> None:
    writer = ShardWriter(tmp_path, SETTINGS)
    writer.begin()
    writer.write(0, explanation())
    with pytest.raises(FileFormatError, match="is not finished: call explain with the same queries"):
        load_explanation(tmp_path)
    resumed = ShardWriter(tmp_path, SETTINGS)
    steps = explanation().lengths
    found = resumed.finished_shard(0, Series(X, steps), None)
    assert found is not None and len(found) == 5 and resumed.finished_shard(1, Series(X, steps), None) is None
    for others in (None, steps[::-1]):
        with pytest.raises(StorageError, match="to series of other lengths"):
            resumed.finished_shard(0, Series(X, others), None)
    for name, other in (("method", {**SETTINGS, "method": "gan"}), ("k", {**SETTINGS, "k": 1}), ("method", {"n": 1})):
        with pytest.raises(StorageError, match=f"to another question: {name} differs"):
            ShardWriter(tmp_path, other)


@pytest.mark.parametrize("name", ["shard-000000.npz", "explanation.json"])
def test_a_folder_of_others_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("{}")
    before = snapshot(tmp_path)
    with pytest.raises((StorageError, FileFormatError), match=r"is not (of )?a folder of (explan|answ)"):
        write(tmp_path, explanation())
    assert snapshot(tmp_path) == before


def test_files_of_others_beside_shards_are_kept(tmp_path: Path) -> None:
    for name in (".shard-mine.npz", ".shard-000000.npz", "shard-mine.npz", ".lock", f"shard-000000{TEMPORARY}1.npz"):
        (tmp_path / name).write_text("theirs")
    before = snapshot(tmp_path)
    write(tmp_path, explanation())
    after = snapshot(tmp_path)
    assert {name: after[name] for name in before} == before
