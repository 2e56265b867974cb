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

import logging
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from indextables.config import Config
from indextables.errors import CorruptFileError, IndexTablesError, ObjectNotFoundError, StorageError
from indextables.log.checkpoint.manifest import MANIFESTS_DIR
from indextables.log.checkpoint.state import STATE_FILES, read_state
from indextables.log.read.versions import LOG_DIR, list_states, state_dir
from indextables.log.retention.rules import Retention
from indextables.storage.base import ObjectInfo, Store
from indextables.storage.deleting import Kind, delete, delete_state_folder

logger = logging.getLogger(__name__)


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
    retention = Retention.of(config, now_ms)
    report = GcReport(dry_run=dry_run)
    states = described_states(store)
    if not states or not _is_whole(store, states[-1]):
        return report
    report.states = expired_states(store, retention, states, protect)
    doomed = [path for version in report.states for path in _state_files(store, version)]
    if not dry_run:
        _delete(store, Kind.STATE, doomed, report)
        for version in report.states:
            delete_state_folder(store, state_dir(version))
    kept = [version for version in states if version not in report.states]
    report.manifests = orphaned_manifests(store, retention, kept)
    if not dry_run:
        appeared = set(list_states(store)) - set(states) - set(report.states)
        needed = references(store, appeared)
        report.manifests = [] if needed is None else _without(report.manifests, needed)
        _delete(store, Kind.MANIFEST, report.manifests, report)
    return report


def expired_states(
    store: Store, retention: Retention, states: list[int], protect: Collection[int]
) -> list[int]:
    """States that are neither new, nor young, nor protected."""
    newest = set(states[-retention.states_kept :])
    return [
        version
        for version in states
        if version not in newest
        and version not in protect
        and retention.are_expired(_state_infos(store, version), retention.state_ms)
    ]


def described_states(store: Store) -> list[int]:
    """Versions whose state folder holds a description; an empty folder is no checkpoint."""
    return [version for version in list_states(store) if _state_infos(store, version)]


def _state_infos(store: Store, version: int) -> list[ObjectInfo]:
    folder = state_dir(version)
    return [i for i in store.list(folder) if i.path.rpartition("/")[2] in STATE_FILES]


def _state_files(store: Store, version: int) -> list[str]:
    return [info.path for info in _state_infos(store, version)]


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


def orphaned_manifests(store: Store, retention: Retention, states: list[int]) -> list[str]:
    """Old manifests that none of these states needs, shared ones and those in state folders."""
    needed = references(store, states)
    if needed is None:
        return []
    folders = [f"{LOG_DIR}/{MANIFESTS_DIR}", *(state_dir(v) for v in list_states(store))]
    found = [info for folder in folders for info in store.list(folder) if _is_manifest(info.path)]
    old = [i.path for i in found if retention.is_expired(i, retention.manifest_ms)]
    return _without(old, needed)


def _is_manifest(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name.endswith(".avro") and name not in STATE_FILES


def _without(paths: list[str], needed: set[str]) -> list[str]:
    return [path for path in paths if path not in needed]


def _delete(store: Store, kind: Kind, paths: list[str], report: GcReport) -> None:
    try:
        delete(store, kind, paths)
    except StorageError as error:
        logger.warning("clean-up could not delete everything: %s", error)
        report.failed += [path for path in paths if _still_there(store, path)]


def _still_there(store: Store, path: str) -> bool:
    try:
        return store.exists(path)
    except StorageError:
        return True
