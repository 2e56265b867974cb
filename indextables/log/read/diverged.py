"""Versions that two programs claimed.

We commit a version by creating its file; JVM IndexTables 0.5 commits one by creating its state
folder and looks at no version file after the first. Each sees its own slot free, so both can make
version 5: ``...005.json`` with our files and ``state-v...005`` with theirs. A reader that starts at
the state never sees our rows, and no error says so.

A state of ours is made of the versions below it and cannot disagree with them. So only a state of
another program (one without our ``extras``) is compared with the version file of its number: when
files that the version adds are not in the state (or files it removes still are), the state was
made by a program that did not know the version, and the same is asked of the version before it. A
later state of theirs grew out of such a state and lacks the same files, also where its own number
has no version file.

What was left out is then applied to the state: what the version adds is new, and the order of two
writers that did not know each other is free. That is exact as long as every file the version
removes is still in the state. Where it is not, both changed the same rows, and no answer is right:
``DivergedLogError``. A snapshot that was put together says so (``disputed``) until a state of ours
holds it. Where the state of its own number is taken, a checkpoint makes a new version first; a
clean-up makes a checkpoint first, since the version files it deletes may be all that is left.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from indextables.errors import DivergedLogError
from indextables.log.actions import Action, AddFile, Metadata, Protocol, RemoveFile
from indextables.log.read.snapshot import Snapshot, VersionActions
from indextables.log.read.versions import state_dir, version_path

logger = logging.getLogger(__name__)

ReadVersion = Callable[[int], VersionActions | None]
"""The actions of a version file, ``None`` when there is none."""
ReadState = Callable[[int], Snapshot | None]
"""The snapshot of another program's state, ``None`` when there is none (or it is ours)."""


def united(
    snapshot: Snapshot, at: Snapshot | None, read_version: ReadVersion, read_state: ReadState
) -> Snapshot:
    """The snapshot of another program's state with the versions it left out.

    ``at`` is the newest state of theirs, at or below it, whose number also has a version file.
    """
    left_out: list[VersionActions] = []
    while at is not None:
        change = read_version(at.version)
        if change is None or not disputed_paths(at, change):
            break
        left_out.insert(0, change)
        at = read_state(at.version - 1)
    if not left_out:
        return snapshot
    paths = frozenset(p for change in left_out for p in _touched(change))
    logger.warning(
        "version %d was made by two programs; their files are read together", snapshot.version
    )
    for change in left_out:
        snapshot = _applied(snapshot, change)
    snapshot.disputed = paths
    return snapshot


def disputed_paths(snapshot: Snapshot, change: VersionActions) -> list[str]:
    """Files that a version adds and the state of its number lacks, or removes and it has."""
    adds, removes = _folded(change)
    missing = [path for path, row in _rows(snapshot, adds) if row < 0]
    if missing or adds:
        return missing
    return [path for path, row in _rows(snapshot, removes) if row >= 0]


def _applied(snapshot: Snapshot, change: VersionActions) -> Snapshot:
    adds, removes = _folded(change)
    gone = [path for path, row in _rows(snapshot, removes) if row < 0]
    if gone or any(row >= 0 for _, row in _rows(snapshot, adds)):
        raise _diverged(snapshot, change, f"both changed {(gone or adds)[0]}")
    actions = [_merged(snapshot, change, action) for action in change.actions]
    later = VersionActions(snapshot.version, snapshot.timestamp_ms, actions)
    return snapshot.with_versions([later])


def _merged(snapshot: Snapshot, change: VersionActions, action: Action) -> Action:
    if isinstance(action, Protocol) and action != snapshot.protocol:
        raise _diverged(snapshot, change, "one changed the protocol")
    if not isinstance(action, Metadata):
        return action
    have = snapshot.metadata
    if (have.id, have.schema_string, have.partition_columns) != (
        action.id,
        action.schema_string,
        action.partition_columns,
    ):
        raise _diverged(snapshot, change, "one changed the schema")
    return replace(action, configuration={**have.configuration, **action.configuration})


def _diverged(snapshot: Snapshot, change: VersionActions, reason: str) -> DivergedLogError:
    file, folder = version_path(change.version), state_dir(change.version)
    return DivergedLogError(
        f"two programs made version {change.version}, and {reason}",
        path=file,
        version=snapshot.version,
        hint=f"Move {file} away to keep what {folder} says, or that folder and those of later "
        "states to keep the version file; then let one program write",
    )


def _folded(change: VersionActions) -> tuple[list[str], list[str]]:
    """What a version adds and what it removes, by the last word about each path."""
    last = {a.path: a for a in change.actions if isinstance(a, AddFile | RemoveFile)}
    adds = [path for path, action in last.items() if isinstance(action, AddFile)]
    return adds, [path for path in last if isinstance(last[path], RemoveFile)]


def _touched(change: VersionActions) -> list[str]:
    adds, removes = _folded(change)
    return adds + removes


def _rows(snapshot: Snapshot, paths: Sequence[str]) -> list[tuple[str, int]]:
    return list(zip(paths, snapshot.indices_of(paths).tolist(), strict=True)) if paths else []
