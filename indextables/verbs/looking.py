"""Verbs that only look."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from indextables.verbs.base import Verb, hidden, parameter, verb

if TYPE_CHECKING:
    import pyarrow as pa  # noqa: F401

    from indextables.maintenance import coverage, describe, rows  # noqa: F401


@verb
class DescribeState(Verb["rows.StateResult"]):
    """What the newest checkpoint looks like."""

    SQL = "DESCRIBE INDEXTABLES STATE {table}"
    CLI, METHOD = "state", "describe_state"
    DOES = "maintenance.logwork:describe_state"


@verb
class DescribeLog(Verb["pa.Table"]):
    """The actions of the log: the newest checkpoint and what came after it."""

    SQL = (
        "DESCRIBE INDEXTABLES TRANSACTION LOG {table} [{include_all:INCLUDE ALL}] "
        "[LIMIT {limit:int}]"
    )
    CLI, METHOD = "log", "describe_log"
    COLUMNS = "maintenance.describe_log:LOG_COLUMNS"
    DOES = "maintenance.describe_log:describe_log"

    include_all: bool = parameter(default=False, doc="Every version that is there.")
    limit: int | None = parameter(default=None, doc="At most this many actions.", shell=False)


@verb
class DescribeXRefs(Verb["pa.Table"]):
    """The cross-references, live and retired, and their coverage."""

    SQL = "DESCRIBE INDEXTABLES TRANSACTION LOG {table} [INCLUDE ALL] XREFS [LIMIT {limit:int}]"
    CLI, METHOD = "xref list", "describe_xrefs"
    COLUMNS = "maintenance.describe_log:XREF_SUMMARY_COLUMNS"
    DOES = "maintenance.describe_log:describe_xrefs"

    limit: int | None = parameter(default=None, doc="At most this many.", shell=False)


@verb
class DescribeComponentSizes(Verb["pa.Table"]):
    """How large each part of each split is."""

    SQL = "DESCRIBE INDEXTABLES COMPONENT SIZES {table} [WHERE {where:predicate}]"
    CLI, METHOD = "sizes", "component_sizes"
    COLUMNS = "maintenance.describe:SIZE_COLUMNS"
    DOES = "maintenance.describe:component_sizes"

    where: Any = parameter(default=None, doc="Predicate on partition columns.")


@verb
class DescribeStatsCoverage(Verb["list[coverage.StatsCoverage]"]):
    """Which columns have statistics, in how many splits."""

    SQL = "DESCRIBE INDEXTABLES STATS COVERAGE {table}"
    CLI, METHOD = "stats", "stats_coverage"
    DOES = "maintenance.coverage:stats_coverage"


@verb
class DescribeHistory(Verb["pa.Table"]):
    """The versions of a table, newest first: when, what, and what changed."""

    SQL = "DESCRIBE HISTORY {table} [LIMIT {limit:int}]"
    CLI, METHOD = "describe-history", "describe_history"
    COLUMNS = "maintenance.facts:HISTORY_COLUMNS"
    DOES = "maintenance.facts:describe_history"
    BY_NAME = True

    limit: int | None = parameter(default=None, doc="At most this many.")


@verb
class ShowPartitions(Verb["pa.Table"]):
    """The partitions that hold rows."""

    SQL = "SHOW PARTITIONS {table}"
    CLI, METHOD = "show-partitions", "show_partitions"
    COLUMNS = "maintenance.facts:SHOWN_COLUMNS"
    DOES = "maintenance.facts:show_partitions"
    BY_NAME = True


@verb
class AnalyzeTable(Verb["pa.Table"]):
    """Splits, rows and bytes. The log keeps them exact with every write: nothing is computed."""

    SQL = "ANALYZE TABLE {table} COMPUTE STATISTICS [NOSCAN | FOR ALL COLUMNS]"
    CLI, METHOD = "analyze-table", "analyze_table"
    COLUMNS = "maintenance.facts:STATISTICS_COLUMNS"
    DOES = "maintenance.facts:statistics"
    BY_NAME = True


@verb
class DescribeEnvironment(Verb["list[describe.Setting]"]):
    """What this process runs with; secrets are never shown."""

    SQL = "DESCRIBE INDEXTABLES ENVIRONMENT"
    CLI = METHOD = "environment"
    DOES = "maintenance.describe:environment"

    spark: Any = hidden(default=None)


@verb
class DescribeStorageStats(Verb["describe.Fetched"]):
    """What was fetched from remote stores past the disk cache."""

    SQL = "DESCRIBE INDEXTABLES STORAGE STATS"
    CLI, METHOD = "cache fetched", "storage_stats"
    DOES = "maintenance.describe:storage_stats"


@verb
class Doctor(Verb["list[rows.Finding]"]):
    """Look for damage; each finding names the command that repairs it."""

    SQL = "DOCTOR [INDEXTABLES] {table}"
    CLI = METHOD = "doctor"
    DOES = "maintenance.checkup:doctor"

    checksums: bool = parameter(default=True, doc="Read every byte of every split.")
