"""A thread-safe cache of the most recently used items."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class LruCache(Generic[T]):
    """Holds items up to a total size and drops the least recently used ones.

    Parameters
    ----------
    size
        The largest total; a single item may exceed it.
    measure
        Returns the size of an item; by default each counts 1.

    Examples
    --------
    >>> cache: LruCache[int] = LruCache(1)
    >>> cache.get("a", lambda: 1), cache.get("a", lambda: 2)
    (1, 1)
    """

    def __init__(self, size: int, measure: Callable[[T], int] = lambda item: 1) -> None:
        self._size, self._measure, self._total = size, measure, 0
        self._items: OrderedDict[str, T] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, key: str, item: T) -> None:
        """Store an item as the most recently used one."""
        with self._lock:
            if key in self._items:
                self._total -= self._measure(self._items.pop(key))
            self._items[key] = item
            self._total += self._measure(item)
            while self._total > self._size and len(self._items) > 1:
                self._total -= self._measure(self._items.popitem(last=False)[1])

    def find(self, key: str) -> T | None:
        """Return an item, which becomes the most recently used one; None if it is not stored."""
        with self._lock:
            if key in self._items:
                self._items.move_to_end(key)
            return self._items.get(key)

    def get(self, key: str, create: Callable[[], T]) -> T:
        """Return an item; if it is not stored, create and store it."""
        found = self.find(key)
        if found is None:
            found = create()  # not under the lock: it may take long
            self.put(key, found)
        return found
