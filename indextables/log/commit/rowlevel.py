"""Rows that go from splits that stay: joined with what others deleted meanwhile.

A transaction that deletes rows decided on a snapshot which rows of which splits go. On every
attempt to commit it looks at the newest snapshot again:

* the split has the vector it had: its rows are added to that vector;
* others deleted *other* rows of it: theirs and ours are joined, and both commits stand;
* another writer deleted or changed a row that is among ours: *concurrent change*, a conflict that
  names the row;
* another writer brought rows back (RESTORE): *concurrent change* too;
* the split itself is gone (merged, overwritten, dropped): *concurrent delete*.

A split that loses its last row is removed. ``tags`` of the ``add`` or ``remove`` say which of the
rows were updated rather than deleted, for the change feed; they are of this commit alone.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from indextables.log.actions import Action, AddFile, DeletionVector
from indextables.log.commit.conflict import conflict
from indextables.log.vectors.codec import Rows32
from indextables.log.vectors.stored import deleted_rows, store_vectors

if TYPE_CHECKING:
    from indextables.log.read.snapshot import Snapshot
    from indextables.storage.base import Store

CHANGE_TAG = "indextables.change"
"""``update``: the rows that came or went with this action are the new or old form of rows."""
UPDATED_TAG = "indextables.updatedRows"
"""A vector in the log: of the rows that went, those that were updated."""
DELETED_TAG = "indextables.deletedRows"
"""A vector in the log: the rows that left the table with a split that was written again."""
FIRST_TAG = "indextables.updatedFirst"
"""Of a new split: so many of its first rows are the new form of rows, the others are new."""
CHANGE_TAGS = frozenset((CHANGE_TAG, UPDATED_TAG, DELETED_TAG, FIRST_TAG))
NO_ROWS = np.empty(0, np.uint32)


@dataclass(frozen=True, slots=True)
class Taken:
    """Rows of one split that go; ``add`` is the split as it was when that was decided."""

    add: AddFile
    num_rows: int
    rows: Rows32
    updated: Rows32 = field(default_factory=lambda: NO_ROWS)
    """Those of the rows that come back in another form."""

    def gone_before(self, store: Store) -> Rows32:
        """The rows that were gone already."""
        return _rows_of(store, self.add.deletion_vector, self.num_rows, self.add.path)

    @property
    def tags(self) -> dict[str, str]:
        """What the change feed needs to know."""
        if not len(self.updated):
            return {}
        if len(self.updated) == len(self.rows):
            return {CHANGE_TAG: "update"}
        return {UPDATED_TAG: inline_text(self.updated)}


def update_tags(updated: int, count: int) -> dict[str, str]:
    """The tags of a new split of ``count`` rows, the first of which are updated ones."""
    if updated == 0:
        return {}
    return {CHANGE_TAG: "update"} if updated == count else {FIRST_TAG: str(updated)}


def inline_text(rows: Rows32) -> str:
    """Rows as a vector in the log."""
    from indextables.log.vectors.codec import vector_bytes

    return DeletionVector.inline(vector_bytes(rows), len(rows)).text


def without_change_tags(tags: Mapping[str, str] | None) -> dict[str, str]:
    """Tags that are the split's own."""
    return {key: text for key, text in (tags or {}).items() if key not in CHANGE_TAGS}


class Narrowing:
    """The actions that take rows from splits, made again for each snapshot they are to follow."""

    def __init__(self, store: Store, taken: Sequence[Taken], most_inline: int) -> None:
        self._store = store
        self._taken = tuple(taken)
        self._most_inline = most_inline
        self._made: dict[tuple[str, str | None], DeletionVector] = {}
        self.files: list[str] = []
        """Files of vectors that were written on the way."""

    def actions(self, latest: Snapshot) -> list[Action]:
        """The adds and removals to commit on top of ``latest``."""
        paths = [one.add.path for one in self._taken]
        places = latest.indices_of(paths).tolist()
        missing = [path for path, place in zip(paths, places, strict=True) if place < 0]
        if missing:
            what = f"'{missing[0]}' is no longer part of the table"
            raise conflict("concurrent delete", what, latest.version)
        now = latest.vectors(places)
        joined = {
            one.add.path: self._joined(one, vector, latest.version)
            for one, vector in zip(self._taken, now, strict=True)
        }
        self._store_missing(joined, now)
        moment = int(time.time() * 1000)
        return [
            self._action(one, latest.file(place), joined[one.add.path], moment)
            for one, place in zip(self._taken, places, strict=True)
        ]

    def _joined(self, one: Taken, now: DeletionVector | None, version: int) -> Rows32:
        """All rows that are gone afterwards."""
        before = one.gone_before(self._store)
        known = one.add.deletion_vector
        if (None if now is None else now.unique_id) != (known and known.unique_id):
            theirs = _rows_of(self._store, now, one.num_rows, one.add.path)
            if len(np.setdiff1d(before, theirs, assume_unique=True)):
                what = f"rows of '{one.add.path}' came back"
                raise conflict("concurrent change", what, version)
            both = np.intersect1d(theirs, one.rows, assume_unique=True)
            if len(both):
                what = f"row {both[0]} of '{one.add.path}' was deleted or changed"
                raise conflict("concurrent change", what, version)
            before = theirs
        return np.union1d(before, one.rows).astype(np.uint32)

    def _store_missing(
        self, joined: Mapping[str, Rows32], now: Sequence[DeletionVector | None]
    ) -> None:
        """Write the vectors that no earlier attempt has written for the same state."""
        self._keys = {
            one.add.path: (one.add.path, None if vector is None else vector.unique_id)
            for one, vector in zip(self._taken, now, strict=True)
        }
        absent = {
            one.add.path: joined[one.add.path]
            for one in self._taken
            if self._keys[one.add.path] not in self._made
            and len(joined[one.add.path]) < one.num_rows
        }
        made = store_vectors(self._store, absent, self._most_inline)
        for path, vector in made.items():
            self._made[self._keys[path]] = vector
            if vector.path is not None and vector.path not in self.files:
                self.files.append(vector.path)

    def _action(self, one: Taken, entry: AddFile, gone: Rows32, moment: int) -> Action:
        tags = {**without_change_tags(entry.tags), **one.tags}
        if len(gone) >= one.num_rows:
            return entry.removal(moment, tags=one.tags)
        return replace(
            entry,
            deletion_vector=self._made[self._keys[one.add.path]],
            data_change=True,
            tags=tags or None,
            added_at_version=entry.added_at_version or 0,
            added_at_timestamp=entry.added_at_timestamp or 0,
        )


def _rows_of(store: Store, vector: DeletionVector | None, num_rows: int, split: str) -> Rows32:
    return NO_ROWS if vector is None else deleted_rows(store, vector, num_rows, split)
