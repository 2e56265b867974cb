"""Reading BBIDX002: the footer once, then the blocks a look-up needs.

Positions number the distinct values of the whole index in order. Every length is compared with what
is there before it is used, every block with its checksum; a difference is a ``CorruptFileError``.
What a forged file can make the reader allocate is bounded by its own footer: a frame may grow to at
most ``MOST_GROWTH`` times its size.
"""

from __future__ import annotations

import json
import struct
import threading
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from indextables.columnindex.compact import BITS, BLOCK_HEAD, GAPS, MAGIC, TAIL, codec, unplanes
from indextables.columnindex.postings import (
    NO_ROWS,
    Int64s,
    Keys,
    Postings,
    Rows,
    TextKeys,
    lower_bound,
    upper_bound,
)
from indextables.columnindex.values import Key, Kind
from indextables.errors import CorruptFileError
from indextables.native import crc32c

Fetch = Callable[[Sequence[tuple[int, int]]], list[Any]]

MOST_GROWTH = 20_000
KEPT_BLOCKS = 8
FLAT_BYTES = 256 << 20
FIRST_READ = 64 << 10


class Block:
    """Some consecutive values; numbers are decoded when asked for."""

    __slots__ = (
        "_counts",
        "_form",
        "_offsets",
        "_rows_at",
        "_widths",
        "keys",
        "num_rows",
        "raw",
        "size",
    )

    def __init__(self, raw: Any, kind: Kind, first: Key, split_rows: int) -> None:
        count, rows, key_bytes, key_width, count_width, row_width, form = BLOCK_HEAD.unpack_from(
            raw
        )
        head = BLOCK_HEAD.size
        if (
            form > BITS
            or key_width > 8
            or count_width > 4
            or row_width > 4
            or not 0 < count <= rows
        ):
            raise CorruptFileError("a block with an impossible head")
        row_bytes = row_width * rows if form == GAPS else (split_rows + 7) // 8
        if head + key_bytes + count_width * count + row_bytes != len(raw):
            raise CorruptFileError("a block is not as long as its head says")
        if form == BITS and count != 1:
            raise CorruptFileError("a block of bits with more than one value")
        self._form = form
        self.raw, self.size, self.num_rows = raw, count, rows
        self._widths = (count_width, row_width)
        self._counts = head + key_bytes
        self._rows_at = self._counts + count_width * count
        self._offsets: Int64s | None = None
        self.keys: Keys = self._decoded_keys(kind, first, key_width, key_bytes)

    def _decoded_keys(self, kind: Kind, first: Key, width: int, size: int) -> Keys:
        head = BLOCK_HEAD.size
        if kind is not Kind.TEXT:
            if width * self.size != size:
                raise CorruptFileError("a block's keys are not as long as their count says")
            gaps = unplanes(self.raw, head, self.size, width, "<u8")
            return np.cumsum(gaps, dtype=np.uint64).view(np.int64) + np.int64(first)
        if width > 4 or width * self.size > size:
            raise CorruptFileError("a block's keys are not as long as their count says")
        ends = np.zeros(self.size + 1, np.int64)
        np.cumsum(unplanes(self.raw, head, self.size, width, "<u4"), out=ends[1:])
        start = head + width * self.size
        if start + int(ends[-1]) != head + size:
            raise CorruptFileError("a block's text is not as long as its lengths say")
        return TextKeys(self.raw, ends + start)

    @property
    def offsets(self) -> Int64s:
        """Where each value's rows begin inside the block."""
        if self._offsets is None:
            width = self._widths[0]
            if width == 0:
                found = np.arange(self.size + 1, dtype=np.int64)
            else:
                found = np.zeros(self.size + 1, np.int64)
                np.cumsum(unplanes(self.raw, self._counts, self.size, width, "<u4"), out=found[1:])
            if found[-1] != self.num_rows:
                raise CorruptFileError("a block's counts do not add up")
            self._offsets = found
        return self._offsets

    def gaps(self, start: int, stop: int) -> NDArray[np.int64]:
        """Row differences of these values."""
        width = self._widths[1]
        low, high = int(self.offsets[start]), int(self.offsets[stop])
        found = np.zeros(high - low, np.int64)
        for plane in range(width):
            at = self._rows_at + plane * self.num_rows + low
            found |= np.frombuffer(self.raw, np.uint8, high - low, at).astype(np.int64) << 8 * plane
        return found

    def rows(self, start: int, stop: int) -> NDArray[np.int64]:
        """Rows of these values, value by value."""
        if self._form == BITS:
            return self._marked()
        gaps = self.gaps(start, stop)
        if self._widths[0] == 0:
            return gaps
        sums = np.cumsum(gaps)
        if stop - start == 1:
            return sums
        starts = self.offsets[start:stop] - self.offsets[start]
        base = np.repeat(sums[starts] - gaps[starts], np.diff(self.offsets[start : stop + 1]))
        found: NDArray[np.int64] = sums - base
        return found

    def _marked(self) -> NDArray[np.int64]:
        bits = np.frombuffer(self.raw, np.uint8, offset=self._rows_at)
        found = np.flatnonzero(np.unpackbits(bits, bitorder="little"))
        if len(found) != self.num_rows:
            raise CorruptFileError("a block of bits with another number of rows")
        return found


