"""Other people's folders: whatever lies where a command writes, it is there afterwards as it was."""

import contextlib
import dataclasses
import os
import shutil
import socket
import stat
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import sparcets as sp
from sparcets.cli.explain import save_pictures
from sparcets.core.errors import SparcetsError
from sparcets.io.files import TEMPORARY
from sparcets.io.locks import LOCK
from sparcets.show.report import write_report
from sparcets_paper.table import Table
from tests.archive import ARCHIVE, Server

from .registry import campaign
from .site import expect_small_archive, site

# Names like ours. Those of the last line are ours if they are empty files, or files at all; they are other things here.
NAMES = (
    *("datasets", "classifiers", "explainers", "classifier", "explainer", "tables", "figures", "explanations"),
    *("run.npz", "run.json", "run.html", "token", "open.html", "trainings.json", "README.md", "results.jsonl"),
    *("explanation.json", "explanation.npz", "explanation.txt", "report.html", "_sparcets.json", "table1.csv"),
    *("checkpoint.safetensors", "finished.safetensors", "model.json", "fit.json"),
    *("weights.safetensors", "classifier.safetensors", "explainer.safetensors"),
    *("shard-000000.npz", "shard-mine.npz", ".shard-mine.npz", "queries-0000000000.parquet", "series-000.png"),
    *(".lock", "poetry.lock", ".git", ".cache", ".env", "notes.txt", "tool.sh", "new", "old", ".run.tmp-12345678.npz"),
    *("motionsense", ARCHIVE, f"{ARCHIVE}.part", ".fetching-mine", f".run{TEMPORARY}mine.npz", ".theirs.tmp-12345678"),
)
SPECIAL = (LOCK, f".run{TEMPORARY}12345678.npz", f".theirs{TEMPORARY}12345678", f".{ARCHIVE}.sparcets-part")
KINDS = (*["file", "folder"] * 3, "link", "dangling", "loop", "up", "pipe", "socket", "hard")
CONTENTS = (b"", b"theirs", b"{}", b'{"a": 1}', b"[1]\n", b"PK\x03\x04", b"\x89PNG\r\n\x1a\n")
MODES = (0o644, 0o600, 0o640, 0o755, 0o444, 0o666)
DEPTH = 3


def snapshot(folder: Path) -> dict[str, Any]:
    """Return what a folder holds: of every entry its kind, mode, owner and inode; content and time, or link target.

    The time of a folder is that of the last entry that was added or removed, such as a temporary file; it is left out.
    """
    found = {}
    for path in sorted(folder.rglob("*")):
        about = path.lstat()
        facts: tuple[Any, ...] = (about.st_mode, about.st_uid, about.st_gid, about.st_ino)
        if stat.S_ISREG(about.st_mode):
            facts += (about.st_mtime_ns, path.read_bytes())
        elif stat.S_ISLNK(about.st_mode):
            facts += (str(path.readlink()),)
        found[path.relative_to(folder).as_posix()] = facts
    return found


def plant(folder: Path, rng: np.random.Generator, depth: int = 0) -> None:
    """Fill a folder with somebody's things."""
    for name in rng.choice(NAMES, size=int(rng.integers(1, 12 - 3 * depth)), replace=False):
        _plant(folder / str(name), str(rng.choice(KINDS)), rng, depth)
    if rng.random() < 0.3:
        kind = str(rng.choice([kind for kind in KINDS if kind not in ("file", "hard")]))
        _plant(folder / str(rng.choice(SPECIAL)), kind, rng, depth)


def _plant(path: Path, kind: str, rng: np.random.Generator, depth: int) -> None:
    files = sorted(p for p in path.parent.iterdir() if p.is_file())
    if kind == "folder" and depth < DEPTH:
        path.mkdir()
        plant(path, rng, depth + 1)
        path.chmod(int(rng.choice((0o755, 0o700, 0o750))))
    elif kind == "link" and files:
        path.symlink_to(files[int(rng.integers(len(files)))].name)
    elif kind == "hard" and files:
        os.link(files[int(rng.integers(len(files)))], path)
    elif kind in ("dangling", "loop", "up"):
        path.symlink_to({"dangling": "nowhere", "loop": path.name, "up": ".."}[kind])
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket" and len(os.fsencode(path)) < 100:
        with socket.socket(socket.AF_UNIX) as opened:
            opened.bind(str(path))
    elif path.name in SPECIAL:
        path.symlink_to("nowhere")
    else:
        # An empty file of results may be one that was just made; results are appended to it.
        content = CONTENTS[int(rng.integers(len(CONTENTS)))]
        path.write_bytes(content or (b"theirs" if path.name == "results.jsonl" else b""))
        path.chmod(int(rng.choice(MODES)))
        os.utime(path, (1e9, 1e9))


