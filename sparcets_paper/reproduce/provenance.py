"""Where the rows of a reproduction come from: their code, how often each run was repeated, and what is missing.

Every row names a digest of the code that decides its numbers, so that rows of different code are never taken for
repetitions of one experiment, and a change that can change a number makes its runs pending again. Comments, docstrings
and blank lines do not count, and neither does the code that only shows numbers: tables, pages, figures.
"""

from __future__ import annotations

import hashlib
import io
import tokenize
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import sparcets
from sparcets_paper.benchmark.published import DATASETS
from sparcets_paper.reproduce.agreement import Row
from sparcets_paper.reproduce.plans import plan

ROOT = Path(sparcets.__file__).parents[1]  # of both packages
# Files that decide the answers of the paper's methods, or what is measured of them.
DECIDING = {
    "sparcets/core": "enforcement info seeding settings",
    "sparcets/data": "motionsense moving_box splits",
    "sparcets/evaluation": "evaluate families judges measures outliers scores",
    "sparcets/methods": "adversarial base ics request",
    "sparcets/models": "network",
    "sparcets/motion": "catching limbs simulator skeleton",
    "sparcets/training": "architectures cuda device generator loop losses networks projection steps",
    "sparcets_paper/benchmark": "cell figure_numbers",
}


@lru_cache(maxsize=1)
def code_digest() -> str:
    """Return 16 hexadecimal digits, the same on every machine and with every version of Python."""
    return digest_of_files(ROOT, deciding_files())


def deciding_files() -> list[Path]:
    """Return the files of :data:`DECIDING`, sorted."""
    return sorted(ROOT / folder / f"{name}.py" for folder, names in DECIDING.items() for name in names.split())


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
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    spans = [(t.start, t.end) for t in tokens if t.type == tokenize.COMMENT]
    code = [t for t in tokens if t.type not in (tokenize.COMMENT, tokenize.NL)]
    for before, text, after in zip([None, *code], code, code[1:], strict=False):
        begins = before is None or before.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
        if text.type == tokenize.STRING and begins and after.type == tokenize.NEWLINE:
            spans.append((text.start, text.end))
    for (row, column), (end_row, end_column) in sorted(spans, reverse=True):
        lines[row - 1 : end_row] = [lines[row - 1][:column] + lines[end_row - 1][end_column:]]
    kept = (line.rstrip() for line in "".join(lines).splitlines())
    return "".join(f"{line}\n" for line in kept if line)


def of_latest_code(rows: Iterable[Row]) -> list[Row]:
    """Return the rows of one digest, that of the run which started last: rows of different code are never mixed.

    >>> a, b = {"code": "a", "started": "2026-01-02"}, {"code": "b", "started": "2026-01-01"}
    >>> of_latest_code([a, b]) == [a]
    True
    """
    found = list(rows)
    if not found:
        return []
    latest = max(found, key=lambda row: str(row.get("started") or "")).get("code")
    return [row for row in found if row.get("code") == latest]


def describe(
    run: Mapping[str, Any], rows: Sequence[Row], again: Sequence[Row] = (), compared: Mapping[str, Any] | None = None
) -> str:
    """Return paragraphs on the runs: version, commit and digest, device and time, repetitions, what is missing.

    ``again`` are rows of runs that were repeated with the same seed, ``compared`` what :func:`same_code` takes.
    """
    finished = [row for row in rows if not row.get("error")]
    failed = len(rows) - len(finished)
    devices = ", ".join(sorted({str(row.get("device")) for row in finished})) or "no device yet"
    work = sum(float(row.get("fit_s") or 0) + float(row.get("explain_s") or 0) for row in finished)
    versions = sorted({str((row.get("versions") or {}).get("sparcets")) for row in finished})
    first = (
        f"Lang, Giese, Ilg and Otte (2022), *Generating Sparse Counterfactual Explanations For Multivariate Time "
        f"Series*, run again with sparcets {', '.join(versions) or '?'}{_code(finished)}: scale {run['scale']}, up to "
        f"{run['repetitions']} repetition{'s' if run['repetitions'] > 1 else ''} (the column *runs* counts those "
        f"finished), on {devices}. {len(rows)} runs{f', {failed} of which failed' if failed else ''} in "
        f"{duration(run['seconds'])}; one after the other, training and explaining take about {duration(work)}. "
        "Written by `sparcets reproduce`."
    )
    twice = " ".join(text for text in (same_numbers(rows, again), _judges(finished)) if text)
    note, artefacts = (str(run.get(name) or "") for name in ("note", "artefacts"))
    paragraphs = [first, note, twice, same_code(compared or {}), artefacts]
    paragraphs += [_repetitions(finished), _missing(run, finished)]
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


