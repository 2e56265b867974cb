"""Verbs that only look."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from indextables import maintenance
from indextables.verbs.base import Target, Verb, parameter, verb

if TYPE_CHECKING:
    import pyarrow as pa

    from indextables.maintenance.coverage import StatsCoverage
    from indextables.maintenance.rows import Finding, StateResult


@verb
class DescribeState(Verb["StateResult"]):
    """What the newest checkpoint looks like."""

    SQL = "DESCRIBE INDEXTABLES STATE {table}"
    CLI, METHOD = "state", "describe_state"
    COLUMNS = "maintenance.rows:StateResult"

    def apply(self, on: Target) -> StateResult:
        return maintenance.describe_state(on.log)


@verb
class DescribeLog(Verb["pa.Table"]):
    """The actions of the log: the newest checkpoint and what came after it."""

    SQL = (
        "DESCRIBE INDEXTABLES TRANSACTION LOG {table} [{include_all:INCLUDE ALL}] "
        "[LIMIT {limit:int}]"
    )
    CLI, METHOD = "log", "describe_log"
    COLUMNS = "maintenance.describe_log:LOG_COLUMNS"

    include_all: bool = parameter(default=False, doc="Every version that is there.")
    limit: int | None = parameter(default=None, doc="At most this many actions.", shell=False)

    def apply(self, on: Target) -> pa.Table:
        from indextables.maintenance.describe_log import describe_log

        return describe_log(on.log, include_all=self.include_all, limit=self.limit)


@verb
class DescribeXRefs(Verb["pa.Table"]):
    """The cross-references, live and retired, and their coverage."""

    SQL = "DESCRIBE INDEXTABLES TRANSACTION LOG {table} [INCLUDE ALL] XREFS [LIMIT {limit:int}]"
    CLI, METHOD = "xref list", "describe_xrefs"
    COLUMNS = "maintenance.describe_log:XREF_SUMMARY_COLUMNS"

    limit: int | None = parameter(default=None, doc="At most this many.", shell=False)

    def apply(self, on: Target) -> pa.Table:
        from indextables.maintenance.describe_log import describe_xrefs

        return describe_xrefs(on.log, limit=self.limit)


@verb
class DescribeComponentSizes(Verb["pa.Table"]):
    """How large each part of each split is."""

    SQL = "DESCRIBE INDEXTABLES COMPONENT SIZES {table} [WHERE {where:predicate}]"
    CLI, METHOD = "sizes", "component_sizes"
    COLUMNS = "maintenance.describe:SIZE_COLUMNS"

    where: Any = parameter(default=None, doc="Predicate on partition columns.")

    def apply(self, on: Target) -> pa.Table:
        from indextables.maintenance.describe import component_sizes

        return component_sizes(on.log, self.where)


@verb
class DescribeStatsCoverage(Verb["list[StatsCoverage]"]):
    """Which columns have statistics, in how many splits."""

    SQL = "DESCRIBE INDEXTABLES STATS COVERAGE {table}"
    CLI, METHOD = "stats", "stats_coverage"
    COLUMNS = "maintenance.coverage:StatsCoverage"

    def apply(self, on: Target) -> list[StatsCoverage]:
        return maintenance.stats_coverage(on.log)


@verb
class DescribeEnvironment(Verb["pa.Table"]):
    """What this process runs with; secrets are never shown."""

    SQL = "DESCRIBE INDEXTABLES ENVIRONMENT"
    CLI = METHOD = "environment"
    COLUMNS = "maintenance.describe:ENVIRONMENT_COLUMNS"

    def apply(self, on: Target) -> pa.Table:
        from indextables.maintenance.describe import environment

        return environment(on.config, on.spark)


@verb
class DescribeStorageStats(Verb["pa.Table"]):
    """What was fetched from remote stores past the disk cache."""

    SQL = "DESCRIBE INDEXTABLES STORAGE STATS"
    CLI, METHOD = "cache fetched", "storage_stats"
    COLUMNS = "maintenance.describe:STORAGE_COLUMNS"

    def apply(self, on: Target) -> pa.Table:
        from indextables.maintenance.describe import storage_stats

        return storage_stats(on.config)


@verb
class Doctor(Verb["list[Finding]"]):
    """Look for damage; each finding names the command that mends it."""

    SQL = "DOCTOR [INDEXTABLES] {table}"
    CLI = METHOD = "doctor"
    COLUMNS = "maintenance.rows:Finding"

    checksums: bool = parameter(default=True, doc="Read every byte of every split.")

    def apply(self, on: Target) -> list[Finding]:
        return maintenance.doctor(on.log, checksums=self.checksums)
