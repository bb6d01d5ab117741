"""Figures from kept explanations: drawn as PNG and SVG, the same bytes twice, and left out with a reason."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparcets.datasets.load import load_dataset
from sparcets.errors import DataNotFoundError
from sparcets.experiments.reproduce import figures
from sparcets.experiments.reproduce.figures import CAPTIONS, StoredRuns, draw_figures
from sparcets.experiments.reproduce.plans import BARE
from sparcets.explanation.result import Explanation
from sparcets.explanation.series_info import SeriesInfo
from sparcets.plots.embedding import embed

LABELS = ("ICS", "GAN", "CounteRGAN", "SPARCE")
BOX = {"n_per_combination": 10}


def answers(data: Any, target: int, seed: int, *, n: int = 8) -> Explanation:
    """Answers to the first test queries that raise a random third of the entries; every second one is valid."""
    rows = np.flatnonzero(data.y_test != target)[:n]
    query = data.X_test[rows]
    change = np.random.default_rng(seed).random(query.shape) < 0.3
    after = np.full((n, data.n_classes), 0.1)
    after[::2, target] = 0.9
    after[1::2, 1 - target if target < 2 else 0] = 0.9
    return Explanation(
        query=query,
        counterfactual=(query + change).astype(np.float32),
        target=np.full(n, target),
        status=np.array(["generated"] * n),
        reason=np.array([""] * n),
        query_index=np.arange(n),
        proba_before=1 - after,
        proba_after=after,
        info=SeriesInfo.measure(data.X_train, data.class_names, source=data),
        mutable=np.ones(data.n_features, dtype=bool),
    )


@pytest.fixture(scope="module")
def sets() -> dict[str, Any]:
    return {"catching": load_dataset("catching"), "moving_box": load_dataset("moving_box", **BOX)}


@pytest.fixture
def stored(make_row, sets, tmp_path: Path) -> list[dict[str, Any]]:
    """Rows of both sets with their kept explanations in ``tmp_path``."""
    rows = []
    grid = np.linspace(0, 1, 5)
    for i, label in enumerate((*LABELS, BARE)):
        rows.append(make_row("catching", label, key=f"c{i}"))
        for target in ("1", "0"):
            curves = [{"fpr": grid.tolist(), "tpr": (grid ** (0.5 + s)).tolist()} for s in (0, 1)]
            rows += [
                make_row("moving_box", label, target=target, seed=s, curve=curves[s], key=f"b{i}-{target}-{s}")
                | {"options": BOX}
                for s in (0, 1)
            ]
        answers(sets["catching"], 2, i).save(tmp_path / "explanations" / f"c{i}.npz")
        answers(sets["moving_box"], 1, i).save(tmp_path / "explanations" / f"b{i}-1-0.npz")
    return rows


def test_every_figure_is_drawn(stored, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparcets.plots.embedding.embed", partial(embed, at_most=6))  # few points, short work
    paths, left_out = draw_figures(tmp_path, stored, ["catching", "moving_box"])
    assert left_out == {}
    stems = [stem for stem in CAPTIONS if stem != "figure3_motionsense"]
    assert [p.name for p in paths] == [f"{stem}{suffix}" for stem in stems for suffix in (".png", ".svg")]
    assert all(p.stat().st_size > 5000 for p in paths)


def test_drawn_figures_stay_unless_redrawn(stored, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    monkeypatch.setattr(
        figures, "_save", lambda figure, files: [f.parent.mkdir(exist_ok=True) or f.touch() for f in files]
    )
    monkeypatch.setattr(figures, "_figure3", lambda kept, name: drawn.append(name))
    for redraw, expected in ((False, 1), (False, 1), (True, 2)):
        draw_figures(tmp_path, stored, ["catching"], redraw=redraw)
        assert len(drawn) == expected


def test_same_rows_same_bytes(stored, tmp_path: Path) -> None:
    def drawn() -> list[bytes]:
        kept = StoredRuns(tmp_path, stored)
        files = [tmp_path / "one.png", tmp_path / "one.svg"]
        figures._save(figures._figure5(kept), files)
        return [f.read_bytes() for f in files]

    assert drawn() == drawn()


def test_what_lacks_answers_is_left_out_with_a_reason(stored, tmp_path: Path) -> None:
    for file in (tmp_path / "explanations").glob("c2.npz"):  # CounteRGAN on catching
        file.unlink()
    paths, left_out = draw_figures(tmp_path, stored, ["catching"])
    assert sorted(left_out) == ["figure1", "figure3_catching", "figure6"]
    assert "no answers of CounteRGAN on catching are kept" in left_out["figure1"]
    assert {p.stem for p in paths} == {"figure2"}


def test_the_curves_are_means_over_repetitions(stored, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}
    monkeypatch.setattr("sparcets.plots.roc.plot_roc", lambda curves: seen.update(curves))
    figures._figure5(StoredRuns(tmp_path, stored))
    assert list(seen) == ["1", "0"] and list(seen["0"]) == [*LABELS, BARE]
    fpr, mean, std = seen["1"]["SPARCE"]
    x = np.linspace(0, 1, 5)
    np.testing.assert_allclose(mean, (x**0.5 + x**1.5) / 2)
    np.testing.assert_allclose(std, np.abs(x**0.5 - x**1.5) / np.sqrt(2))
    np.testing.assert_allclose(fpr, x)


def test_saliency_shows_the_mask_of_its_query(stored, sets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr("sparcets.plots.heatmap.plot_saliency", seen.extend)
    figures._saliency(StoredRuns(tmp_path, stored), slice(0, 3), LABELS)
    data = sets["moving_box"]
    rows = np.flatnonzero(data.y_test != 1)[[0, 2, 4]]  # the valid ones come first
    assert len(seen) == 3
    for panels, row in zip(seen, rows, strict=True):
        assert [title for title, _ in panels] == ["query", "salient", *LABELS]
        assert np.array_equal(panels[1][1], data.salient_test[row])
        assert (panels[5][1] >= 0).all() and 0 < (panels[5][1] > 0).mean() < 0.5


def test_shared_queries_are_those_all_answered(sets) -> None:
    e = answers(sets["catching"], 2, 0)
    # Of the queries 3 to 6, 4 and 6 are valid and come first; places differ between the two.
    rows = figures._shared({"a": e, "b": e[3:7]}, 3)
    assert rows == [{"a": 4, "b": 1}, {"a": 6, "b": 3}, {"a": 3, "b": 0}]
    with pytest.raises(DataNotFoundError, match="9 queries answered by a, b are needed, 4 are kept"):
        figures._shared({"a": e, "b": e[3:7]}, 9)


def test_queries_that_were_there_already_are_not_shown(stored, sets, tmp_path: Path) -> None:
    e = answers(sets["catching"], 2, 0)
    e.status[:3] = "unchanged"
    e.save(tmp_path / "explanations" / "c3.npz")
    assert StoredRuns(tmp_path, stored).answers("catching", "SPARCE").query_index.tolist() == [3, 4, 5, 6, 7]
