"""BBIDX002: the compact form, little-endian: blocks of consecutive values, a footer to find them.

    "BBIDX002" | blocks | footer | u64 footer offset | u32 footer length | u32 crc32c | "BBIDX002"

A block is one zstd frame over: u32 values, u32 rows, u32 key bytes, three u8 widths (keys, counts,
rows) and one u8 form; then keys, counts, rows. Numbers are stored as *planes*: all lowest bytes,
then all next ones, as many as the largest number needs; zstd then sees bytes of equal weight side
by side. Keys that are numbers are differences to the key before; text is the planes of its lengths,
then the bytes. Text of one length that differs in hexadecimal digits only, such as uuids, is packed
instead, which adds 16 to the form: a pattern (zero for a digit, else the byte all keys have there),
then two digits a byte as planes, the first bytes first; the key width is the bytes of one key.
Counts have width 0 where every value has one row. Rows are differences inside a
value, the first counted from zero. A value that holds a large share of the split stands in a block
of its own, of form 1: its rows are one bit for each row of the split. If one value has more than
half of the rows, none of them are stored (form 2): they are the rows no other value has.

The footer is a u32 length and JSON (kind, numRows, distinct, blocks, and the split where known);
for each block u64 offset, u64 values before and u64 rows before (one more of each for the end), u32
raw length and u32 crc32c; the first key of each block and the last key of all; the rows of Null as
u32 count, u8 width and planes. An exact look-up reads the footer once and one block.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from indextables.native import crc32c
from indextables.splits.lookup.colindex.postings import Int64s, Keys, Postings, Rows, TextKeys
from indextables.splits.lookup.colindex.values import Kind

MAGIC = b"BBIDX002"
BLOCK_HEAD = struct.Struct("<IIIBBBB")
TAIL = struct.Struct("<QII8s")
BLOCK_BYTES = 32 << 10
MOST_BLOCK_BYTES = 64 << 20
LEVEL = 3
GAPS, BITS, REST = 0, 1, 2
HEX = 16
HEX_LONGEST = 255
DIGITS = np.full(256, 255, np.uint8)
DIGITS[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)
DENSE_SHARE = 8


def codec() -> Any:
    """The compressor of blocks."""
    return pa.Codec("zstd", compression_level=LEVEL)


def planes(numbers: NDArray[Any]) -> tuple[int, bytes]:
    """Bytes per number, and the numbers' bytes by weight."""
    if len(numbers) == 0:
        return 0, b""
    width = (int(numbers.max()).bit_length() + 7) // 8 or 1
    wide = np.ascontiguousarray(numbers, "<u8").view(np.uint8).reshape(-1, 8)
    return width, wide[:, :width].T.tobytes()


def unplanes(raw: Any, start: int, count: int, width: int) -> NDArray[np.uint32]:
    """The numbers, of at most four bytes, behind planes."""
    stacked = np.frombuffer(raw, np.uint8, count * width, start).reshape(width, count)
    found = np.zeros((count, 4), np.uint8)
    found[:, :width] = stacked.T
    return found.view("<u4").reshape(count)


def row_gaps(rows: Rows, offsets: Int64s) -> NDArray[np.int64]:
    """Differences of rows inside each value; the first of a value is the row itself."""
    wide = rows.astype(np.int64)
    gaps = np.diff(wide, prepend=0)
    starts = offsets[:-1] - offsets[0]
    gaps[starts] = wide[starts]
    return gaps


def encode(
    postings: Postings,
    *,
    block_bytes: int = BLOCK_BYTES,
    extra: Mapping[str, Any] | None = None,
) -> bytes:
    """The file of an index; ``extra`` goes into the footer's JSON."""
    compress = codec()
    cuts = _cuts(postings, block_bytes)
    rest = _rest(postings)
    frames, raw_sizes, checks = [], [], []
    for start, stop in pairwise(cuts):
        raw = _block(postings, int(start), int(stop), rest)
        frame = compress.compress(raw, asbytes=True)
        frames.append(frame)
        raw_sizes.append(len(raw))
        checks.append(crc32c(frame))
    body = b"".join([MAGIC, *frames])
    offsets = len(MAGIC) + np.cumsum([0, *map(len, frames)])
    footer = b"".join(_footer(postings, cuts, offsets, raw_sizes, checks, extra or {}))
    return b"".join([body, footer, TAIL.pack(len(body), len(footer), crc32c(footer), MAGIC)])


def _cuts(postings: Postings, block_bytes: int) -> Int64s:
    """Positions at which blocks begin, and the end."""
    if postings.distinct == 0:
        return np.zeros(1, np.int64)
    weight = 4 * postings.offsets.astype(np.int64)
    if isinstance(postings.keys, TextKeys):
        weight = weight + postings.keys.offsets - postings.keys.offsets[0]
    else:
        weight = weight + 4 * np.arange(postings.distinct + 1)
    dense = np.flatnonzero(_is_dense(np.diff(postings.offsets), postings.num_rows))
    walls = np.unique(np.concatenate([dense, dense + 1, [postings.distinct]]))
    cuts = [0]
    while cuts[-1] < postings.distinct:
        reach = int(np.searchsorted(weight, weight[cuts[-1]] + block_bytes, "right")) - 1
        wall = int(walls[np.searchsorted(walls, cuts[-1], "right")])
        cuts.append(min(max(reach, cuts[-1] + 1), wall))
    return np.array(cuts, np.int64)


