"""Memory of a search: the same query with another cap on the changes, or its curve, needs no second search."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

from torch import Tensor

Memory: TypeAlias = dict[tuple[int, bytes], Tensor]
_memory: ContextVar[Memory | None] = ContextVar("memory", default=None)


@contextmanager
def remember_searches(memory: Memory) -> Iterator[None]:
    """Keep the candidates of searches within the block in ``memory``, and take them from there.

    One memory is for one explainer and one set of constraints; queries and targets may differ, and so may caps.
    """
    before = _memory.set(memory)
    try:
        yield
    finally:
        _memory.reset(before)


def remembered(attempt: int, x: Tensor, target: Tensor, search: Callable[[], Tensor]) -> Tensor:
    """Return the candidates of a search, from the memory if there is one and it has them.

    Parameters
    ----------
    attempt
        Which real series the search starts from.
    x, target
        The queries (batch, time, features) and their targets.
    search
        Computes the candidates.
    """
    memory = _memory.get()
    if memory is None:
        return search()
    key = (attempt, x.cpu().numpy().tobytes() + target.cpu().numpy().tobytes())
    if key not in memory:
        memory[key] = search()
    return memory[key]
