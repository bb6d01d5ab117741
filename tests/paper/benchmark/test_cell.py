"""One cell: its row has the same numbers as a direct call of the library, or the error."""

import json
import sys
import threading
import time
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest

import sparcets as sp
from sparcets.core.settings import ClassifierConfig
from sparcets.data.load import save_dataset
from sparcets.evaluation.evaluate import evaluate
from sparcets.evaluation.families import check_families
from sparcets.evaluation.judges import find_judges
from sparcets.io.files import to_plain
from sparcets.testing.data import make_series
from sparcets_paper.benchmark.cell import RunContext, find_classifier, load_data, run_cell
from sparcets_paper.benchmark.plan import Cell, file_digest

TINY = {"hidden": 8, "layers": 1, "dropout": 0.0, "epochs": 15, "lr": 0.01}


@pytest.fixture(scope="module")
def own_data(tmp_path_factory):
    X, y = make_series(90)
    path = tmp_path_factory.mktemp("data") / "own.npz"
    np.savez(path, X=X, y=np.array(["calm", "brisk", "wild"])[y])
    return str(path)


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    return RunContext(tmp_path_factory.mktemp("runs"), "cpu")


@pytest.fixture(scope="module")
def cell(own_data):
    return Cell(dataset="own", source=own_data, classifier_config=TINY, method="nearest", target="brisk", keep=3)


@pytest.fixture(scope="module")
def row(cell, context):
    return run_cell(cell, context)  # with its judges


def test_the_measures_are_those_of_evaluate(cell, context, row, own_data):
    data = sp.load_dataset(own_data)
    classifier = find_classifier(cell, data, context)
    rows = np.flatnonzero(data.y_test != data.class_names.index("brisk"))
    e = sp.Nearest(classifier).fit(data).explain(data.X_test[rows], "brisk")
    judges = find_judges(data, classifier, device="cpu")
    scores = evaluate(e, data, classifier=classifier, rows=rows, judges=judges)
    for name, found in scores.summary.items():
        if name != "seconds":
            assert row["measures"][name] == pytest.approx(found["mean"], rel=1e-5, nan_ok=True), name
            assert row["intervals"][name] == pytest.approx([found["low"], found["high"]], rel=1e-5, nan_ok=True), name
    assert tuple(row["judges"]) == check_families(None) and row["judges"] == pytest.approx(scores.judges, rel=1e-5)
    assert row["accuracy"] == pytest.approx((classifier.predict(data.X_test) == data.y_test).mean(), rel=1e-5)
    assert row["queries"] == len(rows) == sum(row["statuses"].values())


def test_the_row_holds_cell_settings_and_versions(cell, row):
    assert row["key"] == cell.key and "error" not in row
    for name in ("dataset", "source", "classifier", "method", "preset", "target", "seed", "label", "experiment"):
        assert row[name] == getattr(cell, name), name
    assert row["request"] == {"queries": None, "curve": False, "figures": False, "keep": 3, "seconds_per_query": None}
    assert row["config"]["classifier"] == ClassifierConfig(**TINY, device="cpu").to_dict()
    assert row["config"]["explainer"] == sp.NearestConfig(device="cpu").to_dict()
    assert row["data"]["digest"] == file_digest(cell) and len(row["data"]["digest"]) == 16
    assert row["device"] == "cpu" and row["versions"]["sparcets"] == sp.__version__
    assert set(row["versions"]) == {"sparcets", "torch", "numpy", "python"}
    assert row["git"] is None or len(row["git"]) == 40
    assert row["started"].startswith("20") and row["started"].endswith("+00:00")
    assert row["fit_s"] >= 0 and row["explain_s"] > 0
    assert len(json.dumps(to_plain(row), allow_nan=False)) < 8000


@pytest.mark.usefixtures("no_judges")
def test_the_first_queries_are_explained(cell, context):
    capped = replace(cell, queries=4, keep=9)
    row = run_cell(capped, context)
    assert row["queries"] == 4 == row["keep"] and row["request"]["queries"] == 4
    data = load_data(cell)
    kept = sp.load_explanation(context.folder / "explanations" / f"{capped.key}.npz")
    assert np.array_equal(kept.query, data.X_test[data.y_test != data.class_names.index("brisk")][:4])
    all_classes = run_cell(replace(cell, target=None), context)
    assert all_classes["queries"] == 18 and all_classes["statuses"]["unchanged"] == 0


