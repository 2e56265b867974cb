"""Damage is noticed, forgery is survived.

Any changed byte must raise ``CorruptFileError`` (checksums). A forger can make checksums right, so
the second half changes bytes and repairs the checksums: then a reader may return other values or
raise, but must neither crash nor allocate out of proportion.
"""

from __future__ import annotations

import random
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from rows_data import LEAVES, mapped, random_array, ranged, scanned, write

from indextables.errors import CorruptFileError, IndexTablesError
from indextables.native._crc32c import crc32c as checksum
from indextables.splits.rows import RowsFile, RowsReader
from indextables.splits.rows.layout import HEAD, parse_directory, stored_streams, streams_of


def small_table() -> pa.Table:
    """Every spelling in a few hundred bytes each."""
    n = 12
    uuids = [f"{i * 7919:08x}-0000-4000-8000-{i * 104729:012x}" for i in range(n)]
    return pa.table(
        {
            "number": pa.array([i * i for i in range(n)]),
            "line": pa.array([1000 + 17 * i for i in range(n)], pa.timestamp("us", "UTC")),
            "price": pa.array([round(i * 1.37, 2) if i != 5 else float("nan") for i in range(n)]),
            "flag": pa.array([None if i % 5 == 0 else i % 2 == 0 for i in range(n)]),
            "level": pa.array([["INFO", "WARN", "ERROR"][i % 3] for i in range(n)]),
            "uuid": pa.array(uuids),
            "text": pa.array([f"connection from host {i * i} reset by peer" for i in range(n)]),
            "tags": pa.array([[f"t{k}" for k in range(i % 4)] for i in range(n)]),
            "pair": pa.array([{"x": i, "y": None if i % 2 else "v"} for i in range(n)]),
            "big": pa.array([10**i for i in range(n)], pa.decimal128(38, 0)),
        }
    )


def read_everything(reader: RowsReader) -> None:
    for _ in reader.scan():
        pass


def test_every_changed_payload_byte_is_noticed(rng: random.Random) -> None:
    file, payload = write(small_table(), block_rows=8)
    read_everything(mapped(file, payload))
    for at in range(len(payload)):
        damaged = bytearray(payload)
        damaged[at] ^= 1 << rng.randrange(8)
        with pytest.raises(CorruptFileError):
            read_everything(mapped(file, bytes(damaged)))


def test_every_changed_directory_byte_is_noticed(rng: random.Random) -> None:
    file, payload = write(small_table(), block_rows=8)
    for at in range(len(file.directory)):
        damaged = bytearray(file.directory)
        damaged[at] ^= 1 << rng.randrange(8)
        with pytest.raises(CorruptFileError):
            read_everything(mapped(_with(file, bytes(damaged)), payload))


@pytest.mark.parametrize("compression", ["auto", "zstd", "none"])
def test_changed_bytes_of_a_larger_file(rng: random.Random, compression: str) -> None:
    table = pa.table({f"c{i}": random_array(rng, t, 3000) for i, t in enumerate(LEAVES)})
    file, payload = write(table, compression=compression)
    for _ in range(25):
        damaged = bytearray(payload)
        damaged[rng.randrange(len(payload))] ^= 1 << rng.randrange(8)
        with pytest.raises(CorruptFileError):
            read_everything(ranged(file, bytes(damaged)))


def test_the_error_names_column_block_and_path() -> None:
    table = pa.table({"a": list(range(1000)), "b": [f"w{i}" for i in range(1000)]})
    file, payload = write(table, block_rows=256)
    damaged = bytearray(payload)
    damaged[-1] ^= 1
    reader = RowsReader(
        lambda ranges: [bytes(damaged[a:b]) for a, b in ranges],
        file.directory,
        len(payload),
        path="part-1.split",
    )
    assert reader.take([5], ["a"]).num_rows == 1
    assert reader.take([5], ["b"]).num_rows == 1
    with pytest.raises(CorruptFileError, match=r"column 'b': checksum of block 3.*part-1\.split"):
        reader.take([999], ["b"])


