"""Sizes by the data: what suits how much of it, and settings that win over it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sparcets as sp
from sparcets.explainers.sparcets.sizing import MUCH, WIDE, Sizes, chosen_sizes, sizes_for

SMALL = {"hidden": 16, "layers": 4, "batch_size": 32, "witnesses": 4, "witness_steps": 800}
LARGE = {"hidden": 32, "layers": 6, "batch_size": 128, "witnesses": 8, "witness_steps": 1500}


@pytest.mark.parametrize(
    ("n_series", "steps"), [(0, 500), (3, 500), (4, 501), (40, 510), (1_000, 750), (9_999, 2999), (10_000, 3000)]
)
def test_on_a_core_the_network_is_small_and_four_series_add_a_step(n_series, steps):
    assert sizes_for(n_series, 12, on_gpu=False) == Sizes(**SMALL, steps=steps)


def test_no_training_is_longer_than_3000_steps():
    assert sizes_for(10**7, 12, on_gpu=False).steps == sizes_for(10**7, 12, on_gpu=True).steps == 3000


def test_a_gpu_is_made_use_of_where_there_is_much_data():
    assert MUCH == 1000
    assert sizes_for(999, 12, on_gpu=True) == sizes_for(999, 12, on_gpu=False) == Sizes(**SMALL, steps=749)
    assert sizes_for(1000, 12, on_gpu=True) == sizes_for(14_080, 12, on_gpu=True) == Sizes(**LARGE, steps=3000)


def test_of_many_features_a_small_network_is_enough():
    assert WIDE == 32
    assert sizes_for(5000, 32, on_gpu=True) == Sizes(**LARGE, steps=3000)
    assert sizes_for(5000, 33, on_gpu=True) == Sizes(**{**LARGE, "hidden": 16, "layers": 4}, steps=3000)
    assert sizes_for(5000, 33, on_gpu=False) == sizes_for(5000, 32, on_gpu=False)


@given(st.integers(0, 50_000), st.integers(0, 50_000), st.integers(1, 100), st.booleans())
def test_more_data_never_get_less(a, b, n_features, on_gpu):
    less, more = (sizes_for(n, n_features, on_gpu=on_gpu) for n in sorted((a, b)))
    for name in ("hidden", "layers", "batch_size", "steps", "witnesses", "witness_steps"):
        assert getattr(less, name) <= getattr(more, name)


@pytest.mark.parametrize("on_gpu", [False, True])
def test_where_the_settings_say_nothing_the_data_decide(on_gpu):
    for n_series in (40, 5000):
        assert chosen_sizes(sp.SparceConfig(), n_series, 12, on_gpu=on_gpu) == sizes_for(n_series, 12, on_gpu=on_gpu)


@pytest.mark.parametrize(
    ("setting", "name", "value"),
    [
        ("generator.hidden=7", "hidden", 7),
        ("generator.layers=1", "layers", 1),
        ("train.batch_size=5", "batch_size", 5),
        ("witnesses=0", "witnesses", 0),
    ],
)
@pytest.mark.parametrize("on_gpu", [False, True])
def test_a_setting_wins_over_the_data_and_leaves_the_rest_to_them(setting, name, value, on_gpu):
    fitting = sizes_for(5000, 12, on_gpu=on_gpu)
    chosen = chosen_sizes(sp.SparceConfig().override(setting), 5000, 12, on_gpu=on_gpu)
    for other in ("hidden", "layers", "batch_size", "steps", "witnesses", "witness_steps"):
        assert getattr(chosen, other) == (value if other == name else getattr(fitting, other))


def test_all_of_them_at_once():
    chosen = chosen_sizes(sp.SparceConfig.tiny(), 5000, 12, on_gpu=True)
    assert chosen == Sizes(hidden=8, layers=2, batch_size=32, steps=3000, witnesses=1, witness_steps=8 * 25)


def test_witnesses_take_no_longer_than_a_generator_that_is_wanted_quick():
    for epochs, steps in ((1, 25), (4, 100), (32, 800), (400, 800)):
        quick = sp.SparceConfig().override(f"train.epochs={epochs}")
        assert chosen_sizes(quick, 500, 12, on_gpu=False).witness_steps == steps
