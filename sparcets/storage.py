"""Atomic writing of files, and JSON.

Every file is written to a temporary file in the same folder and renamed when it is complete: a full disk, a crash or a
killed process leaves the old file, or none, but never a partial one. The temporary file of a killed process is removed
by the next writer of that file.
"""

from __future__ import annotations

import glob
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sparcets.digests import add_digest, check_digest
from sparcets.errors import FileFormatError, SparcetsError, StorageError
from sparcets.locks import HAS_LOCKS, lock

TEMPORARY = ".tmp-"  # in the name of everything that is not complete yet
# What building an object from the values of a file raises if the file is damaged, or not of this kind. RuntimeError is
# that of PyTorch, for weights that do not fit their network.
MALFORMED: tuple[type[Exception], ...] = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)


@contextmanager
def atomic_path(path: str | os.PathLike[str], *, private: bool = False) -> Iterator[Path]:
    """Yield a temporary path in the same folder; rename it to ``path`` when the block ends without an exception.

    Parameters
    ----------
    path
        The file to be written.
    private
        Whether only its owner may read it, instead of the default permissions of a new file.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with atomic_path(f"{folder}/a.txt") as temporary:
    ...         _ = temporary.write_text("content")
    ...     Path(f"{folder}/a.txt").read_text()
    'content'
    """
    final = Path(path)
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(final.parent, f".{glob.escape(final.stem)}{TEMPORARY}*{glob.escape(final.suffix)}")
        handle, temporary = create_locked(lambda: _temporary_file(final))
    except OSError as error:
        raise StorageError(f"cannot write {final}: {reason(error)}. Choose another path.") from error
    try:
        yield temporary
        # Some file systems report a full disk only on fsync, so call it before the rename, while the old file exists.
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        if not private:  # as mkstemp creates them
            mask = os.umask(0)
            os.umask(mask)
            temporary.chmod(0o666 & ~mask)
        temporary.replace(final)
    except SparcetsError:
        raise  # raised by the caller's block
    except OSError as error:
        raise StorageError(
            f"cannot write {final}: {reason(error)}. Nothing was overwritten; free some space or choose another path."
        ) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        if handle is not None:
            os.close(handle)


def _temporary_file(final: Path) -> str:
    # Keep the suffix: some writers append their own if it is missing.
    handle, name = tempfile.mkstemp(dir=final.parent, prefix=f".{final.stem}{TEMPORARY}", suffix=final.suffix)
    os.close(handle)
    return name


def create_locked(create: Callable[[], str]) -> tuple[int | None, Path]:
    """Create a temporary file or folder; its lock, held until the handle is closed, says that its writer is alive."""
    while True:
        path = Path(create())
        if not HAS_LOCKS:
            return None, path
        with suppress(FileNotFoundError):  # taken for a leftover before it was locked: create another one
            handle = os.open(path, os.O_RDONLY)
            with suppress(OSError):  # a file system without locks
                lock(handle)
            if path.exists():
                return handle, path
            os.close(handle)


def remove_leftovers(folder: Path, pattern: str, remove: Callable[[Path], object] = os.unlink) -> None:
    """Remove the temporary files or folders and the lock files of killed processes.

    ``pattern`` is that of :meth:`pathlib.Path.glob`.
    """
    if not HAS_LOCKS:
        return  # nothing tells whether their writers are alive
    for left in folder.glob(pattern):
        with suppress(OSError):  # a live writer holds the lock, or another process was faster
            handle = os.open(left, os.O_RDONLY)
            try:
                lock(handle, wait=False)
                # A lock file may have been removed and made anew since it was opened; the new one is somebody else's.
                if os.path.samestat(os.fstat(handle), left.stat()):
                    remove(left)
            finally:
                os.close(handle)


def write_json(path: str | os.PathLike[str], data: Any, *, private: bool = False) -> None:
    """Write ``data`` as JSON, atomically; a dict gets a digest, which :func:`read_json` checks and removes."""
    data = add_digest(data) if isinstance(data, dict) else data
    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
    with atomic_path(path, private=private) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def read_json(path: str | os.PathLike[str], what: str) -> Any:
    """Read a JSON file; raise FileFormatError if it is missing, not valid JSON, or not what was written.

    Files without a digest, by hand or of earlier versions, are read as they are.

    Parameters
    ----------
    path
        Path of the file.
    what
        What the file should be, for error messages (``"a saved classifier"``).
    """
    file = Path(path)
    if not is_file(file):
        if file.parent == Path():  # a bare file name: mention the file, not its folder
            raise FileFormatError(f"no file {file}, where {what} should be.")
        raise FileFormatError(f"{file.parent} holds no {file.name}, so it is not {what}.")
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise FileFormatError(f"{file} cannot be read: {reason(error)}.") from error
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, a number of thousands of digits, or too deep
        raise FileFormatError(f"{file} is not {what}: {error}.") from error
    try:
        return check_digest(data) if isinstance(data, dict) else data
    except (ValueError, RecursionError) as error:
        raise damaged(file, str(error)) from error


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Put a path before the messages of errors that do not name it, which are raised where it is not known."""
    try:
        yield
    except SparcetsError as error:
        if str(path) in str(error):
            raise
        raise type(error)(f"{path}: {error}") from error


def damaged(file: Path, why: str) -> FileFormatError:
    """Return the error for a file that is not as it was written."""
    return FileFormatError(
        f"{file} was changed or damaged after it was written: {why}. Restore it from a copy, or create it again."
    )


def is_file(path: str | os.PathLike[str]) -> bool:
    """Return whether there is such a file; of a name that is too long there is none, where Path.is_file raises."""
    return os.path.isfile(path)  # noqa: PTH113


def is_folder(path: str | os.PathLike[str]) -> bool:
    """Return whether there is such a folder; of a name that is too long there is none, where Path.is_dir raises."""
    return os.path.isdir(path)  # noqa: PTH112


def reason(error: OSError) -> str:
    """Return what the system says about an error, for messages."""
    return error.strerror or str(error)
