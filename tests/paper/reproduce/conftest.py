"""Rows as the benchmark stores them, made by hand."""

import pytest

from sparcets_paper.benchmark.published import DATASETS


@pytest.fixture
def make_row():
    def make(dataset="catching", label="SPARCE", *, seed=0, **given):
        target = given.pop("target", DATASETS[dataset].target)
        fields = {name: given.pop(name) for name in ("error", "fit_s", "explain_s", "curve", "key") if name in given}
        cell = {"dataset": dataset, "options": {}, "source": None, "label": label, "target": target, "seed": seed}
        made = {"fit_s": 10.0, "explain_s": 1.0, "device": "cpu", "versions": {"sparcets": "9.9"}}
        return {"key": f"{dataset}/{label}/{target}/{seed}", **cell, "measures": given, **made, **fields}

    return make


@pytest.fixture
def facts():
    names = "title n_samples n_train n_test n_steps n_features n_mutable classes".split()
    catching = ("Catching (simulated)", 1975, 1580, 395, 60, 20, 18, {"Ataxia": 522, "Autism": 789, "Control": 664})
    walking = ("MotionSense", 7544, 6035, 1509, 100, 12, 12, {"dws": 1283, "jog": 1317, "ups": 1536, "wlk": 3408})
    rows = {"catching": catching, "motionsense": walking}
    return {name: dict(zip(names, values, strict=True)) for name, values in rows.items()}
