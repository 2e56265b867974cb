"""When two writers meet: which transactions may follow each other without looking again.

A transaction was decided on a base; meanwhile other versions landed. It may still be committed
unless one of these is true, and the error names which:

* concurrent delete    a file it removes, narrows or says it read is no longer live;
* concurrent change    rows of a file it removes were deleted meanwhile: what it made of that file,
                       a merged split for example, still has them. Who deletes rows himself joins
                       his with the others' (``rowlevel``), and conflicts only over the same row;
* concurrent add       a file was added that may hold rows it asked for, or any file when it read
                       the whole table or the schema is another now; files that only rearrange
                       rows (``dataChange=false``) do not count, and files that only lose some
                       count only for those that read the whole table;
* metadata changed     schema, partitioning or configuration changed, and it read or writes them;
                       the schema registry does not count, it only grows;
* protocol changed     it sets the protocol itself and another commit did too;
* partitioning changed its new files do not have the table's partition columns any more;
* cross-reference gone, index taken, index gone: the same for the things beside files.

An append reads nothing and removes nothing, so it never conflicts. Applied transaction numbers
(``txn``) are not conflicts: a step that is already in the log is simply done.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from indextables.errors import CommitConflictError, CommitFailedError
from indextables.log.actions import (
    Action,
    AddFile,
    DefineIndex,
    DeletionVector,
    DropIndex,
    Metadata,
    Protocol,
    RemoveFile,
    RemoveKeyMap,
    RemoveXRef,
    Txn,
)
from indextables.log.actions.schema_registry import without_registry
from indextables.log.commit.transaction import ReadSet
from indextables.naming import stored_columns
from indextables.types import schema_from_json

if TYPE_CHECKING:
    from indextables.log.read.snapshot import Snapshot, VersionActions

_AGAIN = "Refresh, decide again on the new snapshot, and commit that"


def check_conflicts(
    reads: ReadSet,
    actions: Sequence[Action],
    base: Snapshot,
    since: Sequence[VersionActions],
    latest: Snapshot,
) -> None:
    """``CommitConflictError`` when what was decided on ``base`` must not follow ``latest``."""
    _check_removed_files(reads, actions, latest)
    _check_reads(reads, base, since, latest)
    if reads.metadata or any(isinstance(action, Metadata) for action in actions):
        _check_metadata(base, since)
    _check_protocol(actions, since)
    _check_partitioning(actions, base, latest)
    _check_side_actions(actions, latest)


def is_blind(reads: ReadSet, actions: Iterable[Action]) -> bool:
    """Does nothing that others committed matter but what the newest snapshot shows?"""
    if reads.sees_adds or reads.metadata:
        return False
    return not any(isinstance(action, Metadata | Protocol) for action in actions)


def conflict(name: str, what: str, version: int | None = None) -> CommitConflictError:
    return CommitConflictError(f"{name}: {what}", version=version, hint=_AGAIN)


def _check_removed_files(reads: ReadSet, actions: Sequence[Action], latest: Snapshot) -> None:
    removed = [action for action in actions if isinstance(action, RemoveFile)]
    needed = [action.path for action in removed]
    needed += [a.path for a in actions if isinstance(a, AddFile) and a.narrows]
    needed += reads.files
    if not needed:
        return
    places = latest.indices_of(needed)
    missing = [p for p, i in zip(needed, places, strict=True) if i < 0]
    if not missing:
        _check_vectors(removed, latest.vectors(places[: len(removed)].tolist()), latest.version)
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise conflict(
            "concurrent delete",
            f"'{missing[0]}'{more} is no longer part of the table",
            latest.version,
        )


def _check_vectors(
    removed: Sequence[RemoveFile], now: Sequence[DeletionVector | None], version: int
) -> None:
    """A commit that removes a split must have known which of its rows were gone."""
    for action, vector in zip(removed, now, strict=True):
        known = action.deletion_vector
        if vector is not None and (known is None or known.unique_id != vector.unique_id):
            what = f"rows of '{action.path}' were deleted since it was read"
            raise conflict("concurrent change", what, version)


def _check_reads(
    reads: ReadSet, base: Snapshot, since: Sequence[VersionActions], latest: Snapshot
) -> None:
    if not reads.sees_adds:
        return
    for version, _, actions in since:
        added = [a for a in actions if isinstance(a, AddFile) and a.data_change]
        if not reads.whole_table:
            added = [a for a in added if not a.narrows]
        concerned = _concerned(reads, added, base, latest)
        if concerned:
            what = f"'{concerned[0].path}' was added to what was read"
            raise conflict("concurrent add", what, version)


def _concerned(
    reads: ReadSet, added: Sequence[AddFile], base: Snapshot, latest: Snapshot
) -> Sequence[AddFile]:
    """The files that matter; a test made for one schema says nothing under another."""
    test, known, now = reads.may_match, base.metadata, latest.metadata
    same = known.schema_string == now.schema_string
    if not added or reads.whole_table or test is None or not same:
        return added
    return added if known.partition_columns != now.partition_columns else test(latest, added)


def _check_metadata(base: Snapshot, since: Sequence[VersionActions]) -> None:
    known = base.metadata
    for version, _, others in since:
        for action in others:
            if isinstance(action, Metadata):
                if not same_table(known, action):
                    raise conflict(
                        "metadata changed", "schema or configuration is another now", version
                    )
                known = action


def same_table(one: Metadata, other: Metadata) -> bool:
    """Do two metadata actions differ in nothing but the schema registry?"""
    return (
        one.id == other.id
        and one.schema_string == other.schema_string
        and one.partition_columns == other.partition_columns
        and one.name == other.name
        and one.description == other.description
        and without_registry(one.configuration) == without_registry(other.configuration)
    )


def _check_protocol(actions: Sequence[Action], since: Sequence[VersionActions]) -> None:
    if not any(isinstance(action, Protocol) for action in actions):
        return
    for version, _, others in since:
        if any(isinstance(action, Protocol) for action in others):
            raise conflict("protocol changed", "another writer set the protocol", version)


def _check_partitioning(actions: Sequence[Action], base: Snapshot, latest: Snapshot) -> None:
    columns = _final_partitioning(actions, latest)
    wrong = next(
        (a for a in actions if isinstance(a, AddFile) and set(a.partition_values) != columns), None
    )
    if wrong is None:
        return
    changed = base.partition_columns != latest.partition_columns
    found, expected = sorted(wrong.partition_values), sorted(columns)
    what = f"'{wrong.path}' has partition columns {found}, the table has {expected}"
    if changed:
        raise conflict("partitioning changed", what, latest.version)
    raise CommitFailedError(
        what, hint="Give every added file a value for each partition column and no other"
    )


def _final_partitioning(actions: Iterable[Action], latest: Snapshot) -> set[str]:
    columns = latest.stored_partition_columns
    for action in actions:
        if isinstance(action, Metadata):
            columns = action.partition_columns
            if columns:
                schema = schema_from_json(action.schema_string)
                columns = tuple(stored_columns(schema, columns))
    return set(columns)


def _check_side_actions(actions: Sequence[Action], latest: Snapshot) -> None:
    xrefs = {xref.path for xref in latest.xrefs}
    definitions = latest.indexes.definitions
    for action in actions:
        if isinstance(action, RemoveXRef) and action.path not in xrefs:
            raise conflict(
                "cross-reference gone", f"'{action.path}' was removed already", latest.version
            )
        if isinstance(action, RemoveKeyMap) and action.path not in latest.ledger.keymaps:
            raise conflict("key map gone", f"'{action.path}' was removed already", latest.version)
        if isinstance(action, DefineIndex):
            known = definitions.get(action.column)
            if known is not None and known.id != action.id:
                raise conflict(
                    "index taken", f"column '{action.column}' has an index", latest.version
                )
        if isinstance(action, DropIndex) and action.column not in definitions:
            raise conflict("index gone", f"column '{action.column}' has no index", latest.version)


def is_applied(actions: Iterable[Action], latest: Snapshot) -> bool:
    """Is every step of a streaming writer that the actions carry already in the table?"""
    steps = [action for action in actions if isinstance(action, Txn)]
    known = latest.txns
    return bool(steps) and all(known.get(step.app_id, -1) >= step.version for step in steps)
