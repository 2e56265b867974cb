"""Plain-Python twins of the kernels: slow, short, written from the format description alone."""

from __future__ import annotations

import json
import math
import struct
from typing import Any

M64 = (1 << 64) - 1
FX_K = 0x517CC1B727220A95


def rotl(v: int, by: int) -> int:
    return ((v << by) | (v >> (64 - by))) & M64


def fx_step(h: int, word: int) -> int:
    return ((rotl(h, 5) ^ word) * FX_K) & M64


def fxhash64(data: bytes) -> int:
    h = 0
    for size in (8, 4, 2, 1):
        while len(data) >= size:
            h = fx_step(h, int.from_bytes(data[:size], "little"))
            data = data[size:]
            if size < 8:
                break
    return fx_step(h, 0xFF)


P1, P2, P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P4, P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def xx_round(lane: int, word: int) -> int:
    return (rotl((lane + word * P2) & M64, 31) * P1) & M64


def xxh64(data: bytes, seed: int = 0) -> int:
    size = len(data)
    h = (seed + P5) & M64
    if size >= 32:
        lanes = [(seed + P1 + P2) & M64, (seed + P2) & M64, seed, (seed - P1) & M64]
        while len(data) >= 32:
            words = struct.unpack("<4Q", data[:32])
            lanes = [xx_round(lane, word) for lane, word in zip(lanes, words, strict=True)]
            data = data[32:]
        h = sum(rotl(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) & M64
        for lane in lanes:
            h = ((h ^ xx_round(0, lane)) * P1 + P4) & M64
    h = (h + size) & M64
    while len(data) >= 8:
        h = (rotl(h ^ xx_round(0, int.from_bytes(data[:8], "little")), 27) * P1 + P4) & M64
        data = data[8:]
    if len(data) >= 4:
        h = (rotl(h ^ (int.from_bytes(data[:4], "little") * P1 & M64), 23) * P2 + P3) & M64
        data = data[4:]
    for byte in data:
        h = (rotl(h ^ (byte * P5 & M64), 11) * P1) & M64
    h = ((h ^ (h >> 33)) * P2) & M64
    h = ((h ^ (h >> 29)) * P3) & M64
    return h ^ (h >> 32)


def hash_term(field: str, value: bytes, kind: str) -> int:
    if kind == "fxhash64":
        return fxhash64(field.encode() + b":" + value)
    return xxh64(value, xxh64(field.encode()))


def display_f64(value: float) -> str:
    """Rust's Display: the shortest digits, never an exponent."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    sign = "-" if math.copysign(1, value) < 0 else ""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    point = len(whole) + int(exponent or 0)
    digits = (whole + fraction).rstrip("0") or "0"
    if point <= 0:
        return sign + "0." + "0" * -point + digits
    text = digits[:point].ljust(point, "0")
    return sign + text + ("." + digits[point:] if digits[point:] else "")


def splitmix(state: int, count: int) -> list[int]:
    out = []
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) & M64
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & M64
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & M64
        out.append(z ^ (z >> 31))
    return out


def fmix64(h: int) -> int:
    h = ((h ^ (h >> 33)) * 0xFF51AFD7ED558CCD) & M64
    h = ((h ^ (h >> 33)) * 0xC4CEB9FE1A85EC53) & M64
    return h ^ (h >> 33)


def unmix64(h: int) -> int:
    """The inverse of ``fmix64``: which key has this hash."""
    h ^= h >> 33
    h = (h * pow(0xC4CEB9FE1A85EC53, -1, 1 << 64)) & M64
    h ^= h >> 33
    h = (h * pow(0xFF51AFD7ED558CCD, -1, 1 << 64)) & M64
    return h ^ (h >> 33)


def positions(h: int, length: int, count_length: int) -> list[int]:
    h0 = (h * count_length) >> 64
    mask = length - 1
    return [h0, (h0 + length) ^ ((h >> 18) & mask), (h0 + 2 * length) ^ (h & mask)]


def shape(n: int) -> tuple[int, int]:
    length = 4
    if n:
        length = min(262144, 1 << math.floor(math.log(n) / math.log(3.33) + 2.25))
    capacity = 0
    if n > 1:
        factor = max(1.125, 0.875 + (0.25 * math.log(1e6)) / math.log(n))
        capacity = math.floor(n * factor + 0.5)
    segments = -(-capacity // length)
    return length, (1 if segments < 3 else segments - 2) * length


def peel(hashes: list[int], length: int, count_length: int) -> list[tuple[int, int]] | None:
    """(hash, place of its own slot) in the order of peeling; None where keys are left over."""
    slots: list[list[tuple[int, int]]] = [[] for _ in range(count_length + 2 * length)]
    for h in hashes:
        for place, slot in enumerate(positions(h, length, count_length)):
            slots[slot].append((h, place))
    stack = [slot for slot, here in enumerate(slots) if len(here) == 1]
    taken = []
    while stack:
        slot = stack.pop()
        if len(slots[slot]) != 1:
            continue
        h, place = slots[slot][0]
        taken.append((h, place))
        at = positions(h, length, count_length)
        for step in (1, 2):
            other = (place + step) % 3
            if len(slots[at[other]]) == 2:
                stack.append(at[other])
            slots[at[other]].remove((h, other))
    return taken if len(taken) == len(hashes) else None


def build(
    keys: list[int], bits: int, sized_for: int | None = None, first_seed: int = 0
) -> tuple[int, int, int, list[int]]:
    """(seed, segment length, segment count length, slots)."""
    distinct = sorted(set(keys))
    length, count_length = shape(len(distinct) if sized_for is None else sized_for)
    for seed in splitmix(1, 256)[first_seed:]:
        order = peel([fmix64((key + seed) & M64) for key in distinct], length, count_length)
        if order is None:
            continue
        slots = [0] * (count_length + 2 * length)
        for h, place in reversed(order):
            at = positions(h, length, count_length)
            print_ = (h ^ (h >> 32)) & ((1 << bits) - 1)
            slots[at[place]] = (
                print_ ^ slots[at[0]] ^ slots[at[1]] ^ slots[at[2]] ^ slots[at[place]]
            )
        return seed, length, count_length, slots
    raise AssertionError("no seed of the reference fits")


def contains(built: tuple[int, int, int, list[int]], bits: int, key: int) -> bool:
    seed, length, count_length, slots = built
    h = fmix64((key + seed) & M64)
    a, b, c = positions(h, length, count_length)
    return (h ^ (h >> 32)) & ((1 << bits) - 1) == slots[a] ^ slots[b] ^ slots[c]


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def postcard(built: tuple[int, int, int, list[int]], bits: int) -> bytes:
    seed, length, count_length, slots = built
    head = b"".join(map(varint, (seed, length, length - 1, count_length, len(slots))))
    return head + (bytes(slots) if bits == 8 else b"".join(map(varint, slots)))


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def parse_fxrf(data: bytes) -> tuple[int, int, list[tuple[int, bytes]]]:
    """(version, filter type, [(number of keys, filter bytes)]) of a file that is not packed."""
    magic, version, count, kind = struct.unpack_from("<4sIII", data)
    assert magic == b"FXRF"
    assert data[16] == 0
    body = 32 + 24 * count
    out = []
    for i in range(count):
        offset, size, keys = struct.unpack_from("<QQQ", data, 32 + 24 * i)
        out.append((keys, data[body + offset : body + offset + size]))
    return version, kind, out


def parse_bundle(data: bytes) -> tuple[dict[str, Any], int, bytes]:
    """(file table, footer start, hotcache)."""
    if data[-4:] == b"QWFT":
        data = data[:-16]
    (hot,) = struct.unpack("<I", data[-4:])
    hotcache = data[len(data) - 4 - hot : -4]
    head = data[: len(data) - 4 - hot]
    (size,) = struct.unpack("<I", head[-4:])
    start = len(head) - 4 - size
    metadata = head[start:-4]
    if metadata[:1] != b"{":
        metadata = metadata[8:]
    return json.loads(metadata)["files"], start, hotcache
