"""Received folders with hostile paths: no code runs, nothing outside is read into an answer, changed or removed.

Each trial has a folder ``received``, as somebody else could have made it, with digests that fit, and a folder
``outside`` with what it must not reach: Python that leaves a trace when it runs, data whose numbers are recognised
in any answer, models, checkpoints, and files whose content is compared afterwards.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import sparcets as sp
from sparcets.core.errors import SparcetsError
from sparcets.io.files import digest_of_bytes, read_json, write_json
from sparcets.testing.data import make_series

from .files import quiet
from .kinds import KINDS, Kind, checkpoint, explainer
from .registry import OK, Trial, campaign

Rng = np.random.Generator
SECRET = 1000.0  # no number of the data that may be read is as large
X, Y = make_series(30, n_steps=5)
TRACE = "ran"  # the file that hostile code leaves
EVIL = f"from pathlib import Path\nPath({TRACE!r}).touch()\n\ndef load():\n    Path({TRACE!r}).touch()\n"
LINKED = ("classifier", "explainer nearest", "fit", "checkpoint", "shards", "results", "reproduction",
          "record of the studio")  # fmt: skip


@dataclass
class Here:
    """The folders of a trial; the current folder is the one that holds both."""

    received: Path
    outside: Path
    rng: Rng
    handles: list[int]

    def path_to(self, target: Path, start: Path, *, links: bool = True) -> str:
        """Return a path to something outside, as a file in ``start`` may hold it; links to it may be made there."""
        rng, far = self.rng, os.path.relpath(target, start)
        handle = os.open(target.parent, os.O_RDONLY)
        self.handles.append(handle)
        link = f"link{rng.integers(10**6)}{target.suffix}"
        plain = [
            str(target),
            far,
            f"a/../{far}",
            f"./{far}",
            f"//{target}",
            f"/proc/self/cwd/{os.path.relpath(target)}",
        ]
        plain += [f"/proc/self/root{target}", f"/dev/fd/{handle}/{target.name}", far.replace("/", "\\")]
        plain += [f"/proc/{os.getpid()}/fd/{handle}/{target.name}", far.replace(".", "\u2024"), far.replace(".", "%2e")]
        plain += [
            str(target).upper(),
            f"{target}\0{target.suffix}",
            f"{'x' * 300}/{far}",
            f"{'a/' * 2000}{target.name}",
        ]
        plain += [f"file://{target}", f"~/{far}", f"{far} "]
        ways: list[Callable[[], str]] = [lambda path=path: path for path in plain]
        if links:
            ways += [
                lambda: _link(start / link, target),
                lambda: _link(start / link, Path(far)),
                lambda: f"{_link(start / f'{link}d', target.parent)}/{target.name}",
                lambda: _link(start / link, Path(_link(start / f"{link}2", target))),
                lambda: f"{_link(start / f'{link}c', Path('/proc/self/cwd'))}/{os.path.relpath(target)}",
                lambda: f"{_link(start / f'{link}f', Path(f'/dev/fd/{handle}'))}/{target.name}",
            ]
        return ways[rng.integers(len(ways))]()


def _link(link: Path, target: Path) -> str:
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(target)
    return link.name


def command(*arguments: str) -> None:
    """Run ``sparcets`` in this process; raise what it says if it refuses."""
    from sparcets.__main__ import main

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
        code = main(list(arguments))
    text = said.getvalue()
    if code == 2 and len(text.strip().splitlines()) == 1:
        raise SparcetsError(text)
    assert code == 0, f"exit code {code}: {text[:500]}"


@cache
def template(name: str) -> Path:
    """Return a folder, made once, with a fit, an archive or the like."""
    import atexit
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="sparcets-received-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    if name == "outside":
        _write_outside(folder)
        return folder
    kind = KINDS.get(name)
    if kind is not None:
        kind.write(folder)
        return folder
    np.savez(folder / "own.npz", X=X, y=Y)
    (folder / "my_model.py").write_text(
        "def load():\n    from sparcets.testing.mocks import mean_proba as m\n    return m\n"
    )
    code = ["--model", str(folder / "my_model.py:load")] if name == "code" else ["-c", str(template("classifier"))]
    command(
        "fit", "-d", str(folder / "own.npz"), "-m", "nearest", "--preset", "tiny", "--device", "cpu", *code,
        "--out", str(folder / "fit"),
    )  # fmt: skip
    return folder


def _write_outside(folder: Path) -> None:
    import pandas as pd
    import torch

    (folder / "evil.py").write_text(EVIL)
    np.savez(folder / "secret.npz", X=X + SECRET, y=Y)
    frame = pd.DataFrame({"id": range(4), **{f"f{i}": list(X[:4, :, i] + SECRET) for i in range(X.shape[2])}})
    frame.to_parquet(folder / "secret.parquet")
    (folder / "secret.bin").write_bytes(np.full(64, SECRET, dtype=np.float32).tobytes())
    (folder / "restart").mkdir()
    checkpoint(folder / "restart", seed=5).on_epoch_end(1, {})
    (folder / "notes.txt").write_text("not theirs")
    for name in ("figures", "tables", "classifiers", "explainers"):
        (folder / name).mkdir()
        (folder / name / "figure1.png").write_text("not theirs")
    torch.manual_seed(0)


def state_of(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return name, permissions and content of all that is in a folder."""
    return {
        str(path.relative_to(folder)): (
            stat.S_IMODE(path.lstat().st_mode),
            path.read_bytes() if path.is_file() else b"",
        )
        for path in sorted((folder, *folder.rglob("*")))
    }


