"""SECURITY.md says what may run code, and what is done with the paths in files: both are compared with the code."""

import ast
import os
import shutil
import stat
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sparcets as sp
from sparcets.__main__ import main
from sparcets.core.errors import SparcetsError
from sparcets.io.engines import LocalEngine
from sparcets.io.files import read_json, write_json
from sparcets.io.folders import inside
from sparcets.methods.folder import load_fit
from sparcets.testing.data import make_series

ROOT = Path(sp.__file__).parent
PAPER = ROOT.parent / "sparcets_paper"
PAGE = (ROOT.parent / "SECURITY.md").read_text(encoding="utf-8")

# What can run code that is not in this package: functions by name, and modules by their import.
BUILTINS = {"exec", "eval", "compile", "__import__"}
FUNCTIONS = {"import_module", "exec_module", "spec_from_file_location", "module_from_spec", "entry_points", "run_path"}
FUNCTIONS |= {"create_subprocess_exec", "create_subprocess_shell"}
MODULES = {"subprocess", "multiprocessing", "pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve", "runpy"}
MODULES |= {"ctypes", "webbrowser", "code", "pty"}
OF_OS = {"system", "popen", "execv", "execve", "execvp", "spawnv", "spawnl", "posix_spawn", "startfile"}


def runs_code(tree):
    """Return which of these a module uses."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names} & MODULES
        elif isinstance(node, ast.ImportFrom):
            found |= {(node.module or "").split(".")[0]} & MODULES
            found |= {alias.name for alias in node.names} & FUNCTIONS
        elif isinstance(node, ast.Name):
            found |= {node.id} & FUNCTIONS
        elif isinstance(node, ast.Attribute):
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            found |= {node.attr} & (FUNCTIONS | {"cloudpickle"})
            found |= {f"os.{node.attr}"} if owner == "os" and node.attr in OF_OS else set()
            found |= {f"{owner}.load"} if node.attr == "load" and owner in ("torch", "jit", "pickle") else set()
        elif isinstance(node, ast.Call):
            found |= {node.func.id} & BUILTINS if isinstance(node.func, ast.Name) else set()
            allowed = [k.value for k in node.keywords if k.arg == "allow_pickle"]
            found |= {"allow_pickle"} if any(getattr(v, "value", True) is not False for v in allowed) else set()
    return found


def table(title):
    """Return the rows of the table in a section of SECURITY.md."""
    section = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def code_in(cell):
    return set(cell.split("`")[1::2])


def test_the_list_of_what_may_run_code_is_that_of_the_source():
    said = {next(iter(code_in(file))): code_in(by) for file, by, _, _ in table("What may run code")}
    paths = (*ROOT.rglob("*.py"), *PAPER.rglob("*.py"))
    modules = {path: runs_code(ast.parse(path.read_text(encoding="utf-8"))) for path in paths}
    assert said == {path.relative_to(ROOT.parent).as_posix(): used for path, used in modules.items() if used}


# Paths: one test per row of the table.

TESTED = {}


def row(*names):
    """Mark the test of the rows of the table that begin so."""

    def mark(test):
        TESTED.update(dict.fromkeys(names, test))
        return test

    return mark


def test_every_row_of_the_table_of_paths_has_a_test():
    rows = [cells[0] for cells in table("Paths in files")]
    assert len(rows) > 10 and sorted(rows) == sorted(TESTED)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Yield a folder with data, a fit on them, and a secret beside it."""
    X, y = make_series(45, n_steps=6)
    for name, series in (("own.npz", X), ("secret.npz", X + 3)):
        np.savez(tmp_path / name, X=series, y=np.array(["calm", "brisk", "wild"])[y])
    monkeypatch.chdir(tmp_path)
    fit = ["fit", "-d", "own.npz", "-m", "nearest", "-c", "fcn", "--preset", "tiny", "--set-classifier", "epochs=1"]
    assert main([*fit, "--device", "cpu", "--out", "received"]) == 0
    before = snapshot(tmp_path)
    yield tmp_path
    assert snapshot(tmp_path) == before
    sys.modules.pop("evil", None)


