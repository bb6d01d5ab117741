"""Memory of a search: the same query with another cap on the changes, or its curve, needs no second search.

It also gives drafts: answers from what is remembered, without a search where that is possible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeAlias

from torch import Tensor

Memory: TypeAlias = dict[tuple[int, bytes], Tensor]


@dataclass(eq=False)
class Draft:
    """An answer that is wanted soon: of what is remembered, else of one search.

    Attributes
    ----------
    earlier
        Memory of the same query under other constraints, whose candidates are tried within those of now.
    is_final
        Whether nothing was left out, so that the answer is the one that is always given.
    """

    earlier: Memory = field(default_factory=dict)
    is_final: bool = True


_memory: ContextVar[Memory | None] = ContextVar("memory", default=None)
_draft: ContextVar[Draft | None] = ContextVar("draft", default=None)


@contextmanager
def remember_searches(memory: Memory, draft: Draft | None = None) -> Iterator[None]:
    """Keep the candidates of searches within the block in ``memory``, and take them from there.

    One memory is for one explainer and one set of constraints; queries and targets may differ, and so may caps. With a
    ``draft``, an answer may leave out what would take another search.
    """
    before = _memory.set(memory), _draft.set(draft)
    try:
        yield
    finally:
        _memory.reset(before[0])
        _draft.reset(before[1])


def wanted_draft() -> Draft | None:
    """Return the draft that is wanted, or None if the answer is wanted as it is always given."""
    return _draft.get()


def recall(attempt: int, x: Tensor, target: Tensor, memory: Memory | None = None) -> Tensor | None:
    """Return the candidates of a search if they are remembered, in the memory of the block or in another one."""
    memory = _memory.get() if memory is None else memory
    return None if memory is None else memory.get(_key(attempt, x, target))


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
    key = _key(attempt, x, target)
    if key not in memory:
        memory[key] = search()
    return memory[key]


def _key(attempt: int, x: Tensor, target: Tensor) -> tuple[int, bytes]:
    return attempt, x.cpu().numpy().tobytes() + target.cpu().numpy().tobytes()
