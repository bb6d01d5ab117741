"""The numbers behind the figures, by hand."""

from dataclasses import replace

import numpy as np
import pytest

import sparcets as sp
from sparcets.testing.data import make_series
from sparcets.testing.mocks import mean_proba
from sparcets_paper.benchmark.properties import (
    figure_numbers,
    places,
)


@pytest.fixture(scope="module")
def short():
    return sp.Dataset.from_arrays(*make_series(60, n_steps=10))


@pytest.fixture(scope="module")
def e(short):
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
    expected = {
        "inside": (1.0, 0.5),
        "first": (1 / 12, 1 / 12),
        "last": (0, 0),
        "between": (0, 0),
        "outside": (1 / 36,) * 2,
    }
    for name, (size, share) in expected.items():
        assert found[name]["size"] == pytest.approx(size, abs=1e-6), name
        assert found[name]["changed"] == pytest.approx(share), name
    np.testing.assert_allclose(found["profile"], [0.25, *[0] * 9], atol=1e-6)


def test_only_what_the_data_have(e, short):
    rows = np.arange(len(short.X_test))
    found = figure_numbers(e, short, rows)
    assert set(found) == {"map", "space"} and sum(found["space"].values()) == pytest.approx(1)
    # The counterfactuals of the nearest neighbour are real series of the training part.
    assert found["space"]["queries"] < found["space"]["targets"]
    assert figure_numbers(e[:0], short, rows) == {}


def test_limbs_of_catching():
    ds = sp.load_dataset("catching")
    middle = np.median(ds.X_train[:, 0, 0])
    clf = sp.wrap(lambda X: np.eye(3)[np.where(X[:, 0, 0] > middle, 2, 0)])
    queries = ds.X_test[ds.X_test[:, 0, 0] <= middle][:3]
    e = sp.Nearest(clf).fit(ds).explain(queries, target="Control")
    found = figure_numbers(replace(e, counterfactual=2 * e.query), ds, np.arange(3))
    for limb in found["limbs"].values():
        np.testing.assert_allclose(limb["answers"], 2 * np.array(limb["queries"]), rtol=1e-5)
