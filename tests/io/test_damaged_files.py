"""Damaged files: with bytes flipped, cut or inserted, each raises an error of ours or is read as something."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sparcets as sp
from sparcets.data.ui_prmd import FEATURES, load_ui_prmd
from sparcets.evaluation.scores import Scores
from sparcets.io.explanations import ExplanationFolder
from sparcets.testing.data import make_series
from sparcets.testing.mocks import mean_proba

N = 200
X, Y = make_series(30, n_steps=5)


def explained() -> Any:
    return sp.Nearest(sp.wrap(mean_proba)).fit(X, Y)


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Return the content with one to three random edits."""
    edited = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        at, n = int(rng.integers(len(edited))), int(rng.integers(1, 9))
        kind = rng.integers(3)
        if kind == 0:
            edited[at] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            del edited[at : at + n]
        else:
            edited[at:at] = rng.bytes(n)
    return bytes(edited)


def table(path: Path) -> None:
    frame = pd.DataFrame(X[:12, :2, :2].reshape(12, 4), columns=["é_0", "b_0", "é_1", "b_1"])
    frame = frame.assign(label=["wälk", "sit"] * 6, subject=[f"p{i}" for i in range(12)])
    frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path, compression=None)


def ui_prmd(path: Path) -> None:
    words, people = np.array(["correct", "incorrect"] * 4), np.repeat(np.arange(4), 2)
    np.savez_compressed(path, X=np.zeros((8, 100, 12)), y=words, subject=people, feature_names=np.array(FEATURES))


def read_shards(path: Path) -> None:
    folder = ExplanationFolder(path.parent)
    for name in ("query", "counterfactual", "target", "status", "reason", "proba_after", "evidence", "share_changed"):
        getattr(folder, name)
    folder[:2]


def read_scores(path: Path) -> None:
    scores = Scores.load(path)
    repr(scores), scores.to_markdown()


KINDS: dict[str, tuple[str, Callable[[Path], Any], Callable[[Path], Any]]] = {
    "csv": ("mine.csv", table, sp.load_dataset),
    "parquet": ("mine.parquet", table, sp.load_dataset),
    "npz": ("mine.npz", lambda path: np.savez(path, X=X, y=Y), sp.load_dataset),
    "ui_prmd": ("ui.npz", ui_prmd, lambda path: load_ui_prmd(path=path)),
    "shard": (
        "shard-000000.npz",
        lambda path: explained().explain(X[Y == 0][:2], target=1, out=path.parent, progress=False),
        read_shards,
    ),
    "header of shards": (
        "explanation.json",
        lambda path: explained().explain(X[Y == 0][:2], target=1, out=path.parent, progress=False),
        read_shards,
    ),
    "scores": (
        "scores.json",
        lambda path: sp.evaluate(explained().explain(X[Y == 0][:2], target=1)).save(path),
        read_scores,
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore")
def test_random_damage_raises_only_our_errors(kind: str, tmp_path: Path) -> None:
    name, write, read = KINDS[kind]
    path = tmp_path / name
    write(path)
    content, rng = path.read_bytes(), np.random.default_rng(0)
    read(path)
    refused = 0
    for _ in range(N):
        path.write_bytes(damaged(content, rng))
        try:
            read(path)
        except sp.SparcetsError:
            refused += 1
    assert refused > N // 10


@pytest.mark.parametrize("missing", ["summary", "per_query", "notes", "mean", "valid"])
def test_scores_with_something_missing(tmp_path: Path, missing: str) -> None:
    path = tmp_path / "scores.json"
    KINDS["scores"][1](path)
    data = json.loads(path.read_text())
    for part in (data, data["summary"]["valid"], data["per_query"]):
        part.pop(missing, None)
    path.write_text(json.dumps(data))
    with pytest.raises(sp.SparcetsError, match=r"scores\.json"):
        read_scores(path)


@pytest.mark.parametrize("read", [sp.load_dataset, sp.load_explanation, Scores.load], ids=["data", "answers", "scores"])
def test_a_name_that_is_too_long(tmp_path: Path, read: Callable[[Any], Any]) -> None:
    with pytest.raises(sp.SparcetsError, match="no file"):
        read(tmp_path / ("x" * 300 + ".npz"))
