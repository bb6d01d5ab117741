"""A thread-safe cache of the most recently used items."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class LruCache(Generic[T]):
    """Holds up to ``size`` items and drops the least recently used one.

    >>> cache: LruCache[int] = LruCache(1)
    >>> cache.get("a", lambda: 1), cache.get("a", lambda: 2)
    (1, 1)
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._items: OrderedDict[str, T] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, key: str, item: T) -> None:
        """Store an item as the most recently used one."""
        with self._lock:
            self._items[key] = item
            self._items.move_to_end(key)
            while len(self._items) > self._size:
                self._items.popitem(last=False)

    def get(self, key: str, create: Callable[[], T]) -> T:
        """Return an item; if it is not stored, create and store it."""
        with self._lock:
            if key in self._items:
                self._items.move_to_end(key)
                return self._items[key]
        item = create()  # not under the lock: it may take long
        self.put(key, item)
        return item