def snapshot(folder):
    """Return the files beside the received ones."""
    apart = ("received", "answer", "work")
    found = {path.relative_to(folder): path for path in folder.rglob("*") if path.is_file()}
    return {str(name): path.read_bytes() for name, path in found.items() if not name.parts[0].startswith(apart)}


def refused(capsys, *command):
    capsys.readouterr()
    assert main(list(command)) == 2
    out, err = capsys.readouterr()
    assert out == "" and len(err.splitlines()) == 1, err
    return err


OUTSIDE = r"is no path within its folder|leads out of its folder"


def refuses(call, *arguments, why=OUTSIDE, **options):
    """Call something that must raise an error which says why."""
    with pytest.raises(SparcetsError, match=why):
        call(*arguments, **options)


def edited(file, **changes):
    """Change a JSON file, with a digest that fits."""
    write_json(file, {**read_json(file, ""), **changes})


@row("`run.json` of a fit")
def test_other_data_than_those_of_the_fit_are_named_by_the_caller(place, capsys):
    explain = ("explain", "received", "--rows", "0:2")
    assert main([*explain, "--out", "answer.npz"]) == 0
    edited(place / "received" / "run.json", dataset=str(place / "secret.npz"))
    said = refused(capsys, *explain)
    assert "is not the file that the fit was made on" in said and f"--dataset {place / 'secret.npz'}" in said
    assert "is not the file" in refused(capsys, "evaluate", "answer.npz", "--model", "received")
    assert "Fit again" in refused(capsys, "studio", "--explainer", "received", "--workspace", "work")
    for name in ("path", "name"):
        edited(place / "received" / "run.json", dataset="own.npz", dataset_options={name: str(place / "secret.npz")})
        assert "no path in a folder is followed" in refused(capsys, *explain)
    assert main([*explain, "--dataset", "own.npz"]) == 0  # as the caller says


@row("`model.json` of a fit")
def test_no_model_outside_of_the_folder_is_loaded(place):
    from sparcets.models.own_model import load_any_model

    pytest.importorskip("onnxruntime")
    folder = place / "received"
    write_onnx(place / "work.onnx", "work.bin")
    shutil.copytree(folder / "classifier", folder / "model")
    header = {"format": 1, "output": None, "layout": None, "class_names": None, "digest": "", "check": {}}
    (folder / "model" / "link.onnx").symlink_to(place / "work.onnx")
    for source in (str(place / "work.onnx"), "../../work.onnx", "link.onnx"):
        write_json(folder / "model" / "model.json", {**header, "source": source})
        refuses(load_any_model, folder / "model")
    # Python files: tests/cli/test_own_model.py


@row("`classifier.safetensors`, `explainer.safetensors`, `finished.safetensors`")
def test_saved_models_lie_in_their_folder(place):
    folder = place / "received" / "classifier"
    file = folder / "classifier.safetensors"
    shutil.move(file, place / "work.safetensors")
    file.symlink_to(place / "work.safetensors")
    refuses(sp.load_classifier, folder, why=r"classifier.safetensors leads out of its folder, to .*work")
    shutil.move(folder, place / "work")
    folder.symlink_to(place / "work")
    refuses(load_fit, place / "received", device="cpu", why="classifier leads out of its folder")


