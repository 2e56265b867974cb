"""BBIDX001: one block for each value, one directory entry for each block. Big-endian throughout.

The header is 32 bytes (magic, version, kind, block count u32, entries u64, rows u64, reserved u16).
The directory is a u32 count and for each entry the value twice (smallest and largest), an offset
u64 and a length u32. A block is its value, a u32 count and that many row ids of 16 bytes: the
split's number and the row in it. Null is a value of its own and comes first.

A file is refused when any of this does not hold: at least 36 bytes; magic; version 1; a known
kind; entry count equal to block count; known tags of the column's kind; everything inside the file;
blocks contiguous up to the end; each block as long as its count says; values strictly ascending;
rows adding up; rows inside the split; the expected split's number.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from indextables.errors import CorruptFileError
from indextables.splits.lookup.colindex.postings import NO_ROWS, Postings, Rows, TextKeys
from indextables.splits.lookup.colindex.values import MAGNITUDE, Key, Kind

MAGIC = b"BBIDX001"
HEADER = struct.Struct(">8sBBIQQH")
ROW_ID = np.dtype([("block", ">u8"), ("row", ">u8")])
TAGS = {Kind.INT: 1, Kind.UINT: 1, Kind.FLOAT: 2, Kind.TEXT: 3, Kind.BOOL: 4, Kind.TIMESTAMP: 5}
NULL_TAG = b"\x00"


def encode(postings: Postings, block_id: int = 0) -> bytes:
    """The file of an index."""
    values = [encoded_value(postings.kind, key) for key in _keys(postings)]
    groups = [postings.rows_between(i, i + 1) for i in range(postings.distinct)]
    if len(postings.nulls):
        values, groups = [NULL_TAG, *values], [postings.nulls, *groups]
    count = len(values)
    total = sum(map(len, groups))
    header = HEADER.pack(MAGIC, 1, postings.kind, count, count, total, 0)
    offset = len(header) + 4 + sum(2 * len(v) + 12 for v in values)
    directory, blocks = [struct.pack(">I", count)], []
    for value, rows in zip(values, groups, strict=True):
        block = value + struct.pack(">I", len(rows)) + _row_ids(rows, block_id)
        directory.append(value + value + struct.pack(">QI", offset, len(block)))
        blocks.append(block)
        offset += len(block)
    return b"".join([header, *directory, *blocks])


def _keys(postings: Postings) -> Iterator[Key]:
    return (postings.key_at(i) for i in range(postings.distinct))


def _row_ids(rows: Rows, block_id: int) -> bytes:
    ids = np.empty(len(rows), ROW_ID)
    ids["block"], ids["row"] = block_id, rows
    return ids.tobytes()


def encoded_value(kind: Kind, key: Key | None) -> bytes:
    """A value as it stands in the file: its tag and its payload."""
    if key is None:
        return NULL_TAG
    tag = bytes([TAGS[kind]])
    if isinstance(key, bytes):
        return tag + struct.pack(">I", len(key)) + key
    if kind is Kind.BOOL:
        return tag + bytes([key])
    if kind is Kind.FLOAT and key < 0:
        key ^= MAGNITUDE
    return tag + struct.pack(">q", key)


class _Reader:
    """Reads and checks one file; every read is inside it or an error."""

    def __init__(self, data: Any, path: str | None) -> None:
        self.data = memoryview(data)
        self.path = path
        self.kind = Kind.INT

    def fail(self, reason: str, offset: int) -> NoReturn:
        raise CorruptFileError(reason, offset=offset, path=self.path)

    def header(self) -> tuple[int, int]:
        """Block count and total rows."""
        if len(self.data) < HEADER.size + 4:
            self.fail("shorter than an index header", 0)
        magic, version, kind, blocks, entries, rows, _ = HEADER.unpack_from(self.data)
        if magic != MAGIC:
            self.fail("not a BBIDX001 file", 0)
        if version != 1:
            self.fail(f"unknown version {version}", 8)
        if kind not in TAGS:
            self.fail(f"unknown data type {kind}", 9)
        (count,) = struct.unpack_from(">I", self.data, HEADER.size)
        if not blocks == entries == count:
            self.fail("block count and entry count differ", HEADER.size)
        if count * 14 > len(self.data):
            self.fail("more entries than the file can hold", HEADER.size)
        self.kind = Kind(kind)
        return blocks, rows

    def need(self, at: int, size: int) -> None:
        if size > len(self.data) - at:
            self.fail("unexpected end of data", at)

    def value(self, at: int) -> tuple[Key | None, int]:
        """The value at an offset, and the offset after it."""
        self.need(at, 1)
        tag = self.data[at]
        if tag == 0:
            return None, at + 1
        if tag != TAGS[self.kind]:
            known = "differs from the column's" if tag in TAGS.values() else "is unknown"
            self.fail(f"value tag {tag} {known}", at)
        if self.kind is Kind.BOOL:
            self.need(at, 2)
            return int(self.data[at + 1] != 0), at + 2
        if self.kind is Kind.TEXT:
            self.need(at, 5)
            (size,) = struct.unpack_from(">I", self.data, at + 1)
            self.need(at + 5, size)
            return bytes(self.data[at + 5 : at + 5 + size]), at + 5 + size
        self.need(at, 9)
        (number,) = struct.unpack_from(">q", self.data, at + 1)
        if self.kind is Kind.FLOAT:
            number = self._float_key(number, at)
        return int(number), at + 9

    def _float_key(self, bits: int, at: int) -> int:
        key = bits if bits >= 0 else bits ^ MAGNITUDE
        infinite = 0x7FF0000000000000
        if key == -1 or key < ~infinite or (key > infinite and key != 0x7FF8000000000000):
            self.fail("a float that is not in normal form", at)
        return key

    def entry(self, at: int) -> tuple[Key | None, int, int, int, int]:
        """(value, its size, block offset, block length, offset after the entry)."""
        low, middle = self.value(at)
        high, end = self.value(middle)
        if low != high:
            self.fail("an entry with more than one value", at)
        self.need(end, 12)
        offset, length = struct.unpack_from(">QI", self.data, end)
        return low, middle - at, offset, length, end + 12

    def rows(self, offset: int, size: int, length: int, num_rows: int, block_id: int) -> Rows:
        """The row ids of one block, checked."""
        (count,) = struct.unpack_from(">I", self.data, offset + size)
        if size + 4 + ROW_ID.itemsize * count != length or count == 0:
            self.fail("a block is not as long as its count says", offset)
        ids = np.frombuffer(self.data, ROW_ID, count, offset + size + 4)
        if (ids["block"] != block_id).any():
            self.fail("the index belongs to another split", offset)
        found = ids["row"]
        if int(found[-1]) >= num_rows or (found[1:] <= found[:-1]).any():
            self.fail("row numbers are not ascending inside the split", offset)
        return found.astype(np.uint32)


def decode(data: Any, num_rows: int, block_id: int = 0, path: str | None = None) -> Postings:
    """The index in a file, after every check."""
    reader = _Reader(data, path)
    count, total = reader.header()
    keys: list[Key | None] = []
    places: list[tuple[int, int, int]] = []
    at = HEADER.size + 4
    for _ in range(count):
        key, size, offset, length, after = reader.entry(at)
        if keys and not _ascends(keys[-1], key):
            reader.fail("values are not strictly ascending", at)
        keys.append(key)
        places.append((offset, size, length))
        at = after
    groups = []
    for key, (offset, size, length) in zip(keys, places, strict=True):
        if offset != at or length < size + 4 or offset + length > len(reader.data):
            reader.fail("blocks are not contiguous inside the file", at)
        if reader.value(offset)[0] != key:
            reader.fail("a block's value differs from its entry's", offset)
        groups.append(reader.rows(offset, size, length, num_rows, block_id))
        at = offset + length
    if at != len(reader.data):
        reader.fail("bytes after the last block", at)
    if sum(map(len, groups)) != total or total > num_rows:
        reader.fail("rows do not add up", 22)
    return _postings(reader.kind, keys, groups, num_rows)


def _ascends(before: Key | None, after: Key | None) -> bool:
    if before is None:
        return after is not None
    return after is not None and before < after  # type: ignore[operator]


def _postings(kind: Kind, keys: list[Any], groups: list[Rows], num_rows: int) -> Postings:
    nulls = NO_ROWS
    if keys and keys[0] is None:
        keys, nulls, groups = keys[1:], groups[0], groups[1:]
    offsets = np.append(0, np.cumsum([len(g) for g in groups])).astype(np.int64)
    rows = np.concatenate([NO_ROWS, *groups])
    if kind is not Kind.TEXT:
        return Postings(kind, np.array(keys, np.int64), offsets, rows, nulls, num_rows)
    ends = np.append(0, np.cumsum([len(k) for k in keys])).astype(np.int64)
    return Postings(kind, TextKeys(b"".join(keys), ends), offsets, rows, nulls, num_rows)
