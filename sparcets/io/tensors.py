"""Saved models: arrays by name and a header, as JSON in the metadata, in one safetensors file. Nothing is pickled.

Classifiers, explainers, finished fits and checkpoints are such files. Each is written whole or not at all, and holds a
digest of its header and of its arrays. Files of other programs, in the same folder or of the same name, are left alone.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from sparcets.core.errors import FileFormatError, SparcetsError, StorageError, storage_errors
from sparcets.io.files import (
    MALFORMED,
    UNFINISHED,
    add_digest,
    atomic_path,
    check_digest,
    damaged,
    digest_of_arrays,
    is_file,
    is_plain_file,
    reason,
)
from sparcets.io.folders import inside, is_open

# What building an object from a header and arrays raises if they are damaged, or not of this kind.
DAMAGE: tuple[type[Exception], ...] = (*MALFORMED, safetensors.SafetensorError)
Arrays = dict[str, np.ndarray[Any, Any]]
_START = b'{"__metadata__":{"sparcets":'  # of all such files, after the length of the metadata, eight bytes


@dataclass(frozen=True, kw_only=True)
class SavedModel:
    """A kind of saved model."""

    file: str  # such as classifier.safetensors
    what: str  # for messages, such as "classifier"
    format: int  # raised whenever what is in it changes; files of another format are not read

    def save(
        self, folder: Path, header: Mapping[str, Any], arrays: Mapping[str, Any], *, private: bool = False
    ) -> None:
        """Write the file into a folder.

        If it is to be private, only the owner can enter a new folder and read a new file. A model that others could
        read stays readable when it is saved again.
        """
        file = folder / self.file
        private = private and not is_open(file)
        with storage_errors(folder, "Choose another folder."):
            folder.mkdir(mode=0o700 if private else 0o777, parents=True, exist_ok=True)
        if file.exists() and not _is_ours(file):
            raise StorageError(f"{file} is in the way: it is not of a saved {self.what}. Choose another folder.")
        # safetensors writes the memory of an array as it lies, and reads it in C order.
        in_order = {name: np.asarray(array, order="C") for name, array in arrays.items()}
        plain = add_digest({"format": self.format, "arrays": digest_of_arrays(in_order), **header})
        with atomic_path(file, private=private) as temporary:
            temporary.write_bytes(safetensors.numpy.save(in_order, {"sparcets": json.dumps(plain)}))

    def load(self, folder: Path) -> tuple[Any, Arrays]:
        """Return header and arrays, as they were saved together."""
        file, content = self._read(folder)
        header = self._header(file, content)
        try:
            arrays = safetensors.numpy.load(content)
            same = header["arrays"] == digest_of_arrays(arrays)
        except DAMAGE as error:
            raise damaged(file, f"{type(error).__name__}: {error}") from error
        if not same:
            raise damaged(file, "its arrays do not match their sha256")
        return header, arrays

    @contextmanager
    def reading(self, folder: Path, passing: type[SparcetsError] = SparcetsError) -> Iterator[None]:
        """Tell what a damaged file makes a block raise as damage, but for the errors that say what is wrong."""
        try:
            yield
        except passing:
            raise
        except DAMAGE as error:
            why = f"{type(error).__name__}: {error}"
            raise FileFormatError(f"{folder} is a damaged {self.what}: {why}.") from error

    def header(self, folder: Path) -> Any:
        """Return the header alone."""
        return self._header(*self._read(folder))

    def others(self, folder: Path) -> list[Path]:
        """Return what a folder holds beside a saved model; all of it if there is none."""
        if folder.is_symlink() or not folder.is_dir() or os.path.ismount(folder):
            return [folder]
        stem, suffix = re.escape(Path(self.file).stem), Path(self.file).suffix
        own = {path for path in folder.iterdir() if re.fullmatch(rf"\.{stem}{UNFINISHED}{suffix}", path.name)}
        own |= {folder / self.file} if _is_ours(folder / self.file) else set()
        return [path for path in sorted(folder.iterdir()) if path not in own or not is_plain_file(path)]

    def _read(self, folder: Path) -> tuple[Path, bytes]:
        file = inside(folder, self.file)
        if not is_file(file):
            raise FileFormatError(f"{folder} holds no {self.file}, so it is not a saved {self.what}.")
        try:
            return file, file.read_bytes()
        except OSError as error:
            raise FileFormatError(f"{file} cannot be read: {reason(error)}.") from error

    def _header(self, file: Path, content: bytes) -> Any:
        try:
            metadata = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["__metadata__"]
            (text,) = metadata.values()  # a single entry: a damaged name changes nothing
            header = check_digest(json.loads(text))
            found = header["format"]
        except MALFORMED as error:
            raise FileFormatError(f"{file} is not a saved {self.what}, or it is damaged: {error}.") from error
        if found != self.format:
            raise FileFormatError(
                f"{file} has format {found}, this version reads format {self.format}. Fit and save it again."
            )
        return header


def _is_ours(file: Path) -> bool:
    """Return whether a file is a saved model, perhaps a damaged one."""
    if not is_file(file):  # a named pipe would wait for a writer
        return False
    with file.open("rb") as opened:
        return opened.read(8 + len(_START))[8:] == _START
