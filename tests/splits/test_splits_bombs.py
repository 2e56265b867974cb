"""Numbers that bytes claim are compared with what there is before room is made for them.

Each member here has right checksums: somebody prepared it. It must be refused as corrupt, and the
refusal may not take memory in proportion to what it claims.
"""

from __future__ import annotations

import contextlib
import json
import random
import struct
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import zstandard
from splitkit import RANDOM_OPTIONS, finish_split, random_table

from indextables.errors import CorruptFileError, IndexTablesError
from indextables.expr import ast
from indextables.expr.bind import bind
from indextables.native import crc32c
from indextables.native._rows_blocks import BlockSet, Spans, require_slots
from indextables.splits.format import members
from indextables.splits.format.bundle import INFO, BundleWriter, parse_footer
from indextables.splits.format.info import MOST_ROWS, SplitInfo
from indextables.splits.lookup.codes import _HEADER, CodeBuilder, parse_codes
from indextables.splits.lookup.colindex import compact
from indextables.splits.lookup.colindex.index import ColumnIndex
from indextables.splits.lookup.colindex.postings import build_postings
from indextables.splits.lookup.hashtable import HashTable, build_hash_table
from indextables.splits.read.access import count_split, matching_rows, read_split
from indextables.splits.read.foreign import ForeignRows
from indextables.splits.read.reader import SplitReader, forget_readers
from indextables.splits.read.source import SplitRef
from indextables.splits.rows.layout import MAX_CHUNK_ROWS, most_rows
from indextables.storage.base import open_store

MOST_BYTES = 32 << 20


@contextmanager
def little_memory(most: int = MOST_BYTES) -> Iterator[None]:
    """The block takes no more, neither from Python and numpy nor from Arrow."""
    pool = pa.default_memory_pool()
    tracemalloc.start()
    before = pool.max_memory() or 0
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < most, f"{peak:,} bytes"
    assert (pool.max_memory() or 0) - before < most


# -- codes ---------------------------------------------------------------------------------------


def codes_member(rows: int, values: list[bytes], *, claimed: int | None = None) -> bytes:
    packed = zstandard.ZstdCompressor().compress(bytes(rows))
    header = _HEADER.pack(
        b"ITXCODE1", rows if claimed is None else claimed, len(values), 1, len(packed)
    )
    lengths = np.array([len(v) for v in values], "<u4").tobytes()
    return b"".join([header, lengths, *values, packed])


def test_codes_of_more_rows_than_the_split_has() -> None:
    raw = codes_member(400_000_000, [b"a"])
    assert len(raw) < 64 << 10
    for num_rows in (2, 1000):
        with little_memory(), pytest.raises(CorruptFileError, match="rows"):
            parse_codes(raw, pa.string(), num_rows, "p")


@pytest.mark.parametrize("claimed", [1 << 62, (1 << 64) - 1, 3, 0])
def test_codes_that_claim_other_rows(claimed: int) -> None:
    raw = codes_member(2, [b"a"], claimed=claimed)
    with little_memory(), pytest.raises(CorruptFileError):
        parse_codes(raw, pa.string(), 2, "p")
    if claimed < 1 << 40:
        with little_memory(), pytest.raises(CorruptFileError):
            parse_codes(raw, pa.string(), claimed, "p")


def test_codes_whose_lengths_wrap_round() -> None:
    """Sums of 32 bits would fit again, with offsets far outside the buffer."""
    good = codes_member(2, [b"ab", b"cd", b"ef"])
    lengths = struct.pack("<3I", 0xFFFFFFF0, 0x10, 6)
    bad = good[: _HEADER.size] + lengths + good[_HEADER.size + 12 :]
    assert parse_codes(good, pa.string(), 2, "p").values.to_pylist() == ["ab", "cd", "ef"]
    with pytest.raises(CorruptFileError, match="lengths"):
        parse_codes(bad, pa.string(), 2, "p")
    with pytest.raises(CorruptFileError):
        parse_codes(codes_member(2, [b"\xff\xfe"]), pa.string(), 2, "p")
    many = _HEADER.pack(b"ITXCODE1", 2, 0xFFFFFFFF, 1, 0)
    with little_memory(), pytest.raises(CorruptFileError, match="values"):
        parse_codes(many, pa.string(), 2, "p")


