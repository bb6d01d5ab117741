"""Filters of warnings are as they were, whatever other threads do to them meanwhile."""

import threading
import warnings
from itertools import permutations

import pytest

from sparcets.core.errors import preserve_warning_filters

STEPS = ("enter ours", "leave ours", "enter theirs", "leave theirs")
WHOSE = ("ours", "theirs")
ORDERS = [o for o in permutations(STEPS) if all(o.index(f"enter {w}") < o.index(f"leave {w}") for w in WHOSE)]


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: ", ".join(order))
def test_a_block_of_another_thread_restores_what_was_there(order):
    """Of two threads, every order in which a block of ours and one of pandas' can begin and end."""
    before = list(warnings.filters)
    ours, theirs = preserve_warning_filters(ignore=Warning), warnings.catch_warnings()
    turns = {step: threading.Event() for step in STEPS}

    def our_thread():
        assert turns["enter ours"].wait(10)
        with ours:
            done.set()
            assert turns["leave ours"].wait(10)

    done = threading.Event()
    thread = threading.Thread(target=our_thread)
    thread.start()
    for step in order:
        if step == "enter theirs":
            theirs.__enter__()
            warnings.simplefilter("always", DeprecationWarning)
        elif step == "leave theirs":
            theirs.__exit__(None, None, None)
        else:
            turns[step].set()
            done.wait(10) if step == "enter ours" else thread.join(10)
    assert list(warnings.filters) == before


def test_what_is_ignored_is_not_shown_and_the_rest_is():
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        before = list(warnings.filters)
        with preserve_warning_filters(ignore=RuntimeWarning):
            with preserve_warning_filters(ignore=RuntimeWarning):  # nested: the outer one goes on
                pass
            warnings.warn("hidden", RuntimeWarning, stacklevel=1)
            warnings.warn("told", UserWarning, stacklevel=1)
        warnings.warn("after", RuntimeWarning, stacklevel=1)
        assert warnings.filters == before
    assert [str(w.message) for w in shown] == ["told", "after"]
