"""The flat form of an index: sorted distinct keys, and the rows of each.

``keys[i]`` has the rows ``rows[offsets[i]:offsets[i + 1]]``, ascending. Rows of Null stand apart.
Both file formats are written from this form; the seed's format is read back into it, the compact
one where many values are asked at once. It is a pure function of the column, so two tasks that
build the same index write the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from indextables.native._colkeys import TextTable, merge_texts, union_rows
from indextables.splits.lookup.colindex.values import Key, Kind, number_keys, require_kind

Rows: TypeAlias = NDArray[np.uint32]
Int64s: TypeAlias = NDArray[np.int64]
NO_ROWS: Rows = np.empty(0, np.uint32)


class TextKeys(Sequence[bytes]):
    """Sorted byte strings in one buffer."""

    __slots__ = ("__dict__", "data", "offsets")

    def __init__(self, data: Any, offsets: Int64s) -> None:
        self.data = memoryview(data).cast("B")
        self.offsets = offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: Any) -> Any:
        return bytes(self.data[self.offsets[i] : self.offsets[i + 1]])

    def slice(self, start: int, stop: int) -> TextKeys:
        """Some of the keys, without copying their bytes."""
        return TextKeys(self.data, self.offsets[start : stop + 1])

    @property
    def lengths(self) -> Int64s:
        return np.diff(self.offsets)

    @property
    def payload(self) -> memoryview:
        return self.data[self.offsets[0] : self.offsets[-1]]

    def to_arrow(self) -> Any:
        """The keys as an array of large binaries."""
        offsets = np.ascontiguousarray(self.offsets, np.int64)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(self.data)]
        return pa.Array.from_buffers(pa.large_binary(), len(self), buffers)

    def take(self, positions: Int64s) -> TextKeys:
        """The keys at some positions."""
        return TextKeys.of(self.to_arrow().take(pa.array(positions)))

    @cached_property
    def table(self) -> TextTable:
        """The keys for searching."""
        return TextTable(self.data, np.ascontiguousarray(self.offsets, np.int64))

    @classmethod
    def of(cls, array: Any) -> TextKeys:
        """The keys of a large_binary array without nulls."""
        _, offsets, data = array.buffers()
        at = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
        return cls(data if data is not None else b"", at if len(at) else np.zeros(1, np.int64))


Keys: TypeAlias = "Int64s | TextKeys"


def lower_bound(keys: Keys, key: Key) -> int:
    """How many keys are smaller."""
    if isinstance(keys, TextKeys):
        return keys.table.lower(key)  # type: ignore[arg-type]
    return int(np.searchsorted(keys, _clamped(key), "left")) if fits(key) else _end(keys, key)


def upper_bound(keys: Keys, key: Key) -> int:
    """How many keys are smaller or equal."""
    if isinstance(keys, TextKeys):
        return keys.table.upper(key)  # type: ignore[arg-type]
    return int(np.searchsorted(keys, _clamped(key), "right")) if fits(key) else _end(keys, key)


def fits(key: Key) -> bool:
    """Whether an index can hold a key at all."""
    return isinstance(key, bytes) or -(1 << 63) <= key < 1 << 63


def _clamped(key: Key) -> Any:
    return np.int64(int(key))


def _end(keys: Keys, key: Key) -> int:
    return len(keys) if int(key) > 0 else 0


@dataclass(frozen=True)
class Postings:
    """One column of one split, value by value."""

    kind: Kind
    keys: Keys
    offsets: Int64s
    rows: Rows
    nulls: Rows
    num_rows: int

    @property
    def distinct(self) -> int:
        """Distinct values, Null not among them."""
        return len(self.keys)

    @property
    def nbytes(self) -> int:
        keys = self.keys
        text = len(keys.data) + keys.offsets.nbytes if isinstance(keys, TextKeys) else keys.nbytes
        return int(text + self.offsets.nbytes + self.rows.nbytes + self.nulls.nbytes)

    def key_at(self, position: int) -> Key:
        found = self.keys[position]
        return found if isinstance(found, bytes) else int(found)

    def lower(self, key: Key) -> int:
        return lower_bound(self.keys, key)

    def upper(self, key: Key) -> int:
        return upper_bound(self.keys, key)

    def rows_before(self, position: int) -> int:
        """How many rows have a value before this position."""
        return int(self.offsets[position])

    def rows_between(self, start: int, stop: int) -> Rows:
        """Rows of the values at these positions, value by value."""
        return self.rows[self.offsets[start] : self.offsets[stop]]

    def positions_of(self, keys: Sequence[Key]) -> Int64s:
        """Positions of those keys that are there, ascending."""
        if isinstance(self.keys, TextKeys):
            return self.keys.table.positions(keys)  # type: ignore[arg-type]
        wanted = np.array([k for k in keys if fits(k)], np.int64)
        at = np.searchsorted(self.keys, wanted)
        inside = at < len(self.keys)
        at, wanted = at[inside], wanted[inside]
        return np.unique(at[self.keys[at] == wanted])

    def rows_of(self, positions: Int64s) -> Rows:
        """Rows of many values, ascending."""
        return union_rows(self.rows, self.offsets, positions, self.num_rows, _warm)

    def without(self, gone: Rows) -> Postings:
        """The index of the rows that stay when some are taken out."""
        stays = np.ones(self.num_rows, np.bool_)
        stays[gone] = False
        moved = (np.cumsum(stays) - 1).astype(np.uint32)
        here = stays[self.rows]
        ends = np.append(0, np.cumsum(here))[self.offsets]
        kept = np.flatnonzero(np.diff(ends))
        rows, nulls = moved[self.rows[here]], moved[self.nulls[stays[self.nulls]]]
        offsets = np.append(0, ends[kept + 1]).astype(np.int64)
        keys = self.keys.take(kept) if isinstance(self.keys, TextKeys) else self.keys[kept]
        return Postings(self.kind, keys, offsets, rows, nulls, int(stays.sum()))


def _warm(count: int) -> Rows:
    """An array in memory that Arrow kept: fresh pages cost more than filling them."""
    found: Rows = np.frombuffer(pa.allocate_buffer(4 * count), np.uint32)
    return found


def build_postings(column: Any, name: str = "") -> Postings:
    """The flat index of one column of one split."""
    if isinstance(column, pa.Array):
        column = pa.chunked_array([column])
    kind = require_kind(column.type, name)
    num_rows = len(column)
    valid = np.asarray(column.is_valid())
    nulls = np.flatnonzero(~valid).astype(np.uint32)
    present = np.flatnonzero(valid).astype(np.uint32)
    filled = column.drop_null() if len(nulls) else column
    keys, offsets, order = _sorted_text(filled) if kind is Kind.TEXT else _sorted(kind, filled)
    return Postings(kind, keys, offsets, present[order], nulls, num_rows)


def _sorted(kind: Kind, column: Any) -> tuple[Int64s, Int64s, Int64s]:
    values = number_keys(kind, column)
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    return (*_grouped(ordered), order)


def _grouped(ordered: Int64s) -> tuple[Int64s, Int64s]:
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]][: len(ordered)])
    return ordered[starts], np.append(starts, len(ordered)).astype(np.int64)


def _sorted_text(column: Any) -> tuple[TextKeys, Int64s, Int64s]:
    array = column.cast(pa.large_string()).cast(pa.large_binary()).combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    coded = array.dictionary_encode()
    words = coded.dictionary
    by_word = np.asarray(pc.sort_indices(words)).astype(np.int64)
    keys = TextKeys.of(words.take(pa.array(by_word)))
    if len(words) == len(array):
        return keys, np.arange(len(array) + 1, dtype=np.int64), by_word
    rank = np.empty(len(words), np.int64)
    rank[by_word] = np.arange(len(words))
    ranks = rank[np.asarray(coded.indices)]
    if len(words) < 1 << 16:
        order = np.argsort(ranks.astype(np.uint16), kind="stable")
    else:
        order = np.argsort(ranks, kind="stable")
    offsets = np.zeros(len(words) + 1, np.int64)
    np.cumsum(np.bincount(ranks, minlength=len(words)), out=offsets[1:])
    return keys, offsets, order


def merge_postings(parts: Sequence[Postings]) -> Postings:
    """The index of splits put end to end, from their indexes alone.

    Keys are merged as sorted runs; the rows of a key follow each other in the order of the splits,
    so they ascend.
    """
    bases = np.cumsum([0, *(p.num_rows for p in parts)])
    rows = np.concatenate([p.rows + np.uint32(b) for p, b in zip(parts, bases, strict=False)])
    nulls = np.concatenate([p.nulls + np.uint32(b) for p, b in zip(parts, bases, strict=False)])
    counts = np.concatenate([np.diff(p.offsets) for p in parts])
    starts = np.cumsum(counts) - counts
    keys, order, groups = _merged_keys(parts)
    firsts, sizes = starts[order], counts[order]
    within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    ordered = rows[np.repeat(firsts, sizes) + within]
    totals = np.add.reduceat(sizes, groups[:-1]) if len(keys) else sizes
    offsets = np.append(0, np.cumsum(totals)).astype(np.int64)
    return Postings(parts[0].kind, keys, offsets, ordered, nulls, int(bases[-1]))


def _merged_keys(parts: Sequence[Postings]) -> tuple[Keys, Int64s, Int64s]:
    """Merged keys, the order of the old ones, and where each new one starts in that order."""
    if isinstance(parts[0].keys, TextKeys):
        texts = [p.keys for p in parts if isinstance(p.keys, TextKeys)]
        order, starts = merge_texts([t.table for t in texts])
        laid = TextKeys.of(pa.concat_arrays([t.to_arrow() for t in texts]))
        return laid.take(order[starts[:-1]]), order, starts
    values = np.concatenate([np.asarray(p.keys) for p in parts])
    order = np.argsort(values, kind="stable")
    keys, starts = _grouped(values[order])
    return keys, order, starts
