"""The decoder's short way for usual shapes: whatever it accepts, the plain twin reads the same."""

from __future__ import annotations

import io
import json
import os
import random
from collections import Counter
from typing import Any

import fastavro
import numpy as np
import pytest
import zstandard
from avro_twin import Walker
from hypothesis import example, given
from hypothesis import strategies as st

from indextables.errors import CorruptFileError
from indextables.log.actions import AddFile
from indextables.log.checkpoint.avro_file import Container, entry_program
from indextables.log.checkpoint.avro_schema import compile_entries
from indextables.log.checkpoint.encode import pack_adds
from indextables.log.checkpoint.entries import read_entries, segment_of_columns
from indextables.log.read.columns import zigzag
from indextables.native._avro import decode_entries
from indextables.native._narrow import pack_ints
from indextables.native._textunpack import repeated_hashes

FUZZ = int(os.environ.get("INDEXTABLES_FUZZ", "60000")) // 20
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "FileEntry",
    "fields": [
        {"name": "path", "type": "string"},
        {"name": "partitionValues", "type": {"type": "map", "values": "string"}},
        {"name": "size", "type": "long"},
        {"name": "dataChange", "type": "boolean"},
        {"name": "stats", "type": ["null", "string"]},
        {"name": "minValues", "type": ["null", {"type": "map", "values": ["null", "string"]}]},
        {"name": "numRecords", "type": ["null", "long"]},
        {"name": "unknown", "type": ["null", "double"]},
        {"name": "footerStartOffset", "type": ["null", "long"]},
        {"name": "docMappingRef", "type": ["string", "null"]},
    ],
}
NAMES = ("a", "id", "timestamp", "eight_by", "a name of more than eight", "n" * 63, "n" * 64)


def padded(rng: random.Random, value: int) -> bytes:
    """A number as Avro writes it, sometimes with needless bytes."""
    body = zigzag(value) if value >= 0 else bytes([2 * -value - 1])
    more = rng.choice((0, 0, 0, 1, 3, 9 - len(body)))
    if more <= 0 or len(body) + more > 9:
        return body
    return body[:-1] + bytes([body[-1] | 128]) + b"\x80" * (more - 1) + b"\0"


def text(rng: random.Random, value: str) -> bytes:
    return padded(rng, len(value.encode())) + value.encode()


def a_map(rng: random.Random, values: dict[str, str | None], optional: bool) -> bytes:
    """A map in one block or more, some of them with their size."""
    items = list(values.items())
    out = b""
    while items:
        some = rng.choice((len(items), len(items), 1))
        body = b"".join(
            text(rng, key)
            + (b"" if not optional else b"\0" if value is None else b"\2")
            + (b"" if value is None else text(rng, value))
            for key, value in items[:some]
        )
        items = items[some:]
        sized = rng.random() < 0.2
        out += bytes([2 * some - 1]) + zigzag(len(body)) if sized else zigzag(some)
        out += body
    return out + b"\0"


def optional(rng: random.Random, value: Any, spell: Any) -> bytes:
    return b"\0" if value is None else b"\2" + spell(rng, value)


def a_row(rng: random.Random, k: int) -> dict[str, Any]:
    names = [n for n in NAMES if rng.random() < 0.5] if rng.random() < 0.3 else NAMES[:3]
    lengths = (0, 7, 63, 64, 200)
    return {
        "path": f"part-{k}-{'x' * rng.choice(lengths)}",
        "partitionValues": {n: str(rng.randrange(9)) for n in names[:2]},
        "size": rng.choice((0, 63, 64, 2**13, 2**55 - 1, 2**55, 2**62)),
        "dataChange": rng.random() < 0.5,
        "stats": rng.choice((None, "s" * rng.choice(lengths))),
        "minValues": rng.choice((None, {n: rng.choice((None, str(k), "é")) for n in names})),
        "numRecords": rng.choice((None, k)),
        "unknown": None,
        "footerStartOffset": rng.choice((None, k * 10**9)),
        "docMappingRef": rng.choice((None, "ref")),
    }


def spelled(rng: random.Random, row: dict[str, Any]) -> bytes:
    ref = row["docMappingRef"]
    return b"".join(
        (
            text(rng, row["path"]),
            a_map(rng, row["partitionValues"], False),
            padded(rng, row["size"]),
            bytes([row["dataChange"]]),
            optional(rng, row["stats"], text),
            optional(rng, row["minValues"], lambda r, v: a_map(r, v, True)),
            optional(rng, row["numRecords"], padded),
            b"\0",
            optional(rng, row["footerStartOffset"], padded),
            b"\2" if ref is None else b"\0" + text(rng, ref),
        )
    )


def as_add(row: dict[str, Any]) -> AddFile:
    bounds = row["minValues"]
    return AddFile(
        row["path"],
        partition_values=row["partitionValues"],
        size=row["size"],
        data_change=row["dataChange"],
        stats=row["stats"],
        min_values=None if bounds is None else {k: v for k, v in bounds.items() if v is not None},
        num_records=row["numRecords"],
        footer_start_offset=row["footerStartOffset"],
        doc_mapping_ref=row["docMappingRef"],
    )


