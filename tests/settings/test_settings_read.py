"""Settings of reads, column indexes, caches and stores act: plans, rows and requests show it."""

from __future__ import annotations

import datetime
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from settings_world import Far, files, memory, new_log, opened, settings, write
from store_doubles import UnconditionalStore

from indextables.errors import ConfigError, IndexTablesError, StorageError, UnsupportedStoreError
from indextables.log.log import TransactionLog
from indextables.log.read import cache
from indextables.planner.tasks import splits_per_task
from indextables.spark.driver.opened import Request
from indextables.spark.driver.request import access
from indextables.spark.driver.scan import Scan
from indextables.spark.driver.tables import SHARED
from indextables.spark.source import PythonSource
from indextables.splits.lookup.colindex.index import ColumnIndex
from indextables.splits.lookup.colindex.opening import forget_indexes
from indextables.splits.read.reader import forget_readers
from indextables.storage import diskcache, pool
from indextables.storage.base import open_store
from indextables.table.table import Table


@pytest.fixture(autouse=True)
def nothing_is_remembered() -> Iterator[None]:
    forget()
    yield
    forget()


def forget() -> None:
    cache.SHARED.invalidate()
    diskcache._shared.clear()
    forget_readers()
    forget_indexes()


def far(path: Path, **values: Any) -> tuple[Far, Table]:
    forget()
    store = Far(open_store(str(path)))
    log = TransactionLog(str(path), store, settings(**values))
    return store, Table(log, log.snapshot())


# -- what is read --------------------------------------------------------------------------------


@pytest.fixture
def versions(tmp_path: Path) -> Path:
    path = tmp_path / "t"
    write({"id": [1], "host": ["a"]}, path)
    write({"id": [2], "host": ["b"]}, path)
    return path


def source(path: Path, **values: Any) -> PythonSource:
    given = {f"spark.indextables.{k.replace('__', '.')}": str(v) for k, v in values.items()}
    return PythonSource({"path": str(path), **given})


def test_read_version_and_timestamp(versions: Path) -> None:
    """``read.version`` and ``read.timestamp``."""

    def count(**values: Any) -> int | None:
        given = {k.replace("__", "."): str(v) for k, v in values.items()}
        return SHARED.table(access({"path": str(versions), **given})).snapshot.num_rows

    assert count() == 2
    assert count(read__version=1) == 1
    first = opened(versions).history()[1].timestamp
    moment = datetime.datetime.fromtimestamp(first / 1000, datetime.UTC)
    assert count(read__timestamp=moment.isoformat()) == 1


def test_read_where_and_columns(versions: Path) -> None:
    """``read.where`` and ``read.columns``: fixed at load."""
    assert source(versions, read__columns="host").schema().names == ["host"]
    assert source(versions).schema().names == ["id", "host"]

    def fixed(where: str) -> int:
        given = {"path": str(versions), "read.where": where}
        scan = Scan(Request({"options": given, "session": {}}))
        return len(scan.planner.plan(scan.fixed))

    assert fixed("id = 2") == 1
    assert fixed("id > 0") == 2
    with pytest.raises(IndexTablesError, match="nope"):
        fixed("nope = 2")


def test_read_splits_per_task_and_most() -> None:
    """``read.splitsPerTask`` and ``read.maxSplitsPerTask``."""
    assert splits_per_task(settings(read__splitsPerTask="7"), 1000, 2) == 7
    assert splits_per_task(settings(), 1000, 2) == 125
    assert splits_per_task(settings(read__maxSplitsPerTask=50), 1000, 2) == 50
    with pytest.raises(ConfigError, match="splitsPerTask"):
        splits_per_task(settings(read__splitsPerTask="some"), 1000, 2)


def test_read_batch_rows(tmp_path: Path) -> None:
    write({"id": list(range(100))}, tmp_path / "t")
    for most in (100, 30):
        batches = list(opened(tmp_path / "t", read__batchRows=most).scan())
        assert max(batch.num_rows for batch in batches) == most
        assert sum(batch.num_rows for batch in batches) == 100


