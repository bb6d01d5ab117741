"""Sizes by the data and the device; settings take precedence."""

from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sparcets as sp
from sparcets.methods.own.generator import ModelSizes, configured_sizes, default_sizes

SMALL = {"hidden": 16, "layers": 4, "batch_size": 32}
LARGE = {"hidden": 32, "layers": 6, "batch_size": 128}


@pytest.mark.parametrize(("n_series", "steps"), [(0, 500), (3, 500), (4, 501), (40, 510), (1_000, 750), (1_580, 895)])
def test_on_a_cpu_the_network_is_small_and_four_series_add_a_step(n_series, steps):
    assert default_sizes(n_series, 12, on_gpu=False) == ModelSizes(**SMALL, steps=steps)


@pytest.mark.parametrize("on_gpu", [False, True])
def test_the_length_of_a_training_is_limited(on_gpu):
    assert default_sizes(10**6, 12, on_gpu=on_gpu) == default_sizes(10**7, 12, on_gpu=on_gpu)
    assert default_sizes(10**7, 12, on_gpu=on_gpu).steps <= 3000


def test_on_a_gpu_many_series_get_a_large_network():
    assert default_sizes(999, 12, on_gpu=True) == default_sizes(999, 12, on_gpu=False) == ModelSizes(**SMALL, steps=749)
    large = ModelSizes(**LARGE, steps=1800)
    assert default_sizes(1000, 12, on_gpu=True) == default_sizes(14_080, 12, on_gpu=True) == large


def test_many_features_get_a_small_network():
    assert default_sizes(5000, 32, on_gpu=True) == ModelSizes(**LARGE, steps=1800)
    assert default_sizes(5000, 33, on_gpu=True) == ModelSizes(**{**LARGE, "hidden": 16, "layers": 4}, steps=1800)
    assert default_sizes(5000, 33, on_gpu=False) == default_sizes(5000, 32, on_gpu=False)


@given(st.integers(0, 50_000), st.integers(0, 50_000), st.integers(1, 100), st.booleans())
def test_sizes_never_fall_with_the_number_of_series(a, b, n_features, on_gpu):
    less, more = (asdict(default_sizes(n, n_features, on_gpu=on_gpu)) for n in sorted((a, b)))
    assert all(value <= more[name] for name, value in less.items())


@pytest.mark.parametrize("on_gpu", [False, True])
@pytest.mark.parametrize("n_series", [40, 5000])
def test_the_default_settings_leave_the_sizes_to_the_data(n_series, on_gpu):
    sizes = configured_sizes(sp.ExplainerConfig(), n_series, 12, on_gpu=on_gpu)
    assert sizes == default_sizes(n_series, 12, on_gpu=on_gpu)


@pytest.mark.parametrize(
    ("setting", "name", "value"),
    [
        ("generator.hidden=7", "hidden", 7),
        ("generator.layers=1", "layers", 1),
        ("train.batch_size=5", "batch_size", 5),
    ],
)
@pytest.mark.parametrize("on_gpu", [False, True])
def test_a_setting_replaces_its_own_size_and_no_other(setting, name, value, on_gpu):
    sizes = configured_sizes(sp.ExplainerConfig().override(setting), 5000, 12, on_gpu=on_gpu)
    assert asdict(sizes) == {**asdict(default_sizes(5000, 12, on_gpu=on_gpu)), name: value}


def test_all_settings_together():
    sizes = configured_sizes(sp.ExplainerConfig.tiny(), 5000, 12, on_gpu=True)
    assert sizes == ModelSizes(hidden=8, layers=2, batch_size=32, steps=1800)