def test_short_reads_and_wrong_lengths_are_noticed() -> None:
    file, payload = write(small_table())
    short = RowsReader(
        lambda ranges: [payload[a : b - 1] for a, b in ranges], file.directory, len(payload)
    )
    with pytest.raises(CorruptFileError, match="bytes"):
        short.take([1])
    with pytest.raises(CorruptFileError, match="directory says"):
        RowsReader(lambda ranges: [], file.directory, len(payload) + 1)
    for cut in (0, 7, HEAD.size, len(file.directory) - 1):
        with pytest.raises(CorruptFileError):
            RowsReader(lambda ranges: [], file.directory[:cut], len(payload))


def _with(file: RowsFile, directory: bytes) -> RowsFile:
    return RowsFile(file.pages, directory, file.num_rows, file.schema)


def resealed(directory: bytearray) -> bytes:
    directory[-4:] = struct.pack("<I", checksum(bytes(directory[:-4])))
    return bytes(directory)


def forged(file: RowsFile, payload: bytes) -> RowsFile:
    """The file with every checksum made to fit ``payload``."""
    d = parse_directory(file.directory, None)
    streams = stored_streams(streams_of(d.schema))
    crcs, at = d.block_crc.copy(), 0
    for stream in streams:
        for chunk, count in enumerate(d.blocks_per_chunk[stream.column]):
            start = int(d.extent[stream.index, chunk])
            for _ in range(int(count)):
                end = start + int(d.block_length[at])
                crcs[at] = checksum(payload[start:end])
                start, at = end, at + 1
    d.block_crc = crcs
    d.resource_crc = np.array(
        [
            checksum(payload[int(s) : int(s) + int(n)])
            for s, n in zip(d.resource_start, d.resource_length, strict=True)
        ],
        np.uint32,
    )
    return _with(file, d.to_bytes())


def survive(file: RowsFile, payload: bytes) -> None:
    """Read in every way; only our own errors may come out, and memory stays in proportion."""
    pool = pa.default_memory_pool()
    try:
        reader = mapped(file, payload)
        before = pool.bytes_allocated()
        for batch in reader.scan():
            assert pool.bytes_allocated() - before < (64 << 20)
            assert batch.num_rows <= 65_536
        if reader.num_rows:
            reader.take([0, reader.num_rows - 1])
    except IndexTablesError:
        return


def test_forged_blocks_are_survived(rng: random.Random) -> None:
    file, payload = write(small_table(), block_rows=8)
    for _ in range(600):
        changed = bytearray(payload)
        for _ in range(rng.randint(1, 3)):
            changed[rng.randrange(len(changed))] = rng.choice([0, 1, 127, 255, rng.getrandbits(8)])
        survive(forged(file, bytes(changed)), bytes(changed))


def test_forged_directories_are_survived(rng: random.Random) -> None:
    file, payload = write(small_table(), block_rows=8)
    size = len(file.directory)
    for _ in range(600):
        changed = bytearray(file.directory)
        at = rng.choice([rng.randrange(8, HEAD.size), rng.randrange(HEAD.size, size - 4)])
        changed[at] = rng.choice([0, 1, 127, 255, rng.getrandbits(8)])
        survive(_with(file, resealed(changed)), payload)


def test_truncated_blocks_are_survived(rng: random.Random) -> None:
    file, payload = write(small_table(), block_rows=8)
    lengths = parse_directory(file.directory, None).block_length
    for block in range(len(lengths)):
        for size in {0, 1, 7, 8, 12, max(int(lengths[block]) - 1, 0)}:
            d = parse_directory(file.directory, None)
            shorter = d.block_length.copy()
            shorter[block] = min(size, int(lengths[block]))
            d.block_length = shorter
            survive(forged(_with(file, d.to_bytes()), payload), payload)


