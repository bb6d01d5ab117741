"""Trace a tiny fit and explain: which files of the package they cross, and how often they return to one.

    python docs/walk.py             a table, as in docs/design.md
    python docs/walk.py --files     with the files, in the order in which they are first entered

The explained model is a module of the user's own, wrapped. A first, untraced round loads what is imported lazily.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import torch

import sparcets as sp
from sparcets.testing.data import make_series

METHODS = ("Explainer", "Sparce", "Nearest")
# What each call may cross at most: files, and returns to one already left. Measured, so that it does not get worse.
BARS = {
    ("Explainer", "fit"): (36, 185),
    ("Explainer", "explain"): (25, 124),
    ("Sparce", "fit"): (23, 88),
    ("Sparce", "explain"): (14, 40),
    ("Nearest", "fit"): (11, 26),
    ("Nearest", "explain"): (10, 41),
}
PACKAGE = str(Path(sp.__file__).parent) + "/"


class Model(torch.nn.Module):
    """The user's model: logits are the means of the first three features."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 10 * x[..., :3].mean(1)


def walk(call: Callable[[], Any]) -> list[str]:
    """Return the files of the package that a call enters, one after the other."""
    path: list[str] = []

    def trace(frame: FrameType, event: str, _: Any) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(PACKAGE) and (not path or path[-1] != file):
            path.append(file)

    sys.setprofile(trace)
    try:
        call()
    finally:
        sys.setprofile(None)
    return [file.removeprefix(PACKAGE) for file in path]


def returns(path: list[str]) -> int:
    """Return how many different returns to a file already left there are: pairs of (from, to)."""
    seen: set[str] = set()
    pairs: set[tuple[str, str]] = set()
    for i, file in enumerate(path):
        if file in seen:
            pairs.add((path[i - 1], file))
        seen.add(file)
    return len(pairs)


def measure(methods: Sequence[str] = METHODS) -> dict[tuple[str, str], list[str]]:
    """Return the path of each method's fit and explain."""
    X, y = make_series(120, seed=0)
    queries, _ = make_series(8, seed=1)
    classifier = sp.wrap(Model(), n_classes=3)
    paths = {}
    for name in methods:
        for _ in range(2):
            explainer = getattr(sp, name)(classifier, getattr(sp, f"{name}Config").tiny())
            paths[name, "fit"] = walk(lambda e=explainer: e.fit(X, y, progress=False))
            paths[name, "explain"] = walk(lambda e=explainer: e.explain(queries, target=1, progress=False))
    return paths


def table(paths: dict[tuple[str, str], list[str]]) -> str:
    """Return the table of docs/design.md."""
    lines = ["| call | files crossed | returns to a file already left |", "|---|---|---|"]
    for (name, call), path in paths.items():
        lines.append(f"| `{name}.{call}` | {len(set(path))} | {returns(path)} |")
    return "\n".join(lines)


def exceeded(paths: dict[tuple[str, str], list[str]]) -> list[str]:
    """Return what exceeds its bar, a line each."""
    lines = []
    for key, path in paths.items():
        call, (files, back) = ".".join(key), BARS[key]
        if len(set(path)) > files:
            lines.append(f"{call} crosses {len(set(path))} files, at most {files}")
        if returns(path) > back:
            lines.append(f"{call} returns {returns(path)} times, at most {back}")
    return lines


def main() -> None:
    """Print the table, and exit with 1 if a bar is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", action="store_true", help="list the files too")
    files = parser.parse_args().files
    logging.disable(logging.WARNING)
    paths = measure()
    print(table(paths))
    for (name, call), path in paths.items() if files else ():
        print(f"\n{name}.{call}:", *dict.fromkeys(path), sep="\n    ")
    over = exceeded(paths)
    print(*over, sep="\n", file=sys.stderr)
    sys.exit(bool(over))


if __name__ == "__main__":
    main()
