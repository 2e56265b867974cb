"""FXRF files: the reference's bytes, three versions, and what a reader must refuse."""

from __future__ import annotations

import pickle
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import native_twins as twin
import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from native_keys import splitmix_keys

from indextables.errors import CorruptFileError
from indextables.native import (
    BinaryFuse8,
    BinaryFuse16,
    Bundle,
    FxrfFile,
    crc32c,
    read_fxrf,
    write_fxrf,
)
from indextables.native._fuse import BinaryFuse

LAYOUTS = [(1, "fxhash64", 0), (2, "fxhash64", 0), (2, "fxhash64", 3), (3, "xxh64", 0), (3, 0, 9)]


def golden_file(native_dir: Path, name: str) -> bytes:
    bundle = Bundle.parse((native_dir / "bundles" / name).read_bytes())
    return bytes(bundle.member("fuse_filters.bin"))


def bodies(file: FxrfFile) -> list[bytes]:
    return [item.to_postcard() for item in file]


def seal(data: bytes) -> bytes:
    """Give a version 3 file with changed bytes a checksum that fits."""
    raw = bytearray(data)
    head = bytes(raw[:20]) + bytes(raw[24:32])
    payload = bytes(raw[32:])
    if raw[16]:
        payload = zstandard.ZstdDecompressor().decompress(payload, max_output_size=1 << 20)
    struct.pack_into("<I", raw, 20, crc32c(payload, crc32c(head)))
    return bytes(raw)


def test_golden_files(vectors: Callable[[str], Any], native_dir: Path) -> None:
    seen = 0
    for vector in vectors("bundles")["bundles"]:
        known = vector.get("fuse_filters")
        if not known or "index" not in known:
            continue
        seen += 1
        raw = golden_file(native_dir, Path(vector["file"]).name)
        file = read_fxrf(raw)
        kind = "BinaryFuse8" if known["filter_type"] == 1 else "BinaryFuse16"
        assert (file.version, file.hash_kind, file.compression) == (2, "fxhash64", 0)
        assert (len(file), file.filter_type) == (known["num_filters"], kind)
        assert [item.num_keys for item in file] == [row["num_keys"] for row in known["index"]]
        assert write_fxrf(file, version=2, filter_type=kind) == raw
    assert seen == 4


@pytest.mark.parametrize("name", ["xref_8splits", "xref_fixture_fuse8"])
@pytest.mark.parametrize("level", [1, 3, 6, 9])
def test_golden_compressed_files(native_dir: Path, name: str, level: int) -> None:
    packed = read_fxrf(golden_file(native_dir, f"{name}_zstd{level}.split"))
    plain = read_fxrf(golden_file(native_dir, f"{name}.split"))
    assert packed.compression == level
    assert bodies(packed) == bodies(plain)
    assert [a.num_keys for a in packed] == [b.num_keys for b in plain]


@pytest.mark.parametrize("cls", [BinaryFuse8, BinaryFuse16])
@pytest.mark.parametrize(("version", "kind", "level"), LAYOUTS)
@given(sizes=st.lists(st.integers(0, 400), max_size=6), state=st.integers(0, 2**40))
def test_what_is_written_is_read(
    cls: type[BinaryFuse],
    version: int,
    kind: str | int,
    level: int,
    sizes: list[int],
    state: int,
) -> None:
    filters = [cls.build(splitmix_keys(state + i, n)) for i, n in enumerate(sizes)]
    raw = write_fxrf(
        filters, version=version, hash_kind=kind, compression=level, filter_type=cls.__name__
    )
    file = read_fxrf(raw)
    assert (file.version, file.filter_type) == (version, cls.__name__)
    assert file.hash_kind == ("xxh64" if kind == "xxh64" else "fxhash64")
    assert bodies(file) == [item.to_postcard() for item in filters]
    assert [item.num_keys for item in file] == sizes
    if version < 3 and not level:
        found = twin.parse_fxrf(raw)
        assert found[0] == version
        assert found[2] == [(item.num_keys, item.to_postcard()) for item in filters]


def test_filters_are_slices_of_the_file() -> None:
    raw = write_fxrf([BinaryFuse8.build(splitmix_keys(i, 500)) for i in range(3)])
    file = read_fxrf(raw)
    whole = np.frombuffer(raw, np.uint8)
    assert all(np.shares_memory(item.slots, whole) for item in file)
    wide = read_fxrf(write_fxrf([BinaryFuse16.build(splitmix_keys(i, 500)) for i in range(3)]))
    assert (wide[2].contains_many(splitmix_keys(2, 500))).all()
    assert file[-1].to_postcard() == file[2].to_postcard()
    assert pickle.loads(pickle.dumps(file[1])).to_postcard() == file[1].to_postcard()
    with pytest.raises(IndexError):
        file[3]


def test_the_table_may_say_other_numbers_of_keys() -> None:
    empty = BinaryFuse8.build([0])
    file = read_fxrf(write_fxrf([empty, empty], num_keys=[0, 7]))
    assert [item.num_keys for item in file] == [0, 7]


