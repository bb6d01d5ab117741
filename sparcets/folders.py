"""Folders whose files belong together, written so that no reader ever sees parts of two saves.

A saved model (:class:`SavedModel`) is a header in JSON and a file of arrays. The header holds the digest of the arrays,
and the name of their file contains it: the arrays are written first, and the save takes effect when the header is
renamed, which is a single step. A folder of several such parts (:func:`atomic_folder`) is written beside the old one,
and the two are exchanged when it is complete.
"""

from __future__ import annotations

import ctypes
import errno
import glob
import logging
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparcets.digests import digest_of_bytes
from sparcets.errors import FileFormatError, SparcetsError, StorageError
from sparcets.locks import locked_in_place
from sparcets.storage import (
    TEMPORARY,
    atomic_path,
    create_locked,
    damaged,
    read_json,
    reason,
    remove_leftovers,
    write_json,
)

log = logging.getLogger(__name__)
NEW, OLD = "new", "old"  # in the temporary folder of atomic_folder
NAMED = 16  # digits of the digest in the name of a file of arrays


@dataclass(frozen=True, kw_only=True)
class SavedModel:
    """The two files of a saved model.

    Attributes
    ----------
    header
        Name of the file of the header.
    arrays
        Name of the file of the arrays, without digest, such as ``weights.safetensors``. Earlier versions wrote a file
        of that name.
    what
        What it is, for messages (``"classifier"``).
    """

    header: str
    arrays: str
    what: str

    def save(self, folder: Path, header: Mapping[str, Any], content: bytes) -> None:
        """Write both files; other files of the folder are left alone."""
        digest = digest_of_bytes(content)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"cannot write {folder}: {reason(error)}. Choose another folder.") from error
        with locked_in_place(folder):
            try:
                with atomic_path(self._file(folder, digest)) as temporary:
                    temporary.write_bytes(content)
                write_json(folder / self.header, {"arrays": digest, **header})
            finally:
                self._remove_other_arrays(folder)

    def load(self, folder: Path, check: Callable[[Any], None]) -> tuple[Any, bytes]:
        """Return header and content of the arrays file, as they were saved together.

        Parameters
        ----------
        folder
            Where the model was saved.
        check
            Called with the header before the arrays are read; raises if its format cannot be read.
        """
        try:
            return self._load(folder, check)
        except FileFormatError:
            with locked_in_place(folder, shared=True):  # perhaps it was being saved; now no writer is at work
                return self._load(folder, check)

    def _load(self, folder: Path, check: Callable[[Any], None]) -> tuple[Any, bytes]:
        header = read_json(folder / self.header, f"a saved {self.what}")
        check(header)
        digest = header.get("arrays")
        file = self._file(folder, digest)
        try:
            content = file.read_bytes()
        except OSError as error:
            raise FileFormatError(
                f"{folder} is a damaged {self.what}: {folder / self.header} belongs to {file}, which cannot be read: "
                f"{reason(error)}. Restore it from a copy, or fit and save again."
            ) from error
        if digest is None:
            warn_unverified(folder)
        elif digest_of_bytes(content) != digest:
            raise damaged(file, f"its sha256 is not the one in {folder / self.header}")
        return header, content

    def _file(self, folder: Path, digest: str | None) -> Path:
        file = folder / self.arrays
        return file if digest is None else file.with_stem(f"{file.stem}-{str(digest)[:NAMED]}")

    def _remove_other_arrays(self, folder: Path) -> None:
        """Remove the arrays of earlier saves, and what killed writers left."""
        with suppress(OSError, SparcetsError, AttributeError):  # of a damaged header, nothing is known
            saved = (folder / self.header).exists()  # not if the first save failed
            own = self._file(folder, read_json(folder / self.header, "").get("arrays")) if saved else None
            stem, suffix = Path(self.arrays).stem, Path(self.arrays).suffix
            digest = f"-[0-9a-f]{{{NAMED}}}"
            for file in folder.glob(f"{stem}*{suffix}"):
                if file != own and re.fullmatch(f"{stem}({digest}){'?' if saved else ''}", file.stem):
                    file.unlink()
            remove_leftovers(folder, f".{stem}-*{TEMPORARY}*{suffix}")


