"""Atomic writing of files, and JSON.

Every file is written to a temporary file in the same folder and renamed when it is complete: a full disk, a crash or a
killed process leaves the old file, or none, but never a partial one.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sparcets.errors import FileFormatError, SparcetsError, StorageError


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path in the same folder; rename it to ``path`` when the block ends without an exception.

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
        # Keep the suffix: some writers append their own if it is missing.
        handle, name = tempfile.mkstemp(dir=final.parent, prefix=f".{final.stem}-", suffix=final.suffix)
        os.close(handle)
    except OSError as error:
        raise StorageError(f"cannot write {final}: {_reason(error)}. Choose another path.") from error
    temporary = Path(name)
    try:
        yield temporary
        # Some file systems report a full disk only on fsync, so call it before the rename, while the old file exists.
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        # mkstemp creates files readable only by their owner; set the default permissions of a new file.
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        temporary.replace(final)
    except SparcetsError:
        raise  # raised by the caller's block
    except OSError as error:
        raise StorageError(
            f"cannot write {final}: {_reason(error)}. Nothing was overwritten; free some space or choose another path."
        ) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_json(path: str | os.PathLike[str], data: Any) -> None:
    """Write ``data`` as JSON, atomically."""
    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
    with atomic_path(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def read_json(path: str | os.PathLike[str], what: str) -> Any:
    """Read a JSON file; raise FileFormatError if it is missing or not valid JSON.

    Parameters
    ----------
    path
        Path of the file.
    what
        What the file should be, for error messages (``"a saved classifier"``).
    """
    file = Path(path)
    if not file.is_file():
        if file.parent == Path():  # a bare file name: mention the file, not its folder
            raise FileFormatError(f"no file {file}, where {what} should be.")
        raise FileFormatError(f"{file.parent} holds no {file.name}, so it is not {what}.")
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise FileFormatError(f"{file} cannot be read: {_reason(error)}.") from error
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise FileFormatError(f"{file} is not {what}: {error}.") from error


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
