"""Explanations on disk, in a file or in shards: round trips, damaged files, what cannot be answers, a full disk."""

import dataclasses
import json

import numpy as np
import pytest

from sparcets.core.errors import FileFormatError, StorageError
from sparcets.core.explanation import Explanation
from sparcets.core.info import SeriesInfo
from sparcets.core.series import Series
from sparcets.io.explanations import ShardWriter, load_explanation
from sparcets.io.files import add_digest, digest_of_array
from tests.made import answers

INFO = dataclasses.replace(
    SeriesInfo.from_series(np.arange(12.0).reshape(2, 3, 2), ("krank – 病", "gesund 🙂")),
    feature_names=("größe", "加速度"),
    units=("m/s²", ""),
    sampling_rate=50.0,
)
QUESTION = {"n": 1, "method": "nearest"}  # of a folder of shards


def explanation(n=5, **changes):
    rng = np.random.default_rng(0)
    values = {
        "query": rng.normal(size=(n, 3, 2)).astype(np.float32),
        "counterfactual": rng.normal(size=(n, 3, 2)).astype(np.float32),
        "info": INFO,
        "target": np.arange(n) % 2,
        "status": np.where(np.arange(n) == 4, "not_found", "generated"),
        "reason": "weil „zu wenig“ ändern darf",
        "proba_before": rng.dirichlet([1, 1], n),
        "proba_after": rng.dirichlet([1, 1], n),
        "mutable": [True, False],
        "lengths": 3 - np.arange(n) % 3,
        "config": {"seed": 3, "nested": {"lr": 0.1}},
        "constraints": {"frozen": [[0, 1]]},
    }
    return answers(**{**values, "method": "nearest", "seed": 3, "seconds": 1.25, **changes})


def assert_same(one, two, *, seconds=1):
    """Compare all fields; ``seconds`` says how often the time of the second is in the first."""
    for field in dataclasses.fields(Explanation):
        a, b = getattr(one, field.name), getattr(two, field.name)
        if isinstance(a, np.ndarray):
            assert a.dtype == b.dtype and a.tobytes() == b.tobytes(), field.name
        elif field.name == "info":
            assert a.to_dict() == b.to_dict()
        elif field.name == "evidence":
            np.testing.assert_equal(one._known_evidence.to_arrays(), two._known_evidence.to_arrays())
        else:
            assert a == (seconds * b if field.name == "seconds" else b), field.name


@pytest.mark.parametrize("name", ["run.npz", "run", "läuft 病.npz"])
def test_round_trip(tmp_path, name):
    e = explanation()
    wide = dataclasses.replace(e, query=e.query.astype(float), counterfactual=e.counterfactual.astype(float))
    for one in (e, explanation(lengths=None), e[:0], wide):
        one.save(tmp_path / name)
        assert [p.name for p in tmp_path.iterdir()] == [name], "the file has exactly the given name"
        assert_same(load_explanation(str(tmp_path / name)), one)
    with np.load(tmp_path / name, allow_pickle=False) as stored:
        assert all(stored[part].dtype.kind in "fiubU" for part in stored.files)


@pytest.mark.parametrize("content", [b"", b"query,target\n1,2\n", b"\x93NUMPY\x01\x00", b"PK\x03\x04"])
def test_other_formats(tmp_path, content):
    with pytest.raises(FileFormatError, match=r"no file .*run.npz. Pass an .npz file written by Explanation.save."):
        load_explanation(tmp_path / "run.npz")
    with pytest.raises(FileFormatError, match="is not a folder of answers"):
        load_explanation(tmp_path)
    (tmp_path / "run.npz").write_bytes(content)
    with pytest.raises(FileFormatError, match=r"run.npz is not an explanation, or it is truncated"):
        load_explanation(tmp_path / "run.npz")
    np.savez(tmp_path / "data.npz", X=np.zeros((1, 2, 3)), y=np.zeros(1))
    with pytest.raises(FileFormatError, match=r"data.npz is not an explanation: it has no header"):
        load_explanation(tmp_path / "data.npz")
    newer = rewritten(tmp_path / "newer.npz", lambda header: header.update(schema=2))
    with pytest.raises(FileFormatError, match=r"has layout 2, this version of sparcets reads layout 1"):
        load_explanation(newer)