def test_compression_is_kept_only_where_it_helps_and_a_reader_accepts_it() -> None:
    slots = np.random.default_rng(1).integers(0, 256, 1200, np.uint8).tobytes()
    head = b"".join(map(twin.varint, (1, 4, 3, 1192, 1200)))
    noise = BinaryFuse8.from_postcard(head + slots)
    assert read_fxrf(write_fxrf([noise], compression=3)).compression == 0
    alike = [BinaryFuse8()] * 2000
    assert read_fxrf(write_fxrf(alike, compression=3)).compression == 0


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"version": 2, "hash_kind": "xxh64"}, "cannot hold"),
        ({"version": 4}, "cannot hold"),
        ({"version": 1, "compression": 3}, "never compressed"),
        ({"compression": 20}, "zstd level"),
        ({"hash_kind": "md5"}, "unknown hash kind"),
        ({"num_keys": [1, 2]}, "longer"),
    ],
)
def test_what_cannot_be_written(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        write_fxrf([BinaryFuse8()], **options)


def test_one_kind_of_filter_in_a_file() -> None:
    with pytest.raises(ValueError, match="one kind"):
        write_fxrf([BinaryFuse8(), BinaryFuse16()])


# -- corrupt files ------------------------------------------------------------------------------


def test_every_flipped_bit_of_version_3_is_noticed() -> None:
    raw = write_fxrf([BinaryFuse8.build(splitmix_keys(1, 20))], hash_kind="xxh64")
    for at in range(len(raw)):
        for bit in range(8):
            bad = bytearray(raw)
            bad[at] ^= 1 << bit
            with pytest.raises(CorruptFileError):
                read_fxrf(bad)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_truncation_is_noticed(layout: tuple[int, str | int, int]) -> None:
    version, kind, level = layout
    filters = [BinaryFuse8.build(splitmix_keys(i, 30)) for i in range(3)]
    raw = write_fxrf(filters, version=version, hash_kind=kind, compression=level)
    for size in range(len(raw)):
        with pytest.raises(CorruptFileError):
            list(read_fxrf(raw[:size]))


def patched(raw: bytes, at: int, form: str, *values: int) -> bytes:
    out = bytearray(raw)
    struct.pack_into(form, out, at, *values)
    return bytes(out)


@pytest.mark.parametrize(
    ("at", "form", "value", "reason"),
    [
        (0, "<I", 0, "not an FXRF file"),
        (4, "<I", 0, "unknown FXRF version"),
        (4, "<I", 4, "unknown FXRF version"),
        (8, "<I", 2**32 - 1, "table of filters is cut off"),
        (12, "<I", 3, "unknown filter type"),
        (16, "<B", 1, "payload is not zstd"),
        (17, "<B", 1, "reserved bytes"),
        (24, "<Q", 7, "reserved bytes"),
        (20, "<I", 7, "not as long"),
        (32, "<Q", 2**63, "outside the payload"),
        (40, "<Q", 2**64 - 1, "outside the payload"),
        (48, "<Q", 2**63, "impossible number of keys"),
    ],
)
def test_corrupt_headers(at: int, form: str, value: int, reason: str) -> None:
    raw = write_fxrf([BinaryFuse8.build(splitmix_keys(1, 20))], version=2)
    with pytest.raises(CorruptFileError, match=reason):
        read_fxrf(patched(raw, at, form, value))


def test_unknown_hash_kind() -> None:
    raw = write_fxrf([BinaryFuse8()], hash_kind="xxh64")
    with pytest.raises(CorruptFileError, match="unknown hash kind"):
        read_fxrf(seal(patched(raw, 17, "<B", 9)))


def frame(payload: bytes, **options: Any) -> bytes:
    return zstandard.ZstdCompressor(**options).compress(payload)


@pytest.mark.parametrize(
    ("claimed", "packed", "reason"),
    [
        (2**32 - 1, frame(bytes(10)), "too large a size"),
        (10, frame(bytes(11), write_content_size=False), "zstd|size"),
        (12, frame(bytes(11), write_content_size=False), "size"),
        (12, frame(bytes(11)), "contradicts"),
        (200, frame(bytes(1 << 20)), "contradicts"),
        (200, frame(bytes(1 << 20), write_content_size=False), "zstd|size"),
        (11, frame(bytes(11)) + b"more", "zstd"),
        (11, b"", "zstd"),
    ],
)
def test_corrupt_compressed_payloads(claimed: int, packed: bytes, reason: str) -> None:
    head = struct.pack("<4sIIIB3xI8x", b"FXRF", 2, 0, 1, 3, claimed)
    with pytest.raises(CorruptFileError, match=reason):
        read_fxrf(head + packed)


@pytest.mark.parametrize("claimed", [2**10, 2**20, 2**31, 2**32 - 1])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_hostile_claims_allocate_little(version: int, claimed: int) -> None:
    """Memory stays below sixteen times the input, whatever a header claims."""
    raw = bytearray(write_fxrf([BinaryFuse16.build(splitmix_keys(1, 200))], version=version))
    struct.pack_into("<I", raw, 8, claimed)
    bad = seal(bytes(raw)) if version == 3 else bytes(raw)
    tracemalloc.start()
    try:
        with pytest.raises(CorruptFileError):
            list(read_fxrf(bad))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= 16 * len(bad) + 16_384
