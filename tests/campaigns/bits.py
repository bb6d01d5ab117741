"""Bit for bit: what is saved is loaded, the same seed gives the same, and files keep the numbers.

To repeat a trial that failed: ``check(what, seed, folder)`` with the words and the number that it names.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import fields
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

import sparcets as sp
from sparcets.core.errors import TrainingError
from sparcets.core.explanation import PER_ANSWER
from sparcets.core.series import FloatArray
from sparcets.data.load import load_file, save_dataset
from tests.campaigns.material import Material, draw_material
from tests.campaigns.registry import Trial, campaign

CLOSE = 1e-6  # standardised: how far answers may be apart that were computed in batches of another size


class Comparison:
    """Counts the entries that were compared, and says which differ.

    Attributes
    ----------
    entries
        Number of entries compared bit for bit.
    problems
        Names of what differs.
    """

    def __init__(self) -> None:
        self.entries = 0
        self.problems: list[str] = []

    def arrays(self, name: str, a: Any, b: Any) -> None:
        """Compare two arrays: their types, shapes and bits."""
        a, b = np.asarray(a), np.asarray(b)
        self.entries += a.size
        if a.dtype != b.dtype or a.shape != b.shape or a.tobytes() != b.tobytes():
            self.problems.append(f"{name} ({a.dtype} {a.shape}, {b.dtype} {b.shape})")

    def explanations(self, name: str, a: sp.Explanation, b: sp.Explanation) -> None:
        """Compare all arrays of two explanations."""
        for part in (*PER_ANSWER, "mutable", "valid", "probability", "support", "believed", "verdict"):
            self.arrays(f"{name}: {part}", *(_plain(getattr(e, part)) for e in (a, b)))
        for part in ("plausibility", "curve"):
            for key, values in getattr(a, part).items():
                self.arrays(f"{name}: {key}", values, getattr(b, part)[key])
        if a.info.to_dict() != b.info.to_dict() or (a.method, a.seed, a.families) != (b.method, b.seed, b.families):
            self.problems.append(f"{name}: what is known of the data or the method")

    def datasets(self, name: str, a: sp.Dataset, b: sp.Dataset, *, without: tuple[str, ...] = ()) -> None:
        """Compare two data sets field by field."""
        for field in fields(a):
            one, other = getattr(a, field.name), getattr(b, field.name)
            if field.name in ("oracle", *without):
                continue
            if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
                self.arrays(f"{name}: {field.name}", one, other)
            elif type(one) is not type(other) or np.any(one != other):
                self.problems.append(f"{name}: {field.name} ({one!r}, {other!r})")


@campaign("results are the same bit for bit", trials=320, dose=12, parts=8)
def run(trials: int, rng: np.random.Generator, folder: Path) -> Iterator[Trial]:
    """Save and load, repeat, and take apart what was computed; every trial compares many entries."""
    kinds = cycle(CHECKS)
    for i in range(trials):
        (own := folder / str(i)).mkdir()
        yield check(next(kinds), int(rng.integers(2**31)), own)


def check(what: str, seed: int, folder: Path) -> Trial:
    """Make one trial."""
    comparison = Comparison()
    try:
        CHECKS[what](seed, folder, comparison)
    except Exception as error:  # whatever it is, it is a failure of the trial and not of the campaign
        comparison.problems.append(f"{type(error).__name__}: {error}")
    failure = f"check({what!r}, {seed}, folder): {'; '.join(comparison.problems)}" if comparison.problems else ""
    return Trial(failure, comparison.entries)


# Data sets.


def draw_dataset(seed: int, *, lengths: bool = True) -> sp.Dataset:
    """Draw a data set of any shape with everything that is known of one."""
    rng = np.random.default_rng([seed, 3])
    n, T, F, K = int(rng.integers(12, 60)), int(rng.integers(1, 61)), int(rng.integers(1, 13)), int(rng.integers(2, 5))
    X = numbers(rng, (n, T, F))
    y = np.array(["b", "A", "ü", "10"])[rng.permutation(np.arange(n) % K)]
    known: dict[str, Any] = {}
    if rng.random() < 0.5:
        known["feature_names"] = [f"feature {f}" for f in range(F)]
        known["mutable"] = rng.permutation(F) <= rng.integers(F)
        known["units"] = [f"m{f}" for f in range(F)]
    if rng.random() < 0.5:
        known["sampling_rate"] = float(rng.uniform(0.1, 100))
    if lengths and rng.random() < 0.5 and T > 1:
        known["lengths"] = rng.integers(1, T + 1, n)
    train, test = np.split(rng.permutation(n), [n - 3])
    return sp.Dataset.from_rows(X, y, train=np.r_[train, test], test=test, **known)


def numbers(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Draw numbers of any size and type: usual ones, whole ones, and some with all bits at random."""
    dtype = rng.choice([np.float32, np.float64])
    X = rng.normal(rng.choice([0, 1e9]), 10.0 ** rng.uniform(-6, 6), shape).astype(dtype)
    kind = rng.integers(3)
    if kind == 1:
        X = X.round(int(rng.integers(0, 6)))
    if kind == 2:
        wild = rng.integers(0, 2**31, shape, dtype=np.int32).view(np.float32)
        X = np.where(np.isfinite(wild) & (np.abs(wild) < 1e30), np.nan_to_num(wild).astype(dtype), X)
    return np.asarray(X)


