"""Where the rows of a split are, and which of them a snapshot of the source has given up.

Both follow from the snapshot that the query reads, not from the one that was indexed. A row is gone
if its file is not in the snapshot (or is there as another file of the same path), if a deletion
vector or a position delete names it, or if an equality delete does. Deletes are read when a split
is read, and kept by the identity of files and deletes.

Files that no split covers are read through the same object, without a split (``is_bare``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from indextables.companion.columns import table_schema
from indextables.companion.rows import SourceRows
from indextables.errors import CorruptFileError
from indextables.lazy import lazily
from indextables.log.actions import DeletionVector
from indextables.lru import LRU
from indextables.mapping import DocMapping
from indextables.naming import stored_schema
from indextables.sources.base import SourceColumn, SourceFile, SourceSnapshot
from indextables.sources.reading import EqualityTest
from indextables.sources.rows import ParquetRows

KEPT_BYTES = 64 << 20
Rows = NDArray[np.uint32]


def without_files(snapshot: SourceSnapshot) -> SourceSnapshot:
    """The snapshot for those who know which files they read: it travels with every task."""
    given: Any = snapshot
    found: SourceSnapshot = replace(given, _files=()) if hasattr(given, "_files") else snapshot
    return found


@dataclass(frozen=True)
class FileOrigin:
    """Rows of some files of a source at one snapshot, in order."""

    snapshot: SourceSnapshot
    columns: tuple[SourceColumn, ...]
    files: tuple[SourceFile | None, ...]
    """``None`` for a file that the snapshot does not have."""
    counts: tuple[int, ...] | None
    """Rows of each file; ``None`` where the metadata does not say."""
    is_bare: bool = False
    mapping: str | None = None
    """How columns are analysed, for rows without a split."""
    ignores_deletes: bool = False
    names: tuple[SourceFile, ...] = ()
    """The files of a split as they were indexed, those that are gone too."""

    @lazily
    def key(self) -> str:
        """The same only where files and deletes are."""
        deletes = not self.ignores_deletes
        told = [
            None if f is None else (*f.key, f.deletes.token if deletes else "") for f in self.files
        ]
        raw = repr((self.snapshot.format, self.snapshot.location, self.is_bare, told))
        return hashlib.sha256(raw.encode()).hexdigest()[:24]

    def whole(self) -> FileOrigin:
        """The same files with no row gone; one that is gone for good cannot be read."""
        if self.ignores_deletes:
            return self
        return replace(self, files=self.names or self.files, ignores_deletes=True)

    def bare(self) -> FileOrigin:
        """The same rows without their split, which is missing or damaged."""
        return replace(self, is_bare=True)

    # -- rows -------------------------------------------------------------------------------------

    def rows(self, reader: Any) -> SourceRows:
        """The rows of the files, in the types of the source."""
        schema = stored_schema(table_schema(self.columns))
        if not self.is_bare:
            schema = _typed(reader.info.schema, schema)
        mapping = None if self.mapping is None else DocMapping.from_json(self.mapping)
        counts = self._counts()
        if not self.is_bare and sum(counts) != reader.num_rows:
            raise CorruptFileError(
                f"the log says {sum(counts)} rows, the split {reader.num_rows}", path=reader.path
            )
        return SourceRows(schema, self.files, counts, self.snapshot.rows, mapping)

    def _counts(self) -> Sequence[int]:
        if self.counts is not None:
            return self.counts
        return [0 if f is None else self.snapshot.rows(f).num_rows for f in self.files]

    # -- deletes ----------------------------------------------------------------------------------

    @property
    def has_deletes(self) -> bool:
        return not self.ignores_deletes and any(f is None or f.deletes for f in self.files)

    @property
    def known_deleted(self) -> int | None:
        """How many rows are gone, where metadata says."""
        total = 0
        for file, count in zip(self.files, self.counts or (), strict=False):
            if file is None:
                total += count
            elif file.deletes:
                if file.deletes.count is None or file.deletes.equality:
                    return None
                total += file.deletes.count
        return total if self.counts is not None else None

    @property
    def vector(self) -> DeletionVector | None:
        """What stands in the log's place of a vector; never zero, as bounds are not exact then."""
        if not self.has_deletes:
            return None
        return DeletionVector.elsewhere(self.key, max(1, self.known_deleted or 1))

    def deleted(self, reader: Any) -> Rows | None:
        """The numbers of the rows that are gone, ascending."""
        if not self.has_deletes:
            return None
        found = _kept.load(self.key, self._deleted)
        return found if len(found) else None

    def _deleted(self) -> Rows:
        starts = np.concatenate([[0], np.cumsum(np.asarray(self._counts(), np.int64))])
        parts = [
            self._deleted_of(file, int(first), int(last))
            for file, first, last in zip(self.files, starts[:-1], starts[1:], strict=True)
        ]
        found = np.concatenate([np.empty(0, np.uint32), *parts]).astype(np.uint32)
        found.flags.writeable = False
        return found

    def _deleted_of(self, file: SourceFile | None, first: int, last: int) -> NDArray[np.int64]:
        if file is None:
            return np.arange(first, last, dtype=np.int64)
        gone = [np.empty(0, np.int64)]
        if file.deletes.positions:
            named = self.snapshot.deleted_positions(file)
            if named is not None:
                gone.append(self._checked(named, last - first, file))
        for delete in file.deletes.equality:
            test = EqualityTest(self.snapshot, delete)
            gone.append(_equal_rows(self.snapshot.rows(file), test))
        return np.unique(np.concatenate(gone)) + first

    def _checked(self, named: Any, rows: int, file: SourceFile) -> NDArray[np.int64]:
        found = np.asarray(named, np.int64)
        if len(found) and int(found.max()) >= rows:
            raise CorruptFileError(
                f"a delete names row {int(found.max())} of {rows}", path=file.path
            )
        return found


def _equal_rows(rows: ParquetRows, test: EqualityTest) -> NDArray[np.int64]:
    """Positions of the rows of a file that an equality delete takes away.

    The delete may name columns that the table does not have any more; the file knows them.
    """
    found, at = [np.empty(0, np.int64)], 0
    for batch in rows.scan(list(test.columns), 1 << 17):
        found.append(np.flatnonzero(test.matches(batch)) + at)
        at += batch.num_rows
    return np.concatenate(found)


def _typed(split: pa.Schema, now: pa.Schema) -> pa.Schema:
    """The columns of a split in the types that they have now."""
    wider = {f.name: f for f in now}
    return pa.schema([wider.get(f.name, f) for f in split])


_kept: LRU[Hashable, Rows] = LRU(most_bytes=KEPT_BYTES, size_of=lambda rows: rows.nbytes)
