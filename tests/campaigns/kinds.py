"""Every kind of file that sparcets reads: how one is written, and what is read of it."""

import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

import sparcets as sp
from sparcets.data.motionsense import FEATURES, load_motionsense
from sparcets.data.ui_prmd import FEATURES as JOINTS
from sparcets.data.ui_prmd import load_ui_prmd
from sparcets.evaluation.scores import Scores
from sparcets.io.explanations import ShardWriter
from sparcets.methods import EXPLAINERS
from sparcets.methods.base import BaseExplainer
from sparcets.methods.folder import load_fit, write_fit
from sparcets.motion.catching import CLASS_NAMES, load_catching
from sparcets.testing.data import make_series
from sparcets.testing.mocks import mean_proba
from sparcets.training.checkpoint import Checkpoint
from sparcets.training.loop import History
from sparcets_paper.benchmark.store import ResultStore

X, Y = make_series(30, n_steps=5)
BLACK_BOX = sp.wrap(mean_proba, class_names=["calm", "brisk", "wild"])
ANSWERS = ("query", "counterfactual", "target", "status", "reason", "query_index", "proba_before", "proba_after")


@dataclass(frozen=True)
class Kind:
    """A kind of file, or of folder of files.

    Attributes
    ----------
    write
        Writes an example into an empty folder.
    read
        Returns its content, as values that can be compared.
    guarded
        Whether digests keep damage from being read as something else.
    same
        Whether what was read is what was written: called with both.
    share
        How often it is tried, in comparison with the others; less where reading takes long.
    slow
        Whether it takes seconds to write the first example; such a kind is not part of a small dose.
    """

    write: Callable[[Path], object]
    read: Callable[[Path], Any]
    guarded: bool = True
    same: Callable[[Any, Any], bool] = lambda expected, found: bool(expected == found)
    share: float = 1.0
    slow: bool = False


# Models


@cache
def classifier(seed: int = 0) -> sp.TorchClassifier:
    small = {"epochs": 1, "hidden": 2, "layers": 1, "device": "cpu", "seed": seed}
    tiny = {**sp.ClassifierConfig.tiny().to_dict(), **small}
    return sp.TorchClassifier("bilstm", sp.ClassifierConfig.from_dict(tiny)).fit(X, Y, progress=False)


@cache
def explainer(method: str) -> BaseExplainer[Any]:
    kind = EXPLAINERS.load(method)
    small = {"sparcets": ("families=('quantiles',)", "device=cpu"), "nearest": (), "ics": ("device=cpu",)}.get(
        method, ("train.epochs=1", "generator.hidden=2", "discriminator.hidden=2", "device=cpu")
    )
    return kind(_explained(method), kind.config_class.tiny().override(*small)).fit(X, Y, progress=False)


def _explained(method: str) -> Any:
    return BLACK_BOX if method == "nearest" else classifier()


@cache
def explanation(n: int = 4) -> sp.Explanation:
    answers = explainer("nearest").explain(X[:n], 1, progress=False)
    return replace(answers, seconds=0.5)  # the same bytes every time


def of_classifier(folder: Path) -> Any:
    clf = sp.load_classifier(folder, device="cpu")
    repr(clf), clf.class_names
    weights = {name: weight.numpy().tobytes() for name, weight in clf.weights().items()}
    return weights, {name: value for name, value in clf.header().items() if name != "config"}


def of_explainer(folder: Path, method: str) -> Any:
    ex = sp.load(folder, _explained(method))
    repr(ex)
    state = {name: np.asarray(array).tobytes() for name, array in ex._state().items()}
    return state, ex._fitted().to_dict(), ex.config, ex.constraints_.to_dict(), ex.history_


@cache
def nearest(seed: int = 0) -> sp.Nearest:
    """Return an explainer of a classifier of that seed."""
    return sp.Nearest(classifier(seed), sp.NearestConfig.tiny()).fit(X, Y)


def save_fit(folder: Path, seed: int = 0) -> None:
    run = {"dataset": "mine.csv", "dataset_options": {}, "method": "nearest", "seed": seed}
    write_fit(folder, classifier(seed).save, nearest(seed), run)


def read_fit(folder: Path) -> Any:
    run, ex = load_fit(folder, device="cpu")
    return run, {name: array.tobytes() for name, array in ex._state().items()}, ex.classifier.digest()


def checkpoint(folder: Path, *, seed: int) -> Checkpoint:
    generator = torch.Generator().manual_seed(seed)
    network = torch.nn.Linear(3, 2)
    for weight in network.parameters():
        torch.nn.init.normal_(weight, generator=generator)
    optimiser = torch.optim.Adam(network.parameters())
    network(torch.ones(2, 3)).sum().backward()
    optimiser.step()
    history = History()
    history.values = {"loss": [0.5, 0.25]}
    proba = torch.full((4, 3), 1 / 3)
    return Checkpoint(
        folder, {"generator": network}, {"generator": optimiser}, history, identity="training", reference_proba=proba
    )


