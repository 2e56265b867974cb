"""The compiled Avro decoder against fastavro and against a plain Python twin."""

from __future__ import annotations

import io
import json
import os
import random
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from avro_twin import read_container
from hypothesis import given
from hypothesis import strategies as st

from indextables.errors import CorruptFileError, UnsafePathError
from indextables.log.actions import AddFile, DeletionVector
from indextables.log.checkpoint.avro_file import Container, entry_program, read_records
from indextables.log.checkpoint.avro_schema import FILE_ENTRY, STATE_MANIFEST, compile_entries
from indextables.log.checkpoint.entries import read_entries
from indextables.log.read.columns import zigzag
from indextables.log.read.packed import PackedSegment
from indextables.native._avro import decode_entries

ROOT = "file:///table"
OPTIONAL = [f for f in FILE_ENTRY["fields"] if f["name"] not in ("path", "size")]
NEEDED = [f for f in FILE_ENTRY["fields"] if f["name"] in ("path", "size")]
FUZZ = int(os.environ.get("INDEXTABLES_FUZZ", "60000"))
CODECS = ["null", "deflate", "zstandard", "snappy"]

names = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=30)
paths = names.filter(lambda name: name not in (".", "..") and ":" not in name)
digits = st.integers(-(10**20), 10**20).map(str)
texts = st.one_of(
    st.text(max_size=20),
    digits,
    st.uuids().map(lambda u: f"part-{u}.split"),
    st.floats().map(repr),
    st.dates().map(str),
    st.sampled_from(["", "0", "00", "a", "b", "007", "1" * 40, "é0é", "-"]),
)
VECTORS = [DeletionVector.inline(b"\0" * n, n).text for n in (4, 34)]
longs = st.integers(-(2**62), 2**62)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "string": texts,
    "long": longs,
    "int": st.integers(-(2**31), 2**31 - 1),
    "boolean": st.booleans(),
    "double": st.floats(allow_nan=False),
    "float": st.floats(width=32, allow_nan=False),
    "bytes": st.binary(max_size=10),
    "null": st.none(),
}


def values_of(schema: Any) -> st.SearchStrategy[Any]:
    if isinstance(schema, list):
        return st.one_of([values_of(branch) for branch in schema])
    if isinstance(schema, str):
        return VALUES[schema]
    if schema["type"] == "map":
        return st.dictionaries(st.sampled_from(["id", "ts", "é", ""]), values_of(schema["values"]))
    if schema["type"] == "array":
        return st.lists(values_of(schema["items"]), max_size=4)
    if schema["type"] == "fixed":
        return st.binary(min_size=schema["size"], max_size=schema["size"])
    if schema["type"] == "enum":
        return st.sampled_from(schema["symbols"])
    return st.fixed_dictionaries({f["name"]: values_of(f["type"]) for f in schema["fields"]})


STRANGERS: list[Any] = [
    {"name": "x1", "type": "double"},
    {"name": "x2", "type": ["null", "bytes", "float"]},
    {"name": "x3", "type": {"type": "array", "items": {"type": "map", "values": ["null", "int"]}}},
    {"name": "x4", "type": {"type": "fixed", "name": "six", "size": 6}},
    {"name": "x5", "type": {"type": "enum", "name": "e", "symbols": ["A", "B"]}},
    {
        "name": "x6",
        "type": {"type": "record", "name": "r", "fields": [{"name": "q", "type": "string"}]},
    },
    {"name": "x7", "type": "null"},
]


@st.composite
def schemas(draw: st.DrawFn) -> dict[str, Any]:
    """A writer's schema: any fields of ours, strangers among them, in any order."""
    chosen = draw(st.lists(st.sampled_from(OPTIONAL), unique_by=lambda f: f["name"], max_size=12))
    strange = draw(st.lists(st.sampled_from(STRANGERS), unique_by=lambda f: f["name"], max_size=4))
    fields = draw(st.permutations([*NEEDED, *chosen, *strange]))
    return {"type": "record", "name": "FileEntry", "fields": fields}


@st.composite
def files(draw: st.DrawFn) -> tuple[dict[str, Any], list[dict[str, Any]], str, int]:
    schema = draw(schemas())
    row = {f["name"]: values_of(f["type"]) for f in schema["fields"]}
    row["path"] = paths
    row["size"] = st.integers(0, 2**62)
    if "deletionVector" in row:
        row["deletionVector"] = st.none() | st.sampled_from(VECTORS)
    rows = draw(st.lists(st.fixed_dictionaries(row), max_size=12))
    return schema, rows, draw(st.sampled_from(CODECS)), draw(st.sampled_from([1, 200, 1 << 20]))


