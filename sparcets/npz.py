"""Errors that the readers of a damaged ``.npz`` file raise."""

from __future__ import annotations

import struct
import tokenize
import zipfile
import zlib

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
