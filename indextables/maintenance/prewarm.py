"""PREWARM: bring the parts of splits that queries will want into the local disk cache.

With a Spark session the splits are shared out over its executors, each of which fills the cache of
its own host; the answer has one row a host. Without one, this process reads them in threads.
"""

from __future__ import annotations

import socket
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from indextables.config import Config
from indextables.errors import IndexTablesError, MaintenanceError
from indextables.log.actions import AddFile
from indextables.log.log import TransactionLog
from indextables.maintenance.rows import columns_of
from indextables.maintenance.scope import matching_files, partition_predicate
from indextables.progress import progress
from indextables.splits.read.reader import SplitReader
from indextables.storage.base import Store
from indextables.storage.machine import machine_error
from indextables.storage.pool import in_order

PREWARM_COLUMNS = columns_of("""
    host: str, assigned_host: str, locality_hits: Int32, locality_misses: Int32,
    splits_prewarmed: Int32, segments: str, fields: str, duration_ms: int, status: str,
    skipped_fields: str, retries: Int32, failed_splits_by_host: str, job_id: str, async_mode:
    bool
""")
SEGMENTS = {
    "TERM": (".term",),
    "TERM_DICT": (".term",),
    "POSTINGS": (".idx",),
    "POSITIONS": (".pos",),
    "FASTFIELD": (".fast",),
    "FIELDNORM": (".fieldnorm",),
    "STORE": (".store", "rows."),
}
DEFAULT_SEGMENTS = ("TERM_DICT", "POSTINGS")
DEFAULT_PARALLELISM = 4


def prewarm(
    log: TransactionLog,
    *,
    segments: Sequence[str] = (),
    fields: Sequence[str] = (),
    parallelism: int | None = None,
    where: Any = None,
    asynchronous: bool = False,
    spark: Any = None,
) -> pa.Table:
    """Read the asked parts of every split once: here, or shared out over Spark's executors."""
    chosen = _checked(segments, parallelism)
    snapshot = log.snapshot()
    skipped = [f for f in fields if f not in snapshot.schema.names]
    files = list(snapshot.files())
    if where is not None:
        files = matching_files(snapshot, partition_predicate(where, snapshot))
    job, start = uuid.uuid4().hex, time.monotonic()
    warmth = Warmth(log.store, log.config, chosen, parallelism or DEFAULT_PARALLELISM)
    if asynchronous:
        threading.Thread(target=_warm, args=(warmth, files, spark), daemon=True).start()
        done = [Warmed(socket.gethostname(), 0)]
    else:
        done = _warm(warmth, files, spark)
    common = {
        "segments": ",".join(chosen),
        "fields": ",".join(fields) or "all",
        "duration_ms": int((time.monotonic() - start) * 1000),
        "skipped_fields": ",".join(skipped) or None,
        "retries": 0,
        "job_id": job,
        "async_mode": asynchronous,
    }
    rows = [{**common, **_row(one, asynchronous)} for one in _by_host(done)]
    return pa.Table.from_pylist(rows, schema=PREWARM_COLUMNS)


def _checked(segments: Sequence[str], parallelism: int | None) -> tuple[str, ...]:
    chosen = tuple(segment.upper() for segment in segments) or DEFAULT_SEGMENTS
    unknown = [s for s in chosen if s not in SEGMENTS]
    if unknown:
        raise MaintenanceError(
            f"unknown segment {unknown[0]}", hint=f"Use {', '.join(sorted(SEGMENTS))}"
        )
    if parallelism is not None and parallelism < 1:
        raise MaintenanceError("PERWORKER PARALLELISM must be at least 1")
    return chosen


@dataclass(frozen=True, slots=True)
class Warmed:
    """What one worker did."""

    host: str
    splits: int
    failed: tuple[str, ...] = ()


def _by_host(done: Sequence[Warmed]) -> list[Warmed]:
    found: dict[str, Warmed] = {}
    for one in done:
        before = found.get(one.host, Warmed(one.host, 0))
        found[one.host] = Warmed(one.host, before.splits + one.splits, before.failed + one.failed)
    return list(found.values())


def _row(one: Warmed, asynchronous: bool) -> dict[str, Any]:
    return {
        "host": one.host,
        "assigned_host": one.host,
        "locality_hits": one.splits,
        "locality_misses": 0,
        "splits_prewarmed": one.splits - len(one.failed),
        "status": "started" if asynchronous else "partial" if one.failed else "success",
        "failed_splits_by_host": ",".join(one.failed) or None,
    }


@dataclass(frozen=True, slots=True)
class Warmth:
    """Picklable: it warms splits in this process or in a Spark task alike."""

    store: Store
    config: Config
    segments: tuple[str, ...]
    parallelism: int

    def __call__(self, files: Iterable[AddFile]) -> Iterator[Warmed]:
        given = list(files)
        with progress("prewarm", len(given)) as bar:
            failed = []
            for path in in_order(self._one, given, self.parallelism):
                bar.advance(1)
                failed += [] if path is None else [path]
        yield Warmed(socket.gethostname(), len(given), tuple(failed))

    def _one(self, add: AddFile) -> str | None:
        """The path of a split that could not be read."""
        parts = tuple(part for s in self.segments for part in SEGMENTS[s])
        try:
            reader = SplitReader.open(self.store, add, config=self.config)
            for name in reader.source.footer.files:
                if name.endswith(parts) or name.startswith(parts):
                    reader.member(name)
        except (IndexTablesError, OSError, MemoryError) as error:
            if (short := machine_error(error, path=add.path)) is not None:
                raise short from error
            return add.path
        return None


def _warm(warmth: Warmth, files: Sequence[AddFile], spark: Any) -> list[Warmed]:
    if spark is None or not hasattr(spark, "_jsparkSession") or not files:
        return list(warmth(files))
    context = spark.sparkContext
    parts = min(len(files), 2 * context.defaultParallelism)
    done: list[Warmed] = context.parallelize(list(files), parts).mapPartitions(warmth).collect()
    return done
