"""Child seeds: stable, independent of each other and of the global random state."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparcets.core.errors import ConfigError
from sparcets.core.seeding import spawn


def test_child_seeds_never_change_and_come_from_integers():
    # Published results depend on these numbers.
    assert spawn(np.int64(7), "x") == spawn(7, "x")
    assert [spawn(0, "generator"), spawn(1, "generator"), spawn(0, "split")] == [659943366, 2021730010, 2668274536]
    for seed in (1.0, "1", None, True, np.float64(2)):
        with pytest.raises(ConfigError, match="seed must be a whole number, got"):
            spawn(seed, "x")


@given(st.integers(), st.integers(), st.text(max_size=5), st.text(max_size=5))
def test_different_purposes_have_different_seeds(a, b, one, two):
    assert (spawn(a, one) == spawn(b, two)) == ((a, one) == (b, two))
    assert 0 <= spawn(a, one) < 2**32, "torch and NumPy take it"
