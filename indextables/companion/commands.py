"""The commands of companions: what the verbs do.

``BUILD INDEXTABLES COMPANION`` has the clauses of JVM IndexTables. Those that have nothing to act
on here are refused, not ignored; ``FASTFIELDS MODE`` may say that columns stay
in the source, which is so anyway.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from indextables.companion.building import Built, Job, build
from indextables.companion.facts import CompanionFacts, is_companion
from indextables.companion.making import Asked, make
from indextables.companion.opening import SOURCE_OPTIONS
from indextables.companion.reading import read_snapshot
from indextables.companion.syncing import Runner, SyncResult, facts_of, plan_sync, sync
from indextables.config import Config
from indextables.errors import ConfigError
from indextables.log.log import TransactionLog
from indextables.maintenance.rows import CompanionResult, CompanionRow
from indextables.mapping import IndexingOptions

MODES = {
    "string": None, "exact_only": None, "text": "text", "json": "json", "ip": "ip",
    "ipaddress": "ip",
}  # fmt: skip
_UNSUPPORTED = {
    "schema_source": "SCHEMA SOURCE", "hashed": "HASHED FASTFIELDS", "where": "WHERE",
    "invalidate": "INVALIDATE ALL PARTITIONS",
}  # fmt: skip
MINUTE = 60


def build_companion(asked: Any, at: str, on: Any) -> CompanionResult:
    """``BUILD INDEXTABLES COMPANION``; ``asked`` has its clauses."""
    for name, clause in _UNSUPPORTED.items():
        if getattr(asked, name):
            raise ConfigError(
                f"{clause} is not supported by companions of this release",
                hint="Leave the clause out; every file of the source is compared on each build",
            )
    if asked.fast_fields == "hybrid":
        raise ConfigError(
            "FASTFIELDS MODE HYBRID is not supported", hint="Use DISABLED: columns stay in files"
        )
    made, config = _asked(asked, on.config)
    if asked.dry_run:
        return _planned(at, made, on.storage_options, config)
    log, found = make(
        at, made, storage_options=on.storage_options, config=config, run=on_spark(on.spark)
    )
    if asked.poll is not None:
        return _following(log, asked.poll, on.spark)
    return _told(log, found)


def _asked(asked: Any, config: Config) -> tuple[Asked, Config]:
    kinds: dict[str, list[str]] = {"text": [], "json": [], "ip": []}
    for column, mode in (asked.modes or {}).items():
        if mode.lower() not in MODES:
            raise ConfigError(
                f"indexing mode '{mode}' of column '{column}' is not supported",
                hint=f"Use one of {', '.join(MODES)}",
            )
        kind = MODES[mode.lower()]
        if kind is not None:
            kinds[kind].append(column)
    text, json, ip = (tuple(kinds[kind]) for kind in ("text", "json", "ip"))
    indexing = IndexingOptions(text, json, ip)
    more: dict[str, Any] = {}
    if asked.heap_size is not None:
        more["indexWriter.heapSize"] = asked.heap_size
    if asked.catalog is not None:
        told = {"name": asked.catalog, "type": asked.catalog_type, "warehouse": asked.warehouse}
        more[SOURCE_OPTIONS + "catalog"] = {k: v for k, v in told.items() if v is not None}
    made = Asked(
        asked.source,
        asked.format,
        roots=asked.roots or {},
        indexing=indexing,
        columns=asked.columns,
        exclude=tuple(asked.exclude),
        version=asked.from_version if asked.from_snapshot is None else asked.from_snapshot,
        target_bytes=asked.target_size,
    )
    return made, Config.of(more, config)


def sync_companion(
    log: TransactionLog,
    *,
    dry_run: bool = False,
    poll: int | None = None,
    follow: bool = False,
    spark: Any = None,
) -> CompanionResult:
    """Index what is new and drop what is gone; with ``poll`` or ``follow`` until interrupted."""
    facts_of(log)
    if dry_run:
        return _dry(log)
    if follow or poll is not None:
        return _following(log, MINUTE if poll is None else poll, spark)
    return _told(log, sync(log, run=on_spark(spark)))


def _following(
    log: TransactionLog, seconds: int, spark: Any, wait: Callable[[float], None] = time.sleep
) -> CompanionResult:
    """Sync again and again until interrupted; the last result."""
    found = sync(log, run=on_spark(spark))
    try:
        for _ in itertools.count():
            wait(seconds)
            found = sync(log, run=on_spark(spark))
    except KeyboardInterrupt:
        return _told(log, found)
    raise AssertionError("unreachable")


def on_spark(spark: Any) -> Runner | None:
    """What indexes files in Spark tasks; ``None`` without a session that has them."""
    if spark is None or not hasattr(spark, "_jsparkSession"):
        return None

    def run(jobs: Sequence[Job]) -> Iterator[Built]:
        context = spark.sparkContext
        at_once = max(1, 2 * int(context.defaultParallelism))
        for first in range(0, len(jobs), at_once):
            part = list(jobs[first : first + at_once])
            yield from context.parallelize(part, len(part)).map(build).collect()

    return run


# -- results --------------------------------------------------------------------------------------


def _told(log: TransactionLog, found: SyncResult) -> CompanionResult:
    facts = facts_of(log)
    left = f"; too large for one split: {', '.join(found.too_large)}" if found.too_large else ""
    changed = found.splits_created or found.splits_invalidated or found.files_dropped
    status = "success" if changed else "no_action"
    message = f"{found.files_indexed} files indexed, {found.files_dropped} dropped{left}"
    return _result(log.path, facts.location, status, found, message)


def _dry(log: TransactionLog) -> CompanionResult:
    plan = plan_sync(log)
    gone = sum(map(len, plan.dropped.values())) + len(plan.unneeded)
    found = SyncResult(
        plan.source.version,
        splits_invalidated=len(plan.unneeded) + len(plan.unfit),
        files_indexed=len(plan.missing),
        bytes_read=sum(f.size for f in plan.missing),
    )
    message = f"{len(plan.missing)} files would be indexed, {gone} dropped"
    return _result(log.path, plan.source.location, "dry_run", found, message)


def _planned(
    at: str, asked: Asked, storage_options: Mapping[str, Any] | None, config: Config
) -> CompanionResult:
    """What a build would do, whether the companion is there or not."""
    if TransactionLog.exists(at, storage_options=storage_options, config=config):
        return _dry(TransactionLog.open(at, storage_options=storage_options, config=config))
    source = asked.opened(config, storage_options or {}).snapshot(version=asked.version)
    files = list(source.files())
    found = SyncResult(source.version, files_indexed=len(files))
    found.bytes_read = sum(f.size for f in files)
    message = f"{len(files)} files would be indexed"
    return _result(at, source.location, "dry_run", found, message)


def _result(
    at: str, location: str, status: str, found: SyncResult, message: str
) -> CompanionResult:
    return CompanionResult(
        table_path=at,
        source_path=location,
        status=status,
        source_version=found.source_version,
        splits_created=found.splits_created,
        splits_invalidated=found.splits_invalidated,
        parquet_files_indexed=found.files_indexed,
        parquet_bytes_downloaded=found.bytes_read,
        split_bytes_uploaded=found.bytes_written,
        duration_ms=found.duration_ms,
        message=message,
    )


def describe_companion(log: TransactionLog) -> list[CompanionRow]:
    """The source, and how much of it the index covers now; nothing of an ordinary table."""
    raw = log.snapshot()
    if not is_companion(raw.metadata.configuration):
        return []
    facts = CompanionFacts.of(raw.metadata.configuration, log.path)
    lag = read_snapshot(log).lag
    unused = [f"{path}: {why}" for path, why in lag.unused.items()]
    row = CompanionRow(
        table_path=log.path,
        source_path=facts.location,
        source_format=facts.format,
        source_version=lag.version,
        synced_version=facts.synced,
        files=lag.files,
        covered_files=lag.covered,
        uncovered_files=lag.uncovered,
        files_with_deletes=lag.with_deletes,
        gone_files=lag.gone,
        splits=raw.num_files,
        index_bytes=raw.num_bytes,
        message="; ".join(unused) or "every split is used",
    )
    return [row]
