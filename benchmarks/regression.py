"""Forecasts explained: MotionSense cut into a second and what follows, stored in ``results/regression.jsonl``.

    SPARCETS_DATA=FOLDER python benchmarks/regression.py [network|forest|neighbours ...]

The numbers are the mean strength of the acceleration in the next half second and in the one after it. Two questions are
asked of each model: for quiet recordings, strong acceleration later, and a third more than the model expects now. The
judges are regressors of six families; those of the families ``distances`` and ``statistics`` have no part in the
method, and none of them is the explained model.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import torch
from sklearn.ensemble import RandomForestRegressor
from sklearn.neighbors import KNeighborsRegressor
from torch import nn

import sparcets as sp
from sparcets.evaluation.families import summary_statistics

RESULTS = Path(__file__).parents[1] / "results" / "regression.jsonl"
TRAINING, QUERIES, SEED = 1200, 40, 0
ACCELERATION = slice(9, 12)
UNUSED = ("distances", "statistics")  # families of judges that the method does not use


def cut() -> sp.Dataset:
    """Return the first second of each recording, and what it is to be forecast from it."""
    source = sp.load_dataset("motionsense", activities="all", split="subject", seed=SEED)
    rng = np.random.default_rng(SEED)
    train = rng.permutation(len(source.X_train))[:TRAINING]
    X = np.concatenate([source.X_train[train], source.X_test])
    strength = np.linalg.norm(X[:, 50:, ACCELERATION], axis=2)
    return sp.Dataset.from_rows(
        X[:, :50],
        np.stack([strength[:, :25].mean(1), strength[:, 25:].mean(1)], axis=1),
        train=np.arange(TRAINING),
        test=np.arange(TRAINING, len(X)),
        name="motionsense, the next second",
        feature_names=source.feature_names,
        units=source.units,
        sampling_rate=source.sampling_rate,
        task="regression",
        output_names=["acceleration in 0.5 s", "acceleration in 1 s"],
        output_units="g",
    )


class Network(nn.Module):
    """Two convolutions over time, of standardised series."""

    def __init__(self, X: np.ndarray) -> None:
        super().__init__()
        self.register_buffer("center", torch.tensor(X.mean((0, 1))))
        self.register_buffer("scale", torch.tensor(X.std((0, 1))))
        self.layers = nn.Sequential(
            nn.Conv1d(X.shape[2], 32, 7, padding=3),
            nn.ReLU(),
            nn.Conv1d(32, 32, 5, padding=2),
            nn.ReLU(),
            nn.AdaptiveAvgPool1d(5),
            nn.Flatten(),
            nn.Linear(160, 2),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the two numbers (batch, 2)."""
        return self.layers(((x - self.center) / self.scale).transpose(1, 2))


def network(data: sp.Dataset) -> sp.wrap:
    torch.manual_seed(SEED)
    model, y = Network(data.X_train), torch.tensor(data.y_train, dtype=torch.float32)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)
    for _ in range(40):
        for rows in torch.randperm(len(y)).split(64):
            optimiser.zero_grad()
            (model(torch.tensor(data.X_train[rows])) - y[rows]).square().mean().backward()
            optimiser.step()
    return sp.wrap(model, task="regression")


def forest(data: sp.Dataset) -> sp.wrap:
    model = RandomForestRegressor(100, min_samples_leaf=3, random_state=SEED)
    model.fit(summary_statistics(data.X_train), data.y_train)
    return sp.wrap(lambda X: model.predict(summary_statistics(X)), task="regression")


def neighbours(data: sp.Dataset) -> sp.wrap:
    center, scale = data.X_train.mean((0, 1)), data.X_train.std((0, 1))
    model = KNeighborsRegressor(10).fit(((data.X_train - center) / scale).reshape(len(data.X_train), -1), data.y_train)
    return sp.wrap(lambda X: model.predict(((X - center) / scale).reshape(len(X), -1)), task="regression")


def main() -> None:
    data = cut()
    low, high = np.quantile(data.y_train[:, 1], (0.4, 0.75))
    for name in sys.argv[1:] or ["network", "forest", "neighbours"]:
        model = {"network": network, "forest": forest, "neighbours": neighbours}[name](data)
        predicted = model.predict(data.X_test)
        left = ((predicted - data.y_test) ** 2).sum() / ((data.y_test - data.y_test.mean(0)) ** 2).sum()
        began = time.process_time()
        explainer = sp.Explainer(model, sp.ExplainerConfig(seed=SEED)).fit(data, progress=False)
        fitted = time.process_time() - began
        judges = sp.find_judges(data, model, progress=False)
        queries = data.X_test[np.flatnonzero(predicted[:, 1] < low)[:QUERIES]]
        more = float(np.median(predicted[predicted[:, 1] < low, 1])) / 3
        for target in (sp.AtLeast(round(float(high), 3), output=1), sp.Change(round(more, 3), output=1)):
            for method in (explainer, sp.Nearest(model).fit(data)):
                began = time.process_time()
                e = method.explain(queries, target=target, progress=False)
                seconds = time.process_time() - began
                every = sp.evaluate(e, data, classifier=model, judges=judges, progress=False)
                unused = {family: judges[family] for family in UNUSED if family in judges}
                alone = sp.evaluate(e, data, classifier=model, judges=unused, progress=False)
                mean = {k: round(every.summary[k]["mean"], 4) for k in ("valid", "transfer", "direction", "sparsity")}
                row = {"model": name, "explained_variance": round(1 - float(left), 4), "method": method.method}
                row |= {"target": str(e.target[0]), "queries": len(queries), **mean}
                row |= {f"{k}_unused": round(alone.summary[k]["mean"], 4) for k in ("transfer", "direction")}
                row |= {"believed": round(float(e.believed.mean()), 4), "judges": every.judges}
                row |= {"fit_cpu_seconds": round(fitted, 1), "explain_cpu_seconds": round(seconds, 1), "seed": SEED}
                with RESULTS.open("a") as file:
                    file.write(json.dumps(row) + "\n")
                print(row, flush=True)


if __name__ == "__main__":
    main()
