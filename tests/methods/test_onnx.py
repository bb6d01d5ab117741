"""The exported generator is the fitted one: onnxruntime and torch agree, for any size of the batch."""

import json
import sys

import numpy as np
import pytest

import sparcets as sp
from sparcets.__main__ import main
from sparcets.core.errors import CapabilityError, MissingExtraError, NotFittedError, StorageError
from sparcets.methods import adversarial as exporting
from sparcets.methods.adversarial import export_generator
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

X, Y = make_series(60, n_steps=12)
X = X * np.array([1.0, 50.0, 0.02, 3.0], dtype=np.float32) + 7  # units of their own
TARGET = 0
QUERIES = X[sp.wrap(MeanModule(), n_classes=3).predict(X) != TARGET][:9]


def session(path):
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def run(path, queries=QUERIES, **more):
    given = {"series": queries, "target": np.full(len(queries), TARGET), **more}
    started = session(path)
    (made,) = started.run(None, {entry.name: given[entry.name] for entry in started.get_inputs()})
    return made


def classifier():
    return sp.wrap(MeanModule(), n_classes=3)


def build(method, *settings, target=None):
    kind = getattr(sp, f"{method}Config")
    config = kind.tiny() if target is None else kind.paper(target=target)
    return getattr(sp, method)(classifier(), config.override("train.epochs=1", *settings))


METHODS = {
    "sparce": lambda: build("Sparce"),
    "sparce with a TCN": lambda: build("Sparce", "generator.backbone=tcn"),
    "sparce of the paper": lambda: build("Sparce", "generator.hidden=8", target=TARGET),
    "gan": lambda: build("Gan", "generator.backbone=gru"),
    "countergan": lambda: build("CounterGan"),
}


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.filterwarnings("ignore")
def test_it_answers_as_the_fitted_one_does(tmp_path, name):
    explainer = METHODS[name]().fit(X, Y)
    difference = export_generator(explainer, tmp_path / "g.onnx")
    assert 0 <= difference < 1e-4
    scaler = explainer.info_.scaler
    expected = explainer.explain(QUERIES, target=TARGET).counterfactual
    for rows in (slice(0, 1), slice(0, 4), slice(None)):  # it was traced with two
        got = run(tmp_path / "g.onnx", QUERIES[rows])
        np.testing.assert_allclose((got - expected[rows]) / scaler.scale, 0, atol=1e-4)
    assert (expected != QUERIES).any((1, 2)).all()


def test_names_travel_along_and_the_old_file_stays_if_the_comparison_fails(tmp_path, monkeypatch):
    names = np.array(["calm", "brisk", "wild"])
    ds = sp.Dataset.from_arrays(X, names[Y], feature_names=["a", "b", "c", "d"], units=["m"] * 4)
    model = sp.wrap(MeanModule(), class_names=list(ds.class_names))
    explainer = sp.CounterGan(model, sp.CounterGanConfig.tiny().override("train.epochs=1")).fit(ds)
    export_generator(explainer, tmp_path / "g.onnx")
    about = session(tmp_path / "g.onnx").get_modelmeta().custom_metadata_map
    assert json.loads(about["features"]) == ["a", "b", "c", "d"]
    assert json.loads(about["classes"]) == list(ds.class_names) and json.loads(about["units"]) == ["m"] * 4
    before = (tmp_path / "g.onnx").read_bytes()
    monkeypatch.setattr(exporting, "_compare", lambda *_: 0.5)
    with pytest.raises(StorageError, match=r"differs from the fitted one by 0\.5 standard deviations"):
        export_generator(explainer, tmp_path / "g.onnx")
    assert (tmp_path / "g.onnx").read_bytes() == before


def test_what_cannot_be_exported_says_why(tmp_path, monkeypatch):
    for other in (sp.Nearest, sp.Explainer):
        with pytest.raises(CapabilityError, match=f"{other.__name__} has no generator to export"):
            export_generator(other(classifier(), other.config_class.tiny()).fit(X, Y), tmp_path / "g.onnx")
    with pytest.raises(NotFittedError):
        export_generator(sp.Sparce(classifier()), tmp_path / "g.onnx")
    assert not (tmp_path / "g.onnx").exists()
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'sparcets\[onnx\]'"):
        export_generator(sp.Nearest(classifier()).fit(X, Y), tmp_path / "g.onnx")


def test_on_the_command_line(tmp_path, capsys):
    data = tmp_path / "own.npz"
    np.savez(data, X=X, y=Y)
    fit = ["fit", "-d", str(data), "--out", str(tmp_path / "model"), "-m", "countergan", "--preset", "tiny"]
    assert main([*fit, "--set", "train.epochs=1", "--set-classifier", "epochs=2"]) == 0
    capsys.readouterr()
    assert main(["export", str(tmp_path / "model"), "--out", str(tmp_path / "g.onnx"), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["bytes"] == (tmp_path / "g.onnx").stat().st_size and printed["largest_difference"] < 1e-4
    assert main(["export", str(tmp_path), "--out", str(tmp_path / "g.onnx")]) == 2
    assert capsys.readouterr().err.startswith("sparcets: ")
