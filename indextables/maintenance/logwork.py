"""CHECKPOINT, COMPACT, TRUNCATE TIME TRAVEL, REPAIR and DESCRIBE STATE: work on the log alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from indextables.config import Config
from indextables.errors import IndexTablesError, MaintenanceError, ProtocolError
from indextables.log.actions import Action, AddFile
from indextables.log.actions.codec import encode_actions
from indextables.log.checkpoint.compaction import tombstone_ratio
from indextables.log.checkpoint.state import read_state
from indextables.log.commit.gate import mutates
from indextables.log.log import TransactionLog
from indextables.log.read.versions import LOG_DIR, list_log, state_dir, version_path
from indextables.log.retention.gc import described_states
from indextables.maintenance.rows import (
    CheckpointResult,
    RepairResult,
    StateResult,
    TruncateResult,
)
from indextables.storage.base import open_store
from indextables.storage.deleting import Kind, delete, delete_state_folder
from indextables.storage.machine import refuse_to_judge

_LOG_FILES = (Kind.VERSION, Kind.CHECKPOINT, Kind.PART, Kind.STATE)


def checkpoint(log: TransactionLog, *, compact: bool = False) -> CheckpointResult:
    """Write the newest version as a checkpoint; ``compact`` rewrites its manifests too.

    A table of an older protocol gets the Avro state of protocol 4, unless ``state.format`` is
    ``json`` or ``protocol.autoUpgrade`` is off.
    """
    done = log.checkpoint(compact=compact, migrate=log.config["protocol.autoUpgrade"])
    protocol = log.snapshot().protocol
    return CheckpointResult(
        log.path,
        "SUCCESS",
        done.version,
        done.num_actions,
        done.num_files,
        protocol.min_reader_version,
        done.parts > 1,
    )


@mutates("TRUNCATE TIME TRAVEL")
def truncate_time_travel(log: TransactionLog, *, dry_run: bool = False) -> TruncateResult:
    """Forget every version below the newest; no split and no shared manifest is touched."""
    snapshot = log.snapshot() if dry_run else log.settled()
    newest = snapshot.version
    listing = list_log(log.store)
    states = described_states(log.store)
    has_base = newest in states or newest in listing.checkpoints
    if not dry_run and not has_base and newest > 0:
        log.checkpoint()
    versions = [v for v in listing.versions if 0 < v < newest]
    checkpoints = [v for v in listing.checkpoints if v < newest]
    old_states = [v for v in states if v < newest]
    if not dry_run:
        paths = [version_path(v) for v in versions]
        paths += [listing.checkpoints[v].path for v in checkpoints]
        paths += [p.info.path for p in listing.parts if p.version < newest]
        paths += _files_of_states(log, old_states, newest)
        delete(log.store, _LOG_FILES, paths)
        for version in old_states:
            delete_state_folder(log.store, state_dir(version))
        log.invalidate_cache()
    bases = len(checkpoints) + len(old_states)
    verb = "Would delete" if dry_run else "Deleted"
    return TruncateResult(
        log.path,
        "DRY_RUN" if dry_run else "SUCCESS",
        newest,
        len(versions),
        bases,
        snapshot.num_files,
        f"{verb} {len(versions)} versions and {bases} checkpoints below version {newest}",
    )


def _files_of_states(log: TransactionLog, versions: list[int], newest: int) -> list[str]:
    """What lies in these state folders, but for manifests the newest state still lists."""
    shared: set[str] = set()
    if newest in described_states(log.store):
        shared = {f"{LOG_DIR}/{m.path}" for m in read_state(log.store, newest).manifests}
    folders = [state_dir(version) for version in versions]
    found = [i.path for folder in folders for i in log.store.list(folder)]
    return [path for path in found if path not in shared]


def repair_log(
    source: str,
    target: str,
    *,
    storage_options: Any = None,
    config: Config | None = None,
) -> RepairResult:
    """Write a fresh log of the splits that still exist; the source is only read.

    The first version is written last: a repair that is cut off leaves no table, and may be
    repeated.
    """
    settings = config or Config()
    for path in (source, target):
        if not path.rstrip("/").endswith(LOG_DIR):
            raise MaintenanceError(
                f"'{path}' is not a log folder", hint=f"Give paths that end in {LOG_DIR}"
            )
    table, place = (p.rstrip("/").removesuffix(LOG_DIR).rstrip("/") for p in (source, target))
    store = open_store(place, storage_options)
    if any(info.path != version_path(1) for info in store.list(LOG_DIR, recursive=True)):
        raise MaintenanceError("the target is not empty", path=target, hint="Choose a new place")
    try:
        log = TransactionLog.open(table, storage_options=storage_options, config=settings)
        snapshot = log.writable_snapshot()
    except ProtocolError:
        raise
    except IndexTablesError as error:
        refuse_to_judge(error)
        return RepairResult(source, target, -1, 0, 0, 0, f"ERROR: {error}")
    there = {info.path for info in log.store.list("", recursive=True)}
    files = list(snapshot.files())
    valid = [f for f in files if f.path in there]
    adds: list[Action] = [_fresh(f) for f in valid]
    first: list[Action] = [snapshot.protocol, snapshot.metadata]
    store.put(version_path(1), encode_actions(adds, compressed=False))
    store.put_if_absent(version_path(0), encode_actions(first, compressed=False))
    missing = len(files) - len(valid)
    return RepairResult(
        source, target, snapshot.version, len(files), len(valid), missing, "SUCCESS"
    )


def _fresh(add: AddFile) -> AddFile:
    return replace(add, data_change=True, added_at_version=None, added_at_timestamp=None)


def describe_state(log: TransactionLog) -> StateResult:
    """What the newest checkpoint looks like."""
    listing = list_log(log.store)
    states = described_states(log.store)
    newest = max([*states, *listing.checkpoints], default=None)
    if newest is None:
        return StateResult(log.path, "none", -1, 0, 0, 0, 0.0, 0, False, "No checkpoint found")
    if newest not in states:
        parts = [p for p in listing.parts if p.version == newest]
        shape = "json-multipart" if parts else "json"
        held = log.snapshot(version=newest)
        files, size = held.num_files, held.num_bytes
        return StateResult(log.path, shape, newest, files, 0, 0, 0.0, size, False, "OK")
    manifest = read_state(log.store, newest)
    tombstones = len(manifest.tombstones)
    ratio = tombstone_ratio(tombstones, manifest.num_files)
    many = len(manifest.manifests) > log.config["state.compaction.maxManifests"]
    needs = many or ratio > log.config["state.compaction.tombstoneThreshold"]
    return StateResult(
        log.path,
        "avro-state",
        newest,
        manifest.num_files,
        len(manifest.manifests),
        tombstones,
        ratio,
        manifest.total_bytes,
        needs,
        "OK",
    )
