"""The perfect answer on Moving Box, as a reference for all methods: the salient box is moved to the other class's mean.

    python benchmarks/perfect_answer.py

Measured on all test queries towards class 1; one JSON line in ``results/perfect_answer.jsonl``.
"""

import json
import os
from pathlib import Path

import numpy as np

import sparcets as sp
from sparcets.core.info import SeriesInfo
from sparcets.evaluation import measures as proximity
from sparcets.evaluation import measures as smoothness
from sparcets.evaluation import measures as sparsity
from sparcets.evaluation import measures as universality
from sparcets.evaluation import saliency
from sparcets_paper.reproduce.provenance import code_digest

RESULTS = Path(os.environ.get("SPARCETS_RESULTS", Path(__file__).parents[1] / "results")) / "perfect_answer.jsonl"
SHIFT = 2.0  # the classes add -1 and +1 to the box


def perfect_answers(data: sp.Dataset) -> tuple[sp.Explanation, np.ndarray]:
    """Return the answers to all test series of class 0, and their rows."""
    rows = np.flatnonzero(data.y_test == 0)
    query = data.X_test[rows]
    answer = query + SHIFT * data.salient_test[rows]
    n = len(rows)
    e = sp.Explanation(
        query=query,
        counterfactual=answer.astype(query.dtype),
        target=np.ones(n, dtype=np.int64),
        status=np.full(n, "generated"),
        reason=np.full(n, ""),
        query_index=np.arange(n),
        proba_before=np.tile([1.0, 0.0], (n, 1)),
        proba_after=np.tile([0.0, 1.0], (n, 1)),
        info=SeriesInfo.from_series(data.X_train, data.class_names, source=data),
        mutable=np.ones(data.n_features, dtype=bool),
    )
    return e, rows


def measure(data: sp.Dataset) -> dict[str, float]:
    """Return the measures of the perfect answers."""
    e, rows = perfect_answers(data)
    found = {
        "queries": len(e),
        "oracle": (data.oracle(e.counterfactual, rows) == 1).mean(),
        "sparsity": sparsity.sparsity(e).mean(),
        "similarity": proximity.similarity(e).mean(),
        "smoothness": smoothness.smoothness(e).mean(),
        "saliency_auc": np.nanmean(saliency.salient_auc(e, data.salient_test[rows])),
        "universality": universality.universality(e),
    }
    return {name: round(float(value), 4) for name, value in found.items()}


if __name__ == "__main__":
    row = measure(sp.load_dataset("moving_box")) | {"code": code_digest()}
    RESULTS.write_text(json.dumps(row) + "\n")
    print(row)
