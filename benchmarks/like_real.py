"""Answers with and without the limits of real series, stored in ``results/like_real.jsonl``.

    python benchmarks/like_real.py [catching ui_prmd] [--seeds 0 1]

Test series that the classifier predicts right are explained towards a class that they are not in, with default
settings. Verdicts are counted, and the judges of ``sp.evaluate`` say what they make of the answers.
"""

import argparse
from collections import Counter

import numpy as np
from stored import COMMIT, store

import sparcets as sp
from sparcets.motion.limbs import like_real

QUERIES = 24
TARGETS = {"catching": "Control", "ui_prmd": "correct"}


def measure(name: str, seed: int) -> None:
    """Store one row with and one without the limits."""
    data = sp.load_dataset(name, seed=seed)
    classifier = sp.TorchClassifier("bilstm", sp.ClassifierConfig(seed=seed)).fit(data)
    right = classifier.predict(data.X_test) == data.y_test
    others = np.flatnonzero(right & (data.y_test != data.class_names.index(TARGETS[name])))
    queries = data.X_test[np.random.default_rng(seed).permutation(others)[:QUERIES]]
    explainer = sp.Explainer(classifier, sp.ExplainerConfig(seed=seed)).fit(data)
    for limits, constraints in (("none", None), ("like real series", like_real(explainer.info_))):
        e = explainer.explain(queries, TARGETS[name], constraints=constraints)
        scores = sp.evaluate(e, data, classifier=classifier, seed=seed)
        counted = Counter(str(verdict) for verdict in e.verdict)
        row = {"set": name, "seed": seed, "limits": limits, "queries": len(e), "valid": float(e.valid.mean())}
        row |= {verdict: counted[verdict] for verdict in ("believed", "doubtful", "trick")}
        row |= {
            "changed": float(scores.summary["sparsity"]["mean"]),
            "transfer": float(scores.summary["transfer"]["mean"]),
        }
        store("like_real.jsonl", {**row, "commit": COMMIT}, ("set", "seed", "limits"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=list(TARGETS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    asked = parser.parse_args()
    for name in asked.sets:
        for seed in asked.seeds:
            measure(name, seed)
