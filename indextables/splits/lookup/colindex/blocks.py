"""Reading BBIDX002: the footer once, then the blocks a look-up needs.

Positions number the distinct values of the whole index in order. Every length is compared with what
is there before it is used, every block with its checksum; a difference is a ``CorruptFileError``.
What a forged file can make the reader allocate is bounded by the rows of its split: a frame grows
to what its values and rows can take at most, and text to ``MOST_BLOCK_BYTES`` more.
"""

from __future__ import annotations

import json
import struct
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from indextables.errors import CorruptFileError
from indextables.lazy import lazily
from indextables.lru import LRU
from indextables.native import crc32c
from indextables.native._colindex import IndexBlock
from indextables.splits.lookup.colindex.compact import (
    BLOCK_HEAD,
    MAGIC,
    MOST_BLOCK_BYTES,
    TAIL,
    unplanes,
)
from indextables.splits.lookup.colindex.postings import (
    NO_ROWS,
    Keys,
    Postings,
    Rows,
    TextKeys,
    fits,
    upper_bound,
)
from indextables.splits.lookup.colindex.values import Key, Kind

Fetch = Callable[[Sequence[tuple[int, int]]], list[Any]]

KEPT_BLOCKS = 8
FLAT_BYTES = 256 << 20
FIRST_READ = 64 << 10