def test_codes_of_the_writer_are_read(rng: random.Random) -> None:
    for count in (0, 1, 300, 70_000):
        builder = CodeBuilder()
        texts = [None if rng.random() < 0.1 else f"v{rng.randrange(400)}" for _ in range(count)]
        builder.add(pa.array(texts, pa.string()).dictionary_encode())
        raw = builder.finish()
        assert raw is not None
        found = parse_codes(raw, pa.string(), count, "p")
        assert found.labels(found.codes).to_pylist() == texts


@pytest.mark.parametrize("values", [0, 1, 2, 3, 4, 5, 6, 15, 16, 254, 255, 256, 700])
def test_codes_of_every_number_of_values(rng: random.Random, values: int) -> None:
    """Read back by a twin that takes the digits of each byte one by one."""
    rows = 1003
    numbers = [rng.randrange(values + 1) for _ in range(rows - values)] + [*range(values, 0, -1)]
    texts = [None if number == 0 else f"v{number}" for number in numbers]
    builder = CodeBuilder()
    builder.add(pa.array(texts, pa.string()).dictionary_encode())
    raw = builder.finish()
    assert raw is not None
    found = parse_codes(raw, pa.string(), rows, "p")
    assert found.labels(found.codes).to_pylist() == texts
    _, _, count, form, packed = _HEADER.unpack_from(raw)
    plain = zstandard.ZstdDecompressor().decompress(raw[len(raw) - packed :])
    base, twin = count + 1, []
    for byte in plain if form else ():
        for _ in range(form):
            twin.append(byte % base)
            byte //= base
    if not form:
        twin = [low + 256 * high for low, high in zip(plain[:rows], plain[rows:], strict=True)]
    assert found.codes.tolist() == twin[:rows]


def test_codes_in_a_form_that_is_not_theirs() -> None:
    """Five values are written three to a byte, as numbers below 216."""

    def member(form: int, plain: bytes) -> bytes:
        packed = zstandard.ZstdCompressor().compress(plain)
        values = [b"a", b"b", b"c", b"d", b"e"]
        header = _HEADER.pack(b"ITXCODE2", 4, len(values), form, len(packed))
        return b"".join([header, np.ones(5, "<u4").tobytes(), *values, packed])

    assert parse_codes(member(3, b"\x07\x05"), pa.string(), 4, "p").codes.tolist() == [1, 1, 0, 5]
    bad = [(0, bytes(8)), (1, bytes(4)), (2, bytes(2)), (4, bytes(1)), (99, bytes(1))]
    bad += [(3, b"\xd8\x00"), (3, b"\x00"), (3, bytes(3)), (3, b"\x00\x07"[:0])]
    for form, plain in bad:
        with little_memory(), pytest.raises(CorruptFileError):
            parse_codes(member(form, plain), pa.string(), 4, "p")


# -- whole splits --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pristine() -> tuple[pa.Table, bytes, Any]:
    table = random_table(random.Random(3), 800)
    finished = finish_split(table, RANDOM_OPTIONS)
    raw = Path(finished.local_path).read_bytes()
    finished.discard()
    return table, raw, finished


def rebuilt(
    raw: bytes,
    finished: Any,
    folder: Path,
    *,
    info: Callable[[dict[str, Any]], None] | None = None,
    member: tuple[str, bytes] | None = None,
) -> SplitReader:
    """The split with another ``split.json`` or member, all checksums made right again."""
    footer = parse_footer(raw[finished.footer_start :], finished.footer_start, "x")
    parts = {n: raw[a:b] for n, (a, b) in footer.files.items()}
    if member is not None:
        assert member[0] in parts
        parts[member[0]] = member[1]
    body = json.loads(parts.pop(INFO))
    body["checksums"] |= {name: crc32c(data) for name, data in parts.items()}
    if info is not None:
        info(body)
    path = folder / "bomb.split"
    path.unlink(missing_ok=True)
    writer = BundleWriter(str(path))
    for name, data in sorted(parts.items(), key=lambda item: footer.files[item[0]]):
        writer.add(name, data)
    writer.add(INFO, json.dumps(body).encode())
    start, end = writer.finish(sync=False)
    forget_readers()
    return SplitReader(open_store(str(folder)), SplitRef("bomb.split", end, start, end))


