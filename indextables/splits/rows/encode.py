"""One chunk of rows into blocks: values out of Arrow, an encoding for each stream, block sizes.

Each stream of a column is *prepared* first: its non-null values in plain numpy arrays, and an
estimate of the bytes a row will take. The estimates of a column's streams add up to its block
size: as many rows (a power of two) as make about ``BLOCK_BYTES`` bytes, so that reading one row
never costs much more than that, however wide the column is. Then the blocks are written.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from indextables.native._rows_encode import BlockWriter
from indextables.splits.rows.layout import (
    BITS,
    FIXED,
    FLOAT,
    LIST,
    MAX_SHIFT,
    STRUCT,
    TEXT,
    Stream,
)
from indextables.splits.rows.text import Choice, TextStream, Values

Array = np.ndarray[Any, Any]

BLOCK_BYTES = 16 << 10
RAW_BLOCK_BYTES = 1 << 20
ESTIMATE_VALUES = 2048
SMALL_DICTIONARY = 1024
BLOCK_HEAD = 18
EMPTY = np.zeros(0, np.uint8)


@dataclass(slots=True)
class Written:
    """The blocks of one stream of one chunk."""

    stream: Stream
    data: bytes
    lengths: Array
    crcs: Array
    page: bytes | None


@dataclass(slots=True)
class Prepared:
    """Values of one stream of one chunk, ready to be cut into blocks."""

    stream: Stream
    slots: int
    mask: Array
    words: Array = field(default_factory=lambda: np.zeros(0, np.uint64))
    high: Array | None = None
    codes: Array | None = None
    text: Values | None = None
    choice: Choice | None = None
    page: bytes | None = None
    cost: float = 0.0
    raw: int = 0
    children: list[Prepared] = field(default_factory=list)

    def walk(self) -> list[Prepared]:
        return [self, *(p for child in self.children for p in child.walk())]


class ColumnEncoder:
    """Encodes the chunks of one column, keeping dictionaries from chunk to chunk."""

    def __init__(self, root: Stream, compression: str, block_rows: int | None) -> None:
        self.root = root
        self.block_rows = block_rows
        self.compression = compression
        self._text = {s.index: TextStream(compression) for s in root.walk() if s.kind == TEXT}
        self._dictionaries: dict[int, tuple[pa.Array, bytes]] = {}

    def encode(self, array: pa.Array) -> tuple[int, list[Written]]:
        """The shift chosen for this chunk and the blocks of every stream."""
        prepared = self._prepare(self.root, array)
        shift = self._shift(prepared, len(array))
        rows = np.minimum(np.arange(0, len(array) + (1 << shift), 1 << shift), len(array))
        bounds = rows.astype(np.int64)
        return shift, list(self._write(prepared, bounds, np.diff(bounds)))

    def _shift(self, prepared: Prepared, rows: int) -> int:
        if self.block_rows is not None:
            return min(self.block_rows.bit_length() - 1, MAX_SHIFT)
        parts = prepared.walk()
        encoded = sum(p.cost for p in parts) / rows
        raw = sum(p.raw for p in parts) / rows
        wanted = min(BLOCK_BYTES / max(encoded, 0.01), RAW_BLOCK_BYTES / max(raw, 0.01))
        return max(0, min(MAX_SHIFT, int(wanted).bit_length() - 1))

    def _prepare(self, stream: Stream, array: pa.Array) -> Prepared:
        mask = EMPTY if array.null_count == 0 else _mask(array)
        ready = Prepared(stream, len(array), mask)
        if stream.kind == STRUCT:
            ready.children = self._fields(stream, array)
        elif stream.kind == LIST:
            self._lists(ready, array)
        elif stream.kind == TEXT:
            self._strings(ready, array)
        elif stream.kind in (FIXED, BITS, FLOAT):
            self._numbers(ready, array)
        ready.cost += len(mask) / 8
        return ready

    def _fields(self, stream: Stream, array: pa.Array) -> list[Prepared]:
        nullable = [array.type.field(i).nullable for i in range(array.type.num_fields)]
        merged = array.flatten() if array.null_count else None
        columns = [
            merged[i] if merged and nullable[i] else array.field(i) for i in range(len(nullable))
        ]
        return [
            self._prepare(child, column)
            for child, column in zip(stream.children, columns, strict=True)
        ]

    def _lists(self, ready: Prepared, array: pa.Array) -> None:
        lists = _as_list(array)
        counts = _list_lengths(lists)
        ready.words = np.cumsum(counts, dtype=np.uint64)
        ready.cost = len(counts) * 1.0
        ready.children = [self._prepare(ready.stream.children[0], lists.flatten())]

    def _strings(self, ready: Prepared, array: pa.Array) -> None:
        compact = array.drop_null() if len(ready.mask) else array
        ready.text = _values(compact)
        ready.choice = self._text[ready.stream.index].choose(ready.text)
        ready.page = ready.choice.page
        ready.cost = ready.choice.cost
        ready.raw = ready.text.total + 4 * ready.slots

    def _numbers(self, ready: Prepared, array: pa.Array) -> None:
        stream = ready.stream
        compact = array.drop_null() if len(ready.mask) else array
        ready.raw = ready.slots * stream.item_bits // 8
        if stream.item_bits == 128:
            halves = _words(compact, 128).reshape(-1, 2)
            ready.words = np.ascontiguousarray(halves[:, 0])
            ready.high = np.ascontiguousarray(halves[:, 1])
            ready.cost = len(halves) * 8.0
            return
        if stream.kind == BITS:
            ready.words = compact.cast(pa.uint8()).to_numpy(zero_copy_only=False).astype(np.uint64)
        else:
            ready.words = _words(compact, stream.item_bits)
        ready.cost = _estimate(stream, ready.words)
        if stream.kind != BITS and self.compression != "none":
            self._number_dictionary(ready)

    def _number_dictionary(self, ready: Prepared) -> None:
        """Use codes where few distinct numbers are spread over a wide range."""
        words = ready.words
        if ready.cost < len(words) / 4:
            return
        sample = words[:: max(len(words) // ESTIMATE_VALUES, 1)]
        if len(np.unique(sample)) > min(SMALL_DICTIONARY, len(sample) // 4):
            return
        encoded = pa.array(words).dictionary_encode()
        known, codes = encoded.dictionary, encoded.indices
        page = b""
        if ready.stream.index in self._dictionaries:
            old, old_page = self._dictionaries[ready.stream.index]
            mapped = pc.index_in(known, old)
            if mapped.null_count == 0:
                known, codes, page = old, mapped.take(codes), old_page
        cost = BLOCK_HEAD + len(words) * max(len(known) - 1, 1).bit_length() / 8
        if len(known) > 4 * SMALL_DICTIONARY or cost + (0 if page else 8 * len(known)) > ready.cost:
            return
        page = page or number_page(known)
        self._dictionaries[ready.stream.index] = (known, page)
        ready.page, ready.cost = page, cost
        ready.codes = np.ascontiguousarray(codes.to_numpy(zero_copy_only=False), np.uint64)

    def _write(self, ready: Prepared, slots: Array, rows: Array) -> list[Written]:
        stream = ready.stream
        if stream.index < 0:
            return []
        values = slots
        if len(ready.mask):
            values = np.concatenate([[0], np.cumsum(ready.mask, dtype=np.int64)])[slots]
        values = np.ascontiguousarray(values, np.int64)
        writer = BlockWriter(slots, values, rows, ready.mask)
        below = slots
        if stream.kind == STRUCT:
            writer.validity()
        elif stream.kind == LIST:
            writer.lists(ready.words)
            ends = np.concatenate([[0], ready.words]).astype(np.int64)
            below = ends[values]
        elif ready.text is not None and ready.choice is not None:
            writer.text(ready.text.data, ready.text.offsets, ready.choice.spelling)
        elif ready.codes is not None:
            writer.integers(ready.codes, True)
        elif ready.high is not None:
            writer.wide(ready.words, ready.high)
        elif stream.kind == FLOAT:
            writer.floats(ready.words, stream.item_bits)
        else:
            writer.integers(ready.words)
        data, lengths, crcs = writer.finish()
        out = [Written(stream, data, lengths, crcs, ready.page)]
        for child in ready.children:
            out += self._write(child, below, rows)
        return out


def number_page(known: pa.Array) -> bytes:
    """A dictionary of 64-bit words as a resource page."""
    head = bytes([1, 0, 0, 0]) + len(known).to_bytes(4, "little")
    return bytes(head + known.to_numpy(zero_copy_only=False).astype("<u8").tobytes())


def _estimate(stream: Stream, words: Array) -> float:
    """Bytes the values will take, from writing some of them as one block."""
    count = min(len(words), ESTIMATE_VALUES)
    if count == 0:
        return 0.0
    start = (len(words) - count) // 2
    bounds = np.array([0, count], np.int64)
    writer = BlockWriter(bounds, bounds, np.array([count], np.int64), EMPTY)
    sample = np.ascontiguousarray(words[start : start + count])
    if stream.kind == FLOAT:
        writer.floats(sample, stream.item_bits)
    else:
        writer.integers(sample)
    return len(writer.finish()[0]) / count * len(words)


def _mask(array: pa.Array) -> Array:
    valid = array.is_valid().cast(pa.uint8())
    return np.asarray(valid.to_numpy(zero_copy_only=False))


def _list_lengths(lists: pa.Array) -> NDArray[np.int64]:
    """How many values each list that is not NULL has, read off the offsets."""
    if len(lists) == 0:
        return np.empty(0, np.int64)
    raw = np.frombuffer(lists.buffers()[1], np.int32)
    ends = raw[lists.offset : lists.offset + len(lists) + 1].astype(np.int64)
    lengths: NDArray[np.int64] = ends[1:] - ends[:-1]
    if lists.null_count == 0:
        return lengths
    valid: NDArray[np.bool_] = lists.is_valid().to_numpy(zero_copy_only=False)
    return lengths[valid]


def _as_list(array: pa.Array) -> pa.Array:
    """A map as the list of its entries; a list as it is.

    The buffers are taken over: Arrow's cast loses the lengths of lists of nulls among the values.
    """
    if not pa.types.is_map(array.type):
        return array
    entries = array.values
    dtype = pa.list_(pa.field("entries", entries.type, nullable=False))
    return pa.Array.from_buffers(
        dtype, len(array), array.buffers()[:2], array.null_count, array.offset, [entries]
    )


def _words(array: pa.Array, item_bits: int) -> Array:
    """Values without nulls as 64-bit words: integers widened with their sign, floats by bits."""
    buffer = array.buffers()[1]
    width = item_bits // 8
    if buffer is None or len(array) == 0:
        return np.zeros(0, np.uint64)
    if item_bits == 128:
        return np.frombuffer(buffer, "<u8", 2 * len(array), 16 * array.offset)
    raw = np.frombuffer(buffer, f"<i{width}", len(array), width * array.offset)
    if pa.types.is_floating(array.type):
        raw = raw.view(f"<u{width}")
    return np.ascontiguousarray(raw.astype(np.int64 if raw.dtype.kind == "i" else np.uint64)).view(
        np.uint64
    )


def _values(array: pa.Array) -> Values:
    """Bytes and offsets of strings without nulls; offsets begin at 0."""
    if len(array) == 0:
        return Values(array, EMPTY, np.zeros(1, np.uint64))
    _, offsets_buffer, data_buffer = array.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32, len(array) + 1, 4 * array.offset)
    data = EMPTY
    if data_buffer is not None and offsets[-1] > offsets[0]:
        data = np.frombuffer(data_buffer, np.uint8, int(offsets[-1] - offsets[0]), int(offsets[0]))
    return Values(array, data, (offsets - offsets[0]).astype(np.uint64))
