"""The flat form of an index: sorted distinct keys, and the rows of each.

``keys[i]`` has the rows ``rows[offsets[i]:offsets[i + 1]]``, ascending. Rows of Null stand apart.
Both file formats are written from this form; the seed's format is read back into it, the compact
one where many values are asked at once. It is a pure function of the column, so two tasks that
build the same index write the same bytes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from indextables.columnindex.values import Key, Kind, number_keys, require_kind
from indextables.native import hash_terms

Rows: TypeAlias = NDArray[np.uint32]
Int64s: TypeAlias = NDArray[np.int64]
NO_ROWS: Rows = np.empty(0, np.uint32)


class TextKeys(Sequence[bytes]):
    """Sorted byte strings in one buffer."""

    __slots__ = ("__dict__", "data", "offsets")

    def __init__(self, data: Any, offsets: Int64s) -> None:
        self.data = memoryview(data)
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

    @cached_property
    def by_hash(self) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Hashes of all keys, sorted, with their positions."""
        hashes = hash_terms("", self.to_arrow(), kind="xxh64")
        order = np.argsort(hashes, kind="stable")
        return hashes[order], order

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
        return bisect_left(keys, key)
    return int(np.searchsorted(keys, _clamped(key), "left")) if _fits(key) else _end(keys, key)


def upper_bound(keys: Keys, key: Key) -> int:
    """How many keys are smaller or equal."""
    if isinstance(keys, TextKeys):
        return bisect_right(keys, key)
    return int(np.searchsorted(keys, _clamped(key), "right")) if _fits(key) else _end(keys, key)


def _fits(key: Key) -> bool:
    return isinstance(key, int) and -(1 << 63) <= key < 1 << 63


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
        """Positions of those keys that are there."""
        if isinstance(self.keys, TextKeys):
            return self._text_positions(self.keys, keys)
        wanted = np.array([k for k in keys if _fits(k)], np.int64)
        at = np.searchsorted(self.keys, wanted)
        inside = at < len(self.keys)
        at, wanted = at[inside], wanted[inside]
        return np.unique(at[self.keys[at] == wanted])

    @staticmethod
    def _text_positions(have: TextKeys, keys: Sequence[Key]) -> Int64s:
        if len(have) == 0 or not keys:
            return np.empty(0, np.int64)
        wanted = pa.array(list(dict.fromkeys(keys)), pa.large_binary())
        hashes, order = have.by_hash
        needles = hash_terms("", wanted, kind="xxh64")
        first = np.searchsorted(hashes, needles, "left")
        counts = np.searchsorted(hashes, needles, "right") - first
        needle = np.repeat(np.arange(len(needles)), counts)
        within = np.arange(len(needle)) - np.repeat(np.cumsum(counts) - counts, counts)
        at = order[first[needle] + within]
        same = pc.equal(have.to_arrow().take(pa.array(at)), wanted.take(pa.array(needle)))
        return np.sort(at[np.asarray(same)])

    def rows_of(self, positions: Int64s) -> Rows:
        """Rows of many values, value by value."""
        starts = self.offsets[positions]
        counts = self.offsets[positions + 1] - starts
        if len(counts) and int(counts.max()) == 1:
            single: Rows = self.rows[starts]
            return single
        within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        found: Rows = self.rows[np.repeat(starts, counts) + within]
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
    """The index of splits laid end to end, from their indexes alone.

    The sorted runs are merged by a stable sort that recognises runs.
    """
    bases = np.cumsum([0, *(p.num_rows for p in parts)])
    rows = np.concatenate([p.rows.astype(np.int64) + b for p, b in zip(parts, bases, strict=False)])
    nulls = np.concatenate(
        [p.nulls.astype(np.int64) + b for p, b in zip(parts, bases, strict=False)]
    )
    counts = np.concatenate([np.diff(p.offsets) for p in parts])
    starts = np.cumsum(counts) - counts
    keys, groups = _merged_keys(parts)
    firsts, sizes = starts[groups[0]], counts[groups[0]]
    within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    ordered = rows[np.repeat(firsts, sizes) + within].astype(np.uint32)
    totals = np.add.reduceat(sizes, groups[1][:-1]) if len(keys) else sizes
    offsets = np.append(0, np.cumsum(totals)).astype(np.int64)
    return Postings(parts[0].kind, keys, offsets, ordered, nulls.astype(np.uint32), int(bases[-1]))


def _merged_keys(parts: Sequence[Postings]) -> tuple[Keys, tuple[Int64s, Int64s]]:
    """Merged keys, and (order of the old ones, where each new one starts in that order)."""
    if isinstance(parts[0].keys, TextKeys):
        arrays = [p.keys.to_arrow() for p in parts if isinstance(p.keys, TextKeys)]
        coded = pa.concat_arrays(arrays).dictionary_encode()
        by_word = np.asarray(pc.sort_indices(coded.dictionary)).astype(np.int64)
        rank = np.empty(len(by_word), np.int64)
        rank[by_word] = np.arange(len(by_word))
        ranks = rank[np.asarray(coded.indices)]
        order = np.argsort(ranks, kind="stable")
        _, starts = _grouped(ranks[order])
        return TextKeys.of(coded.dictionary.take(pa.array(by_word))), (order, starts)
    values = np.concatenate([np.asarray(p.keys) for p in parts])
    order = np.argsort(values, kind="stable")
    keys, starts = _grouped(values[order])
    return keys, (order, starts)