@pytest.mark.parametrize("most", [1, 3])
def test_read_remote_parallelism(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """``read.remoteParallelism``: so many splits of a remote table are read at once."""
    write({"id": list(range(100))}, tmp_path / "t", write__rowsPerSplit=10)
    seen: list[int] = []
    real = pool.in_order

    def noted(run: Any, items: Any, count: int, *more: Any, **named: Any) -> Any:
        seen.append(count)
        return real(run, items, count, *more, **named)

    monkeypatch.setattr(pool, "in_order", noted)
    _, table = far(tmp_path / "t", read__remoteParallelism=most)
    assert table.to_arrow(where="id < 95").num_rows == 95
    assert set(seen) == {most}


@pytest.mark.parametrize(
    ("key", "where"),
    [
        ("filter.stringStartsWith.pushdown", "startswith(s, 'bc')"),
        ("filter.stringEndsWith.pushdown", "endswith(s, 'd1')"),
        ("filter.stringContains.pushdown", "contains(s, 'cd1')"),
        ("filter.stringPattern.pushdown", "s LIKE 'b%1'"),
    ],
)
def test_patterns_prune(tmp_path: Path, key: str, where: str) -> None:
    """By the bounds of a column where they can tell, always by partition values."""
    path = tmp_path / "t"
    values = ["bcd1", "xcd2", "xcd3"]
    write({"id": [1, 2, 3], "s": values}, path, partition_by=["s"])
    on, off = opened(path), opened(path, **{key.replace(".", "__"): False})
    assert len(on.plan(where)) == 1
    assert len(off.plan(where)) == 3
    assert on.count(where) == off.count(where) == 1


def test_indexquery_max_unqualified_fields(tmp_path: Path) -> None:
    """``indexquery.indexall.maxUnqualifiedFields``."""
    write({f"c{i}": ["w3"] for i in range(12)}, tmp_path / "t")
    where = "indexquery(_indexall, 'w3')"
    with pytest.raises(IndexTablesError, match="maxUnqualifiedFields"):
        opened(tmp_path / "t").count(where)
    given = {"indexquery__indexall__maxUnqualifiedFields": 12}
    assert opened(tmp_path / "t", **given).count(where) == 1


# -- column indexes ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two splits of 20,000 rows; a tenth of the rows has ``n = 0``."""
    path = tmp_path_factory.mktemp("indexed") / "t"
    rows = range(40_000)
    numbers = [0 if i % 10 == 0 else i for i in rows]
    write({"n": numbers, "pad": [f"p{i}" for i in rows]}, path, write__rowsPerSplit=20_000)
    opened(path).create_index("n")
    return path


def lookups(path: Path, where: str, **values: Any) -> int:
    """Splits in which the plan says that the index is used."""
    forget()
    return opened(path, **values).explain(where).count("column_index(n) rows=")


RARE, COMMON = "n = 15", "n = 0"


@pytest.mark.parametrize(
    ("where", "given", "found"),
    [
        (RARE, {}, 2),
        (RARE, {"columnIndex__enabled": False}, 0),
        (COMMON, {}, 2),
        (COMMON, {"columnIndex__driverLookup__maxSplits": 1}, 0),
        (COMMON, {"columnIndex__selectivityThreshold": 0.05}, 0),
        (
            COMMON,
            {"columnIndex__selectivityThreshold": 0.05, "columnIndex__estimator": "uniform"},
            2,
        ),
    ],
    ids=[
        "rare",
        "columnIndex.enabled",
        "common",
        "columnIndex.driverLookup.maxSplits",
        "columnIndex.selectivityThreshold",
        "columnIndex.estimator",
    ],
)
def test_column_index(indexed: Path, where: str, given: dict[str, Any], found: int) -> None:
    assert lookups(indexed, where, **given) == found


@pytest.mark.parametrize(("form", "magic"), [("bbidx1", b"BBIDX001"), ("bbidx2", b"BBIDX002")])
def test_column_index_format(tmp_path: Path, form: str, magic: bytes) -> None:
    write({"n": list(range(100))}, tmp_path / "t")
    opened(tmp_path / "t", columnIndex__format=form).create_index("n")
    (name,) = files(open_store(str(tmp_path / "t")), ".idx")
    assert magic in (tmp_path / "t" / name).read_bytes()


def test_column_index_block_size(tmp_path: Path) -> None:
    """``columnIndex.blockSize``: smaller blocks, more of them."""
    sizes = {}
    for size in ("1K", "32K"):
        path = tmp_path / size
        write({"n": [i * 7919 % 50_021 for i in range(50_000)]}, path)
        opened(path, columnIndex__blockSize=size).create_index("n")
        (name,) = files(open_store(str(path)), ".idx")
        sizes[size] = (path / name).stat().st_size
        assert opened(path).count("n = 7919") == 1
    assert sizes["1K"] > sizes["32K"]


def test_column_index_in_batch_size(indexed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``columnIndex.inBatchSize``: values looked up at once, the same rows."""
    seen: list[int] = []
    real = ColumnIndex.lookup

    def noted(self: Any, predicate: Any, batch: int = 0) -> Any:
        seen.append(batch)
        return real(self, predicate, batch)

    monkeypatch.setattr(ColumnIndex, "lookup", noted)
    where = "n IN (1, 2, 3, 11, 12, 13)"
    _, table = far(indexed, columnIndex__inBatchSize=2)
    assert table.to_arrow(where=where).num_rows == 6
    assert set(seen) == {2}


# -- caches --------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [4 << 10, 64 << 10])
def test_cache_disk_block_size(tmp_path: Path, block: int) -> None:
    """``cache.disk.blockSize``: ranges that are not short are cut into such blocks."""
    inner = Far(memory())
    inner.put("a.split", bytes(200_000))
    config = settings(cache__disk__path=str(tmp_path), cache__disk__blockSize=block)
    store = diskcache.cached(inner, config)
    inner.clear()
    store.stat("a.split")
    store.read_range("a.split", 10, 10 + block // 2)
    (call,) = [c for c in inner.calls if c.op == "read_ranges"]
    assert call.detail == ((0, block),)


@pytest.mark.parametrize("enabled", [True, False])
def test_cache_disk_enabled(tmp_path: Path, enabled: bool) -> None:
    """``cache.disk.enabled``, in ``cache.directoryPath`` or ``cache.disk.path``."""
    for key in ("cache__directoryPath", "cache__disk__path"):
        inner = Far(memory())
        inner.put("a.split", bytes(10_000))
        folder = tmp_path / key
        config = settings(cache__disk__enabled=enabled, **{key: str(folder)})
        for _ in range(2):
            diskcache._shared.clear()
            diskcache.cached(inner, config).read_range("a.split", 10, 20)
        assert len(inner.paths("read_ranges") + inner.paths("read_range")) == (1 if enabled else 2)
        assert folder.exists() is enabled


def test_cache_disk_max_size(tmp_path: Path) -> None:
    """``cache.disk.maxSize``: what does not fit is not kept."""
    for most, requests in (("1G", 1), ("1K", 2)):
        inner = Far(memory())
        inner.put("a.split", bytes(100_000))
        folder = str(tmp_path / most)
        config = settings(cache__disk__path=folder, cache__disk__maxSize=most)
        store = diskcache.cached(inner, config)
        for _ in range(2):
            store.read_range("a.split", 0, 50_000)
        assert inner.count("read_ranges") == requests


# -- stores --------------------------------------------------------------------------------------


@pytest.mark.parametrize("flush", [True, False])
def test_storage_fsync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flush: bool) -> None:
    """``storage.fsync`` is about files that a commit will list, never about the commit."""
    seen: list[int] = []
    monkeypatch.setattr(os, "fsync", seen.append)
    store = open_store(str(tmp_path / "t"), {"spark.indextables.storage.fsync": flush})
    store.put("a.split", b"x")
    assert bool(seen) is flush
    seen.clear()
    store.put_if_absent("_transaction_log/1.json", b"x")
    assert seen, "a commit is always flushed"


def test_storage_probe() -> None:
    """``storage.probe``: a store that ignores conditions gets no table."""
    with pytest.raises(UnsupportedStoreError):
        new_log(UnconditionalStore(memory()), storage__probe=True)
    new_log(UnconditionalStore(memory()), storage__probe=False)


@pytest.fixture
def silent() -> Iterator[tuple[str, list[socket.socket]]]:
    """A server that accepts and never answers."""
    import threading

    listener = socket.create_server(("127.0.0.1", 0))
    accepted: list[socket.socket] = []

    def accept() -> None:
        while True:
            try:
                accepted.append(listener.accept()[0])
            except OSError:
                return

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}", accepted
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()
    for one in accepted:
        one.close()


def test_storage_timeout_seconds_and_attempts(silent: tuple[str, list[socket.socket]]) -> None:
    """``storage.timeoutSeconds`` ends a try at a silent store, ``storage.attempts`` counts them."""
    endpoint, accepted = silent
    given = {
        "spark.indextables.aws.accessKey": "AKIASILENT",
        "spark.indextables.aws.secretKey": "silent-secret",
        "spark.indextables.s3.endpoint": endpoint,
        "spark.indextables.s3.pathStyleAccess": "true",
        "spark.indextables.storage.timeoutSeconds": "0.2",
        "spark.indextables.storage.attempts": "3",
    }
    with pytest.raises(StorageError, match="for now"):
        open_store("s3://bucket/t", given).read("a")
    assert len(accepted) == 3


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("s3://b/t", ("config_kwargs", "connect_timeout")),
        ("s3://b/t", ("config_kwargs", "read_timeout")),
    ],
    ids=["storage.connectTimeoutSeconds", "storage.timeoutSeconds"],
)
def test_storage_timeouts_reach_the_client(uri: str, path: tuple[str, str]) -> None:
    """``storage.connectTimeoutSeconds`` and ``storage.timeoutSeconds``."""
    given = {
        "spark.indextables.aws.accessKey": "AKIA",
        "spark.indextables.aws.secretKey": "secret",
        "spark.indextables.storage.connectTimeoutSeconds": "7",
        "spark.indextables.storage.timeoutSeconds": "11",
    }
    client = open_store(uri, given)._fs  # type: ignore[attr-defined]
    wanted = {"connect_timeout": 7, "read_timeout": 11}[path[1]]
    assert getattr(client, path[0])[path[1]] == wanted
