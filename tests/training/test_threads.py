"""threads_for: small work runs on one thread, and the number of threads is given back."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from sparcets.evaluation.families import left_as_found
from sparcets.training.device import SMALL, threads_for


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("n_entries", "expected"), [(1, 1), (SMALL - 1, 1), (SMALL, 2)])
def test_small_work_runs_on_one_thread(two_threads, n_entries, expected):
    with threads_for(n_entries):
        assert torch.get_num_threads() == expected
    assert torch.get_num_threads() == 2


def test_a_thread_that_starts_during_a_block_of_another_does_not_keep_its_number(two_threads):
    with ThreadPoolExecutor(1) as other:
        with threads_for(1):
            other.submit(torch.get_num_threads).result()  # takes over the number of the process, which is 1 now

        def enter():
            with threads_for(1):
                pass
            return torch.get_num_threads()

        assert other.submit(enter).result() == 2
    assert torch.get_num_threads() == 2
    with ThreadPoolExecutor(1) as new:
        assert new.submit(torch.get_num_threads).result() == 2


def test_judges_in_a_thread_that_starts_during_a_block_of_another_do_not_keep_its_number(two_threads):
    with ThreadPoolExecutor(1) as other:
        judging = left_as_found()
        with threads_for(1):
            other.submit(judging.__enter__).result()
        other.submit(judging.__exit__, None, None, None).result()
    with ThreadPoolExecutor(1) as new:
        assert (torch.get_num_threads(), new.submit(torch.get_num_threads).result()) == (2, 2)
