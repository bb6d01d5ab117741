"""Writing files so that nothing finished is ever lost.

Everything sparcets writes goes to a temporary file beside its place first and is renamed when it is complete: a full
disk, a crash or a killed process leaves the old file, or none, but never half of one.
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
    """Yield a temporary path in the same folder; rename it to ``path`` when the block ends well.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with atomic_path(f"{folder}/a.txt") as temporary:
    ...         _ = temporary.write_text("whole")
    ...     Path(f"{folder}/a.txt").read_text()
    'whole'
    """
    final = Path(path)
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        # The suffix stays at the end: some writers append theirs when it is missing.
        handle, name = tempfile.mkstemp(dir=final.parent, prefix=f".{final.stem}-", suffix=final.suffix)
        os.close(handle)
    except OSError as error:
        raise StorageError(f"cannot write {final}: {_why(error)}. Choose another place to save to.") from error
    temporary = Path(name)
    try:
        yield temporary
        # Some disks say only now that they are full: before the rename, while the old file is still there.
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        # mkstemp files are readable by their owner alone; give the file the rights any new file would get.
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        temporary.replace(final)
    except SparcetsError:
        raise  # what the block itself found wrong
    except OSError as error:
        raise StorageError(
            f"cannot write {final}: {_why(error)}. Nothing was overwritten; free some space or choose another place."
        ) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_json(path: str | os.PathLike[str], data: Any) -> None:
    """Write ``data`` as JSON, whole or not at all."""
    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
    with atomic_path(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def read_json(path: str | os.PathLike[str], what: str) -> Any:
    """Read JSON, or say that the file is not what it should be.

    Parameters
    ----------
    path
        The file.
    what
        What it should be, for the message (``"a saved classifier"``).
    """
    file = Path(path)
    if not file.is_file():
        if file.parent == Path():  # a name alone: the user means the file, not the folder around it
            raise FileFormatError(f"no file {file}, where {what} should be.")
        raise FileFormatError(f"{file.parent} holds no {file.name}, so it is not {what}.")
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise FileFormatError(f"{file} cannot be read: {_why(error)}.") from error
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise FileFormatError(f"{file} is not {what}: {error}.") from error


def _why(error: OSError) -> str:
    return error.strerror or str(error)
