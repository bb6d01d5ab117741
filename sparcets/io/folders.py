"""Folders whose files belong together, written so that no reader ever sees parts of two saves.

A folder of several parts (:func:`atomic_folder`) is written beside the old one, and the two are exchanged when it is
complete. Files of other programs in such folders are left alone.

A folder may come from somebody else: whatever is read of it, and whatever its files name, is found by :func:`inside`,
and so lies in the folder itself.
"""

from __future__ import annotations

import ctypes
import errno
import logging
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath

from sparcets.core.errors import FileFormatError, storage_errors
from sparcets.io.files import (
    TEMPORARY,
    UNFINISHED,
    check_folder,
    create_locked,
    is_plain_file,
    remove_leftovers,
)
from sparcets.io.locks import locked_in_place

log = logging.getLogger(__name__)
NEW, OLD = "new", "old"  # in the temporary folder of atomic_folder
MARKER = ".sparcets"  # an empty file in temporary folders, by which they are recognised


def inside(folder: Path, name: object, *, named_by: Path | None = None) -> Path:
    """Return the path of an entry of a folder, which must lie in that folder, wherever links lead.

    The folder may itself be reached by a link. A FileFormatError is raised if the name, which may be ``named_by`` a
    file, is absolute or has parts ``..``, if a link leads out of the folder, or for a pipe or a device.

    >>> inside(Path("fit"), "classifier/model.json").as_posix()
    'fit/classifier/model.json'
    >>> inside(Path("fit"), "../notes.txt", named_by=Path("fit/model.json"))
    Traceback (most recent call last):
    sparcets.core.errors.FileFormatError: fit/model.json names '../notes.txt', which is no path within its folder fit.
    """
    plain = isinstance(name, str) and bool(name) and "\0" not in name
    parts = (PurePosixPath(str(name)), PureWindowsPath(str(name)))  # a file may come from another system
    if not plain or any(path.is_absolute() or path.anchor or ".." in path.parts for path in parts):
        raise FileFormatError(
            f"{named_by or folder} names {str(name)[:200]!r}, which is no path within its folder {folder}."
        )
    path = folder / str(name)
    try:
        leads_to = path.resolve()
        contained = leads_to.is_relative_to(folder.resolve())
        special = contained and path.exists() and not (path.is_file() or path.is_dir())
    except (OSError, RuntimeError, ValueError) as error:  # a name that is too long, links that lead in a circle
        raise FileFormatError(f"{folder} holds no {str(name)[:200]!r} that can be read: {error}.") from error
    if not contained:
        raise FileFormatError(
            f"{path} leads out of its folder, to {leads_to}. What a folder holds must lie in it: put a copy there, if "
            "you trust it."
        )
    if special:
        raise FileFormatError(f"{path} is neither a file nor a folder, but a pipe or a device.")
    return path


def is_open(path: Path) -> bool:
    """Return whether others than the owner may read a file that is there."""
    with suppress(OSError):
        return bool(path.stat().st_mode & 0o077)
    return False


def make_private(folder: Path) -> None:
    """Take the permissions of other users from a folder and from everything in it; links are left as they are."""
    for where, _, files in os.walk(folder):
        restrict(Path(where), 0o700)
        for name in files:
            restrict(Path(where, name), 0o600)


def restrict(path: Path, mode: int) -> None:
    """Set the permissions of a file or folder; a link is left as it is."""
    try:
        if not path.is_symlink() and path.stat().st_mode & 0o777 != mode:
            path.chmod(mode)
    except FileNotFoundError:
        pass  # removed meanwhile
    except OSError as error:  # a file system without permissions
        log.warning("others on this machine may be able to read %s: %s", path, error.strerror)


def _remove_folder(folder: Path) -> None:
    # The marker goes last: what is left if the process is killed here can still be recognised.
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        elif entry.name != MARKER:
            entry.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def temporary_folder(parent: Path, name: str, remove: Callable[[Path], None] = _remove_folder) -> Iterator[Path]:
    """Yield a new hidden folder in ``parent``, locked meanwhile and removed afterwards.

    Those that killed processes left are removed first. The name tells what it is for.
    """
    remove_temporary_folders(parent, name, remove)
    handle, folder = create_locked(lambda: tempfile.mkdtemp(dir=parent, prefix=f".{name}{TEMPORARY}"))
    try:
        (folder / MARKER).touch()
        yield folder
    finally:
        try:
            remove(folder)
        finally:
            if handle is not None:
                os.close(handle)


