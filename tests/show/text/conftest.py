"""Hand-made answers: two features, ten steps, standard deviations 1 and 4."""

from dataclasses import replace

import numpy as np
import pytest

from sparcets.core.info import SeriesInfo
from tests.show.conftest import hand_made


def unbounded(info):
    """Return information on series by whose ranges any change is fine."""
    F, most = info.n_features, np.full(info.n_features, np.inf)
    moves = {"largest_step": most, "max_moves": np.full((4, F), np.inf), "max_bends": np.full((5, F), np.inf)}
    return replace(info, span=np.ones(F), low=-most, high=most, **moves)


INFO = replace(
    SeriesInfo.from_series(np.array([[[0.0, 0.0]], [[2.0, 8.0]]]), ("sick", "well")),  # standard deviations 1 and 4
    feature_names=("roll", "pressure"),
)


def make(changes, *, n_steps=10, **other):
    """Return one answer that changes the entries (step, feature) by these amounts."""
    info = replace(INFO, units=other.pop("units", None), sampling_rate=other.pop("rate", None))
    if names := other.pop("names", None):
        scale = replace(info.scaler, center=np.zeros(len(names)), scale=np.ones(len(names)))
        info = replace(info, feature_names=names, scaler=scale)
    return hand_made(unbounded(info), np.full((n_steps, info.n_features), 0.5), changes, **other)


@pytest.fixture
def answer():
    return make