def write_onnx(path, location, *, in_a_node=False, order=(0, 1, 2)):
    """Write a model of three classes, in the order of features; its weights may be said to be elsewhere."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    weight = onnx.numpy_helper.from_array(np.eye(4, dtype=np.float32)[:, list(order)], "weight")
    data = weight.raw_data
    if location is not None:
        weight.ClearField("raw_data")
        weight.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", location), ("offset", "0"), ("length", str(len(data)))):
            entry = weight.external_data.add()
            entry.key, entry.value = key, value
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    nodes = [helper.make_node("Constant", [], ["weight"], value=weight)] if in_a_node else []
    nodes += [
        helper.make_node("ReduceMean", ["series"], ["mean"], axes=[1], keepdims=0),
        helper.make_node("MatMul", ["mean", "weight"], ["logits"]),
    ]
    series = helper.make_tensor_value_info("series", kind, ["batch", None, 4])
    logits = helper.make_tensor_value_info("logits", kind, ["batch", 3])
    graph = helper.make_graph(nodes, "model", [series], [logits], [] if in_a_node else [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    if location is not None and not Path(location).is_absolute() and ".." not in location:
        (path.parent / location).parent.mkdir(parents=True, exist_ok=True)
        (path.parent / location).write_bytes(data)


@row("an ONNX file")
@pytest.mark.parametrize("in_a_node", [False, True])
def test_weights_of_an_onnx_file_lie_in_its_folder(place, capsys, in_a_node):
    pytest.importorskip("onnxruntime")
    (place / "received" / "models").mkdir()
    file = place / "received" / "models" / "m.onnx"
    secret = place / "secret.npz"
    (place / "received" / "models" / "link.bin").symlink_to(secret)
    fit = ("fit", "-d", "own.npz", "-m", "nearest", "--model", str(file), "--output", "logits", "--out", "work/a/b")
    for location in (str(secret), "../../secret.npz", "a/../../../secret.npz"):
        write_onnx(file, location, in_a_node=in_a_node)
        assert "which is no path within its folder" in refused(capsys, *fit)
        refuses(sp.wrap, file, output="logits", why="is no path within its folder")
    (place / "received" / "models" / "m.onnx").unlink()
    write_onnx(file, "w/weights.bin", in_a_node=in_a_node)
    if not in_a_node:  # where onnxruntime does not read them
        sp.wrap(file, output="logits")
    (place / "received" / "models" / "w" / "weights.bin").unlink()
    (place / "received" / "models" / "w" / "weights.bin").symlink_to(secret)
    refuses(sp.wrap, file, output="logits", why="leads out of its folder")
    write_onnx(file, "*/_ORT_MEM_ADDR_/*", in_a_node=in_a_node)
    refuses(sp.wrap, file, output="logits", why="names an address in memory")


@row("`checkpoint.safetensors`")
def test_checkpoints_are_read_and_removed_in_their_folder(place):
    from sparcets.training.checkpoint import FILE, Checkpoint, delete_checkpoint, has_identity
    from sparcets.training.loop import History

    folder, outside = place / "received" / "checkpoint", place / "work" / "theirs"
    for made in (folder, outside):
        made.mkdir(parents=True)
    (outside / FILE).write_bytes(b"x")
    (folder / FILE).symlink_to(outside / FILE)
    read = partial(Checkpoint, folder, {}, {}, History(), identity="x", reference_proba=None)
    for call in (partial(has_identity, folder, "x"), partial(delete_checkpoint, folder, "x"), read):
        refuses(call)
    assert (outside / FILE).read_bytes() == b"x"


@row("`run.npz`, scores, reports")
def test_explanations_hold_no_paths_and_no_objects(place):
    assert main(["explain", "received", "--rows", "0:2", "--out", "answer.npz"]) == 0
    with np.load("answer.npz", allow_pickle=False) as stored:
        arrays = dict(stored)
    assert not any(str(place) in str(array) for array in arrays.values())
    np.savez("answer.npz", **{**arrays, "reason": np.array([Canary(place / "ran")] * 2, dtype=object)})
    refuses(sp.load_explanation, "answer.npz", why=None)
    assert not (place / "ran").exists()


class Canary:
    """Writes a file when it is unpickled."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return Path.touch, (self.file,)


def explainer_and_series():
    from sparcets.testing.mocks import mean_proba

    X, y = make_series(30, n_steps=5)
    return sp.Nearest(sp.wrap(mean_proba)).fit(X, y), X


