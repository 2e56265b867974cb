"""What happened to a table, newest first, and which version was the newest at a moment.

A version's time is what its writer wrote into it (our writers make these times grow strictly), or
else when its file was written; a version that exists only as a state has the state's time. The
version of a moment is the newest one not after it, found by halving, so a long history costs a
handful of reads. ``moments`` says how times are made and shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from indextables.config import Config
from indextables.errors import ObjectNotFoundError, VersionNotFoundError
from indextables.log.actions import AddFile, CommitInfo, RemoveFile
from indextables.log.checkpoint.state import read_state
from indextables.log.read.loader import read_versions
from indextables.log.read.moments import moment_text
from indextables.log.read.snapshot import VersionActions
from indextables.log.read.versions import LogListing
from indextables.storage.base import Store

_BATCH = 32


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One version. Counts are ``None`` where only a state mentions it."""

    version: int
    timestamp: int
    operation: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    commit_id: str | None = None
    num_added: int | None = None
    num_removed: int | None = None


def read_history(
    store: Store, config: Config, listing: LogListing, newest: int, limit: int | None
) -> list[HistoryEntry]:
    """Entries of the versions up to ``newest`` that are still in the log, newest first."""
    numbers = sorted({v for v in (*listing.versions, *listing.states) if v <= newest}, reverse=True)
    wanted = numbers if limit is None else numbers[: max(0, limit)]
    entries: list[HistoryEntry] = []
    for first in range(0, len(wanted), _BATCH):
        batch = wanted[first : first + _BATCH]
        files = [v for v in batch if v in listing.versions]
        found = {c.version: c for c in read_versions(store, config, files, listing)}
        entries += (_entry(v, found.get(v), store) for v in batch)
    return entries


def _entry(version: int, change: VersionActions | None, store: Store) -> HistoryEntry:
    if change is None:
        return HistoryEntry(version, _state_time(store, version))
    info = next((a for a in change.actions if isinstance(a, CommitInfo)), CommitInfo())
    return HistoryEntry(
        version,
        change.timestamp_ms,
        info.operation or ("CREATE TABLE" if version == 0 else None),
        info.operation_parameters,
        info.operation_metrics,
        info.commit_id,
        sum(isinstance(a, AddFile) for a in change.actions),
        sum(isinstance(a, RemoveFile) for a in change.actions),
    )


def _state_time(store: Store, version: int) -> int:
    try:
        return read_state(store, version).created_at
    except ObjectNotFoundError:
        return 0


def version_time(store: Store, config: Config, listing: LogListing, version: int) -> int:
    """When a version was committed."""
    if version in listing.versions:
        return read_versions(store, config, [version], listing)[0].timestamp_ms
    if version in listing.states:
        return _state_time(store, version)
    return listing.checkpoints[version].modified_ms


def version_at(
    versions: Sequence[int], time_of: Callable[[int], int], moment_ms: int, path: str
) -> int:
    """The newest of ``versions`` (ascending) whose time is not after ``moment_ms``.

    Where versions that came next are gone, one of those was the newest at that moment: an older one
    is no answer.
    """
    low, high = 0, len(versions)
    while low < high:
        middle = (low + high) // 2
        if time_of(versions[middle]) <= moment_ms:
            low = middle + 1
        else:
            high = middle
    if low == 0:
        earliest = "none"
        if versions:
            earliest = f"{moment_text(time_of(versions[0]))} (version {versions[0]})"
        raise VersionNotFoundError(
            f"the log holds no version as old as {moment_text(moment_ms)}",
            path=path,
            hint=f"Earliest: {earliest}",
        )
    found = versions[low - 1]
    following = versions[low] if low < len(versions) else found + 1
    if following > found + 1 and time_of(found) < moment_ms:
        raise VersionNotFoundError(
            f"the version of {moment_text(moment_ms)} is no longer in the log, nor are others "
            f"between {found} and {following}",
            path=path,
            hint=f"Version {following} is of {moment_text(time_of(following))}; ask for a version "
            "by its number, or for a later moment",
        )
    return found
