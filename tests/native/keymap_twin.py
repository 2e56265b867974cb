"""A plain-Python twin of key-map buckets, written from the format description alone."""

from __future__ import annotations

import struct

from indextables.native import crc32c

Key = tuple[int, int, list[int], int]
"""(remainder, code, splits, row block); no splits: everywhere."""


class Bits:
    """An array of bits, lowest first."""

    def __init__(self) -> None:
        self.value = 0
        self.count = 0

    def put(self, value: int, width: int) -> None:
        self.value |= value << self.count
        self.count += width

    def bytes(self) -> bytes:
        return self.value.to_bytes((self.count + 7) // 8, "little")


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def list_bytes(ids: list[int], splits: int) -> bytes:
    before = [-1, *ids[:-1]]
    gaps = b"".join(varint(b - a - 1) for a, b in zip(before, ids, strict=True))
    bitmap = sum(1 << i for i in ids).to_bytes((splits + 7) // 8, "little")
    if len(bitmap) < len(gaps):
        return varint(2 * len(bitmap) + 1) + bitmap
    return varint(2 * len(gaps)) + gaps


def class_of(key: Key, most: int) -> int:
    _, code, ids, _ = key
    if not ids or len(ids) > most:
        return 3
    if len(ids) > 1:
        return 2
    return 0 if code == 1 else 1


def encode(keys: list[Key], bits: int, splits: int, most: int) -> bytes:
    low = bits - min(bits, len(keys).bit_length() - 1 if keys else 0)
    classes = [class_of(key, most) for key in keys]
    plain = [k for k, c in zip(keys, classes, strict=True) if c == 0]
    singles = [k for k, c in zip(keys, classes, strict=True) if c < 2]
    block_bits = (max((k[3] for k in plain), default=-1) + 1).bit_length()
    upper, lows, kinds, ids, blocks = Bits(), Bits(), Bits(), Bits(), Bits()
    for i, (key, kind) in enumerate(zip(keys, classes, strict=True)):
        upper.value |= 1 << ((key[0] >> low) + i)
        lows.put(key[0] & ((1 << low) - 1), low)
        kinds.put(kind, 2)
    upper.count = len(keys) + (1 << (bits - low))
    for key in singles:
        ids.put(key[2][0], (splits - 1).bit_length())
    for key in plain:
        blocks.put(key[3] if key[3] >= 0 else (1 << block_bits) - 1, block_bits)
    codes = bytes(k[1] for k, c in zip(keys, classes, strict=True) if c)
    listed = [list_bytes(k[2], splits) for k, c in zip(keys, classes, strict=True) if c == 2]
    lists = b"".join(listed)
    head = struct.pack(
        "<IBBHIII", len(keys), low, block_bits, 0, len(singles), len(plain), len(lists)
    )
    parts = [upper, lows, kinds, ids, blocks]
    body = head + b"".join(part.bytes() for part in parts) + codes + lists
    return body + struct.pack("<I", crc32c(body))


def probe(keys: list[Key], remainder: int, most: int) -> tuple[int, list[int] | None, int] | None:
    """What a probe must answer, from the keys themselves."""
    for key in keys:
        if key[0] == remainder:
            kind = class_of(key, most)
            return key[1], None if kind == 3 else key[2], key[3] if kind == 0 else -1
    return None
