"""Folders are replaced as a whole: a kill, a full disk or a reader at the same time never sees parts of two saves."""

import os
from pathlib import Path

import pytest
from safetensors.numpy import save_file

import sparcets as sp
from sparcets.core.errors import StorageError
from sparcets.io import folders
from sparcets.io.files import TEMPORARY
from sparcets.io.folders import atomic_folder
from sparcets.testing.data import make_series
from tests.campaigns.folders import snapshot

X, Y = make_series(30, n_steps=8)


class Killed(BaseException):
    """Ends a writer, as a signal does."""


def classifier(seed):
    tiny = {**sp.ClassifierConfig.tiny().to_dict(), "epochs": 1, "hidden": 4, "device": "cpu", "seed": seed}
    return sp.TorchClassifier("fcn", sp.ClassifierConfig.from_dict(tiny)).fit(X * (1 + 99 * seed), Y)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def kill_at(monkeypatch, k, error=Killed):
    """Let the k-th rename raise, and all that follow; return a list that grows with every call."""
    calls = []

    def wrap(call):
        def renamed(*args, **kwargs):
            calls.append(1)
            if len(calls) >= k:
                raise error
            return call(*args, **kwargs)

        return renamed

    # Not those of os, of which pathlib keeps its own before Python 3.11.
    monkeypatch.setattr(Path, "replace", wrap(Path.replace))
    monkeypatch.setattr(Path, "rename", wrap(Path.rename))
    return calls


@pytest.fixture(scope="module")
def two():
    return classifier(0), classifier(1)


def fill(folder, text):
    for name in ("a", "b"):
        (folder / name).mkdir()
        (folder / name / "content.txt").write_text(text)
    (folder / "run.txt").write_text(text)


def content(folder):
    return {(folder / name).read_text() for name in ("a/content.txt", "b/content.txt", "run.txt")}


@pytest.mark.parametrize("at_once", [True, False], ids=["in one step", "in two steps"])
@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("error", [Killed, OSError])
def test_a_folder_is_the_old_or_the_new_one(at_once, k, error, tmp_path, monkeypatch):
    (tmp_path / "x").mkdir()
    fill(tmp_path / "x", "old")
    if not at_once:
        monkeypatch.setattr(folders, "_exchange_at_once", lambda *_: False)
    kill_at(monkeypatch, k, error)
    try:
        with atomic_folder(tmp_path / "x") as folder:
            fill(folder, "new")
    except (Killed, OSError):
        pass
    monkeypatch.undo()
    if not (tmp_path / "x").exists():  # killed between the two steps: the next writer puts the old one back
        with pytest.raises(ZeroDivisionError), atomic_folder(tmp_path / "x"):
            raise ZeroDivisionError
        assert content(tmp_path / "x") == {"old"}
    assert content(tmp_path / "x") in ({"old"}, {"new"})
    with atomic_folder(tmp_path / "x") as folder:
        fill(folder, "newest")
    assert content(tmp_path / "x") == {"newest"} and names(tmp_path) == ["x"]


def test_a_live_writer_is_not_disturbed(tmp_path):
    with atomic_folder(tmp_path / "x") as first:
        fill(first, "first")
        with atomic_folder(tmp_path / "x") as second:
            fill(second, "second")
        assert content(tmp_path / "x") == {"second"}
    assert content(tmp_path / "x") == {"first"} and names(tmp_path) == ["x"]


def test_the_current_folder_is_replaced_entry_by_entry(tmp_path, monkeypatch):
    fill(tmp_path, "old")
    (tmp_path / "notes.txt").write_text("mine")
    monkeypatch.chdir(tmp_path)
    with atomic_folder(".") as folder:
        fill(folder, "new")
    assert content(Path()) == {"new"} and names(Path()) == ["a", "b", "notes.txt", "run.txt"]