def _is_dense(counts: Int64s, num_rows: int) -> NDArray[np.bool_]:
    """Values whose rows are smaller as bits than as differences."""
    return (counts > 1) & (counts * DENSE_SHARE >= num_rows)


def _rest(postings: Postings) -> int:
    """The value whose rows follow from all the others; -1: none."""
    counts = np.diff(postings.offsets)
    largest = int(counts.argmax()) if len(counts) else -1
    if largest < 0 or counts[largest] < 2 or 2 * counts[largest] <= postings.num_rows:
        return -1
    return largest


def _bits(rows: Rows, num_rows: int) -> bytes:
    marks = np.zeros(num_rows, np.uint8)
    marks[rows] = 1
    return np.packbits(marks, bitorder="little").tobytes()


def _block(postings: Postings, start: int, stop: int, rest: int) -> bytes:
    offsets = postings.offsets[start : stop + 1]
    counts = np.diff(offsets)
    packing, key_width, keys = _key_bytes(postings.keys, start, stop)
    count_width, count_bytes = (0, b"") if (counts == 1).all() else planes(counts)
    rows = postings.rows[offsets[0] : offsets[-1]]
    if start == rest:
        form, row_width, row_bytes = REST, 0, b""
    elif _is_dense(counts, postings.num_rows).any():
        form, row_width, row_bytes = BITS, 0, _bits(rows, postings.num_rows)
    else:
        form = GAPS
        row_width, row_bytes = planes(row_gaps(rows, offsets))
    widths = (key_width, count_width, row_width, form + packing)
    head = BLOCK_HEAD.pack(stop - start, len(rows), len(keys), *widths)
    return b"".join([head, keys, count_bytes, row_bytes])


def _key_bytes(keys: Keys, start: int, stop: int) -> tuple[int, int, bytes]:
    """What the keys add to the form, their width, and their bytes."""
    if not isinstance(keys, TextKeys):
        numbers = keys[start:stop].view(np.uint64)
        return 0, *planes(np.diff(numbers, prepend=numbers[:1]))
    part = keys.slice(start, stop)
    packed = hex_packed(part) if len(part) > 1 else None
    if packed is not None:
        return HEX, *packed
    width, lengths = planes(part.lengths)
    return 0, width, lengths + bytes(part.payload)


def hex_packed(keys: TextKeys) -> tuple[int, bytes] | None:
    """Bytes per key, and pattern and digits, of keys that differ in digits only; else ``None``."""
    lengths = keys.lengths
    length = int(lengths[0])
    if not 0 < length <= HEX_LONGEST or (lengths != length).any():
        return None
    grid = np.frombuffer(keys.payload, np.uint8).reshape(-1, length)
    varies = (grid != grid[0]).any(axis=0)
    digits = DIGITS[grid[:, varies]]
    if (digits > 15).any() or (grid[0][~varies] == 0).any():
        return None
    if digits.shape[1] % 2:
        digits = np.pad(digits, ((0, 0), (0, 1)))
    packed = digits[:, 0::2] << 4 | digits[:, 1::2]
    pattern = np.where(varies, 0, grid[0]).astype(np.uint8)
    return packed.shape[1], pattern.tobytes() + packed.T.tobytes()


def _footer(
    postings: Postings,
    cuts: Int64s,
    offsets: NDArray[Any],
    raw_sizes: list[int],
    checks: list[int],
    extra: Mapping[str, Any],
) -> Iterator[bytes]:
    facts = {
        "kind": int(postings.kind),
        "numRows": postings.num_rows,
        "distinct": postings.distinct,
        "blocks": len(raw_sizes),
        **extra,
    }
    text = json.dumps(facts, separators=(",", ":"), sort_keys=True).encode()
    yield struct.pack("<I", len(text))
    yield text
    yield offsets.astype("<u8").tobytes()
    yield cuts.astype("<u8").tobytes()
    yield postings.offsets[cuts].astype("<u8").tobytes()
    yield np.array(raw_sizes, "<u4").tobytes()
    yield np.array(checks, "<u4").tobytes()
    yield from _fences(postings, cuts)
    gaps = np.diff(postings.nulls.astype(np.int64), prepend=0)
    width, null_bytes = planes(gaps)
    yield struct.pack("<IB", len(gaps), width)
    yield null_bytes


def _fences(postings: Postings, cuts: Int64s) -> Iterator[bytes]:
    if postings.distinct == 0:
        return
    at = [*cuts[:-1].tolist(), postings.distinct - 1]
    if postings.kind is not Kind.TEXT:
        yield np.asarray(postings.keys)[at].astype("<i8").tobytes()
        return
    texts = [postings.keys[i] for i in at]
    yield np.cumsum([0, *map(len, texts)]).astype("<u4").tobytes()
    yield from texts