class BlockIndex:
    """A compact index, open."""

    def __init__(self, fetch: Fetch, size: int, path: str | None = None) -> None:
        self._fetch, self._size, self.path = fetch, size, path
        self._lock = threading.Lock()
        self._kept: OrderedDict[int, Block] = OrderedDict()
        self._codec = codec()
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
        except (ValueError, KeyError, TypeError, struct.error) as error:
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
        if width > 4 or at + 5 + nulls * width != len(footer):
            raise ValueError("rows of Null are not as long as their count says")
        gaps = unplanes(footer, at + 5, nulls, width, "<u4") if nulls else NO_ROWS
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

    def block(self, number: int) -> Block:
        """One block, from memory if it was read lately."""
        found = self._kept.get(number)
        if found is not None:
            return found
        made = self._opened(number, self._get(self._starts[number], self._starts[number + 1]))
        with self._lock:
            self._kept[number] = made
            while len(self._kept) > KEPT_BLOCKS:
                self._kept.popitem(last=False)
        return made

    def _opened(self, number: int, frame: Any) -> Block:
        at = self._starts[number]
        size = self._raw_sizes[number]
        if crc32c(frame) != self._checks[number]:
            self.fail("a block's checksum differs", at)
        if not BLOCK_HEAD.size <= size <= MOST_GROWTH * len(frame):
            self.fail("a block of an impossible size", at)
        try:
            raw = self._codec.decompress(frame, size)
            block = Block(raw, self.kind, self._fence(number), self.num_rows)
        except (OSError, CorruptFileError) as error:
            self.fail(f"a block cannot be read: {error}", at)
        expected = self._rows[number + 1] - self._rows[number]
        if block.size != self._values[number + 1] - self._values[number]:
            self.fail("a block holds another number of values than the footer says", at)
        if block.num_rows != expected:
            self.fail("a block holds another number of rows than the footer says", at)
        return block

    def _fence(self, number: int) -> Key:
        found = self._fences[number]
        return found if isinstance(found, bytes) else int(found)

    def _block_of(self, key: Key) -> int:
        """The only block that can hold a key; -1: none."""
        fences = self._fences
        if len(fences) == 0:
            return -1
        if isinstance(fences, TextKeys):
            return bisect_right(fences, key, 0, len(fences) - 1) - 1
        return upper_bound(fences[:-1], key) - 1

    # -- positions --------------------------------------------------------------------------------

    def key_at(self, position: int) -> Key:
        number = self._number(position)
        found = self.block(number).keys[position - self._values[number]]
        return found if isinstance(found, bytes) else int(found)

    def _number(self, position: int) -> int:
        return bisect_right(self._values, position) - 1

    def lower(self, key: Key) -> int:
        number = self._block_of(key)
        return 0 if number < 0 else self._bound(number, lower_bound, key)

    def upper(self, key: Key) -> int:
        number = self._block_of(key)
        return 0 if number < 0 else self._bound(number, upper_bound, key)

    def _bound(self, number: int, bound: Callable[[Keys, Key], int], key: Key) -> int:
        return self._values[number] + bound(self.block(number).keys, key)

    def rows_before(self, position: int) -> int:
        number = self._number(position)
        base = self._rows[number]
        inside = position - self._values[number]
        return base if inside == 0 else base + int(self.block(number).offsets[inside])

    def rows_between(self, start: int, stop: int) -> Rows:
        """Rows of the values at these positions, value by value."""
        if start >= stop:
            return NO_ROWS
        first, last = self._number(start), self._number(stop - 1)
        parts = []
        for number in range(first, last + 1):
            block, base = self.block(number), self._values[number]
            parts.append(block.rows(max(0, start - base), min(block.size, stop - base)))
        found = parts[0] if len(parts) == 1 else np.concatenate(parts)
        if not _inside(found, self.num_rows):
            self.fail("rows lie outside the split")
        return found.astype(np.uint32)

    def exact(self, key: Key) -> Rows:
        """Rows of one value: one block is read."""
        number = self._block_of(key)
        if number < 0:
            return NO_ROWS
        block = self.block(number)
        keys = block.keys
        if isinstance(keys, TextKeys):
            at = bisect_left(keys, key)
        else:
            at = lower_bound(keys, key)
        if at >= block.size or keys[at] != key:
            return NO_ROWS
        found = block.rows(at, at + 1)
        if int(found[-1]) >= self.num_rows:
            self.fail("rows lie outside the split")
        return found.astype(np.uint32)

    # -- all of it --------------------------------------------------------------------------------

    @cached_property
    def flat(self) -> Postings:
        """The whole index decoded; for many values at once."""
        count = len(self._raw_sizes)
        spans = list(pairwise(self._starts)) if count else []
        frames = self._fetch(spans) if spans else []
        self.bytes_read += sum(map(len, frames))
        blocks = [self._opened(i, memoryview(f)) for i, f in enumerate(frames)]
        rows = np.concatenate([np.empty(0, np.int64), *(b.rows(0, b.size) for b in blocks)])
        if not _inside(rows, self.num_rows):
            self.fail("rows lie outside the split")
        counts = [np.diff(b.offsets) for b in blocks]
        offsets = np.append(0, np.cumsum(np.concatenate([np.empty(0, np.int64), *counts])))
        keys = _joined(self.kind, [b.keys for b in blocks])
        return Postings(
            self.kind,
            keys,
            offsets.astype(np.int64),
            rows.astype(np.uint32),
            self.nulls,
            self.num_rows,
        )

    @property
    def is_small(self) -> bool:
        """Whether the flat form fits into the memory one index may take."""
        return sum(self._raw_sizes) + 12 * self.num_rows <= FLAT_BYTES


def _inside(rows: NDArray[Any], num_rows: int) -> bool:
    return len(rows) == 0 or int(rows.max()) < num_rows


def _joined(kind: Kind, parts: list[Keys]) -> Keys:
    if kind is not Kind.TEXT:
        return np.concatenate([np.empty(0, np.int64), *(np.asarray(p) for p in parts)])
    texts = [p for p in parts if isinstance(p, TextKeys)]
    lengths = np.concatenate([np.empty(0, np.int64), *(t.lengths for t in texts)])
    ends = np.append(0, np.cumsum(lengths)).astype(np.int64)
    return TextKeys(b"".join(t.payload for t in texts), ends)