def decoded(block: bytes, count: int) -> list[AddFile]:
    program = compile_entries(json.dumps(SCHEMA))
    segment = segment_of_columns(program.columns, decode_entries(program, [block], [count]), "")
    return [segment.add(row) for row in range(segment.n)]


@pytest.mark.parametrize("count", [1, 2, 7, 600])
def test_every_spelling_of_an_entry_is_read(rng: random.Random, count: int) -> None:
    for _ in range(600 // count):
        rows = [a_row(rng, k) for k in range(count)]
        block = b"".join(spelled(rng, row) for row in rows)
        assert decoded(block, count) == [as_add(row) for row in rows]


def test_what_is_accepted_after_damage_is_what_the_twin_reads(rng: random.Random) -> None:
    rows = [a_row(rng, k) for k in range(8)]
    block = b"".join(spelled(rng, row) for row in rows)
    refused = accepted = 0
    for _ in range(FUZZ):
        body = bytearray(block)
        for _ in range(rng.randrange(1, 3)):
            body[rng.randrange(len(body))] = rng.choice((0, 1, 2, 3, 127, 128, rng.randrange(256)))
        try:
            found = decoded(bytes(body), 8)
        except CorruptFileError:
            refused += 1
            continue
        walker = Walker(bytes(body))
        assert found == [as_add(walker.value(SCHEMA)) for _ in range(8)]
        assert walker.at == len(body)
        accepted += 1
    assert refused > FUZZ // 10
    assert accepted > FUZZ // 10


def test_a_frame_that_lies_about_its_size_is_refused(rng: random.Random) -> None:
    """The size in a frame's header is believed for planning alone."""
    rows = [{**a_row(rng, k), "unknown": None} for k in range(50)]
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(SCHEMA), rows, codec="null")
    plain = Container.scan(out.getvalue())
    body = bytes(plain.view[plain.starts[0] : plain.starts[0] + plain.sizes[0]])
    frame = bytearray(zstandard.ZstdCompressor().compress(body))
    sync = out.getvalue()[-16:]
    head = {b"avro.schema": json.dumps(SCHEMA).encode(), b"avro.codec": b"zstandard"}
    start = b"Obj\x01" + zigzag(2)
    for key, value in head.items():
        start += zigzag(len(key)) + key + zigzag(len(value)) + value
    for change, works in ((0, True), (1, False), (-1, False)):
        packed = bytearray(frame)
        assert zstandard.frame_content_size(bytes(packed)) == len(body)
        packed[5] = (packed[5] + change) % 256
        data = start + b"\0" + sync + zigzag(50) + zigzag(len(packed)) + bytes(packed) + sync
        assert entry_program(Container.scan(data).schema_text)
        if works:
            assert sum(s.n for s in read_entries(data, "file:///table")) == 50
            continue
        with pytest.raises(CorruptFileError):
            read_entries(data, "file:///table")


def test_blocks_must_be_as_long_as_announced() -> None:
    program = compile_entries(json.dumps(SCHEMA))
    rng = random.Random(1)
    block = spelled(rng, a_row(rng, 1))
    with pytest.raises(CorruptFileError, match="not as long"):
        decode_entries(program, iter([block]), [1], [len(block) + 1])


# -- numbers and hashes -------------------------------------------------------------------------


@given(st.lists(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 9), max_size=60), max_size=5))
@example([[7] * 5000, [7, 8]])
@example([list(range(5000)), [4999]])
def test_repeated_hashes_are_found(parts: list[list[int]]) -> None:
    arrays = [np.sort(np.array(part, np.uint64)) for part in parts]
    counted = Counter(value for part in parts for value in part)
    assert set(repeated_hashes(arrays).tolist()) == {v for v, n in counted.items() if n > 1}


def test_repeated_hashes_in_many_buckets() -> None:
    rng = np.random.default_rng(3)
    parts = [np.sort(rng.integers(0, 1 << 63, 9000, dtype=np.uint64) * 2) for _ in range(4)]
    assert not len(repeated_hashes(parts))
    parts[2] = np.sort(np.append(parts[2], parts[0][[5, 800, 8999]]))
    assert sorted(repeated_hashes(parts).tolist()) == parts[0][[5, 800, 8999]].tolist()


@given(st.lists(st.sampled_from([-(2**63), -1, 0, 1, 255, 256, 2**31, 2**63 - 1]), max_size=9))
def test_numbers_are_narrowed_as_numpy_would(values: list[int]) -> None:
    for missing in (-(2**63), 0, 5):
        shown = [v for v in values if v != missing]
        packed = pack_ints(np.array(values, np.int64), missing)
        if packed is None:
            assert not shown
            continue
        low, data, present = packed
        assert low == min(shown)
        assert (present is None) == (len(shown) == len(values))
        if data is None:
            assert len(set(shown)) == 1
            continue
        assert data.dtype == np.min_scalar_type(max(shown) - low)
        assert data.tolist() == [0 if v == missing else v - low for v in values]


@pytest.mark.parametrize("asked", [3, 100, 101, 300])
def test_few_paths_and_many_are_found_alike(asked: int) -> None:
    (segment,) = pack_adds([AddFile(f"part-{k}.split", size=k) for k in range(300)])
    paths = [f"part-{k}.split" for k in range(300 - asked, 300)]
    assert segment.find([*paths, "part-300.split"]).tolist() == [*range(300 - asked, 300), -1]
