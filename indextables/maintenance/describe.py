"""DESCRIBE COMPONENT SIZES, ENVIRONMENT, DISK CACHE, STORAGE STATS; cache verbs."""

from __future__ import annotations

import json
import os
import platform
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from indextables.config import Config
from indextables.log.log import TransactionLog
from indextables.log.read import cache as log_cache
from indextables.maintenance.rows import Row, columns_of
from indextables.maintenance.scope import matching_files, partition_predicate
from indextables.splits.lookup.colindex.opening import forget_indexes
from indextables.splits.read import reader as split_reader
from indextables.splits.read.reader import SplitReader
from indextables.storage import diskcache
from indextables.storage.redaction import is_secret_name
from indextables.xref import cache as xref_cache
from indextables.xref.keymaps import catalog as keymaps

SIZE_COLUMNS = columns_of("""
    split_path: str, partition_values: str, component_key: str, size_bytes: int, component_type:
    str, field_name: str
""")
_KINDS = {
    ".term": "term_dictionary",
    ".idx": "postings",
    ".pos": "positions",
    ".fast": "fastfield",
    ".fieldnorm": "fieldnorm",
    ".store": "store",
    ".filter": "fuse_filter",
}
_TOTALS = {
    "term_dictionary": "_term_total",
    "postings": "_postings_total",
    "positions": "_positions_total",
    "fastfield": "_fastfield_total",
    "fieldnorm": "_fieldnorm_total",
    "store": "_store",
}


def component_sizes(log: TransactionLog, where: Any = None) -> pa.Table:
    """How large each part of each split is."""
    snapshot = log.snapshot()
    files = list(snapshot.files())
    if where is not None:
        files = matching_files(snapshot, partition_predicate(where, snapshot))
    rows = []
    for add in files:
        reader = SplitReader.open(log.store, add, config=log.config)
        values = json.dumps(dict(add.partition_values))
        for name, (start, end) in reader.source.footer.files.items():
            rows.append(_component(add.path, values, name, end - start))
    return pa.Table.from_pylist(rows, schema=SIZE_COLUMNS)


def _component(path: str, values: str, name: str, size: int) -> dict[str, Any]:
    kind, column = _kind_of(name)
    key = f"{column}.{kind}" if column else _TOTALS.get(kind, name)
    return {
        "split_path": path,
        "partition_values": values,
        "component_key": key,
        "size_bytes": size,
        "component_type": kind,
        "field_name": column,
    }


def _kind_of(name: str) -> tuple[str, str | None]:
    if name.startswith("colidx/"):
        return "column_index", name.removeprefix("colidx/").removesuffix(".idx")
    if name.startswith("rows."):
        return "rows", None
    suffix = os.path.splitext(name)[1]
    return _KINDS.get(suffix, "metadata"), None


@dataclass(frozen=True)
class Setting(Row):
    """DESCRIBE ENVIRONMENT."""

    host: str
    role: str
    property_type: str
    property_name: str
    property_value: str


def environment(config: Config, spark: Any = None) -> list[Setting]:
    """What this process runs with; secrets are never shown."""
    host = socket.gethostname()
    return [Setting(host, "driver", *row) for row in _environment_rows(config, spark)]


def _environment_rows(config: Config, spark: Any) -> Iterator[tuple[str, str, str]]:
    import indextables

    system = {
        "indextables.version": indextables.__version__,
        "python.version": platform.python_version(),
        "python.executable": sys.executable,
        "os": platform.platform(),
        "cpu.count": str(os.cpu_count()),
        "pyarrow.version": pa.__version__,
    }
    for name, value in system.items():
        yield "system", name, value
    named = {key.lower() for key in config}
    given = {key: value for key, value in config.raw().items() if key.lower() not in named}
    for key, value in {**config, **given}.items():
        yield "setting", *_shown(f"spark.indextables.{key}", value)
    if spark is not None:
        for name, value in sorted(dict(spark.sparkContext.getConf().getAll()).items()):
            yield "spark", *_shown(name, value)


def _shown(name: str, value: Any) -> tuple[str, str]:
    return name, "***REDACTED***" if is_secret_name(name) else str(value)


@dataclass(frozen=True)
class DiskCacheUse(Row):
    """DESCRIBE DISK CACHE."""

    executor_id: str
    host: str
    enabled: bool
    total_bytes: int
    max_bytes: int
    usage_percent: float
    splits_cached: int
    components_cached: int


def disk_cache(config: Config) -> DiskCacheUse:
    """The disk cache of this process."""
    cache, limit = diskcache.default_cache(config), config["cache.disk.maxSize"]
    host = socket.gethostname()
    if cache is None:
        return DiskCacheUse("driver", host, False, 0, limit, 0.0, 0, 0)
    use = cache.usage()
    percent = 100.0 * use.total_bytes / limit if limit else 0.0
    return DiskCacheUse(
        "driver", host, True, use.total_bytes, limit, percent, use.files, use.blocks
    )


@dataclass(frozen=True)
class Fetched(Row):
    """DESCRIBE STORAGE STATS."""

    executor_id: str
    host: str
    bytes_fetched: int
    requests: int


def storage_stats(config: Config) -> Fetched:
    """What was fetched from remote stores past the disk cache."""
    cache = diskcache.default_cache(config)
    fetched = (0, 0) if cache is None else (cache.stats.fetched_bytes, cache.stats.misses)
    return Fetched("driver", socket.gethostname(), *fetched)


@dataclass(frozen=True)
class Invalidated(Row):
    """INVALIDATE TRANSACTION LOG CACHE."""

    table_path: str
    result: str
    cache_hits_before: int
    cache_misses_before: int
    hit_rate_before: str


def invalidate_cache(log: TransactionLog | None) -> Invalidated:
    """Forget cached log state, of one table or of all."""
    shared = log_cache.SHARED
    hits, misses = shared.hits, shared.misses
    (shared.invalidate if log is None else log.invalidate_cache)()
    rate = f"{100.0 * hits / (hits + misses):.1f}%" if hits + misses else "N/A"
    path = "GLOBAL" if log is None else log.path
    return Invalidated(path, "Transaction log cache invalidated", hits, misses, rate)


@dataclass(frozen=True)
class FlushedDisk(Row):
    """FLUSH DISK CACHE."""

    executor_id: str
    cache_type: str
    status: str
    bytes_freed: int
    files_deleted: int
    message: str


def flush_disk_cache(config: Config) -> FlushedDisk:
    """Delete everything the disk cache holds."""
    gone = diskcache.flush(config)
    text = f"Freed {gone.total_bytes:,} bytes"
    return FlushedDisk("driver", "disk", "success", gone.total_bytes, gone.blocks, text)


@dataclass(frozen=True)
class Flushed(Row):
    """FLUSH SEARCHER CACHE."""

    cache_type: str
    status: str
    cleared_entries: int
    message: str


def flush_searcher_cache(config: Config | None = None) -> Flushed:
    """Forget open splits, column indexes, cross-references and key maps."""
    cleared = xref_cache.SHARED.clear() + keymaps.OPEN.clear()
    cleared += split_reader.forget_readers() + forget_indexes()
    text = "Open splits, column indexes, cross-references and key maps were forgotten"
    return Flushed("searcher", "success", cleared, text)
