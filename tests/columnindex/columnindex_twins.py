"""The kernels of column indexes once more, in plain Python, byte by byte."""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

GAPS, BITS, REST = 0, 1, 2
HEX = 16


class RefusedError(Exception):
    """The twin will not read this block."""


def unweave(data: bytes, count: int, width: int) -> list[int]:
    return [sum(data[p * count + i] << 8 * p for p in range(width)) for i in range(count)]


def require(condition: bool) -> None:
    if not condition:
        raise RefusedError


@dataclass
class Block:
    keys: list[Any]
    counts: list[int]
    rows: list[list[int]] | None

    def bounds(self, key: Any) -> tuple[int, int]:
        return bisect_left(self.keys, key), bisect_right(self.keys, key)


def read_block(raw: bytes, text: bool, first: int, split_rows: int) -> Block:
    require(len(raw) >= 16)
    values, rows, key_bytes, key_width, count_width, row_width, form = struct.unpack_from(
        "<IIIBBBB", raw
    )
    packed = text and form & HEX != 0
    form -= HEX if packed else 0
    require(form <= REST and (packed or key_width <= 8) and count_width <= 4 and row_width <= 4)
    require(0 < values <= rows <= split_rows)
    if form == GAPS:
        require(row_width > 0)
        row_bytes = row_width * rows
    else:
        require(values == 1 and row_width == 0)
        row_bytes = (split_rows + 7) // 8 if form == BITS else 0
    require(16 + key_bytes + count_width * values + row_bytes == len(raw))
    data = raw[16 : 16 + key_bytes]
    if packed:
        keys: list[Any] = read_digits(data, values, key_width)
    else:
        keys = read_keys(data, values, key_width, text, first)
    at = 16 + key_bytes
    counts = unweave(raw[at:], values, count_width) if count_width else [1] * values
    require(all(counts) and sum(counts) == rows)
    return Block(keys, counts, read_rows(raw[at + count_width * values :], counts, row_width, form))


def read_keys(data: bytes, values: int, width: int, text: bool, first: int) -> list[Any]:
    if text:
        require(width <= 4 and width * values <= len(data))
        lengths = unweave(data, values, width)
        require(width * values + sum(lengths) == len(data))
        ends = [width * values]
        for length in lengths:
            ends.append(ends[-1] + length)
        return [data[a:b] for a, b in pairwise(ends)]
    require(width * values == len(data))
    keys, key = [], first
    for i, gap in enumerate(unweave(data, values, width)):
        key = (key + gap + (1 << 63)) % (1 << 64) - (1 << 63)
        require(i == 0 or key > keys[-1])
        keys.append(key)
    return keys


def read_digits(data: bytes, values: int, width: int) -> list[bytes]:
    pattern, body = data[: -width * values or len(data)], data[len(data) - width * values :]
    require(width * values < len(data) and len(pattern) <= 255)
    require((pattern.count(0) + 1) // 2 == width)
    keys = []
    for i in range(values):
        digits = iter(body[i::values].hex())
        keys.append("".join(chr(c) if c else next(digits) for c in pattern).encode("latin-1"))
    return keys


def read_rows(data: bytes, counts: list[int], width: int, form: int) -> list[list[int]] | None:
    if form == REST:
        return None
    if form == BITS:
        return [[8 * i + b for i, byte in enumerate(data) for b in range(8) if byte >> b & 1]]
    gaps = iter(unweave(data, sum(counts), width))
    found = []
    for count in counts:
        row, rows = 0, []
        for _ in range(count):
            row += next(gaps)
            rows.append(row)
        found.append(rows)
    return found


def rows_are_good(rows: list[int], count: int, split_rows: int) -> bool:
    ascending = all(a < b for a, b in pairwise(rows))
    return len(rows) == count and ascending and rows[-1] < split_rows


def merged(tables: list[list[bytes]]) -> tuple[list[int], list[int]]:
    laid = [(key, i) for i, key in enumerate(k for table in tables for k in table)]
    laid.sort()
    starts = [i for i, (key, _) in enumerate(laid) if i == 0 or laid[i - 1][0] != key]
    return [i for _, i in laid], [*starts, len(laid)]