# The attacks. Each changes what was received, uses it, and returns arrays of which none may hold a secret.


def code(here: Here) -> Any:
    """A fit that names a Python file, outside or in itself, with digests of that file."""
    from sparcets.methods.folder import RUN, digests_of, load_fit
    from sparcets.server.pool import load

    fit = here.received / "fit"
    shutil.copytree(template("code") / "fit", fit)
    own = here.rng.random() < 0.6
    where = (fit, fit / "classifier", here.received)[here.rng.integers(3)]
    target = where / "evil.py" if own else here.outside / "evil.py"
    if own:
        target.write_text(EVIL)
    start = fit / "classifier"
    named = here.path_to(target, start)
    header = start / "model.json"
    changed = {"source": f"{named}:load", "digest": digest_of_bytes(EVIL.encode())}
    write_json(header, {**read_json(header, ""), **changed})
    write_json(fit / RUN, {**read_json(fit / RUN, ""), "parts": digests_of(fit)})
    typed = f"{named}:load"
    ways: list[Callable[[], Any]] = [
        lambda: command("explain", str(fit), "--rows", "0:2"),
        lambda: command("export", str(fit), "--out", "x.onnx"),
        lambda: command("studio", "--explainer", str(fit), "--workspace", "work"),
        lambda: load(fit, "cpu"),
        lambda: load_fit(fit, device="cpu"),
        lambda: sp.explain_parquet(fit, here.received, here.received / "answers", target=1),
    ]
    if own and "\0" not in typed:  # in the fit itself: not even if the user types what the folder says
        named_too = target.parent != here.received
        ways += [lambda: load_fit(fit, device="cpu", model=typed)] if named_too else []
    return ways[here.rng.integers(len(ways))]()


def data(here: Here) -> Any:
    """A fit that names other data."""
    fit = here.received / "fit"
    shutil.copytree(template("ours") / "fit", fit)
    run = read_json(fit / "run.json", "")
    named = here.path_to(here.outside / "secret.npz", Path.cwd(), links=False)
    ways = ({"dataset": named}, {"dataset_options": {"path": named}}, {"dataset_options": {"name": named}},
            {"dataset": "motionsense", "dataset_options": {"path": named}})  # fmt: skip
    run |= ways[here.rng.integers(len(ways))]
    if here.rng.random() < 0.5:
        run.pop("dataset_digest")
    write_json(fit / "run.json", run)
    if here.rng.random() < 0.7:
        command("explain", str(fit), "--rows", "0:3", "--out", "answer.npz")
        return sp.load_explanation("answer.npz").query
    command("studio", "--explainer", str(fit), "--workspace", "work")
    return None


def links(here: Here) -> Any:
    """A file or folder of a saved thing that is a link to the same thing outside."""
    name = LINKED[here.rng.integers(len(LINKED))]
    own, apart = here.received / "saved", here.received.parent / "apart"  # with what the link leads to
    shutil.copytree(template(name), own)
    entries = [path for path in sorted(own.rglob("*")) if ".lock" not in path.name]
    chosen = entries[here.rng.integers(len(entries))]
    shutil.move(chosen, apart)
    chosen.symlink_to((apart, Path(os.path.relpath(apart, chosen.parent)))[here.rng.integers(2)])
    kind: Kind = KINDS[name]
    kind.read(own)
    raise AssertionError(f"{chosen.relative_to(own)} of a {name} is a link to {apart}, and was read")


