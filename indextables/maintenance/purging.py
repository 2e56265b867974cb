"""PURGE: delete files no readable version needs.

A file may go only when all of this holds:

* no version that can still be read after the log's own clean-up lists it: neither a remaining
  checkpoint nor an add in a remaining version file;
* if a remaining version removed it, that was longer ago than the retention (ages count from the
  removal, not from the file's time, and the store says when that was: a writer's clock may be wrong
  by years);
* if it was never listed (an aborted write), its own file time is older than the retention, and
  so is the oldest version the log still knows: it may have been removed by one that is forgotten,
  at any time before that (so the log's retention should not be shorter than that of the splits);
* it is a split, a cross-reference, an index file, a file of deletion vectors or a checksum by its
  place and name in the table's layout (see ``storage.deleting``); what a log or a folder names
  beyond that is left alone.

A cross-reference of which no source is live any more is retired first (``removeXRef``), so that its
file goes by the same rules.

Temporary files that a killed writer left behind go too, by their own time, and never within a day.

An age that is unknown keeps the file; a checkpoint that cannot be read stops the purge. Retentions
below the minimum are refused unless the check is switched off.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from indextables.config import Config
from indextables.errors import IndexTablesError, MaintenanceError, StorageError, UnsafePathError
from indextables.log.actions import (
    AddFile,
    AddKeyMap,
    AddXRef,
    IndexBlocks,
    RemoveFile,
    RemoveKeyMap,
    RemoveXRef,
)
from indextables.log.commit.gate import mutates
from indextables.log.log import TransactionLog
from indextables.log.read.loader import read_versions
from indextables.log.read.versions import list_log
from indextables.log.retention.cleanup import CleanupReport
from indextables.log.retention.gc import described_states
from indextables.log.retention.rules import (
    HOUR_MS,
    LEAST_TEMPORARY_HOURS,
    Needed,
    checked_hours,
    clock_ms,
    is_older,
)
from indextables.maintenance.rows import PurgeMetrics, PurgeResult
from indextables.progress import progress
from indextables.splits.lookup.colindex.layout import sidecar_path
from indextables.storage.base import ObjectInfo
from indextables.storage.deleting import UNCOMMITTED, Kind, Live, delete, sift
from indextables.storage.machine import refuse_to_judge
from indextables.storage.paths import is_temporary
from indextables.storage.retry import RetryPolicy, tries
from indextables.xref.builder import XRefBuildManager

LOG = logging.getLogger(__name__)
FILES = (Kind.SPLIT, Kind.XREF, Kind.SIDECAR, Kind.KEYMAP, Kind.VECTOR, Kind.CHECKSUM)
DELETABLE = (*FILES, Kind.TEMPORARY)
DELETE_BATCH = 1000
MOST_LOOKS = 3


@mutates("PURGE")
def purge(
    log: TransactionLog,
    *,
    older_than_hours: int | None = None,
    log_retention_hours: int | None = None,
    dry_run: bool = False,
    config: Config | None = None,
    now_ms: int | None = None,
) -> PurgeResult:
    """Delete what no retained version needs; with ``dry_run`` only say what that would be."""
    settings = config or log.config
    started = time.monotonic()
    hours = checked_hours(settings, older_than_hours)
    XRefBuildManager(log, settings).retire_orphans(dry_run=dry_run)
    now = clock_ms() if now_ms is None else now_ms
    log_hours = settings["purge.txLogRetentionHours"]
    if log_retention_hours is not None:
        log_hours = log_retention_hours
    cleanup = log.cleanup(retention_ms=log_hours * HOUR_MS, dry_run=dry_run)
    needed = needed_files(log, cleanup if dry_run else None)
    orphans = [
        info
        for info in table_files(log)
        if (since := needed.deletable_since(info)) is not None
        and is_older(since, hours * HOUR_MS, now)
    ]
    orphans = [*_unlinked(log, orphans, needed), *stale_temporaries(log, hours, now)]
    orphans = orphans[: settings["purge.maxFilesToDelete"]]
    deleted, failed = ([], []) if dry_run else _delete(log, settings, orphans, needed)
    metrics = _metrics(orphans, deleted, failed, cleanup, hours, dry_run, started)
    said = metrics.message + _held(log, needed) + _strangers(needed)
    return PurgeResult(log.path, replace(metrics, message=said))


def _held(log: TransactionLog, needed: Needed) -> str:
    """A word on splits that only versions before the newest still need."""
    newest = Live(_paths_of_snapshot(log, log.snapshot().version))
    held = [path for path in needed.listed if Kind.SPLIT.has(path) and path not in newest]
    if not held:
        return ""
    return (
        f"; {len(held):,} splits that the newest version does not need stay, since versions before "
        "it can still be read"
    )


def _strangers(needed: Needed) -> str:
    """A word on files that the log lists where a table has none; they are never touched."""
    _, strange = sift(FILES, sorted(needed.listed), UNCOMMITTED)
    if not strange:
        return ""
    return f"; the log lists {len(strange)} files that are left alone, for example {strange[0]}"


def _unlinked(log: TransactionLog, orphans: list[ObjectInfo], needed: Needed) -> list[ObjectInfo]:
    """Without files that a listed path reaches through a symbolic link inside the table."""
    if not orphans or not log.store.capabilities.local_files:
        return orphans
    folders: dict[str, str] = {}

    def real(path: str) -> str:
        place = log.store.local_path(path) or path
        folder, name = os.path.split(place)
        if folder not in folders:
            folders[folder] = os.path.realpath(folder)
        full = os.path.join(folders[folder], name)
        return os.path.realpath(full) if os.path.islink(full) else full

    reached = {real(path) for path in needed.listed}
    return [info for info in orphans if real(info.path) not in reached]


def stale_temporaries(log: TransactionLog, hours: int, now_ms: int) -> list[ObjectInfo]:
    """Temporary files that a crash left behind; one of the last day may be a write under way."""
    age = max(hours, LEAST_TEMPORARY_HOURS) * HOUR_MS
    found = log.store.list_temporaries()
    return [
        info
        for info in found
        if Kind.TEMPORARY.has(info.path) and is_older(info.modified_ms, age, now_ms)
    ]


def needed_files(log: TransactionLog, planned: CleanupReport | None = None) -> Needed:
    """What every version that stays readable lists; ``planned`` is a clean-up not yet done.

    A log that another process cleans meanwhile is looked at again; one that stays as it is and
    cannot be read stops the purge.
    """
    for _ in range(MOST_LOOKS - 1):
        before = _bases_and_versions(log)
        try:
            return _needed_files(log, planned)
        except IndexTablesError:
            if _bases_and_versions(log) == before:
                raise
    return _needed_files(log, planned)


def _bases_and_versions(log: TransactionLog) -> tuple[set[int], set[int]]:
    listing = list_log(log.store)
    return {*listing.checkpoints, *described_states(log.store)}, set(listing.versions)


def _needed_files(log: TransactionLog, planned: CleanupReport | None) -> Needed:
    gone = set(planned.versions) if planned else set()
    gone_bases = {*planned.checkpoints, *planned.states} if planned else set()
    listing = list_log(log.store)
    listed: set[str] = set()
    removed: dict[str, int] = {}
    bases = ({*listing.checkpoints, *described_states(log.store)}) - gone_bases
    for version in sorted(bases | {log.snapshot().version}):
        listed.update(_paths_of_snapshot(log, version))
    versions = [v for v in sorted(listing.versions) if v not in gone]
    first = next((v for v in versions if v > 0), 0)
    forgotten = 0
    for change in read_versions(log.store, log.config, versions, listing):
        if change.version == first > 1:
            forgotten = _dated(change.timestamp_ms, listing.versions[first])
        for action in change.actions:
            listed.update(_listed_by(action))
            if isinstance(action, RemoveFile | RemoveXRef | RemoveKeyMap):
                claimed = action.deletion_timestamp or change.timestamp_ms
                removed[action.path] = _dated(claimed, listing.versions[change.version])
    return Needed(listed, removed, forgotten)


def _dated(claimed_ms: int, version: ObjectInfo) -> int:
    """When a version came: as the store dates its file, whatever clock its writer had."""
    return version.modified_ms if version.modified_ms > 0 else claimed_ms


def _paths_of_snapshot(log: TransactionLog, version: int) -> Iterator[str]:
    try:
        snapshot = log.snapshot(version=version)
    except IndexTablesError as error:
        refuse_to_judge(error)
        raise MaintenanceError(
            f"the checkpoint of version {version} cannot be read, so nothing is purged: {error}",
            path=log.path,
            version=version,
            hint="Run DOCTOR, then CHECKPOINT INDEXTABLES",
        ) from error
    paths = snapshot.paths.to_pylist()
    yield from paths
    yield from snapshot.vector_files
    yield from (x.path for x in snapshot.xrefs)
    yield from (k.path for k in snapshot.keymaps)
    yield from (f.path for f in snapshot.indexes.files.values())
    for definition in snapshot.indexes.definitions.values():
        yield from (sidecar_path(definition.id, path) for path in paths)


def _listed_by(action: object) -> Iterable[str]:
    if isinstance(action, AddFile) and action.deletion_vector is not None:
        vector = action.deletion_vector.path
        return (action.path,) if vector is None else (action.path, vector)
    if isinstance(action, AddFile | AddXRef | AddKeyMap):
        return (action.path,)
    if isinstance(action, IndexBlocks):
        return tuple(f.path for f in action.files)
    return ()


def table_files(log: TransactionLog) -> Iterator[ObjectInfo]:
    """Every file of the table that a purge may judge; the log itself is not among them."""
    for info in log.store.list("", recursive=True):
        if any(kind.has(info.path) for kind in FILES):
            yield info


def _delete(
    log: TransactionLog, config: Config, orphans: list[ObjectInfo], needed: Needed
) -> tuple[list[ObjectInfo], list[ObjectInfo]]:
    batches = [orphans[i : i + DELETE_BATCH] for i in range(0, len(orphans), DELETE_BATCH)]
    deleted: list[ObjectInfo] = []
    failed: list[ObjectInfo] = []
    many = 4 if log.store.capabilities.remote else 1
    workers = config["purge.parallelism"] or many
    policy = RetryPolicy(config["purge.deleteRetries"])

    def run(batch: list[ObjectInfo]) -> list[ObjectInfo]:
        """Those of the batch that are gone."""
        for _ in tries(policy):
            try:
                delete(log.store, DELETABLE, [info.path for info in batch], needed.live)
                return batch
            except UnsafePathError as error:
                if len(batch) > 1:
                    return [info for one in batch for info in run([one])]
                LOG.warning("left alone by PURGE: %s", error)
                return []
            except (StorageError, OSError) as error:
                LOG.info("not deleted by PURGE yet: %s", error)
        return []

    with progress("purge", len(orphans)) as bar, ThreadPoolExecutor(workers) as pool:
        for batch, done in zip(batches, pool.map(run, batches), strict=True):
            gone = {info.path for info in done}
            deleted += done
            failed += [info for info in batch if info.path not in gone]
            bar.advance(len(batch))
    return deleted, failed


def _metrics(
    orphans: list[ObjectInfo],
    deleted: list[ObjectInfo],
    failed: list[ObjectInfo],
    cleanup: CleanupReport,
    hours: int,
    dry_run: bool,
    started: float,
) -> PurgeMetrics:
    status = "DRY_RUN" if dry_run else "PARTIAL_SUCCESS" if failed else "SUCCESS"
    if failed and not deleted:
        status = "FAILED"
    verb = "Would delete" if dry_run else "Deleted"
    counted = orphans if dry_run else deleted
    logs = len(cleanup.versions) + len(cleanup.checkpoints) + len(cleanup.parts)
    message = f"{verb} {len(counted):,} files older than {hours} hours and {logs} log files"
    temporary = [info.path for info in counted if is_temporary(info.path)]
    if temporary:
        message += f"; {len(temporary)} of them temporary, for example {temporary[0]}"
    if failed:
        message += f"; {len(failed)} could not be deleted, for example {failed[0].path}"
    return PurgeMetrics(
        status=status,
        orphaned_files_found=len(orphans),
        orphaned_files_deleted=len(deleted),
        size_mb_deleted=sum(i.size for i in deleted) / (1 << 20),
        retention_hours=hours,
        tx_log_files_deleted=0 if dry_run else logs,
        expired_states_found=len(cleanup.states),
        expired_states_deleted=0 if dry_run else len(cleanup.states),
        dry_run=dry_run,
        duration_ms=int((time.monotonic() - started) * 1000),
        message=message,
    )
