"""SeriesInfo: statistics of training series, and the round trip through JSON."""

import json

import numpy as np
import pytest

from sparcets.core.errors import UnknownNameError
from sparcets.core.info import SeriesInfo
from sparcets.data.dataset import Dataset

X = np.array([[[1.0, 5.0], [3.0, 5.0]], [[2.0, 5.0], [99.0, -7.0]]])  # (2, 2, 2)


def test_statistics_by_hand_that_do_not_overflow():
    info = SeriesInfo.from_series(X[:1], ("a", "b"))
    assert info.span.tolist() == [2.0, 0.0] and info.scaler.center.tolist() == [2.0, 5.0]
    assert info.scaler.scale.tolist() == [1.0, 1.0], "of 1 and 3; and 1 for a constant feature"
    assert (info.n_steps, info.n_features, info.n_classes) == (2, 2, 2)
    assert info.feature_names == ("f0", "f1") and info.mutable.tolist() == [True, True]
    assert info.units is None and info.sampling_rate is None
    info = SeriesInfo.from_series(np.array([[[-3e38], [3e38]]], dtype=np.float32), ("a", "b"))
    assert info.span[0] == 2 * np.float64(np.float32(3e38))


def test_ranges_ignore_padding_and_gaps_and_survive_json():
    X = np.array([[[0.0, 5.0], [2.0, np.nan], [9.0, 9.0]], [[1.0, 4.0], [-3.0, 7.0], [-1.0, 6.0]]])
    info = SeriesInfo.from_series(X, ("a", "b"), lengths=np.array([2, 3]))
    for found in (info, SeriesInfo.from_dict(json.loads(json.dumps(info.to_dict())))):
        assert found.low.tolist() == [-3, 4] and found.high.tolist() == [2, 7]
        assert found.largest_step.tolist() == [4, 3], "1 to -3, and 4 to 7; the gap and the padding are left out"
        assert found.span.tolist() == [5, 3] and found.max_moves.tolist() == [[4, 3]] * 4, "over two steps less"
        assert found.max_bends[0].tolist() == [6, 4], "down by 4 and up by 2; up by 3 and down by 1"
    with pytest.raises(ValueError, match="ranges"):
        SeriesInfo.from_dict({**info.to_dict(), "low": [0.0]})
    with pytest.raises(ValueError, match="moves"):
        SeriesInfo.from_dict({**info.to_dict(), "max_moves": [[0.0, 1.0]]})


def test_names_of_the_data_set_and_json_round_trip():
    ds = Dataset.from_arrays(
        np.repeat(X, 4, axis=0),
        [0, 1] * 4,
        feature_names=["größe", "y"],
        class_names=["krank", "gesund"],
        units=["m", "s"],
        sampling_rate=50,
        mutable=["y"],
    )
    info = SeriesInfo.from_series(ds.X_train, ds.class_names, source=ds)
    again = SeriesInfo.from_dict(json.loads(json.dumps(info.to_dict())))
    for one in (info, again):
        assert one.feature_names == ("größe", "y") and one.class_names == ("krank", "gesund")
        assert one.units == ("m", "s") and one.sampling_rate == 50.0 and one.mutable.tolist() == [False, True]
        assert one.feature_index("y") == one.feature_index(1) == 1
    assert again.to_dict() == info.to_dict()
    with pytest.raises(UnknownNameError, match=r"no feature 'grösse'. Did you mean 'größe'\?"):
        again.feature_index("grösse")
