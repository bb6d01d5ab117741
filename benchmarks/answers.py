"""Answers of every method with tiny settings and seed 0, to show that a change of the code leaves them as they were.

    python benchmarks/answers.py write before.npz      on the one commit
    python benchmarks/answers.py write after.npz       on the other
    python benchmarks/answers.py compare before.npz after.npz

Run both with OMP_NUM_THREADS=1: sums over threads may differ in the last bits.
"""

from __future__ import annotations

import dataclasses
import logging
import sys
from typing import Any

import numpy as np

import sparcets as sp
from sparcets.config.models import DiscriminatorConfig, GeneratorConfig
from sparcets.config.runs import TrainConfig
from sparcets.testing.data import make_series

X, Y = make_series(120, seed=0)
QUERIES, _ = make_series(36, seed=1)
LIMITS = sp.Constraints(immutable=[0], frozen=[(0, 5)], max_step={1: 0.5})
SPLIT = hasattr(sp, "Explainer")  # before, Sparce was both our own method and the paper's


def own(classifier: Any, **settings: Any) -> Any:
    """Return our own method with tiny settings, not fitted; settings by their names of today."""
    if SPLIT:
        return sp.Explainer(classifier, dataclasses.replace(sp.ExplainerConfig.tiny(), **settings))
    before = {"prototypes": "guide", "auxiliaries": "witnesses"}
    renamed = {before[name]: value for name, value in settings.items()}
    return sp.Sparce(classifier, dataclasses.replace(sp.SparceConfig.tiny(), **renamed))


def paper(**settings: Any) -> Any:
    """Return settings of the paper's SPARCE for every target class."""
    if not SPLIT:
        settings |= {"recipe": "paper", "weights": sp.LossWeights(), "discriminator": DiscriminatorConfig()}
    return sp.SparceConfig(**settings)


def explainers() -> dict[str, Any]:
    """Return all explainers by name, not fitted."""
    fcn, lstm = (
        sp.TorchClassifier(kind, sp.ClassifierConfig.tiny()).fit(X, Y, progress=False) for kind in ("fcn", "bilstm")
    )
    short = sp.SparceConfig.paper(target=1)
    short = dataclasses.replace(
        short,
        train=dataclasses.replace(short.train, epochs=5),
        generator=dataclasses.replace(short.generator, hidden=16),
    )
    every = paper(generator=GeneratorConfig(hidden=16), train=TrainConfig(epochs=6, batch_size=32, lr=3e-3))
    return {
        **{name: getattr(sp, name)(fcn, getattr(sp, f"{name}Config").tiny()) for name in ("Nearest", "Ics", "Gan")},
        "CounterGan": sp.CounterGan(fcn, sp.CounterGanConfig.tiny()),
        "own": own(fcn),
        "own, bilstm": own(lstm),
        "own, black box": own(sp.wrap(lambda Z: fcn.predict_proba(Z), n_classes=3)),
        "own, search": own(fcn, proposals="search"),
        "own, the model alone": own(fcn, believed_by="model"),
        "SPARCE, every target": sp.Sparce(fcn, every),
        "SPARCE, paper": sp.Sparce(fcn, short),
    }


def write(path: str) -> None:
    """Write all answers into a file."""
    arrays = {}
    for name, explainer in explainers().items():
        explainer.fit(X, Y, progress=False)
        calls: dict[str, dict[str, Any]] = {
            "plain": {},
            "capped": {"sparsity": 0.1},
            "limited": {"constraints": LIMITS},
            "three": {"n": 3},
        }
        for call, options in calls.items():
            e = explainer.explain(QUERIES, target=1, progress=False, **options)
            for part in ("counterfactual", "proba_after"):
                arrays[f"{name}/{call}/{part}"] = getattr(e, part)
            arrays[f"{name}/{call}/status"] = e.status.astype(str)
        print(name)
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
    if len(sys.argv) == 3 and sys.argv[1] == "write":
        write(sys.argv[2])
    elif len(sys.argv) == 4 and sys.argv[1] == "compare":
        sys.exit(compare(*sys.argv[2:]) > 0)
    else:
        sys.exit(__doc__)
