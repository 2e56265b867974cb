"""The change feed: which rows each version deleted, updated and inserted.

Nothing is kept for it: a version's ``add`` and ``remove`` actions and the deletion vectors before
and after say which rows of which splits came and went, and the splits have the rows.

* a new split: its rows are inserted, or the new form of rows (``update_postimage``) where its tag
  says so of all of them or of the first;
* a split whose vector grew: the rows it grew by are deleted, or the old form of rows
  (``update_preimage``);
* a split that was removed: the rows it had left, or just those that its tag names, where the others
  are in a split that was written again;
* a split that was removed and added in one version (RESTORE): the difference of its vectors.

Versions that only move rows (``dataChange`` false: merges, REORG) have no changes. Rows have the
columns of the newest of the versions asked for. Splits that were purged cannot be read any more:
that is an error, never a gap in the feed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from indextables.errors import (
    CorruptFileError,
    MaintenanceError,
    ObjectNotFoundError,
    PlanningError,
)
from indextables.expr.predicate import TRUE
from indextables.log.actions import AddFile, DeletionVector, RemoveFile
from indextables.log.commit.rowlevel import (
    CHANGE_TAG,
    DELETED_TAG,
    FIRST_TAG,
    NO_ROWS,
    UPDATED_TAG,
)
from indextables.log.read.snapshot import Snapshot, VersionActions
from indextables.log.vectors.codec import Rows32, read_vector
from indextables.splits.read.access import SplitScan
from indextables.splits.read.reader import SplitReader
from indextables.splits.read.source import SplitRef

if TYPE_CHECKING:
    from indextables.log.log import TransactionLog

INSERT, DELETE = "insert", "delete"
BEFORE, AFTER = "update_preimage", "update_postimage"
CHANGE_FIELDS = (
    pa.field("_change_type", pa.string()),
    pa.field("_commit_version", pa.int64()),
    pa.field("_commit_timestamp", pa.timestamp("us", "UTC")),
)


@dataclass(frozen=True, slots=True)
class Piece:
    """Some rows of one split that changed in one version; small and picklable."""

    split: SplitRef
    rows: Rows32 | None
    """``None``: all that are not deleted."""
    kind: str
    version: int
    timestamp_ms: int


def feed_schema(schema: pa.Schema) -> pa.Schema:
    """The columns of the feed of a table."""
    return pa.schema([*schema, *CHANGE_FIELDS])


def changes(
    log: TransactionLog, from_version: int, to_version: int | None = None
) -> pa.RecordBatchReader:
    """The changes of all versions from ``from_version`` to ``to_version``, both included."""
    newest = log.snapshot(version=to_version)
    found = pieces(log, from_version, newest)
    schema = newest.schema
    batches = (
        batch for piece in found for batch in read_piece(log.store, piece, schema, log.config)
    )
    return pa.RecordBatchReader.from_batches(feed_schema(schema), batches)


def pieces(log: TransactionLog, from_version: int, newest: Snapshot) -> Iterator[Piece]:
    """What changed, as rows to read; the order is that of the versions."""
    last = newest.version
    if not 0 <= from_version <= last:
        raise PlanningError(
            f"the change feed cannot start at version {from_version}",
            path=log.path,
            version=last,
            hint=f"Give a version from 0 to {last}",
        )
    known = log.changes(from_version - 1, last)
    if known is None:
        raise MaintenanceError(
            f"the log no longer has every version from {from_version} to {last}",
            path=log.path,
            hint="Start at a later version; logRetention.duration says how long versions are kept",
        )
    return (piece for change in known for piece in _of_version(log, change))


def _of_version(log: TransactionLog, change: VersionActions) -> Iterator[Piece]:
    adds = [a for a in change.actions if isinstance(a, AddFile) and a.data_change]
    removes = [a for a in change.actions if isinstance(a, RemoveFile) and a.data_change]
    if not adds and not removes:
        return
    touched = [a for a in adds if a.narrows]
    before: Snapshot | None = None
    if removes or touched:
        before = log.snapshot(version=change.version - 1)
    maker = _Maker(log, change, before)
    removed = {a.path: a for a in removes}
    again = {a.path for a in adds if a.path in removed}
    for remove in removes:
        if remove.path not in again:
            yield from maker.removed(remove)
    for add in adds:
        if add.path in again or add.narrows:
            yield from maker.replaced(add)
    for add in adds:
        if add.path not in again and not add.narrows:
            yield from maker.added(add)


class _Maker:
    """The pieces of one version."""

    def __init__(self, log: TransactionLog, change: VersionActions, before: Snapshot | None):
        self._log = log
        self._change = change
        self._before = before

    def piece(self, add: AddFile, rows: Rows32 | None, kind: str) -> Piece:
        ref = SplitRef.of(add)
        ref = ref if rows is None else ref.physical()
        return Piece(ref, rows, kind, self._change.version, self._change.timestamp_ms)

    def _entry(self, path: str) -> AddFile | None:
        place = None if self._before is None else self._before.index_of(path)
        return None if place is None or self._before is None else self._before.file(place)

    def _reader(self, add: AddFile) -> SplitReader:
        try:
            return SplitReader.open(self._log.store, add, config=self._log.config)
        except ObjectNotFoundError as error:
            raise purged(error.path or add.path, self._change.version) from error

    def _gone(self, add: AddFile) -> Rows32:
        try:
            gone = self._reader(add).deleted
        except ObjectNotFoundError as error:
            raise purged(error.path or add.path, self._change.version) from error
        return NO_ROWS if gone is None else gone

    def added(self, add: AddFile) -> Iterator[Piece]:
        tags = add.tags or {}
        if FIRST_TAG not in tags:
            yield self.piece(add, None, AFTER if tags.get(CHANGE_TAG) == "update" else INSERT)
            return
        count, first = self._reader(add).num_rows, int(tags[FIRST_TAG])
        if not 0 < first < count:
            raise CorruptFileError(
                f"the tag {FIRST_TAG} says {tags[FIRST_TAG]} of {count} rows", path=add.path
            )
        rows = np.arange(count, dtype=np.uint32)
        yield self.piece(add, rows[:first], AFTER)
        yield self.piece(add, rows[first:], INSERT)

    def removed(self, action: RemoveFile) -> Iterator[Piece]:
        entry = self._entry(action.path)
        if entry is None:
            return
        tags = action.tags or {}
        if DELETED_TAG in tags:
            yield from self._went(entry, _tagged(tags, DELETED_TAG), tags)
        elif UPDATED_TAG in tags:
            everything = np.arange(self._reader(entry).num_rows, dtype=np.uint32)
            yield from self._went(entry, _minus(everything, self._gone(entry)), tags)
        else:
            kind = BEFORE if tags.get(CHANGE_TAG) == "update" else DELETE
            yield self.piece(entry, None, kind)

    def replaced(self, add: AddFile) -> Iterator[Piece]:
        entry = self._entry(add.path)
        if entry is None:
            return
        before, after = self._gone(entry), self._gone(add)
        yield from self._went(add, _minus(after, before), add.tags or {})
        back = _minus(before, after)
        if len(back):
            yield self.piece(add, back, INSERT)

    def _went(self, add: AddFile, rows: Rows32, tags: Mapping[str, str]) -> Iterator[Piece]:
        updated = NO_ROWS
        if tags.get(CHANGE_TAG) == "update":
            updated = rows
        elif UPDATED_TAG in tags:
            updated = np.intersect1d(rows, _tagged(tags, UPDATED_TAG)).astype(np.uint32)
        deleted = _minus(rows, updated)
        if len(deleted):
            yield self.piece(add, deleted, DELETE)
        if len(updated):
            yield self.piece(add, updated, BEFORE)


def _tagged(tags: Mapping[str, str], key: str) -> Rows32:
    vector = DeletionVector.from_text(tags[key])
    return read_vector(vector.inline_data).astype(np.uint32)


def _minus(rows: Rows32, others: Rows32) -> Rows32:
    return np.setdiff1d(rows, others, assume_unique=True).astype(np.uint32)


def purged(path: str, version: int) -> MaintenanceError:
    return MaintenanceError(
        f"the changes of version {version} were purged",
        path=path,
        version=version,
        hint="Start at a later version; PURGE keeps files for purge.defaultRetentionHours",
    )


def read_piece(
    store: Any, piece: Piece, schema: pa.Schema, config: Any, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of a piece in the columns of the feed."""
    names = list(schema.names if columns is None else columns)
    try:
        reader = SplitReader.open(store, piece.split, config=config)
        scan = SplitScan(
            reader,
            TRUE,
            schema=schema,
            partition_values=piece.split.partition_values,
            only=piece.rows,
        )
        for batch in scan.batches(names, None, config["read.batchRows"]):
            yield _with_facts(batch, piece)
    except ObjectNotFoundError as error:
        raise purged(error.path or piece.split.path, piece.version) from error


def _with_facts(batch: pa.RecordBatch, piece: Piece) -> pa.RecordBatch:
    count = batch.num_rows
    facts = [
        pa.repeat(pa.scalar(piece.kind), count),
        pa.repeat(pa.scalar(piece.version, pa.int64()), count),
        pa.repeat(pa.scalar(piece.timestamp_ms * 1000, CHANGE_FIELDS[2].type), count),
    ]
    schema = pa.schema([*batch.schema, *CHANGE_FIELDS])
    return pa.RecordBatch.from_arrays([*batch.columns, *facts], schema=schema)