def test_a_directory_cannot_ask_for_much_memory() -> None:
    file, payload = write(pa.table({"a": [1, 2, 3]}))
    for field, value in [(2, 1 << 30), (3, 1 << 30), (4, 1 << 30), (6, 1 << 31), (7, 1 << 60)]:
        head = list(HEAD.unpack_from(file.directory))
        head[field] = value
        changed = bytearray(HEAD.pack(*head) + file.directory[HEAD.size :])
        with pytest.raises(CorruptFileError):
            mapped(_with(file, resealed(changed)), payload)


def block(kind: int, slots: int, body: bytes, flags: int = 0) -> bytes:
    return struct.pack("<BBHI", kind, flags, 0, slots) + body


def with_block(table: pa.Table, data: bytes) -> tuple[RowsFile, bytes]:
    """A file of one column and one block, which is ``data``."""
    file, _ = write(table, compression="none")
    d = parse_directory(file.directory, None)
    d.block_length = np.array([len(data)], np.uint32)
    d.block_crc = np.array([checksum(data)], np.uint32)
    d.payload_length = len(data)
    d.extent = np.zeros((1, 1), np.uint64)
    return _with(file, d.to_bytes()), data


NUMBERS = pa.table({"a": pa.array([5], pa.int64())})
STRINGS = pa.table({"a": pa.array(["a"])})
VECTOR = struct.pack("<BBQ", 0, 0, 0)


@pytest.mark.parametrize(
    ("table", "data", "reason"),
    [
        (NUMBERS, block(1, 0xFFFFFFFF, VECTOR), "more values than its size allows"),
        (NUMBERS, block(1, 0, VECTOR), "fewer slots than rows"),
        (NUMBERS, block(77, 1, VECTOR), "unexpected kind"),
        (NUMBERS, block(5, 1, VECTOR), "unexpected kind"),
        (NUMBERS, block(1, 1, VECTOR, flags=4), "unknown block flags"),
        (NUMBERS, block(1, 1, VECTOR[:5]), "unexpected end"),
        (NUMBERS, block(1, 1, struct.pack("<BBQ", 65, 0, 0)), "impossible integer vector"),
        (NUMBERS, block(1, 1, struct.pack("<BBQ", 64, 0, 0)), "unexpected end"),
        (NUMBERS, block(3, 1, VECTOR), "beyond the dictionary"),
        (NUMBERS, block(2, 1, b"\x02" + struct.pack("<I", 9)), "more exceptions than values"),
        (NUMBERS, block(1, 1, struct.pack("<IB", 7, 1), flags=1), "bitmap disagrees"),
        (STRINGS, block(5, 1, struct.pack("<BBQ", 0, 0, 99) + b"abc"), "outside its block"),
        (STRINGS, block(5, 1, struct.pack("<BBQ", 0, 0, (1 << 64) - 1)), "outside its"),
        (STRINGS, block(6, 1, VECTOR + b"\0" * 4), "no dictionary of its kind"),
        (STRINGS, block(7, 1, b""), "no dictionary of its kind"),
        (STRINGS, block(8, 1, VECTOR + struct.pack("<I", 1 << 31) + b"xx"), "more bytes than"),
        (STRINGS, block(8, 1, VECTOR + struct.pack("<I", 4) + b"xxxx"), "zstd frame"),
        (STRINGS, block(1, 1, VECTOR), "unexpected kind"),
    ],
)
def test_forged_blocks_say_what_is_wrong(table: pa.Table, data: bytes, reason: str) -> None:
    file, payload = with_block(table, data)
    with pytest.raises(CorruptFileError, match=reason) as caught:
        read_everything(mapped(file, payload))
    assert "column 'a'" in str(caught.value)


def test_undamaged_files_read_after_all_that(rng: random.Random) -> None:
    table = small_table()
    file, payload = write(table, block_rows=8)
    again: Any = forged(file, payload)
    assert again.directory == file.directory
    assert scanned(mapped(again, payload)).slice(0, 5).equals(table.slice(0, 5))