@contextlib.contextmanager
def _mounted(folder: Path, rng: np.random.Generator) -> Iterator[None]:
    """Put a folder of somebody's over one of the layout, where that is allowed."""
    (source := folder / "disk").mkdir()
    plant(source, rng)
    places = [p for p in sorted((folder / "theirs").rglob("*")) if p.is_dir() and not p.is_symlink()]
    place = places[int(rng.integers(len(places)))] if places and rng.random() < 0.3 else None
    command = ["mount", "--bind", str(source), str(place)]
    done = place is not None and subprocess.run(command, check=False, capture_output=True).returncode == 0
    try:
        yield
    finally:
        if done:
            subprocess.run(["umount", "--lazy", str(place)], check=True)


@dataclasses.dataclass(frozen=True)
class Material:
    """What is written: a fit, an explanation of it, and queries in a file."""

    run: dict[str, Any]
    explainer: Any
    X: Any
    explanation: Any
    queries: Path


@cache
def material() -> Material:
    """Make it, once per process."""
    import pandas as pd

    from sparcets.data.load import load_dataset
    from sparcets.methods.folder import load_fit

    made = site()
    run, explainer = load_fit(made.model, device="cpu")
    X = load_dataset(str(made.data)).X_test[:4]
    columns = {name: list(X[:, :, i]) for i, name in enumerate(explainer.feature_names)}
    pd.DataFrame({"id": range(len(X)), **columns}).to_parquet(queries := made.data.with_name("queries.parquet"))
    return Material(run, explainer, X, explainer.explain(X), queries)


def _fit(place: Path, *, force: bool) -> None:
    from sparcets.methods.folder import new_folder, write_fit

    made = material()
    with new_folder(place, force=force) as folder:
        write_fit(folder, made.explainer.classifier.save, made.explainer, made.run)


def _studio(place: Path) -> None:
    from sparcets.io.files import write_json
    from sparcets.studio.jobs import FILE
    from sparcets.studio.workspace import Workspace
    from sparcets.web.access import TOKEN_FILE, find_token

    workspace = Workspace(place)
    workspace.remove_leftovers()
    find_token(workspace.folder / TOKEN_FILE, None)
    write_json(workspace.folder / FILE, {"trainings": []}, private=True)
    with workspace.create("datasets", f"gait-{len(list((workspace.folder / 'datasets').iterdir()))}") as item:
        (item / "file").touch()


def _fetch(place: Path) -> None:
    from sparcets.data import fetch

    before, size = fetch.DIGEST, fetch.CHUNK
    server = Server(0.0)
    try:
        expect_small_archive()
        fetch.fetch("motionsense", url=server.url, folder=place)
    finally:
        server.shutdown()
        server.server_close()
        fetch.DIGEST, fetch.CHUNK = before, size


def _benchmark(place: Path) -> None:
    from sparcets_paper.benchmark.runner import run_plan
    from sparcets_paper.benchmark.store import RESULTS, ResultStore

    run_plan([], place)
    ResultStore(place / RESULTS).append({"key": "a"})


def _reproduce(place: Path) -> None:
    from sparcets.core.errors import DataNotFoundError
    from sparcets_paper.reproduce import run

    def missing(*_: Any, **__: Any) -> Any:
        raise DataNotFoundError("left out")

    load, run.load_dataset = run.load_dataset, missing
    try:
        run.reproduce("table1", out=place, workers=1)
    finally:
        run.load_dataset = load


def _checkpoint(place: Path) -> None:
    import torch

    from sparcets.training.checkpoint import Checkpoint, delete_checkpoint
    from sparcets.training.loop import History

    proba = torch.zeros(2, 3)
    point = Checkpoint(place, {"g": torch.nn.Linear(1, 1)}, {}, History(), identity="this", reference_proba=proba)
    delete_checkpoint(place, "this")
    point.resume()
    point.on_epoch_end(0, {})