def warn_unverified(path: Path) -> None:
    """Log that a file of an earlier version has no digest."""
    log.warning("%s was saved by an earlier version, without a digest: damage cannot be noticed. Save it again.", path)


@contextmanager
def atomic_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary folder; put it in the place of ``path`` when the block ends without an exception.

    What the old folder holds beside the entries of the new one is kept. Nothing is replaced before the new folder is
    complete; on Linux the exchange is a single step. A mount point cannot be exchanged: its entries are replaced one
    after the other.
    """
    final = Path(path).resolve()  # a link stays a link
    in_place = final.is_dir() and (os.path.ismount(final) or final == Path.cwd())
    parent = final if in_place else final.parent
    try:
        parent.mkdir(parents=True, exist_ok=True)
        _remove_unfinished(final, parent)
        handle, outer = create_locked(lambda: tempfile.mkdtemp(dir=parent, prefix=_prefix(final)))
    except OSError as error:
        raise StorageError(f"cannot write {final}: {reason(error)}. Choose another folder.") from error
    try:
        new = outer / NEW
        try:
            new.mkdir()
        except OSError as error:
            raise StorageError(f"cannot write {final}: {reason(error)}. Choose another folder.") from error
        yield new
        try:
            with locked_in_place(final):  # not while somebody reads it
                _put_in_place(new, final, in_place=in_place)
        except OSError as error:
            raise StorageError(
                f"cannot write {final}: {reason(error)}. Free some space, or choose another folder."
            ) from error
    finally:
        try:
            _clean_up(outer, final)
        finally:
            if handle is not None:
                os.close(handle)


def remove_unfinished(path: str | os.PathLike[str]) -> None:
    """Remove what killed writers of a folder left beside it; :func:`atomic_folder` does so by itself."""
    final = Path(path).resolve()
    _remove_unfinished(final, final.parent)


def _remove_unfinished(final: Path, parent: Path) -> None:
    remove_leftovers(parent, f"{glob.escape(_prefix(final))}*", lambda left: _clean_up(left, final))


def _prefix(final: Path) -> str:
    """Return how the names of temporary folders for a path begin."""
    return f".{final.name}{TEMPORARY}"


def _put_in_place(new: Path, final: Path, *, in_place: bool) -> None:
    if in_place:
        _replace_entries(new, final)
    elif final.exists():
        _keep_other_entries(final, new)
        _exchange(new, final)
    else:
        new.rename(final)


def _clean_up(outer: Path, final: Path) -> None:
    """Remove a temporary folder, after putting back the old content if its writer died between two renames."""
    if not final.exists() and (outer / OLD).exists():
        (outer / OLD).rename(final)
    shutil.rmtree(outer, ignore_errors=True)  # an incomplete new folder, or the old one


def _keep_other_entries(old: Path, new: Path) -> None:
    """Link or copy to the new folder what only the old one holds."""
    own = {entry.name for entry in new.iterdir()}
    shutil.copytree(
        old,
        new,
        symlinks=True,
        dirs_exist_ok=True,
        ignore=lambda folder, names: own.intersection(names) if Path(folder) == old else set(),
        copy_function=_link_or_copy,
    )


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # a file system without links
        shutil.copy2(source, target)


def _exchange(new: Path, final: Path) -> None:
    """Put a folder in the place of another one: in one step on Linux, elsewhere in two."""
    if not _exchange_at_once(new, final):
        final.rename(new.with_name(OLD))
        new.rename(final)


def _exchange_at_once(a: Path, b: Path) -> bool:
    """Exchange two paths by Linux' renameat2; return False where there is none."""
    if sys.platform != "linux":
        return False
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:  # an old C library
        return False
    if rename(here, os.fsencode(a), here, os.fsencode(b), ctypes.c_uint(exchange)) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP):  # an old kernel, or another file system
        return False
    raise OSError(number, os.strerror(number), str(b))


def _replace_entries(new: Path, final: Path) -> None:
    """Replace the entries of a folder that cannot be renamed, files last: they name the folders they belong to."""
    for entry in sorted(new.iterdir(), key=Path.is_file):
        there = final / entry.name
        if there.is_dir():
            there.rename(new.with_name(f"{OLD}-{entry.name}"))
        entry.replace(there)