def written(schema: Any, rows: list[Any], codec: str, interval: int = 1 << 20) -> bytes:
    out = io.BytesIO()
    theirs = "null" if codec == "snappy" else codec
    fastavro.writer(out, fastavro.parse_schema(schema), rows, codec=theirs, sync_interval=interval)
    return snappy_form(out.getvalue()) if codec == "snappy" else out.getvalue()


def snappy_form(data: bytes) -> bytes:
    """The same file with snappy blocks, which fastavro writes only with a further package."""
    container = Container.scan(data)
    first = int(container.starts[0]) if len(container.starts) else len(data)
    sync = data[-16:]
    head = data[: data.index(sync, 0, first) + 16]
    out = [head.replace(b"\x14avro.codec\x08null", b"\x14avro.codec\x0csnappy")]
    for count, start, size in zip(container.counts, container.starts, container.sizes, strict=True):
        block = data[start : start + size]
        packed = pa.Codec("snappy").compress(block, asbytes=True)
        packed += zlib.crc32(block).to_bytes(4, "big")
        out += [zigzag(int(count)), zigzag(len(packed)), packed, sync]
    return b"".join(out)


def read_by_fastavro(schema: Any, rows: list[Any], codec: str) -> list[Any]:
    plain = "null" if codec == "snappy" else codec
    return list(fastavro.reader(io.BytesIO(written(schema, rows, plain))))


def expected(row: dict[str, Any]) -> AddFile:
    """A row as the log's own JSON reader would take it; unknown numbers stay as they are."""
    known = {f.json: f for f in AddFile.FIELDS}
    values: dict[str, Any] = {}
    for name, value in row.items():
        if name not in known or value is None:
            continue
        if name == "splitTags":
            value = frozenset(value)
        elif name == "deletionVector":
            value = DeletionVector.from_text(value)
        elif name == "companionSourceFiles":
            value = tuple(value)
        elif name == "partitionValues":
            value = {k: None if v == "__HIVE_DEFAULT_PARTITION__" else v for k, v in value.items()}
        values[known[name].attr] = value
    return AddFile(**values)


def decoded(data: bytes) -> list[AddFile]:
    adds = (s.add(row) for s in read_entries(data, ROOT) for row in range(s.n))
    return [replace(add, unknown=None) for add in adds]


@given(files())
def test_decoder_equals_fastavro_and_the_twin(file: Any) -> None:
    schema, rows, codec, interval = file
    data = written(schema, rows, codec, interval)
    theirs = read_by_fastavro(schema, rows, codec)
    assert decoded(data) == [expected(row) for row in theirs]
    assert [expected(row) for row in read_container(data)] == [expected(row) for row in theirs]


@given(files())
def test_columns_equal_the_rows(file: Any) -> None:
    schema, rows, codec, _ = file
    for segment in read_entries(written(schema, rows, codec), ROOT):
        adds = [segment.add(row) for row in range(segment.n)]
        assert segment.ints("size").tolist() == [add.size for add in adds]
        column = segment.texts("path")
        assert column is not None
        assert column.to_list() == [add.path for add in adds]
        found = segment.find([add.path for add in adds])
        assert [adds[row].path for row in found] == [add.path for add in adds]
        assert segment.find(["no such file"]).tolist() == [-1]
        for name, attr in (("minValues", "min_values"), ("tags", "tags")):
            for key in ("id", "ts", "é", ""):
                values = [(getattr(add, attr) or {}).get(key) for add in adds]
                texts_ = segment.map_texts(name, key)
                assert (texts_.to_list() if texts_ else [None] * segment.n) == values


@given(st.fixed_dictionaries({f["name"]: values_of(f["type"]) for f in STATE_MANIFEST["fields"]}))
def test_objects_equal_fastavro(record: dict[str, Any]) -> None:
    data = written(STATE_MANIFEST, [record], "zstandard")
    assert read_records(data) == list(fastavro.reader(io.BytesIO(data))) == read_container(data)


