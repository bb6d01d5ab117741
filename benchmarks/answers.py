"""Answers of every method with tiny settings and seed 0, to show that a change of the code leaves them as they were.

    python benchmarks/answers.py write before.npz      on the one commit
    python benchmarks/answers.py write after.npz       on the other
    python benchmarks/answers.py compare before.npz after.npz

Run both with OMP_NUM_THREADS=1: sums over threads may differ in the last bits. The script uses public names only:
the same file can be run on both commits.
"""

from __future__ import annotations

import logging
import sys
import warnings
from typing import Any

import numpy as np

import sparcets as sp
from sparcets.testing.data import make_series

X, Y = make_series(120, seed=0)
QUERIES, _ = make_series(36, seed=1)
LENGTHS, SHORT = 12 + np.arange(len(X)) % (X.shape[1] - 11), 12 + np.arange(len(QUERIES)) % (X.shape[1] - 11)
GAPS = np.where(np.random.default_rng(0).random(X.shape) < 0.05, np.nan, X).astype(X.dtype)
MISSING = np.where(np.random.default_rng(1).random(QUERIES.shape) < 0.05, np.nan, QUERIES).astype(X.dtype)
NUMBERS = X[:, :, 0].mean(1) * 3 + X[:, :, 1].max(1)
LIMITS = sp.Constraints(immutable=[0], frozen=[(0, 5)], max_step={1: 0.5})
CALLS: dict[str, dict[str, Any]] = {
    "plain": {},
    "capped": {"sparsity": 0.1},
    "limited": {"constraints": LIMITS},
    "three": {"n": 3},
    "sure": {"confidence": 0.9},
}


def explainers() -> dict[str, Any]:
    """Return all explainers by name, not fitted."""
    fcn, lstm = (
        sp.TorchClassifier(kind, sp.ClassifierConfig.tiny()).fit(X, Y, progress=False) for kind in ("fcn", "bilstm")
    )
    own = sp.ExplainerConfig.tiny()
    small = ("generator.hidden=16", "train.batch_size=32", "train.lr=0.003")
    return {
        **{name: getattr(sp, name)(fcn, getattr(sp, f"{name}Config").tiny()) for name in ("Nearest", "Ics", "Gan")},
        "CounterGan": sp.CounterGan(fcn, sp.CounterGanConfig.tiny()),
        "own": sp.Explainer(fcn, own),
        "own, bilstm": sp.Explainer(lstm, own),
        "own, black box": sp.Explainer(sp.wrap(lambda Z: fcn.predict_proba(Z), n_classes=3), own),
        "own, the model alone": sp.Explainer(fcn, own.override("believed_by=model")),
        "SPARCE, every target": sp.Sparce(fcn, sp.SparceConfig().override("train.epochs=6", *small)),
        "SPARCE, paper": sp.Sparce(
            fcn, sp.SparceConfig.paper(target=1).override("train.epochs=5", "generator.hidden=16")
        ),
    }


def mean(Z: Any) -> Any:
    """Return three probabilities by the means of the first features, whatever is missing or padded."""
    logits = 5 * np.nanmean(np.asarray(Z, dtype=np.float64)[:, :, :3], axis=1)
    odds = np.exp(logits - logits.max(1, keepdims=True))
    return odds / odds.sum(1, keepdims=True)


def answers() -> dict[str, Any]:
    """Return all explanations by name."""
    found = {}
    for name, explainer in explainers().items():
        explainer.fit(X, Y, progress=False)
        for call, options in CALLS.items():
            found[f"{name}/{call}"] = explainer.explain(QUERIES, target=1, progress=False, **options)
        print(name, flush=True)
    for method in ("Nearest", "Explainer"):
        config = getattr(sp, f"{method}Config").tiny()
        classifier = sp.TorchClassifier("fcn", sp.ClassifierConfig.tiny()).fit(X, Y, lengths=LENGTHS, progress=False)
        explainer = getattr(sp, method)(classifier, config).fit(X, Y, lengths=LENGTHS, progress=False)
        found[f"{method}/lengths"] = explainer.explain(QUERIES, target=1, lengths=SHORT, progress=False)
        explainer = getattr(sp, method)(sp.wrap(mean, n_classes=3, missing="keep"), config).fit(GAPS, Y, progress=False)
        found[f"{method}/gaps"] = explainer.explain(MISSING, target=1, progress=False)
        regressor = sp.wrap(lambda Z: Z[:, :, 0].mean(1) * 3 + Z[:, :, 1].max(1), task="regression")
        explainer = getattr(sp, method)(regressor, config).fit(X, NUMBERS, progress=False)
        found[f"{method}/numbers"] = explainer.explain(QUERIES, target=sp.Change(1.0), progress=False)
        print(method, "with lengths, gaps, numbers", flush=True)
    return found


def write(path: str) -> None:
    """Write all answers into a file."""
    arrays = {}
    for name, e in answers().items():
        for part in ("counterfactual", "proba_after"):
            arrays[f"{name}/{part}"] = getattr(e, part)
        arrays[f"{name}/status"] = e.status.astype(str)
    np.savez_compressed(path, **arrays)


def compare(before: str, after: str) -> int:
    """Print which arrays differ; return how many."""
    a, b = np.load(before, allow_pickle=False), np.load(after, allow_pickle=False)
    names = sorted(set(a.files) | set(b.files))
    both = [name for name in names if name in a.files and name in b.files]
    same = [name for name in both if np.array_equal(a[name], b[name], equal_nan=a[name].dtype.kind == "f")]
    different = [name for name in names if name not in same]
    print(f"{len(same)} of {len(names)} arrays are the same, bit for bit", *different, sep="\n  ")
    return len(different)


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")  # the black box of the means is not a good model
    if len(sys.argv) == 3 and sys.argv[1] == "write":
        write(sys.argv[2])
    elif len(sys.argv) == 4 and sys.argv[1] == "compare":
        sys.exit(compare(*sys.argv[2:]) > 0)
    else:
        sys.exit(__doc__)
