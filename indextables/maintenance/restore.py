"""RESTORE: make the table what it was, as a new version.

Splits of the old version that are gone come back, later ones go; the log keeps the history between.
Rows that were deleted since come back too: a split whose deletion vector is another one is removed
and added again with the vector it had. Every split and every vector that comes back must still
exist, otherwise nothing is committed.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from indextables.errors import MaintenanceError
from indextables.log.actions import Action, AddFile
from indextables.log.commit.gate import mutates
from indextables.log.commit.rowlevel import without_change_tags
from indextables.log.commit.transaction import ReadSet, Transaction
from indextables.log.log import TransactionLog
from indextables.maintenance.rows import RestoreResult
from indextables.storage.deleting import UNCOMMITTED, Kind, sift


@mutates("RESTORE")
def restore_to_version(
    log: TransactionLog, version: int | None = None, *, timestamp: Any = None
) -> RestoreResult:
    """Restore the table to a version or moment."""
    if version is None and timestamp is None:
        raise MaintenanceError("RESTORE needs a version or a moment", path=log.path)
    old = log.snapshot(version=version, timestamp=timestamp)
    now = log.snapshot()
    before = {f.path: f for f in old.files()}
    after = {f.path: f for f in now.files()}
    kept = {path for path, f in before.items() if path in after and _same_rows(f, after[path])}
    back = [f for path, f in before.items() if path not in kept]
    gone = [f for path, f in after.items() if path not in kept]
    _, strange = sift(Kind.SPLIT, (f.path for f in back), UNCOMMITTED)
    if strange:
        raise MaintenanceError(
            f"version {old.version} lists a file that is no split of a table: {strange[0]}",
            path=log.path,
            version=old.version,
            hint="Its log is damaged or was tampered with; restore another version",
        )
    vectors = {f.deletion_vector.path for f in back if f.deletion_vector is not None}
    wanted = [f.path for f in back if f.path not in after] + [v for v in vectors if v is not None]
    missing = [path for path in wanted if not log.store.exists(path)]
    if missing:
        raise MaintenanceError(
            f"{len(missing)} files of version {old.version} were purged",
            path=missing[0],
            version=old.version,
            hint="Restore a younger version",
        )
    same_schema = old.metadata == now.metadata
    if not back and not gone and same_schema:
        text = f"The table already equals version {old.version}"
        return RestoreResult(log.path, "no_action", old.version, now.version, 0, 0, text)
    moment = int(time.time() * 1000)
    actions: list[Action] = [] if same_schema else [old.metadata]
    actions += [f.removal(moment) for f in gone]
    actions += [_as_new(f) for f in back]
    result = log.commit(
        Transaction(
            now,
            "RESTORE",
            parameters={"version": old.version},
            actions=actions,
            reads=ReadSet.table(),
        )
    )
    text = f"Restored version {old.version} as version {result.version}"
    return RestoreResult(
        log.path, "success", old.version, result.version, len(back), len(gone), text
    )


def _as_new(add: AddFile) -> AddFile:
    """The split as one that brings rows, whatever it was when it first came."""
    tags = without_change_tags(add.tags) or None
    return replace(add, added_at_version=None, added_at_timestamp=None, data_change=True, tags=tags)


def _same_rows(one: AddFile, other: AddFile) -> bool:
    """Are the same rows of a split gone in two versions?"""
    return one.deletion_vector == other.deletion_vector