@pytest.mark.usefixtures("no_judges")
def test_only_the_preset_paper_is_fitted_for_the_target(cell, context):
    quick = ("train.epochs=1", "generator.hidden=4", "generator.layers=1", "generator.dropout=0")
    paper = run_cell(replace(cell, method="sparce", preset="paper", settings=quick, seed=2, queries=3), context)
    assert paper["config"]["explainer"]["target"] == "brisk" and paper["config"]["explainer"]["seed"] == 2
    assert paper["config"]["explainer"]["train"]["epochs"] == 1 and paper["history"]["generator"] > 0
    ours = run_cell(replace(cell, method="sparcets", preset="tiny", queries=3), context)
    assert ours["config"]["explainer"]["target"] is None and "error" not in ours


@pytest.mark.usefixtures("no_judges")
def test_a_time_limit_is_a_setting_of_peers(cell, context, monkeypatch):
    def first_of_target(sample, model, target_class=None, dataset=None):
        return next(x for x, label in dataset if label == target_class), None

    module = ModuleType("cfts.cf_comte.comte")
    vars(module)["comte_cf"] = first_of_target
    monkeypatch.setitem(sys.modules, "cfts", ModuleType("cfts"))
    monkeypatch.setitem(sys.modules, "cfts.cf_comte.comte", module)
    limited = replace(cell, seconds_per_query=1.5, queries=3)
    peer, own = (run_cell(replace(limited, method=method), context) for method in ("cfts:comte", "nearest"))
    assert peer["config"]["explainer"]["seconds_per_query"] == 1.5
    assert peer["peer"] == {"ran": 3, "timed_out": 0, "crashed": 0}
    assert "seconds_per_query" not in own["config"]["explainer"] and "peer" not in own


@pytest.mark.usefixtures("no_judges")
def test_the_curve(tmp_path):
    data = sp.load_dataset("moving_box", n_per_combination=12)
    file = save_dataset(data, tmp_path / "box.npz")
    known = {"classifier": "fcn", "classifier_config": {**TINY, "epochs": 2}, "target": "1"}
    cell = Cell(dataset="moving_box", source=str(file), **known)
    cell = replace(cell, method="nearest", queries=8, curve=True)
    row = run_cell(cell, RunContext(tmp_path / "runs", "cpu"))
    curve = row["curve"]
    assert len(curve["fpr"]) == len(curve["tpr"]) == 101 and curve["fpr"][-1] == curve["tpr"][-1] == 1.0
    area = float(np.trapezoid(curve["tpr"], curve["fpr"]) if hasattr(np, "trapezoid") else np.nan)
    assert np.isnan(area) or area == pytest.approx(row["measures"]["saliency_auc_pooled_all"], abs=0.01)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"target": "brusk"}, "Did you mean 'brisk'?"),
        ({"method": "nearer"}, "UnknownNameError: no explainer 'nearer'"),
        ({"source": "/no/such/file.npz"}, "DataNotFoundError: no file /no/such/file.npz"),
        ({"dataset": "motionsense", "source": None, "target": "ups"}, "DataNotFoundError"),
    ],
)
def test_an_error_is_in_the_row(cell, context, changes, message, monkeypatch, tmp_path):
    monkeypatch.setenv("SPARCETS_DATA", str(tmp_path))  # where no MotionSense is
    row = run_cell(replace(cell, **changes), context)
    assert message in row["error"] and "Traceback" in row["trace"]
    assert row["key"] == replace(cell, **changes).key and "measures" not in row


def test_several_threads_train_one_classifier(cell, own_data, tmp_path, monkeypatch):
    trained = []
    fit = sp.TorchClassifier.fit

    def slow(self, *arguments, **named):
        trained.append(self.config.seed)
        time.sleep(0.3)
        return fit(self, *arguments, **named)

    monkeypatch.setattr(sp.TorchClassifier, "fit", slow)
    data, context, found = sp.load_dataset(own_data), RunContext(tmp_path, "cpu"), []
    threads = [threading.Thread(target=lambda: found.append(find_classifier(cell, data, context))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert trained == [0]
    proba = [classifier.predict_proba(data.X_test) for classifier in found]
    assert len(proba) == 3 and np.array_equal(proba[0], proba[1]) and np.array_equal(proba[0], proba[2])
    # Data, architecture and settings determine the classifier; the seed of the method does not.
    find_classifier(replace(cell, seed=5, method="ics"), data, context)
    assert trained == [0]
    find_classifier(replace(cell, classifier_config={**TINY, "seed": 1}), data, context)
    find_classifier(replace(cell, classifier_config={**TINY, "epochs": 14}), data, context)
    changed = replace(data, X_train=data.X_train + np.float32(1e-3))
    find_classifier(cell, changed, context)
    assert trained == [0, 1, 0, 0]
