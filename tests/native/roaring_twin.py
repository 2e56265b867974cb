"""A plain-Python twin of the Roaring kernel, written from the format description alone."""

from __future__ import annotations

import struct
from itertools import groupby


def encode(rows: list[int], form: str = "best") -> bytes:
    """Portable 64-bit form; ``form``: best, or every container as array, bits or runs."""
    out = b""
    highs = [(high, list(part)) for high, part in groupby(rows, key=lambda r: r >> 32)]
    for high, part in highs:
        out += struct.pack("<I", high) + _bitmap([r & 0xFFFFFFFF for r in part], form)
    return struct.pack("<Q", len(highs)) + out


def _runs(lows: list[int]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for low in lows:
        if found and low == sum(found[-1]) + 1:
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((low, 0))
    return found


def _plain(lows: list[int]) -> bytes:
    if len(lows) <= 4096:
        return struct.pack(f"<{len(lows)}H", *lows)
    bits = bytearray(8192)
    for low in lows:
        bits[low >> 3] |= 1 << (low & 7)
    return bytes(bits)


def _run_bytes(lows: list[int]) -> bytes:
    runs = _runs(lows)
    return struct.pack("<H", len(runs)) + b"".join(struct.pack("<HH", *run) for run in runs)


def _bitmap(rows: list[int], form: str) -> bytes:
    parts = [(key, [r & 65535 for r in part]) for key, part in groupby(rows, key=lambda r: r >> 16)]
    bodies = []
    for _, lows in parts:
        plain, runs = _plain(lows), _run_bytes(lows)
        as_runs = form == "runs" or (form == "best" and len(runs) < len(plain))
        bodies.append((as_runs, runs if as_runs else plain))
    count = len(parts)
    with_runs = any(as_runs for as_runs, _ in bodies)
    if with_runs:
        head = struct.pack("<I", 12347 | (count - 1) << 16)
        bits = sum(1 << i for i, (as_runs, _) in enumerate(bodies) if as_runs)
        head += bits.to_bytes((count + 7) // 8, "little")
    else:
        head = struct.pack("<II", 12346, count)
    head += b"".join(struct.pack("<HH", key, len(lows) - 1) for key, lows in parts)
    if not with_runs or count >= 4:
        at = len(head) + 4 * count
        for _, body in bodies:
            head += struct.pack("<I", at)
            at += len(body)
    return head + b"".join(body for _, body in bodies)
