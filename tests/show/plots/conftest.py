"""Hand-made answers over ten steps, for figures whose axes, labels and data are tested."""

from dataclasses import replace

import numpy as np
import pytest

from sparcets.core.evidence import REAL, Evidence
from sparcets.core.info import SeriesInfo
from tests.show.conftest import hand_made

SCALE = 4.0  # every feature's standard deviation


def make(changes, *, n_features=3, **other):
    """Return one answer over ten steps that changes the entries (step, feature) by these amounts."""
    info = SeriesInfo.from_series(np.array([[[0.0] * n_features], [[2 * SCALE] * n_features]]), ("sick", "well"))
    info = replace(info, **other.pop("info", {}))
    query = np.arange(10.0 * n_features).reshape(10, n_features)
    return hand_made(info, query, changes, **{"method": "nearest", "proba_after": np.array([[0.2, 0.8]]), **other})


def evidence(*support, distance=0.5, **looks):
    """Return what models of three kinds and discriminators say about one answer, with a curve of four points."""
    names = ("distance", "outside", "jumps", "stretch")
    values = dict.fromkeys(names, 0.0) | {"distance": distance, "stretch": np.nan} | looks
    curve = {"share": [[0.3, 0.1, 0.2, np.nan]], "support": [[0.9, 0.5, 0.3, np.nan]], "valid": [[1, 0, 1, np.nan]]}
    return Evidence(
        families=("intervals", "forest", "quantiles", REAL),
        support=np.array([support]),
        plausibility={name: np.array([value]) for name, value in values.items()},
        curve={name: np.array(points) for name, points in curve.items()},
    )


BELIEVED, TRICK = evidence(1.0, 0.9, 0.8, 1.0), evidence(0.2, 0.1, 0.3, 1.0)


@pytest.fixture
def answer():
    return make
