"""The cache: what is dropped first, bounds by number and bytes, threads, forks."""

from __future__ import annotations

import gc
import os
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from indextables.lru import LRU, CacheUse


def keys(cache: LRU[Any, Any]) -> list[Any]:
    return [key for key, _ in cache.items()]


def test_the_least_recently_used_entry_goes_first() -> None:
    cache: LRU[str, int] = LRU(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert keys(cache) == ["c", "a"]
    assert cache.get("b") is None
    assert cache.use == CacheUse(hits=1, misses=1, evicted=1, entries=2, nbytes=0)


def test_asking_whether_a_key_is_here_is_no_use_of_it() -> None:
    cache: LRU[str, int] = LRU(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert "a" in cache
    cache.put("c", 3)
    assert "a" not in cache
    assert cache.use.hits == cache.use.misses == 0


def test_bytes_are_a_bound_and_the_newest_entry_stays() -> None:
    cache: LRU[str, bytes] = LRU(most_bytes=100, size_of=len)
    for name in "abc":
        cache.put(name, b"x" * 40)
    assert keys(cache) == ["c", "b"]
    assert cache.use.nbytes == 80
    cache.put("large", b"x" * 500)
    assert keys(cache) == ["large"]
    cache.put("d", b"x")
    assert keys(cache) == ["d"]
    assert cache.use.nbytes == 1


def test_a_value_put_again_counts_once() -> None:
    cache: LRU[str, bytes] = LRU(most_bytes=100, size_of=len)
    cache.put("a", b"x" * 60)
    cache.put("a", b"x" * 70)
    assert (len(cache), cache.use.nbytes, cache.use.evicted) == (1, 70, 0)


def test_values_that_grow_are_measured_again() -> None:
    cache: LRU[str, bytearray] = LRU(most_bytes=100, size_of=len, grows=True)
    first = bytearray(10)
    cache.put("a", first)
    cache.put("b", bytearray(10))
    first.extend(bytes(200))
    assert cache.use.nbytes == 220
    cache.put("c", bytearray(10))
    assert keys(cache) == ["c", "b"]


def test_other_bounds_take_effect_at_once() -> None:
    cache: LRU[int, bytes] = LRU(size_of=len)
    for i in range(10):
        cache.put(i, b"x")
    assert len(cache) == 10
    cache.limit(most_bytes=4)
    assert keys(cache) == [9, 8, 7, 6]
    cache.limit(most=2)
    assert keys(cache) == [9, 8]


def test_entries_are_removed_by_key_by_test_and_all() -> None:
    cache: LRU[int, bytes] = LRU(size_of=len)
    for i in range(6):
        cache.put(i, b"x")
    cache.remove(0)
    cache.remove(99)
    assert cache.remove_if(lambda key, value: key % 2 == 1) == 3
    assert keys(cache) == [4, 2]
    assert cache.clear() == 2
    assert (len(cache), cache.use.nbytes) == (0, 0)


def test_none_is_a_value_like_others() -> None:
    cache: LRU[str, int | None] = LRU(2)
    made: list[int] = []

    def make() -> None:
        made.append(1)

    assert cache.load("a", make) is None
    assert cache.load("a", make) is None
    assert made == [1]


def test_what_could_not_be_made_is_tried_again() -> None:
    cache: LRU[str, int] = LRU(2)
    with pytest.raises(ZeroDivisionError):
        cache.load("a", lambda: 1 // 0)
    assert cache.load("a", lambda: 7) == 7
    assert not cache._being_made


def test_a_value_is_dropped_while_the_lock_is_free() -> None:
    cache: LRU[int, Any] = LRU(1)

    class AsksAgain:
        def __del__(self) -> None:
            asked.append(cache.get(2))

    asked: list[Any] = []
    cache.put(1, AsksAgain())
    cache.put(2, "two")
    gc.collect()
    assert asked == ["two"]


def test_threads_make_a_value_once() -> None:
    cache: LRU[int, int] = LRU(8)
    made: list[int] = []
    start = threading.Barrier(8)

    def work(_: int) -> list[int]:
        start.wait()
        return [cache.load(key, lambda key=key: made.append(key) or key) for key in range(5)]  # type: ignore[misc,func-returns-value]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [list(range(5))] * 8
    assert sorted(made) == list(range(5))


def test_threads_do_not_wait_for_other_keys() -> None:
    cache: LRU[str, int] = LRU(8)
    inside, go_on = threading.Event(), threading.Event()

    def slow() -> int:
        inside.set()
        assert go_on.wait(30)
        return 1

    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(cache.load, "slow", slow)
        assert inside.wait(30)
        assert cache.load("quick", lambda: 2) == 2
        go_on.set()
        assert coming.result() == 1


def test_threads_keep_the_bounds(rng: random.Random) -> None:
    cache: LRU[int, bytes] = LRU(20, most_bytes=500, size_of=len)
    seeds = [rng.random() for _ in range(6)]

    def work(seed: float) -> None:
        own = random.Random(seed)
        for _ in range(2_000):
            key = own.randrange(60)
            act: list[Callable[[], Any]] = [
                lambda key=key: cache.load(key, lambda: bytes(key)),  # type: ignore[misc]
                lambda key=key: cache.get(key),  # type: ignore[misc]
                lambda key=key: cache.put(key, bytes(key)),  # type: ignore[misc]
                lambda key=key: cache.remove(key),  # type: ignore[misc]
            ]
            own.choice(act)()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, seeds))
    held = cache.items()
    assert len(held) <= 20
    assert cache.use.nbytes == sum(len(value) for _, value in held) <= 500
    assert all(value == bytes(key) for key, value in held)


def in_child(check: Callable[[], bool]) -> bool:
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if check() else 2
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_forked_child_starts_empty_and_frees_nothing() -> None:
    cache: LRU[int, Any] = LRU(4, size_of=lambda value: 1)
    freed: list[int] = []

    class Resource:
        def __del__(self) -> None:
            freed.append(os.getpid())

    cache.put(1, Resource())

    def check() -> bool:
        gc.collect()
        empty = len(cache) == 0 and cache.use.nbytes == 0
        return empty and cache.load(1, lambda: "own") == "own" and not freed

    assert in_child(check)
    assert isinstance(cache.get(1), Resource)


def test_a_child_does_not_inherit_a_lock_that_is_held() -> None:
    cache: LRU[int, int] = LRU(4)
    inside, go_on = threading.Event(), threading.Event()

    def slow() -> int:
        inside.set()
        assert go_on.wait(30)
        return 1

    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(cache.load, 1, slow)
        assert inside.wait(30)
        with cache._lock:
            assert in_child(lambda: cache.load(1, lambda: 5) == 5)
        go_on.set()
        assert coming.result() == 1
