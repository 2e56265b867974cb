"""Plain-Python twins of lists of rows and blocks of words, from the format descriptions alone."""

from __future__ import annotations

import struct
from itertools import pairwise

from indextables.native import crc32c

BLOCK = 128
PIECE = 4096


def stopped(value: int) -> bytes:
    """Seven bits a byte, the last one marked."""
    out = bytearray()
    while value >= 128:
        out.append(value & 127)
        value >>= 7
    return bytes([*out, value | 128])


def packed(values: list[int], bits: int) -> bytes:
    """128 numbers in four lanes whose 32-bit words take turns."""
    lanes = [0, 0, 0, 0]
    for i, value in enumerate(values):
        lanes[i % 4] |= value << (i // 4 * bits)
    words = [
        (lanes[lane] >> (32 * number)) & 0xFFFFFFFF for number in range(bits) for lane in range(4)
    ]
    return struct.pack(f"<{len(words)}I", *words)


def width_of(values: list[int]) -> int:
    return max(values).bit_length()


def rows_list(rows: list[int], counts: list[int], record: int) -> bytes:
    """A list of rows as tantivy writes it."""
    table, blocks = b"", b""
    before = -1
    full = len(rows) // BLOCK * BLOCK
    for start in range(0, full, BLOCK):
        part, often = rows[start : start + BLOCK], counts[start : start + BLOCK]
        gaps = [b - a - 1 for a, b in zip([before, *part], part, strict=False)]
        bits = width_of(gaps)
        table += struct.pack("<IB", part[-1], bits | 64)
        blocks += packed(gaps, bits)
        if record:
            less = [count - 1 for count in often]
            table += bytes([width_of(less)])
            blocks += packed(less, width_of(less))
            table += struct.pack("<I", sum(often)) if record == 2 else b""
            table += b"\x07\x09"
        before = part[-1]
    last, rest = max(before, 0), rows[full:]
    for row in rest:
        blocks += stopped(row - last)
        last = row
    if record:
        blocks += b"".join(map(stopped, counts[full:]))
    return (stopped(len(table)) + table if full else b"") + blocks


def position_list(positions: list[list[int]]) -> bytes:
    """The positions of a term, row by row."""
    gaps = [b - a for row in positions for a, b in zip([0, *row], row, strict=False)]
    full = len(gaps) // BLOCK
    parts = [gaps[i * BLOCK : (i + 1) * BLOCK] for i in range(full)]
    widths = bytes(width_of(part) for part in parts)
    body = b"".join(packed(part, width_of(part)) for part in parts)
    return stopped(full) + widths + body + b"".join(map(stopped, gaps[full * BLOCK :]))


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def pieces(lists: list[bytes]) -> bytes:
    """Runs of lists of at most ``PIECE`` bytes, or single longer ones, and their checksums."""
    groups: list[list[bytes]] = []
    for one in lists:
        if groups and sum(map(len, groups[-1])) + len(one) <= PIECE:
            groups[-1].append(one)
        else:
            groups.append([one])
    sums = b"".join(struct.pack("<I", crc32c(b"".join(group))) for group in groups)
    return varint(len(groups)) + b"".join(varint(len(group)) for group in groups) + sums


def shared(one: bytes, other: bytes) -> int:
    return next(
        (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )


def block(
    terms: list[bytes], rows: list[int], lists: list[bytes], places: list[bytes] | None
) -> bytes:
    heads = [0, *(shared(a, b) for a, b in pairwise(terms))]
    tails = [term[head:] for term, head in zip(terms, heads, strict=True)]
    columns = [heads, [len(t) for t in tails], rows, [len(x) for x in lists]]
    if places is not None:
        columns.append([len(p) for p in places])
    out = b"".join(varint(value) for column in columns for value in column)
    out += pieces(lists) + (b"" if places is None else pieces(places))
    return out + b"".join(tails)
