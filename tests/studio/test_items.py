"""What is the user's own in the studio: a model, and a folder of ``sparcets fit``."""

import asyncio
import contextlib
import io
import json
import sys
from dataclasses import replace

import numpy as np
import pytest

import sparcets as sp
from sparcets.core.errors import CapabilityError, ConfigError
from sparcets.methods.folder import CLASSIFIER, EXPLAINER, load_fit, write_fit
from sparcets.models.own_model import OwnModel
from sparcets.studio.jobs import Jobs
from sparcets.studio.models import (
    ClassifierRecord,
    ExplainerRecord,
    ExplainRequest,
    FitExplainer,
    Limits,
    TrainClassifier,
)
from sparcets.studio.processes import fit_explainer, train_classifier
from sparcets.studio.service import StudioService
from sparcets.studio.workspace import KIND_OF, Workspace, add_fit
from tests.http_api import error

from .conftest import API, npz_bytes

MODEL = """
from beside import ORDER

def load():
    return lambda X: {"scores": 9 * X.mean(1)[:, ORDER]}
"""


@pytest.fixture
def own(tmp_path):
    (tmp_path / "studio_model.py").write_text(MODEL)
    (tmp_path / "beside.py").write_text("ORDER = [1, 0, 2]  # brisk, calm, wild\n")
    yield OwnModel(source=f"{tmp_path}/studio_model.py:load", output="logits:scores")
    for name in [name for name in sys.modules if name.startswith(("studio_model", "beside"))]:
        del sys.modules[name]


def test_a_job_is_given_the_model_that_the_command_line_named(tmp_path, own):
    script = f"import sys; open({str(tmp_path / 'task')!r}, 'w').write(sys.stdin.readline())"
    jobs = Jobs(Workspace(tmp_path / "workspace"), Limits(), model=own, worker=[sys.executable, "-c", script])

    async def run():
        cases = ((own.name, "loading studio_model.py:load", own.to_dict()), ("fcn", "training fcn", None))
        for name, title, given in cases:
            job = jobs.submit(TrainClassifier(dataset="own", architecture=name))
            assert job.title == title
            while job.state in ("queued", "running"):
                await asyncio.sleep(0.05)
            assert json.loads((tmp_path / "task").read_text()).get("model") == given

    asyncio.run(run())


def test_the_model_is_loaded_explained_and_found_again(start, sample, own, monkeypatch):
    client = start(model=own)
    offered = {"name": own.name, "about": "your own model, as it is; nothing is trained", "own": True}
    assert client.get(f"{API}/catalog").json()["classifiers"][0] == offered
    request = TrainClassifier(dataset="own", architecture=own.name)
    train_classifier(Workspace(sample.folder), "mine", request, 0, "cpu", own.to_dict())
    (record,) = (c for c in client.get(f"{API}/classifiers").json() if c["id"] == "mine")
    assert record["test_accuracy"] == 1.0 and record["architecture"] == own.name
    fit = FitExplainer(classifier="mine", method="nearest", preset="tiny")
    with pytest.raises(ConfigError, match=r"type: sparcets studio --model .*studio_model.py:load"):
        fit_explainer(Workspace(sample.folder), "neighbours", fit, 0, "cpu")
    fit_explainer(Workspace(sample.folder), "neighbours", fit, 0, "cpu", own.to_dict())

    without = start()  # without --model
    assert offered not in without.get(f"{API}/catalog").json()["classifiers"]
    problem = error(without.get(f"{API}/classifiers/mine/queries"), 422)
    assert "type: sparcets studio --model" in problem["message"]

    later = start(model=own)
    row = later.get(f"{API}/classifiers/mine/queries?predicted=calm").json()["items"][0]["row"]
    body = {"explainer": "neighbours", "rows": [row], "target": "wild"}
    (answer,) = later.post(f"{API}/explanations", json=body).json()["answers"]
    assert answer["valid"] and answer["status"] == "neighbour"

    code = later.post(f"{API}/exports/py", json=body).text
    monkeypatch.chdir(sample.folder)
    monkeypatch.setattr(sys, "path", [*sys.path])
    names = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(code, "code.py", "exec"), names)
    assert np.array_equal(names["e"].counterfactual[0], np.float32(answer["counterfactual"]))


def test_requests_cannot_name_a_model(start, own):
    client = start()
    for name in (own.name, own.source[-64:]):
        error(client.post(f"{API}/classifiers", json={"dataset": "own", "architecture": name}), 422)


def test_a_model_of_numbers_is_refused_with_what_to_do(sample, own):
    wrapped = "sp.wrap(lambda X: X.mean((1, 2)), task='regression')"
    own.file.write_text(f"import sparcets as sp\n\ndef load():\n    return {wrapped}\n")
    request = TrainClassifier(dataset="own", architecture=own.name)
    plain = replace(own, output=None).to_dict()
    with pytest.raises(CapabilityError, match=r"studio_model.py:load predicts numbers; .* fit -o task=regression"):
        train_classifier(Workspace(sample.folder), "mine", request, 0, "cpu", plain)


@pytest.fixture(scope="module")
def fit(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fit")
    (folder / "gait.npz").write_bytes(npz_bytes())
    options = {"seed": 3, "test_size": 0.3}
    ds = sp.load_dataset(folder / "gait.npz", **options)
    clf = sp.TorchClassifier("fcn", sp.ClassifierConfig.tiny()).fit(ds)
    run = {"dataset": str(folder / "gait.npz"), "dataset_options": options, "classifier": "fcn", "test_accuracy": 0.9}
    write_fit(folder, clf.save, sp.Nearest(clf).fit(ds), run)
    return folder


def test_a_fit_is_used_as_it_is(fit, tmp_path):
    run, explainer = load_fit(fit, device="cpu")
    workspace = Workspace(tmp_path / "workspace")
    record = add_fit(workspace, run, explainer, fit / CLASSIFIER, fit / EXPLAINER)
    assert add_fit(workspace, run, explainer, fit / CLASSIFIER, fit / EXPLAINER) == record  # once
    assert [len(workspace.records(model)) for model in KIND_OF] == [1, 1, 1]
    assert workspace.record(ClassifierRecord, record.classifier).test_accuracy == 0.9
    ds = sp.load_dataset(fit / "gait.npz", seed=3, test_size=0.3)
    service = StudioService(workspace, Limits(), "cpu")
    e = service.explanation(ExplainRequest(explainer=record.id, rows=[2, len(ds.X_test)]))
    assert e.ids.tolist() == [ds.ids_test[2], ds.ids_train[0]]  # the split of the fit
    expected = explainer.explain(np.stack([ds.X_test[2], ds.X_train[0]]))
    assert np.array_equal(e.counterfactual, expected.counterfactual)
    service.close()


def test_the_command_copies_it(fit, tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from sparcets.cli.main import app
    from sparcets.studio import app as server

    monkeypatch.setattr(server, "serve", lambda *args, **options: None)
    command = ["studio", "--workspace", str(tmp_path / "w"), "--explainer", str(fit), "--device", "cpu"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert len(Workspace(tmp_path / "w").records(ExplainerRecord)) == 1
    result = CliRunner().invoke(app, [*command[:-4], "--explainer", str(tmp_path)])
    assert result.exit_code != 0
