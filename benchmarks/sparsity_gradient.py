"""Gradients for the sparsity term: SPARCE for every target on simulated catching, with one form at a time.

    python benchmarks/sparsity_gradient.py [ratio|exponential|clip|hard_concrete ...]

``ratio`` is |δ|/(|δ| + ε), ``exponential`` 1 − exp(−|δ|/ε), ``clip`` min(|δ|/ε, 1), each straight-through behind the
exact count (ε = 0.1); ``hard_concrete`` replaces the sparsity layer by a linear head with a hard-concrete gate per
entry (Louizos et al. 2018) and counts the gates expected to be open. Five seeds, one JSON line each in
``results/sparsity_gradient.jsonl``, which ``make docs`` turns into a table in ``docs/methods.md``. Two
minutes on a GPU, an hour on a core.
"""

import json
import os
import sys
import time
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import numpy as np
import torch
from torch import nn

import sparcets as sp
from sparcets.evaluation import measures as proximity
from sparcets.evaluation import measures as smoothness
from sparcets.evaluation import measures as universality
from sparcets.training import generator as generators
from sparcets.training import losses
from sparcets_paper.reproduce.provenance import code_digest

RESULTS = Path(os.environ.get("SPARCETS_RESULTS", Path(__file__).parents[1] / "results")) / "sparsity_gradient.jsonl"
SEEDS = range(5)
EPSILON = 0.1
FORMS = {
    "ratio": lambda size: size / (size + EPSILON),
    "exponential": lambda size: 1 - torch.exp(-size / EPSILON),
    "clip": lambda size: (size / EPSILON).clamp(max=1),
}
BETA, GAMMA, ZETA = 2 / 3, -0.1, 1.1  # of the hard-concrete distribution, values of its authors


class GatedHead(nn.Module):
    """A linear value times a gate in [0, 1]."""

    open_share = torch.zeros(1)

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.value, self.gate = nn.Linear(inputs, outputs), nn.Linear(inputs, outputs)

    def forward(self, h):
        """Return gated values."""
        log_alpha = self.gate(h)
        if self.training:
            u = torch.rand_like(log_alpha).clamp(1e-6, 1 - 1e-6)
            soft = torch.sigmoid((u.log() - (1 - u).log() + log_alpha) / BETA)
        else:
            soft = torch.sigmoid(log_alpha)
        GatedHead.open_share = torch.sigmoid(log_alpha - BETA * np.log(-GAMMA / ZETA)).mean((1, 2))  # (batch,)
        return self.value(h) * (soft * (ZETA - GAMMA) + GAMMA).clamp(0, 1)


def straight_through(form):
    def sparsity(delta, n_mutable, lengths=None):
        smooth = form(delta.abs()).sum((1, 2)) / (losses.true_steps(delta, lengths) * n_mutable)
        return smooth + (losses.count_changed(delta, n_mutable, lengths) - smooth).detach()

    return sparsity


@contextmanager
def replaced(name: str):
    """Use a form of the sparsity term, and undo it."""
    before = generators.SparsityLayer, losses.sparsity
    try:
        if name == "hard_concrete":
            generators.SparsityLayer = GatedHead
            losses.sparsity = lambda delta, n_mutable, lengths=None: GatedHead.open_share
        else:
            losses.sparsity = straight_through(FORMS[name])
        yield
    finally:
        generators.SparsityLayer, losses.sparsity = before


def measure(name: str, classifier, data, config: sp.SparceConfig | None = None) -> dict:
    """Return the measures of SPARCE with one form."""
    rows = data.y_test != data.class_names.index("Control")
    started = time.perf_counter()
    with replaced(name):
        e = sp.Sparce(classifier, config).fit(data).explain(data.X_test[rows], "Control")
    e = e[e.status != "unchanged"]
    row = {
        "form": name,
        "valid": e.valid.mean(),
        "sparsity": e.share_changed.mean(),
        "similarity": proximity.similarity(e).mean(),
        "smoothness": smoothness.smoothness(e).mean(),
        "universality": universality.universality(e),
        "seconds": time.perf_counter() - started,
    }
    return {k: v if isinstance(v, str) else round(float(v), 4) for k, v in row.items()}


def main(names: list[str]) -> None:
    torch.set_num_threads(1)
    data = sp.load_dataset("catching")
    classifier = sp.TorchClassifier("bilstm").fit(data)
    accuracy = round(float((classifier.predict(data.X_test) == data.y_test).mean()), 4)
    for seed, name in product(SEEDS, names or [*FORMS, "hard_concrete"]):
        row = measure(name, classifier, data, sp.SparceConfig(seed=seed))
        row |= {"accuracy": accuracy, "seed": seed, "code": code_digest(), "torch": torch.__version__}
        row["device"] = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
        with RESULTS.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(row, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