def test_interop_manifests_decode_as_fastavro_reads_them(interop_tables: list[Path]) -> None:
    seen = 0
    for path in [p for t in interop_tables for p in (t / "_transaction_log").rglob("*.avro")]:
        data = path.read_bytes()
        theirs = list(fastavro.reader(io.BytesIO(data)))
        assert read_container(data) == theirs
        if path.name == "_manifest.avro":
            assert read_records(data) == theirs
        else:
            assert decoded(data) == [expected(row) for row in theirs]
        seen += 1
    assert seen > 50


def test_named_types_and_namespaces() -> None:
    inner = {"type": "record", "name": "a.b.Inner", "fields": [{"name": "v", "type": "long"}]}
    schema = {
        "type": "record",
        "name": "FileEntry",
        "namespace": "io.x",
        "fields": [
            {"name": "first", "type": inner},
            {"name": "path", "type": "string"},
            {"name": "again", "type": ["null", "a.b.Inner"]},
            {"name": "size", "type": "int"},
        ],
    }
    rows = [{"first": {"v": 1}, "path": "p", "again": {"v": 2}, "size": 7}]
    assert decoded(written(schema, rows, "null")) == [AddFile("p", size=7)]


def test_recursive_types_are_skipped() -> None:
    tree = {
        "type": "record",
        "name": "Tree",
        "fields": [{"name": "next", "type": ["null", "Tree"]}, {"name": "v", "type": "int"}],
    }
    fields = [{"name": "t", "type": tree}, *NEEDED]
    deep: Any = None
    for k in range(20):
        deep = {"next": deep, "v": k}
    data = written(
        {"type": "record", "name": "F", "fields": fields},
        [{"t": deep, "path": "p", "size": 1}],
        "null",
    )
    assert decoded(data) == [AddFile("p", size=1)]


def test_a_statistic_of_a_strange_type_counts_as_absent() -> None:
    fields = [*NEEDED, {"name": "numRecords", "type": "string"}, {"name": "stats", "type": "long"}]
    rows = [{"path": "p", "size": 1, "numRecords": "many", "stats": 3}]
    data = written({"type": "record", "name": "F", "fields": fields}, rows, "null")
    assert decoded(data) == [AddFile("p", size=1)]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ([{"name": "size", "type": "long"}], "no field 'path'"),
        ([{"name": "path", "type": "string"}], "no field 'size'"),
        ([{"name": "path", "type": "long"}, NEEDED[1]], "'path' has a type"),
        ([*NEEDED, {"name": "partitionValues", "type": "string"}], "'partitionValues' has a type"),
        ([*NEEDED, {"name": "x", "type": "nonsense"}], "malformed"),
        ([*NEEDED, {"name": "x"}], "malformed"),
        ("no list", "malformed"),
    ],
)
def test_schemas_that_cannot_be_read(fields: Any, reason: str) -> None:
    with pytest.raises(CorruptFileError, match=reason):
        compile_entries(json.dumps({"type": "record", "name": "F", "fields": fields}))


def test_a_schema_that_never_ends_is_refused() -> None:
    deep: Any = "long"
    for _ in range(200):
        deep = {"type": "array", "items": deep}
    with pytest.raises(CorruptFileError, match="nested too deeply"):
        compile_entries(
            json.dumps(
                {"type": "record", "name": "F", "fields": [*NEEDED, {"name": "x", "type": deep}]}
            )
        )


@pytest.mark.parametrize("path", ["/etc/passwd", "../up", "a/../b", "s3://other/x", "a//b", ""])
@pytest.mark.parametrize("count", [1, 2000])
def test_paths_outside_the_table_are_refused(path: str, count: int) -> None:
    rows = [{"path": f"{k:x}-{'xyz'[k % 3] * (k % 40)}", "size": 1} for k in range(count - 1)]
    rows.append({"path": path, "size": 1})
    with pytest.raises(UnsafePathError):
        read_entries(written({"type": "record", "name": "F", "fields": NEEDED}, rows, "null"), ROOT)


def test_absolute_paths_inside_the_table_become_relative() -> None:
    rows = [{"path": "file:/table/a/b.split", "size": 1}, {"path": "c.split", "size": 2}]
    data = written({"type": "record", "name": "F", "fields": NEEDED}, rows, "null")
    segment = read_entries(data, ROOT)[0]
    assert [segment.path(0), segment.path(1)] == ["a/b.split", "c.split"]
    assert segment.find(["c.split", "a/b.split", "file:/table/a/b.split"]).tolist() == [1, 0, -1]


# -- damage -------------------------------------------------------------------------------------


