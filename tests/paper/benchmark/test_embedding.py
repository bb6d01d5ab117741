"""t-SNE maps: the paper's settings, scaling and subsampling."""

import numpy as np
import pytest

from sparcets_paper.benchmark.embedding import embed

RNG = np.random.default_rng(0)
QUERIES = RNG.normal(size=(30, 6, 2))
TARGETS = QUERIES[:20] + np.array([50.0, 0.0])


@pytest.fixture
def seen(monkeypatch):
    """Replace scikit-learn's t-SNE by one that returns the series, and return what it is given."""
    given = {}

    class Recorder:
        def __init__(self, n_components, perplexity, random_state, n_iter):
            given.update(components=n_components, perplexity=perplexity, seed=random_state, iterations=n_iter)

        def fit_transform(self, flat):
            given["flat"] = flat
            return flat

    monkeypatch.setattr("sklearn.manifold.TSNE", Recorder)  # with the parameter name of scikit-learn < 1.5
    return given


def test_the_paper_s_settings_on_standardised_series(seen):
    embed(QUERIES, TARGETS, {"GAN": QUERIES}, at_most=200)
    flat = seen.pop("flat")
    assert seen == {"components": 2, "perplexity": 4.4, "seed": 0, "iterations": 300}
    assert flat.shape == (80, 12)
    real = flat[:50].reshape(50, 6, 2)
    np.testing.assert_allclose(real.mean((0, 1)), 0, atol=1e-12)
    np.testing.assert_allclose(real.std((0, 1)), 1)
    np.testing.assert_allclose(flat[50:], flat[:30], err_msg="counterfactuals are scaled as the real series are")


def test_subsampling_keeps_answers_with_their_queries(seen):
    maps = embed(QUERIES, TARGETS, {"originals": QUERIES[:0], "GAN": QUERIES}, at_most=10)
    assert [tuple(map(len, points)) for points in maps.values()] == [(10, 10, 0), (10, 10, 10)]
    assert maps["GAN"].queries.tolist() == maps["GAN"].counterfactuals.tolist() == maps["originals"].queries.tolist()
