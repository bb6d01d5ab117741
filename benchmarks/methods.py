"""The paper's four methods at the paper's settings, one JSON line per run, in ``results/methods.jsonl``.

    python benchmarks/methods.py [moving_box|motionsense|catching ...]

A run that is there already is not computed again. The classifier of each set is trained once per call, with seed 0.
Made for a GPU: on a CPU the full settings take days. ``make docs`` turns the file into tables in ``docs/methods.md``.
"""

import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

import sparcets as sp
from sparcets.config.explainers import AdversarialConfig
from sparcets.metrics import proximity, smoothness, sparsity, universality, validity

RESULTS = Path(os.environ.get("SPARCETS_RESULTS", Path(__file__).parents[1] / "results")) / "methods.jsonl"
SETS = {
    "moving_box": {"target": "1", "seeds": [0], "source": "moving_box"},
    "motionsense": {"target": "ups", "seeds": [0, 1], "source": os.environ.get("MOTIONSENSE", "motionsense")},
    "catching": {"target": "Control", "seeds": [0, 1], "source": "catching"},
}


def variants(name: str, target: str, seed: int) -> dict[str, tuple[type, object]]:
    """Return what is run on a set: the four methods, other backbones, and a sparsity term with a gradient."""
    paper = {
        "Ics": sp.IcsConfig.paper(target=target),
        "Gan": sp.GanConfig.paper(target=target),
        "CounterGan": sp.CounterGanConfig.paper(target=target),
        "Sparce": sp.SparceConfig.paper(target=target),
    }
    runs = {method: (getattr(sp, method), replace(config, seed=seed)) for method, config in paper.items()}
    sparce: AdversarialConfig = runs["Sparce"][1]
    if name == "moving_box":
        for backbone in ("gru", "tcn"):
            changed = replace(sparce, generator=replace(sparce.generator, backbone=backbone))
            runs[f"Sparce, {backbone} generator"] = (sp.Sparce, changed)
    else:
        runs["Sparce, sparsity term with a gradient"] = (sp.Sparce, replace(sparce, trains_sparsity=True))
    return runs


def measure(e: sp.Explanation, data: sp.Dataset, rows: np.ndarray) -> dict[str, float]:
    asked = e[e.status != "unchanged"]
    found = asked[asked.valid]
    result = {
        "queries": len(asked),
        "valid": asked.valid.mean(),
        "precision_index": validity.index_distance(asked).mean(),
        "precision_l2": validity.probability_distance(asked).mean(),
        "similarity": proximity.similarity(asked).mean(),
        "sparsity": sparsity.sparsity(asked).mean(),
        "smoothness": smoothness.smoothness(asked).mean(),
        "universality": universality.universality(asked),
    }
    if data.oracle is not None and len(found):
        result["oracle"] = (data.oracle(found.counterfactual, rows[found.query_index]) == found.target).mean()
    return {name: round(float(value), 4) for name, value in result.items()}


def main(wanted: list[str]) -> None:
    done = [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []
    seen = {(r["set"], r["run"], r["seed"]) for r in done}
    for name, facts in SETS.items():
        if wanted and name not in wanted:
            continue
        runs = [
            (run, seed, *made) for seed in facts["seeds"] for run, made in variants(name, facts["target"], seed).items()
        ]
        runs = [r for r in runs if (name, r[0], r[1]) not in seen]
        if not runs:
            continue
        data = sp.load_dataset(facts["source"])
        classifier = sp.TorchClassifier("bilstm").fit(data)
        accuracy = float((classifier.predict(data.X_test) == data.y_test).mean())
        print(f"{name}: classifier {accuracy:.3f}", flush=True)
        rows = np.flatnonzero(data.y_test != data.class_names.index(facts["target"]))
        for run, seed, method, config in runs:
            started = time.perf_counter()
            explainer = method(classifier, config)
            row = {"set": name, "run": run, "seed": seed, "target": facts["target"], "accuracy": round(accuracy, 4)}
            try:
                explainer.fit(data)
                fitted = time.perf_counter()
                e = explainer.explain(data.X_test[rows], facts["target"])
                row |= measure(e, data, rows)
                row |= {"fit_s": round(fitted - started, 1), "explain_s": round(time.perf_counter() - fitted, 2)}
                if explainer.history_:
                    row["last_epoch"] = {k: round(v[-1], 4) for k, v in explainer.history_.items()}
                    row["silent_features"] = len(explainer.silent_features_)
            except sp.SparcetsError as error:
                row["error"] = str(error)
            row |= {
                "config": config.to_dict(),
                "version": sp.__version__,
                "torch": torch.__version__,
                "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
            }
            with RESULTS.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print({k: v for k, v in row.items() if k not in ("config", "last_epoch")}, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
