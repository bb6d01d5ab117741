"""Standardisation: by hand, round trips, padding, constant features."""

import json

import numpy as np
import pytest

from sparcets.core.series import Scaler

X = np.array([[[1.0, 10.0], [3.0, 10.0]], [[5.0, 10.0], [7.0, 10.0]]])  # (2, 2, 2)


def test_by_hand_with_padding_and_as_json():
    scaler = Scaler.fit(X)
    assert scaler.center.tolist() == [4.0, 10.0]
    assert scaler.scale.tolist() == [np.sqrt(5.0), 1.0], "of -3 -1 1 3; and 1 for a constant feature"
    assert scaler.transform(X)[1, 1].tolist() == [3 / np.sqrt(5.0), 0.0]
    padded = Scaler.fit(X, np.array([2, 1]))
    assert padded.center[0] == 3.0 and padded.scale[0] == np.sqrt(8 / 3)
    assert Scaler.fit(X, np.array([2, 2])).to_dict() == scaler.to_dict()
    again = Scaler.from_dict(json.loads(json.dumps(Scaler.fit(X / 3).to_dict())))
    assert again.to_dict() == Scaler.fit(X / 3).to_dict()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [0.0, 0.1, -1e6, 1e-30, 3.3e7])
def test_constant_features_have_scale_one(dtype, value):
    constant = np.full((50, 30, 1), value, dtype=dtype)
    assert Scaler.fit(constant).scale.tolist() == [1.0]
    constant[::2] = np.nextafter(constant[::2], dtype(np.inf))  # by the last bit: rounding, not signal
    assert Scaler.fit(constant).scale.tolist() == [1.0] or value == 0.0
    seconds = 1.7e9 + np.array([0.0, 100.0])[:, None, None]  # a time stamp, which float64 resolves
    assert Scaler.fit(seconds).scale.tolist() == [50.0]


def test_powers_of_two_bring_values_back_bit_for_bit():
    rng = np.random.default_rng(0)
    X = np.stack([rng.normal(40, 9, 99), rng.integers(20, 90, 99), rng.integers(0, 2, 99)], axis=1)[:, None]
    X = X.astype(np.float32)
    exact = Scaler.fit(X).exact_from(1)
    assert exact.center[0] == X[..., 0].mean(dtype=np.float64) and (np.log2(exact.scale[1:]) % 1 == 0).all()
    there = exact.transform(X)
    assert np.array_equal(exact.inverse(there)[..., 1:], X[..., 1:])
    assert (np.abs(there.mean((0, 1))) < 0.6).all() and (there.std((0, 1)) > 0.6).all()
