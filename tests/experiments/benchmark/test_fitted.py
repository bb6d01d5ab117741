"""Fits that cells share: trained once, found again to the bit, trained anew where something is wrong with them."""

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparcets as sp
from sparcets.experiments.benchmark import cell as cells
from sparcets.experiments.benchmark.cell import RunContext, find_classifier, run_cell
from sparcets.experiments.benchmark.fitted import SECONDS, find_explainer
from sparcets.experiments.benchmark.plan import Cell
from sparcets.explainers import sparce
from sparcets.explainers.files import ARRAYS, HEADER
from sparcets.testing.data import make_series

TINY = {"hidden": 8, "layers": 1, "dropout": 0.0, "epochs": 15, "lr": 0.01}
QUICK = ("train.epochs=1", "generator.hidden=4", "discriminator.hidden=4", "witnesses=0")
CONFIG = sp.SparceConfig.tiny().override(*QUICK, "device=cpu")


@pytest.fixture(scope="module")
def data() -> sp.Dataset:
    return sp.Dataset.from_arrays(*make_series(60, n_steps=9))


@pytest.fixture(scope="module")
def classifier(data: sp.Dataset) -> sp.TorchClassifier:
    return sp.TorchClassifier("fcn", sp.ClassifierConfig(hidden=4, epochs=8, device="cpu")).fit(data)