def npz_files(seed: int, folder: Path, compare: Comparison) -> None:
    """A data set through .npz is the same in every field."""
    data = draw_dataset(seed)
    compare.datasets("npz", data, load_file(save_dataset(data, folder / f"{data.name}.npz")))


def tables(seed: int, folder: Path, compare: Comparison) -> None:
    """Numbers that were written with all digits, in text or in Parquet, are read with all digits."""
    import pandas as pd

    rng = np.random.default_rng([seed, 4])
    data = draw_dataset(seed, lengths=False)
    n, T, F = data.X_train.shape
    names = [f"feature_{f}_" for f in range(F)]
    index = {"series": np.repeat(np.arange(n), T), "time": np.tile(np.arange(T), n)}
    labels = np.array(data.class_names)[data.y_train]
    frame = pd.DataFrame({**index, "label": np.repeat(labels, T)})
    flat = data.X_train.reshape(n * T, F)
    for f, name in enumerate(names):
        frame[name] = flat[:, f]
    path = folder / "series.csv"
    if rng.random() < 0.5:
        path = folder / "series.parquet"
        frame.to_parquet(path)
    else:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(frame.columns)
            for row in zip(*(frame[column] for column in frame.columns), strict=True):
                writer.writerow([str(cell) for cell in row])
    read = load_file(path, test_size=0.3, seed=seed)
    digits = exact_numbers if path.suffix == ".parquet" else shortest_numbers
    written = digits(data.X_train)
    order = {row.tobytes(): i for i, row in enumerate(written)}
    for part in (read.X_train, read.X_test):
        found = digits(part)
        rows = [order.get(row.tobytes(), -1) for row in found]
        compare.arrays(path.name, found, written[rows])
        if -1 in rows:
            compare.problems.append(f"{path.name}: series {rows.index(-1)} is none of those written")


def exact_numbers(X: FloatArray) -> FloatArray:
    """Return the numbers in a type that holds them all."""
    return X.astype(np.float64)


def shortest_numbers(X: FloatArray) -> FloatArray:
    """Return the numbers of the shortest texts: the text 0.1 may be read as float32, which is not the float64 0.1."""
    return np.asarray(X.astype(str).astype(np.float64))


# Models and answers.


def draw_sized(seed: int) -> Material:
    """Draw data of any shape, with a model."""
    rng = np.random.default_rng([seed, 5])
    return draw_material(seed, n_steps=int(rng.integers(1, 61)), n_features=int(rng.integers(3, 13)))