def onnx(here: Here) -> Any:
    """An ONNX file whose weights are said to be elsewhere; wrapped, or copied into a fit."""
    from tests.test_security import write_onnx

    file = here.received / "models" / "m.onnx"
    file.parent.mkdir(parents=True)
    where = here.path_to(here.outside / "secret.bin", file.parent)
    where = "*/_ORT_MEM_ADDR_/*" if here.rng.random() < 0.1 else where
    write_onnx(file, where, in_a_node=here.rng.random() < 0.3, write=False)
    if here.rng.random() < 0.5:
        return sp.wrap(file, output="logits").predict_proba(X)
    shutil.copy(template("ours") / "own.npz", here.received / "own.npz")
    place = ("-d", str(here.received / "own.npz"), "-m", "nearest", "--out", str(here.received / "a" / "b" / "fit"))
    command("fit", *place, "--model", str(file), "--output", "logits", "--device", "cpu")
    return None


def onnx_name(here: Here) -> Any:
    """A fit of an ONNX file that names another one."""
    from sparcets.models.own_model import load_own_model
    from tests.test_security import write_onnx

    folder = here.received / "classifier"
    folder.mkdir(parents=True)
    shutil.copy(here.outside / "secret.bin", here.received.parent / "w.bin")
    write_onnx(here.received.parent / "m.onnx", "w.bin")
    source = here.path_to(here.received.parent / "m.onnx", folder)
    rest = {"format": 1, "output": "logits", "layout": None, "class_names": None, "digest": "", "check": {}}
    write_json(folder / "model.json", {**rest, "source": source})
    load_own_model(folder)
    raise AssertionError(f"{source} was loaded")


def arrays(here: Here) -> Any:
    """A saved model whose header names arrays elsewhere."""
    from sparcets.io.folders import SavedModel

    folder = here.received / "classifier"
    shutil.copytree(template("classifier"), folder)
    named = here.path_to(here.outside / "restart" / "checkpoint.safetensors", folder)
    header = read_json(folder / "classifier.json", "")
    write_json(folder / "classifier.json", {**header, "arrays": named})
    if here.rng.random() < 0.5:
        return sp.load_classifier(folder, device="cpu")
    return SavedModel(header="classifier.json", arrays="weights.safetensors", what="x").save(folder, {}, b"new")


def parquet(here: Here) -> Any:
    """An archive with links in it, or answers that are to be written through one."""
    import pandas as pd

    ex, queries, out = explainer("nearest"), here.received / "archive", here.received / "answers"
    (queries / "ward=1").mkdir(parents=True)
    frame = {"id": range(4), **{name: list(X[:4, :, i]) for i, name in enumerate(ex.feature_names)}}
    pd.DataFrame(frame).to_parquet(queries / "ward=1" / "a.parquet")
    way = here.rng.integers(4)
    if way == 0:
        (queries / "b.parquet").symlink_to(here.outside / "secret.parquet")
    elif way == 1:
        (queries / "ward=2").symlink_to(here.outside)
    elif way == 2:
        out.mkdir()
        (out / "ward=1").symlink_to(here.outside)
    else:
        out.mkdir()
        (out / (".lock", "_sparcets.json")[here.rng.integers(2)]).symlink_to(here.outside / "new.json")
    sp.explain_parquet(ex, queries, out, target=1, progress=False)
    found = [pd.read_parquet(file) for file in out.rglob("*.parquet")]
    return np.concatenate([np.array([*row.values()]) for table in found for row in table["counterfactual"]], axis=None)


def shards(here: Here) -> Any:
    """A folder of shards that is continued, with links."""
    from sparcets.io.explanations import HEADER

    ex, out = explainer("nearest"), here.received / "out"
    ex.explain(X[:4], 1, out=out, progress=False)
    names = [HEADER, "shard-000000.npz", ".lock", ".shard-000000.tmp-x.npz"]
    name = names[here.rng.integers(len(names))]
    (out / name).unlink(missing_ok=True)
    (out / name).symlink_to(here.outside / ("secret.npz", "notes.txt", "new.txt")[here.rng.integers(3)])
    return ex.explain(X[:4], 1, out=out, progress=False).query


def checkpoints(here: Here) -> Any:
    """A folder of checkpoints with links, which is read, written and cleared."""
    from sparcets.training.checkpoint import FILE, delete_checkpoint, has_identity

    folder = here.received / "checkpoint"
    folder.mkdir(parents=True)
    name, target = ((FILE, f"restart/{FILE}"), ("again", "restart"))[here.rng.integers(2)]
    (folder / name).symlink_to(here.outside / target)
    ways: list[Callable[[], Any]] = [
        lambda: has_identity(folder, "training"),
        lambda: delete_checkpoint(folder, "training"),
        lambda: checkpoint(folder, seed=0).on_epoch_end(1, {}),
        lambda: checkpoint(folder, seed=0).resume(),
    ]
    return ways[here.rng.integers(len(ways))]() and None


