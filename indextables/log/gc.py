"""Which states and manifests may be deleted, and deleting them.

States: the newest ``state.retention.versions`` stay, and every state younger than
``state.retention.hours``, and whatever the caller protects (the checkpoint that a version within
the log's retention starts from). Nothing is deleted unless the newest state can be read and all
its manifests are there.

Manifests: one that any remaining state refers to stays, and every one younger than
``state.gc.minManifestAgeHours``, because a state that refers to it may be about to be written. A
state that cannot be read may refer to anything, so then no manifest is deleted. States are listed
once more right before the deletion: one that appeared meanwhile is honoured.

What is in doubt stays: an unknown age, a listing that fails.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from indextables.config import Config
from indextables.errors import CorruptFileError, IndexTablesError, ObjectNotFoundError, StorageError
from indextables.log.manifest import MANIFESTS_DIR
from indextables.log.state import read_state
from indextables.log.versions import LOG_DIR, list_states, state_dir
from indextables.storage.base import ObjectInfo, Store

logger = logging.getLogger(__name__)
_HOUR_MS = 3_600_000
_STATE_FILES = ("_manifest.avro", "_manifest.json")


@dataclass(slots=True)
class GcReport:
    """What was deleted, or would be in a dry run. Paths are relative to the table."""

    dry_run: bool = False
    states: list[int] = field(default_factory=list)
    manifests: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def collect(
    store: Store,
    config: Config,
    *,
    protect: Collection[int] = (),
    now_ms: int | None = None,
    dry_run: bool = False,
) -> GcReport:
    """Delete expired states, then manifests that no remaining state needs."""
    now_ms = now_ms or int(time.time() * 1000)
    report = GcReport(dry_run=dry_run)
    states = [version for version in list_states(store) if _state_infos(store, version)]
    if not states or not _is_whole(store, states[-1]):
        return report
    report.states = expired_states(store, config, states, protect, now_ms)
    doomed = [path for version in report.states for path in _state_files(store, version)]
    if not dry_run:
        _delete(store, doomed, report)
        _remove_empty_folders(store, report.states)
    kept = [version for version in states if version not in report.states]
    report.manifests = orphaned_manifests(store, config, kept, now_ms)
    if not dry_run:
        appeared = set(list_states(store)) - set(states) - set(report.states)
        needed = references(store, appeared)
        report.manifests = [] if needed is None else _without(report.manifests, needed)
        _delete(store, report.manifests, report)
    return report


def expired_states(
    store: Store, config: Config, states: list[int], protect: Collection[int], now_ms: int
) -> list[int]:
    """States that are neither new, nor young, nor protected."""
    newest = set(states[-max(1, config["state.retention.versions"]) :])
    limit = now_ms - config["state.retention.hours"] * _HOUR_MS
    return [
        version
        for version in states
        if version not in newest
        and version not in protect
        and _is_older(_state_infos(store, version), limit)
    ]


def _state_infos(store: Store, version: int) -> list[ObjectInfo]:
    folder = state_dir(version)
    return [i for i in store.list(folder) if i.path.rpartition("/")[2] in _STATE_FILES]


def _state_files(store: Store, version: int) -> list[str]:
    return [info.path for info in _state_infos(store, version)]


def _is_older(infos: Iterable[ObjectInfo], limit: int) -> bool:
    ages = [info.modified_ms for info in infos]
    return bool(ages) and all(0 < age < limit for age in ages)


def _is_whole(store: Store, version: int) -> bool:
    """Can this state be read, with every manifest in its place?"""
    try:
        state = read_state(store, version)
        return all(store.exists(f"{LOG_DIR}/{info.path}") for info in state.manifests)
    except (IndexTablesError, OSError) as error:
        logger.info("no clean-up of states: version %d cannot be read: %s", version, error)
        return False


def references(store: Store, states: Iterable[int]) -> set[str] | None:
    """Manifests these states need, ``None`` when one of them cannot be read."""
    needed: set[str] = set()
    for version in states:
        try:
            needed.update(f"{LOG_DIR}/{info.path}" for info in read_state(store, version).manifests)
        except ObjectNotFoundError:
            continue
        except (CorruptFileError, StorageError) as error:
            logger.info("no clean-up of manifests: state %d cannot be read: %s", version, error)
            return None
    return needed


def orphaned_manifests(store: Store, config: Config, states: list[int], now_ms: int) -> list[str]:
    """Old manifests that none of these states needs, shared ones and those in state folders."""
    needed = references(store, states)
    if needed is None:
        return []
    limit = now_ms - config["state.gc.minManifestAgeHours"] * _HOUR_MS
    folders = [f"{LOG_DIR}/{MANIFESTS_DIR}", *(state_dir(v) for v in list_states(store))]
    found = [info for folder in folders for info in store.list(folder) if _is_manifest(info.path)]
    return [i.path for i in found if i.path not in needed and 0 < i.modified_ms < limit]


def _is_manifest(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name.endswith(".avro") and name not in _STATE_FILES


def _without(paths: list[str], needed: set[str]) -> list[str]:
    return [path for path in paths if path not in needed]


def _delete(store: Store, paths: list[str], report: GcReport) -> None:
    try:
        store.delete(paths)
    except StorageError as error:
        logger.warning("clean-up could not delete everything: %s", error)
        report.failed += [path for path in paths if _still_there(store, path)]


def _remove_empty_folders(store: Store, states: list[int]) -> None:
    """On a file system an empty folder would go on looking like a state."""
    for version in states:
        folder = store.local_path(state_dir(version))
        if folder is not None:
            with contextlib.suppress(OSError):
                os.rmdir(folder)


def _still_there(store: Store, path: str) -> bool:
    try:
        return store.exists(path)
    except StorageError:
        return True
