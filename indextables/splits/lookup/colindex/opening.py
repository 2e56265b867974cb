"""The indexes of a split: where the log says they are, and one of them open.

An index is a member of its split's bundle, or a file beside it (a sidecar) where it was built after
the split was written. An index that is missing, damaged or of another split is a warning and a
count, and the split is read as if it had none. It never fails a query. A machine that ran short
broke no index.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from indextables.config import Config
from indextables.errors import IndexTablesError, ObjectNotFoundError
from indextables.log.read.view import SnapshotView
from indextables.lru import LRU
from indextables.splits.format import members
from indextables.splits.lookup.colindex.index import ColumnIndex
from indextables.splits.lookup.colindex.layout import sidecar_path, split_number
from indextables.splits.lookup.colindex.metrics import ERROR, FALLBACK, METRICS
from indextables.splits.lookup.colindex.rowcache import RowIdCache
from indextables.splits.lookup.colindex.values import Kind
from indextables.storage.base import Store
from indextables.storage.machine import machine_error

LOG = logging.getLogger("indextables.columnindex")
UNREADABLE = (
    IndexTablesError,
    ValueError,
    IndexError,
    OverflowError,
    OSError,
    MemoryError,
    struct.error,
    pa.ArrowException,
)


@dataclass(frozen=True, slots=True)
class IndexRefs:
    """The indexes of some splits as the log knows them; small and picklable."""

    definitions: Mapping[str, str] = field(default_factory=dict)
    """Index id by column."""
    sidecars: Mapping[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    """(path, size) by (column, split path)."""

    @classmethod
    def of(cls, snapshot: SnapshotView, splits: Iterable[str] | None = None) -> IndexRefs | None:
        """What a snapshot knows (of some splits); ``None`` where no index is defined."""
        known = snapshot.indexes
        if not known.definitions:
            return None
        chosen = None if splits is None else set(splits)
        files = {
            key: (file.path, file.size)
            for key, file in known.files.items()
            if chosen is None or key[1] in chosen
        }
        return cls({c: d.id for c, d in known.definitions.items()}, files)


_open: LRU[tuple[str, ...], ColumnIndex | None] = LRU(256)
ROW_CACHE = RowIdCache()


def forget_indexes() -> int:
    """Drop every open index and all cached rows of this process; says how many there were."""
    return _open.clear() + ROW_CACHE.clear()


def open_index(
    store: Store, reader: Any, column: str, refs: IndexRefs, config: Config
) -> tuple[ColumnIndex | None, str]:
    """The index of a column of a split (``None``: there is none), and where it lives."""
    named = refs.sidecars.get((column, reader.path))
    member = members.column_index(column)
    if named is not None:
        place = named[0]
    elif reader.source.has(member):
        place = f"{reader.path}!{member}"
    elif config["columnIndex.discover"] and column in refs.definitions:
        place = sidecar_path(refs.definitions[column], reader.path)
    else:
        return None, ""
    key = (store.identity, reader.path, column, place, "" if named is None else "named")

    def make() -> ColumnIndex | None:
        found = _opened(store, reader, place, member, None if named is None else named[1])
        if found is not None:
            METRICS.read(column, found.bytes_read)
        return found

    return _open.load(key, make), place


def _opened(
    store: Store, reader: Any, place: str, member: str, size: int | None
) -> ColumnIndex | None:
    if place.endswith(f"!{member}"):
        start, end = reader.source.range_of(member)
        return ColumnIndex.open(
            lambda ranges: reader.source.member_ranges(member, ranges),
            end - start,
            num_rows=reader.num_rows,
            path=reader.path,
        )
    if size is None:
        try:
            size = store.stat(place).size
        except ObjectNotFoundError:
            return None
    return ColumnIndex.open(
        lambda ranges: store.read_ranges(place, ranges),
        size,
        num_rows=reader.num_rows,
        block_id=split_number(reader.path),
        path=place,
    )


def same_kind(index: Kind, asked: Kind) -> bool:
    """Whether an index of one kind answers questions of another."""
    whole = (Kind.INT, Kind.UINT)
    return index == asked or (index in whole and asked in whole)


def report_broken(column: str, error: Exception) -> None:
    """An index could not be used: warn and count; a machine that ran short broke no index."""
    if (short := machine_error(error)) is not None:
        METRICS.lookup(column, FALLBACK)
        LOG.warning("The index on column '%s' was not asked: %s", column, short)
        return
    METRICS.lookup(column, ERROR)
    LOG.warning(
        "Index lookup failed for column '%s': %s. Falling back to full scan.", column, error
    )
