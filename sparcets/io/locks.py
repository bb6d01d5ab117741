"""Locks between processes: one at a time writes a file or a folder. A process that dies releases its locks.

On Windows only lock files are locked. What is replaced by a rename is not: there, an open file cannot be renamed, and
two processes must not write to one folder. The library ``filelock`` is not used: it leaves its files behind, and locks
neither the folder or the temporary file itself, nor for several readers at once.
"""

from __future__ import annotations

import importlib
import logging
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sparcets.core.errors import BusyError, StorageError, storage_errors


def _module(name: str) -> Any:
    """Return a module that only some systems have, or None."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


fcntl, msvcrt = _module("fcntl"), _module("msvcrt")  # of Unix; of Windows
log = logging.getLogger(__name__)
HAS_LOCKS = fcntl is not None  # of any file or folder, also one that is about to be renamed
LOCK = ".sparcets-lock"  # how names of lock files end; they are empty
_LOCKED_BYTE = 2**30  # far beyond the end: a locked byte cannot be read on Windows
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)  # a link in a folder of somebody else must not create a file elsewhere
_RETRY = 0.05  # seconds


def lock(handle: int, *, shared: bool = False, wait: bool = True) -> None:
    """Lock an open file or folder until it is closed; raise BlockingIOError if it is taken and ``wait`` is False."""
    if fcntl is not None:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
    elif msvcrt is not None:
        while True:
            os.lseek(handle, _LOCKED_BYTE, os.SEEK_SET)
            try:  # as Windows can: a byte of a file, for one process alone
                msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
                return
            except OSError as error:
                if not wait:
                    raise BlockingIOError("locked by another process") from error
            time.sleep(_RETRY)


@contextmanager
def locked(path: str | os.PathLike[str], *, what: str | None = None, wait: bool = True) -> Iterator[None]:
    """Hold a lock file, whose name ends in ``LOCK``, so that one process at a time runs the block.

    It is created if missing and removed afterwards. So is its folder, if it was created too and nothing is written into
    it. Anything else of that name is left alone, and is an error. ``what`` is locked, for the message that it is in
    use; None is to wait without one. Without ``wait``, a lock that is taken raises BusyError.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, locked(f"{folder}/{LOCK}", what=folder):
    ...     with locked(f"{folder}/{LOCK}", what="this folder", wait=False):
    ...         pass
    Traceback (most recent call last):
    sparcets.core.errors.BusyError: this folder is in use by another process. Wait until it has ended, and try again.
    """
    file = Path(path)
    folder_is_new = not file.parent.exists()
    with storage_errors(file, "Choose another folder."):
        handle = _acquire(file, what, wait)
    try:
        yield
    finally:
        with suppress(OSError):
            file.unlink(missing_ok=True)  # while the lock is held, so that it is our own file
            if folder_is_new:
                file.parent.rmdir()  # an error if the block has written something
        os.close(handle)


def _acquire(file: Path, what: str | None, wait: bool) -> int:
    """Return a handle of the locked file."""
    announced = what is None
    while True:
        file.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            about = file.lstat()
            if not stat.S_ISREG(about.st_mode) or about.st_size:
                raise StorageError(f"{file} is in the way: it is no lock file of sparcets. Move it to another place.")
        try:
            handle = os.open(file, os.O_RDWR | os.O_CREAT | _NO_LINK, 0o666)
        except FileNotFoundError:  # the holder before us has just removed the folder again
            continue
        try:
            lock(handle, wait=False)
        except BlockingIOError as error:
            if not wait:
                os.close(handle)
                raise BusyError(
                    f"{what} is in use by another process. Wait until it has ended, and try again."
                ) from error
            if not announced:
                log.warning("%s is in use by another process; waiting", what)
            announced = True
            lock(handle)
        # The holder before us removes the file when it is done; then ours is no longer the one that others find.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), file.stat()):
                return handle
        os.close(handle)


@contextmanager
def locked_in_place(path: Path, *, shared: bool = False) -> Iterator[None]:
    """Hold the lock of a file or folder itself, which others may be about to replace.

    One process or thread at a time holds it, or several if all of them ask for a ``shared`` one. Nothing is locked if
    the path does not exist, or on a file system without locks.
    """
    handle = _open_locked(path, shared)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _open_locked(path: Path, shared: bool) -> int | None:
    while HAS_LOCKS:
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a named pipe would wait for a writer
        except OSError:
            break
        try:
            lock(handle, shared=shared)
            if os.path.samestat(os.fstat(handle), path.stat()):
                return handle
        except OSError:  # removed while we waited, or a file system without locks
            return handle
        os.close(handle)  # replaced while we waited: lock what is there now
    return None