def of_checkpoint(folder: Path) -> Any:
    stored = checkpoint(folder, seed=1)
    epoch = stored.resume()
    return epoch, stored.history.values, {name: t.numpy().tobytes() for name, t in stored._tensors().items()}


# Explanations and results


def of_explanation(e: sp.Explanation) -> Any:
    repr(e), e.valid, e.share_changed
    arrays = [getattr(e, name).tobytes() for name in (*ANSWERS, "mutable")]
    return arrays, e.info.to_dict(), dict(e.config), dict(e.constraints), e.seed, e.seconds, e.method


def of_shards(folder: Path) -> Any:
    e = sp.load_explanation(folder)
    return of_explanation(e), len(e), of_explanation(e[:2])[:2]


def _write_shards(folder: Path) -> None:
    writer = ShardWriter(folder, {"n": 1})
    for number in range(2):
        writer.write(number, explanation()[2 * number : 2 * number + 2])
    writer.finish(2)


def of_scores(folder: Path) -> Any:
    scores = Scores.load(folder / "scores.json")
    return repr(scores), scores.to_markdown(), scores.to_dict()


def _write_results(folder: Path) -> None:
    for key in "abc":
        ResultStore(folder / "results.jsonl").append(
            {"key": key, "measures": {"valid": 0.5, "transfer": 0.25}, "fit_s": 3.25, "label": "é", "method": "nearest"}
        )


def _write_record(folder: Path) -> None:
    from sparcets.studio.workspace import Workspace, dataset_record, write_record

    (Workspace(folder).folder / "datasets" / "mine").mkdir()
    dataset = sp.Dataset.from_arrays(X, Y, test_size=0.3)
    record = dataset_record(dataset, "mine", source="mine.csv", uploaded=True, seed=0)
    write_record(folder / "datasets" / "mine", record)


def _read_record(folder: Path) -> Any:
    from sparcets.studio.models import DatasetRecord
    from sparcets.studio.workspace import Workspace

    return Workspace(folder).record(DatasetRecord, "mine").model_dump()


# Data sets


def of_dataset(dataset: sp.Dataset) -> Any:
    repr(dataset)
    for part in (dataset.X_train, dataset.X_test):
        assert part.ndim == 3 and part.dtype in (np.float32, np.float64), part.dtype
        assert not np.isinf(part).any()  # NaN is a missing value
    for labels in (dataset.y_train, dataset.y_test):
        assert labels.dtype == np.int64 and (len(labels) == 0 or labels.max() < len(dataset.class_names))
    return dataset.X_train.tobytes(), dataset.y_train.tobytes(), dataset.class_names, dataset.feature_names


def _table(folder: Path, form: str, suffix: str) -> None:
    wide = pd.DataFrame(X[:12, :2, :2].reshape(12, 4), columns=["é_0", "b_0", "é_1", "b_1"])
    wide = wide.assign(label=["wälk", "sit"] * 6, subject=[f"p{i // 2}" for i in range(12)])
    steps = [(i, t) for i in range(8) for t in range(2)]
    known: dict[str, Any] = {"series": [f"s{i}" for i, _ in steps], "time": [t for _, t in steps]}
    known["label"] = [("sit", "walk")[i % 2] for i, _ in steps]
    values = {name: [float(X[i, t, j]) for i, t in steps] for j, name in enumerate(("acc", "gyro"))}
    tidy = pd.concat(pd.DataFrame({**known, "feature": name, "value": column}) for name, column in values.items())
    dated = {**known, "time": pd.to_datetime(known["time"], unit="s")}
    frames = {"wide": wide, "long": pd.DataFrame({**known, **values}), "tidy": tidy}
    frames["dated"] = pd.DataFrame({**dated, **values, "split": ["train"] * 12 + ["test"] * 4})
    if suffix == "csv":
        frames[form].to_csv(folder / "mine.csv", index=False)
    else:
        frames[form].to_parquet(folder / "mine.parquet", compression=None)


def _write_ts(folder: Path) -> None:
    lines = ["@problemName mine", "@timeStamps false", "@univariate false", "@dimensions 2", "@equalLength true"]
    lines += ["@seriesLength 4", "@classLabel true walk sit", "@data"]
    for i in range(8):
        lines.append(
            ":".join(",".join(f"{v:.4g}" for v in X[i, :4, j]) for j in range(2)) + f":{('walk', 'sit')[i % 2]}"
        )
    for part in ("TRAIN", "TEST"):
        (folder / f"mine_{part}.ts").write_text("\n".join(lines) + "\n")