def read_everything(reader: SplitReader, table: pa.Table) -> None:
    for text in ("level = 'ERROR'", "n > 48", "x > 1.5", "id = 'nothing'", "not (level = 'INFO')"):
        matching_rows(reader, bind(text, table.schema))
        count_split(reader, bind(text, table.schema))
    reader.search(ast.Term("msg", "alpha"))
    reader.search(ast.Bool(must_not=(ast.Term("msg", "alpha"),)))
    reader.search(ast.Term("msg", "beta"), limit=5, scored=True)
    for _ in read_split(reader):
        pass


def test_a_split_that_is_put_together_again_is_whole(
    pristine: tuple[pa.Table, bytes, Any], tmp_path: Path
) -> None:
    table, raw, finished = pristine
    read_everything(rebuilt(raw, finished, tmp_path), table)


@pytest.mark.parametrize(
    "rows", [1 << 62, 1 << 64, MOST_ROWS, 1 << 31, 131_072, 801, 0, -1, 8.5, True, "800", None, []]
)
def test_a_split_that_claims_other_rows(
    pristine: tuple[pa.Table, bytes, Any], tmp_path: Path, rows: Any
) -> None:
    table, raw, finished = pristine

    def claim(body: dict[str, Any]) -> None:
        body["num_rows"] = rows
        body["index"]["meta"] = body["index"]["meta"].replace('"max_doc":800', f'"max_doc":{rows}')

    def run() -> None:
        read_everything(rebuilt(raw, finished, tmp_path, info=claim), table)

    with little_memory(), pytest.raises(CorruptFileError, match="bomb"):
        run()


def test_rows_are_bounded_by_the_directory() -> None:
    assert most_rows(0) == 0
    assert most_rows(64 + 4) >= MAX_CHUNK_ROWS
    assert most_rows(24 << 10) < 1 << 30


@pytest.mark.parametrize("size", [1 << 62, 1 << 40, 0, -5])
@pytest.mark.parametrize("extension", ["term", "store", "idx", "fast"])
def test_index_files_of_another_size(
    pristine: tuple[pa.Table, bytes, Any], tmp_path: Path, size: int, extension: str
) -> None:
    table, raw, finished = pristine

    def claim(body: dict[str, Any]) -> None:
        file = body["index"]["files"][extension]
        shift = size - file["size"]
        file["size"] = size
        for part in (file["tail"], *file["slices"].values()):
            part["start"], part["end"] = part["start"] + shift, part["end"] + shift

    def run() -> None:
        read_everything(rebuilt(raw, finished, tmp_path, info=claim), table)

    with little_memory(), pytest.raises(CorruptFileError, match="bomb"):
        run()


@pytest.mark.parametrize("place", ["checksums", "integers", "index", "mapping", "schema", "xref"])
@pytest.mark.parametrize("value", [None, [], 7, "x", {"files": [], "meta": 1, "fields": []}])
def test_parts_of_split_json_of_another_kind(place: str, value: Any) -> None:
    schema = pa.schema({"a": pa.int64()})
    from indextables.mapping import DocMapping

    good = SplitInfo(schema, 3, DocMapping.for_schema(schema), {}, {}, {})
    body = json.loads(good.to_json())
    body[place] = value
    with contextlib.suppress(CorruptFileError):
        SplitInfo.from_json(json.dumps(body).encode(), "p")
    with pytest.raises(CorruptFileError):
        SplitInfo.from_json(b"[" * 100_000, "p")


# -- hash tables ---------------------------------------------------------------------------------


def hash_member(**changed: int) -> bytes:
    """A table of hashes with another header and right checksums."""
    raw = bytearray(build_hash_table(np.arange(900, dtype=np.uint64) << np.uint64(52), ROWS))
    names = ("magic", "count", "bits", "width", "per_page", "pages")
    header = dict(zip(names, struct.unpack_from("<8sQIIII", raw), strict=True)) | changed
    struct.pack_into("<8sQIIII", raw, 0, *header.values())
    size = 32 + 4 * ((1 << min(header["bits"], 20)) + 1 + min(header["pages"], 1 << 20))
    if size + 4 <= len(raw):
        struct.pack_into("<I", raw, size, crc32c(memoryview(raw)[:size]))
    return bytes(raw)


