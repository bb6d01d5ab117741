"""Atomic writing: failing writes, killed processes, and their messages."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sparcets import storage
from sparcets.errors import DataError, FileFormatError, StorageError
from sparcets.storage import atomic_path, naming, read_json, write_json


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_file_appears_at_the_end_of_the_block(tmp_path: Path) -> None:
    file = tmp_path / "new" / "folder" / "a.npz"
    with atomic_path(file) as temporary:
        assert temporary.parent == file.parent and temporary.suffix == ".npz"
        temporary.write_text("new")
        assert not file.exists()
    assert file.read_text() == "new" and names(file.parent) == ["a.npz"]


def test_failure_keeps_the_old_file_only(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("old")
    with pytest.raises(ZeroDivisionError), atomic_path(file) as temporary:
        temporary.write_text(f"partial{1 // 0}")
    assert file.read_text() == "old" and names(tmp_path) == ["a.txt"]


def test_sparcets_errors_propagate_unchanged(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="about the data"), atomic_path(tmp_path / "a"):
        raise DataError("about the data")
    with (
        pytest.raises(StorageError, match=r"^cannot write [^:]*inner: No space"),
        atomic_path(tmp_path / "outer"),
        atomic_path(tmp_path / "inner"),
    ):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert names(tmp_path) == []


@pytest.mark.parametrize(("where", "call"), [(os, "fsync"), (Path, "replace")], ids=["fsync", "replace"])
def test_disk_full_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: object, call: str) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    file = tmp_path / "a.txt"
    file.write_text("old")
    monkeypatch.setattr(where, call, full)
    expected = r"cannot write .*a.txt: No space left on device. Nothing was overwritten; free some space or choose"
    with pytest.raises(StorageError, match=expected), atomic_path(file) as temporary:
        temporary.write_text("new")
    assert file.read_text() == "old" and names(tmp_path) == ["a.txt"]


FULL_DISK = """
import resource, sys
from sparcets.storage import write_json
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_json(sys.argv[1], list(range(1000)))
except OSError as error:
    sys.exit(f"{type(error).__name__}: {error}")
"""
KILLED = """
import os, sys
from sparcets.storage import atomic_path
with atomic_path(sys.argv[1]) as temporary:
    temporary.write_text("partial")
    os._exit(3)
"""


def run(script: str, file: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", script, str(file)], capture_output=True, text=True, check=False)


@pytest.mark.skipif(sys.platform == "win32", reason="limits on the size of files are POSIX")
def test_failing_write_keeps_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    write_json(file, "old")
    done = run(FULL_DISK, file)
    assert done.returncode == 1
    assert done.stderr.startswith(f"StorageError: cannot write {file}: File too large.")
    assert read_json(file, "a list") == "old" and names(tmp_path) == ["a.json"]


def test_killed_process_keeps_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    write_json(file, "old")
    assert run(KILLED, file).returncode == 3
    assert read_json(file, "a list") == "old"


def test_a_lock_file_made_anew_is_not_taken_for_a_leftover(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / ".lock"
    file.touch()

    def replaced_meanwhile(handle: int, **_: bool) -> None:
        file.unlink()  # by its holder, after we have opened it; another process has made the next one
        file.touch()

    with monkeypatch.context() as patch:
        patch.setattr(storage, "lock", replaced_meanwhile)
        storage.remove_leftovers(tmp_path, "*.lock")
    assert file.exists()
    storage.remove_leftovers(tmp_path, "*.lock")
    assert not file.exists()


def test_names_that_are_too_long_are_no_files() -> None:
    assert not storage.is_file("a" * 5000) and not storage.is_folder("a" * 5000)
    assert storage.is_file(__file__) and storage.is_folder(Path(__file__).parent)


def test_paths_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"cannot write .*a: (File exists|Not a directory). Choose another path"):
        write_json(tmp_path / "file" / "a", 1)
    (tmp_path / "folder").mkdir()
    with pytest.raises(StorageError, match="Is a directory"):
        write_json(tmp_path / "folder", 1)
    assert names(tmp_path) == ["file", "folder"]


@pytest.mark.skipif(sys.platform == "win32", reason="file permissions are POSIX")
def test_default_permissions(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_json(tmp_path / "a", 1)
        assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640
        assert os.umask(0o027) == 0o027, "the umask of the process is unchanged"
    finally:
        os.umask(before)


def test_json_round_trip_with_unicode(tmp_path: Path) -> None:
    data = {"name": "Größe – 加速度 🙂", "values": [1, 2.5, None, True]}
    write_json(tmp_path / "a.json", data)
    assert read_json(tmp_path / "a.json", "anything") == data
    assert "加速度" in (tmp_path / "a.json").read_text(encoding="utf-8")


def test_nan_is_not_valid_json(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "a.json", float("nan"))
    assert names(tmp_path) == []


def test_invalid_json_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileFormatError, match=r"holds no run.json, so it is not a saved run\."):
        read_json(tmp_path / "run.json", "a saved run")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileFormatError, match=r"^no file run.json, where a saved run should be\.$"):
        read_json("run.json", "a saved run")
    file = tmp_path / "run.json"
    for content in (b"{", b"", b"\xff\xfe\x00", b"PK\x03\x04", b"9" * 5000, b"[" * 100_000):
        file.write_bytes(content)
        with pytest.raises(FileFormatError, match=r"run.json is not a saved run: "):
            read_json(file, "a saved run")

    def refuse(*_: object, **__: object) -> str:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(FileFormatError, match=r"run.json cannot be read: Permission denied\."):
        read_json(file, "a saved run")


def test_a_name_of_a_json_file_that_is_too_long(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="so it is not a saved run"):
        read_json(tmp_path / ("x" * 300), "a saved run")


def test_errors_are_given_the_name_of_a_file_once() -> None:
    for message in ("3 labels", "d.csv: 3 labels"):
        with pytest.raises(DataError, match=r"^d.csv: 3 labels$"), naming("d.csv"):
            raise DataError(message)
