"""explain(out=folder): the same answers in shards, in constant memory, and after a kill it goes on where it was."""

import resource
import sys
from pathlib import Path

import numpy as np
import pytest

import sparcets as sp
from sparcets.core import errors
from sparcets.io import explanations as shards
from sparcets.io.explanations import HEADER, ExplanationFolder
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MaskedMeanModule, MeanModule, mean_proba
from tests.scripted import Scripted

X, Y = make_series(60)
QUERIES = X[Y != 1]
SAME = ("query", "counterfactual", "target", "status", "reason", "query_index", "proba_before", "proba_after")
SAME += ("lengths", "ids", "subjects", "prediction", "valid", "share_changed")
LENGTHS = X.shape[1] - np.arange(60) % 6
OTHERS = Y != 1
IDS = [f"trial {i}" for i in range(len(QUERIES))]
AGE = np.linspace(20, 90, 60)  # in float64, which float32 does not hold
SIDE = {"age": AGE}


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    monkeypatch.setattr(shards, "MAX_SHARD_BYTES", X[0].size * 8 * 7)  # seven queries each


def fitted(module=None, **settings):
    return sp.Nearest(sp.wrap(module or MeanModule(), n_classes=3), sp.NearestConfig(**settings)).fit(X, Y)


def assert_same(e, expected):
    for name in SAME:
        np.testing.assert_array_equal(getattr(e, name), getattr(expected, name), err_msg=name)


def files(folder):
    return {file.name: file.stat().st_mtime_ns for file in sorted(folder.glob("shard-*.npz"))}


def as_map(tmp_path, mode="r"):
    np.save(tmp_path / "X.npy", QUERIES)
    return np.load(tmp_path / "X.npy", mmap_mode=mode)


SOURCES = {
    "array": lambda folder: QUERIES,
    "memory map": as_map,
    "series": lambda folder: iter(QUERIES),
    "batches": lambda folder: (QUERIES[i : i + 9] for i in range(0, len(QUERIES), 9)),
}


def level(series):
    return np.asarray(series)[:, :, 0].mean(1)


def aged(series, age):
    return mean_proba(series + 0.02 * (age[:, None, None] - 55) * np.array([1, 0, 0, 0]))


