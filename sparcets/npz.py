"""Writing of ``.npz`` files, and the errors that the readers of a damaged one raise."""

from __future__ import annotations

import struct
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from typing import IO, Any

import numpy as np

# zipfile, zlib and NumPy's parser of headers have no common base, and a damaged size or name leads to the other ones.
UNREADABLE: tuple[type[Exception], ...] = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    tokenize.TokenError,
    SyntaxError,
    EOFError,
    OSError,
    MemoryError,
    LookupError,
    TypeError,
    ValueError,
    ArithmeticError,
    AttributeError,
    RuntimeError,  # also NotImplementedError, for an unknown compression
)


def write_npz(file: IO[bytes], arrays: Mapping[str, Any], *, compress: bool = False) -> None:
    """Write arrays by name as :func:`numpy.savez` does, and close the archive also if the disk is full.

    Earlier versions of NumPy leave it open, and Python complains about it at the end of the process.
    """
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)  # type: ignore[no-untyped-call]
