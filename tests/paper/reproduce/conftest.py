"""Rows as the benchmark stores them, made by hand."""

import pytest

from sparcets_paper.benchmark.published import DATASETS


@pytest.fixture
def make_row():
    def make(dataset="catching", label="SPARCE", *, seed=0, **given):
        target = given.pop("target", DATASETS[dataset].target)
        fields = {name: given.pop(name) for name in ("error", "fit_s", "explain_s", "curve", "key") if name in given}
        return {
            "key": f"{dataset}/{label}/{target}/{seed}",
            "dataset": dataset,
            "options": {},
            "source": None,
            "label": label,
            "target": target,
            "seed": seed,
            "measures": given,
            "fit_s": 10.0,
            "explain_s": 1.0,
            "device": "cpu",
            "versions": {"sparcets": "9.9"},
            **fields,
        }

    return make


@pytest.fixture
def facts():
    return {
        "catching": {
            "title": "Catching (simulated)",
            "n_samples": 1975,
            "n_train": 1580,
            "n_test": 395,
            "n_steps": 60,
            "n_features": 20,
            "n_mutable": 18,
            "classes": {"Ataxia": 522, "Autism": 789, "Control": 664},
        },
        "motionsense": {
            "title": "MotionSense",
            "n_samples": 7544,
            "n_train": 6035,
            "n_test": 1509,
            "n_steps": 100,
            "n_features": 12,
            "n_mutable": 12,
            "classes": {"dws": 1283, "jog": 1317, "ups": 1536, "wlk": 3408},
        },
    }
