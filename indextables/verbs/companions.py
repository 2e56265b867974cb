"""Verbs of companions: indexes over Delta, Iceberg and Parquet tables of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from indextables.verbs.base import Target, Verb, hidden, parameter, verb

if TYPE_CHECKING:
    from indextables.maintenance import rows


@verb
class BuildCompanion(Verb["rows.CompanionResult"]):
    """Index a table of another format, or bring its index up to date; the table is only read."""

    SQL = (
        "BUILD INDEXTABLES COMPANION FOR {format:delta|iceberg|parquet} {source:source} "
        "[SCHEMA SOURCE {schema_source:string}] "
        "[CATALOG {catalog:string} [TYPE {catalog_type:string}]] [WAREHOUSE {warehouse:string}] "
        "[INCLUDE COLUMNS {columns:names}] [EXCLUDE COLUMNS {exclude:names}] "
        "[INDEXING MODES {modes:modes}] "
        "[FASTFIELDS MODE {fast_fields:disabled|parquet_only|hybrid}] "
        "[HASHED FASTFIELDS (INCLUDE | EXCLUDE) {hashed:names}] "
        "[TARGET INPUT SIZE {target_size:size}] [WRITER HEAP SIZE {heap_size:size}] "
        "[FROM VERSION {from_version:int}] [FROM SNAPSHOT {from_snapshot:int}] "
        "[WHERE {where:predicate}] [{invalidate:INVALIDATE ALL PARTITIONS}] "
        "[TABLE ROOTS {roots:pairs}] AT LOCATION {table} [{dry_run:DRY RUN}] "
        "[WITH STREAMING POLL INTERVAL {poll:seconds}]"
    )
    CLI, METHOD = "companion build", "build_companion"
    MUTATES = True

    format: str = parameter(doc="Format of the source.")
    source: str = parameter(doc="The table to index.")
    schema_source: str | None = parameter(default=None, doc="Not supported.", shell=False)
    catalog: str | None = parameter(default=None, doc="Iceberg: name of the table's catalog.")
    catalog_type: str | None = parameter(default=None, doc="Iceberg: kind of that catalog.")
    warehouse: str | None = parameter(default=None, doc="Iceberg: warehouse of that catalog.")
    columns: Sequence[str] | None = parameter(default=None, doc="Columns to index; all if absent.")
    exclude: Sequence[str] = parameter(default=(), doc="Columns to leave out of the index.")
    modes: Mapping[str, str] | None = parameter(
        default=None, doc="How columns are indexed: string, text, json or ip."
    )
    fast_fields: str | None = parameter(default=None, doc="Columns stay in the source.")
    hashed: Sequence[str] | None = parameter(default=None, doc="Not supported.", shell=False)
    target_size: int | None = parameter(default=None, doc="Bytes of files that make one split.")
    heap_size: int | None = parameter(default=None, doc="Memory of one split's index.")
    from_version: int | None = parameter(default=None, doc="Version of a Delta table to index.")
    from_snapshot: int | None = parameter(default=None, doc="Snapshot of an Iceberg table.")
    where: Any = parameter(default=None, doc="Not supported.", shell=False)
    invalidate: bool = parameter(default=False, doc="Not supported.", shell=False)
    roots: Mapping[str, str] | None = parameter(
        default=None, doc="Other folders that files of the source may be in."
    )
    dry_run: bool = parameter(default=False, doc="Only say what would be done.")
    poll: int | None = parameter(default=None, doc="Go on syncing after so many seconds.")
    spark: Any = hidden(default=None)

    def gate(self, on: Target) -> None:
        """The companion may not be there yet; ``build_companion`` asks one that is."""

    def apply(self, on: Target) -> rows.CompanionResult:
        from indextables.companion.commands import build_companion

        return build_companion(self, on.path or "", on)


@verb
class SyncCompanion(Verb["rows.CompanionResult"]):
    """Index what is new in the source of a companion, and drop what is gone."""

    SQL = "SYNC INDEXTABLES COMPANION {table} [{dry_run:DRY RUN}] [POLL INTERVAL {poll:seconds}]"
    CLI, METHOD = "companion sync", "sync"
    DOES = "companion.commands:sync_companion"
    MUTATES = True

    dry_run: bool = parameter(default=False, doc="Only say what would be done.")
    poll: int | None = parameter(default=None, doc="Go on syncing after so many seconds.")
    follow: bool = parameter(default=False, doc="Go on syncing, every minute if not said.")
    spark: Any = hidden(default=None)


@verb
class DescribeCompanion(Verb["list[rows.CompanionRow]"]):
    """The source of a companion, and how much of it is indexed."""

    SQL = "DESCRIBE INDEXTABLES COMPANION {table}"
    CLI, METHOD = "companion describe", "describe_companion"
    DOES = "companion.commands:describe_companion"
