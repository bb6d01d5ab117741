"""A folder of ``sparcets fit`` in the studio: copied once, with its data as they were split, and its answers."""

from pathlib import Path

import numpy as np
import pytest

import sparcets as sp
from sparcets.methods.fit_folder import CLASSIFIER, EXPLAINER, load_fit, write_fit
from sparcets.studio.items import add_fit
from sparcets.studio.models import ExplainRequest, Limits
from sparcets.studio.service import StudioService
from sparcets.studio.workspace import Workspace

from .conftest import npz_bytes


@pytest.fixture(scope="module")
def fit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fit")
    (folder / "gait.npz").write_bytes(npz_bytes())
    options = {"seed": 3, "test_size": 0.3}
    ds = sp.load_dataset(folder / "gait.npz", **options)
    clf = sp.TorchClassifier("fcn", sp.ClassifierConfig.tiny()).fit(ds)
    run = {"dataset": str(folder / "gait.npz"), "dataset_options": options, "classifier": "fcn", "test_accuracy": 0.9}
    write_fit(folder, clf.save, sp.Nearest(clf).fit(ds), run)
    return folder


def test_a_fit_is_used_as_it_is(fit: Path, tmp_path: Path) -> None:
    run, explainer = load_fit(fit, device="cpu")
    workspace = Workspace(tmp_path / "workspace")
    record = add_fit(workspace, run, explainer, fit / CLASSIFIER, fit / EXPLAINER)
    assert add_fit(workspace, run, explainer, fit / CLASSIFIER, fit / EXPLAINER) == record  # once
    assert [len(items()) for items in (workspace.datasets, workspace.classifiers, workspace.explainers)] == [1, 1, 1]
    assert workspace.classifier(record.classifier).test_accuracy == 0.9
    ds = sp.load_dataset(fit / "gait.npz", seed=3, test_size=0.3)
    service = StudioService(workspace, Limits(), "cpu")
    e = service.answers.explanation(ExplainRequest(explainer=record.id, rows=[2, len(ds.X_test)]))
    assert e.ids is not None and ds.ids_test is not None and ds.ids_train is not None
    assert e.ids.tolist() == [ds.ids_test[2], ds.ids_train[0]]  # the split of the fit
    expected = explainer.explain(np.stack([ds.X_test[2], ds.X_train[0]]))
    assert np.array_equal(e.counterfactual, expected.counterfactual)
    service.close()


def test_the_command_copies_it(fit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from sparcets.cli.main import app
    from sparcets.studio import app as server

    monkeypatch.setattr(server, "serve", lambda *args, **options: None)
    command = ["studio", "--workspace", str(tmp_path / "w"), "--explainer", str(fit), "--device", "cpu"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert len(Workspace(tmp_path / "w").explainers()) == 1
    result = CliRunner().invoke(app, [*command[:-4], "--explainer", str(tmp_path)])
    assert result.exit_code != 0
