"""File entries in a few dozen bytes each.

Integers are stored as their least value and the narrowest differences from it; a constant column
takes no space. Texts are stored as skeletons, codes and slots (see ``native._textpack``), or, when
they share too little, as they are. Absent values are a bitmap, left out when nothing is absent.
Columns become whole arrays only when they are asked for.

Look-up by path goes through sorted hashes; a hit is always compared with the path itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from indextables.errors import CorruptFileError
from indextables.log.actions import AddFile, DeletionVector
from indextables.log.read.columns import (
    ENTRY_FIELDS,
    UNKNOWN,
    Bytes,
    EntryField,
    Int64s,
    Segment,
    StringColumn,
    hash_paths,
    partition_text,
)
from indextables.native._narrow import pack_ints
from indextables.native._statcols import scan_counts
from indextables.native._textunpack import unpack_texts

if TYPE_CHECKING:
    from indextables.native._textpack import Packed

_SENTINEL = 9_000_000_000_000_000
_FEW = 100
_MARK = re.compile(rb"([\xfe\xff])")
UInt32s = npt.NDArray[np.uint32]
Narrow = npt.NDArray[np.unsignedinteger[Any]]


def _is_set(bits: Bytes | None, row: int) -> bool:
    return bits is None or bool((int(bits[row >> 3]) >> (row & 7)) & 1)


def _flags(bits: Bytes | None, n: int) -> Bytes:
    if bits is None:
        return np.ones(n, np.uint8)
    return np.unpackbits(bits, count=n, bitorder="little")


@dataclass(frozen=True, slots=True)
class PackedInts:
    """``base + data`` where ``valid``; ``data`` is ``None`` for a constant."""

    n: int
    base: int
    data: Narrow | None = None
    valid: Bytes | None = None

    @classmethod
    def pack(cls, values: Int64s, missing: int) -> PackedInts | None:
        """A packed column, ``None`` when no row has a value."""
        packed = pack_ints(values, missing)
        if packed is None:
            return None
        low, data, present = packed
        bits = None if present is None else np.packbits(present, bitorder="little")
        return cls(len(values), low, data, bits)

    def to_int64(self) -> Int64s:
        """Whole values, ``UNKNOWN`` where absent."""
        if self.data is None:
            values = np.full(self.n, self.base, np.int64)
        else:
            values = self.data.astype(np.int64)
            values += self.base
        if self.valid is not None:
            values[_flags(self.valid, self.n) == 0] = UNKNOWN
        return values

    def to_uint64(self) -> npt.NDArray[np.uint64]:
        """Whole values of a slot."""
        base = np.uint64(self.base)
        if self.data is None:
            return np.full(self.n, base, np.uint64)
        return self.data.astype(np.uint64) + base

    def get(self, row: int) -> int | None:
        if not _is_set(self.valid, row):
            return None
        return self.base + (0 if self.data is None else int(self.data[row]))

    def take(self, rows: npt.NDArray[Any]) -> PackedInts:
        """The values of some rows; all of them must be there."""
        return PackedInts(len(rows), self.base, None if self.data is None else self.data[rows])


@dataclass(frozen=True, slots=True)
class PackedText:
    """Texts as skeletons, codes and slots, or (``skeletons`` is ``None``) as bytes and offsets."""

    n: int
    valid: Bytes | None
    skeletons: tuple[bytes, ...] | None = None
    codes: Narrow | None = None
    slots: tuple[PackedInts, ...] = ()
    data: Bytes | None = None
    offsets: Narrow | None = None

    @classmethod
    def of(cls, n: int, packed: Packed | None) -> PackedText | None:
        """What the packer gave, ``None`` when every row is NULL."""
        if packed is None:
            return None
        valid, skeletons, codes, slots, data, offsets = packed
        return cls(
            n,
            None if valid is None else np.packbits(valid, bitorder="little"),
            None if skeletons is None else tuple(skeletons),
            codes,
            tuple(PackedInts(n, low, differences) for low, differences in slots),
            data,
            offsets,
        )

    def to_column(self) -> StringColumn:
        valid = _flags(self.valid, self.n)
        if self.skeletons is None:
            assert self.data is not None
            assert self.offsets is not None
            return StringColumn(self.data, self.offsets.astype(np.int64), valid)
        slots = np.empty((len(self.slots), self.n), np.uint64)
        for j, slot in enumerate(self.slots):
            slots[j] = slot.to_uint64()
        data, offsets = unpack_texts(list(self.skeletons), self.whole_codes(), valid, slots)
        return StringColumn(data, offsets, valid)

    def whole_codes(self) -> npt.NDArray[np.uint16]:
        if self.codes is None:
            return np.zeros(self.n, np.uint16)
        return self.codes.astype(np.uint16, copy=False)

    def get_bytes(self, row: int) -> bytes | None:
        if not _is_set(self.valid, row):
            return None
        if self.skeletons is None:
            assert self.data is not None
            assert self.offsets is not None
            return self.data[int(self.offsets[row]) : int(self.offsets[row + 1])].tobytes()
        skeleton = self.skeletons[0 if self.codes is None else int(self.codes[row])]
        return render(skeleton, [slot.get(row) or 0 for slot in self.slots])

    def get(self, row: int) -> str | None:
        found = self.get_bytes(row)
        return None if found is None else found.decode()

    def take(self, rows: npt.NDArray[Any]) -> PackedText:
        """The texts of some rows, all of which must be there."""
        if self.skeletons is None:
            column = self.to_column().take(rows)
            return PackedText(
                len(rows), None, data=column.data, offsets=column.offsets.view(np.uint64)
            )
        codes = None if self.codes is None else self.codes[rows]
        slots = tuple(slot.take(rows) for slot in self.slots)
        return PackedText(len(rows), None, self.skeletons, codes, slots)

    def distinct_codes(self) -> tuple[npt.NDArray[np.int32], list[str | None]] | None:
        """Dictionary codes when every skeleton is a whole text, else ``None``."""
        if self.skeletons is None or self.slots:
            return None
        codes = self.whole_codes().astype(np.int32)
        texts: list[str | None] = [skeleton.decode() for skeleton in self.skeletons]
        if self.valid is not None:
            codes[_flags(self.valid, self.n) == 0] = len(texts)
            texts.append(None)
        return codes, texts

    @property
    def nbytes(self) -> int:
        arrays = [self.valid, self.codes, self.data, self.offsets, *(s.data for s in self.slots)]
        return sum(a.nbytes for a in arrays if a is not None)


@lru_cache(maxsize=4096)
def _pieces(skeleton: bytes) -> tuple[bytes, ...]:
    return tuple(_MARK.split(skeleton))


def render(skeleton: bytes, slots: Sequence[int]) -> bytes:
    """The text of a skeleton and its slots."""
    out: list[bytes] = []
    j = 0
    for piece in _pieces(skeleton):
        if piece == b"\xff":
            out.append(str(slots[j]).encode())
            j += 1
        elif piece == b"\xfe":
            h = f"{slots[j]:016x}{slots[j + 1]:016x}"
            out.append(f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}".encode())
            j += 2
        else:
            out.append(piece)
    return b"".join(out)


@dataclass(frozen=True, slots=True)
class PackedMap:
    """One text column per key; ``present`` distinguishes absent maps from empty ones."""

    present: PackedInts | None
    columns: Mapping[str, PackedText]

    def get(self, row: int) -> dict[str, str] | None:
        if self.present is None or not self.present.get(row):
            return None
        found = ((key, column.get(row)) for key, column in self.columns.items())
        return {key: text for key, text in found if text is not None}


class PackedSegment(Segment):
    """File entries of one manifest, packed."""

    def __init__(
        self,
        n: int,
        ints: Mapping[str, PackedInts],
        texts: Mapping[str, PackedText],
        maps: Mapping[str, PackedMap],
        lists: Mapping[str, PackedText],
        hashes: tuple[npt.NDArray[np.uint64], UInt32s],
        manifest: str | None = None,
    ) -> None:
        super().__init__(n, manifest)
        self.int_columns = ints
        self.text_columns = texts
        self.map_columns = maps
        self.list_columns = lists
        self.hashes, self.hash_rows = hashes

    def ints(self, name: str) -> Int64s:
        column = self.int_columns.get(name)
        return np.full(self.n, UNKNOWN, np.int64) if column is None else column.to_int64()

    def texts(self, name: str) -> StringColumn | None:
        column = self.text_columns.get(name)
        return None if column is None else column.to_column()

    def distinct(self, name: str) -> list[str]:
        column = self.text_columns.get(name)
        if (
            column is None
            or column.skeletons is None
            or any(s.data is not None for s in column.slots)
        ):
            return super().distinct(name)
        slots = [slot.base for slot in column.slots]
        return list(dict.fromkeys(render(s, slots).decode() for s in column.skeletons))

    def map_keys(self, name: str) -> Sequence[str]:
        found = self.map_columns.get(name)
        return () if found is None else list(found.columns)

    def _map_column(self, name: str, key: str) -> PackedText | None:
        found = self.map_columns.get(name)
        return None if found is None else found.columns.get(key)

    def map_texts(self, name: str, key: str) -> StringColumn | None:
        column = self._map_column(name, key)
        return None if column is None else column.to_column()

    def map_present(self, name: str) -> Bytes:
        found = self.map_columns.get(name)
        if found is None or found.present is None:
            return np.zeros(self.n, np.uint8)
        return np.asarray(found.present.to_int64() == 1, np.uint8)

    def raw_lists(self, name: str) -> StringColumn | None:
        column = self.list_columns.get(name)
        return None if column is None else column.to_column()

    def map_codes(self, name: str, key: str) -> tuple[npt.NDArray[np.int32], list[str | None]]:
        column = self._map_column(name, key)
        short = None if column is None else column.distinct_codes()
        return short if short is not None else super().map_codes(name, key)

    def counts(self, kind: str, column: str) -> Int64s | None:
        stats = self.text_columns.get("stats")
        if stats is None:
            return None
        if stats.skeletons is None:
            texts = stats.to_column()
            found = scan_counts(texts.data, texts.offsets, texts.valid, kind, column)
        else:
            found = _counts_by_skeleton(stats, kind, column)
        return found if (found != UNKNOWN).any() else None

    def path(self, row: int) -> str:
        found = self.text_columns["path"].get(row)
        assert found is not None
        return found

    def add(self, row: int) -> AddFile:
        values = {f.attr: self._value(f, row) for f in ENTRY_FIELDS}
        given = {attr: value for attr, value in values.items() if value is not None}
        return AddFile(**given)

    def _value(self, field: EntryField, row: int) -> Any:
        if field.kind in ("int", "bool"):
            ints = self.int_columns.get(field.name)
            value = None if ints is None else ints.get(row)
            return bool(value) if field.kind == "bool" and value is not None else value
        if field.kind in ("text", "vector"):
            texts = self.text_columns.get(field.name)
            text = None if texts is None else texts.get(row)
            is_vector = text is not None and field.kind == "vector"
            return DeletionVector.from_text(text) if is_vector and text else text
        if field.kind == "map":
            maps = self.map_columns.get(field.name)
            found = None if maps is None else maps.get(row)
            if field.name != "partitionValues" or found is None:
                return found
            return {key: partition_text(text) for key, text in found.items()}
        return self._list(field, row)

    def _list(self, field: EntryField, row: int) -> Any:
        lists = self.list_columns.get(field.name)
        raw = None if lists is None else lists.get_bytes(row)
        if raw is None:
            return None
        items = string_list(raw)
        return frozenset(items) if field.name == "splitTags" else tuple(items)

    def find(self, paths: Sequence[str], hashes: npt.NDArray[np.uint64] | None = None) -> Int64s:
        found = np.full(len(paths), -1, np.int64)
        asked = hash_paths(paths) if hashes is None else hashes
        first = np.searchsorted(self.hashes, asked)
        inside = np.flatnonzero(first < self.n)
        hits = inside[self.hashes[first[inside]] == asked[inside]]
        if len(hits):
            self._confirm(paths, asked, first, hits, found)
        return found

    def _confirm(
        self,
        paths: Sequence[str],
        asked: npt.NDArray[np.uint64],
        first: npt.NDArray[np.intp],
        hits: npt.NDArray[np.intp],
        found: Int64s,
    ) -> None:
        """Compare the paths behind equal hashes; of equal paths the last row counts."""
        rows = self.hash_rows[first[hits]]
        last = np.searchsorted(self.hashes, asked[hits], side="right")
        alone = last - first[hits] == 1
        equal = self._has_paths(rows[alone], [paths[i] for i in hits[alone]])
        found[hits[alone][equal]] = rows[alone][equal]
        for i, end in zip(hits[~alone], last[~alone], strict=True):
            same = [int(r) for r in self.hash_rows[first[i] : end] if self.path(int(r)) == paths[i]]
            found[i] = max(same, default=-1)

    def _has_paths(self, rows: npt.NDArray[Any], paths: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Whether each row has the path beside it; a few are compared without Arrow.

        The first array that Arrow makes of Python objects loads pandas where that is installed,
        which takes a hundred times as long as a refresh.
        """
        if len(paths) <= _FEW:
            pairs = zip(rows.tolist(), paths, strict=True)
            return np.array([self.path(row) == path for row, path in pairs], np.bool_)
        here = self.text_columns["path"].take(rows).to_column().to_arrow()
        there = pa.array(paths, pa.large_string())
        return np.asarray(pc.equal(here, there)).astype(np.bool_)

    def path_hashes(self) -> npt.NDArray[np.uint64]:
        found = np.empty(self.n, np.uint64)
        found[self.hash_rows] = self.hashes
        return found

    def sorted_hashes(self) -> npt.NDArray[np.uint64]:
        return self.hashes

    @property
    def nbytes(self) -> int:
        total = self.hashes.nbytes + self.hash_rows.nbytes
        ints = [c.data for c in self.int_columns.values()]
        total += sum(a.nbytes for a in ints if a is not None)
        texts = [*self.text_columns.values(), *self.list_columns.values()]
        texts += [c for m in self.map_columns.values() for c in m.columns.values()]
        return total + sum(t.nbytes for t in texts)


