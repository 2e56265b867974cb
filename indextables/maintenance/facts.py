"""What a table is and was, as rows: its history, its partitions, its live splits.

Nothing is opened but the log. The same rows are the answer of a command (DESCRIBE HISTORY, SHOW
PARTITIONS) and the content of a metadata table (``t.history``, ``t.partitions``, ``t.splits``).
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from indextables.errors import MaintenanceError
from indextables.log.actions import AddFile
from indextables.log.log import TransactionLog
from indextables.maintenance.rows import columns_of

HISTORY_COLUMNS = columns_of("""
    version: int, timestamp: moment, operation: str, operationParameters: str,
    operationMetrics: str, commitId: str, splitsAdded: int, splitsRemoved: int
""")
SPLIT_COLUMNS = columns_of("""
    path: str, partition: str, rows: int, size_bytes: int, modification_time: moment,
    min_values: str, max_values: str
""")
PARTITION_COLUMNS = columns_of("partition: str, splits: int, rows: int, size_bytes: int")
SHOWN_COLUMNS = columns_of("partition: str")
STATISTICS_COLUMNS = columns_of(
    "table_path: str, version: int, splits: int, rows: int, size_bytes: int"
)


def describe_history(log: TransactionLog, *, limit: int | None = None) -> pa.Table:
    """The versions that the log still has, newest first."""
    rows = [
        {
            "version": entry.version,
            "timestamp": entry.timestamp * 1000,
            "operation": entry.operation,
            "operationParameters": _json(entry.parameters),
            "operationMetrics": _json(entry.metrics),
            "commitId": entry.commit_id,
            "splitsAdded": entry.num_added,
            "splitsRemoved": entry.num_removed,
        }
        for entry in log.history(limit)
    ]
    return pa.Table.from_pylist(rows, schema=HISTORY_COLUMNS)


def splits(log: TransactionLog) -> pa.Table:
    """The live splits."""
    snapshot = log.snapshot()
    names = snapshot.partition_columns
    rows = [
        {
            "path": add.path,
            "partition": partition_text(names, add) if names else None,
            "rows": add.num_records,
            "size_bytes": add.size,
            "modification_time": add.modification_time * 1000,
            "min_values": _json(add.min_values),
            "max_values": _json(add.max_values),
        }
        for add in snapshot.files()
    ]
    return pa.Table.from_pylist(rows, schema=SPLIT_COLUMNS)


def partitions(log: TransactionLog) -> pa.Table:
    """The partitions that hold splits; of a table without partition columns one row."""
    snapshot = log.snapshot()
    names = snapshot.partition_columns
    found: dict[str | None, list[int]] = {}
    for add in snapshot.files():
        sums = found.setdefault(partition_text(names, add) if names else None, [0, 0, 0])
        sums[0] += 1
        sums[1] += add.num_records or 0
        sums[2] += add.size
    rows = [
        {"partition": key, "splits": sums[0], "rows": sums[1], "size_bytes": sums[2]}
        for key, sums in sorted(found.items(), key=lambda item: item[0] or "")
    ]
    return pa.Table.from_pylist(rows, schema=PARTITION_COLUMNS)


def show_partitions(log: TransactionLog) -> pa.Table:
    """The partitions that hold splits, as Spark spells them."""
    if not log.snapshot().partition_columns:
        raise MaintenanceError("the table has no partition columns", path=log.path)
    return partitions(log).select(["partition"])


def statistics(log: TransactionLog) -> pa.Table:
    """What the log knows of the whole table: it is exact after every write."""
    snapshot = log.snapshot()
    files = list(snapshot.files())
    row = {
        "table_path": log.path,
        "version": snapshot.version,
        "splits": len(files),
        "rows": sum(f.num_records or 0 for f in files),
        "size_bytes": sum(f.size for f in files),
    }
    return pa.Table.from_pylist([row], schema=STATISTICS_COLUMNS)


def partition_text(names: tuple[str, ...], add: AddFile) -> str:
    """``k=a/d=2024-01-01``, a NULL as Hive spells it."""
    parts = []
    for name in names:
        value = add.partition_values.get(name)
        parts.append(f"{name}={'__HIVE_DEFAULT_PARTITION__' if value is None else value}")
    return "/".join(parts)


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(dict(value), ensure_ascii=False, default=str)
