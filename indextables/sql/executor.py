"""Running a parsed command: find the table, call its verb, give the rows as Arrow.

A table is a path, or a name the Spark session's catalog resolves to one. With a Spark session the
heavy verbs run their work as Spark tasks; without one, in this process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from indextables.config import Config
from indextables.errors import MaintenanceError
from indextables.expr.lexer import quoted_name
from indextables.log.log import TransactionLog
from indextables.maintenance import rows as r
from indextables.sql import commands as c
from indextables.sql.parser import parse


class Session:
    """What a command runs with."""

    def __init__(
        self,
        spark: Any = None,
        storage_options: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.spark = spark
        self.storage_options = storage_options
        self.config = Config.of(options, session_settings(spark))

    def path(self, name: c.TableName) -> str:
        if name.path is not None:
            return name.path
        if self.spark is None:
            raise MaintenanceError(
                f"'{name}' is a table name and there is no Spark session to resolve it",
                hint="Give the path in quotes",
            )
        return catalog_path(self.spark, name)

    def log(self, name: c.TableName) -> TransactionLog:
        return TransactionLog.open(
            self.path(name), storage_options=self.storage_options, config=self.config
        )

    @property
    def runner(self) -> Any:
        if self.spark is None or not hasattr(self.spark, "_jsparkSession"):
            return None
        from indextables.maintenance.rewrite import run_on_spark

        return run_on_spark(self.spark)


def session_settings(spark: Any) -> dict[str, str]:
    """The session's settings under our prefix."""
    if spark is None:
        return {}
    found = spark.conf.getAll
    settings = found() if callable(found) else found
    return {k: v for k, v in dict(settings).items() if k.startswith("spark.indextables.")}


def catalog_path(spark: Any, name: c.TableName) -> str:
    """The location of a table the session knows by name."""
    quoted = ".".join(map(quoted_name, name.parts))
    for row in spark.sql(f"DESCRIBE TABLE EXTENDED {quoted}").collect():
        if row[0] == "Location":
            return str(row[1]).removeprefix("file:")
    raise MaintenanceError(f"the catalog knows no location of '{name}'")


