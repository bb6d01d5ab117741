"""Random damage: of bytes, of text, of values in JSON, and of arrays in ``.npz`` and safetensors files."""

import io
import json
import math
import re
import zipfile
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from sparcets.io.files import KEY, digest_of_array, digest_of_json

Rng = np.random.Generator
MOST_ARRAYS = 2**20  # bytes of a file whose arrays are changed; of larger ones, bytes are


class Mutation(NamedTuple):
    """A changed file.

    ``signed``: whether the digests were removed or computed again, or are those of another file, so that the content
    may differ without being noticed.
    """

    content: bytes
    signed: bool = False


def mutate(name: str, content: bytes, others: Sequence[bytes], rng: Rng) -> Mutation:
    """Return a file with random damage; ``others`` are the contents of files of other kinds."""
    kinds: list[Callable[[], Mutation]] = [lambda: _bytes(content, rng)] * 2
    kinds += [lambda: _whole(content, others, rng)]
    suffix = name.rpartition(".")[2]
    if suffix in ("json", "jsonl", "csv", "ts"):
        kinds += [lambda: _text(content, rng)] * 2
    if suffix in ("json", "jsonl"):
        kinds += [lambda: _json(content, rng)] * 4
    if suffix in ("npz", "npy") and len(content) < MOST_ARRAYS:
        kinds += [lambda: _arrays(content, suffix, rng)] * 2
    if suffix == "safetensors":
        kinds += [lambda: _safetensors(content, rng)]
    return kinds[int(rng.integers(len(kinds)))]()


# Bytes

ODD_BYTES = (b"\0", b"\xff", b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"\n", b"\r", b'"', b",", b"\xef\xbb\xbf", b"\x1a")
EDITS = ("flip", "flip", "replace", "insert", "delete", "cut", "zero", "double", "swap")


def _place(data: bytearray, rng: Rng) -> int:
    # The ends hold headers and directories, so they are hit as often as all the rest.
    n = len(data)
    start, stop = ((0, min(n, 200)), (max(0, n - 200), n), (0, n))[rng.integers(3)]
    return int(rng.integers(start, max(stop, start + 1)))


def _edit(data: bytearray, how: str, rng: Rng) -> None:
    """Change some bytes in place."""
    start = _place(data, rng)
    stop = start + int(2 ** rng.uniform(0, math.log2(max(2, len(data)))))
    new = rng.bytes(int(rng.integers(1, 9)))
    if how == "flip":
        data[start] ^= 1 << int(rng.integers(8))
    elif how == "replace":
        data[start : start + len(new)] = new
    elif how == "insert":
        data[start:start] = new if rng.random() < 0.5 else ODD_BYTES[rng.integers(len(ODD_BYTES))]
    elif how == "delete":
        del data[start:stop]
    elif how == "cut":
        del data[start:]
    elif how == "zero":
        data[start:stop] = bytes(len(data[start:stop]))
    elif how == "double":
        data[start:start] = data[start:stop]
    else:
        a, b, c = sorted(_place(data, rng) for _ in range(3))
        data[a:c] = data[b:c] + data[a:b]


def _bytes(content: bytes, rng: Rng) -> Mutation:
    data = bytearray(content)
    for _ in range(int(rng.choice([1, 1, 1, 2, 3]))):
        if data:
            _edit(data, EDITS[rng.integers(len(EDITS))], rng)
    return Mutation(bytes(data))


def _whole(content: bytes, others: Sequence[bytes], rng: Rng) -> Mutation:
    other = others[rng.integers(len(others))]
    made = (
        Mutation(other, signed=True),  # which may hold the same kind of content
        Mutation(content + other, signed=True),
        *map(Mutation, (b"", content + content, bytes(len(content)), b" " * len(content))),
        *map(Mutation, (content.decode("latin-1").encode("utf-16"), b"\xef\xbb\xbf" + content)),
    )
    return made[rng.integers(len(made))]


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
        line = lines[i]
        # Removed, doubled, replaced by another, after an empty one, or joined to the next.
        joined = ["".join(lines[i : i + 2]), *lines[i + 2 :]]
        rest = ([], [line, line], [lines[j]], ["", line])
        ends = [*([*part, *lines[i + 1 :]] for part in rest), joined]
        return Mutation("\n".join([*lines[:i], *ends[rng.integers(len(ends))]]).encode("latin-1"))
    parts = re.split(r"([,:\n\"{}\[\] ]+)", text)
    for _ in range(int(rng.choice([1, 1, 2, 5]))):
        i = 2 * int(rng.integers((len(parts) + 1) // 2))
        odd = ODD_TEXT[rng.integers(len(ODD_TEXT))] if rng.random() < 0.8 else parts[rng.integers(len(parts))]
        parts[i] = odd.encode().decode("latin-1")
    return Mutation("".join(parts).encode("latin-1"))


# JSON

TEXT_OF = {  # what json.dumps does not write
    "@deep@": "[" * 20_000 + "]" * 20_000,
    "@long@": "9" * 5000,
    "@infinite@": "-1e999",
    "@surrogate@": '"\\ud800"',
}
ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 1.5, -0.5, 10**30, -(10**30), 1e300, math.nan, math.inf, 2**31, 2**63),
    *("", "x", "x" * 300, "a\0b", "../x", "/", "nan", "1", "cuda", "meta", "0" * 64, "é" * 200, *TEXT_OF),
    *([], {}, [None], [[]], [1, "x"], [[1, 2], [3]], {"": 1}, {"a": {"b": []}}, [10**30], ["x"] * 50, [1e300] * 3),
)


