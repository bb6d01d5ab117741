"""Random damage: of bytes, of text, of values in JSON, and of arrays in ``.npz`` and safetensors files."""

from __future__ import annotations

import io
import json
import math
import re
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparcets.io.files import KEY, digest_of_array, digest_of_json

Rng = np.random.Generator
MOST_ARRAYS = 2**20  # bytes of a file whose arrays are changed; of larger ones, bytes are


@dataclass(frozen=True)
class Mutation:
    """A changed file.

    Attributes
    ----------
    words
        What was done.
    content
        The bytes afterwards.
    signed
        Whether the digests were removed or computed again, or are those of another file, so that the content may
        differ without being noticed.
    """

    words: str
    content: bytes
    signed: bool = False


def mutate(name: str, content: bytes, others: Sequence[bytes], rng: Rng) -> Mutation:
    """Return a file with random damage; ``others`` are the contents of files of other kinds."""
    kinds: list[Callable[[], Mutation | None]] = [
        lambda: _bytes(content, rng),
        lambda: _bytes(content, rng),
        lambda: _whole(content, others, rng),
    ]
    suffix = name.rpartition(".")[2]
    if suffix in ("json", "jsonl", "csv", "ts"):
        kinds += [lambda: _text(content, rng)] * 2
    if suffix in ("json", "jsonl"):
        kinds += [lambda: _json(content, rng)] * 4
    if suffix in ("npz", "npy") and len(content) < MOST_ARRAYS:
        kinds += [lambda: _arrays(content, suffix, rng)] * 2
    if suffix == "safetensors":
        kinds += [lambda: _safetensors(content, rng)]
    made = kinds[int(rng.integers(len(kinds)))]()
    return _bytes(content, rng) if made is None else made


# Bytes


def _place(data: bytes | bytearray, rng: Rng) -> int:
    # The ends hold headers and directories, so they are hit as often as all the rest.
    n = len(data)
    where = int(rng.integers(3))
    start, stop = ((0, min(n, 200)), (max(0, n - 200), n), (0, n))[where]
    return int(rng.integers(start, max(stop, start + 1)))


def _flip(data: bytearray, rng: Rng) -> str:
    at, bit = _place(data, rng), int(rng.integers(8))
    data[at] ^= 1 << bit
    return f"bit {bit} of byte {at} flipped"


def _replace(data: bytearray, rng: Rng) -> str:
    at, new = _place(data, rng), rng.bytes(int(rng.integers(1, 9)))
    data[at : at + len(new)] = new
    return f"bytes {at}:{at + len(new)} replaced by {new!r}"


ODD_BYTES = (b"\0", b"\xff", b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"\n", b"\r", b'"', b",", b"\xef\xbb\xbf", b"\x1a")


def _insert(data: bytearray, rng: Rng) -> str:
    at = _place(data, rng)
    new = rng.bytes(int(rng.integers(1, 9))) if rng.random() < 0.5 else ODD_BYTES[rng.integers(len(ODD_BYTES))]
    data[at:at] = new
    return f"{new!r} inserted at byte {at}"


def _block(data: bytearray, rng: Rng) -> tuple[int, int]:
    at = _place(data, rng)
    return at, at + int(2 ** rng.uniform(0, math.log2(max(2, len(data)))))


def _delete(data: bytearray, rng: Rng) -> str:
    start, stop = _block(data, rng)
    del data[start:stop]
    return f"bytes {start}:{stop} deleted"


def _cut(data: bytearray, rng: Rng) -> str:
    at = _place(data, rng)
    del data[at:]
    return f"cut off at byte {at}"


def _zero(data: bytearray, rng: Rng) -> str:
    start, stop = _block(data, rng)
    data[start:stop] = bytes(len(data[start:stop]))
    return f"bytes {start}:{stop} zeroed"


def _double(data: bytearray, rng: Rng) -> str:
    start, stop = _block(data, rng)
    data[start:start] = data[start:stop]
    return f"bytes {start}:{stop} doubled"


def _swap(data: bytearray, rng: Rng) -> str:
    a, b, c = sorted(_place(data, rng) for _ in range(3))
    data[a:c] = data[b:c] + data[a:b]
    return f"bytes {a}:{b} and {b}:{c} swapped"


EDITS = (_flip, _flip, _replace, _insert, _delete, _cut, _zero, _double, _swap)


def _bytes(content: bytes, rng: Rng) -> Mutation:
    data, words = bytearray(content), []
    for _ in range(int(rng.choice([1, 1, 1, 2, 3]))):
        if data:
            edit = EDITS[rng.integers(len(EDITS))]
            words.append(edit(data, rng))
    return Mutation(", ".join(words), bytes(data))