CASES = {
    "classes": (lambda: fitted(batch_size=4), {"target": 1, "n": 2}),
    "one target each, and names": (fitted, {"target": 2 * (Y[OTHERS] == 0), "ids": IDS, "subjects": Y[OTHERS]}),
    "any class but one": (fitted, {"target": sp.Not(0)}),
    "numbers": (lambda: sp.Nearest(sp.wrap(level, task="regression")).fit(X, level(X)), {"target": sp.Change(0.2)}),
    "side inputs": (
        lambda: sp.Nearest(sp.wrap(aged)).fit(X, Y, side=SIDE),
        {"target": 1, "side": {"age": AGE[OTHERS]}},
    ),
    "unequal lengths": (
        lambda: sp.Nearest(sp.wrap(MaskedMeanModule(), n_classes=3)).fit(X, Y, lengths=LENGTHS),
        {"target": 1, "lengths": LENGTHS[OTHERS]},
    ),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("case", CASES)
def test_whatever_they_come_in_and_go_to_the_answers_are_the_same(tmp_path, case, source):
    build, options = CASES[case]
    ex, out = build(), tmp_path / "out"
    expected = ex.explain(QUERIES, **options)
    assert expected.valid.any() and expected.changed.any()
    ex.explain(SOURCES[source](tmp_path), **options, out=out)
    assert len(files(out)) >= -(-len(QUERIES) // 7)
    in_memory, again = (ex.explain(SOURCES[source](tmp_path), **options, out=to) for to in (None, out))
    for e in (in_memory, again, sp.load_explanation(out)):
        assert_same(e, expected)
        assert e.constraints == expected.constraints and e.method == "nearest"
        assert_same(e[[30, 2, 17, 2]], expected[[30, 2, 17, 2]])
        assert e.to_frame().equals(expected.to_frame())
        for name, values in (expected.side or {}).items():
            np.testing.assert_array_equal(e.side[name], values)


@pytest.mark.parametrize(
    ("case", "other", "message"),
    [
        ("one target each, and names", {"ids": IDS[::-1]}, "holds answers to queries of other ids or subjects"),
        ("any class but one", {"target": sp.Not(2)}, "another"),
        ("numbers", {"target": sp.Change(0.2 + 1e-9)}, "another question: targets"),  # not told apart by its words
        ("side inputs", {"side": {"age": AGE[OTHERS] + 1}}, "to queries with other side inputs"),
    ],
)
def test_a_folder_is_that_of_one_question(tmp_path, case, other, message):
    build, options = CASES[case]
    (ex := build()).explain(QUERIES, **options, out=tmp_path)
    for source in (QUERIES, iter(QUERIES)):
        with pytest.raises(errors.StorageError, match=message):
            ex.explain(source, **{**options, **other}, out=tmp_path)


def test_a_folder_reads_like_an_explanation(tmp_path):
    ex = fitted()
    expected = ex.explain(QUERIES, target=1, n=2)
    e = ex.explain(QUERIES, target=1, n=2, out=tmp_path)
    assert isinstance(e, sp.Explanation) and isinstance(e, ExplanationFolder)
    assert repr(e) == repr(expected)
    for rows in (0, -1, slice(5, 9), expected.valid, []):
        assert type(e[rows]) is sp.Explanation
        assert_same(e[rows], expected[rows])
    assert e.text(3) == expected.text(3) and sum(len(shard) for shard in e.shards()) == len(expected)
    assert [int(one.query_index[0]) for one in e] == expected.query_index.tolist()
    e.save(tmp_path / "whole.npz")
    assert_same(sp.load_explanation(tmp_path / "whole.npz"), expected)


class Crash(Exception):
    pass


def stopping_after(n):
    """Return queries that end in a crash after ``n`` of them."""
    yield from QUERIES[:n]
    raise Crash


def test_after_a_crash_only_what_is_missing_is_made(tmp_path):
    expected = fitted().explain(QUERIES, target=1)
    with pytest.raises(Crash):
        fitted().explain(stopping_after(20), target=1, out=tmp_path)
    before = files(tmp_path)
    assert len(before) == 2  # of seven each; what was begun is not there
    with pytest.raises(errors.FileFormatError, match="is not finished: call explain with the same queries"):
        sp.load_explanation(tmp_path)
    (tmp_path / ".shard-000002.sparcets-tmp-0a1b2c3d.npz").write_bytes(b"half")  # as a killed process leaves it
    e = fitted(batch_size=3).explain(QUERIES, target=1, out=tmp_path)  # the size of the batches may change
    assert_same(e, expected)
    assert {name: files(tmp_path)[name] for name in before} == before and not list(tmp_path.glob(".shard*"))


def test_a_finished_folder_is_not_made_again_and_more_queries_may_follow(tmp_path):
    first = fitted().explain(QUERIES[:17], target=1, out=tmp_path)
    assert len(first) == 17
    before = files(tmp_path)
    again = fitted().explain(QUERIES[:17], target=1, out=tmp_path)
    assert files(tmp_path) == before and again.seconds == pytest.approx(first.seconds)
    more = fitted().explain(QUERIES, target=1, out=tmp_path)  # the last shard had three, and gets seven
    assert_same(more, fitted().explain(QUERIES, target=1))
    with pytest.raises(errors.StorageError, match="more queries than X gave"):
        fitted().explain(QUERIES[:14], target=1, out=tmp_path)


def test_a_damaged_shard_is_made_again(tmp_path):
    expected = fitted().explain(QUERIES, target=1, out=tmp_path).counterfactual
    (tmp_path / "shard-000001.npz").write_bytes(b"PK nonsense")
    np.testing.assert_array_equal(fitted().explain(QUERIES, target=1, out=tmp_path).counterfactual, expected)


def test_another_call_is_refused_and_leaves_the_folder_as_it_was(tmp_path):
    fitted().explain(QUERIES, target=1, out=tmp_path)
    before = files(tmp_path)
    others = {
        "n differs": lambda: fitted().explain(QUERIES, target=1, n=2, out=tmp_path),
        "sparsity differs": lambda: fitted().explain(QUERIES, target=1, sparsity=0.5, out=tmp_path),
        "constraints differs": lambda: fitted().explain(
            QUERIES, target=1, constraints=sp.Constraints(immutable=[3]), out=tmp_path
        ),
        "config differs": lambda: fitted(candidates=3).explain(QUERIES, target=1, out=tmp_path),
        "explainer differs": lambda: fitted().fit(X[:30], Y[:30]).explain(QUERIES, target=1, out=tmp_path),
        "other queries": lambda: fitted().explain(QUERIES + 1, target=1, out=tmp_path),
        "another target .see shard 0": lambda: fitted().explain(QUERIES, target=2, out=tmp_path),
        "target differs": lambda: fitted().explain(QUERIES, out=tmp_path),
        "more queries than X gave": lambda: fitted().explain(QUERIES[:5], target=1, out=tmp_path),
        "answers to more queries": lambda: fitted().explain(iter(QUERIES[:14]), target=1, out=tmp_path),
        "another classifier": lambda: fitted(MeanModule(sharpness=2.0)).explain(QUERIES, target=1, out=tmp_path),
    }
    for message, call in others.items():
        with pytest.raises(errors.StorageError, match=message):
            call()
        assert files(tmp_path) == before
        assert len(sp.load_explanation(tmp_path)) == len(QUERIES)  # still finished


def test_queries_that_are_refused_leave_no_folder_behind(tmp_path):
    with pytest.raises(errors.FeatureMismatchError):
        fitted().explain(as_map(tmp_path)[:, :, :3], target=1, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_file_is_no_folder_and_a_foreign_header_is_none(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(errors.StorageError, match="out= must be a folder"):
        fitted().explain(QUERIES, target=1, out=tmp_path / "file")
    (tmp_path / HEADER).write_text('{"format": 9}')
    with pytest.raises(errors.FileFormatError, match="not of a folder of answers"):
        fitted().explain(QUERIES, target=1, out=tmp_path)


def test_iterators_that_give_nothing_or_too_little_or_nonsense():
    ex = fitted()
    with pytest.raises(errors.ShapeError, match="X gave no series at all"):
        ex.explain(iter([]), target=1)
    with pytest.raises(errors.TargetError, match=r"target must be|has 50 entries|one per query"):
        ex.explain(iter(QUERIES), target=[1] * 50)
    with pytest.raises(errors.FeatureMismatchError):
        ex.explain(iter([QUERIES[0, :, :2]]), target=1)


def test_an_error_names_the_series_by_its_index_among_all_queries(tmp_path):
    bad = as_map(tmp_path, "r+")
    bad[11, 2, 3] = np.nan
    for number, source in enumerate([bad, iter([bad[:10], bad[10:]]), iter(bad), np.array(bad)]):
        with pytest.raises(errors.NonFiniteError, match=r"NaN at \[11, 2, 3\]"):
            fitted().explain(source, target=1, out=tmp_path / str(number))


def test_a_memory_map_is_left_as_it_was(tmp_path):
    held = as_map(tmp_path, "c")
    held[0, 0, 0] = 5.0  # kept in memory alone
    fitted().explain(held, target=1, out=tmp_path / "out")
    assert held[0, 0, 0] == 5.0
    writable = as_map(tmp_path, "r+")
    writable[0, 0, 0] = 6.0
    fitted().explain(writable, target=1, out=tmp_path / "other")
    assert writable[0, 0, 0] == 6.0


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_does_not_grow_with_the_queries(tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "MAX_SHARD_BYTES", 2**20)
    shape = (6000, 100, 20)  # 48 MB
    X = np.lib.format.open_memmap(tmp_path / "X.npy", mode="w+", dtype=np.float32, shape=shape)
    X[:] = 0
    X[:, :, 0] = 1
    X.flush()
    del X
    queries = np.load(tmp_path / "X.npy", mmap_mode="r")
    seen = []

    def script(request):
        seen.append(int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize())
        ex.requests.clear()  # the mock keeps them
        lifted = request.X.copy()
        lifted[:, :, 1] = 9
        return lifted

    train = np.array(queries[:6])
    train[1::3, :, 1], train[2::3, :, 2] = 2, 2
    ex = Scripted(sp.wrap(MeanModule(), n_classes=3), script=script).fit(train, np.arange(6) % 3)
    e = ex.explain(queries, target=1, out=tmp_path / "out")
    assert e.valid.all() and len(e) == 6000
    half = len(seen) // 2
    assert max(seen[half:]) - max(seen[:half]) < 12e6  # of 48 MB of queries and as many answers


def test_a_folder_in_use_is_refused_and_left_alone(tmp_path):
    out = tmp_path / "out"

    def meanwhile(request):
        with pytest.raises(errors.StorageError, match=r"the folder .*out is in use by another process"):
            fitted().explain(QUERIES, target=1, out=out)
        return request.X

    Scripted(sp.wrap(MeanModule(), n_classes=3), script=meanwhile).fit(X, Y).explain(QUERIES, target=1, out=out)
    assert not list(out.glob(".*")) and len(sp.load_explanation(out)) == len(QUERIES)
