"""Digests (SHA-256) by which a file knows its own content, and other files name it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

KEY = "sha256"  # of the digest in JSON; always the last entry
_REMAINS = re.compile("[0-9a-f]{16}")  # of a damaged digest


def digest_of_bytes(content: bytes) -> str:
    """Return the digest of the content of a file."""
    return hashlib.sha256(content).hexdigest()


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
    """Return the data without their digest; data without one, as earlier versions wrote, are returned as they are.

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
