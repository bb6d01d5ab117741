"""Locks: one process at a time, for threads and processes; the lock of a killed process is free."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sparcets.errors import BusyError, StorageError
from sparcets.locks import locked

HOLD = """
import sys, time
from sparcets.locks import locked
with locked(sys.argv[1], what="x"):
    print("held", flush=True)
    time.sleep(60)
"""
COUNT = """
import sys, time
from pathlib import Path
from sparcets.locks import locked
for _ in range(50):
    with locked(sys.argv[1] + "/.lock", what="x"):
        file = Path(sys.argv[1], "n")
        n = int(file.read_text())
        time.sleep(0.0005)
        file.write_text(str(n + 1))
"""


def test_a_lock_that_is_held_is_busy_until_its_process_dies(tmp_path: Path) -> None:
    lock = tmp_path / "a" / ".lock"
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(lock)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
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


def test_several_processes_take_turns(tmp_path: Path) -> None:
    (tmp_path / "n").write_text("0")
    several = [subprocess.Popen([sys.executable, "-c", COUNT, str(tmp_path)], stderr=subprocess.DEVNULL) for _ in "abc"]
    assert [process.wait() for process in several] == [0, 0, 0]
    assert (tmp_path / "n").read_text() == "150" and [p.name for p in tmp_path.iterdir()] == ["n"]


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused = pytest.raises(StorageError, match=r"cannot write .*file.*Choose another folder")
    with refused, locked(tmp_path / "file" / ".lock", what="x"):
        pass
