"""A table of value hashes: which rows may hold a value, for columns where nearly all differ.

An inverted index of unique strings costs more than everything else in a split. This table answers
the one question such columns are asked (equality) in five bytes a row. It is sorted by the first 32
bits of the key hash (``expr.keys``); the first ``bucket_bits`` of them name a bucket of about 256
entries, the next 16 are stored, so a look-up meets a stranger in one of 250 cases. Rows found are
candidates: the caller verifies them against the rows member.

    header | u32 starts[buckets + 1] | u32 crc[pages] | u32 crc of all before | pages
    page   = the entries of 64 buckets: u16 stored hash bits of each, then its row (3 or 4 bytes)

A reader keeps the directory and fetches, checks and keeps the pages it needs. A table that costs
less than a second request is fetched whole with its directory.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indextables.errors import CorruptFileError
from indextables.native._crc32c import crc32c

_HEADER = struct.Struct("<8sQIIII")
_MAGIC = b"ITXHASH1"
_PER_BUCKET = 256
_PAGE_BUCKETS = 64
_MOST_BITS = 16
HEAD_BYTES = 64 << 10

ReadRanges = Callable[[Sequence[tuple[int, int]]], Sequence[Any]]


def build_hash_table(hashes: NDArray[np.uint64], rows: NDArray[np.uint32]) -> bytes:
    """The member for ``hashes[i]`` at row ``rows[i]``."""
    count = len(hashes)
    bits = min(_MOST_BITS, max(0, (max(count, 1) // _PER_BUCKET).bit_length()))
    keys = (hashes & np.uint64(0xFFFFFFFF00000000)) | rows.astype(np.uint64)
    keys.sort()
    prefixes = (keys >> np.uint64(48 - bits)).astype(np.uint64)
    starts = np.searchsorted(
        prefixes >> np.uint64(16), np.arange((1 << bits) + 1, dtype=np.uint64)
    ).astype("<u4")
    stored = (prefixes & np.uint64(0xFFFF)).astype("<u2")
    width = 3 if not count or int(rows.max()) < 1 << 24 else 4
    row_bytes = (keys & np.uint64(0xFFFFFFFF)).astype("<u4").view(np.uint8).reshape(-1, 4)
    pages = [
        stored[a:b].tobytes() + row_bytes[a:b, :width].tobytes() for a, b in _page_bounds(starts)
    ]
    header = _HEADER.pack(_MAGIC, count, bits, width, _PAGE_BUCKETS, len(pages))
    checks = np.array([crc32c(page) for page in pages], "<u4").tobytes()
    directory = header + starts.tobytes() + checks
    return b"".join([directory, struct.pack("<I", crc32c(directory)), *pages])


def _page_bounds(starts: NDArray[Any]) -> list[tuple[int, int]]:
    edges = [*starts[: len(starts) - 1 : _PAGE_BUCKETS].tolist(), int(starts[-1])]
    return list(pairwise(edges))


class HashTable:
    """Look-ups in such a member, reading only the pages they need."""

    def __init__(
        self, read_ranges: ReadRanges, length: int, path: str, *, at_once: int = HEAD_BYTES
    ) -> None:
        """``at_once`` bytes are not worth a request of their own."""
        self._read_ranges = read_ranges
        self._head_bytes = length if length <= at_once else HEAD_BYTES
        self._head: Any = b""
        self._path = path
        self._pages: dict[int, tuple[NDArray[np.int64], NDArray[np.uint32]]] = {}
        self._open(length)

    def _open(self, length: int) -> None:
        (head,) = self._read_ranges([(0, min(length, self._head_bytes))])
        if len(head) < _HEADER.size:
            raise self._corrupt("the hash table is too short")
        magic, count, self._bits, self._width, self._per_page, pages = _HEADER.unpack_from(head)
        size = _HEADER.size + 4 * ((1 << min(self._bits, 32)) + 1 + pages)
        fits = self._width in (3, 4) and self._per_page > 0 and self._bits <= _MOST_BITS
        if magic != _MAGIC or size + 4 > length or not fits:
            raise self._corrupt("the hash table has a broken header")
        if size + 4 > len(head):
            (head,) = self._read_ranges([(0, size + 4)])
        (expected,) = struct.unpack_from("<I", head, size)
        if crc32c(memoryview(head)[:size]) != expected:
            raise self._corrupt("the hash table's directory has a wrong checksum")
        self._head = head
        words = np.frombuffer(head, "<u4", (size - _HEADER.size) // 4, _HEADER.size)
        self._starts = words[: (1 << self._bits) + 1].astype(np.int64)
        self._checks = words[(1 << self._bits) + 1 :]
        self._base = size + 4
        self.count = int(count)
        buckets = 1 << self._bits
        ascending = self._starts[0] == 0 and bool((np.diff(self._starts) >= 0).all())
        if not ascending or len(self._checks) != -(-buckets // self._per_page):
            raise self._corrupt("the hash table's buckets do not add up")
        if int(self._starts[-1]) != count or self._base + count * (2 + self._width) != length:
            raise self._corrupt("the hash table has a wrong length")

    def _corrupt(self, reason: str) -> CorruptFileError:
        return CorruptFileError(reason, path=self._path)

    def lookup(self, hashes: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """Rows that may hold one of the hashed values, ascending."""
        if len(hashes) == 1:
            return self._lookup_one(int(hashes[0]) >> (48 - self._bits))
        prefixes = np.unique(hashes >> np.uint64(48 - self._bits)).astype(np.int64)
        numbers = (prefixes >> 16) // self._per_page
        pages = np.unique(numbers)
        self._load(pages)
        found = [self._probe(int(n), prefixes[numbers == n]) for n in pages]
        return np.unique(np.concatenate(found)) if found else np.empty(0, np.uint32)

    def _lookup_one(self, prefix: int) -> NDArray[np.uint32]:
        number = (prefix >> 16) // self._per_page
        if number not in self._pages:
            self._load(np.array([number]))
        keys, rows = self._pages[number]
        start = int(keys.searchsorted(prefix, "left"))
        found = rows[start : start + int(keys[start:].searchsorted(prefix, "right"))]
        return found if len(found) < 2 else np.sort(found)  # bits that are not stored order them

    def _probe(self, number: int, prefixes: NDArray[np.int64]) -> NDArray[np.uint32]:
        keys, rows = self._pages[number]
        left = keys.searchsorted(prefixes, "left")
        right = keys.searchsorted(prefixes, "right")
        return np.concatenate([rows[a:b] for a, b in zip(left, right, strict=True)])

    def _load(self, numbers: NDArray[Any]) -> None:
        missing = [int(n) for n in numbers if int(n) not in self._pages]
        bounds = [self._bounds(n) for n in missing]
        entry = 2 + self._width
        ranges = [(self._base + a * entry, self._base + b * entry) for a, b in bounds]
        for number, (a, b), raw in zip(missing, bounds, self._parts(ranges), strict=True):
            if crc32c(raw) != self._checks[number]:
                raise self._corrupt(f"page {number} of the hash table has a wrong checksum")
            self._pages[number] = self._decode(number, raw, b - a)

    def _parts(self, ranges: Sequence[tuple[int, int]]) -> Sequence[Any]:
        """Parts of the table, out of what came with its directory where they lie in it."""
        if all(end <= len(self._head) for _, end in ranges):
            view = memoryview(self._head)
            return [view[start:end] for start, end in ranges]
        return self._read_ranges(ranges)

    def _bounds(self, number: int) -> tuple[int, int]:
        first, last = self._buckets(number)
        return int(self._starts[first]), int(self._starts[last])

    def _buckets(self, number: int) -> tuple[int, int]:
        first = number * self._per_page
        return first, min(first + self._per_page, len(self._starts) - 1)

    def _decode(
        self, number: int, raw: Any, count: int
    ) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
        """The entries of a page: bucket and stored bits as one ascending number, and the row."""
        first, last = self._buckets(number)
        sizes = np.diff(self._starts[first : last + 1])
        keys = np.repeat(np.arange(first, last) << 16, sizes) | np.frombuffer(raw, "<u2", count)
        wide = np.zeros((count, 4), np.uint8)
        packed = np.frombuffer(raw, np.uint8, count * self._width, 2 * count)
        wide[:, : self._width] = packed.reshape(count, self._width)
        return keys, wide.view("<u4").reshape(-1)