def execute(
    text: str,
    spark: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> pa.Table:
    """Run one command and return its rows."""
    return run_command(parse(text), Session(spark, storage_options, options))


def run_command(command: c.Command, session: Session) -> pa.Table:
    """Run a parsed command."""
    return _VERBS[type(command)](command, session)


# -- verbs ---------------------------------------------------------------------------------------


def _merge(cmd: c.MergeSplits, s: Session) -> pa.Table:
    from indextables.maintenance import merge_splits

    result = merge_splits(
        s.log(cmd.table),
        where=cmd.where,
        target_size=cmd.target_size,
        max_dest_splits=cmd.max_dest_splits,
        max_source_splits=cmd.max_source_splits,
        precommit=cmd.precommit,
        run=s.runner,
    )
    return r.as_table([result])


def _purge(cmd: c.Purge, s: Session) -> pa.Table:
    from indextables.maintenance import purge

    result = purge(
        s.log(cmd.table),
        older_than_hours=cmd.older_than_hours,
        log_retention_hours=cmd.log_retention_hours,
        dry_run=cmd.dry_run,
    )
    return r.as_table([result])


def _drop(cmd: c.DropPartitions, s: Session) -> pa.Table:
    from indextables.maintenance import drop_partitions

    return r.as_table([drop_partitions(s.log(cmd.table), cmd.where)])


def _checkpoint(cmd: c.Checkpoint, s: Session) -> pa.Table:
    from indextables.maintenance import checkpoint

    return r.as_table([checkpoint(s.log(cmd.table), compact=cmd.compact)])


def _truncate(cmd: c.TruncateTimeTravel, s: Session) -> pa.Table:
    from indextables.maintenance import truncate_time_travel

    return r.as_table([truncate_time_travel(s.log(cmd.table), dry_run=cmd.dry_run)])


def _repair(cmd: c.RepairLog, s: Session) -> pa.Table:
    from indextables.maintenance import repair_log

    result = repair_log(cmd.source, cmd.target, storage_options=s.storage_options, config=s.config)
    return r.as_table([result])


def _delete(cmd: c.Delete, s: Session) -> pa.Table:
    from indextables.maintenance import delete_rows

    return r.as_table([delete_rows(s.log(cmd.table), cmd.where, run=s.runner)])


def _truncate_table(cmd: c.Truncate, s: Session) -> pa.Table:
    from indextables.maintenance import truncate_table

    return r.as_table([truncate_table(s.log(cmd.table))])


def _restore(cmd: c.Restore, s: Session) -> pa.Table:
    from indextables.maintenance import restore_to_version

    result = restore_to_version(s.log(cmd.table), cmd.version, timestamp=cmd.timestamp)
    return r.as_table([result])


def _doctor(cmd: c.Doctor, s: Session) -> pa.Table:
    from indextables.maintenance import doctor

    return r.as_table(doctor(s.log(cmd.table)), r.Finding.COLUMNS)


def _properties(cmd: c.SetProperties, s: Session) -> pa.Table:
    from indextables.maintenance import set_properties

    return r.as_table([set_properties(s.log(cmd.table), cmd.properties)])


def _describe_state(cmd: c.DescribeState, s: Session) -> pa.Table:
    from indextables.maintenance import describe_state

    return r.as_table([describe_state(s.log(cmd.table))])


def _stats(cmd: c.DescribeStatsCoverage, s: Session) -> pa.Table:
    from indextables.maintenance.coverage import StatsCoverage, stats_coverage

    return r.as_table(stats_coverage(s.log(cmd.table)), StatsCoverage.COLUMNS)


def _describe_log(cmd: c.DescribeLog, s: Session) -> pa.Table:
    from indextables.maintenance.describe_log import describe_log, describe_xrefs

    log = s.log(cmd.table)
    if cmd.xrefs:
        return describe_xrefs(log, limit=cmd.limit)
    return describe_log(log, include_all=cmd.include_all, limit=cmd.limit)


def _sizes(cmd: c.DescribeComponentSizes, s: Session) -> pa.Table:
    from indextables.maintenance.describe import component_sizes

    return component_sizes(s.log(cmd.table), cmd.where)


def _environment(cmd: c.DescribeEnvironment, s: Session) -> pa.Table:
    from indextables.maintenance.describe import environment

    return environment(s.config, s.spark)


def _disk_cache(cmd: c.DescribeDiskCache, s: Session) -> pa.Table:
    from indextables.maintenance.describe import disk_cache

    return disk_cache(s.config)


def _storage(cmd: c.DescribeStorageStats, s: Session) -> pa.Table:
    from indextables.maintenance.describe import storage_stats

    return storage_stats(s.config)


def _invalidate(cmd: c.InvalidateCache, s: Session) -> pa.Table:
    from indextables.maintenance.describe import invalidate_cache

    return invalidate_cache(None if cmd.table is None else s.log(cmd.table))


def _flush_disk(cmd: c.FlushDiskCache, s: Session) -> pa.Table:
    from indextables.maintenance.describe import flush_disk_cache

    return flush_disk_cache(s.config)


def _flush_searcher(cmd: c.FlushSearcherCache, s: Session) -> pa.Table:
    from indextables.maintenance.describe import flush_searcher_cache

    return flush_searcher_cache()


def _prewarm(cmd: c.Prewarm, s: Session) -> pa.Table:
    from indextables.maintenance.prewarm import prewarm

    return prewarm(
        s.log(cmd.table),
        segments=cmd.segments,
        fields=cmd.fields,
        parallelism=cmd.parallelism,
        where=cmd.where,
        asynchronous=cmd.asynchronous,
        spark=s.spark,
    )


def _xrefs(cmd: c.IndexCrossReferences, s: Session) -> pa.Table:
    from indextables.maintenance.crossref import XREF_COLUMNS, index_cross_references

    rows = index_cross_references(
        s.log(cmd.table),
        where=cmd.where,
        filter_type=cmd.filter_type,
        force=cmd.force_rebuild,
        max_builds=cmd.max_builds,
        dry_run=cmd.dry_run,
        spark=s.spark,
    )
    return pa.Table.from_pylist(rows, schema=XREF_COLUMNS)


def _create_index(cmd: c.CreateIndex, s: Session) -> pa.Table:
    from indextables import columnindex

    log, run = s.log(cmd.table), columnindex.build_on_spark(s.spark)
    made = [columnindex.create_index(log, column, run=run) for column in cmd.columns]
    return columnindex.rows_table([row for rows in made for row in rows])


def _drop_index(cmd: c.DropIndex, s: Session) -> pa.Table:
    from indextables import columnindex

    log = s.log(cmd.table)
    return columnindex.rows_table([columnindex.drop_index(log, column) for column in cmd.columns])


def _reindex(cmd: c.Reindex, s: Session) -> pa.Table:
    from indextables import columnindex

    run = columnindex.build_on_spark(s.spark)
    rows = columnindex.index_splits(s.log(cmd.table), columns=cmd.columns or None, run=run)
    return columnindex.rows_table(rows)


def _index_splits(cmd: c.IndexSplits, s: Session) -> pa.Table:
    from indextables import columnindex
    from indextables.maintenance.scope import split_scope

    log = s.log(cmd.table)
    rows = columnindex.index_splits(
        log,
        columns=cmd.columns or None,
        scope=split_scope(log.snapshot(), cmd.where),
        force=cmd.force_rebuild,
        dry_run=cmd.dry_run,
        run=columnindex.build_on_spark(s.spark),
    )
    return columnindex.rows_table(rows)


def _describe_indexes(cmd: c.DescribeIndexes, s: Session) -> pa.Table:
    from indextables import columnindex

    return columnindex.describe_indexes(s.log(cmd.table))


_VERBS: dict[type, Callable[[Any, Session], pa.Table]] = {
    c.MergeSplits: _merge,
    c.Purge: _purge,
    c.DropPartitions: _drop,
    c.Checkpoint: _checkpoint,
    c.TruncateTimeTravel: _truncate,
    c.RepairLog: _repair,
    c.Delete: _delete,
    c.Truncate: _truncate_table,
    c.Restore: _restore,
    c.Doctor: _doctor,
    c.SetProperties: _properties,
    c.DescribeState: _describe_state,
    c.DescribeStatsCoverage: _stats,
    c.DescribeLog: _describe_log,
    c.DescribeComponentSizes: _sizes,
    c.DescribeEnvironment: _environment,
    c.DescribeDiskCache: _disk_cache,
    c.DescribeStorageStats: _storage,
    c.InvalidateCache: _invalidate,
    c.FlushDiskCache: _flush_disk,
    c.FlushSearcherCache: _flush_searcher,
    c.Prewarm: _prewarm,
    c.IndexCrossReferences: _xrefs,
    c.CreateIndex: _create_index,
    c.DropIndex: _drop_index,
    c.Reindex: _reindex,
    c.IndexSplits: _index_splits,
    c.DescribeIndexes: _describe_indexes,
}
