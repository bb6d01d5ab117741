"""A digest of the code that decides the numbers of a reproduction.

Every row names it, so that rows of different code are never taken for repetitions of one experiment, and a change that
can change a number makes its runs pending again. Comments, docstrings and blank lines do not count, and neither does
the code that only shows numbers: tables, pages, figures.
"""

from __future__ import annotations

import ast
import hashlib
import io
import tokenize
from functools import lru_cache
from pathlib import Path

import sparcets

ROOT = Path(sparcets.__file__).parents[1]  # of both packages
# Files that decide the answers of the paper's methods, or what is measured of them.
DECIDING = (
    *(f"sparcets/core/{name}.py" for name in ("enforcement", "info", "seeding", "settings")),
    *(f"sparcets/data/{name}.py" for name in ("motionsense", "moving_box", "splits")),
    *(f"sparcets/motion/{name}.py" for name in ("catching", "geometry", "oracle", "simulator", "skeleton")),
    *(f"sparcets/training/{name}.py" for name in ("convolutional", "cuda", "device", "fused", "fused_lstm")),
    *(f"sparcets/training/{name}.py" for name in ("generator", "loop", "losses", "networks", "projection")),
    *(f"sparcets/training/{name}.py" for name in ("recurrent", "steps")),
    "sparcets/models/network.py",
    *(
        f"sparcets/methods/{name}.py"
        for name in ("adversarial", "base", "countergan", "gan", "ics", "request", "sparce")
    ),
    *(f"sparcets/evaluation/{name}.py" for name in ("embedding", "evaluate", "families", "judges", "measures")),
    *(f"sparcets/evaluation/{name}.py" for name in ("outliers", "saliency", "scores", "truth")),
    *(f"sparcets_paper/benchmark/{name}.py" for name in ("cell", "figure_numbers")),
)


@lru_cache(maxsize=1)
def code_digest() -> str:
    """Return 16 hexadecimal digits, the same on every machine and with every version of Python."""
    return digest_of_files(ROOT, deciding_files())


def deciding_files() -> list[Path]:
    """Return the files of :data:`DECIDING`, sorted."""
    return sorted(ROOT / name for name in DECIDING)


def digest_of_files(root: Path, files: list[Path]) -> str:
    """Return the digest of some files, named relative to ``root``."""
    total = hashlib.sha256()
    for file in files:
        total.update(f"{file.relative_to(root).as_posix()}\n{deciding_text(file.read_text(encoding='utf-8'))}".encode())
    return total.hexdigest()[:16]


def deciding_text(source: str) -> str:
    r"""Return source code without comments, docstrings and blank lines.

    >>> deciding_text("'About.'\n\nx = 1  # one\n")
    'x = 1\n'
    """
    lines = source.splitlines(keepends=True)
    spans = [(t.start, t.end) for t in tokenize.generate_tokens(io.StringIO(source).readline) if _is_comment(t)]
    spans += _docstrings(ast.parse(source), lines)
    for (row, column), (end_row, end_column) in sorted(spans, reverse=True):
        lines[row - 1 : end_row] = [lines[row - 1][:column] + lines[end_row - 1][end_column:]]
    kept = (line.rstrip() for line in "".join(lines).splitlines())
    return "".join(f"{line}\n" for line in kept if line)


def _is_comment(token: tokenize.TokenInfo) -> bool:
    return token.type == tokenize.COMMENT


def _docstrings(tree: ast.AST, lines: list[str]) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return start and end, by row and column, of the docstrings of a module."""
    spans = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                text = first.value
                if isinstance(text.value, str) and text.end_lineno is not None and text.end_col_offset is not None:
                    # The parser counts bytes, not characters.
                    end = len(lines[text.end_lineno - 1].encode()[: text.end_col_offset].decode())
                    spans.append(((text.lineno, text.col_offset), (text.end_lineno, end)))
    return spans
