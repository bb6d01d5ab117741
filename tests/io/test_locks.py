"""Locks: one process at a time, for threads and processes; the lock of a killed process is free."""

import fcntl
import os
import subprocess
import sys
import threading
import time

import pytest

from sparcets.core.errors import BusyError, StorageError
from sparcets.io import locks
from sparcets.io.locks import LOCK, lock, locked, locked_in_place
from tests.campaigns.folders import snapshot

HOLD = """
import sys, time
from sparcets.io.locks import locked
with locked(sys.argv[1], what="x"):
    print("held", flush=True)
    time.sleep(3600)
"""
COUNT = """
import sys, time
from pathlib import Path
from sparcets.io.locks import locked
for _ in range(50):
    with locked(sys.argv[1] + "/.lock", what="x"):
        file = Path(sys.argv[1], "n")
        n = int(file.read_text())
        time.sleep(0.0005)
        file.write_text(str(n + 1))
"""


def test_a_lock_that_is_held_is_busy_until_its_process_dies(tmp_path):
    lock = tmp_path / "a" / ".lock"
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(lock)], stdout=subprocess.PIPE, text=True)
    with holder.stdout:
        assert holder.stdout.readline() == "held\n"
        busy = pytest.raises(BusyError, match="this folder is in use by another process")
        with busy, locked(lock, what="this folder", wait=False):
            pass
        holder.kill()
        holder.wait()
    with locked(lock, what="this folder", wait=False):
        assert lock.exists(), "the file of the killed process is used again"
    assert not lock.exists()


def test_several_processes_take_turns(tmp_path):
    (tmp_path / "n").write_text("0")
    several = [subprocess.Popen([sys.executable, "-c", COUNT, str(tmp_path)], stderr=subprocess.DEVNULL) for _ in "abc"]
    assert [process.wait() for process in several] == [0, 0, 0]
    assert (tmp_path / "n").read_text() == "150" and [p.name for p in tmp_path.iterdir()] == ["n"]


def test_a_folder_that_is_replaced_meanwhile_is_locked_anew(tmp_path):
    (tmp_path / "a").mkdir()
    entered = threading.Event()

    def enter():
        with locked_in_place(tmp_path / "a", shared=True):
            entered.set()

    thread = threading.Thread(target=enter)
    with locked_in_place(tmp_path / "a"):
        thread.start()
        assert not entered.wait(0.2)
        (tmp_path / "a").rename(tmp_path / "old")
        (tmp_path / "a").mkdir()
        new = os.open(tmp_path / "a", os.O_RDONLY)
        lock(new)
    assert not entered.wait(0.2), "the new folder is locked"
    os.close(new)
    assert entered.wait(60)
    thread.join()


class Msvcrt:
    """A stub of Windows' module: one process or handle at a time locks a byte, and nobody waits."""

    LK_NBLCK = 2

    def locking(self, handle, mode, n):
        assert (mode, n) == (self.LK_NBLCK, 1)
        assert os.lseek(handle, 0, os.SEEK_CUR) > 2**29  # beyond the content, which others may want to read
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_lock_files_work_as_on_windows(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "fcntl", None)
    monkeypatch.setattr(locks, "msvcrt", Msvcrt())
    order = []

    def second():
        with locks.locked(tmp_path / ".lock"):
            order.append("second")

    with locks.locked(tmp_path / ".lock", what="here"):
        busy = pytest.raises(BusyError, match="here is in use")
        with busy, locks.locked(tmp_path / ".lock", what="here", wait=False):
            pass
        waiting = threading.Thread(target=second)
        waiting.start()
        time.sleep(0.2)
        order.append("first")
    waiting.join()
    assert order == ["first", "second"]


@pytest.mark.parametrize(
    "make",
    [lambda file: file.write_text("x"), lambda file: file.symlink_to("x"), os.mkfifo, os.mkdir],
    ids=["file", "link", "pipe", "folder"],
)
def test_what_is_no_lock_file_is_left_alone(make, tmp_path):
    (tmp_path / "x").touch()
    make(tmp_path / LOCK)
    before = snapshot(tmp_path)
    with pytest.raises(StorageError, match="is in the way: it is no lock file of sparcets"), locked(tmp_path / LOCK):
        pass
    assert snapshot(tmp_path) == before