ROWS = np.arange(900, dtype=np.uint32)


@pytest.mark.parametrize(
    "changed",
    [
        {"count": 1 << 62},
        {"bits": 40},
        {"bits": 0xFFFFFFFF},
        {"width": 0},
        {"width": 200},
        {"per_page": 0},
        {"per_page": 1},
        {"pages": 0},
        {"pages": 0xFFFFFFFF},
    ],
    ids=str,
)
def test_hash_tables_with_impossible_headers(changed: dict[str, int]) -> None:
    raw = hash_member(**changed)

    def run() -> None:
        made = HashTable(lambda ranges: [raw[a:b] for a, b in ranges], len(raw), "p")
        made.lookup(np.array([1 << 52, 900 << 52], np.uint64))

    with little_memory(), pytest.raises(CorruptFileError):
        run()


def test_the_hash_table_itself_is_read() -> None:
    raw = hash_member()
    made = HashTable(lambda ranges: [raw[a:b] for a, b in ranges], len(raw), "p")
    assert 7 in made.lookup(np.array([7 << 52], np.uint64)).tolist()


# -- column indexes ------------------------------------------------------------------------------


def index_file(column: pa.Array, change: Callable[[dict[str, Any]], None]) -> bytes:
    """A compact index whose footer was changed, with a right checksum."""
    raw = compact.encode(build_postings(pa.chunked_array([column]), "c"))
    start, length, _, magic = compact.TAIL.unpack_from(raw, len(raw) - compact.TAIL.size)
    footer = bytearray(raw[start : start + length])
    (size,) = struct.unpack_from("<I", footer)
    state = {"body": bytearray(raw[:start]), "rest": footer[4 + size :], "raw": raw}
    state["facts"] = json.loads(footer[4 : 4 + size])
    change(state)
    facts = json.dumps(state["facts"]).encode()
    whole = struct.pack("<I", len(facts)) + facts + bytes(state["rest"])
    tail = compact.TAIL.pack(len(state["body"]), len(whole), crc32c(whole), magic)
    return bytes(state["body"]) + whole + tail


def nulls_without_width(state: dict[str, Any]) -> None:
    state["rest"][-5:] = struct.pack("<IB", 0xFFFFFFF0, 0)
    state["facts"]["numRows"] = 0xFFFFFFF0 + 3


def one_huge_block(state: dict[str, Any]) -> None:
    """A frame of a few kilobytes that says it holds half a gigabyte."""
    size = 400 << 20
    frame = zstandard.ZstdCompressor().compress(bytes(size))
    assert len(frame) < 64 << 10
    state["body"] = bytearray(compact.MAGIC + frame)
    count = state["facts"]["blocks"]
    assert count == 1
    struct.pack_into("<2Q", state["rest"], 0, 8, 8 + len(frame))
    struct.pack_into("<II", state["rest"], 48, size, crc32c(frame))


BOMBS = {
    "nulls": nulls_without_width,
    "block": one_huge_block,
    "blocks": lambda s: s["facts"].update(blocks=1 << 60),
    "negative blocks": lambda s: s["facts"].update(blocks=-2),
    "rows": lambda s: s["facts"].update(numRows=1 << 62),
    "distinct": lambda s: s["facts"].update(distinct=1 << 62),
}


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.parametrize("kind", [pa.int64(), pa.string()], ids=str)
def test_column_indexes_with_impossible_counts(name: str, kind: pa.DataType) -> None:
    if name == "nulls" and kind == pa.string():
        pytest.skip("the same bytes")
    column = pa.array([1, 2, 3], pa.int64()).cast(kind)
    raw = index_file(column, BOMBS[name])
    claimed = 0xFFFFFFF0 + 3 if name == "nulls" else 3

    def run() -> None:
        index = ColumnIndex.from_bytes(raw, num_rows=claimed)
        index.flat()

    with little_memory(96 << 20), pytest.raises(CorruptFileError):
        run()


