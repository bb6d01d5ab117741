"""Answers in little space: the same entries are changed, by the same amounts up to three digits."""

from pathlib import Path

import numpy as np
import pytest

from sparcets.core.errors import DataNotFoundError, FileFormatError
from sparcets.core.explanation import Explanation
from sparcets.core.info import SeriesInfo
from sparcets.data.load import load_dataset
from sparcets_paper.reproduce.figures import load_compact, save_compact


@pytest.fixture(scope="module")
def data():
    return load_dataset("moving_box", n_per_combination=10)


@pytest.fixture
def answers(data) -> Explanation:
    """Five answers, the second of them ``unchanged``."""
    rows = np.flatnonzero(data.y_test != 1)[:5]
    query = data.X_test[rows]
    rng = np.random.default_rng(0)
    change = rng.normal(size=query.shape) * (rng.random(query.shape) < 0.3)
    change[1] = 0
    return Explanation(
        query=query,
        counterfactual=(query + change).astype(np.float32),
        target=np.ones(5, dtype=np.int64),
        status=np.array(["generated", "unchanged", "generated", "generated", "generated"]),
        reason=np.full(5, ""),
        query_index=np.arange(5),
        proba_before=np.tile([0.9, 0.1], (5, 1)),
        proba_after=np.tile([0.2, 0.8], (5, 1)),
        info=SeriesInfo.from_series(data.X_train, data.class_names, source=data),
        mutable=np.ones(data.n_features, dtype=bool),
    )


def test_what_is_stored_comes_back(answers, data, tmp_path: Path) -> None:
    path = tmp_path / "answers" / "a.npz"
    save_compact(answers, path)
    e, kept = load_compact(path, data), answers[answers.status != "unchanged"]
    assert e.query_index.tolist() == [0, 2, 3, 4] and np.array_equal(e.query, kept.query)
    assert np.array_equal(e.changed, kept.changed) and np.array_equal(e.valid, kept.valid)
    np.testing.assert_allclose(e.delta, kept.delta, rtol=2e-3, atol=1e-4)
    assert path.stat().st_size < 0.6 * 4 * kept.delta.size  # 3 of 10 entries, 2 bytes each, and what compresses badly


def test_other_data_and_damage_are_errors(answers, data, tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    save_compact(answers, path)
    with pytest.raises(DataNotFoundError, match="belong to another moving_box"):
        load_compact(path, load_dataset("moving_box", n_per_combination=10, seed=1))
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(FileFormatError, match=r"a\.npz does not hold answers to moving_box"):
        load_compact(path, data)
