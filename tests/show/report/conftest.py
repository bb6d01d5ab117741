"""An explanation with answers of every status."""

from dataclasses import replace

import numpy as np
import pytest

from sparcets.core.info import SeriesInfo
from tests.made import answers

NAMES = ("LeftElbow_x", "LeftElbow_y", "LeftWrist_x", "LeftWrist_y", "<i>load</i>")
STATUS = ("generated", "refined", "neighbour", "not_found", "unchanged", "generated")


@pytest.fixture
def explanation():
    """Six answers to five queries: the last two queries have one answer each, the first has two."""
    rng = np.random.default_rng(0)
    query = rng.normal(size=(6, 12, 5)).astype(np.float32)
    query[1] = query[0]
    info = SeriesInfo.from_series(rng.normal(size=(30, 12, 5)), ("sick", "well & <fit>"))
    counterfactual = query.copy()
    for i in range(4):
        counterfactual[i, 2 : 5 + i, i] += 0.5 + i
    counterfactual[5, :, 4] -= 0.25
    p = np.array([0.9, 0.8, 0.7, 0.2, 0.95, 0.65])
    before = np.where(np.array(STATUS) == "unchanged", 0.95, 0.1)
    return answers(
        query,
        counterfactual,
        replace(info, feature_names=NAMES, units=("m",) * 4 + ("kg",)),
        status=list(STATUS),
        reason=["", "", "", "it is <impossible>", "", ""],
        query_index=[0, 0, 1, 2, 3, 4],
        proba_before=np.stack([1 - before, before], axis=1),
        proba_after=np.stack([1 - p, p], axis=1),
        method="sparcets",
        config={"seed": 3, "train": {"epochs": 7}},
        constraints={"fit": {"groups": {}}, "explain": {"frozen": [[0, 2]], "groups": {}}},
        seed=3,
        seconds=1.5,
    )