def remove_temporary_folders(
    parent: Path, name: str | None = None, remove: Callable[[Path], None] = _remove_folder
) -> None:
    """Remove what killed processes left of :func:`temporary_folder`; of every name if None is given.

    A folder is one of them by its name and by the marker in it; or if it is empty, killed before the marker was there.
    """
    begin = ".+" if name is None else re.escape(name)

    def remove_marked(left: Path) -> None:
        if is_plain_file(left / MARKER) or not any(left.iterdir()):
            remove(left)

    remove_leftovers(parent, rf"\.{begin}{UNFINISHED}", remove_marked, folders=True)


@contextmanager
def atomic_folder(
    path: str | os.PathLike[str], *, private: bool = False, check: Callable[[Path], None] = lambda folder: None
) -> Iterator[Path]:
    """Yield a temporary folder; put its entries in the place of those of ``path`` when the block ends without an error.

    Nothing is replaced before all of them are complete. If the old folder holds nothing else, the two folders are
    exchanged; on Linux in a single step. Other entries are kept where they are: then, and for mount points and the
    current folder, which cannot be renamed, the entries are replaced one after the other.

    Only its owner may enter a new ``private`` folder, and read what is written into it. ``check`` is called first and
    again before entries are replaced, and raises if they may not be.
    """
    final = Path(path).resolve()  # a link stays a link
    check_folder(final)
    check(final)
    in_place = final.is_dir() and (os.path.ismount(final) or final == Path.cwd())
    parent = final if in_place else final.parent
    with ExitStack() as stack:
        with storage_errors(final, "Choose another folder."):
            parent.mkdir(parents=True, exist_ok=True)
            clean_up = partial(_clean_up, final=final)
            new = stack.enter_context(temporary_folder(parent, final.name, clean_up)) / NEW
            new.mkdir()
        yield new
        if private:
            make_private(new)
        with storage_errors(final, "Free some space, or choose another folder."):
            if final.is_dir() and not in_place:  # a folder that is there keeps its permissions
                new.chmod(stat.S_IMODE(final.stat().st_mode))
            with locked_in_place(final):  # not while somebody reads it
                check(final)
                _put_in_place(new, final, in_place=in_place)


def remove_unfinished(path: str | os.PathLike[str]) -> None:
    """Remove what killed writers of a folder left beside it; :func:`atomic_folder` does so by itself."""
    final = Path(path).resolve()
    remove_temporary_folders(final.parent, final.name, partial(_clean_up, final=final))


def _put_in_place(new: Path, final: Path, *, in_place: bool) -> None:
    """Put a folder in the place of another one: in one step on Linux, elsewhere in two; or its entries, one by one."""
    if not final.exists():
        new.rename(final)
    elif in_place or {entry.name for entry in final.iterdir()} - {entry.name for entry in new.iterdir()}:
        _replace_entries(new, final)
    elif not _exchange_at_once(new, final):
        final.rename(new.with_name(OLD))
        new.rename(final)


def _clean_up(outer: Path, final: Path) -> None:
    """Remove a temporary folder, after putting back the old content if its writer died between two renames."""
    if not final.exists() and (outer / OLD).exists():
        (outer / OLD).rename(final)
    for old in outer.glob(f"{OLD}-*"):
        there = final / old.name.removeprefix(f"{OLD}-")
        if final.is_dir() and not there.exists():
            old.rename(there)
    _remove_folder(outer)  # an incomplete new folder, or the old one


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
    for entry in sorted(new.iterdir(), key=lambda entry: (entry.is_file(), entry.name)):
        there = final / entry.name
        if there.is_dir():
            there.rename(new.with_name(f"{OLD}-{entry.name}"))
        entry.replace(there)
