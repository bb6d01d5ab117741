"""Atomic writing of files, and JSON.

Every file is written to a temporary file in the same folder and renamed when it is complete: a full disk, a crash or a
killed process leaves the old file, or none, but never a partial one. The temporary file of a killed process is removed
by the next writer of that file. What is no regular file is never replaced, and links and permissions stay as they are.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
import stat
import struct
import tempfile
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from sparcets.core.errors import ConfigError, FileFormatError, SparcetsError, StorageError, quoted, storage_errors
from sparcets.io.locks import HAS_LOCKS, lock

KEY = "sha256"  # of the digest in JSON; always the last entry
_BLOCK = 2**20  # bytes that are read at a time
_REMAINS = re.compile("[0-9a-f]{16}")  # of a damaged digest


def digest_of_bytes(content: bytes) -> str:
    """Return the digest of the content of a file."""
    return hashlib.sha256(content).hexdigest()


def digest_of_files(files: Sequence[Path]) -> str:
    """Return one digest of the content of files that belong together, by name; that of the first does not matter."""
    names = ["", *(file.name for file in files[1:])]
    digests = {name: hashlib.sha256() for name in names}
    try:
        for name, file in zip(names, files, strict=True):
            with file.open("rb") as opened:
                while block := opened.read(_BLOCK):
                    digests[name].update(block)
        return digest_of_json({name: digest.hexdigest() for name, digest in digests.items()})
    except OSError as error:
        raise FileFormatError(f"{error.filename} cannot be read: {error.strerror}.") from error


def digest_of_json(data: Any) -> str:
    """Return a digest of values that JSON can hold; the order of keys and the white space of a file do not matter."""
    # Written and read once, so that tuples and keys that are numbers count as what a reader gets.
    plain = json.loads(json.dumps(data))
    return digest_of_bytes(json.dumps(plain, sort_keys=True, separators=(",", ":")).encode())


def digest_of_array(array: np.ndarray[Any, Any]) -> str:
    """Return a digest of type, shape and values."""
    digest = hashlib.sha256(f"{array.dtype.str} {array.shape}\n".encode())
    digest.update(array.tobytes())  # in C order, wherever the entries lie in memory
    return digest.hexdigest()


def digest_of_arrays(arrays: Mapping[str, np.ndarray[Any, Any]]) -> str:
    """Return one digest of arrays by name, in any order."""
    return digest_of_json({name: digest_of_array(array) for name, array in arrays.items()})


def add_digest(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data with a digest of them as the last entry.

    >>> check_digest(add_digest({"a": 1}))
    {'a': 1}
    """
    assert KEY not in data, f"{KEY!r} is the key of the digest"
    return {**data, KEY: digest_of_json(data)}


def check_digest(data: dict[str, Any]) -> dict[str, Any]:
    """Return the data without their digest; data without one, as people write them, are returned as they are.

    Raises
    ------
    ValueError
        If the data are not those that the digest was computed from.
    """
    last = next(reversed(data), "")
    # A damaged key must not pass for data without a digest, even if the digest is damaged as well.
    if KEY not in data and not (isinstance(data.get(last), str) and _REMAINS.search(data[last])):
        return data
    rest = {name: value for name, value in data.items() if name != KEY}
    if data.get(KEY) != digest_of_json(rest):
        raise ValueError("its content does not match its sha256")
    return rest


TEMPORARY = ".sparcets-tmp-"  # in the name of everything that is not complete yet
UNFINISHED = re.escape(TEMPORARY) + "[a-z0-9_]{8}"  # the same as a regular expression, with what tempfile appends
MAX_LINKS = 40  # that are followed, as Linux does
KINDS = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket"}  # others are devices
# What building an object from the values of a file raises if the file is damaged, or not of this kind. RuntimeError is
# that of PyTorch, for weights that do not fit their network.
MALFORMED: tuple[type[Exception], ...]
MALFORMED = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


def as_path(path: Any) -> Path:
    """Return the path of a file or folder that a user named; raise if it is none."""
    try:
        found = Path(path)
    except TypeError as error:
        raise ConfigError(f"a file or folder is named by text or a path, got {quoted(path)}.") from error
    if "\0" in str(found):
        raise ConfigError(f"no file or folder can be called {quoted(path)}: it holds a zero byte.")
    try:
        os.fsencode(found)
    except UnicodeEncodeError as error:  # half of a surrogate pair
        raise ConfigError(f"no file or folder can be called {quoted(ascii(str(path)))}: it is no text.") from error
    return found


