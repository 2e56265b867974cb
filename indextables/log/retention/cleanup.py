"""Deleting log files that are no longer needed, and only those.

A version file is deleted when all of these hold:

1. it is older than the retention (``logRetention.duration``), by its own file time;
2. a checkpoint that was just read successfully includes it;
3. it is below the newest version and below that checkpoint;
4. it is not version 0, which is never deleted;

and, stricter than that, every younger version can still be rebuilt afterwards: the checkpoint in
question is the newest one that lies at or below the oldest version within the retention.

Old JSON checkpoints go once they are older than ``checkpointRetention.duration`` and neither the
newest one nor that anchor, also where no version file is old enough to go; parts that no manifest
lists go at the same age, because a checkpoint may be being written. What is in doubt stays: an age
that is unknown, a checkpoint that cannot be read, a listing that changed. Avro states and shared
manifests follow the rules of ``gc``.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from itertools import takewhile

from indextables.config import Config
from indextables.errors import CorruptFileError, ObjectNotFoundError, StorageError
from indextables.log.actions.codec import sole_object
from indextables.log.checkpoint.choose import is_disputed, is_readable
from indextables.log.checkpoint.json_parts import part_names
from indextables.log.read.versions import (
    LogListing,
    checkpoint_path,
    digits,
    state_dir,
    version_path,
)
from indextables.log.retention import gc
from indextables.log.retention.rules import Retention
from indextables.storage.base import Store
from indextables.storage.deleting import Kind, delete

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class CleanupReport:
    """What a clean-up deleted, or would delete in a dry run."""

    dry_run: bool = False
    anchor: int | None = None
    """The checkpoint everything below was folded into; ``None``: nothing could be deleted."""
    versions: list[int] = field(default_factory=list)
    checkpoints: list[int] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    states: list[int] = field(default_factory=list)
    manifests: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    @property
    def num_deleted(self) -> int:
        logs = len(self.versions) + len(self.checkpoints) + len(self.parts)
        return logs + len(self.states) + len(self.manifests)


def plan_cleanup(
    store: Store, config: Config, listing: LogListing, newest: int, limits: Retention
) -> CleanupReport:
    """What may go; reads the checkpoint it relies on, deletes nothing."""
    report = CleanupReport()
    if not _has_expired(listing, limits):
        return report
    report.anchor = find_anchor(store, config, listing, newest, limits)
    if report.anchor is not None:
        expired = [
            version
            for version, info in sorted(listing.versions.items())
            if 0 < version < min(report.anchor, newest) and limits.is_expired(info, limits.log_ms)
        ]
        report.versions = _before_disputed(store, config, listing, expired)
    elif not _newest_is_readable(store, config, listing):
        return report
    keep = {max({*listing.checkpoints, *listing.states}), *needed_checkpoints(listing, report)}
    report.checkpoints = [
        version
        for version, info in sorted(listing.checkpoints.items())
        if version not in keep and limits.is_expired(info, limits.checkpoint_ms)
    ]
    report.parts = _deletable_parts(store, listing, set(report.checkpoints), limits)
    return report


def _before_disputed(
    store: Store, config: Config, listing: LogListing, versions: list[int]
) -> list[int]:
    """Those below a version that another program made too: its state alone would tell half of it.

    Versions go from the oldest up, so the ones after it wait too, until that state is gone.
    """
    disputed = {v for v in versions if v in listing.states and is_disputed(store, v, config)}
    return list(takewhile(lambda version: version not in disputed, versions))


def _newest_is_readable(store: Store, config: Config, listing: LogListing) -> bool:
    """May older checkpoints go while no version file does? Not if the newest cannot be read."""
    bases = {*listing.checkpoints, *listing.states}
    return bool(bases) and is_readable(store, max(bases), listing, config)


def _has_expired(listing: LogListing, limits: Retention) -> bool:
    """Is anything old enough to be worth reading a checkpoint for?"""
    files = [*listing.checkpoints.values(), *(part.info for part in listing.parts)]
    return any(limits.is_expired(info, limits.checkpoint_ms) for info in files) or any(
        limits.is_expired(info, limits.log_ms) for v, info in listing.versions.items() if v > 0
    )


def find_anchor(
    store: Store, config: Config, listing: LogListing, newest: int, limits: Retention
) -> int | None:
    """The readable checkpoint below which version files may go."""
    young = (
        version
        for version, info in listing.versions.items()
        if version > 0 and not limits.is_expired(info, limits.log_ms)
    )
    bound = min([newest, *young])
    candidates = {v for v in (*listing.checkpoints, *listing.states) if v <= bound}
    for version in sorted(candidates, reverse=True):
        if is_readable(store, version, listing, config):
            return version
    return None


def needed_checkpoints(listing: LogListing, report: CleanupReport) -> set[int]:
    """The checkpoint that the remaining version files are read from, unless that is version 0.

    Where all version files are there and stay, each version can be read without one.
    """
    if report.anchor is not None:
        from_first = listing.run_after(-1)
        whole = bool(from_first) and from_first[-1] >= report.anchor and not report.versions
        return set() if whole else {report.anchor}
    first = min((v for v in listing.versions if v > 0), default=1)
    later = [v for v in (*listing.checkpoints, *listing.states) if v >= first - 1]
    return {min(later)} if first > 1 and later else set()


def clean_states(
    store: Store, config: Config, listing: LogListing, report: CleanupReport, now_ms: int
) -> None:
    """Delete expired states and the manifests only they needed, by the rules of ``gc``."""
    if not listing.states:
        return
    protect = needed_checkpoints(listing, report)
    done = gc.collect(store, config, protect=protect, now_ms=now_ms, dry_run=report.dry_run)
    report.states = done.states
    report.manifests = done.manifests
    report.failed += done.failed


def has_expired_state(store: Store, config: Config, listing: LogListing, now_ms: int) -> bool:
    """Cheap look whether ``clean_states`` could find anything: is the oldest state too old?"""
    retention = Retention.of(config, now_ms)
    if len(listing.states) <= retention.states_kept:
        return False
    oldest = store.list(state_dir(min(listing.states)))
    return all(retention.is_expired(info, retention.state_ms) for info in oldest)


def _deletable_parts(
    store: Store, listing: LogListing, dropped: set[int], limits: Retention
) -> list[str]:
    """Parts of checkpoints that go, and parts that no manifest lists."""
    listed: dict[int, set[str] | None] = {}
    found = []
    for part in listing.parts:
        name = part.info.path.rpartition("/")[2]
        if part.version not in listed:
            listed[part.version] = _listed_parts(store, part.version, listing)
        owners = listed[part.version]
        orphan = owners is not None and name not in owners
        if (orphan or part.version in dropped) and limits.is_expired(
            part.info, limits.checkpoint_ms
        ):
            found.append(part.info.path)
    return found


def _listed_parts(store: Store, version: int, listing: LogListing) -> set[str] | None:
    """Names the checkpoint of a version lists; ``None`` when that is unknown."""
    if version not in listing.checkpoints:
        return set()
    path = checkpoint_path(version)
    try:
        manifest = sole_object(store.read(path), path=path, version=version) or {}
        return set(part_names(manifest, version)) if "parts" in manifest else set()
    except (CorruptFileError, ObjectNotFoundError):
        return None


def execute(store: Store, config: Config, report: CleanupReport) -> CleanupReport:
    """Delete what the plan says; a checkpoint's parts only once its own file is gone.

    Versions go from the oldest up and stop at the first that cannot be deleted, so that a missing
    version always means that those before it are gone too.
    """
    if report.dry_run:
        return report
    fail = config["cleanup.failurePolicy"] == "fail"
    gone = [
        v
        for v in report.checkpoints
        if _delete(store, Kind.CHECKPOINT, checkpoint_path(v), report, fail)
    ]
    stays = {digits(v) for v in report.checkpoints if v not in gone}
    parts = [path for path in report.parts if path.rpartition("/")[2][:20] not in stays]
    report.checkpoints = gone
    report.parts = [path for path in parts if _delete(store, Kind.PART, path, report, fail)]
    ordered = sorted(report.versions)
    report.versions = list(
        takewhile(lambda v: _delete(store, Kind.VERSION, version_path(v), report, fail), ordered)
    )
    return report


def _delete(store: Store, kind: Kind, path: str, report: CleanupReport, fail: bool) -> bool:
    try:
        delete(store, kind, [path])
    except StorageError as error:
        if fail:
            raise
        logger.warning("could not delete %s: %s", path, error)
        report.failed.append(path)
        return False
    return True