def workspace(here: Here) -> Any:
    """A workspace of the studio whose records name other files, or that has links."""
    from sparcets.studio.items import load, new_files
    from sparcets.studio.workspace import RECORD, Workspace

    folder = here.received / "workspace"
    shutil.copytree(template("record of the studio"), folder)
    item = folder / "datasets" / "mine"
    named = here.path_to(here.outside / "secret.npz", item)
    way = here.rng.integers(4)
    if way < 2:
        record = read_json(item / RECORD, "")
        write_json(item / RECORD, {**record, "source": named, "uploaded": bool(way == 0)})
    elif way == 2:
        write_json(item / RECORD, {**read_json(item / RECORD, ""), "id": named})
    else:
        name = ("explainers", "classifiers", "datasets/mine/new", "datasets/other", "token")[here.rng.integers(5)]
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).symlink_to(here.outside / "tables")
    opened = Workspace(folder)
    opened.make_private()
    opened.datasets()
    new_files(opened, "mine")
    return load(opened, opened.dataset("mine")).X_train


def results(here: Here) -> Any:
    """Results of benchmarks and reproductions, and plans, that name other files."""
    from sparcets_paper.benchmark.plan import Plan
    from sparcets_paper.benchmark.store import ResultStore
    from sparcets_paper.reproduce.figures import StoredRuns
    from sparcets_paper.reproduce.run import _begin

    folder = here.received / "runs"
    folder.mkdir(parents=True)
    secret = here.path_to(here.outside / "secret.npz", Path.cwd(), links=False)
    row = {"dataset": "catching", "label": "SPARCE", "target": "Control", "seed": 0, "measures": {}, "request": {}}
    way = here.rng.integers(5)
    if way == 0:
        (folder / "results.jsonl").symlink_to(here.outside / "notes.txt")
        return ResultStore(folder / "results.jsonl").append({**row, "key": "a"})
    if way == 1:
        key = here.path_to(here.outside / "secret", folder / "explanations")
        return StoredRuns(folder, [{**row, "key": key}]).answers("catching", "SPARCE").query
    if way == 2:
        other = {"source": secret} if here.rng.random() < 0.5 else {"options": {"path": secret}}
        return StoredRuns(folder, [{**row, **other, "key": "a"}]).dataset("catching").X_train
    if way == 3:
        write_json(here.received / "plan.json", {"cells": [{"dataset": secret, "method": "nearest"}]})
        from sparcets_paper.benchmark.cell import load_data

        return load_data(Plan.load(here.received / "plan.json").cells[0]).X_train
    facts: dict[str, Any] = {
        "datasets": {},
        "left_out": {},
        "figures_left_out": {},
        "parts": ["table1"],
        "seconds": 1.0,
    }
    run = {**facts, "scale": "small", "seed": 0, "repetitions": 1, "sources": {"catching": secret}}
    write_json(folder / "reproduction.json", run)
    _begin(folder, "table1", "small", 1, {}, 0)
    raise AssertionError("a path of a reproduction was followed")


ATTACKS = (code, code, data, links, links, onnx, onnx_name, arrays, parquet, shards, checkpoints, workspace, results)


@campaign("received folders with hostile paths", trials=500, dose=26)
def received(trials: int, rng: Rng, folder: Path) -> Iterator[Trial]:
    before = Path.cwd()
    for number in range(trials):
        place = folder / f"trial-{number}"
        attack, seed = ATTACKS[number % len(ATTACKS)], int(rng.integers(2**40))
        (place / "received").mkdir(parents=True)
        shutil.copytree(template("outside"), place / "outside")
        here = Here(place / "received", place / "outside", np.random.default_rng(seed), [])
        os.chdir(place)
        try:
            with quiet():
                problem = _problem(attack, here)
        finally:
            os.chdir(before)
            for handle in here.handles:
                os.close(handle)
            sys.modules.pop("evil", None)
            shutil.rmtree(place, ignore_errors=True)
        yield OK if not problem else Trial(f"{attack.__name__}, trial {number} of seed {seed}: {problem[:600]}")


def _problem(attack: Callable[[Here], Any], here: Here) -> str:
    """Return what went wrong in a trial; empty if nothing did."""
    expected = state_of(here.outside)
    try:
        found = attack(here)
        if isinstance(found, np.ndarray) and np.nanmax(found) > SECRET / 2:
            return "an answer holds what lies outside"
    except SparcetsError:
        pass
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever it is, it is no error of ours
        return f"{type(error).__name__}: {error}"
    finally:
        traces = [path for path in here.received.parent.rglob(TRACE) if path.is_file()]
    if traces:
        return "code was run"
    changed = {name for name, state in state_of(here.outside).items() if expected.get(name) != state}
    changed |= expected.keys() - state_of(here.outside).keys()
    return f"changed outside: {sorted(changed)}" if changed else ""