class BlockIndex:
    """A compact index, open."""

    def __init__(self, fetch: Fetch, size: int, path: str | None = None) -> None:
        self._fetch, self._size, self.path = fetch, size, path
        self._kept: LRU[int, IndexBlock] = LRU(KEPT_BLOCKS)
        self._asked = 0
        self.bytes_read = 0
        footer, start = self._read_footer()
        self._parse(footer, start)

    def fail(self, reason: str, offset: int | None = None) -> NoReturn:
        raise CorruptFileError(reason, offset=offset, path=self.path)

    # -- footer -----------------------------------------------------------------------------------

    def _read_footer(self) -> tuple[memoryview, int]:
        if self._size < len(MAGIC) + TAIL.size + 4:
            self.fail("shorter than an index", 0)
        begin = max(0, self._size - FIRST_READ)
        tail = self._get(begin, self._size)
        start, length, check, magic = TAIL.unpack_from(tail, len(tail) - TAIL.size)
        if magic != MAGIC:
            self.fail("not a BBIDX002 file", self._size - len(MAGIC))
        if start < len(MAGIC) or start + length + TAIL.size != self._size:
            self.fail("the footer lies outside the file", self._size - TAIL.size)
        if start >= begin:
            footer = tail[start - begin : start - begin + length]
        else:
            footer = self._get(start, start + length)
        if crc32c(footer) != check:
            self.fail("the footer's checksum differs", start)
        return footer, start

    def _get(self, start: int, stop: int) -> memoryview:
        (found,) = self._fetch([(start, stop)])
        self.bytes_read += stop - start
        return memoryview(found)

    def _parse(self, footer: memoryview, footer_at: int) -> None:
        try:
            self._parse_parts(footer)
        except (ValueError, KeyError, TypeError, RecursionError, struct.error) as error:
            self.fail(f"the footer cannot be read: {error}", footer_at)
        starts, values, rows = self._starts, self._values, self._rows
        ascending = all(
            (np.diff(np.array(a, np.float64)) > 0).all() for a in (starts, values, rows)
        )
        whole = starts[0] == len(MAGIC) and starts[-1] == footer_at
        adds_up = values[-1] == self.distinct
        adds_up &= rows[-1] + len(self.nulls) == self.num_rows
        if not (ascending and whole and adds_up and values[0] == rows[0] == 0):
            self.fail("the footer's blocks do not add up", footer_at)
        if len(self.nulls) and not _inside(self.nulls, self.num_rows):
            self.fail("rows of Null lie outside the split", footer_at)

    def _parse_parts(self, footer: memoryview) -> None:
        (size,) = struct.unpack_from("<I", footer)
        self.facts: dict[str, Any] = json.loads(bytes(footer[4 : 4 + size]))
        self.kind = Kind(self.facts["kind"])
        self.num_rows = int(self.facts["numRows"])
        self.distinct = int(self.facts["distinct"])
        count = int(self.facts["blocks"])
        if count < 0:
            raise ValueError("a negative number of blocks")
        at = 4 + size
        step = 8 * (count + 1)
        self._starts: list[int] = np.frombuffer(footer, "<u8", count + 1, at).tolist()
        self._values: list[int] = np.frombuffer(footer, "<u8", count + 1, at + step).tolist()
        self._rows: list[int] = np.frombuffer(footer, "<u8", count + 1, at + 2 * step).tolist()
        at += 3 * step
        self._raw_sizes: list[int] = np.frombuffer(footer, "<u4", count, at).tolist()
        self._checks: list[int] = np.frombuffer(footer, "<u4", count, at + 4 * count).tolist()
        at = self._parse_fences(footer, at + 8 * count, count)
        nulls, width = struct.unpack_from("<IB", footer, at)
        if width > 4 or (nulls and not width) or at + 5 + nulls * width != len(footer):
            raise ValueError("rows of Null are not as long as their count says")
        gaps = unplanes(footer, at + 5, nulls, width) if nulls else NO_ROWS
        self.nulls: Rows = np.cumsum(gaps, dtype=np.uint64).astype(np.uint32)

    def _parse_fences(self, footer: memoryview, at: int, count: int) -> int:
        self._fences: Keys = np.empty(0, np.int64)
        if count == 0:
            return at
        if self.kind is not Kind.TEXT:
            self._fences = np.frombuffer(footer, "<i8", count + 1, at)
            return at + 8 * (count + 1)
        ends = np.frombuffer(footer, "<u4", count + 2, at).astype(np.int64)
        at += 4 * (count + 2)
        if ends[0] != 0 or (np.diff(ends) < 0).any() or ends[-1] > len(footer) - at:
            raise ValueError("fences lie outside the footer")
        self._fences = TextKeys(footer, ends + at)
        return at + int(ends[-1])

    # -- blocks -----------------------------------------------------------------------------------

    def block(self, number: int) -> IndexBlock:
        """One block, from memory if it was read lately."""
        found = self._kept.get(number)
        if found is not None:
            return found
        made = self._opened(number, self._get(self._starts[number], self._starts[number + 1]))
        self._kept.put(number, made)
        return made

    def _opened(self, number: int, frame: Any) -> IndexBlock:
        if crc32c(frame) != self._checks[number]:
            self.fail("a block's checksum differs", self._starts[number])
        return self._parsed(number, self._unpacked(number, frame))

    def _most_raw(self, number: int) -> int:
        """Bytes that a block of so many values and rows can have.

        A key that is longer than others make a block is the first of its block, and a fence.
        """
        values = self._values[number + 1] - self._values[number]
        rows = self._rows[number + 1] - self._rows[number]
        most = BLOCK_HEAD.size + 12 * values + max(4 * rows, (self.num_rows + 7) // 8)
        if isinstance(self._fences, TextKeys):
            most += MOST_BLOCK_BYTES + int(self._fences.lengths[number])
        return most

    def _unpacked(self, number: int, frame: Any) -> bytes:
        at, size = self._starts[number], self._raw_sizes[number]
        if not BLOCK_HEAD.size <= size <= self._most_raw(number):
            self.fail("a block of an impossible size", at)
        zstd = _zstd()
        try:
            if zstd.size_of(frame) != size:
                self.fail("a block's size differs from the footer's", at)
            raw: bytes = zstd.decompress(frame, max_output_size=size, allow_extra_data=False)
        except zstd.error as error:
            self.fail(f"a block cannot be unpacked: {error}", at)
        return raw

    def _parsed(self, number: int, raw: bytes) -> IndexBlock:
        at = self._starts[number]
        text = self.kind is Kind.TEXT
        try:
            block = IndexBlock(raw, text, 0 if text else int(self._fences[number]), self.num_rows)
        except CorruptFileError as error:
            self.fail(f"a block cannot be read: {error}", at)
        if block.size != self._values[number + 1] - self._values[number]:
            self.fail("a block holds another number of values than the footer says", at)
        if block.num_rows != self._rows[number + 1] - self._rows[number]:
            self.fail("a block holds another number of rows than the footer says", at)
        return block

    def _block_of(self, key: Key) -> int:
        """The only block that can hold a key; -1: none."""
        fences = self._fences
        count = len(fences) - 1
        if count <= 0:
            return -1
        if isinstance(fences, TextKeys):
            return min(fences.table.upper(key), count) - 1  # type: ignore[arg-type]
        return upper_bound(fences[:-1], key) - 1

    # -- positions --------------------------------------------------------------------------------

    def key_at(self, position: int) -> Key:
        number = self._number(position)
        return self.block(number).key(position - self._values[number])

    def _number(self, position: int) -> int:
        return bisect_right(self._values, position) - 1

    def lower(self, key: Key) -> int:
        """How many keys are smaller."""
        number = self._block_of(key)
        if number < 0:
            return 0
        return self._values[number + 1] if not fits(key) else self._inside(number, key, False)

    def upper(self, key: Key) -> int:
        """How many keys are smaller or equal."""
        number = self._block_of(key)
        if number < 0:
            return 0
        return self._values[number + 1] if not fits(key) else self._inside(number, key, True)

    def _inside(self, number: int, key: Key, after: bool) -> int:
        block = self.block(number)
        return self._values[number] + (block.upper(key) if after else block.lower(key))

    def rows_before(self, position: int) -> int:
        number = self._number(position)
        base = self._rows[number]
        inside = position - self._values[number]
        return base if inside == 0 else base + self.block(number).rows_before(inside)

    def rows_between(self, start: int, stop: int) -> Rows:
        """Rows of the values at these positions, value by value."""
        if start >= stop:
            return NO_ROWS
        first, last = self._number(start), self._number(stop - 1)
        parts = []
        for number in range(first, last + 1):
            block, base = self.block(number), self._values[number]
            low, high = max(0, start - base), min(block.size, stop - base)
            parts.append(self._rows_of(number, block, low, high))
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _rows_of(self, number: int, block: IndexBlock, start: int, stop: int) -> Rows:
        if block.is_rest:
            others = (self.block(i) for i in range(len(self._raw_sizes)) if i != number)
            return self._rest(block, (b.rows(0, b.size) for b in others))
        try:
            return block.rows(start, stop)
        except CorruptFileError as error:
            self.fail(f"a block cannot be read: {error}", self._starts[number])

    def _rest(self, block: IndexBlock, others: Iterable[Rows]) -> Rows:
        """The rows no other value has."""
        left = np.ones(self.num_rows, np.bool_)
        left[self.nulls] = False
        for rows in others:
            left[rows] = False
        found = np.flatnonzero(left).astype(np.uint32)
        if len(found) != block.num_rows:
            self.fail("the rows of the most frequent value do not add up")
        return found

    def exact(self, key: Key) -> Rows:
        """Rows of one value: one block is read."""
        number = self._block_of(key)
        if number < 0 or not fits(key):
            return NO_ROWS
        block = self.block(number)
        if block.is_rest:
            return self._rows_of(number, block, 0, 1) if block.key(0) == key else NO_ROWS
        try:
            found = block.exact(key)
        except CorruptFileError as error:
            self.fail(f"a block cannot be read: {error}", self._starts[number])
        return NO_ROWS if found is None else found

    def count(self, key: Key) -> int:
        """How many rows have one value: one block is read."""
        number = self._block_of(key)
        if number < 0 or not fits(key):
            return 0
        block = self.block(number)
        return block.rows_before(block.upper(key)) - block.rows_before(block.lower(key))

    # -- all of it --------------------------------------------------------------------------------

    def wants_flat(self, keys: Sequence[Key]) -> bool:
        """Whether the flat form pays for a list of values.

        It costs as much as opening every block, so it is made once look-ups of lists have opened
        that many.
        """
        if "flat" in self.__dict__:
            return True
        if not self.is_small:
            return False
        self._asked += len({self._block_of(key) for key in keys})
        return self._asked >= len(self._raw_sizes)

    @lazily
    def flat(self) -> Postings:
        """The whole index decoded; for many values at once."""
        spans = list(pairwise(self._starts)) if self._raw_sizes else []
        frames = self._fetch(spans) if spans else []
        self.bytes_read += sum(map(len, frames))
        blocks, rows = [], []
        for number, frame in enumerate(frames):
            view = memoryview(frame)
            if crc32c(view) != self._checks[number]:
                self.fail("a block's checksum differs", self._starts[number])
            blocks.append(block := self._parsed(number, self._unpacked(number, view)))
            rows.append(NO_ROWS if block.is_rest else self._rows_of(number, block, 0, block.size))
        for number, block in enumerate(blocks):
            if block.is_rest:
                rows[number] = self._rest(block, rows)
        starts = [b.starts()[1:] + base for b, base in zip(blocks, self._rows, strict=False)]
        offsets = np.concatenate([np.zeros(1, np.int64), *starts])
        found = np.concatenate([NO_ROWS, *rows])
        keys = self._all_keys(blocks)
        return Postings(self.kind, keys, offsets, found, self.nulls, self.num_rows)

    def _all_keys(self, blocks: Sequence[IndexBlock]) -> Keys:
        if self.kind is not Kind.TEXT:
            return np.concatenate([np.empty(0, np.int64), *(b.numbers() for b in blocks)])
        texts, ends, base = [], [np.zeros(1, np.int64)], 0
        for block in blocks:
            text, inside = block.texts()
            texts.append(text)
            ends.append(inside[1:] + base)
            base += len(text)
        return TextKeys(b"".join(texts), np.concatenate(ends))

    @lazily
    def is_small(self) -> bool:
        """Whether the flat form fits into the memory one index may take.

        Packed text is as long as the first key of its block, once for each value.
        """
        size = sum(self._raw_sizes)
        if isinstance(self._fences, TextKeys):
            values = np.diff(np.array(self._values, np.float64))
            size = max(size, int(self._fences.lengths[:-1] @ values))
        return size + 12 * self.num_rows <= FLAT_BYTES


class _Zstd(threading.local):
    """A decompressor for each thread: making one costs more than a block."""

    def __init__(self) -> None:
        import zstandard

        self.decompress = zstandard.ZstdDecompressor().decompress
        self.size_of = zstandard.frame_content_size
        self.error = zstandard.ZstdError


@cache
def _zstd() -> _Zstd:
    return _Zstd()


def _inside(rows: NDArray[Any], num_rows: int) -> bool:
    return len(rows) == 0 or int(rows.max()) < num_rows