@row("`explanation.json`, `shard-*.npz`")
def test_shards_lie_in_their_folder(place):
    ex, X = explainer_and_series()
    ex.explain(X[:6], 1, out=place / "received" / "shards", progress=False)
    (shard,) = (place / "received" / "shards").glob("shard-*.npz")
    shutil.move(shard, place / "work.npz")
    shard.symlink_to(place / "work.npz")
    explain = partial(ex.explain, X[:6], 1, out=place / "received" / "shards", progress=False)
    refuses(sp.load_explanation, place / "received" / "shards")
    refuses(explain)
    (place / "received" / "shards" / ".lock").symlink_to(place / "created")
    refuses(explain, why=None)
    assert not (place / "created").exists()


@row("`_sparcets.json` and Parquet answers", "Parquet or Arrow queries")
def test_parquet_files_lie_in_their_folder(place):
    pytest.importorskip("pyarrow")
    ex, X = explainer_and_series()
    frame = pd.DataFrame({"id": range(4), **{name: list(X[:4, :, i]) for i, name in enumerate(ex.feature_names)}})
    queries, out, outside = place / "received" / "q", place / "received" / "out", place / "work"
    for folder in (queries / "ward=1", out, outside):
        folder.mkdir(parents=True)
    frame.to_parquet(queries / "ward=1" / "a.parquet")
    (out / "ward=1").symlink_to(outside)
    refuses(sp.explain_parquet, ex, queries, out, target=1, progress=False)
    assert list(outside.iterdir()) == []
    (out / "ward=1").unlink()
    frame.to_parquet(outside / "secret.parquet")
    (queries / "b.parquet").symlink_to(outside / "secret.parquet")
    refuses(sp.explain_parquet, ex, queries, out, target=1, progress=False, why="b.parquet leads out of its folder")


@row("data: `.csv`, `.npz`, `.parquet`, `.ts`")
def test_data_hold_no_objects(place):
    np.savez("received/x.npz", X=np.zeros((4, 2, 1)), y=np.array([Canary(place / "ran")] * 4, dtype=object))
    refuses(sp.load_dataset, "received/x.npz", why="no objects")
    assert not (place / "ran").exists()


@row("`results.jsonl` of benchmarks")
def test_rows_name_answers_in_their_folder_and_no_data(place):
    from sparcets_paper.benchmark.store import ResultStore
    from sparcets_paper.reproduce.figures import StoredRuns

    folder = place / "received" / "runs"
    folder.mkdir()
    (folder / "results.jsonl").symlink_to(place / "own.npz")
    refuses(ResultStore, folder / "results.jsonl")
    finished = {"dataset": "catching", "label": "SPARCE", "target": "Control", "seed": 0, "measures": {}, "request": {}}
    runs = StoredRuns(folder, [{**finished, "key": "../../../answer"}])
    refuses(runs.answers, "catching", "SPARCE")
    for names in ({"source": str(place / "secret.npz")}, {"options": {"path": str(place / "secret.npz")}}):
        runs = StoredRuns(folder, [{**finished, "key": "a", **names}])
        refuses(runs.dataset, "catching", why="names a path of its own, which is not followed")


@row("`reproduction.json`")
def test_sources_of_a_reproduction_are_named_again(place, capsys):
    folder = place / "received" / "paper"
    facts = {"datasets": {}, "left_out": {}, "figures_left_out": {}, "parts": ["table1"], "seconds": 1.0}
    run = {**facts, "scale": "small", "seed": 0, "repetitions": 1, "sources": {"catching": str(place / "secret.npz")}}
    write_json(folder / "reproduction.json", run)
    said = refused(capsys, "reproduce", "table1", "--scale", "small", "--out", str(folder))
    assert f"Name it again: --source catching={place / 'secret.npz'}" in said


