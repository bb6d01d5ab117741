"""The numbers behind the figures, by hand; and t-SNE maps with the paper's settings, scaling and subsampling."""

from dataclasses import replace

import numpy as np
import pytest

import sparcets as sp
from sparcets.testing.data import make_series
from sparcets.testing.mocks import mean_proba
from sparcets_paper.benchmark.figure_numbers import embed, places


@pytest.fixture(scope="module")
def e():
    short = sp.Dataset.from_arrays(*make_series(60, n_steps=10))
    e = sp.Nearest(sp.wrap(mean_proba)).fit(short).explain(short.X_test, target=1)
    return e[e.status != "unchanged"]


def test_places_by_hand(e):
    scale = e.info.scaler.scale
    delta = np.zeros(e.query.shape)
    salient = np.zeros(e.query.shape, dtype=bool)
    salient[:, 4:6, :2] = True
    delta[:, 4:6, 0] = 2 * scale[0]  # half of the box
    delta[:, 0, 3] = scale[3]  # one of 12 entries of the first three steps
    changed = replace(e, counterfactual=e.query + delta)
    found = places(changed, salient)
    expected = {"inside": (1.0, 0.5), "first": (1 / 12, 1 / 12), "last": (0, 0), "between": (0, 0)}
    expected["outside"] = (1 / 36, 1 / 36)
    for name, (size, share) in expected.items():
        assert found[name]["size"] == pytest.approx(size, abs=1e-6), name
        assert found[name]["changed"] == pytest.approx(share), name
    np.testing.assert_allclose(found["profile"], [0.25, *[0] * 9], atol=1e-6)


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


def test_maps_have_the_papers_settings_and_keep_answers_with_their_queries(seen):
    embed(QUERIES, TARGETS, {"GAN": QUERIES}, at_most=200)
    flat = seen.pop("flat")
    assert seen == {"components": 2, "perplexity": 4.4, "seed": 0, "iterations": 300}
    assert flat.shape == (80, 12)
    real = flat[:50].reshape(50, 6, 2)
    np.testing.assert_allclose(real.mean((0, 1)), 0, atol=1e-12)
    np.testing.assert_allclose(real.std((0, 1)), 1)
    np.testing.assert_allclose(flat[50:], flat[:30], err_msg="counterfactuals are scaled as the real series are")
    maps = embed(QUERIES, TARGETS, {"originals": QUERIES[:0], "GAN": QUERIES}, at_most=10)
    assert [tuple(map(len, points)) for points in maps.values()] == [(10, 10, 0), (10, 10, 10)]
    assert maps["GAN"].queries.tolist() == maps["GAN"].counterfactuals.tolist() == maps["originals"].queries.tolist()
