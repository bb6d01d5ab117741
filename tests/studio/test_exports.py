"""Answers as files: tables without formulas, figures beside a search, and Python code that computes the same."""

import ast
import asyncio
import contextlib
import io
import threading
from dataclasses import replace
from io import BytesIO
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from sparcets.studio.exports import render
from sparcets.studio.models import ExplainRequest, Limits
from sparcets.studio.service import StudioService
from sparcets.studio.workspace import Workspace

from .conftest import API


def test_no_text_of_the_table_is_a_formula(sample):
    service = StudioService(Workspace(sample.folder), Limits(), "cpu")
    e = service.explanation(ExplainRequest(explainer="nearest", rows=[0, 1]))
    names = ("=left", "+right", "-top", "@idle")
    info = replace(e.info, feature_names=names, units=("-", "", "m", "V"))
    e = replace(e, ids=np.array(["=1+1", "trial 7"]), info=info)
    table = pd.read_csv(BytesIO(render(e, "csv", 0)), keep_default_na=False)
    assert set(table["id"]) == {"'=1+1", "trial 7"} and set(table["feature"]) <= {f"'{name}" for name in names}
    assert {"'-"} <= set(table["units"]) <= {"'-", "", "m", "V"}
    assert table["mean_change"].tolist() == pytest.approx(e.to_frame()["mean_change"].tolist())  # numbers stay numbers
    assert (table["mean_change"] < 0).any()
    service.close()


def test_a_file_does_not_wait_behind_a_search(sample):
    service = StudioService(Workspace(sample.folder), Limits(), "cpu")
    released = threading.Event()

    async def run():
        search = asyncio.create_task(service.run(lambda: released.wait(60)))
        await asyncio.sleep(0)
        assert await service.run(lambda: "file", renders=True) == "file"
        assert not search.done()
        released.set()
        assert await search

    asyncio.run(run())
    service.close()


REQUESTS = [
    {"rows": [2, 5], "target": "wild", "sparsity": 0.4, "answers": 2},
    {"rows": [20, 3, 19], "constraints": {"frozen": [[0, 2]], "frozen_features": {"left": [[5, 9]]}}},
    {"rows": [1], "target": "wild", "strokes": [{"feature": "left", "at": 5, "width": 2, "by": 0.5}]},
    {"rows": [1], "target": "wild", "find_rest": False,
     "strokes": [{"feature": "top", "at": 9, "width": 3, "by": 9.0}]},
    {"rows": [4], "answers": 2, "shown": 1, "constraints": {
        "immutable": ["idle"], "frozen": [[0, 3], [9, 10]], "ranges": {"left": [None, 1.5], "constructor": [-3, 3]},
        "max_step": {"top": 2.0}, "direction": {"top": "up"}, "groups": {"both": ["left", "constructor"]}}},
]  # fmt: skip


@pytest.mark.parametrize("options", REQUESTS)
def test_the_code_gives_the_same_answer(client, sample, options, monkeypatch):
    body = {"explainer": sample.nearest, **options}
    code = client.post(f"{API}/exports/py", json=body).text
    shown = body.pop("shown", 0)
    answers = client.post(f"{API}/explanations", json=body).json()["answers"]
    monkeypatch.chdir(sample.folder)
    names = {}
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(compile(code, "code.py", "exec"), names)
    expected = np.float32([answer["counterfactual"] for answer in answers])
    assert np.array_equal(names["e"].counterfactual, expected)
    assert output.getvalue().startswith(answers[shown]["text"])
    assert (sample.folder / "counterfactual.png").is_file()


def test_what_records_hold_stays_text(client, sample):
    from sparcets.io.files import read_json, write_json
    from sparcets.studio.workspace import RECORD

    record = sample.folder / "classifiers" / sample.classifier / RECORD
    before = read_json(record, "")
    hostile = 'fcn")\nimport os  # "'
    try:
        write_json(record, {**before, "architecture": hostile})
        code = client.post(f"{API}/exports/py", json={"explainer": sample.nearest, "rows": [3]}).text
    finally:
        write_json(record, before)
    imports = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Import)]
    imported = {alias.name for node in imports for alias in node.names}
    assert imported == {"sparcets"} and repr(hostile) in code


def test_the_name_of_an_onnx_file_stays_text(tmp_path):
    from sparcets.io.files import digest_of_files, write_json
    from sparcets.studio.exports import _classifier
    from sparcets.studio.workspace import Workspace
    from tests.test_security import write_onnx

    workspace = Workspace(tmp_path / "w")
    folder = workspace.folder / "classifiers" / "mine"
    folder.mkdir()
    name = '"+str(__import__("os"))+".onnx'
    write_onnx(folder / name, "weights.bin")
    digest = digest_of_files([folder / name, folder / "weights.bin"])
    header = {"format": 1, "output": "logits", "layout": None, "class_names": None, "digest": digest, "check": {}}
    write_json(folder / "model.json", {**header, "task": "classification", "source": name})
    record = SimpleNamespace(id="mine")
    (line,) = _classifier(workspace, record, record, None)
    assert line == f"clf = sp.wrap({f'classifiers/mine/{name}'!r}, output='logits')"
