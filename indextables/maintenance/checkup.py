"""DOCTOR: what is wrong with a table, and the command that repairs it. Reads only.

Checks, in order: the log opens; every live split exists with its size; its footer and (when asked)
every member's checksum are right, and its deletion vector says what the log says; no version was
made by two programs; files that are not listed; statistics and cross-reference coverage; a state
that wants compaction. Findings are ``error`` (rows cannot be read), ``warning`` (it costs time or
space, or a store did not answer) or ``ok``. A machine without descriptors, memory or space cannot
judge a table: the check then ends in ``MachineError``, without findings.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from indextables.errors import (
    DivergedLogError,
    IndexTablesError,
    MachineError,
    ObjectNotFoundError,
    ProtocolError,
    TransientStorageError,
)
from indextables.log.actions import AddFile
from indextables.log.checkpoint.choose import disputed_versions
from indextables.log.log import TransactionLog
from indextables.log.read.snapshot import Snapshot
from indextables.log.read.versions import version_path
from indextables.maintenance.coverage import stats_coverage
from indextables.maintenance.logwork import describe_state
from indextables.maintenance.purging import needed_files, table_files
from indextables.maintenance.rows import Finding
from indextables.progress import progress
from indextables.splits.read.reader import SplitReader
from indextables.splits.read.source import SplitRef
from indextables.storage.machine import refuse_to_judge
from indextables.xref import coverage

FEW_SPLITS = 10
UNCACHED = {"cache.disk.enabled": False}
"""A verdict is on what the store has, not on a copy of it on this machine."""


def doctor(log: TransactionLog, *, checksums: bool = True) -> list[Finding]:
    """Look at everything; ``checksums`` reads every byte of every split."""
    found = list(_findings(log, checksums))
    if not any(f.severity in ("error", "warning") for f in found):
        files = log.snapshot().num_files
        found.append(Finding(log.path, "ok", "table", None, f"{files:,} splits are sound", ""))
    return found


def _findings(log: TransactionLog, checksums: bool) -> Iterator[Finding]:
    try:
        snapshot = log.snapshot()
    except IndexTablesError as error:
        refuse_to_judge(error)
        remedy = "REPAIR INDEXFILES TRANSACTION LOG '<table>/_transaction_log' AT LOCATION '...'"
        if isinstance(error, DivergedLogError | ProtocolError):
            remedy = error.hint or ""
        yield Finding(log.path, "error", "log", error.path, str(error), remedy)
        return
    there = {info.path: info for info in table_files(log)}
    yield from _splits(log, snapshot, there, checksums)
    yield from _mixed_writers(log, snapshot)
    yield from _orphans(log, there)
    yield from _coverage(log, snapshot)
    state = describe_state(log)
    if state.needs_compaction:
        detail = f"{state.num_manifests} manifests, {state.tombstone_ratio:.0%} tombstones"
        remedy = f"COMPACT INDEXTABLES '{log.path}'"
        yield Finding(log.path, "warning", "state", None, detail, remedy)


def _splits(
    log: TransactionLog, snapshot: Snapshot, there: dict[str, Any], checksums: bool
) -> Iterator[Finding]:
    repair = f"RESTORE '{log.path}' TO VERSION <n>, or REPAIR INDEXFILES TRANSACTION LOG"
    with progress("doctor", snapshot.num_files) as bar:
        for add in snapshot.files():
            bar.advance(1)
            info = there.get(add.path)
            if info is None:
                detail = "the log lists a split that is not there"
                yield Finding(log.path, "error", "missing split", add.path, detail, repair)
            elif info.size != add.size:
                detail = f"{info.size} bytes, the log says {add.size}"
                yield Finding(log.path, "error", "split size", add.path, detail, repair)
            else:
                yield from _contents(log, add, checksums, repair)


def _contents(log: TransactionLog, add: AddFile, checksums: bool, repair: str) -> Iterator[Finding]:
    try:
        reader = SplitReader(log.store, SplitRef.of(add), log.config.updated(UNCACHED))
        if checksums:
            _verify(reader)
        gone = reader.deleted
        if gone is not None and len(gone) != add.num_deleted:
            detail = f"{len(gone)} deleted rows, the log says {add.num_deleted}"
            yield Finding(log.path, "error", "deleted rows", add.path, detail, repair)
        if add.num_records is not None and reader.num_rows != add.num_records:
            detail = f"{reader.num_rows} rows, the log says {add.num_records}"
            yield Finding(log.path, "error", "split rows", add.path, detail, repair)
    except MachineError:
        raise
    except ObjectNotFoundError as error:
        yield Finding(log.path, "error", "missing file", error.path, str(error), repair)
    except (TransientStorageError, OSError, MemoryError) as error:
        yield from _unchecked(log, add, error)
    except IndexTablesError as error:
        yield Finding(log.path, "error", "split contents", add.path, str(error), repair)


def _unchecked(log: TransactionLog, add: AddFile, error: Exception) -> Iterator[Finding]:
    """The store did not answer for one split: which proves nothing about it. Otherwise: stop."""
    if not isinstance(error, TransientStorageError):
        refuse_to_judge(error, path=add.path)
        raise error
    remedy = "Run DOCTOR again when the store answers"
    yield Finding(log.path, "warning", "not checked", add.path, str(error), remedy)


def _verify(reader: SplitReader) -> None:
    """Read every member, whose checksums are looked at on the way; foreign splits: the rows."""
    if reader.is_foreign:
        for _ in reader.rows.scan():
            pass
        return
    for name in reader.info.checksums:
        reader.member(name)


def _mixed_writers(log: TransactionLog, snapshot: Snapshot) -> Iterator[Finding]:
    """Versions that two programs made; those the newest snapshot rests on are not over yet."""
    for version, paths in disputed_versions(log.store, log.config):
        lost = _lost(log, snapshot, paths)
        detail = (
            f"two programs made version {version}: {len(paths)} files of its version file are not "
            "in its state"
        )
        remedy = f"CHECKPOINT INDEXTABLES '{log.path}', and let one program write"
        severity = "error" if lost else "warning"
        yield Finding(log.path, severity, "mixed writers", version_path(version), detail, remedy)


def _lost(log: TransactionLog, snapshot: Snapshot, paths: list[str]) -> list[str]:
    """Files of a version whose rows the table has lost, or would lose without its version file."""
    absent = {path for path in paths if snapshot.index_of(path) is None}
    removed = needed_files(log).removed_at if absent else {}
    return [p for p in paths if p in snapshot.disputed or (p in absent and p not in removed)]


def _orphans(log: TransactionLog, there: dict[str, Any]) -> Iterator[Finding]:
    needed = needed_files(log)
    orphans = [p for p in there if p not in needed.listed]
    if orphans:
        size = sum(there[p].size for p in orphans)
        detail = f"{len(orphans)} files ({size:,} bytes) belong to no readable version"
        remedy = f"PURGE INDEXTABLE '{log.path}'"
        yield Finding(log.path, "warning", "orphans", orphans[0], detail, remedy)


def _coverage(log: TransactionLog, snapshot: Snapshot) -> Iterator[Finding]:
    if snapshot.num_files < FEW_SPLITS:
        return
    covered = coverage(snapshot)
    if covered.uncovered:
        detail = f"{covered.uncovered} of {covered.total} splits have no cross-reference"
        remedy = f"INDEX CROSSREFERENCES FOR '{log.path}'"
        yield Finding(log.path, "warning", "xref coverage", None, detail, remedy)
    bare = [c.column for c in stats_coverage(log) if c.splits_with_bounds == 0 and c.can_have]
    if bare:
        detail = f"no split has bounds for {', '.join(bare)}"
        remedy = "Set spark.indextables.dataSkippingStatsColumns, then MERGE SPLITS"
        yield Finding(log.path, "warning", "statistics", None, detail, remedy)
