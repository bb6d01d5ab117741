"""Atomic writing: failing writes, killed processes, and their messages."""

import errno
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from sparcets.core.errors import ConfigError, DataError, FileFormatError, StorageError
from sparcets.io import files as storage
from sparcets.io.files import TEMPORARY, atomic_path, naming, read_json, write_json
from sparcets.io.locks import LOCK
from tests.campaigns.folders import snapshot


def names(folder):
    return sorted(p.name for p in folder.iterdir())


def test_errors_of_a_block_propagate_and_leave_the_old_file_only(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("old")
    with pytest.raises(ZeroDivisionError), atomic_path(file) as temporary:
        temporary.write_text("partial", errors=str(1 // 0))
    with pytest.raises(DataError, match="about the data"), atomic_path(file):
        raise DataError("about the data")
    with (
        pytest.raises(StorageError, match=r"^cannot write [^:]*inner: No space"),
        atomic_path(tmp_path / "outer"),
        atomic_path(tmp_path / "inner"),
    ):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert file.read_text() == "old" and names(tmp_path) == ["a.txt"]


@pytest.mark.parametrize(("where", "call"), [(os, "fsync"), (Path, "replace")], ids=["fsync", "replace"])
def test_disk_full_at_the_end(tmp_path, monkeypatch, where, call):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    file = tmp_path / "a.txt"
    file.write_text("old")
    monkeypatch.setattr(where, call, full)
    expected = r"cannot write .*a.txt: No space left on device. Nothing was overwritten; free some space or choose"
    with pytest.raises(StorageError, match=expected), atomic_path(file) as temporary:
        temporary.write_text("new")
    assert file.read_text() == "old" and names(tmp_path) == ["a.txt"]


KILLED = """
import os, sys
from sparcets.io.files import atomic_path
with atomic_path(sys.argv[1]) as temporary:
    temporary.write_text("partial")
    os._exit(3)
"""


def test_killed_process_keeps_the_old_file(tmp_path):
    file = tmp_path / "a.json"
    write_json(file, "old")
    assert subprocess.run([sys.executable, "-c", KILLED, str(file)], check=False).returncode == 3
    assert read_json(file, "a list") == "old"


def test_a_lock_file_made_anew_is_not_taken_for_a_leftover(tmp_path, monkeypatch):
    file = tmp_path / LOCK
    file.touch()

    def replaced_meanwhile(handle, **_):
        file.unlink()  # by its holder, after we have opened it; another process has made the next one
        file.touch()

    with monkeypatch.context() as patch:
        patch.setattr(storage, "lock", replaced_meanwhile)
        storage.remove_leftovers(tmp_path, re.escape(LOCK))
    assert file.exists()
    storage.remove_leftovers(tmp_path, re.escape(LOCK))
    assert not file.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="file permissions are POSIX")
def test_default_permissions(tmp_path):
    before = os.umask(0o027)
    try:
        write_json(tmp_path / "a", 1)
        assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640
        assert os.umask(0o027) == 0o027, "the umask of the process is unchanged"
    finally:
        os.umask(before)


def test_invalid_json_files(tmp_path, monkeypatch):
    with pytest.raises(FileFormatError, match=r"holds no run.json, so it is not a saved run\."):
        read_json(tmp_path / "run.json", "a saved run")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileFormatError, match=r"^no file run.json, where a saved run should be\.$"):
        read_json("run.json", "a saved run")
    file = tmp_path / "run.json"
    for content in (b"{", b"", b'{"a": 1, "a": 1}', b"\xff\xfe\x00", b"PK\x03\x04", b"9" * 5000, b"[" * 100_000):
        file.write_bytes(content)
        with pytest.raises(FileFormatError, match=r"run.json is not a saved run: "):
            read_json(file, "a saved run")

    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(FileFormatError, match=r"run.json cannot be read: Permission denied\."):
        read_json(file, "a saved run")


def test_errors_are_given_the_name_of_a_file_once():
    for message in ("3 labels", "d.csv: 3 labels"):
        with pytest.raises(DataError, match=r"^d.csv: 3 labels$"), naming("d.csv"):
            raise DataError(message)


@pytest.mark.skipif(sys.platform == "win32", reason="pipes and devices are POSIX")
@pytest.mark.parametrize("kind", ["folder", "named pipe", "socket", "device"])
def test_what_is_no_file_is_refused_and_left(kind, tmp_path):
    path = tmp_path / "x.json"
    if kind == "folder":
        path.mkdir()
    elif kind == "named pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as opened:
            opened.bind(str(path))
    else:
        path = Path(os.devnull)
    (link := tmp_path / "link").symlink_to(path)
    (tmp_path / "file").touch()
    before = snapshot(tmp_path)
    for given in (path, link):
        with pytest.raises(StorageError, match=rf"^cannot write .*: it is a {kind}, not a file. Name a file"):
            write_json(given, 1)
    with pytest.raises(StorageError, match=r"cannot write .*a: (File exists|Not a directory). Choose another path"):
        write_json(tmp_path / "file" / "a", 1)
    assert snapshot(tmp_path) == before


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
@pytest.mark.parametrize("path", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"])
def test_outputs_of_processes_are_refused(path, tmp_path):
    (tmp_path / "link").symlink_to("/dev/stdout")
    with pytest.raises(StorageError, match=r"it is an output of a process, not a file.*--json prints can be redirec"):
        write_json(tmp_path / path, 1)


def test_a_link_stays_a_link_and_its_target_is_written(tmp_path):
    (disk := tmp_path / "disk").mkdir()
    (disk / "a.json").write_text("old")
    (here := tmp_path / "here").mkdir()
    links = {"second": "../disk/a.json", "first": "second", "dangling": "../disk/new.json", "loop": "loop"}
    links["nowhere"] = "../none/new.json"
    for name, target in links.items():
        (here / name).symlink_to(target)
    for name, value in (("first", 1), ("dangling", 2)):
        write_json(here / name, value)
    assert (read_json(disk / "a.json", ""), read_json(disk / "new.json", "")) == (1, 2)
    for name, why in (("nowhere", "No such file"), ("loop", "Too many levels of symbolic links")):
        with pytest.raises(StorageError, match=f"{name}: {why}"):
            write_json(here / name, 1)
    assert all((here / name).is_symlink() for name in links)
    assert names(here) == sorted(links) and names(disk) == ["a.json", "new.json"]


@pytest.mark.skipif(sys.platform == "win32", reason="file permissions are POSIX")
@pytest.mark.parametrize("mode", [0o640, 0o600, 0o666, 0o755])
def test_a_file_that_is_replaced_keeps_its_mode_and_owner(tmp_path, mode):
    (file := tmp_path / "a").write_text("old")
    file.chmod(mode)
    if os.geteuid() == 0:
        os.chown(file, 1, 2)
    before = file.stat()
    write_json(file, 1)
    after = file.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    write_json(file, 2, private=True)
    assert file.stat().st_mode & 0o777 == 0o600


def test_another_group_is_not_granted_what_the_old_one_was(tmp_path, monkeypatch):
    if os.geteuid() != 0:
        pytest.skip("needs to give a file away")
    (file := tmp_path / "a").write_text("old")
    file.chmod(0o660)
    os.chown(file, -1, 2)

    def refuse(*_):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "chown", refuse)
    write_json(file, 1)
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_write_protected_file_is_not_replaced(tmp_path, monkeypatch):
    (file := tmp_path / "a").write_text("old")
    monkeypatch.setattr(os, "access", lambda path, _: path != file)  # root may write everything
    with pytest.raises(StorageError, match="a: it is write-protected"):
        write_json(file, 1)
    assert file.read_text() == "old"


@pytest.mark.skipif(sys.platform == "win32", reason="pipes are POSIX")
def test_files_that_look_like_leftovers_stay(tmp_path):
    ours = tmp_path / f".a{TEMPORARY}12345678.json"
    theirs = [".a.tmp-12345678.json", f".a{TEMPORARY}mine.json", f".a{TEMPORARY}12345678.json.bak"]
    theirs.append(f"a{TEMPORARY}12345678")
    for name in (ours.name, *theirs):
        (tmp_path / name).write_text("x")
    os.mkfifo(tmp_path / f".a{TEMPORARY}abcdefgh.json")  # to open it would take forever
    (tmp_path / f".a{TEMPORARY}bcdefghi.json").symlink_to(theirs[0])
    (tmp_path / f".a{TEMPORARY}cdefghij.json").mkdir()
    before = snapshot(tmp_path)
    write_json(tmp_path / "a.json", 1)
    del before[ours.name]
    after = snapshot(tmp_path)
    assert after.pop("a.json") and after == before
    if os.geteuid() == 0:
        ours.write_text("of another user")
        os.chown(ours, 1, 1)
        write_json(tmp_path / "a.json", 1)
        assert ours.exists()


def test_names_that_are_no_text_are_refused(tmp_path):
    for write in (storage.file_to_write, storage.as_path):
        with pytest.raises(ConfigError, match=r"no file or folder can be called .*ud800.*: it is no text"):
            write(tmp_path / "a\ud800.npz")
    name = os.fsdecode(b"\xff.npz")  # bytes that are no text are a name all the same
    assert storage.as_path(name) == Path(name)
