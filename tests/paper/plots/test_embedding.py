"""t-SNE maps of queries, targets and counterfactuals: neighbourhoods, settings and styles."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from matplotlib import colors

from sparcets_paper.benchmark.embedding import Points, embed
from sparcets_paper.plots import benchmark as embedding
from sparcets_paper.plots.benchmark import plot_embedding

RNG = np.random.default_rng(0)
QUERIES = RNG.normal(size=(30, 6, 2))
TARGETS = QUERIES[:20] + np.array([50.0, 0.0])


def test_the_paper_s_settings_on_standardised_series(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    class Recorder:
        def __init__(self, n_components: int, perplexity: float, random_state: int, n_iter: int) -> None:
            seen.update(components=n_components, perplexity=perplexity, seed=random_state, iterations=n_iter)

        def fit_transform(self, flat: Any) -> Any:
            seen["flat"] = flat
            return flat[:, :2]

    monkeypatch.setattr("sklearn.manifold.TSNE", Recorder)  # with the parameter name of scikit-learn < 1.5
    embed(QUERIES, TARGETS, {"GAN": QUERIES}, seed=3)
    flat = seen.pop("flat")
    assert seen == {"components": 2, "perplexity": 4.4, "seed": 3, "iterations": 300}
    assert flat.shape == (80, 12)
    real = flat[:50].reshape(50, 6, 2)
    np.testing.assert_allclose(real.mean((0, 1)), 0, atol=1e-12)
    np.testing.assert_allclose(real.std((0, 1)), 1)
    np.testing.assert_allclose(flat[50:], flat[:30], err_msg="counterfactuals are scaled as the real series are")


class IdentityTsne:
    """Stands in for scikit-learn's: returns the series themselves, flattened and standardised."""

    def __init__(self, max_iter: int, **settings: Any) -> None: ...

    def fit_transform(self, flat: Any) -> Any:
        return flat


def test_subsampling_depends_on_the_seed_and_keeps_answers_with_their_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sklearn.manifold.TSNE", IdentityTsne)
    points = embed(QUERIES, TARGETS, {"GAN": QUERIES}, at_most=10)["GAN"]
    assert tuple(map(len, points)) == (10, 10, 10)
    assert points.queries.tolist() == points.counterfactuals.tolist()
    again, other = (embed(QUERIES, TARGETS, {"GAN": QUERIES}, seed, at_most=10)["GAN"] for seed in (0, 1))
    assert again.queries.tolist() == points.queries.tolist() != other.queries.tolist()


def test_the_figure_has_a_panel_per_method_and_a_style_per_kind() -> None:
    points = Points(*(np.full((n, 2), float(n)) for n in (2, 3, 4)))
    figure = plot_embedding({f"method {i} $": points for i in range(5)})
    figure.savefig(io.BytesIO(), dpi=30)
    assert [a.get_title(loc="left") for a in figure.axes] == [rf"method {i} \$" for i in range(5)]
    for axes in figure.axes:
        assert [len(c.get_offsets()) for c in axes.collections] == [2, 3, 4]
        assert axes.get_xlabel() == "t-SNE 1 (no unit)" and not axes.get_xticks().size
    hues = [colors.to_rgb(embedding.STYLES[kind].colour) for kind in ("queries", "targets", "counterfactuals")]
    assert [int(np.argmax(rgb)) for rgb in hues] == [0, 1, 2], "reddish, greenish, bluish"
    assert len({look.marker for look in embedding.STYLES.values()}) == 3
    (legend,) = figure.legends
    assert [t.get_text() for t in legend.get_texts()] == ["queries", "targets", "counterfactuals"]


def test_the_map_of_the_originals_has_no_counterfactuals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sklearn.manifold.TSNE", IdentityTsne)
    maps = embed(QUERIES, TARGETS, {"originals": QUERIES[:0], "GAN": QUERIES})
    points, beside = maps["originals"], maps["GAN"]
    assert len(points.counterfactuals) == 0
    np.testing.assert_allclose(points.queries, beside.queries)  # scaled alike
    np.testing.assert_allclose(points.targets, beside.targets)
    figure = plot_embedding({"originals": Points(*(part[:, :2] for part in points))})
    assert [len(c.get_offsets()) for c in figure.axes[0].collections] == [30, 20, 0]
