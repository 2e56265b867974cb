"""Settings of the transaction log act: files, requests, tries and errors show it."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from settings_world import Far, append, cold, files, memory, new_log, remove, settings, split
from store_doubles import Fault, FaultKind, FaultyStore

from indextables.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    IndexTablesError,
    StorageError,
    TransientStorageError,
)
from indextables.log.actions import AddXRef, Protocol
from indextables.log.actions.codec import encode_actions
from indextables.log.commit.loop import CommitLoop
from indextables.log.commit.transaction import Transaction
from indextables.log.log import TransactionLog
from indextables.log.read import cache
from indextables.log.read.versions import list_log, version_path
from indextables.storage.base import Store, open_store
from indextables.storage.retry import tries
from indextables.storage.wrapped import Call, WrappedStore

CREATE = frozenset(("put_if_absent",))


@pytest.fixture(autouse=True)
def no_cached_tables() -> Iterator[None]:
    yield
    cache.SHARED.invalidate()


def checkpoints(log: TransactionLog) -> list[int]:
    listing = list_log(log.store)
    return sorted({*listing.states, *listing.checkpoints})


# -- checkpoints ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("enabled", "found"), [(True, [1, 2, 3]), (False, [])])
def test_checkpoint_enabled(enabled: bool, found: list[int]) -> None:
    log = new_log(checkpoint__enabled=enabled, checkpoint__interval=1)
    for i in range(3):
        append(log, f"s{i}")
    assert checkpoints(log) == found


@pytest.mark.parametrize(("interval", "found"), [(0, []), (2, [2, 4]), (3, [3])])
def test_checkpoint_interval(interval: int, found: list[int]) -> None:
    log = new_log(checkpoint__interval=interval)
    for i in range(5):
        append(log, f"s{i}")
    assert checkpoints(log) == found


@pytest.mark.parametrize(("most", "parts"), [(100, 0), (4, 2), (2, 4)])
def test_checkpoint_actions_per_part(most: int, parts: int) -> None:
    values = {"checkpoint__actionsPerPart": most, "checkpoint__interval": 0}
    log = new_log(state__format="json", **values)
    append(log, *"abcde")
    assert log.checkpoint().parts == parts
    assert len(list_log(log.store).parts) == parts


def test_checkpoint_parallelism() -> None:
    store = Far(memory())
    given = {"state__format": "json", "checkpoint__actionsPerPart": 2, "checkpoint__interval": 0}
    log = new_log(store, checkpoint__parallelism=3, **given)
    append(log, *"abcde")
    log.checkpoint()
    store.at_once.clear()
    assert cold(log).snapshot().num_files == 5
    assert 3 in store.at_once
    store.at_once.clear()
    cold(log, checkpoint__parallelism=5).snapshot()
    assert 5 in store.at_once
    assert 3 not in store.at_once


class Stuck(Far):
    """Answers no read of some paths before it is released."""

    def __init__(self, inner: Store, part: str) -> None:
        super().__init__(inner)
        self.part = part
        self.released = threading.Event()

    def _around(self, call: Call, run: Any) -> Any:
        if call.op in ("read", "read_many") and self.part in call.path:
            self.released.wait()
        return super()._around(call, run)


@pytest.mark.parametrize(
    ("part", "given"),
    [
        ("state-v", {}),
        ("manifests/", {}),
        (".checkpoint.json", {"state__format": "json"}),
        ("00001.json", {"checkpoint__enabled": False}),
    ],
)
def test_checkpoint_read_timeout_seconds(part: str, given: dict[str, Any]) -> None:
    log = new_log(checkpoint__interval=1, checkpoint__read__timeoutSeconds=1, **given)
    append(log, "a")
    stuck = Stuck(log.store, part)
    try:
        with pytest.raises(TransientStorageError, match=r"1 seconds.*read\.timeoutSeconds"):
            cold(TransactionLog(log.path, stuck, log.config)).snapshot()
    finally:
        stuck.released.set()
    assert cold(TransactionLog(log.path, stuck, log.config)).snapshot().num_files == 1


# -- clean-up ------------------------------------------------------------------------------------


def aged(folder: Path, hours: float, **values: Any) -> TransactionLog:
    """Six versions, checkpoints in JSON at 2, 4 and 6, all of them some hours old."""
    from settings_world import age

    place = open_store(str(folder / "t"))
    log = new_log(place, **{"checkpoint__interval": 0, "state__format": "json", **values})
    for i in range(6):
        append(log, f"s{i}")
        if i % 2:
            log.checkpoint()
    age(folder, hours)
    return cold(log)


@pytest.mark.parametrize(("kept_ms", "left"), [(10 * 3_600_000, [2, 4, 6]), (3_600_000, [6])])
def test_checkpoint_retention_duration(tmp_path: Path, kept_ms: int, left: list[int]) -> None:
    log = aged(tmp_path, 5, logRetention__duration=1, checkpointRetention__duration=kept_ms)
    log.cleanup()
    assert checkpoints(log) == left


@pytest.mark.parametrize(
    ("kept_ms", "left"), [(10 * 3_600_000, [0, 1, 2, 3, 4, 5, 6]), (3_600_000, [0, 6])]
)
def test_log_retention_duration(tmp_path: Path, kept_ms: int, left: list[int]) -> None:
    log = aged(tmp_path, 5, logRetention__duration=kept_ms)
    log.cleanup()
    assert sorted(list_log(log.store).versions) == left


@pytest.mark.parametrize("dry", [True, False])
def test_cleanup_dry_run(tmp_path: Path, dry: bool) -> None:
    log = aged(tmp_path, 5, logRetention__duration=1, cleanup__dryRun=dry)
    before = files(log.store)
    report = log.cleanup()
    assert report.versions == [1, 2, 3, 4, 5]
    assert (files(log.store) == before) is dry


class Undeletable(WrappedStore):
    def delete(self, paths: Any) -> None:
        raise StorageError("forbidden", path=paths[0])


def test_cleanup_failure_policy(tmp_path: Path) -> None:
    log = aged(tmp_path, 5, logRetention__duration=1)
    broken = TransactionLog(log.path, Undeletable(log.store), log.config)
    report = broken.cleanup()
    assert report.failed
    assert report.versions == []
    strict = settings(logRetention__duration=1, cleanup__failurePolicy="fail")
    with pytest.raises(StorageError, match="forbidden"):
        TransactionLog(log.path, Undeletable(log.store), strict).cleanup()


# -- protocol ------------------------------------------------------------------------------------


def test_protocol_version_and_auto_upgrade() -> None:
    log = new_log(protocol__version=2, protocol__autoUpgrade=False, checkpoint__enabled=False)
    assert log.snapshot().protocol.min_reader_version == 2
    append(log, "a")
    xref = AddXRef("_xrefsplits/abcd/xref-1.split", "xref-1", ("a.split",), 1, 10)
    with pytest.raises(IndexTablesError, match="protocol"):
        log.add_xref(xref)
    cold(log, protocol__autoUpgrade=True).add_xref(xref)
    assert len(log.snapshot().xrefs) == 1


def test_protocol_check_enabled() -> None:
    log = new_log(checkpoint__enabled=False)
    append(log, "a")
    log.store.put_if_absent(version_path(2), encode_actions([Protocol(9, 9)]))
    with pytest.raises(IndexTablesError, match="9"):
        cold(log).snapshot()
    assert cold(log, protocol__checkEnabled=False).snapshot().num_files == 1


# -- caches --------------------------------------------------------------------------------------


def reads_after(seconds: float, **values: Any) -> int:
    """How often the version files are read again after some time."""
    store = Far(memory())
    log = new_log(store, checkpoint__enabled=False, **values)
    now = [0.0]
    log.cache = cache.LogCache(clock=lambda: now[0])
    append(log, "a")
    log.snapshot()
    store.clear()
    now[0] = seconds
    assert log.snapshot().num_files == 1
    return store.count("read_many")


def test_transaction_cache_enabled() -> None:
    assert reads_after(0) == 0
    assert reads_after(0, transaction__cache__enabled=False) == 1


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("transaction__cache__expirationSeconds", 10),
        ("transaction__cache__ttl__ms", 10_000),
        ("transaction__cache__snapshot__ttl__ms", 10_000),
    ],
    ids=[
        "transaction.cache.expirationSeconds",
        "transaction.cache.ttl.ms",
        "transaction.cache.snapshot.ttl.ms",
    ],
)
def test_cached_snapshots_end(key: str, value: int) -> None:
    others = {"transaction__cache__version__ttl__ms": 0}
    assert reads_after(9, **others, **{key: value}) == 0
    assert reads_after(11, **others, **{key: value}) == 1
    assert reads_after(11, **others) == 0


def test_transaction_cache_version_ttl_ms() -> None:
    def read_again(ttl_ms: int) -> int:
        store = Far(memory())
        log = new_log(store, transaction__cache__version__ttl__ms=ttl_ms)
        now = [0.0]
        log.cache = cache.LogCache(clock=lambda: now[0])
        append(log, "a")
        assert log.changes(0, 1)
        now[0] = 11
        store.clear()
        assert log.changes(0, 1)
        return store.count("read_many")

    assert read_again(10_000) == 1
    assert read_again(12_000) == 0


# -- commits -------------------------------------------------------------------------------------


def lossy(log: TransactionLog, times: int, **values: Any) -> tuple[FaultyStore, TransactionLog]:
    plan = [Fault(FaultKind.LOST_REQUEST, at, CREATE) for at in range(times)]
    store = FaultyStore(log.store, plan)
    return store, TransactionLog(log.path, store, cold(log, **values).config)


def test_transaction_commit_deadline_seconds() -> None:
    log = new_log(checkpoint__enabled=False)
    store, hasty = lossy(log, 2, transaction__commit__deadlineSeconds=0)
    with pytest.raises(CommitStateUnknownError):
        append(hasty, "a")
    assert len(store.injected) == 1
    store, patient = lossy(log, 2, transaction__commit__deadlineSeconds=1000)
    append(patient, "b")
    assert len(store.injected) == 2
    assert log.snapshot().num_files == 1


@pytest.mark.parametrize(
    ("given", "head"),
    [
        ({}, b"\x1f\x8b"),
        ({"transaction__compression__codecPrefix": True}, b"\x01\x01\x1f\x8b"),
        ({"transaction__compression__enabled": False}, b"{"),
    ],
    ids=["default", "transaction.compression.codecPrefix", "transaction.compression.enabled"],
)
def test_transaction_compression(given: dict[str, Any], head: bytes) -> None:
    log = new_log(**given)
    append(log, "a")
    assert log.store.read(version_path(1)).startswith(head)
    assert cold(log).snapshot().num_files == 1


def test_transaction_max_concurrent_reads() -> None:
    store = Far(memory())
    log = new_log(store, checkpoint__enabled=False)
    for i in range(3):
        append(log, f"s{i}")
    store.at_once.clear()
    cold(log, transaction__maxConcurrentReads=2).snapshot()
    assert set(store.at_once) == {2}


class Taken(WrappedStore):
    """A rival takes every version first."""

    def __init__(self, inner: Store, rival: TransactionLog) -> None:
        super().__init__(inner)
        self.rival = rival
        self.count = 0

    def put_if_absent(self, path: str, data: bytes) -> None:
        self.count += 1
        append(self.rival, f"rival{self.count}")
        super().put_if_absent(path, data)


class Longest(random.Random):
    """Draws the longest pause each time."""

    def uniform(self, a: float, b: float) -> float:
        return b


def pauses_of(attempts: int, base_ms: int, most_ms: int) -> list[float]:
    log = new_log(checkpoint__enabled=False)
    config = settings(
        checkpoint__enabled=False,
        transaction__retry__maxAttempts=attempts,
        transaction__retry__baseDelayMs=base_ms,
        transaction__retry__maxDelayMs=most_ms,
    )
    target = TransactionLog(log.path, Taken(log.store, log), config)
    pauses: list[float] = []
    mine = Transaction(None, "WRITE", actions=[split("mine")])
    loop = CommitLoop(target, mine, sleep=pauses.append, rng=Longest())
    with pytest.raises(CommitConflictError, match=f"{attempts} versions in a row"):
        loop.run()
    return pauses


def test_transaction_retry() -> None:
    """``transaction.retry.maxAttempts``, ``.baseDelayMs`` and ``.maxDelayMs``: never longer."""
    assert pauses_of(1, 100, 5000) == []
    assert pauses_of(5, 100, 5000) == [0.1, 0.2, 0.4, 0.8]
    assert pauses_of(5, 100, 300) == [0.1, 0.2, 0.3, 0.3]
    assert pauses_of(3, 900, 300) == [0.3, 0.3]
    assert pauses_of(3, 0, 300) == [0, 0]


def test_transaction_retry_budget_seconds() -> None:
    """``transaction.retry.budgetSeconds``: no attempt begins after it."""
    log = new_log(checkpoint__enabled=False)
    for budget, attempts in ((0, 1), (1000, 3)):
        given = {"transaction__retry__baseDelayMs": 0, "transaction__retry__maxAttempts": 3}
        config = settings(transaction__retry__budgetSeconds=budget, **given)
        store = Taken(log.store, log)
        with pytest.raises(CommitConflictError, match=f"took {attempts} versions"):
            append(TransactionLog(log.path, store, config), "mine")
        assert store.count == attempts


# -- states --------------------------------------------------------------------------------------


def test_state_format() -> None:
    for form, part in (("avro", "state-v"), ("json", ".checkpoint.json")):
        log = new_log(state__format=form, checkpoint__interval=1)
        append(log, "a")
        assert files(log.store, part), form
        assert cold(log).snapshot().num_files == 1


def manifests(log: TransactionLog) -> list[str]:
    return files(log.store, "manifests/")


@pytest.mark.parametrize(
    ("codec", "name"),
    [("zstd", b"zstandard"), ("snappy", b"snappy"), ("deflate", b"deflate"), ("none", b"null")],
)
def test_state_compression(codec: str, name: bytes) -> None:
    log = new_log(state__compression=codec, checkpoint__interval=1)
    append(log, "a")
    assert name in log.store.read(manifests(log)[0])[:20_000]
    assert cold(log).snapshot().num_files == 1


def test_state_compression_level() -> None:
    def size(level: int) -> int:
        log = new_log(state__compressionLevel=level, checkpoint__interval=1)
        append(log, *(f"part-{i * 7919 % 3001:05d}" for i in range(3000)))
        return len(log.store.read(manifests(log)[0]))

    assert size(1) != size(19)


def test_state_entries_per_manifest() -> None:
    for most, count in ((100, 1), (2, 3)):
        log = new_log(state__entriesPerManifest=most, checkpoint__interval=1)
        append(log, *"abcde")
        assert len(manifests(log)) == count


def test_state_read_parallelism() -> None:
    store = Far(memory())
    log = new_log(store, state__entriesPerManifest=1, checkpoint__interval=1)
    append(log, *"abcd")
    store.clear()
    cold(log, state__read__parallelism=2).snapshot()
    reads = [len(c.detail) for c in store.calls if c.op == "read_many" and "manifest" in c.path]
    assert reads == [2, 2]
    store.clear()
    cold(log, state__read__parallelism=4).snapshot()
    reads = [len(c.detail) for c in store.calls if c.op == "read_many" and "manifest" in c.path]
    assert reads == [4]


@pytest.mark.parametrize(("threshold", "left"), [(5, 3), (2, 1)])
def test_state_schema_renormalize_threshold(threshold: int, left: int) -> None:
    """``state.schema.renormalizeThreshold``: three spellings of one mapping become one."""
    texts = [json.dumps([{"name": "id", "type": "i64", "fast": True}], indent=k) for k in range(3)]
    log = new_log(checkpoint__interval=0)
    known = {f"docMappingSchema.ref{k}": text for k, text in enumerate(texts)}
    facts = replace(log.snapshot().metadata, configuration=known)
    adds = [split(f"s{k}", doc_mapping_ref=f"ref{k}") for k in range(3)]
    log.commit(Transaction(None, "WRITE", actions=[facts, *adds]))
    cold(log, state__schema__renormalizeThreshold=threshold).checkpoint()
    assert len(cold(log).snapshot().distinct("docMappingRef")) == left


def test_state_compaction_tombstone_threshold() -> None:
    for threshold, count in ((0.9, 1), (0.1, 2)):
        log = new_log(state__compaction__tombstoneThreshold=threshold, checkpoint__interval=0)
        append(log, *"abcdefgh")
        log.checkpoint()
        remove(log, "a", "b", "c")
        log.checkpoint()
        assert len(manifests(log)) == count
        assert cold(log).snapshot().num_files == 5


def old_states(folder: Path, **values: Any) -> TransactionLog:
    """Four states, each with a manifest of its own, five hours old."""
    from settings_world import age

    place = open_store(str(folder / "t"))
    given = {"state__compaction__maxManifests": 0, "state__entriesPerManifest": 1000}
    log = new_log(place, checkpoint__interval=0, **{**given, **values})
    for i in range(4):
        append(log, f"s{i}")
        log.checkpoint(compact=True)
    age(folder, 5)
    return cold(log)


def test_state_retention_versions(tmp_path: Path) -> None:
    for kept in (1, 3):
        log = old_states(
            tmp_path / str(kept),
            state__retention__versions=kept,
            state__retention__hours=1,
            logRetention__duration=1,
        )
        log.cleanup()
        assert len(checkpoints(log)) == kept


def test_state_retention_hours(tmp_path: Path) -> None:
    for hours, kept in ((1, 1), (10, 4)):
        log = old_states(
            tmp_path / str(hours),
            state__retention__versions=1,
            state__retention__hours=hours,
            logRetention__duration=1,
        )
        log.cleanup()
        assert len(checkpoints(log)) == kept


def test_state_gc_min_manifest_age_hours(tmp_path: Path) -> None:
    for hours, kept in ((1, 1), (10, 4)):
        log = old_states(
            tmp_path / str(hours),
            state__retention__versions=1,
            state__retention__hours=1,
            state__gc__minManifestAgeHours=hours,
            logRetention__duration=1,
        )
        log.cleanup()
        assert len(manifests(log)) == kept


def test_state_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    """``state.retry.maxAttempts`` tries, pauses of ``baseDelayMs`` that ``maxDelayMs`` bounds."""
    pauses: list[float] = []
    drawn = partial(tries, sleep=pauses.append, rng=Longest())
    monkeypatch.setattr("indextables.log.checkpoint.state.tries", drawn)
    given = {"state__retry__baseDelayMs": 100, "state__retry__maxDelayMs": 300}
    log = new_log(checkpoint__interval=0)
    append(log, "a")
    store, again = lossy(log, 3, state__retry__maxAttempts=3, **given)
    with pytest.raises(IndexTablesError, match="in 3 tries"):
        again.checkpoint()
    assert len(store.injected) == 3
    assert pauses == [0.1, 0.2]
    pauses.clear()
    store, again = lossy(log, 4, state__retry__maxAttempts=5, **given)
    assert again.checkpoint().created
    assert pauses == [0.1, 0.2, 0.3, 0.3]
    assert checkpoints(log) == [1]