@contextmanager
def atomic_path(path: str | os.PathLike[str], *, private: bool = False) -> Iterator[Path]:
    """Yield a temporary path in the same folder; rename it to ``path`` when the block ends without an exception.

    A link stays a link, and its target is written. A file that is replaced hands on its permissions. A ``private`` one
    only its owner may read; it is not written through a link.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with atomic_path(f"{folder}/a.txt") as temporary:
    ...         _ = temporary.write_text("content")
    ...     Path(f"{folder}/a.txt").read_text()
    'content'
    """
    given = as_path(path)
    final = file_to_write(given)
    if private and final != given:
        raise StorageError(f"cannot write {given}: it is a link, and its content is for you alone. Remove the link.")
    with storage_errors(given, "Choose another path."):
        if final == given:  # a link leads to a folder that is there
            final.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(final.parent, f"{re.escape(f'.{final.stem}')}{UNFINISHED}{re.escape(final.suffix)}")

        def create() -> str:
            # Keep the suffix: some writers append their own if it is missing.
            opened, name = tempfile.mkstemp(dir=final.parent, prefix=f".{final.stem}{TEMPORARY}", suffix=final.suffix)
            os.close(opened)
            return name

        handle, temporary = create_locked(create)
    try:
        with storage_errors(given, "Nothing was overwritten; free some space or choose another path."):
            yield temporary
            # Some file systems report a full disk only on fsync, so call it before the rename, while the old file is
            # there.
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
            if not private:  # as mkstemp creates them
                _set_permissions(temporary, file_to_write(final))
            temporary.replace(final)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        if handle is not None:
            os.close(handle)


def file_to_write(path: str | os.PathLike[str]) -> Path:
    """Return the file that is written for a path: the target of a link, else the path itself.

    Raises StorageError for what is there and cannot be replaced: a folder, a device, a pipe, a socket, or a file that
    is write-protected. Commands call it before a long computation.
    """
    file, links = as_path(path), 0
    try:
        while file.is_symlink() and not _of_a_process(file):
            if (links := links + 1) > MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            file = file.parent / file.readlink()
        about = None if _of_a_process(file) else file.stat()
    except FileNotFoundError:
        return file
    except OSError as error:
        raise StorageError(f"cannot write {path}: {reason(error)}. Choose another path.") from error
    if about is None:
        raise StorageError(
            f"cannot write {path}: it is an output of a process, not a file. Name a file; what --json prints can be "
            "redirected."
        )
    if stat.S_ISDIR(about.st_mode):
        raise StorageError(f"cannot write {path}: it is a folder, not a file. Name a file in it.")
    if not stat.S_ISREG(about.st_mode):
        kind = KINDS.get(stat.S_IFMT(about.st_mode), "a device")
        raise StorageError(
            f"cannot write {path}: it is {kind}, not a file. Name a file, or leave out --out where it is optional."
        )
    if not os.access(file, os.W_OK):
        raise StorageError(f"cannot write {path}: it is write-protected. Choose another path, or change its mode.")
    return file


def check_folder(path: str | os.PathLike[str]) -> None:
    """Raise StorageError if there is something that is no folder."""
    if os.path.lexists(path) and not is_folder(path):
        raise StorageError(f"cannot write {os.fspath(path)}: it is a file, not a folder. Choose another folder.")


def _of_a_process(file: Path) -> bool:
    """Return whether a path leads to an open file of a process, such as /dev/stdout."""
    return Path(os.path.realpath(file.parent)).is_relative_to("/proc")


def _set_permissions(temporary: Path, final: Path) -> None:
    """Give a new file the mode, owner and group of the one that it replaces, or those of any new file."""
    try:
        old = final.stat()
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        return
    mode = old.st_mode & 0o777
    if os.name == "posix":
        for owner, group in ((old.st_uid, -1), (-1, old.st_gid)):
            with suppress(OSError):  # only root may give files away
                os.chown(temporary, owner, group)
        if temporary.stat().st_gid != old.st_gid:
            mode &= ~0o070  # they were granted to another group
    temporary.chmod(mode)


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


