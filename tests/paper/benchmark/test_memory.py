"""A process's peak is its own: not that of the process that started it."""

import multiprocessing
import sys

import numpy as np
import pytest

from sparcets_paper.benchmark.speed_setting import _peak


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere the system has one count only")
def test_a_peak_does_not_begin_with_what_the_starting_process_held() -> None:
    held = np.ones(2**26)  # 512 MiB
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        started = pool.apply(_peak)
    assert _peak() > held.nbytes > 2 * started