def _write_npz(folder: Path) -> None:
    subjects, lengths = np.repeat(np.arange(15), 2).astype(str), np.full(30, 5)
    names = {"feature_names": ["a", "b", "c"], "units": ["m", "m", "s"], "sampling_rate": 10.0}
    np.savez(folder / "mine.npz", X=X[..., :3], y=Y, subjects=subjects, lengths=lengths, **names)


def _write_ui_prmd(folder: Path) -> None:
    words, people = np.array(["correct", "incorrect"] * 4), np.repeat(np.arange(4), 2)
    np.savez_compressed(folder / "ui.npz", X=np.zeros((8, 100, 12)), y=words, subject=people, feature_names=JOINTS)


def _recordings() -> dict[str, str]:
    rows = [",".join(["", *FEATURES])]
    rows += [",".join([str(t), *(f"{np.sin(t + i):.3f}" for i in range(12))]) for t in range(101)]
    names = [f"{activity}_{trial}/sub_{who}.csv" for activity, trial in (("dws", 1), ("wlk", 7)) for who in (1, 2)]
    return {name: "\n".join(rows) + "\n" for name in names}


def _write_motionsense(folder: Path) -> None:
    for name, text in _recordings().items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)


def _write_motionsense_zip(folder: Path) -> None:
    with zipfile.ZipFile(folder / "motion.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in _recordings().items():
            archive.writestr(f"A_DeviceMotion_data/{name}", text)


def _write_catching(folder: Path) -> None:
    series = np.random.default_rng(0).normal(size=(8, 60, 20)).astype(np.float32)
    for part in ("train", "test"):
        np.save(folder / f"X_{part}.npy", series)
        np.save(folder / f"y_{part}.npy", np.eye(len(CLASS_NAMES))[np.arange(8) % len(CLASS_NAMES)])


def _read_motionsense(path: Path) -> Any:
    return of_dataset(load_motionsense(path=path, activities=["dws", "wlk"]))


METHODS = {"nearest": 1.0, "ics": 1.0, "sparce": 0.3, "gan": 0.2, "countergan": 0.2, "sparcets": 0.2}
TABLES = [(form, suffix) for form in ("wide", "long", "tidy", "dated") for suffix in ("csv", "parquet")]

KINDS: dict[str, Kind] = {
    "classifier": Kind(lambda f: classifier().save(f), of_classifier),
    **{
        f"explainer {method}": Kind(
            lambda f, m=method: explainer(m).save(f),
            lambda f, m=method: of_explainer(f, m),
            share=share,
            slow=method == "sparcets",
        )
        for method, share in METHODS.items()
    },
    "fit": Kind(save_fit, read_fit, share=0.5),
    "checkpoint": Kind(lambda f: checkpoint(f, seed=0).on_epoch_end(2, {}), of_checkpoint),
    "explanation": Kind(
        lambda f: explanation().save(f / "run.npz"), lambda f: of_explanation(sp.load_explanation(f / "run.npz"))
    ),
    "shards": Kind(_write_shards, of_shards, share=0.5),
    "scores": Kind(lambda f: sp.evaluate(explanation()).save(f / "scores.json"), of_scores),
    "results": Kind(
        _write_results,
        lambda f: ResultStore(f / "results.jsonl").rows(),
        # Lines may be missing: an interrupted append leaves an incomplete one, which is ignored.
        same=lambda expected, found: all(row in expected for row in found),
    ),
    "record of the studio": Kind(_write_record, _read_record),
    **{
        f"{form} {suffix}": Kind(
            lambda f, form=form, suffix=suffix: _table(f, form, suffix),
            lambda f, suffix=suffix: of_dataset(sp.load_dataset(f / f"mine.{suffix}")),
            guarded=False,
            share=0.5,
        )
        for form, suffix in TABLES
    },
    "ts": Kind(_write_ts, lambda f: of_dataset(sp.load_dataset(f / "mine_TRAIN.ts")), guarded=False, slow=True),
    "npz": Kind(_write_npz, lambda f: of_dataset(sp.load_dataset(f / "mine.npz")), guarded=False),
    "ui_prmd": Kind(_write_ui_prmd, lambda f: of_dataset(load_ui_prmd(path=f / "ui.npz")), guarded=False),
    "motionsense": Kind(_write_motionsense, _read_motionsense, guarded=False, share=0.3),
    "motionsense zip": Kind(
        _write_motionsense_zip, lambda f: _read_motionsense(f / "motion.zip"), guarded=False, share=0.3
    ),
    "catching": Kind(_write_catching, lambda f: of_dataset(load_catching(path=f)), guarded=False),
}