def classifiers(seed: int, folder: Path, compare: Comparison) -> None:
    """A classifier that was saved and loaded, and one that was trained again, predict the same."""
    rng = np.random.default_rng([seed, 6])
    material = draw_sized(seed)
    architecture = str(rng.choice(["bilstm", "bigru", "fcn", "resnet", "tcn", "transformer"]))
    config = sp.ClassifierConfig.tiny().override("epochs=1", f"seed={seed}")
    one = sp.TorchClassifier(architecture, config).fit(material.X, material.y, progress=False)
    one.save(folder / "saved")
    for name, other in (
        ("loaded", sp.load_classifier(folder / "saved")),
        ("again", sp.TorchClassifier(architecture, config).fit(material.X, material.y, progress=False)),
    ):
        for key, weights in one.weights().items():
            compare.arrays(f"{architecture} {name}: {key}", weights.numpy(), other.weights()[key].numpy())
        for X in (material.queries, material.X, material.queries[:1]):
            compare.arrays(f"{architecture} {name}", one.predict_proba(X), other.predict_proba(X))


def explainers(seed: int, folder: Path, compare: Comparison) -> None:
    """An explainer that was saved and loaded, or fitted again, gives the same answers; so does a folder of shards."""
    material = draw_sized(seed)
    rng = np.random.default_rng([seed, 7])
    methods = [name for name in material.methods() if name != "sparcets" or seed % 8 == 0]
    method = str(rng.choice(methods))
    try:
        one = material.fitted(method)
    except TrainingError:
        return  # data of very different sizes, and two epochs
    options = {"sparsity": 0.4} if rng.random() < 0.3 else {"n": 2} if rng.random() < 0.3 else {}
    X = material.queries[: 6 if method == "sparcets" else 24]
    target = (material.classifier.predict(X) + 1) % (int(material.y.max()) + 1)
    e = one.explain(X, target, progress=False, **options)
    one.save(folder / "saved")
    loaded = sp.load(folder / "saved", classifier=material.classifier)
    again = material.build(method).fit(material.dataset(), progress=False)
    streamed = one.explain(X, target, progress=False, out=folder / "shards", **options)
    e.save(folder / "run.npz", compress=bool(rng.integers(2)))
    others = {
        "the same call": one.explain(X.copy(), target, progress=False, **options),
        "a loaded explainer": loaded.explain(X, target, progress=False, **options),
        "a second fit": again.explain(X, target, progress=False, **options),
        "a folder": streamed,
        "a loaded folder": sp.load_explanation(folder / "shards"),
        "a loaded file": sp.load_explanation(folder / "run.npz"),
        "all answers": e[:],
    }
    for name, other in others.items():
        compare.explanations(f"{method}, {name}", e, other)
    for name, values in one._state().items():
        compare.arrays(f"{method}, a second fit: {name}", values, again._state()[name])
        compare.arrays(f"{method}, a loaded explainer: {name}", values, loaded._state()[name])
    compare.arrays(f"{method}: the queries", np.repeat(X, options.get("n", 1), axis=0), e.query)
    same = e.counterfactual == e.query
    compare.arrays(f"{method}: unchanged entries", e.query[same], e.counterfactual[same])
    compare.arrays(f"{method}: changed", e.changed, ~same)
    for i in range(0, len(X), 5):  # one query alone; the last bits of a network follow the size of the batch
        alone, rows = one.explain(X[i : i + 1], target[i : i + 1], progress=False, **options), e.query_index == i
        if material.kind == "function" and method == "nearest":
            for part in ("counterfactual", "status", "proba_after"):
                compare.arrays(f"{method}, one query alone: {part}", getattr(e, part)[rows], getattr(alone, part))
        apart = np.abs(alone.counterfactual.astype(np.float64) - e.counterfactual[rows]) / e.info.scaler.scale
        if apart.max() > CLOSE + 2 * np.finfo(X.dtype).eps * np.abs(X / e.info.scaler.scale).max():
            compare.problems.append(f"{method}, one query alone: its answer is {apart.max():.2g} off")


def _plain(values: Any) -> Any:
    """Return text without its width, which differs between a part and the whole."""
    return values.astype("U200") if values.dtype.kind == "U" else values


CHECKS: dict[str, Callable[[int, Path, Comparison], None]] = {
    "npz files": npz_files,
    "tables": tables,
    "classifiers": classifiers,
    "explainers": explainers,
}
