"""The shared pool: bounded, in order, never waiting for itself, new in a forked child."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest
from store_doubles import RecordingStore

from indextables.storage import pool
from indextables.storage.base import Capabilities, Store
from indextables.storage.diskcache import CacheSettings, CachingStore, DiskCache
from indextables.storage.memory import MemoryStore


class Far(MemoryStore):
    capabilities = Capabilities(remote=True, persistent=False, local_files=False)


class Gauge:
    """How many calls run at once, at most."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.now = self.most = self.calls = 0

    def __call__(self, item: int) -> int:
        with self.lock:
            self.now, self.calls = self.now + 1, self.calls + 1
            self.most = max(self.most, self.now)
        time.sleep(0.005)
        with self.lock:
            self.now -= 1
        return item * item


@pytest.fixture
def far() -> Store:
    return Far("memory://pool")


def test_results_come_in_order_and_no_more_run_than_allowed() -> None:
    gauge = Gauge()
    assert list(pool.in_order(gauge, range(50), 7)) == [i * i for i in range(50)]
    assert 1 < gauge.most <= 7


def test_all_that_is_allowed_runs_at_once() -> None:
    together = threading.Barrier(24)
    assert list(pool.in_order(lambda _: together.wait(20) >= 0, range(24), 24)) == [True] * 24


def test_heavy_items_run_few_at_once() -> None:
    cores = os.cpu_count() or 1
    heavy, light = Gauge(), Gauge()
    list(pool.in_order(heavy, range(30), 20, lambda _: 100, 150))
    assert heavy.most <= max(cores, 1)
    list(pool.in_order(light, range(60), 20, lambda _: 1, 150))
    assert cores < light.most <= 20


def test_an_error_comes_in_its_place_and_nothing_runs_on() -> None:
    gauge = Gauge()

    def run(item: int) -> int:
        if item == 3:
            raise ValueError("three")
        return gauge(item)

    found = []
    with pytest.raises(ValueError, match="three"):
        found += pool.in_order(run, range(100), 4)
    assert gauge.now == 0
    assert gauge.calls < 20


def test_who_leaves_early_leaves_nothing_running() -> None:
    gauge = Gauge()
    results = pool.in_order(gauge, range(100), 4)
    assert next(results) == 0
    results.close()
    calls = gauge.calls
    time.sleep(0.02)
    assert (gauge.now, gauge.calls) == (0, calls)


def test_nested_calls_do_not_wait_for_the_pool() -> None:
    def outer(item: int) -> int:
        return sum(pool.in_order(lambda i: i, range(item), 8)) + pool.submit(int, 1).result()

    many = 3 * pool.MOST_THREADS
    done = list(pool.in_order(outer, [4] * many, pool.MOST_THREADS))
    assert done == [7] * many


def test_side_by_side(far: Store) -> None:
    together = threading.Barrier(3)
    assert len(pool.side_by_side(far, *[lambda: together.wait(20)] * 3)) == 3
    near = MemoryStore("memory://pool")
    here = threading.get_ident()
    assert pool.side_by_side(near, threading.get_ident, threading.get_ident) == [here, here]
    with pytest.raises(ZeroDivisionError):
        pool.side_by_side(far, lambda: 1, lambda: 1 // 0)


def test_the_next_one_is_begun_while_the_last_is_worked_on(far: Store) -> None:
    begun = [threading.Event() for _ in range(4)]

    def make(item: int) -> int:
        begun[item].set()
        return item

    made = pool.one_ahead(far, make, range(4))
    for item in range(3):
        assert next(made) == item
        assert begun[item + 1].wait(20)
        assert item == 2 or not begun[item + 2].is_set()
    assert list(made) == [3]
    assert list(pool.one_ahead(far, make, [])) == []


def test_who_stops_reading_ahead_leaves_nothing_running(far: Store) -> None:
    gauge = Gauge()
    made = pool.one_ahead(far, gauge, range(9))
    assert next(made) == 0
    made.close()  # type: ignore[attr-defined]
    assert (gauge.now, gauge.calls <= 2) == (0, True)


def test_local_stores_and_threads_of_the_pool_make_one_after_the_other(far: Store) -> None:
    seen: list[int] = []
    near = MemoryStore("memory://pool")
    made = pool.one_ahead(near, seen.append, range(9))
    next(made)
    assert seen == [0]

    def inside(_: None) -> list[int]:
        found: list[int] = []
        next(pool.one_ahead(far, found.append, range(9)))
        return found

    assert pool.submit(inside, None).result(20) == [0]


def test_an_error_of_the_next_one_comes_in_its_turn(far: Store) -> None:
    made = pool.one_ahead(far, lambda item: 1 // item, [1, 0])
    assert next(made) == 1
    with pytest.raises(ZeroDivisionError):
        next(made)


def test_latency_decides_for_remote_stores_and_cores_for_others(far: Store) -> None:
    assert pool.workers(far) == pool.DEFAULT_WORKERS
    assert pool.workers(far, 5) == 5
    assert pool.workers(far, 0) == 1
    assert pool.workers(far, 10_000) == pool.MOST_THREADS
    assert pool.workers(MemoryStore("memory://pool"), 99) == (os.cpu_count() or 1)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_a_pool_of_its_own() -> None:
    assert list(pool.in_order(int, range(8), 4)) == list(range(8))

    def child() -> bool:
        return list(pool.in_order(int, range(8), 4)) == list(range(8))

    pid = os.fork()
    if pid == 0:
        os._exit(0 if child() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    inside = pool.submit(lambda _: forked_from_the_pool(), None)
    assert inside.result(30) == 0


def forked_from_the_pool() -> int:
    """A child made by a thread of the pool is not inside of its own."""
    pid = os.fork()
    if pid == 0:
        together = threading.Barrier(2)
        done = list(pool.in_order(lambda _: together.wait(10) >= 0, range(2), 2))
        os._exit(0 if done == [True, True] else 1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_wrapper_has_the_exchange_rate_of_its_store(tmp_path: Path) -> None:
    """Readers see the store behind the disk cache; what a request is worth must show through."""

    class Dear(Far):
        coalesce_gap = 512 << 10

    inner = Dear("memory://pool")
    assert RecordingStore(inner).coalesce_gap == 512 << 10
    cache = DiskCache(CacheSettings(str(tmp_path), 1 << 20))
    assert CachingStore(inner, cache).coalesce_gap == 512 << 10