@row("`about.json` of a studio's workspace", "`trainings.json` of a studio's workspace")
def test_records_of_a_workspace_lead_nowhere_else(place):
    pytest.importorskip("fastapi")
    from sparcets.studio.models import DatasetRecord
    from sparcets.studio.workspace import Workspace, dataset_record, load, write_record

    workspace = Workspace(place / "received" / "workspace")
    item = workspace.folder / "datasets" / "mine"
    item.mkdir()
    record = dataset_record(sp.load_dataset("own.npz"), "mine", source="own.npz", uploaded=True, seed=0)
    for source in ("../../../../secret.npz", str(place / "secret.npz")):
        write_record(item, record.model_copy(update={"source": source}))
        refuses(load, workspace, workspace.record(DatasetRecord, "mine"))
    write_record(item, record.model_copy(update={"source": str(place / "secret.npz"), "uploaded": False}))
    refuses(load, workspace, workspace.record(DatasetRecord, "mine"), why="no data set")
    write_record(item, record.model_copy(update={"id": "other"}))
    refuses(workspace.record, DatasetRecord, "mine", why="is that of 'other', not of this folder")
    shutil.rmtree(workspace.folder / "explainers")
    (place / "work").mkdir(mode=0o755)
    (workspace.folder / "explainers").symlink_to(place / "work")
    refuses(Workspace, workspace.folder, why="explainers leads out of its folder")
    assert stat.S_IMODE((place / "work").stat().st_mode) == 0o755  # not made private


def test_names_that_are_no_paths_within_a_folder(tmp_path):
    for name in ("", "/etc/passwd", "a/../../b", "..", "a\0b", "C:\\x", "\\\\host\\x", "..\\x", 7, None):
        refuses(inside, tmp_path, name, why=r"names .* which is no path within its folder")


def test_entries_that_are_no_files(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    os.mkfifo(folder / "pipe")
    for name, target in (("cwd", "/proc/self/cwd"), ("fd", "/dev/fd"), ("up", ".."), ("circle", "circle")):
        (folder / name).symlink_to(target)
        refuses(inside, folder, name, why=r"leads out of its folder|that can be read")
    refuses(inside, folder, "pipe", why="pipe or a device")
    (folder / "file").touch()
    (folder / "within").symlink_to("file")
    (tmp_path / "by a link").symlink_to(folder)
    for name in ("file", "within", "not there", "ünï/cödé"):
        assert inside(tmp_path / "by a link", name) == tmp_path / "by a link" / name


# Who can read what is written.


def modes(folder):
    return {stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.rglob("*"))}


def test_a_fit_is_private_unless_it_is_shared(place):
    assert modes(place / "received") == {0o700, 0o600}
    old = os.umask(0o022)
    try:
        fit = ["fit", "-d", "own.npz", "-m", "nearest", "-c", "received/classifier", "--device", "cpu", "--out"]
        assert main([*fit, "work/shared", "--shared"]) == 0
        assert modes(place / "work" / "shared") == {0o755, 0o644}
        assert main([*fit, "work/shared", "--force"]) == 0  # as it was
        assert modes(place / "work" / "shared") == {0o755, 0o644}
        (place / "work" / "mine").mkdir()
        assert main([*fit, "work/mine"]) == 0
        assert modes(place / "work" / "mine") == {0o755, 0o700, 0o600}  # the folder that was there keeps its own
        ex, _ = explainer_and_series()
        ex.save(place / "work" / "a")
        ex.save(place / "work" / "b", shared=True)
        ex.save(place / "work" / "b")
    finally:
        os.umask(old)
    assert (modes(place / "work" / "a"), modes(place / "work" / "b")) == ({0o700, 0o600}, {0o755, 0o644})


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 always looks into the current folder")
def test_workers_import_nothing_from_the_current_folder(tmp_path, monkeypatch):
    (tmp_path / "multiprocessing.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()")
    monkeypatch.chdir(tmp_path)
    before = dict(os.environ)
    with LocalEngine() as engine:
        assert sorted(result for _, result in engine.map_unordered(abs, [-1, -2], workers=2)) == [1, 2]
    assert not (tmp_path / "ran").exists() and dict(os.environ) == before
