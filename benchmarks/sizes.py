"""Long, short, wide and uneven data with default settings: seconds and answers, stored in ``results/sizes.jsonl``.

    python benchmarks/sizes.py ["long" "one step" ...]

Seconds are CPU time of the process. The model is a small convolutional network of the user's own. A row that is
measured again replaces the one before.
"""

import sys
import time
from typing import Any

import numpy as np
import torch
from stored import COMMIT, store
from torch import nn

import sparcets as sp
from sparcets.core.series import Series

QUERIES = 20
# name -> series of each class, steps, features; the longest series of "unequal" have so many steps, the others fewer
CASES: dict[str, tuple[tuple[int, ...], int, int]] = {
    "long": ((50, 50, 50), 3000, 8),
    "longer": ((50, 50, 50), 20_000, 2),
    "unequal": ((50, 50, 50), 3000, 8),
    "one step": ((30, 30), 1, 4),
    "five steps": ((30, 30), 5, 4),
    "one feature": ((30, 30), 50, 1),
    "wide": ((30, 30), 50, 500),
    "one series": ((30, 30, 1), 50, 4),
    "no series": ((30, 30, 0), 50, 4),
    "uneven": ((200, 3), 50, 4),
}


class Net(nn.Module):
    """Two convolutions and their largest and mean values."""

    def __init__(self, n_features: int, n_classes: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(n_features, 16, 25, stride=5, padding=12), nn.ReLU(), nn.Conv1d(16, 16, 9, padding=4), nn.ReLU()
        )
        self.head = nn.Linear(32, n_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return logits (batch, classes) of series (batch, time, features)."""
        hidden = self.layers(x.transpose(1, 2))
        return self.head(torch.cat([hidden.amax(2), hidden.mean(2)], 1))


def make(sizes: tuple[int, ...], n_steps: int, n_features: int, seed: int) -> tuple[Any, Any]:
    """Return noisy random walks and labels; class k > 0 has a bump of one feature, up or down, around the middle."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    X = rng.normal(0, 1, (len(y), n_steps, n_features)).cumsum(1) / np.sqrt(n_steps)
    X += rng.normal(0, 0.2, X.shape)
    middle = rng.uniform(0.3, 0.5, len(y)) * n_steps
    bump = 2 * np.exp(-0.5 * ((np.arange(n_steps) - middle[:, None]) / max(1, 0.05 * n_steps)) ** 2)
    for k in range(1, len(sizes)):
        X[y == k, :, k % n_features] += (-1) ** k * bump[y == k]
    return X.astype(np.float32), y


def train(X: Any, y: Any, n_classes: int) -> Any:
    """Return a wrapped network, trained on all classes alike."""
    torch.manual_seed(0)
    net = Net(X.shape[2], n_classes)
    optimiser = torch.optim.Adam(net.parameters(), 3e-3)
    weight = torch.tensor(1 / np.maximum(np.bincount(y, minlength=n_classes), 1), dtype=torch.float32)
    for _ in range(100):
        rows = torch.randperm(len(X))[:50]
        loss = nn.functional.cross_entropy(net(torch.tensor(X)[rows]), torch.tensor(y)[rows], weight=weight)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return sp.wrap(net, n_classes=n_classes)


def run(name: str) -> dict[str, Any]:
    """Fit and explain with default settings, and return what happened."""
    sizes, n_steps, n_features = CASES[name]
    X, y = make(sizes, n_steps, n_features, seed=0)
    queries, _ = make((QUERIES,) + (0,) * (len(sizes) - 1), n_steps, n_features, seed=1)
    model, lengths = train(X, y, len(sizes)), {}
    if name == "unequal":
        rng = np.random.default_rng(0)
        lengths = {n: rng.integers(0.6 * n_steps, n_steps, n, endpoint=True) for n in (len(X), len(queries))}
    start = time.process_time()
    explainer = sp.Explainer(model).fit(X, y, lengths=lengths.get(len(X)), progress=False)
    fitted = time.process_time()
    e = explainer.explain(queries, target=len(sizes) - 1, lengths=lengths.get(len(queries)), progress=False)
    seconds = {"fit_s": round(fitted - start, 1), "explain_s": round(time.process_time() - fitted, 1)}
    entries = Series(e.query, e.lengths).steps[e.valid] * n_features
    changed = (e.changed[e.valid].sum((1, 2)) / entries).mean() if e.valid.any() else None
    return {
        "case": name,
        "series": list(sizes),
        "steps": n_steps,
        "features": n_features,
        "queries": QUERIES,
        **seconds,
        "valid": float(e.valid.mean()),
        "believed": float(e.believed.mean()),
        "changed": None if changed is None else round(float(changed), 4),
        "version": sp.__version__,
        "commit": COMMIT,
    }


if __name__ == "__main__":
    for chosen in sys.argv[1:] or list(CASES):
        store("sizes.jsonl", run(chosen), ("case",))
