"""INDEX CROSSREFERENCES: choose the splits, build, give the rows of the command."""

from __future__ import annotations

from typing import Any

from indextables.columnindex.building import IndexRow
from indextables.errors import MaintenanceError
from indextables.log.log import TransactionLog
from indextables.maintenance.rows import INT, columns_for
from indextables.maintenance.scope import split_scope
from indextables.xref import build
from indextables.xref.builder import Gather, XRefBuildResult
from indextables.xref.keymaps.build import update_keymaps
from indextables.xref.sources import gathered

XREF_COLUMNS = columns_for(XRefBuildResult, source_splits_count=INT)
INDEX_COLUMNS = columns_for(IndexRow)


def index_cross_references(
    log: TransactionLog,
    *,
    where: Any = None,
    filter_type: str | None = None,
    force: bool = False,
    max_builds: int | None = None,
    dry_run: bool = False,
    spark: Any = None,
) -> list[XRefBuildResult]:
    """Build or update the cross-references; one row each."""
    scope = split_scope(log.snapshot(), where)
    config = log.config
    if max_builds is not None:
        if max_builds < 1:
            raise MaintenanceError("MAX XREF BUILDS must be at least 1")
        config = config.updated({"xref.build.maxXRefsPerRun": max_builds})
    results = build(
        log,
        scope=scope,
        partition="" if where is None else str(where),
        force=force,
        dry_run=dry_run,
        filter_type=filter_type,
        config=config,
        gather=_on_spark(log, spark),
    )
    if not dry_run:
        update_keymaps(log, config, eager=True)
    return results


def _on_spark(log: TransactionLog, spark: Any) -> Gather | None:
    """Gather filters in Spark tasks where there is a session that can run them."""
    if spark is None or not hasattr(spark, "_jsparkSession"):
        return None
    if not log.config["xref.build.distributed"]:
        return None
    store, config = log.store, log.config

    def gather(adds: Any, kind: str) -> Any:
        parts = max(1, min(len(adds), 2 * spark.sparkContext.defaultParallelism))
        found = spark.sparkContext.parallelize(list(adds), parts).map(
            lambda add: gathered(store, add, config, kind)
        )
        yield from found.toLocalIterator()

    return gather
