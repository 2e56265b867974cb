"""What the verbs answer: typed rows, with the columns and types their commands promise.

A result class is a frozen dataclass with ``COLUMNS``, an Arrow schema in the order of the command's
output. ``as_table`` turns rows into an Arrow table; nested results (``metrics``) are structs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar

import pyarrow as pa

STRING, LONG, INT, DOUBLE, BOOL = pa.string(), pa.int64(), pa.int32(), pa.float64(), pa.bool_()
MOMENT = pa.timestamp("us", "UTC")


class Row:
    """Base of every result row."""

    COLUMNS: ClassVar[pa.Schema]


def as_table(rows: Sequence[Row], columns: pa.Schema | None = None) -> pa.Table:
    """The rows as an Arrow table; ``columns`` is needed where there may be none."""
    schema = columns if columns is not None else type(rows[0]).COLUMNS
    return pa.Table.from_pylist([as_dict(row) for row in rows], schema=schema)


def as_dict(row: Any) -> dict[str, Any]:
    """A row as plain values."""
    found = {}
    for item in fields(row):
        value = getattr(row, item.name)
        found[item.name] = as_dict(value) if is_dataclass(value) else value
    return found


def columns_of(**types: pa.DataType) -> pa.Schema:
    """An Arrow schema from names and types, in order."""
    return pa.schema(list(types.items()))


@dataclass(frozen=True, slots=True)
class MergeMetrics:
    status: str
    merged_files: int
    merge_groups: int
    original_size_bytes: int
    merged_size_bytes: int
    message: str


@dataclass(frozen=True)
class MergeResult(Row):
    """MERGE SPLITS."""

    table_path: str
    metrics: MergeMetrics
    temp_directory_path: str | None = None
    heap_size_bytes: int | None = None

    COLUMNS: ClassVar[pa.Schema] = columns_of(
        table_path=STRING,
        metrics=pa.struct(
            [
                ("status", STRING),
                ("merged_files", LONG),
                ("merge_groups", LONG),
                ("original_size_bytes", LONG),
                ("merged_size_bytes", LONG),
                ("message", STRING),
            ]
        ),
        temp_directory_path=STRING,
        heap_size_bytes=LONG,
    )


@dataclass(frozen=True, slots=True)
class PurgeMetrics:
    status: str
    orphaned_files_found: int
    orphaned_files_deleted: int
    size_mb_deleted: float
    retention_hours: int
    tx_log_files_deleted: int
    expired_states_found: int
    expired_states_deleted: int
    dry_run: bool
    duration_ms: int
    message: str


@dataclass(frozen=True)
class PurgeResult(Row):
    """PURGE INDEXTABLE."""

    table_path: str
    metrics: PurgeMetrics

    COLUMNS: ClassVar[pa.Schema] = columns_of(
        table_path=STRING,
        metrics=pa.struct(
            [
                ("status", STRING),
                ("orphaned_files_found", LONG),
                ("orphaned_files_deleted", LONG),
                ("size_mb_deleted", DOUBLE),
                ("retention_hours", LONG),
                ("tx_log_files_deleted", LONG),
                ("expired_states_found", LONG),
                ("expired_states_deleted", LONG),
                ("dry_run", BOOL),
                ("duration_ms", LONG),
                ("message", STRING),
            ]
        ),
    )


@dataclass(frozen=True)
class DropResult(Row):
    """DROP INDEXTABLES PARTITIONS."""

    table_path: str
    status: str
    partitions_dropped: int
    splits_removed: int
    total_size_bytes: int
    message: str

    COLUMNS: ClassVar[pa.Schema] = columns_of(
        table_path=STRING,
        status=STRING,
        partitions_dropped=LONG,
        splits_removed=LONG,
        total_size_bytes=LONG,
        message=STRING,
    )


@dataclass(frozen=True)
class CheckpointResult(Row):
    """CHECKPOINT and COMPACT INDEXTABLES."""

    table_path: str
    status: str
    checkpoint_version: int
    num_actions: int
    num_files: int
    protocol_version: int
    is_multi_part: bool

    COLUMNS: ClassVar[pa.Schema] = columns_of(
        table_path=STRING,
        status=STRING,
        checkpoint_version=LONG,
        num_actions=LONG,
        num_files=LONG,
        protocol_version=LONG,
        is_multi_part=BOOL,
    )


@dataclass(frozen=True)
class TruncateResult(Row):
    """TRUNCATE INDEXTABLES TIME TRAVEL."""

    table_path: str
    status: str
    checkpoint_version: int
    versions_deleted: int
    checkpoints_deleted: int
    files_preserved: int
    message: str

    COLUMNS: ClassVar[pa.Schema] = columns_of(
        table_path=STRING,
        status=STRING,
        checkpoint_version=LONG,
        versions_deleted=LONG,
        checkpoints_deleted=LONG,
        files_preserved=LONG,
        message=STRING,
    )


@dataclass(frozen=True)
class RepairResult(Row):
    """REPAIR INDEXFILES TRANSACTION LOG."""

    source_path: str
    target_path: str
    source_version: int
    total_splits: int
    valid_splits: int
    missing_splits: int
    status: str

    COLUMNS: ClassVar[pa.Schema] = columns_of(
        source_path=STRING,
        target_path=STRING,
        source_version=LONG,
        total_splits=INT,
        valid_splits=INT,
        missing_splits=INT,
        status=STRING,
    )


@dataclass(frozen=True)
class StateResult(Row):
    """DESCRIBE INDEXTABLES STATE."""

    table_path: str
    format: str
    version: int
    num_files: int
    num_manifests: int
    num_tombstones: int
    tombstone_ratio: float
    total_bytes: int
    needs_compaction: bool
    status: str

    COLUMNS: ClassVar[pa.Schema] = columns_of(
        table_path=STRING,
        format=STRING,
        version=LONG,
        num_files=LONG,
        num_manifests=INT,
        num_tombstones=INT,
        tombstone_ratio=DOUBLE,
        total_bytes=LONG,
        needs_compaction=BOOL,
        status=STRING,
    )


@dataclass(frozen=True)
class DeleteResult(Row):
    """DELETE FROM."""

    table_path: str
    status: str
    rows_deleted: int
    splits_rewritten: int
    splits_removed: int
    version: int
    message: str

    COLUMNS: ClassVar[pa.Schema] = columns_of(
        table_path=STRING,
        status=STRING,
        rows_deleted=LONG,
        splits_rewritten=LONG,
        splits_removed=LONG,
        version=LONG,
        message=STRING,
    )


@dataclass(frozen=True)
class RestoreResult(Row):
    """RESTORE."""

    table_path: str
    status: str
    restored_version: int
    version: int
    splits_added: int
    splits_removed: int
    message: str

    COLUMNS: ClassVar[pa.Schema] = columns_of(
        table_path=STRING,
        status=STRING,
        restored_version=LONG,
        version=LONG,
        splits_added=LONG,
        splits_removed=LONG,
        message=STRING,
    )


@dataclass(frozen=True)
class Finding(Row):
    """DOCTOR: one thing it saw, and what mends it."""

    table_path: str
    severity: str
    check: str
    path: str | None
    detail: str
    remedy: str

    COLUMNS: ClassVar[pa.Schema] = columns_of(
        table_path=STRING,
        severity=STRING,
        check=STRING,
        path=STRING,
        detail=STRING,
        remedy=STRING,
    )


INDEX_COLUMNS = columns_of(
    table_path=STRING,
    column=STRING,
    action=STRING,
    split_path=STRING,
    index_path=STRING,
    cardinality=LONG,
    rows=LONG,
    size_bytes=LONG,
    build_duration_ms=LONG,
)
"""Column indexes: one row for each column and split."""