def _counts_by_skeleton(stats: PackedText, kind: str, column: str) -> Int64s:
    """Find once per skeleton which slot holds the count, then copy that slot."""
    assert stats.skeletons is not None
    found = np.full(stats.n, UNKNOWN, np.int64)
    codes = stats.whole_codes()
    for code, skeleton in enumerate(stats.skeletons):
        slot = _slot_of_count(skeleton, len(stats.slots), kind, column)
        if slot is None:
            continue
        values = stats.slots[slot].to_uint64().view(np.int64)
        if len(stats.skeletons) == 1:
            found[:] = values
        else:
            mine = codes == code
            found[mine] = values[mine]
    if stats.valid is not None:
        found[_flags(stats.valid, stats.n) == 0] = UNKNOWN
    return found


@lru_cache(maxsize=4096)
def _slot_of_count(skeleton: bytes, slots: int, kind: str, column: str) -> int | None:
    """The slot that a skeleton, read as JSON, has at ``kind.column``."""
    try:
        body = json.loads(render(skeleton, [_SENTINEL + j for j in range(slots)]))
    except (ValueError, RecursionError):
        return None
    inner = body.get(kind) if isinstance(body, dict) else None
    value = inner.get(column) if isinstance(inner, dict) else None
    if type(value) is not int or not 0 <= value - _SENTINEL < slots:
        return None
    return value - _SENTINEL


def string_list(raw: bytes) -> list[str]:
    """The strings of an array in its Avro form, which the decoder has checked."""
    items: list[str] = []
    at = 0
    while True:
        count, at = _zigzag(raw, at)
        if count == 0:
            return items
        if count < 0:
            _, at = _zigzag(raw, at)
        for _ in range(abs(count)):
            size, at = _zigzag(raw, at)
            items.append(raw[at : at + size].decode())
            at += size


def _zigzag(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(raw):
            raise CorruptFileError("a list of texts ends early")
        byte = raw[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return (value >> 1) ^ -(value & 1), at
        shift += 7
