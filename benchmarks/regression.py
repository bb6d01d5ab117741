"""Forecasts explained: MotionSense cut into a second and what follows, stored in ``results/regression.jsonl``.

    SPARCETS_DATA=FOLDER python benchmarks/regression.py [network|forest|neighbours ...] [--seed 0]

The numbers are the mean strength of the acceleration in the next half second and in the one after it. Two questions are
asked of each model: for quiet recordings, strong acceleration later, and a third more than the model expects now. The
judges are regressors of six families; those of the families ``distances`` and ``statistics`` have no part in the
method, and none of them is the explained model. The seed decides which people are held out, and all trainings.
"""

import argparse
import time

import numpy as np
import torch
from sklearn.ensemble import RandomForestRegressor
from sklearn.neighbors import KNeighborsRegressor
from stored import COMMIT, store
from torch import nn

import sparcets as sp
from sparcets.evaluation.families import summary_statistics

TRAINING = 1200
QUERIES = {"network": 40, "forest": 20, "neighbours": 20}  # of black boxes fewer
ACCELERATION = slice(9, 12)
UNUSED = ("distances", "statistics")  # families of judges that the method does not use


def cut(seed: int) -> sp.Dataset:
    """Return the first second of each recording, and what it is to be forecast from it."""
    source = sp.load_dataset("motionsense", activities="all", split="subject", seed=seed)
    rng = np.random.default_rng(seed)
    train = rng.permutation(len(source.X_train))[:TRAINING]
    X = np.concatenate([source.X_train[train], source.X_test])
    strength = np.linalg.norm(X[:, 50:, ACCELERATION], axis=2)
    return sp.Dataset.from_arrays(
        X[:, :50],
        np.stack([strength[:, :25].mean(1), strength[:, 25:].mean(1)], axis=1),
        split=(np.arange(TRAINING), np.arange(TRAINING, len(X))),
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


def network(data: sp.Dataset, seed: int) -> sp.wrap:
    torch.manual_seed(seed)
    model, y = Network(data.X_train), torch.tensor(data.y_train, dtype=torch.float32)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)
    for _ in range(40):
        for rows in torch.randperm(len(y)).split(64):
            optimiser.zero_grad()
            (model(torch.tensor(data.X_train[rows])) - y[rows]).square().mean().backward()
            optimiser.step()
    return sp.wrap(model, task="regression")


def forest(data: sp.Dataset, seed: int) -> sp.wrap:
    model = RandomForestRegressor(100, min_samples_leaf=3, random_state=seed)
    model.fit(summary_statistics(data.X_train), data.y_train)
    return sp.wrap(lambda X: model.predict(summary_statistics(X)), task="regression")


def neighbours(data: sp.Dataset, seed: int) -> sp.wrap:
    center, scale = data.X_train.mean((0, 1)), data.X_train.std((0, 1))
    model = KNeighborsRegressor(10).fit(((data.X_train - center) / scale).reshape(len(data.X_train), -1), data.y_train)
    return sp.wrap(lambda X: model.predict(((X - center) / scale).reshape(len(X), -1)), task="regression")


MODELS = {"network": network, "forest": forest, "neighbours": neighbours}


def measure(name: str, seed: int) -> None:
    """Explain one model by our own method and by real series, and store a row for each question."""
    data = cut(seed)
    low, high = np.quantile(data.y_train[:, 1], (0.4, 0.75))
    model = MODELS[name](data, seed)
    predicted = model.predict(data.X_test)
    left = ((predicted - data.y_test) ** 2).sum() / ((data.y_test - data.y_test.mean(0)) ** 2).sum()
    began = time.process_time()
    explainer = sp.Explainer(model, sp.ExplainerConfig(seed=seed)).fit(data, progress=False)
    fitted = time.process_time() - began
    judges = sp.find_judges(data, model, progress=False)
    queries = data.X_test[np.flatnonzero(predicted[:, 1] < low)[: QUERIES[name]]]
    more = float(np.median(predicted[predicted[:, 1] < low, 1])) / 3
    for target in (sp.AtLeast(round(float(high), 3), output=1), sp.Change(round(more, 3), output=1)):
        for method in (explainer, sp.Nearest(model).fit(data)):
            began = time.process_time()
            e = method.explain(queries, target=target, progress=False)
            seconds = time.process_time() - began
            mean = {
                measure: value["mean"]
                for measure, value in sp.evaluate(
                    e, data, classifier=model, judges=judges, progress=False
                ).summary.items()
            }
            moves = {family: round(mean[f"direction_{family}"], 4) for family in judges}
            row = {"model": name, "seed": seed, "explained_variance": round(1 - float(left), 4)}
            row |= {"method": method.method, "question": type(target).__name__, "target": str(e.target[0])}
            row |= {"queries": len(queries)}
            row |= {key: round(mean[key], 4) for key in ("valid", "transfer", "direction", "sparsity")}
            row |= {"direction_unused": round(float(np.mean([moves[family] for family in UNUSED])), 4)}
            row |= {"moves": moves, "believed": round(float(e.believed.mean()), 4)}
            row |= {"fit_cpu_seconds": round(fitted, 1), "explain_cpu_seconds": round(seconds, 1), "commit": COMMIT}
            store("regression.jsonl", row, ("model", "seed", "method", "question"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(MODELS), help=", ".join(MODELS))
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    for chosen in asked.models:
        measure(chosen, asked.seed)