def sample_rows(rng: random.Random, n: int) -> list[dict[str, Any]]:
    return [
        {
            "path": f"d={k % 3}/part-{rng.getrandbits(64):016x}.split",
            "partitionValues": {"d": str(k % 3)},
            "size": rng.randrange(10**9),
            "modificationTime": 1,
            "dataChange": True,
            "stats": json.dumps({"numRecords": k, "nullCount": {"id": k}}),
            "minValues": {"id": str(k), "ts": "2024-01-01"},
            "maxValues": {"id": str(k * 7)},
            "hasFooterOffsets": True,
            "splitTags": ["a", "é"],
            "addedAtVersion": k,
            "addedAtTimestamp": 5,
        }
        for k in range(n)
    ]


def mutated(rng: random.Random, data: bytes) -> bytes:
    body = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        kind = rng.randrange(5)
        at = rng.randrange(len(body)) if body else 0
        if kind == 0 and body:
            body[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and body:
            body[at] = rng.choice((0, 1, 127, 128, 254, 255))
        elif kind == 2:
            del body[at:]
        elif kind == 3:
            body[at:at] = rng.randbytes(rng.randrange(1, 9))
        else:
            del body[at : at + rng.randrange(1, 9)]
    return bytes(body)


def test_damaged_blocks_never_crash(rng: random.Random) -> None:
    """At the level where every damaged byte reaches the decoder."""
    container = Container.scan(written(FILE_ENTRY, sample_rows(rng, 3), "null"))
    block = bytes(next(next(container.groups()).blocks()))
    program = entry_program(container.schema_text)
    refused = 0
    for _ in range(FUZZ):
        data = mutated(rng, block)
        try:
            decode_entries(program, [data], [3])
        except CorruptFileError:
            refused += 1
    assert refused > FUZZ // 2


@pytest.mark.parametrize("codec", CODECS)
def test_damaged_files_are_refused_or_read(rng: random.Random, codec: str) -> None:
    data = written(FILE_ENTRY, sample_rows(rng, 3), codec)
    refused = 0
    for _ in range(3000):
        try:
            for segment in read_entries(mutated(rng, data), ROOT):
                for row in range(min(segment.n, 2)):
                    segment.add(row)
        except (CorruptFileError, UnsafePathError):
            refused += 1
    assert refused > 1500


def test_every_truncation_is_refused(rng: random.Random) -> None:
    data = written(FILE_ENTRY, sample_rows(rng, 2), "null", 1)
    whole = {0}
    container = Container.scan(data)
    ends = {int(s + n + 16) for s, n in zip(container.starts, container.sizes, strict=True)}
    for end in range(len(data)):
        try:
            read_entries(data[:end], ROOT)
            whole.add(end)
        except CorruptFileError:
            pass
    header_end = int(container.starts[0]) - 3
    assert whole - {0} <= ends | {header_end, header_end + 1}


def test_claims_that_would_take_all_memory_are_refused() -> None:
    container = Container.scan(written(FILE_ENTRY, [], "null"))
    program = entry_program(container.schema_text)
    with pytest.raises(CorruptFileError, match="too short"):
        decode_entries(program, [b"\0" * 100], [1 << 40])
    huge = b"\x02p" + b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01" + b"\0" * 50
    with pytest.raises(CorruptFileError):
        decode_entries(program, [huge], [1])


def test_items_without_bytes_cannot_run_forever() -> None:
    fields = [{"name": "x", "type": {"type": "array", "items": "null"}}, *NEEDED]
    schema = {"type": "record", "name": "F", "fields": fields}
    program = compile_entries(json.dumps(schema))
    data = b"\xfe\xff\xff\xff\xff\xff\xff\x7f" + b"\0" + b"\x02p\x02"
    with pytest.raises(CorruptFileError, match="too many items"):
        decode_entries(program, [data], [1])


def test_texts_must_be_utf8() -> None:
    schema = {"type": "record", "name": "F", "fields": NEEDED}
    data = bytearray(written(schema, [{"path": "ab", "size": 1}], "null"))
    data[data.rindex(b"ab")] = 0xFF
    with pytest.raises(CorruptFileError, match="UTF-8"):
        read_entries(bytes(data), ROOT)


def test_segments_pack_typical_entries_tightly(rng: random.Random) -> None:
    rows = sample_rows(rng, 3000)
    segment = read_entries(written(FILE_ENTRY, rows, "zstandard"), ROOT)[0]
    assert isinstance(segment, PackedSegment)
    assert segment.nbytes < 80 * len(rows)
