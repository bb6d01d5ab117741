"""One flipped bit in any saved file is noticed, or changes nothing."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import sparcets as sp
from sparcets.core.errors import FileFormatError
from sparcets.evaluation.scores import Scores
from sparcets.io.locks import LOCK
from sparcets.testing.data import make_series
from sparcets.testing.mocks import mean_proba
from sparcets.training.checkpoint import Checkpoint
from sparcets.training.loop import History
from sparcets_paper.benchmark.store import ResultStore

X, Y = make_series(30, n_steps=8)
BLACK_BOX = sp.wrap(mean_proba, class_names=["calm", "brisk", "wild"])


def explainer() -> sp.Nearest:
    return sp.Nearest(BLACK_BOX).fit(X, Y)


def classifier() -> sp.TorchClassifier:
    tiny = {**sp.ClassifierConfig.tiny().to_dict(), "epochs": 1, "hidden": 4, "device": "cpu"}
    return sp.TorchClassifier("fcn", sp.ClassifierConfig.from_dict(tiny)).fit(X, Y)


def checkpoint(folder: Path, *, seed: int) -> Checkpoint:
    torch.manual_seed(seed)
    network = torch.nn.Linear(5, 3)
    optimiser = torch.optim.Adam(network.parameters())
    network(torch.ones(2, 5)).sum().backward()
    optimiser.step()
    return Checkpoint(
        folder,
        {"generator": network},
        {"generator": optimiser},
        History(),
        identity="training",
        reference_proba=torch.full((4, 3), 1 / 3),
    )


def of_classifier(folder: Path) -> Any:
    clf = sp.load_classifier(folder, device="cpu")
    weights = {name: weight.numpy().tobytes() for name, weight in clf.weights().items()}
    return weights, {name: value for name, value in clf.header().items() if name != "config"}


def of_explainer(folder: Path) -> Any:
    ex = sp.load(folder, BLACK_BOX)
    return {name: array.tobytes() for name, array in ex._state().items()}, ex.info_.to_dict(), ex.config  # type: ignore[union-attr]


def of_explanation(path: Path) -> Any:
    e = sp.load_explanation(path)
    names = ("query", "counterfactual", "target", "status", "reason", "query_index", "proba_after", "mutable")
    arrays = [getattr(e, name).tobytes() for name in names]
    return arrays, e.info.to_dict(), dict(e.config), dict(e.constraints), e.seed, e.seconds, e.method


def of_checkpoint(folder: Path) -> Any:
    stored = checkpoint(folder, seed=1)
    epoch = stored.resume()
    return epoch, stored.history.values, {name: t.numpy().tobytes() for name, t in stored._tensors().items()}


def write_results(folder: Path) -> None:
    for key in "abc":
        ResultStore(folder / "results.jsonl").append({"key": key, "measures": {"valid": 0.5, "transfer": 0.25}, "s": 3})


Write, Read = Callable[[Path], Any], Callable[[Path], Any]
KINDS: dict[str, tuple[Write, Read]] = {
    "classifier": (lambda f: classifier().save(f), of_classifier),
    "explainer": (lambda f: explainer().save(f), of_explainer),
    "explanation": (
        lambda f: explainer().explain(X[:4], 1).save(f / "run.npz"),
        lambda f: of_explanation(f / "run.npz"),
    ),
    "uncompressed": (
        lambda f: explainer().explain(X[:4], 1).save(f / "run.npz", compress=False),
        lambda f: of_explanation(f / "run.npz"),
    ),
    "shards": (lambda f: explainer().explain(X[:4], 1, out=f), of_explanation),
    "checkpoint": (lambda f: checkpoint(f, seed=0).on_epoch_end(2, {}), of_checkpoint),
    "results": (write_results, lambda f: ResultStore(f / "results.jsonl").rows()),
    "scores": (
        lambda f: sp.evaluate(explainer().explain(X[:4], 1)).save(f / "scores.json"),
        lambda f: Scores.load(f / "scores.json").to_dict(),
    ),
}


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_flipped_bit_is_noticed_or_harmless(kind: str, tmp_path: Path) -> None:
    write, read = KINDS[kind]
    write(tmp_path)
    expected = read(tmp_path)
    rng = np.random.default_rng(0)
    silent = []
    files = [file for file in sorted(tmp_path.iterdir()) if file.suffix != LOCK]
    for file in files:
        whole = file.read_bytes()
        for place in rng.integers(8 * len(whole), size=100):
            damaged = bytearray(whole)
            damaged[place // 8] ^= 1 << int(place % 8)
            file.write_bytes(damaged)
            try:
                noticed = read(tmp_path) == expected
            except FileFormatError as error:
                noticed = str(tmp_path) in str(error)
            if not noticed:
                silent.append((file.name, int(place)))
        file.write_bytes(whole)
    assert read(tmp_path) == expected
    assert not silent


@pytest.mark.parametrize("key", [b'"sha256"', b'"arrays"', b'"format"'])
def test_damage_of_the_digest_itself_is_noticed(key: bytes, tmp_path: Path) -> None:
    classifier().save(tmp_path)
    file = tmp_path / "classifier.json"
    whole = file.read_bytes()
    for place in range(len(key)):
        for bit in range(8):
            damaged = bytearray(whole)
            damaged[whole.index(key) + place] ^= 1 << bit
            file.write_bytes(damaged)
            with pytest.raises(FileFormatError):
                sp.load_classifier(tmp_path, device="cpu")


@pytest.mark.parametrize(
    "line", ['{"keys": "a"}', '{"key": 3}', "3", '{"key": "a"}', "[" * 100_000, '{"key": "a"} {}', "\xff"]
)
def test_lines_that_are_no_results_raise_our_own_error(line: str, tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    ResultStore(file).append({"key": "z"})
    with file.open("a", encoding="latin-1") as opened:
        opened.write(line + "\n")
    for read in (ResultStore(file).rows, ResultStore(file).done):
        with pytest.raises(FileFormatError, match=r"line 2 of .*results.jsonl is not a result: .*delete this line"):
            read()


def test_a_file_of_results_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="cannot be read: Is a directory"):
        ResultStore(tmp_path).rows()


def test_an_explainer_is_refused_to_another_classifier(tmp_path: Path) -> None:
    one = classifier()
    sp.Nearest(one).fit(X, Y).save(tmp_path / "ex")
    one.save(tmp_path / "one")
    sp.load(tmp_path / "ex", classifier=sp.load_classifier(tmp_path / "one"))
    other = sp.TorchClassifier("fcn", one.config.override("seed=1")).fit(X, Y)
    with pytest.raises(FileFormatError, match=r"explainer.json was fitted to another classifier than the one given"):
        sp.load(tmp_path / "ex", classifier=other)


def test_arrays_of_another_save_are_refused(tmp_path: Path) -> None:
    one = classifier()
    one.save(tmp_path / "one")
    sp.TorchClassifier("fcn", one.config.override("seed=1")).fit(X, Y).save(tmp_path / "two")
    (mine,), (other,) = ((tmp_path / name).glob("weights*.safetensors") for name in ("one", "two"))
    shutil.copy(other, mine)
    with pytest.raises(FileFormatError, match=r"weights.*safetensors was changed.* not the one in .*classifier.json"):
        sp.load_classifier(tmp_path / "one", device="cpu")