def _whole(content: bytes, others: Sequence[bytes], rng: Rng) -> Mutation:
    which = int(rng.integers(len(others)))
    made = {
        "emptied": b"",
        f"replaced by file {which} of another kind": others[which],
        f"file {which} of another kind appended": content + others[which],
        "doubled": content + content,
        "filled with NUL bytes": bytes(len(content)),
        "filled with spaces": b" " * len(content),
        "in UTF-16": content.decode("latin-1").encode("utf-16"),
        "with a byte order mark": b"\xef\xbb\xbf" + content,
    }
    words = list(made)[rng.integers(len(made))]
    return Mutation(words, made[words], signed="another kind" in words)  # which may hold the same kind of content


# Text

ODD_TEXT = (
    *("", "nan", "-inf", "1e400", "1e-400", "-1", "0", "1", "0x1F", "1_000", "١", "１", "1,5", "1.5", "x", "é", "\x85"),
    *('"', "'", "'\"", "\\", "\t", "NULL", "None", "true", "9" * 30, "9" * 5000, "x" * 5000, "?", "@data", "\u2028"),
    *("1970-01-01", "2026-01-01T00:00:00+01:00", "99999-01-01", "12:30", "1+2j", "#", "%", "{}", "[]", "-0.0", "00"),
)


def _text(content: bytes, rng: Rng) -> Mutation:
    text = content.decode("latin-1")
    if rng.random() < 0.3:
        lines = text.split("\n")
        i, j = (int(i) for i in rng.integers(len(lines), size=2))
        made = {
            f"line {i} removed": [*lines[:i], *lines[i + 1 :]],
            f"line {i} doubled": [*lines[:i], lines[i], *lines[i:]],
            f"line {i} replaced by line {j}": [*lines[:i], lines[j], *lines[i + 1 :]],
            f"an empty line before line {i}": [*lines[:i], "", *lines[i:]],
            f"line {i} joined to the next": [*lines[:i], "".join(lines[i : i + 2]), *lines[i + 2 :]],
        }
        words = list(made)[rng.integers(len(made))]
        return Mutation(words, "\n".join(made[words]).encode("latin-1"))
    parts = re.split(r"([,:\n\"{}\[\] ]+)", text)
    words = []
    for _ in range(int(rng.choice([1, 1, 2, 5]))):
        i = 2 * int(rng.integers((len(parts) + 1) // 2))
        odd = ODD_TEXT[rng.integers(len(ODD_TEXT))] if rng.random() < 0.8 else parts[rng.integers(len(parts))]
        words.append(f"part {i}, {parts[i][:20]!r}, replaced by {odd[:20]!r}")
        parts[i] = odd.encode().decode("latin-1")
    return Mutation(", ".join(words), "".join(parts).encode("latin-1"))


# JSON

DEEP, LONG_NUMBER, INFINITE, SURROGATE = "@deep@", "@long@", "@infinite@", "@surrogate@"
TEXT_OF = {  # what json.dumps does not write
    DEEP: "[" * 20_000 + "]" * 20_000,
    LONG_NUMBER: "9" * 5000,
    INFINITE: "-1e999",
    SURROGATE: '"\\ud800"',
}
ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 1.5, -0.5, 10**30, -(10**30), 1e300, math.nan, math.inf, 2**31, 2**63),
    *("", "x", "x" * 300, "a\0b", "../x", "/", "nan", "1", "cuda", "meta", "0" * 64, "é" * 200, *TEXT_OF),
    *([], {}, [None], [[]], [1, "x"], [[1, 2], [3]], {"": 1}, {"a": {"b": []}}, [10**30], ["x"] * 50, [1e300] * 3),
)


def change_value(data: Any, rng: Rng) -> tuple[str, Any]:
    """Return JSON data with one value replaced, removed, added or renamed; ``data`` itself may be changed."""
    owners: list[tuple[Any, Any, str]] = []
    _collect(data, "", owners)
    odd = ODD_VALUES[rng.integers(len(ODD_VALUES))]
    shown = repr(odd)[:60]
    if not owners or rng.random() < 0.02:
        return f"replaced by {shown}", odd
    owner, key, path = owners[rng.integers(len(owners))]
    what = int(rng.choice([0, 0, 0, 0, 1, 2, 3]))
    if what == 0:
        owner[key] = odd
        return f"{path} replaced by {shown}", data
    if what == 1:
        del owner[key]
        return f"{path} removed", data
    if isinstance(owner, list):
        owner.insert(key, odd if what == 2 else owner[key])
        return f"{shown if what == 2 else 'its copy'} before {path}", data
    if what == 3:
        owner[f"{key}x"] = owner.pop(key)
        return f"{path} renamed", data
    owner["new"] = odd
    return f"{shown} added beside {path}", data


def _collect(data: Any, path: str, owners: list[tuple[Any, Any, str]]) -> None:
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        if key != KEY:
            owners.append((data, key, f"{path}[{key!r}]"))
            _collect(value, f"{path}[{key!r}]", owners)