def test_column_indexes_with_large_keys_are_read() -> None:
    """Keys longer than a block, compressed very well, are within what a block may be."""
    texts = ["a" * 200_000, "b" * 3_000_000, "c", "d" * 70_000]
    column = pa.array(texts * 3, pa.string())
    raw = compact.encode(build_postings(pa.chunked_array([column]), "c"))
    index = ColumnIndex.from_bytes(raw, num_rows=12)
    assert sorted(index.flat().nulls.tolist()) == []
    assert index.distinct == 4
    assert [len(index.key_at(i)) for i in range(4)] == [200_000, 3_000_000, 1, 70_000]


# -- lists ---------------------------------------------------------------------------------------


def block_set(head: bytes, rows: int) -> BlockSet:
    table = np.array([[0, len(head), crc32c(head), rows]], np.int64)
    return BlockSet([head], np.zeros(1, np.int64), np.zeros(0, np.int64), table)


def test_lists_that_ask_for_more_elements_than_there_are() -> None:
    asked = Spans(np.zeros(1, np.int32), np.zeros(1, np.uint32), np.array([1 << 31], np.uint32))
    few = struct.pack("<BBHI", 1, 0, 0, 5) + bytes(40)
    with pytest.raises(CorruptFileError, match="fewer slots"):
        require_slots(block_set(few, 1), asked, 64)
    forged = struct.pack("<BBHI", 1, 0, 0, 0xFFFFFFFF) + bytes(40)
    with pytest.raises(CorruptFileError, match="more values"):
        require_slots(block_set(forged, 1), asked, 64)
    with pytest.raises(CorruptFileError, match="fewer slots"):
        require_slots(block_set(b"", 1), asked, 64)


@pytest.mark.parametrize(
    "value",
    [
        [0] * 300_000,
        [[]] * 300_000,
        [None] * 300_000,
        ["x"] * 300_000,
        [{"a": 1, "b": []}] * 200_000,
        [True] * 300_000,
        [[[]] * 1000] * 100,
    ],
    ids=lambda v: str(v[0])[:12],
)
def test_one_row_of_many_like_elements_is_read(value: list[Any], tmp_path: Path) -> None:
    """The writer keeps blocks as large as the reader wants them."""
    dtype = pa.infer_type([value]) if value[0] is not None else pa.list_(pa.int64())
    if value == [[]] * len(value):
        dtype = pa.list_(pa.list_(pa.int64()))
    if value[0] == [[]] * 1000:
        dtype = pa.list_(pa.list_(pa.list_(pa.int64())))
    if isinstance(value[0], dict):
        dtype = pa.list_(pa.struct([("a", pa.int64()), ("b", pa.list_(pa.int64()))]))
    table = pa.table({"v": pa.array([value, None, value[:3]], dtype)})
    from indextables.splits.rows import RowsReader, RowsWriter

    writer = RowsWriter(table.schema)
    for batch in table.to_batches():
        writer.write(batch)
    rows = writer.finish()
    payload = b"".join(bytes(page) for page in rows.pages)
    reader = RowsReader(
        lambda ranges: [payload[a:b] for a, b in ranges], rows.directory, len(payload)
    )
    assert pa.Table.from_batches(reader.scan()).equals(table)
    assert reader.take([2, 0]).num_rows == 2


# -- splits of others ----------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1 << 62, -1, 1 << 33])
def test_foreign_splits_that_claim_impossible_documents(count: int) -> None:
    made = ForeignRows.__new__(ForeignRows)
    meta = {"segments": [{"max_doc": count}], "schema": []}

    class Source:
        path = "p"

        def member(self, name: str) -> bytes:
            return json.dumps(meta).encode()

        def corrupt(self, reason: str) -> IndexTablesError:
            return CorruptFileError(reason, path="p")

    made._source = Source()  # type: ignore[assignment]
    with pytest.raises(CorruptFileError, match="impossible"):
        made._read_meta()


def test_the_members_named_here_exist(pristine: tuple[pa.Table, bytes, Any]) -> None:
    _, raw, finished = pristine
    footer = parse_footer(raw[finished.footer_start :], finished.footer_start, "x")
    assert {members.ROWS, members.ROWS_DIRECTORY, members.ZONES} <= set(footer.files)