def test_where_no_folder_can_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("theirs")
    os.mkfifo(tmp_path / "pipe")
    before = snapshot(tmp_path)
    for name in ("file", "pipe"):
        with pytest.raises(StorageError, match="it is a file, not a folder"), atomic_folder(tmp_path / name):
            raise AssertionError
    plain = Path.mkdir

    def mkdir(path, *arguments, **options):
        if path.name == folders.NEW:
            raise OSError(28, "No space left on device")
        plain(path, *arguments, **options)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    with pytest.raises(StorageError, match="a: No space left on device"), atomic_folder(tmp_path / "a"):
        pass
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("at_once", [True, False], ids=["in one step", "in two steps"])
def test_entries_of_others_are_not_even_moved(at_once, tmp_path, monkeypatch):
    if not at_once:
        monkeypatch.setattr(folders, "_exchange_at_once", lambda *_: False)
    (tmp_path / "disk" / "x" / "theirs" / ".git").mkdir(parents=True)
    (tmp_path / "x").symlink_to(tmp_path / "disk" / "x")
    (tmp_path / "x" / "theirs" / ".git" / "HEAD").write_text("ref")
    os.mkfifo(tmp_path / "x" / "pipe")
    (tmp_path / "x" / "link").symlink_to("run.txt")
    (tmp_path / "x").chmod(0o750)
    for name in (".x.tmp-mine", f".x{TEMPORARY}mine", f".x{TEMPORARY}12345678", f".y{TEMPORARY}12345678"):
        (tmp_path / "disk" / name / "old").mkdir(parents=True)
        (tmp_path / "disk" / name / "old" / "notes.txt").write_text("theirs")
    (tmp_path / "disk" / f".x{TEMPORARY}abcdefgh").symlink_to(tmp_path / "x" / "theirs")
    before = snapshot(tmp_path)
    for text in ("first", "second"):
        with atomic_folder(tmp_path / "x") as folder:
            fill(folder, text)
        after = snapshot(tmp_path)
        assert {name: after[name] for name in before} == before and content(tmp_path / "x") == {text}


def test_a_folder_keeps_its_mode_and_loses_what_was_in_its_parts(tmp_path):
    for _ in range(2):
        with atomic_folder(tmp_path / "x") as folder:
            fill(folder, "new")
        (tmp_path / "x").chmod(0o700)
        assert names(tmp_path / "x" / "a") == ["content.txt"]
        (tmp_path / "x" / "a" / "stale.txt").write_text("old")
    with atomic_folder(tmp_path / "x") as folder:
        fill(folder, "new")
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o700


def test_a_writer_that_dies_between_two_entries_loses_none(tmp_path, monkeypatch):
    (tmp_path / "x").mkdir()
    fill(tmp_path / "x", "old")
    (tmp_path / "x" / "notes.txt").write_text("mine")
    kill_at(monkeypatch, 2)  # the old entry is moved away, the new one is not in its place yet
    with pytest.raises(Killed), atomic_folder(tmp_path / "x") as folder:
        fill(folder, "new")
    monkeypatch.undo()
    (outer,) = tmp_path.glob(f".x{TEMPORARY}*")
    assert (outer / "old-a" / "content.txt").read_text() == "old"
    folders.remove_unfinished(tmp_path / "x")
    assert content(tmp_path / "x") == {"old"} and names(tmp_path) == ["x"]


@pytest.mark.parametrize("text", ["", "{}", "not safetensors", "their weights", "a pipe"])
def test_a_file_of_others_is_not_replaced(text, two, tmp_path):
    if text == "a pipe":
        os.mkfifo(tmp_path / "classifier.safetensors")
    elif text == "their weights":
        save_file({"weight": X}, tmp_path / "classifier.safetensors", {"format": "pt"})
    else:
        (tmp_path / "classifier.safetensors").write_text(text)
    before = snapshot(tmp_path)
    with pytest.raises(StorageError, match=r"classifier.safetensors is in the way: it is not of a saved classifier"):
        two[0].save(tmp_path)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("place", [50, 1000, -1])
def test_a_damaged_file_of_ours_is_replaced(place, two, tmp_path):
    two[0].save(tmp_path)
    file = tmp_path / "classifier.safetensors"
    file.write_bytes(file.read_bytes()[:place])
    two[1].save(tmp_path)
    assert sp.load_classifier(tmp_path, device="cpu").digest() == two[1].digest() and names(tmp_path) == [file.name]


def test_what_is_left_of_a_removal_that_was_cut_off_is_still_recognised(tmp_path, monkeypatch):
    real, removed = folders.shutil.rmtree, []

    def rmtree(path, **options):
        removed.append(path)
        if len(removed) == 2:
            raise Killed
        real(path, **options)

    monkeypatch.setattr(folders.shutil, "rmtree", rmtree)
    made = folders.temporary_folder(tmp_path, "fit")
    folder = made.__enter__()
    for name in ("new", "old"):
        (folder / name).mkdir()
    with pytest.raises(Killed):
        made.__exit__(None, None, None)
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == [folder]
    folders.remove_temporary_folders(tmp_path, "fit")
    assert not list(tmp_path.iterdir())
