"""Our commands as data: one class each, fields named after their clauses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class TableName:
    """A path, or the parts of a name the session's catalog knows."""

    path: str | None = None
    parts: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.path if self.path is not None else ".".join(self.parts)


@dataclass(frozen=True, slots=True)
class MergeSplits:
    table: TableName
    where: str | None = None
    target_size: int | None = None
    max_dest_splits: int | None = None
    max_source_splits: int | None = None
    precommit: bool = False


@dataclass(frozen=True, slots=True)
class Purge:
    table: TableName
    older_than_hours: int | None = None
    log_retention_hours: int | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class DropPartitions:
    table: TableName
    where: str


@dataclass(frozen=True, slots=True)
class Checkpoint:
    table: TableName
    compact: bool = False


@dataclass(frozen=True, slots=True)
class TruncateTimeTravel:
    table: TableName
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class RepairLog:
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class IndexCrossReferences:
    table: TableName
    where: str | None = None
    filter_type: str | None = None
    force_rebuild: bool = False
    max_builds: int | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class DescribeState:
    table: TableName


@dataclass(frozen=True, slots=True)
class DescribeLog:
    table: TableName
    include_all: bool = False
    xrefs: bool = False
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class DescribeComponentSizes:
    table: TableName
    where: str | None = None


@dataclass(frozen=True, slots=True)
class DescribeStatsCoverage:
    table: TableName


@dataclass(frozen=True, slots=True)
class DescribeIndexes:
    table: TableName


@dataclass(frozen=True, slots=True)
class DescribeEnvironment:
    pass


@dataclass(frozen=True, slots=True)
class DescribeDiskCache:
    pass


@dataclass(frozen=True, slots=True)
class DescribeStorageStats:
    pass


@dataclass(frozen=True, slots=True)
class InvalidateCache:
    table: TableName | None = None


@dataclass(frozen=True, slots=True)
class FlushDiskCache:
    pass


@dataclass(frozen=True, slots=True)
class FlushSearcherCache:
    pass


@dataclass(frozen=True, slots=True)
class Prewarm:
    table: TableName
    segments: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    parallelism: int | None = None
    where: str | None = None
    asynchronous: bool = False


@dataclass(frozen=True, slots=True)
class Delete:
    table: TableName
    where: str


@dataclass(frozen=True, slots=True)
class Truncate:
    table: TableName


@dataclass(frozen=True, slots=True)
class Restore:
    table: TableName
    version: int | None = None
    timestamp: str | None = None


@dataclass(frozen=True, slots=True)
class Doctor:
    table: TableName


@dataclass(frozen=True, slots=True)
class SetProperties:
    table: TableName
    properties: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreateIndex:
    table: TableName
    columns: tuple[str, ...]
    name: str | None = None


@dataclass(frozen=True, slots=True)
class DropIndex:
    table: TableName
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reindex:
    table: TableName
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class IndexSplits:
    table: TableName
    columns: tuple[str, ...] = ()
    where: str | None = None
    force_rebuild: bool = False
    dry_run: bool = False


Command: TypeAlias = (
    MergeSplits
    | Purge
    | DropPartitions
    | Checkpoint
    | TruncateTimeTravel
    | RepairLog
    | IndexCrossReferences
    | DescribeState
    | DescribeLog
    | DescribeComponentSizes
    | DescribeStatsCoverage
    | DescribeIndexes
    | DescribeEnvironment
    | DescribeDiskCache
    | DescribeStorageStats
    | InvalidateCache
    | FlushDiskCache
    | FlushSearcherCache
    | Prewarm
    | Delete
    | Truncate
    | Restore
    | Doctor
    | SetProperties
    | CreateIndex
    | DropIndex
    | Reindex
    | IndexSplits
)
