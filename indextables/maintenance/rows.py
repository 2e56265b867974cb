"""What the verbs answer: typed rows, with the columns and types their commands promise.

A result class is a frozen dataclass; ``COLUMNS``, the Arrow schema of the command's output, follows
from its fields. Nested results (``metrics``) are structs.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar, TypeAlias

import pyarrow as pa

from indextables.gridview import grid

STRING, LONG, INT, DOUBLE, BOOL = pa.string(), pa.int64(), pa.int32(), pa.float64(), pa.bool_()
MOMENT = pa.timestamp("us", "UTC")
Int32: TypeAlias = int
TYPES = {"str": STRING, "int": LONG, "Int32": INT, "float": DOUBLE, "bool": BOOL, "moment": MOMENT}


class Row:
    """Base of every result row; its columns are its fields."""

    COLUMNS: ClassVar[pa.Schema]

    def __init_subclass__(cls) -> None:
        cls.COLUMNS = columns_for(cls)

    def _repr_html_(self) -> str:
        """A notebook shows the result as a table of names and values."""
        facts = as_dict(self)
        facts |= facts.pop("metrics", None) or {}
        return grid([{"": name, "result": value} for name, value in facts.items()])


def columns_for(row: type, **others: pa.DataType) -> pa.Schema:
    """An Arrow schema from the fields of a class; ``others`` are types Python does not tell."""
    found: dict[str, pa.DataType] = {}
    for name, kind in row.__annotations__.items():
        if "ClassVar" not in kind:
            plain = kind.removesuffix(" | None")
            found[name] = others.get(name) or TYPES.get(plain) or _struct(row, plain)
    return pa.schema(list(found.items()))


def _struct(row: type, kind: str) -> pa.DataType:
    return pa.struct(list(getattr(sys.modules[row.__module__], kind).COLUMNS))


def as_dict(row: Any) -> dict[str, Any]:
    """A row as plain values."""
    found = {}
    for item in fields(row):
        value = getattr(row, item.name)
        found[item.name] = as_dict(value) if is_dataclass(value) else value
    return found


def columns_of(text: str) -> pa.Schema:
    """An Arrow schema from names with their types, in order: ``"path: str, size: int"``."""
    pairs = (item.split(":") for item in text.split(","))
    return pa.schema([(name.strip(), TYPES[kind.strip()]) for name, kind in pairs])


@dataclass(frozen=True)
class MergeMetrics(Row):
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


@dataclass(frozen=True)
class PurgeMetrics(Row):
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


@dataclass(frozen=True)
class DropResult(Row):
    """DROP INDEXTABLES PARTITIONS."""

    table_path: str
    status: str
    partitions_dropped: int
    splits_removed: int
    total_size_bytes: int
    message: str


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


@dataclass(frozen=True)
class RepairResult(Row):
    """REPAIR INDEXFILES TRANSACTION LOG."""

    source_path: str
    target_path: str
    source_version: int
    total_splits: Int32
    valid_splits: Int32
    missing_splits: Int32
    status: str


@dataclass(frozen=True)
class StateResult(Row):
    """DESCRIBE INDEXTABLES STATE."""

    table_path: str
    format: str
    version: int
    num_files: int
    num_manifests: Int32
    num_tombstones: Int32
    tombstone_ratio: float
    total_bytes: int
    needs_compaction: bool
    status: str


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


@dataclass(frozen=True)
class ChangeResult(Row):
    """UPDATE and upserts."""

    table_path: str
    status: str
    rows_updated: int
    rows_deleted: int
    rows_inserted: int
    splits_touched: int
    version: int
    message: str


@dataclass(frozen=True)
class ReorgResult(Row):
    """REORG TABLE ... APPLY (PURGE)."""

    table_path: str
    status: str
    splits_rewritten: int
    rows_purged: int
    version: int
    message: str


@dataclass(frozen=True)
class EraseResult(Row):
    """ERASE FROM."""

    table_path: str
    status: str
    rows_erased: int
    splits_rewritten: int
    versions_ended: int
    files_deleted: int
    version: int
    message: str


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


@dataclass(frozen=True)
class Finding(Row):
    """DOCTOR: one finding, and what repairs it."""

    table_path: str
    severity: str
    check: str
    path: str | None
    detail: str
    remedy: str


@dataclass(frozen=True)
class CompanionResult(Row):
    """BUILD INDEXTABLES COMPANION, SYNC INDEXTABLES COMPANION."""

    table_path: str
    source_path: str
    status: str
    source_version: int | None
    splits_created: Int32
    splits_invalidated: Int32
    parquet_files_indexed: Int32
    parquet_bytes_downloaded: int
    split_bytes_uploaded: int
    duration_ms: int
    message: str


@dataclass(frozen=True)
class CompanionRow(Row):
    """DESCRIBE INDEXTABLES COMPANION."""

    table_path: str
    source_path: str
    source_format: str
    source_version: int
    synced_version: int | None
    files: int
    covered_files: int
    uncovered_files: int
    files_with_deletes: int
    gone_files: int
    splits: int
    index_bytes: int
    message: str
