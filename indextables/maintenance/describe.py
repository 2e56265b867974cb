"""DESCRIBE COMPONENT SIZES, ENVIRONMENT, DISK CACHE, STORAGE STATS; cache verbs."""

from __future__ import annotations

import json
import os
import platform
import socket
import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from indextables.config import Config
from indextables.log.log import TransactionLog
from indextables.log.read import cache as log_cache
from indextables.maintenance.rows import BOOL, DOUBLE, LONG, STRING, columns_of
from indextables.maintenance.scope import matching_files, partition_predicate
from indextables.splits.read import reader as split_reader
from indextables.splits.read.reader import SplitReader
from indextables.storage import diskcache
from indextables.storage.redaction import is_secret_name
from indextables.xref import cache as xref_cache

SIZE_COLUMNS = columns_of(
    split_path=STRING,
    partition_values=STRING,
    component_key=STRING,
    size_bytes=LONG,
    component_type=STRING,
    field_name=STRING,
)
ENVIRONMENT_COLUMNS = columns_of(
    host=STRING, role=STRING, property_type=STRING, property_name=STRING, property_value=STRING
)
DISK_CACHE_COLUMNS = columns_of(
    executor_id=STRING,
    host=STRING,
    enabled=BOOL,
    total_bytes=LONG,
    max_bytes=LONG,
    usage_percent=DOUBLE,
    splits_cached=LONG,
    components_cached=LONG,
)
STORAGE_COLUMNS = columns_of(executor_id=STRING, host=STRING, bytes_fetched=LONG, requests=LONG)
INVALIDATE_COLUMNS = columns_of(
    table_path=STRING,
    result=STRING,
    cache_hits_before=LONG,
    cache_misses_before=LONG,
    hit_rate_before=STRING,
)
FLUSH_DISK_COLUMNS = columns_of(
    executor_id=STRING,
    cache_type=STRING,
    status=STRING,
    bytes_freed=LONG,
    files_deleted=LONG,
    message=STRING,
)
FLUSH_COLUMNS = columns_of(cache_type=STRING, status=STRING, cleared_entries=LONG, message=STRING)
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


def environment(config: Config, spark: Any = None) -> pa.Table:
    """What this process runs with; secrets are never shown."""
    rows = [
        {"host": socket.gethostname(), "role": "driver", **row}
        for row in _environment_rows(config, spark)
    ]
    return pa.Table.from_pylist(rows, schema=ENVIRONMENT_COLUMNS)


def _environment_rows(config: Config, spark: Any) -> Iterator[dict[str, str]]:
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
        yield {"property_type": "system", "property_name": name, "property_value": value}
    named = {key.lower() for key in config}
    given = {key: value for key, value in config.raw().items() if key.lower() not in named}
    for key, value in {**config, **given}.items():
        yield _setting(f"spark.indextables.{key}", value, "setting")
    if spark is not None:
        for name, value in sorted(dict(spark.sparkContext.getConf().getAll()).items()):
            yield _setting(name, value, "spark")


def _setting(name: str, value: Any, kind: str) -> dict[str, str]:
    shown = "***REDACTED***" if is_secret_name(name) else str(value)
    return {"property_type": kind, "property_name": name, "property_value": shown}


def disk_cache(config: Config) -> pa.Table:
    """The disk cache of this process."""
    cache = diskcache.default_cache(config)
    usage = None if cache is None else cache.usage()
    limit = config["cache.disk.maxSize"]
    row = {
        "executor_id": "driver",
        "host": socket.gethostname(),
        "enabled": cache is not None,
        "total_bytes": usage.total_bytes if usage else 0,
        "max_bytes": limit,
        "usage_percent": 100.0 * usage.total_bytes / limit if usage and limit else 0.0,
        "splits_cached": usage.files if usage else 0,
        "components_cached": usage.blocks if usage else 0,
    }
    return pa.Table.from_pylist([row], schema=DISK_CACHE_COLUMNS)


def storage_stats(config: Config) -> pa.Table:
    """What was fetched from remote stores past the disk cache."""
    cache = diskcache.default_cache(config)
    row = {
        "executor_id": "driver",
        "host": socket.gethostname(),
        "bytes_fetched": 0 if cache is None else cache.stats.fetched_bytes,
        "requests": 0 if cache is None else cache.stats.misses,
    }
    return pa.Table.from_pylist([row], schema=STORAGE_COLUMNS)


def invalidate_cache(log: TransactionLog | None) -> pa.Table:
    """Forget cached log state, of one table or of all."""
    shared = log_cache.SHARED
    hits, misses = shared.hits, shared.misses
    if log is None:
        shared.invalidate()
    else:
        log.invalidate_cache()
    asked = hits + misses
    row = {
        "table_path": "GLOBAL" if log is None else log.path,
        "result": "Transaction log cache invalidated",
        "cache_hits_before": hits,
        "cache_misses_before": misses,
        "hit_rate_before": f"{100.0 * hits / asked:.1f}%" if asked else "N/A",
    }
    return pa.Table.from_pylist([row], schema=INVALIDATE_COLUMNS)


def flush_disk_cache(config: Config) -> pa.Table:
    """Delete everything the disk cache holds."""
    removed = diskcache.flush(config)
    freed, files = removed.total_bytes, removed.blocks
    row = {
        "executor_id": "driver",
        "cache_type": "disk",
        "status": "success",
        "bytes_freed": freed,
        "files_deleted": files,
        "message": f"Freed {freed:,} bytes",
    }
    return pa.Table.from_pylist([row], schema=FLUSH_DISK_COLUMNS)


def flush_searcher_cache() -> pa.Table:
    """Forget open splits and loaded cross-references."""
    split_reader.forget_readers()
    shared = xref_cache.shared_cache(1 << 30)
    cleared = len(shared)
    shared.clear()
    row = {
        "cache_type": "searcher",
        "status": "success",
        "cleared_entries": cleared,
        "message": "Open splits and cross-references were forgotten",
    }
    return pa.Table.from_pylist([row], schema=FLUSH_COLUMNS)