def _demo(place: Path) -> None:
    from sparcets.cli.demo import _check_is_demo

    _check_is_demo(place)
    for name in ("explanation.npz", "explanation.txt", "report.html"):
        material().explanation.save(place / name)


# What writes, and the files that are named with it, which may be replaced.
ACTIONS: dict[str, tuple[Callable[[Path], object], tuple[str, ...]]] = {
    "studio --workspace": (_studio, ()),
    "fit --out": (lambda place: _fit(place, force=False), ()),
    "fit --out --force": (lambda place: _fit(place, force=True), ()),
    "explain --out": (lambda place: material().explanation.save(place / "run.npz"), ("run.npz",)),
    "explain --out, a folder": (lambda place: material().explanation.save(place), ()),
    "explain --plots": (lambda place: save_pictures(material().explanation[:1], place, np.array([0])), ()),
    "explain(out=)": (lambda place: material().explainer.explain(material().X, out=place), ()),
    "explain_parquet": (lambda place: sp.explain_parquet(material().explainer, material().queries, place), ()),
    "report --out": (lambda place: write_report(material().explanation[:1], place / "run.html"), ("run.html",)),
    "table.save": (lambda place: Table("a table", ["a"], [["1"]]).save(place, "table1"), ("table1.md", "table1.csv")),
    "clf.save": (lambda place: material().explainer.classifier.save(place), ()),
    "ex.save": (lambda place: material().explainer.save(place), ()),
    "data fetch": (_fetch, ()),
    "benchmark run": (_benchmark, ()),
    "reproduce": (_reproduce, ()),
    "checkpoint": (_checkpoint, ()),
    "demo": (_demo, ()),
}


def _identity(path: Path) -> tuple[int, int, str]:
    """Return what a path is, also if its folder is seen at two places because of a mount."""
    try:
        about = path.parent.stat()
    except OSError:
        return 0, 0, path.name
    return about.st_dev, about.st_ino, path.name


def _try(name: str, root: Path, place: Path) -> str:
    """Do something in somebody's folder, twice; return what it changed."""
    action, named = ACTIONS[name]
    before = snapshot(root)
    # What is named may be replaced; by a link, its target. A hard link is another name of the old content, which stays.
    known = {_identity(Path(os.path.realpath(place / file))) for file in named}
    allowed = {path for path in before if _identity(root / path) in known}
    for _ in range(2):
        try:
            action(place)
            outcome = "done"
        except SparcetsError as error:
            outcome = f"{type(error).__name__}: {error}"
        except Exception as error:  # whatever the user reads then is no message
            return f"{name} in {place.relative_to(root)}: {error!r}"
        after = snapshot(root)
        changed = [path for path in before if path not in allowed and after.get(path) != before[path]]
        modes = [p for p in allowed if p in before and p in after and before[p][:3] != after[p][:3]]
        left = [p for p in after if p not in before and (TEMPORARY in Path(p).name or p.endswith(LOCK))]
        if changed or modes or left:
            return f"{name} in {place.relative_to(root)} ({outcome}): changed {changed + modes}, left {left}"
    return ""


def _clear(root: Path, before: dict[str, Any]) -> None:
    """Remove what an action has added, so that the next one finds somebody's things alone."""
    added = [root / path for path in snapshot(root) if path not in before]
    for path in sorted(added, reverse=True):
        with contextlib.suppress(FileNotFoundError):  # seen twice, also below a mount point
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


@campaign("other people's folders", trials=200, dose=1, parts=4)
def folders(trials: int, rng: np.random.Generator, folder: Path) -> Iterator[str]:
    """Let every command write into random folders of somebody else, and compare what was there."""
    for i in range(trials):
        (root := folder / str(i)).mkdir()
        (root / "theirs").mkdir()
        plant(root / "theirs", rng)
        failures = []
        with _mounted(root, rng):
            before = snapshot(root)
            inside = [p for p in sorted((root / "theirs").rglob("*")) if p.is_dir()]
            for name in ACTIONS:
                place = root / "theirs"
                if rng.random() < 0.3:
                    place = inside[int(rng.integers(len(inside)))] if inside and rng.random() < 0.7 else place / "mine"
                failures.append(_try(name, root, place))
                _clear(root, before)
        failure = "; ".join(filter(None, failures))
        yield f"layout {i}: {failure}" if failure else ""
        shutil.rmtree(root, ignore_errors=True)
