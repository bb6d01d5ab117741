"""SPARCE with the paper's settings on Moving Box, with each of the three backbones that the paper names.

    python benchmarks/backbones.py [lstm|gru|tcn ...]

One JSON line per run in ``results/backbones.jsonl``, which ``make docs`` turns into a table in ``docs/methods.md``.
For a GPU: on a CPU the full settings take days.
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
from sparcets.evaluation import measures as proximity
from sparcets.evaluation import measures as smoothness
from sparcets.evaluation import measures as sparsity
from sparcets.evaluation import measures as universality
from sparcets.evaluation import measures as validity
from sparcets_paper.reproduce.provenance import code_digest

RESULTS = Path(os.environ.get("SPARCETS_RESULTS", Path(__file__).parents[1] / "results")) / "backbones.jsonl"
TARGETS = {"moving_box": "1", "motionsense": "ups"}


def measure(e: sp.Explanation, data: sp.Dataset, rows: np.ndarray) -> dict[str, float]:
    """Return means over all queries; that of the oracle over valid answers."""
    answered = e[e.status != "unchanged"]
    valid = answered[answered.valid]
    result = {
        "queries": len(answered),
        "valid": answered.valid.mean(),
        "precision_index": validity.index_distance(answered).mean(),
        "precision_l2": validity.probability_distance(answered).mean(),
        "similarity": proximity.similarity(answered).mean(),
        "sparsity": sparsity.sparsity(answered).mean(),
        "smoothness": smoothness.smoothness(answered).mean(),
        "universality": universality.universality(answered),
    }
    if data.oracle is not None and len(valid):
        result["oracle"] = (data.oracle(valid.counterfactual, rows[valid.query_index]) == valid.target).mean()
    return {name: round(float(value), 4) for name, value in result.items()}


def prepare(name: str) -> tuple[sp.Dataset, sp.TorchClassifier, np.ndarray]:
    """Return a data set, its classifier, and the rows of its test queries."""
    data = sp.load_dataset(name)
    classifier = sp.TorchClassifier("bilstm").fit(data)
    return data, classifier, np.flatnonzero(data.y_test != data.class_names.index(TARGETS[name]))


def main(names: list[str]) -> None:
    data, classifier, rows = prepare("moving_box")
    target = TARGETS["moving_box"]
    paper = sp.SparceConfig.paper(target=target)
    for backbone in names:
        config = replace(paper, generator=replace(paper.generator, backbone=backbone))
        started = time.perf_counter()
        explainer = sp.Sparce(classifier, config).fit(data)
        row = {"set": "moving_box", "backbone": backbone, "seed": config.seed, "target": target}
        row |= {"accuracy": round(float((classifier.predict(data.X_test) == data.y_test).mean()), 4)}
        row |= {"fit_s": round(time.perf_counter() - started, 1)}
        row |= measure(explainer.explain(data.X_test[rows], target), data, rows)
        row |= {"config": config.to_dict(), "code": code_digest(), "torch": torch.__version__}
        row["device"] = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
        with RESULTS.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print({k: v for k, v in row.items() if k != "config"}, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or ["lstm", "gru", "tcn"])