def _sign(data: Any, rng: Rng) -> tuple[str, Any, bool]:
    """Leave, remove or renew the digest of JSON data."""
    if not isinstance(data, dict) or KEY not in data:
        return "", data, False
    rest = {name: value for name, value in data.items() if name != KEY}
    how = int(rng.integers(3))
    if how == 0:
        return "", data, False
    if how == 1:
        return ", digest removed", rest, True
    plain = json.loads(_dump(rest)) if not any(odd in json.dumps(rest) for odd in (DEEP, LONG_NUMBER)) else rest
    return ", digest renewed", {**rest, KEY: digest_of_json(plain)}, True


def _dump(data: Any) -> str:
    text = json.dumps(data)
    for odd, written in TEXT_OF.items():
        text = text.replace(f'"{odd}"', written)
    return text


def _json(content: bytes, rng: Rng) -> Mutation:
    lines = content.decode().strip().split("\n")
    one_each = all(line.startswith("{") and line.endswith("}") for line in lines)  # JSON lines
    i = int(rng.integers(len(lines))) if one_each else 0
    words, data = change_value(json.loads(lines[i] if one_each else content), rng)
    how, data, signed = _sign(data, rng)
    lines = [*lines[:i], _dump(data), *lines[i + 1 :]] if one_each else [_dump(data)]
    return Mutation(f"value {words}{how}", ("\n".join(lines) + "\n").encode(), signed)


# Arrays


def change_array(array: Any, rng: Rng) -> tuple[str, Any]:
    """Return an array with another type, shape or content."""
    flat = array.ravel()
    made: dict[str, Callable[[], Any]] = {
        "transposed": lambda: array.T.copy(),
        "flat": lambda: flat.copy(),
        "with an axis more": lambda: array[None],
        "empty": lambda: array[:0] if array.ndim else array.reshape(1)[:0],
        "a single number": lambda: np.array(3.5),
        "one row less": lambda: array[:-1] if array.ndim else array,
        "one row more": lambda: np.concatenate([array, array[:1]]) if array.ndim else array,
        "text": lambda: array.astype("U8"),
        "bytes": lambda: np.full(array.shape, b"\xff\xfe"),
        "complex": lambda: np.full(array.shape, 1j),
        "bool": lambda: np.ones(array.shape, dtype=bool),
        "dates": lambda: np.full(array.shape, np.datetime64("2026-01-01")),
        "records": lambda: np.zeros(array.shape, dtype=[("a", "f4"), ("b", "i4")]),
        "NaN": lambda: np.full(array.shape, np.nan),
        "infinite": lambda: np.full(array.shape, -np.inf),
        "huge": lambda: np.full(array.shape, 1e300),
        "negative": lambda: np.full(array.shape, -1),
        "large integers": lambda: np.full(array.shape, 2**62),
        "half precision": lambda: np.zeros(array.shape, dtype=np.float16),
        "long double": lambda: np.zeros(array.shape, dtype=np.longdouble),
        "big endian": lambda: np.ones(array.shape, dtype=">f8"),
        "in another order": lambda: rng.permutation(array) if array.ndim else array,
    }
    words = list(made)[rng.integers(len(made))]
    return words, made[words]()


def _arrays(content: bytes, suffix: str, rng: Rng) -> Mutation | None:
    if suffix == "npy":
        words, array = change_array(np.load(io.BytesIO(content)), rng)
        np.save(file := io.BytesIO(), array)
        return Mutation(f"the array {words}", file.getvalue())
    with np.load(io.BytesIO(content)) as stored:
        arrays = dict(stored)
    header = json.loads(str(arrays["header"])) if "header" in arrays else None
    names = [name for name in arrays if name != "header"]
    name = names[rng.integers(len(names))]
    what = int(rng.integers(6))
    if what == 0:
        del arrays[name]
        words = f"{name} removed"
    elif what == 1:
        arrays[f"{name}x"] = arrays.pop(name)
        words = f"{name} renamed"
    elif what == 2 and header is not None:
        words, header = change_value(header, rng)
    else:
        words, arrays[name] = change_array(arrays[name], rng)
        words = f"{name} {words}"
    signed = False
    if header is not None:
        if isinstance(header, dict) and "arrays" in header and rng.random() < 0.7:
            header["arrays"] = {n: digest_of_array(np.asarray(a)) for n, a in arrays.items() if n != "header"}
        how, header, signed = _sign(header, rng)
        if rng.random() < 0.2 and signed:
            header.pop("arrays", None)
        words += how
        arrays["header"] = np.array(_dump(header))
    with zipfile.ZipFile(file := io.BytesIO(), "w") as packed:  # the names may be any
        for each, array in arrays.items():
            np.save(part := io.BytesIO(), array)
            packed.writestr(f"{each}.npy", part.getvalue())
    return Mutation(f"arrays: {words}", file.getvalue(), signed)


def _safetensors(content: bytes, rng: Rng) -> Mutation:
    size = int.from_bytes(content[:8], "little")
    words, header = change_value(json.loads(content[8 : 8 + size]), rng)
    text = _dump(header).encode()
    return Mutation(f"header {words}", len(text).to_bytes(8, "little") + text + content[8 + size :])
