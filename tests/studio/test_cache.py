"""The cache of the most recently used items."""

from sparcets.studio.answers import LruCache


def test_the_least_recently_used_item_is_dropped() -> None:
    cache: LruCache[str] = LruCache(2)
    created = []

    def create(key: str) -> str:
        created.append(key)
        return key.upper()

    for key in "abacab":
        assert cache.get(key, lambda key=key: create(key)) == key.upper()  # type: ignore[misc]
    assert created == ["a", "b", "c", "b"]


def test_the_size_of_items_counts() -> None:
    cache: LruCache[str] = LruCache(5, len)
    for key, item in (("a", "12"), ("b", "345"), ("a", "1")):
        cache.put(key, item)
    assert cache.find("a") == "1" and cache.find("b") == "345"  # 4 in all: the first "a" does not count any more
    cache.put("c", "67")
    assert cache.find("a") is None and cache.find("b") == "345" and cache.find("c") == "67"
    cache.put("d", "too large")  # is kept alone: it was asked for
    assert [cache.find(key) for key in "bcd"] == [None, None, "too large"]
