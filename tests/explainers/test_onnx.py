"""The exported generator is the fitted one: onnxruntime and torch say the same, for any size of the batch."""

import json

import numpy as np
import pytest
import torch

import sparcets as sp
from sparcets.__main__ import main
from sparcets.errors import CapabilityError, MissingExtraError, NotFittedError, StorageError
from sparcets.explainers import export as exporting
from sparcets.explainers.onnx import export_generator
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule
from sparcets.explainers.sparcets.operating_point import knee

onnxruntime = pytest.importorskip("onnxruntime")
onnx = pytest.importorskip("onnx")

X, Y = make_series(60, n_steps=12)
X = X * np.array([1.0, 50.0, 0.02, 3.0], dtype=np.float32) + 7  # units of their own
QUERIES = X[Y != 1][:9]


def shown(path):
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def ask(path, queries=QUERIES, target=1, **more):
    given = {"series": queries, "target": np.full(len(queries), target), **more}
    session = shown(path)
    (made,) = session.run(None, {entry.name: given[entry.name] for entry in session.get_inputs()})
    return made


def classifier():
    return sp.wrap(MeanModule(), n_classes=3)


METHODS = {
    "sparce": lambda: sp.Sparce(classifier(), sp.SparceConfig.tiny().override("train.epochs=1")),
    "sparce with a TCN": lambda: sp.Sparce(
        classifier(), sp.SparceConfig.tiny().override("train.epochs=1", "generator.backbone=tcn")
    ),
    "sparce with feature gates": lambda: sp.Sparce(
        classifier(), sp.SparceConfig.tiny().override("train.epochs=1", "gate=feature")
    ),
    "the paper's": lambda: sp.Sparce(
        classifier(), sp.SparceConfig.paper(target=1).override("train.epochs=1", "generator.hidden=8")
    ),
    "gan": lambda: sp.Gan(classifier(), sp.GanConfig.tiny().override("train.epochs=1", "generator.backbone=gru")),
    "countergan": lambda: sp.CounterGan(classifier(), sp.CounterGanConfig.tiny().override("train.epochs=1")),
}


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.filterwarnings("ignore")
def test_it_answers_as_the_fitted_one_does(tmp_path, name):
    explainer = METHODS[name]().fit(X, Y)
    difference = export_generator(explainer, tmp_path / "g.onnx")
    assert 0 <= difference < 1e-4
    target = np.full(len(QUERIES), 1)
    scaler = explainer.info_.scaler
    if getattr(explainer, "_recipe", None) is not None:
        x = torch.tensor(scaler.transform(QUERIES))
        place = knee(explainer.trade_off_)
        delta = place.loudness * explainer._recipe.propose(x, torch.tensor(target), place.strength).numpy()
        wanted = scaler.move(QUERIES, delta)
    else:
        wanted = explainer._propose(QUERIES, target, explainer.info_)
    for rows in (slice(0, 1), slice(0, 4), slice(None)):  # it was traced with two
        got = ask(tmp_path / "g.onnx", QUERIES[rows])
        np.testing.assert_allclose((got - wanted[rows]) / scaler.scale, 0, atol=1e-4)
    assert (wanted != QUERIES).any()


def test_a_guided_one_takes_real_series_too(tmp_path):
    config = sp.SparceConfig.tiny().override("train.epochs=1", "guide=always")
    explainer = sp.Sparce(classifier(), config).fit(X, Y)
    export_generator(explainer, tmp_path / "g.onnx")
    guide = X[Y == 1][: len(QUERIES)]
    made = ask(tmp_path / "g.onnx", guide=guide)
    low, high = np.minimum(QUERIES, guide), np.maximum(QUERIES, guide)
    assert ((made >= low - 1e-3 * X.std((0, 1))) & (made <= high + 1e-3 * X.std((0, 1)))).all()  # between the two


def test_names_travel_along_and_the_old_file_stays_if_the_comparison_fails(tmp_path, monkeypatch):
    names = np.array(["calm", "brisk", "wild"])
    ds = sp.Dataset.from_arrays(X, names[Y], feature_names=["a", "b", "c", "d"], units=["m"] * 4)
    model = sp.wrap(MeanModule(), class_names=list(ds.class_names))
    explainer = sp.CounterGan(model, sp.CounterGanConfig.tiny().override("train.epochs=1")).fit(ds)
    export_generator(explainer, tmp_path / "g.onnx")
    about = shown(tmp_path / "g.onnx").get_modelmeta().custom_metadata_map
    assert json.loads(about["features"]) == ["a", "b", "c", "d"]
    assert json.loads(about["classes"]) == list(ds.class_names) and json.loads(about["units"]) == ["m"] * 4
    before = (tmp_path / "g.onnx").read_bytes()
    monkeypatch.setattr(exporting, "_compare", lambda *_: 0.5)
    with pytest.raises(StorageError, match=r"differs from the fitted one by 0\.5 standard deviations"):
        export_generator(explainer, tmp_path / "g.onnx")
    assert (tmp_path / "g.onnx").read_bytes() == before


def test_what_cannot_be_exported_says_why(tmp_path, monkeypatch):
    with pytest.raises(CapabilityError, match="Nearest has no generator to export"):
        export_generator(sp.Nearest(classifier()).fit(X, Y), tmp_path / "g.onnx")
    with pytest.raises(NotFittedError):
        export_generator(sp.Sparce(classifier()), tmp_path / "g.onnx")
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'sparcets\[onnx\]'"):
        export_generator(sp.Nearest(classifier()).fit(X, Y), tmp_path / "g.onnx")


def test_on_the_command_line(tmp_path, capsys):
    data = tmp_path / "own.npz"
    np.savez(data, X=X, y=Y)
    fit = ["fit", "-d", str(data), "--out", str(tmp_path / "model"), "-m", "countergan", "--preset", "tiny"]
    assert main([*fit, "--set", "train.epochs=1", "--set-classifier", "epochs=2"]) == 0
    capsys.readouterr()
    assert main(["export", str(tmp_path / "model"), "--out", str(tmp_path / "g.onnx"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["bytes"] == (tmp_path / "g.onnx").stat().st_size and told["largest_difference"] < 1e-4
    assert main(["export", str(tmp_path), "--out", str(tmp_path / "g.onnx")]) == 2
    assert capsys.readouterr().err.startswith("sparcets: ")