def missing(run: Mapping[str, Any], rows: Iterable[Row]) -> dict[tuple[str, str, str], list[int]]:
    """Return the seeds of planned runs that have no row, by data set, label and target."""
    done = {(row["dataset"], row["label"], str(row["target"]), int(row["seed"])) for row in rows}
    found: dict[tuple[str, str, str], list[int]] = {}
    chosen: dict[str, Any] = {"datasets": tuple(run["datasets"]), "seed": int(run.get("seed") or 0)}
    cells = [cell for part in run["parts"] for cell in plan(part, run["scale"], run["repetitions"], **chosen)]
    for key in dict.fromkeys((cell.dataset, cell.label, str(cell.target), cell.seed) for cell in cells):
        if key not in done:
            found.setdefault(key[:3], []).append(key[3])
    return found


def same_numbers(rows: Iterable[Row], again: Iterable[Row]) -> str:
    """Return how many numbers of repeated runs, times apart, are those of the stored rows, and which are not.

    >>> row = {"key": "a", "measures": {"valid": 1.0, "transfer": 0.5}}
    >>> same_numbers([row], [{"key": "a", "measures": {"valid": 1.0, "transfer": 0.4}}])
    '1 run was made twice, with the same seed: 1 of 2 numbers are the same to all digits; others: transfer.'
    """
    stored = {row["key"]: row["measures"] for row in rows if "measures" in row}
    twice = [(stored[row["key"]], row["measures"]) for row in again if row["key"] in stored]
    if not twice:
        return ""
    names = [(name, first[name] == second.get(name)) for first, second in twice for name in first if name != "seconds"]
    others = sorted({name for name, same in names if not same})
    runs = f"{len(twice)} runs were" if len(twice) > 1 else "1 run was"
    return (
        f"{runs} made twice, with the same seed: {sum(same for _, same in names):,} of {len(names):,} numbers are the "
        f"same to all digits{'; others: ' * bool(others)}{', '.join(others)}."
    )


def same_code(found: Mapping[str, Any]) -> str:
    """Return what a comparison of later code with that of the rows found (``benchmarks/same_code.py``)."""
    if not found:
        return ""
    differ = found["differ"]
    return (
        f"Later code has another digest, so `sparcets reproduce` would run everything again. That of digest "
        f"{', '.join(found['new'])} was compared with {', '.join(found['old'])} by {found['runs']} tiny runs of all "
        f"methods on {' and '.join(DATASETS[name].title for name in found['datasets'])}, on a CPU: "
        f"of {found['numbers']:,} numbers in their rows and {found['entries']:,} entries of their "
        f"answers, {'none differs' if not differ else 'these differ: ' + '; '.join(differ)}."
    )


def _judges(rows: Iterable[Row]) -> str:
    """Return the accuracies of judges that were trained several times, with different results."""
    found: dict[str, set[float]] = {}
    for row in rows:
        for name, accuracy in (row.get("judges") or {}).items():
            found.setdefault(f"{name} on {DATASETS[row['dataset']].title}", set()).add(float(accuracy))
    several = [
        f"{name} {', '.join(f'{value:.3f}' for value in sorted(of))}" for name, of in found.items() if len(of) > 1
    ]
    if not several:
        return ""
    return (
        "Transfer depends on judges, one of them a network that every session trains anew, on a GPU not the same bit "
        f"for bit. Accuracies: {'; '.join(several)}."
    )


def duration(seconds: float) -> str:
    """Format a time in seconds, minutes or hours.

    >>> duration(42), duration(600), duration(9000)
    ('42 s', '10 min', '2.5 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _code(rows: Sequence[Row]) -> str:
    commits = sorted({str(row["git"])[:12] for row in rows if row.get("git")})
    digests = sorted({str(row["code"]) for row in rows if row.get("code")})
    if not digests:
        return ""
    commit = f"commit {', '.join(commits)}, " if commits else ""
    return f" ({commit}digest {', '.join(digests)} of the code that decides the numbers)"


def _repetitions(rows: Sequence[Row]) -> str:
    """Return how many experiments (data set, method and its settings, target) were repeated how often."""
    repeated = Counter(Counter((row["dataset"], row["label"], str(row["target"])) for row in rows).values())
    if not repeated:
        return ""
    counts = ", ".join(f"{n} with {times}" for times, n in sorted(repeated.items(), reverse=True))
    return f"Experiments by their number of repetitions: {counts} ({repeated.total()} in all)."


def _missing(run: Mapping[str, Any], rows: Sequence[Row]) -> str:
    found = missing(run, rows)
    if not found:
        return ""
    n = sum(len(seeds) for seeds in found.values())
    listed = "; ".join(
        f"{label} on {DATASETS[dataset].title} towards {target} (seed{'s' * (len(seeds) > 1)} "
        f"{', '.join(map(str, seeds))})"
        for (dataset, label, target), seeds in found.items()
    )
    return f"Missing, {n} of the planned runs: {listed}."