@pytest.fixture(autouse=True)
def _few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparce, "BATCHES", 5)


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what is fitted from now on, in order."""
    names: list[str] = []
    for kind in (sp.Sparce, sp.Gan, sp.Nearest):
        plain: Callable[..., Any] = kind.fit

        def fit(self: Any, *arguments: Any, _plain: Callable[..., Any] = plain, **named: Any) -> Any:
            names.append(self.method)
            return _plain(self, *arguments, **named)

        monkeypatch.setattr(kind, "fit", fit)
    return names


def answers(explainer: Any, data: sp.Dataset, **asked: Any) -> tuple[bytes, ...]:
    e = explainer.explain(data.X_test, **asked)
    return e.counterfactual.tobytes(), e.proba_after.tobytes(), e.status.tobytes(), e.reason.tobytes()


ASKED: list[dict[str, Any]] = [{"target": 1}, {"target": 2}, {"target": 0, "sparsity": 0.2}, {"sparsity": 0.05}]


def test_the_second_one_is_found_and_answers_to_the_bit_like_a_fresh_one(
    data: sp.Dataset, classifier: sp.TorchClassifier, trained: list[str], tmp_path: Path
) -> None:
    first, seconds = find_explainer(sp.Sparce(classifier, CONFIG), data, classifier, tmp_path)
    assert trained == ["sparce"] and seconds > 0
    again, same = find_explainer(sp.Sparce(classifier, CONFIG), data, classifier, tmp_path)
    assert trained == ["sparce"] and same == seconds  # what it took, when it was trained
    fresh = sp.Sparce(classifier, CONFIG).fit(data)
    for asked in ASKED:
        assert answers(again, data, **asked) == answers(first, data, **asked) == answers(fresh, data, **asked)
    assert again.history_ == fresh.history_ and again.summary() == fresh.summary()


OTHERS = {
    "another seed": CONFIG.override("seed=1"),
    "another setting": CONFIG.override("train.lr=0.01"),
    "one target alone": CONFIG.override("target=1"),
}


@pytest.mark.parametrize("what", OTHERS)
def test_other_settings_are_another_fit(
    what: str, data: sp.Dataset, classifier: sp.TorchClassifier, trained: list[str], tmp_path: Path
) -> None:
    for config in (CONFIG, OTHERS[what], OTHERS[what], CONFIG):
        explainer, _ = find_explainer(sp.Sparce(classifier, config), data, classifier, tmp_path)
        assert explainer.config == config
    assert trained == ["sparce", "sparce"]


def test_another_method_classifier_or_data_set_is_another_fit(
    data: sp.Dataset, classifier: sp.TorchClassifier, trained: list[str], tmp_path: Path
) -> None:
    gan = sp.GanConfig.tiny().override("train.epochs=1", "generator.hidden=4", "device=cpu")
    reseeded = sp.TorchClassifier("fcn", replace(classifier.config, seed=5)).fit(data)
    other_kind = sp.TorchClassifier("tcn", classifier.config).fit(data)
    shifted = replace(data, X_train=data.X_train + np.float32(1e-3))
    find_explainer(sp.Sparce(classifier, CONFIG), data, classifier, tmp_path)
    trained.clear()
    for _ in range(2):
        find_explainer(sp.Gan(classifier, gan), data, classifier, tmp_path)
        find_explainer(sp.Sparce(reseeded, CONFIG), data, reseeded, tmp_path)
        find_explainer(sp.Sparce(other_kind, CONFIG), data, other_kind, tmp_path)
        find_explainer(sp.Sparce(classifier, CONFIG), shifted, classifier, tmp_path)
    assert trained == ["gan", "sparce", "sparce", "sparce"]


def test_what_trains_nothing_is_not_kept(
    data: sp.Dataset, classifier: sp.TorchClassifier, trained: list[str], tmp_path: Path
) -> None:
    for _ in range(2):
        nearest = sp.Nearest(classifier, sp.NearestConfig(device="cpu"))
        found, seconds = find_explainer(nearest, data, classifier, tmp_path)
        assert found is nearest and seconds >= 0
    find_explainer(sp.Ics(classifier, sp.IcsConfig.tiny()), data, classifier, tmp_path)
    assert trained == ["nearest", "nearest"] and list(tmp_path.iterdir()) == []


def cut_short(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:60])


DAMAGES: dict[str, Callable[[Path], None]] = {
    "weights cut short": lambda kept: cut_short(kept / ARRAYS),
    "no weights": lambda kept: (kept / ARRAYS).unlink(),
    "settings cut short": lambda kept: cut_short(kept / HEADER),
    "settings of nothing": lambda kept: (kept / HEADER).write_text("{}") and None,
    "killed before the time was written": lambda kept: (kept / SECONDS).unlink(),
    "the time cut short": lambda kept: (kept / SECONDS).write_text('{"sec') and None,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_one_is_trained_anew(
    damage: str, data: sp.Dataset, classifier: sp.TorchClassifier, trained: list[str], tmp_path: Path
) -> None:
    first, _ = find_explainer(sp.Sparce(classifier, CONFIG), data, classifier, tmp_path)
    (kept,) = (path for path in tmp_path.iterdir() if path.is_dir())
    DAMAGES[damage](kept)
    second, seconds = find_explainer(sp.Sparce(classifier, CONFIG), data, classifier, tmp_path)
    assert trained == ["sparce", "sparce"] and seconds > 0
    third, same = find_explainer(sp.Sparce(classifier, CONFIG), data, classifier, tmp_path)  # it is whole again
    assert trained == ["sparce", "sparce"] and same == seconds
    assert answers(first, data, target=1) == answers(second, data, target=1) == answers(third, data, target=1)


def test_of_several_at_once_one_trains_and_the_others_wait(
    data: sp.Dataset, classifier: sp.TorchClassifier, trained: list[str], tmp_path: Path
) -> None:
    found: list[Any] = []

    def look() -> None:
        found.append(find_explainer(sp.Sparce(classifier, CONFIG), data, classifier, tmp_path))

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert trained == ["sparce"] and len(found) == 3 and len({seconds for _, seconds in found}) == 1
    assert len({answers(explainer, data, target=1) for explainer, _ in found}) == 1


def test_cells_that_differ_in_target_and_limit_alone_share_a_fit(
    trained: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cells, "find_judges", lambda *_, **__: {})
    X, y = make_series(60, n_steps=9)
    np.savez(tmp_path / "own.npz", X=X, y=np.array(["calm", "brisk", "wild"])[y])
    cell = Cell(
        dataset=str(tmp_path / "own.npz"), classifier="fcn", classifier_config=TINY, preset="tiny", settings=QUICK,
        target="brisk", keep=99,
    )  # fmt: skip
    variants = [cell, replace(cell, target="calm"), replace(cell, sparsity=0.25), replace(cell, target=None, queries=4)]
    context = RunContext(tmp_path / "runs", "cpu")
    rows = [run_cell(variant, context) for variant in variants]
    assert not any("error" in row for row in rows), [row.get("error") for row in rows]
    assert trained == ["sparce"] and len({row["fit_s"] for row in rows}) == 1
    assert [row["sparsity"] for row in rows] == [None, None, 0.25, None]
    assert rows[2]["measures"]["sparsity_all"] <= 0.25 < rows[0]["measures"]["sparsity_all"]
    assert all(row["history"] == rows[0]["history"] and row["config"] == rows[0]["config"] for row in rows)

    for variant, row in zip(variants, rows, strict=True):  # each with a fit of its own, in a folder of its own
        own = RunContext(tmp_path / "alone" / variant.key, "cpu")
        alone = run_cell(variant, own)
        shared, fresh = (sp.load_explanation(p.folder / "explanations" / f"{variant.key}.npz") for p in (context, own))
        assert shared.counterfactual.tobytes() == fresh.counterfactual.tobytes()
        for name, value in row["measures"].items():
            if name != "seconds":
                assert value == pytest.approx(alone["measures"][name], rel=0, abs=0, nan_ok=True), name
    assert trained == ["sparce"] * 5
    run_cell(replace(cell, seed=1), context)
    assert trained == ["sparce"] * 6  # repetitions are not shared


def test_the_paper_s_fits_are_for_one_target_and_shared_by_limits_alone(
    trained: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cells, "find_judges", lambda *_, **__: {})
    X, y = make_series(60, n_steps=9)
    np.savez(tmp_path / "own.npz", X=X, y=y)
    settings = ("train.epochs=1", "generator.hidden=4", "generator.layers=1")
    cell = Cell(dataset=str(tmp_path / "own.npz"), classifier="fcn", classifier_config=TINY, method="gan")
    cell = replace(cell, preset="paper", settings=settings, target="1")
    context = RunContext(tmp_path / "runs", "cpu")
    for variant in (cell, replace(cell, sparsity=0.5), replace(cell, target="2"), cell):
        assert "error" not in run_cell(variant, context)
    assert trained == ["gan", "gan"]


def test_it_stands_beside_the_classifiers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "find_judges", lambda *_, **__: {})
    X, y = make_series(60, n_steps=9)
    np.savez(tmp_path / "own.npz", X=X, y=y)
    cell = Cell(dataset=str(tmp_path / "own.npz"), classifier="fcn", classifier_config=TINY, preset="tiny")
    context = RunContext(tmp_path / "runs", "cpu")
    assert "error" not in run_cell(replace(cell, settings=QUICK, queries=3), context)
    (kept,) = (path for path in (context.folder / "explainers").iterdir() if path.is_dir())
    assert sp.load(kept, find_classifier(cell, cells.load_data(cell), context)).method == "sparce"
