"""Figures from saved explanations: drawn as PNG and SVG, or left out with a reason."""

import shutil

import numpy as np
import pytest

from sparcets.core.errors import DataNotFoundError, FileFormatError
from sparcets.core.info import SeriesInfo
from sparcets.data.load import load_dataset
from sparcets_paper.reproduce import figures
from sparcets_paper.reproduce.plans import BARE
from tests import made

LABELS = ("ICS", "GAN", "CounteRGAN", "SPARCE")
BOX = {"n_per_combination": 10}


def answers(data, target, seed, *, n=8):
    """Answers to the first test queries that raise a random third of the entries; every second one is valid."""
    rows = np.flatnonzero(data.y_test != target)[:n]
    query = data.X_test[rows]
    change = np.random.default_rng(seed).random(query.shape) < 0.3
    after = np.full((n, data.n_classes), 0.1)
    after[::2, target] = 0.9
    after[1::2, 1 - target if target < 2 else 0] = 0.9
    made_of = {"target": target, "proba_before": 1 - after, "proba_after": after}
    info = SeriesInfo.from_series(data.X_train, data.class_names, source=data)
    return made.answers(query, (query + change).astype(np.float32), info, **made_of)


@pytest.fixture(scope="module")
def sets():
    return {"catching": load_dataset("catching"), "moving_box": load_dataset("moving_box", **BOX)}


@pytest.fixture(scope="module")
def kept(sets, tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept")
    for i in range(len(LABELS) + 1):
        answers(sets["catching"], 2, i).save(folder / f"c{i}.npz")
        answers(sets["moving_box"], 1, i).save(folder / f"b{i}-1-0.npz")
    return folder


@pytest.fixture
def stored(make_row, kept, tmp_path):
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
    shutil.copytree(kept, tmp_path / "explanations")
    return rows


def test_figures_are_drawn_and_exist_until_redrawn(stored, tmp_path):
    folder, datasets = tmp_path / "figures", ["catching", "moving_box"]
    folder.mkdir()
    for suffix in (".png", ".svg"):
        (folder / f"figure2{suffix}").write_text("old")
    paths, left_out = figures.draw_figures(tmp_path, stored, datasets)
    assert left_out == {}
    stems = [stem for stem in figures.CAPTIONS if stem != "figure3_motionsense"]
    assert [p.name for p in paths] == [f"{stem}{suffix}" for stem in stems for suffix in (".png", ".svg")]
    drawn = {path.name: path.read_bytes() for path in paths}
    assert all(len(content) > 5000 for content in drawn.values())
    (folder / "figure2.png").write_text("kept")
    (folder / "figure5.png").unlink()
    assert figures.draw_figures(tmp_path, stored, datasets, redraw=False) == (paths, {})
    assert (folder / "figure2.png").read_text() == "kept"
    assert all((folder / name).read_bytes() == drawn[name] for name in ("figure5.png", "figure5.svg"))  # same bytes


def test_a_figure_without_answers_is_left_out_with_a_reason(stored, tmp_path):
    for file in (tmp_path / "explanations").glob("c2.npz"):  # CounteRGAN on catching
        file.unlink()
    paths, left_out = figures.draw_figures(tmp_path, stored, ["catching"])
    assert sorted(left_out) == ["figure1", "figure3_catching", "figure6"]
    assert "no answers of CounteRGAN on catching are saved" in left_out["figure1"]
    assert {p.stem for p in paths} == {"figure2"}


def test_shared_queries_are_those_all_answered(sets):
    e = answers(sets["catching"], 2, 0)
    # Of the queries 3 to 6, 4 and 6 are valid and come first; their indices in the two explanations differ.
    rows = figures.shared_answers({"a": e, "b": e[3:7]}, 3)
    assert rows == [{"a": 4, "b": 1}, {"a": 6, "b": 3}, {"a": 3, "b": 0}]
    with pytest.raises(DataNotFoundError, match="9 queries answered by a, b are needed, 4 are saved"):
        figures.shared_answers({"a": e, "b": e[3:7]}, 9)


@pytest.fixture
def few(sets):
    """Answers of which the second is ``unchanged``."""
    e = answers(sets["moving_box"], 1, 0, n=5)
    e.status[1] = "unchanged"
    return e


def test_what_is_stored_comes_back(few, sets, tmp_path):
    path = tmp_path / "answers" / "a.npz"
    figures.save_compact(few, path)
    e, kept = figures.load_compact(path, sets["moving_box"]), few[few.status != "unchanged"]
    assert e.query_index.tolist() == [0, 2, 3, 4] and np.array_equal(e.query, kept.query)
    assert np.array_equal(e.changed, kept.changed) and np.array_equal(e.valid, kept.valid)
    np.testing.assert_allclose(e.delta, kept.delta, rtol=2e-3, atol=1e-4)
    assert path.stat().st_size < 0.6 * 4 * kept.delta.size  # 3 of 10 entries, 2 bytes each, and what compresses badly


def test_other_data_and_damage_are_errors(few, sets, tmp_path):
    path = tmp_path / "a.npz"
    figures.save_compact(few, path)
    with pytest.raises(DataNotFoundError, match="belong to another moving_box"):
        figures.load_compact(path, load_dataset("moving_box", n_per_combination=10, seed=1))
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(FileFormatError, match=r"a\.npz does not hold answers to moving_box"):
        figures.load_compact(path, sets["moving_box"])
