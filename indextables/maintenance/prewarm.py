"""PREWARM: bring the parts of splits that queries will want into the local disk cache."""

from __future__ import annotations

import socket
import threading
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa

from indextables.errors import IndexTablesError, MaintenanceError
from indextables.log.actions import AddFile
from indextables.log.log import TransactionLog
from indextables.maintenance.partitions import matching_files, partition_predicate
from indextables.maintenance.rows import BOOL, INT, LONG, STRING, columns_of
from indextables.progress import progress
from indextables.splits.reader import SplitReader

PREWARM_COLUMNS = columns_of(
    host=STRING,
    assigned_host=STRING,
    locality_hits=INT,
    locality_misses=INT,
    splits_prewarmed=INT,
    segments=STRING,
    fields=STRING,
    duration_ms=LONG,
    status=STRING,
    skipped_fields=STRING,
    retries=INT,
    failed_splits_by_host=STRING,
    job_id=STRING,
    async_mode=BOOL,
)
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


def prewarm(
    log: TransactionLog,
    *,
    segments: Sequence[str] = (),
    fields: Sequence[str] = (),
    parallelism: int | None = None,
    where: Any = None,
    asynchronous: bool = False,
) -> pa.Table:
    """Read the asked parts of every split once."""
    chosen = tuple(segments) or DEFAULT_SEGMENTS
    unknown = [s for s in chosen if s not in SEGMENTS]
    if unknown:
        raise MaintenanceError(
            f"unknown segment {unknown[0]}", hint=f"Use {', '.join(sorted(SEGMENTS))}"
        )
    snapshot = log.snapshot()
    skipped = [f for f in fields if f not in snapshot.schema.names]
    files = list(snapshot.files())
    if where is not None:
        files = matching_files(snapshot, partition_predicate(where, snapshot))
    job, start = uuid.uuid4().hex, time.monotonic()
    failed: list[str] = []
    if asynchronous:
        work = threading.Thread(
            target=_run, args=(log, files, chosen, parallelism, failed), daemon=True
        )
        work.start()
    else:
        _run(log, files, chosen, parallelism, failed)
    host = socket.gethostname()
    row = {
        "host": host,
        "assigned_host": host,
        "locality_hits": len(files),
        "locality_misses": 0,
        "splits_prewarmed": 0 if asynchronous else len(files) - len(failed),
        "segments": ",".join(chosen),
        "fields": ",".join(fields) or "all",
        "duration_ms": int((time.monotonic() - start) * 1000),
        "status": "started" if asynchronous else "partial" if failed else "success",
        "skipped_fields": ",".join(skipped) or None,
        "retries": 0,
        "failed_splits_by_host": ",".join(failed) or None,
        "job_id": job,
        "async_mode": asynchronous,
    }
    return pa.Table.from_pylist([row], schema=PREWARM_COLUMNS)


def _run(
    log: TransactionLog,
    files: Sequence[AddFile],
    segments: Sequence[str],
    parallelism: int | None,
    failed: list[str],
) -> None:
    parts = tuple(part for s in segments for part in SEGMENTS[s])

    def one(add: AddFile) -> None:
        try:
            reader = SplitReader.open(log.store, add, config=log.config)
            for name in reader.source.footer.files:
                if name.endswith(parts) or name.startswith(parts):
                    reader.member(name)
        except (IndexTablesError, OSError):
            failed.append(add.path)

    with progress("prewarm", len(files)) as bar, ThreadPoolExecutor(parallelism or 4) as pool:
        for _ in pool.map(one, files):
            bar.advance(1)
