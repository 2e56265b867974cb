"""Damaged files: every decoder answers with a value or ``CorruptFileError``, nothing else.

Each decoder is fed ``INPUTS`` mutants of valid files: bytes changed, numbers replaced by extreme
ones, parts cut out, doubled or cut off. What decodes is then used, so that a wrong size that
slipped through would be read out of bounds (and seen by AddressSanitizer in ``sanitize.sh``).
"""

from __future__ import annotations

import os
import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from native_keys import splitmix_keys

from indextables.errors import CorruptFileError
from indextables.native import (
    BinaryFuse8,
    BinaryFuse16,
    Bundle,
    FilterSet,
    crc32c,
    read_fxrf,
    write_bundle,
    write_fxrf,
)
from indextables.native._cursor import read_all
from indextables.native._fuse import BinaryFuse

INPUTS = int(os.environ.get("INDEXTABLES_FUZZ_INPUTS", "200000"))
EXTREMES = [
    n.to_bytes(size, "little")
    for size in (1, 4, 8)
    for n in (0, 1, 2 ** (8 * size - 1), 2 ** (8 * size) - 1, 2 ** (8 * size - 1) - 1)
] + [b"\xff" * 10, b"\x80" * 9, b"{" * 8, b'"', b"\\", b"[[[["]
PROBES = splitmix_keys(77, 16)
METADATA = b'{"x":[1,{"a":null}],"files":{"\\u00e9":{"end":1,"k":{},"start":0}}}'


def mutate(raw: bytes, rand: Callable[[], float]) -> bytes:
    """One to three random changes; half of them near the start or the end."""
    data = bytearray(raw)
    for _ in range(1 + int(rand() * 3)):
        size = len(data)
        if not size:
            return b""
        where = rand()
        span = size if where < 0.5 else min(size, 48)
        at = int(rand() * span)
        if where > 0.75:
            at = size - 1 - at
        what = rand()
        if what < 0.4:
            data[at] = int(rand() * 256)
        elif what < 0.6:
            data[at] ^= 1 << int(rand() * 8)
        elif what < 0.8:
            piece = EXTREMES[int(rand() * len(EXTREMES))]
            data[at : at + len(piece)] = piece
        elif what < 0.87:
            del data[at:]
        elif what < 0.94:
            del data[at : at + 1 + int(rand() * 16)]
        else:
            data[at:at] = data[int(rand() * size) :][:32]
    return bytes(data)


def mutants(seeds: list[bytes], seed: int) -> Iterator[bytes]:
    rand = random.Random(seed).random
    for i in range(INPUTS):
        yield mutate(seeds[i % len(seeds)], rand)


def check(error: CorruptFileError) -> None:
    """An error names its reason and a place that exists."""
    assert error.reason
    assert error.offset is None or error.offset >= 0


def fuzz(decode: Callable[[bytes], None], seeds: list[bytes], seed: int) -> None:
    """Both outcomes must occur: files that are refused, and files that are still read."""
    refused = 0
    for raw in seeds:
        decode(raw)
    for raw in mutants(seeds, seed):
        try:
            decode(raw)
        except CorruptFileError as error:
            refused += 1
            check(error)
    assert 0.2 * INPUTS < refused < INPUTS


@pytest.mark.parametrize("cls", [BinaryFuse8, BinaryFuse16])
def test_filters(cls: type[BinaryFuse], seed: int) -> None:
    def decode(raw: bytes) -> None:
        read = cls.from_postcard(raw)
        read.contains_many(PROBES)
        assert read.nbytes <= 2 * len(raw)

    fuzz(decode, [cls.build(splitmix_keys(n, n)).to_postcard() for n in (0, 3, 20, 60)], seed)


def use_all(raw: bytes) -> None:
    file = read_fxrf(raw)
    assert file.nbytes <= 16 * len(raw)
    filters = list(file)
    for item in filters:
        item.contains(len(raw))
    if len(raw) % 8 == 0:
        FilterSet(filters).probe(len(raw))


def reseal(raw: bytes) -> bytes:
    """Make the checksum of a version 3 file fit again, so that its inside is looked at too."""
    if len(raw) < 32 or raw[4] != 3 or raw[16]:
        return raw
    head = raw[:20] + raw[24:32]
    size = struct.pack("<Q", len(raw) - 32)
    fitting = crc32c(raw[32:], crc32c(head[:20] + size))
    return raw[:20] + struct.pack("<I", fitting) + size + raw[32:]


def test_fxrf_files(seed: int, native_dir: Path) -> None:
    small = [BinaryFuse8.build(splitmix_keys(n, n)) for n in (0, 5, 20)]
    wide = [BinaryFuse16.build(splitmix_keys(n, n)) for n in (0, 5, 20)]
    seeds = [
        write_fxrf(f, version=v, compression=c)
        for f in (small, wide)
        for v, c in [(1, 0), (2, 0), (2, 3), (3, 0), (3, 0), (3, 1)]
    ]
    golden = Bundle.parse((native_dir / "bundles" / "xref_fixture_fuse8_zstd3.split").read_bytes())
    seeds.append(bytes(golden.member("fuse_filters.bin")))
    fuzz(lambda raw: use_all(reseal(raw)), seeds, seed)


def bundles(data: bytes) -> list[bytes]:
    """Bundles whose files, all but empty ones, lie in ``data``."""
    return [
        write_bundle({"a": data, "é\n": b"", "b/c": b""}, b"hot", trailer=True),
        write_bundle({"a": data} | {f"f{i}": b"" for i in range(6)}, form="xref"),
        data + METADATA + struct.pack("<II", len(METADATA), 0),
    ]


def test_bundles(seed: int) -> None:
    def decode(raw: bytes) -> None:
        bundle = Bundle.parse(raw)
        assert bundle.footer_range[1] == len(raw)
        for name in bundle.files:
            bundle.member(name)
        bytes(bundle.hotcache)

    fuzz(decode, bundles(b"data" * 5), seed)


def test_footers(seed: int) -> None:
    data = bytes(4000)

    def decode(raw: bytes) -> None:
        bundle = Bundle.parse_footer(raw, len(raw) + len(data))
        assert all(0 <= start <= end <= bundle.size for start, end in bundle.files.values())
        bytes(bundle.hotcache)

    fuzz(decode, [raw[len(data) :] for raw in bundles(data)], seed)


@pytest.mark.parametrize("kind", ["varint", "zigzag", "u64", "u32_be"])
def test_cursor_values(kind: str, seed: int) -> None:
    source = np.random.default_rng(seed)
    for _ in range(INPUTS // 20):
        raw = source.integers(0, 256, int(source.integers(0, 40)), np.uint8)
        try:
            read_all(raw, kind)
        except CorruptFileError as error:
            check(error)