def rewritten(file, header=lambda header: None, *, without="", digests=False, **arrays):
    """Save an explanation with some of its parts replaced, on request with digests that fit."""
    explanation(4).save(file)
    with np.load(file) as stored:
        parts = {name: stored[name] for name in stored.files if name not in (without, "header")} | arrays
        entries = json.loads(str(stored["header"]))
    header(entries)
    if digests:
        del entries["sha256"]
        entries = add_digest({**entries, "arrays": {name: digest_of_array(part) for name, part in parts.items()}})
    np.savez(file, header=np.array(json.dumps(entries)), **parts)
    return file


@pytest.mark.parametrize("change", [{"without": "lengths"}, {"surplus": np.zeros(3)}], ids=["missing", "surplus"])
def test_arrays_are_those_of_the_header(change, tmp_path):
    with pytest.raises(FileFormatError, match=r"run\.npz .* does not match the sha256 in the header"):
        load_explanation(rewritten(tmp_path / "run.npz", **change))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("mutable", np.full(2, np.datetime64("2026-01-01")), "mutable cannot be datetime64"),
        ("mutable", np.ones(3, dtype=bool), r"mutable cannot be bool of shape \(3,\)"),
        ("target", np.ones(4), "target cannot be float64"),
        ("target", np.full(4, 9), "target cannot be those of answers"),
        ("status", np.full(4, "odd"), "status cannot be those of answers"),
        ("query", np.zeros((4, 3, 2), dtype=complex), "query cannot be complex128"),
        ("lengths", np.full(4, 6), "lengths cannot be those of answers"),
    ],
)
def test_arrays_that_cannot_be_answers(name, value, message, tmp_path):
    assert len(load_explanation(rewritten(tmp_path / "run.npz", digests=True))) == 4
    with pytest.raises(FileFormatError, match=rf"run\.npz .*{message}"):
        load_explanation(rewritten(tmp_path / "run.npz", digests=True, **{name: value}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("config", 3), ("seed", "x"), ("method", None), ("seconds", [])),
        *(("mutable", True), ("mutable", [1, 1]), ("span", [1.0]), ("units", ["m"]), ("sampling_rate", "fast")),
        *(("feature_names", [1, 2]), ("n_steps", 0), ("class_names", [])),
    ],
)
def test_headers_that_cannot_be_of_answers(name, value, tmp_path):
    def change(header):
        (header if name in header else header["info"])[name] = value

    with pytest.raises(FileFormatError, match=rf"run\.npz .*(its {name} cannot be|of the series cannot be those of)"):
        load_explanation(rewritten(tmp_path / "run.npz", change, digests=True))


def write(folder, whole):
    """Write two shards, of the first two answers and of the others."""
    writer = ShardWriter(folder, QUESTION)
    writer.write(0, whole[:2])
    writer.write(1, whole[2:])
    return writer.finish(2)


def test_arrays_are_read_on_access(tmp_path):
    folder = write(tmp_path, explanation())
    status = folder.status
    (tmp_path / "shard-000001.npz").unlink()
    assert folder.status is status and folder.info.n_steps == 3 and folder.method == "nearest"
    with pytest.raises(FileFormatError, match=r"no file .*shard-000001.npz"):
        _ = folder.query


def test_unfinished_folder(tmp_path):
    writer = ShardWriter(tmp_path, QUESTION)
    writer.write(0, explanation())
    with pytest.raises(FileFormatError, match="is not finished: call explain with the same queries"):
        load_explanation(tmp_path)
    resumed = ShardWriter(tmp_path, QUESTION)
    X, steps = explanation().query, explanation().lengths
    found = resumed.finished_shard(0, Series(X, steps), None)
    assert len(found) == 5 and resumed.finished_shard(1, Series(X, steps), None) is None
    for others in (None, steps[::-1]):
        with pytest.raises(StorageError, match="to series of other lengths"):
            resumed.finished_shard(0, Series(X, others), None)
    for name, other in (("method", {**QUESTION, "method": "gan"}), ("k", {**QUESTION, "k": 1}), ("method", {"n": 1})):
        with pytest.raises(StorageError, match=f"to another question: {name} differs"):
            ShardWriter(tmp_path, other)