def _change_value(data: Any, rng: Rng) -> Any:
    """Return JSON data with one value replaced, removed, added or renamed; ``data`` itself may be changed."""
    owners: list[tuple[Any, Any]] = []
    _collect(data, owners)
    odd = ODD_VALUES[rng.integers(len(ODD_VALUES))]
    if not owners or rng.random() < 0.02:
        return odd
    owner, key = owners[rng.integers(len(owners))]
    what = str(rng.choice(["replace", "remove", "add", "rename"], p=[4 / 7, 1 / 7, 1 / 7, 1 / 7]))
    if what == "replace":
        owner[key] = odd
    elif what == "remove":
        del owner[key]
    elif isinstance(owner, list):
        owner.insert(key, odd if what == "add" else owner[key])
    elif what == "rename":
        owner[f"{key}x"] = owner.pop(key)
    else:
        owner["new"] = odd
    return data


def _collect(data: Any, owners: list[tuple[Any, Any]]) -> None:
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        if key != KEY:
            owners.append((data, key))
            _collect(value, owners)


def _sign(data: Any, rng: Rng) -> tuple[Any, bool]:
    """Leave, remove or renew the digest of JSON data; return whether it was touched."""
    how = int(rng.integers(3))
    if not isinstance(data, dict) or KEY not in data or how == 0:
        return data, False
    rest = {name: value for name, value in data.items() if name != KEY}
    if how == 1:
        return rest, True
    plain = rest if any(odd in json.dumps(rest) for odd in ("@deep@", "@long@")) else json.loads(_dump(rest))
    return {**rest, KEY: digest_of_json(plain)}, True


def _dump(data: Any) -> str:
    text = json.dumps(data)
    for odd, written in TEXT_OF.items():
        text = text.replace(f'"{odd}"', written)
    return text


def _json(content: bytes, rng: Rng) -> Mutation:
    lines = content.decode().strip().split("\n")
    if not all(line.startswith("{") and line.endswith("}") for line in lines):  # no JSON lines
        lines = [content.decode()]
    i = int(rng.integers(len(lines)))
    data, signed = _sign(_change_value(json.loads(lines[i]), rng), rng)
    return Mutation(("\n".join([*lines[:i], _dump(data), *lines[i + 1 :]]) + "\n").encode(), signed)


# Arrays


def _change_array(array: Any, rng: Rng) -> Any:
    """Return an array with another type, shape or content."""
    filled = (b"\xff\xfe", 1j, True, np.datetime64("2026-01-01"), np.nan, -np.inf, 1e300, -1, 2**62)
    made: list[Callable[[], Any]] = [
        *(lambda value=value: np.full(array.shape, value) for value in filled),
        *(lambda kind=kind: np.zeros(array.shape, dtype=kind) for kind in (np.float16, np.longdouble, ">f8")),
        lambda: np.zeros(array.shape, dtype=[("a", "f4"), ("b", "i4")]),
        lambda: array.T.copy(),
        lambda: array.ravel().copy(),
        lambda: array[None],
        lambda: array[:0] if array.ndim else array.reshape(1)[:0],
        lambda: np.array(3.5),
        lambda: array[:-1] if array.ndim else array,
        lambda: np.concatenate([array, array[:1]]) if array.ndim else array,
        lambda: array.astype("U8"),
        lambda: rng.permutation(array) if array.ndim else array,
    ]
    return made[rng.integers(len(made))]()


def _arrays(content: bytes, suffix: str, rng: Rng) -> Mutation:
    if suffix == "npy":
        np.save(file := io.BytesIO(), _change_array(np.load(io.BytesIO(content)), rng))
        return Mutation(file.getvalue())
    with np.load(io.BytesIO(content)) as stored:
        arrays = dict(stored)
    header = json.loads(str(arrays["header"])) if "header" in arrays else None
    names = [name for name in arrays if name != "header"]
    name = names[rng.integers(len(names))]
    what = int(rng.integers(6))
    if what == 0:
        del arrays[name]
    elif what == 1:
        arrays[f"{name}x"] = arrays.pop(name)
    elif what == 2 and header is not None:
        header = _change_value(header, rng)
    else:
        arrays[name] = _change_array(arrays[name], rng)
    signed = False
    if header is not None:
        if isinstance(header, dict) and "arrays" in header and rng.random() < 0.7:
            header["arrays"] = {n: digest_of_array(np.asarray(a)) for n, a in arrays.items() if n != "header"}
        header, signed = _sign(header, rng)
        if rng.random() < 0.2 and signed:
            header.pop("arrays", None)
        arrays["header"] = np.array(_dump(header))
    with zipfile.ZipFile(file := io.BytesIO(), "w") as packed:  # the names may be any
        for each, array in arrays.items():
            np.save(part := io.BytesIO(), array)
            packed.writestr(f"{each}.npy", part.getvalue())
    return Mutation(file.getvalue(), signed)


def _safetensors(content: bytes, rng: Rng) -> Mutation:
    size = int.from_bytes(content[:8], "little")
    text = _dump(_change_value(json.loads(content[8 : 8 + size]), rng)).encode()
    return Mutation(len(text).to_bytes(8, "little") + text + content[8 + size :])
