"""Caches: time counted from the write, another table at the same place, own writes."""

from __future__ import annotations

from typing import Any

from log_helpers import append, config, names, new_table, reopen
from store_doubles import RecordingStore

from indextables.log.log import TransactionLog
from indextables.log.read import cache as caching
from indextables.log.read.cache import LogCache, Timed, snapshot_ttl_s, version_ttl_s
from indextables.log.read.versions import LOG_DIR


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_entries_live_from_their_write_however_often_they_are_read() -> None:
    clock = Clock()
    cache: Timed[str] = Timed(10, clock)
    cache.put(10, "v", "t")
    for _ in range(9):
        clock.now += 1
        assert cache.get("t") == "v"
    clock.now += 1
    assert cache.get("t") is None
    assert (cache.hits, cache.misses) == (9, 1)


def test_replacing_does_not_prolong() -> None:
    clock = Clock()
    cache: Timed[int] = Timed(10, clock)
    cache.put(10, 1, "t")
    clock.now += 9
    cache.replace(2, "t")
    assert cache.get("t") == 2
    clock.now += 2
    assert cache.get("t") is None
    cache.replace(3, "t")
    assert cache.get("t") is None


def test_the_least_used_entries_make_room() -> None:
    cache: Timed[int] = Timed(2, Clock())
    cache.put(10, 1, "t", 1)
    cache.put(10, 2, "t", 2)
    cache.get("t", 1)
    cache.put(10, 3, "t", 3)
    assert [cache.get("t", k) for k in (1, 2, 3)] == [1, None, 3]


def test_invalidate_one_table_or_all() -> None:
    cache: Any = LogCache()
    for table in ("a", "b"):
        cache.latest.put(10, "s", table)
        cache.versions.put(10, "v", table, 3)
    assert cache.invalidate("a") == 2
    assert cache.latest.get("b") == "s"
    assert cache.versions.get("b", 3) == "v"
    assert cache.versions.get("a", 3) is None
    assert (cache.hits, cache.misses) == (2, 1)
    assert cache.invalidate() == 2


def test_settings_choose_the_time() -> None:
    assert snapshot_ttl_s(config()) == 600
    assert version_ttl_s(config()) == 300
    assert snapshot_ttl_s(config(transaction__cache__expirationSeconds=7)) == 7
    assert snapshot_ttl_s(config(transaction__cache__ttl__ms=5000)) == 5
    both = {"transaction.cache.ttl.ms": 5000, "transaction.cache.snapshot.ttl.ms": 3000}
    assert snapshot_ttl_s(config(**both)) == 3
    assert snapshot_ttl_s(config(transaction__cache__enabled=False)) == 0


def test_a_table_made_again_at_the_same_place_is_another_table() -> None:
    log = new_table()
    append(log, "old1")
    append(log, "old2")
    assert names(log) == ["old1", "old2"]
    for info in list(log.store.list(LOG_DIR, recursive=True)):
        log.store.delete([info.path])
    again = new_table(log.store)
    assert names(log) == []
    append(again, "new")
    append(again, "newer")
    assert names(log) == ["new", "newer"]
    assert log.snapshot(version=1).paths.to_pylist() == ["new.split"]
    assert log.table_id == again.table_id


def test_own_writes_are_seen_at_once_and_not_read_back() -> None:
    log = new_table(checkpoint__enabled=False)
    store = RecordingStore(log.store)
    writer = reopen(log, store=store)
    writer.snapshot()
    store.clear()
    append(writer, "a")
    assert names(writer) == ["a"]
    assert store.count("read_many") == 0


def test_other_writers_are_seen_at_once() -> None:
    log = new_table()
    reader = TransactionLog(log.path, log.store, log.config)
    for i in range(12):
        append(
            TransactionLog(log.path, log.store, config(transaction__cache__enabled=False)), f"s{i}"
        )
        assert len(names(reader)) == i + 1


def test_without_cache_nothing_is_kept() -> None:
    caching.SHARED.invalidate()
    log = new_table(transaction__cache__enabled=False)
    append(log, "a")
    assert names(log) == ["a"]
    assert caching.SHARED.invalidate() == 0


def test_invalidate_cache() -> None:
    log = new_table()
    append(log, "a")
    log.snapshot()
    assert log.invalidate_cache() > 0
    assert log.invalidate_cache() == 0
    assert names(log) == ["a"]


def test_old_snapshots_stay_as_they_are() -> None:
    log = new_table()
    append(log, "a")
    old = log.snapshot()
    append(log, "b")
    assert old.paths.to_pylist() == ["a.split"]
    assert old.refresh().num_files == 2


def test_the_snapshot_of_a_commit_grows_out_of_the_one_before() -> None:
    log = new_table(checkpoint__enabled=False)
    for i in range(5):
        append(log, f"s{i}")
    store = RecordingStore(log.store)
    writer = reopen(log, store=store)
    before = writer.snapshot()
    store.clear()
    result = append(writer, "x")
    assert result.snapshot.version == 6
    assert before.num_files == 5
    assert store.count("read_many") == 0
    assert result.snapshot is writer.snapshot()