def remove_leftovers(
    folder: Path, name: str, remove: Callable[[Path], object] = os.unlink, *, folders: bool = False
) -> None:
    """Remove the temporary files or ``folders`` and the lock files of killed processes of this user.

    Their ``name`` is a regular expression that other programs' files do not match. What is neither, such as a link, is
    left alone.
    """
    if not HAS_LOCKS:
        return  # nothing tells whether their writers are alive
    with suppress(OSError):  # a folder that cannot be listed
        for left in [entry for entry in folder.iterdir() if re.fullmatch(name, entry.name)]:
            with suppress(OSError):  # a live writer holds the lock, or another process was faster
                handle = os.open(left, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                try:
                    about = os.fstat(handle)
                    lock(handle, wait=False)
                    # A lock file may have been removed and made anew since it was opened; the new one is not ours.
                    is_kind = (stat.S_ISDIR if folders else stat.S_ISREG)(about.st_mode)
                    if is_kind and about.st_uid == os.geteuid() and os.path.samestat(about, left.lstat()):
                        remove(left)
                finally:
                    os.close(handle)


def to_plain(value: Any) -> Any:
    """Return what JSON can hold: NumPy numbers as Python numbers, and None for NaN and infinity.

    >>> to_plain({"a": np.float32(0.5), "b": [float("nan"), np.int64(2)], "c": (True, "x")})
    {'a': 0.5, 'b': [None, 2], 'c': [True, 'x']}
    """
    if isinstance(value, Mapping):
        return {str(k): to_plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(v) for v in value]
    if hasattr(value, "tolist"):  # NumPy scalars and arrays
        return to_plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_json(path: str | os.PathLike[str], data: Any, *, private: bool = False) -> None:
    """Write ``data`` as JSON, atomically; a dict gets a digest, which :func:`read_json` checks and removes."""
    data = add_digest(data) if isinstance(data, dict) else data
    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
    with atomic_path(path, private=private) as temporary:
        temporary.write_bytes(as_utf8(text + "\n"))


def as_utf8(text: str) -> bytes:
    r"""Return a text as UTF-8; bytes of a file name that are no UTF-8 are written as ``\udcff``, which JSON reads back.

    >>> as_utf8("Zoé"), as_utf8("\udcff.npz")
    (b'Zo\xc3\xa9', b'\\udcff.npz')
    """
    return text.encode("utf-8", "backslashreplace")


def read_json(path: str | os.PathLike[str], what: str) -> Any:
    """Read a JSON file; raise FileFormatError if it is missing, not valid JSON, or not what was written.

    Files without a digest, as people write them, are read as they are. Messages say ``what`` the file should be, such
    as ``"a saved classifier"``.
    """
    file = Path(path)
    if not is_file(file):
        if file.parent == Path():  # a bare file name: mention the file, not its folder
            raise FileFormatError(f"no file {file}, where {what} should be.")
        raise FileFormatError(f"{file.parent} holds no {file.name}, so it is not {what}.")
    try:
        data = json.loads(file.read_text(encoding="utf-8"), object_pairs_hook=_with_unique_keys)
    except OSError as error:
        raise FileFormatError(f"{file} cannot be read: {reason(error)}.") from error
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, a number of thousands of digits, or too deep
        raise FileFormatError(f"{file} is not {what}: {error}.") from error
    try:
        return check_digest(data) if isinstance(data, dict) else data
    except (ValueError, RecursionError) as error:
        raise damaged(file, str(error)) from error


def _with_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        raise ValueError("a key stands there twice")
    return data


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


def is_plain_file(path: Path) -> bool:
    """Return whether there is a regular file, not a link to one."""
    return path.is_file() and not path.is_symlink()


def is_folder(path: str | os.PathLike[str]) -> bool:
    """Return whether there is such a folder; of a name that is too long there is none, where Path.is_dir raises."""
    return os.path.isdir(path)  # noqa: PTH112


def reason(error: OSError) -> str:
    """Return what the system says about an error, for messages."""
    return error.strerror or str(error)


# zipfile, zlib and NumPy's parser of headers have no common base, and a damaged size or name leads to the other ones.
UNREADABLE: tuple[type[Exception], ...] = (
    *MALFORMED,
    *(zipfile.BadZipFile, zlib.error, struct.error, tokenize.TokenError, SyntaxError, EOFError, OSError, MemoryError),
)


def write_npz(file: IO[bytes], arrays: Mapping[str, Any], *, compress: bool = False) -> None:
    """Write arrays by name as :func:`numpy.savez` does, and close the archive also if the disk is full.

    Earlier versions of NumPy leave it open, and Python complains about it at the end of the process.
    """
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)  # type: ignore[no-untyped-call]
