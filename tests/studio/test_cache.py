"""The cache of the most recently used items."""

from sparcets.studio.cache import LruCache


def test_the_least_recently_used_item_is_dropped() -> None:
    cache: LruCache[str] = LruCache(2)
    created = []

    def create(key: str) -> str:
        created.append(key)
        return key.upper()

    for key in "abacab":
        assert cache.get(key, lambda key=key: create(key)) == key.upper()  # type: ignore[misc]
    assert created == ["a", "b", "c", "b"]
