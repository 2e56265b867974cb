"""Rows of Parquet files by number are what Arrow reads, with as few requests as possible."""

from __future__ import annotations

import io
from collections.abc import Iterator
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from parquetkit import columns_of, random_table, written
from servers.counting_s3 import CountingS3

from indextables.errors import (
    CorruptFileError,
    IndexTablesError,
    ProtocolError,
    SchemaMismatchError,
    UnknownColumnError,
)
from indextables.sources import footer, rows
from indextables.sources.base import SourceColumn, nested_field
from indextables.sources.footer import FooterFacts
from indextables.sources.rows import ParquetRows
from indextables.storage import Store, open_store

ROUNDS = 40


@pytest.fixture
def store(request: pytest.FixtureRequest) -> Store:
    return open_store(f"memory://{request.node.name}")


def parquet_rows(
    store: Store, data: bytes, columns: list[SourceColumn] | None = None, **more: Any
) -> ParquetRows:
    store.put("f.parquet", data)
    found = columns or columns_of(pq.read_schema(io.BytesIO(data)))
    return ParquetRows(store, "f.parquet", len(data), found, **more)


def plain(table: pa.Table, **settings: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, **settings)
    return out.getvalue()


# -- the same rows ---------------------------------------------------------------------------------


def check_rows(rng: Random, store: Store) -> tuple[bool, bool]:
    """One random file; whether it had an index, and several leaves in a column."""
    count = rng.choice([0, 1, 50, 300])
    table = random_table(rng, count)
    data, indexed = written(rng, table)
    want = {name: table.column(name).to_pylist() for name in table.column_names}
    got = parquet_rows(store, data)
    assert got.num_rows == count
    batches = list(got.scan(batch_rows=rng.choice([1, 33, 10_000])))
    for batch in batches:
        batch.validate(full=True)
        assert batch.schema == got.schema
    whole = pa.Table.from_batches(batches, got.schema)
    assert {n: whole.column(n).to_pylist() for n in want} == want
    facts = FooterFacts.from_bytes(got.facts().to_bytes())
    for _ in range(4 if count else 0):
        some = parquet_rows(store, data, facts=rng.choice([None, facts]))
        numbers = [rng.randrange(count) for _ in range(rng.choice([0, 1, 3, 40]))]
        names = rng.sample(table.column_names, rng.randrange(1, len(want) + 1))
        taken = some.take(np.array(numbers, np.uint32), names)
        taken.validate(full=True)
        assert taken.schema.names == names
        assert taken.num_rows == len(numbers)
        for name in names:
            assert taken.column(name).to_pylist() == [want[name][i] for i in numbers]
        first = rng.randrange(count + 1)
        last = rng.randrange(first, count + 1)
        part = pa.Table.from_batches(some.scan(names, 17, (first, last)), taken.schema)
        for name in names:
            assert part.column(name).to_pylist() == want[name][first:last]
    nested = any(b - a > 1 for c in got.facts().columns for a, b in [c.leaves])
    return indexed, nested


def test_rows_are_what_arrow_reads(rng: Random, store: Store) -> None:
    seen = {check_rows(rng, store) for _ in range(ROUNDS)}
    assert len(seen) == 4, "files with and without an index, and columns of one and several leaves"


@pytest.mark.slow
def test_rows_are_what_arrow_reads_long(rng: Random, store: Store) -> None:
    for _ in range(3000):
        check_rows(rng, store)


def test_a_large_row_group_is_read_in_windows(
    store: Store, rng: Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.table({"t": [str(rng.random()) for _ in range(3000)]})
    for indexed in (True, False):
        data = plain(
            table, data_page_size=500, write_batch_size=20, write_page_index=indexed,
            use_dictionary=False,
        )  # fmt: skip
        monkeypatch.setattr(rows, "WINDOW_BYTES", 5000)
        got = parquet_rows(store, data)
        assert (len(got._windows([0], 0, 3000)) > 5) is indexed
        assert pa.Table.from_batches(got.scan()).column("t").to_pylist() == table["t"].to_pylist()


def test_int96_is_an_instant(store: Store) -> None:
    stamps = pa.array([0, 10**15, -(10**16)], pa.timestamp("us", "UTC"))
    data = plain(pa.table({"at": stamps}), use_deprecated_int96_timestamps=True)
    column = SourceColumn("at", pa.timestamp("us", "UTC"), "at", "at")
    assert parquet_rows(store, data, [column]).take([2, 0])["at"].equals(stamps.take([2, 0]))


# -- columns ---------------------------------------------------------------------------------------


def test_columns_are_found_by_id_then_by_name(store: Store) -> None:
    inner = pa.struct([pa.field("p", pa.int32(), metadata={"PARQUET:field_id": "11"})])
    schema = pa.schema(
        [
            pa.field("a", pa.int32(), metadata={"PARQUET:field_id": "1"}),
            pa.field("b", pa.int32(), metadata={"PARQUET:field_id": "2"}),
            pa.field("s", inner, metadata={"PARQUET:field_id": "3"}),
        ]
    )
    data = plain(pa.table([[1], [2], [{"p": 5}]], schema=schema))
    wanted = pa.struct(
        [nested_field("p", pa.int64(), field_id=12), nested_field("q", pa.int64(), field_id=11)]
    )
    columns = [
        SourceColumn("a", pa.int64(), "2", "a", field_id=2),
        SourceColumn("b", pa.int64(), "9", "b", field_id=9),
        SourceColumn("s", wanted, "3", "zzz", field_id=3),
    ]
    assert parquet_rows(store, data, columns).take([0]).to_pylist() == [
        {"2": 2, "9": None, "3": {"p": None, "q": 5}}
    ]


def test_columns_without_ids_are_found_by_their_physical_names(store: Store) -> None:
    data = plain(pa.table({"col-1": [1], "x": [{"n1": 7, "y": 8}], "old": ["v"]}))
    wanted = pa.struct([nested_field("y", pa.int64(), names=["n1"])])
    columns = [
        SourceColumn("a", pa.int64(), "col-1", "col-1"),
        SourceColumn("x", wanted, "x", "x"),
        SourceColumn("new", pa.string(), "77", "new", field_id=77, aliases=("older", "old")),
        SourceColumn("later", pa.string(), "later", "later", default="before"),
        SourceColumn("part", pa.int32(), "part", "part"),
    ]
    got = parquet_rows(store, data, columns, partition={"part": 3})
    want = {"col-1": 1, "x": {"y": 7}, "77": "v", "later": "before", "part": 3}
    assert got.take([0]).to_pylist() == [want]
    assert pa.Table.from_batches(got.scan()).to_pylist() == [want]
    assert next(got.scan(["later"])).to_pylist() == [{"later": "before"}]


@pytest.mark.parametrize(
    ("held", "wanted"),
    [
        (pa.int8(), pa.int64()),
        (pa.int32(), pa.float64()),
        (pa.int32(), pa.decimal128(12, 2)),
        (pa.float32(), pa.float64()),
        (pa.decimal128(5, 2), pa.decimal128(10, 4)),
    ],
)
def test_types_may_grow(store: Store, held: pa.DataType, wanted: pa.DataType) -> None:
    values = [Decimal("1.25")] if pa.types.is_decimal(held) else [1]
    data = plain(pa.table({"a": pa.array([*values, None], held)}))
    got = parquet_rows(store, data, [SourceColumn("a", wanted, "a", "a")]).take([0, 1])
    assert got.schema.field("a").type == wanted
    assert got["a"].to_pylist() == [*values, None]


@pytest.mark.parametrize(
    ("held", "wanted"),
    [
        (pa.int64(), pa.int32()),
        (pa.int64(), pa.float64()),
        (pa.float64(), pa.float32()),
        (pa.string(), pa.int64()),
        (pa.decimal128(10, 4), pa.decimal128(10, 2)),
        (pa.list_(pa.int64()), pa.int64()),
        (pa.struct([("x", pa.string())]), pa.struct([("x", pa.int32())])),
    ],
)
def test_types_may_not_shrink(store: Store, held: pa.DataType, wanted: pa.DataType) -> None:
    data = plain(pa.table({"a": pa.array([None], held)}))
    with pytest.raises(SchemaMismatchError, match=r"f\.parquet"):
        parquet_rows(store, data, [SourceColumn("a", wanted, "a", "a")]).take([0])


def test_bad_questions_are_refused(store: Store) -> None:
    got = parquet_rows(store, plain(pa.table({"a": [1, 2, 3]})))
    for numbers in ([3], [-1], [0.5], [[0]]):
        with pytest.raises(IndexTablesError):
            got.take(numbers)
    with pytest.raises(UnknownColumnError, match="zz"):
        got.take([0], ["zz"])
    for wrong in ((-1, 2), (2, 1), (0, 4)):
        with pytest.raises(IndexTablesError, match="outside"):
            got.scan(row_range=wrong)
    assert got.take([], ["a"]).num_rows == 0
    assert got.take([1, 1], []).num_rows == 2


# -- damage ----------------------------------------------------------------------------------------


def test_damaged_files_say_so(store: Store, rng: Random) -> None:
    table = pa.table({"a": list(range(500)), "b": [[{"x": str(i)}] for i in range(500)]})
    data = plain(table, data_page_size=200, write_batch_size=20, write_page_index=True,
                 write_page_checksum=True)  # fmt: skip
    columns, fine = columns_of(table.schema), table.to_pylist()
    found = set()
    for _ in range(400):
        bad = bytearray(data)
        at = rng.choice([rng.randrange(len(bad)), len(bad) - rng.randrange(1, 2000)])
        if rng.random() < 0.2:
            bad = bad[:at]
        else:
            bad[at] ^= 1 << rng.randrange(8)
        got = parquet_rows(store, bytes(bad), columns)
        try:
            numbers = [rng.randrange(500) for _ in range(5)]
            found.add(got.take(numbers).to_pylist() == [fine[i] for i in numbers])
        except IndexTablesError:
            found.add("refused")
    assert {True, "refused"} <= found


def test_other_files_are_no_parquet_files(store: Store) -> None:
    for data in (b"", b"PAR1", b"x" * 100, b"PAR1" + b"\xff" * 8 + b"PAR1"):
        with pytest.raises(CorruptFileError):
            _ = parquet_rows(store, data, columns_of(pa.schema([("a", pa.int8())]))).num_rows
    with pytest.raises(ProtocolError, match="encrypted"):
        _ = parquet_rows(
            store, b"PAR1" + b"x" * 90 + b"PARE", columns_of(pa.schema([("a", pa.int8())]))
        ).num_rows


def test_damaged_facts_say_so(store: Store, rng: Random) -> None:
    table = random_table(rng, 100)
    facts = parquet_rows(store, plain(table, write_page_index=True)).facts().to_bytes()
    refused = 0
    for _ in range(300):
        bad = bytearray(facts)
        bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        with_end = bytes(bad[: rng.randrange(len(bad))]) if rng.random() < 0.3 else bytes(bad)
        try:
            assert FooterFacts.from_bytes(with_end).to_bytes() == facts
        except CorruptFileError:
            refused += 1
    assert refused > 250


# -- requests --------------------------------------------------------------------------------------


@pytest.fixture
def far() -> Iterator[tuple[CountingS3, Store]]:
    with CountingS3() as server:
        options = {
            "key": "k", "secret": "s", "endpoint_url": server.endpoint,
            "client_kwargs": {"region_name": "us-east-1"},
        }  # fmt: skip
        yield server, open_store("s3://lake/table", options)


def test_a_needle_costs_one_read_where_facts_are_kept(
    far: tuple[CountingS3, Store], rng: Random
) -> None:
    server, store = far
    words = [rng.randbytes(40).hex() for _ in range(60_000)]
    table = pa.table({"id": list(range(60_000)), "text": words, "other": words})
    data = plain(table, write_page_index=True, data_page_size=20_000, write_batch_size=100,
                 use_dictionary=["id"])  # fmt: skip
    assert len(data) > 20 * footer.TAIL_BYTES
    got = parquet_rows(store, data)
    facts = got.facts().to_bytes()
    server.reset()
    assert got.take([31_234], ["text"])["text"][0].as_py() == words[31_234]
    assert server.report().requests == 1
    cold = parquet_rows(store, data, facts=FooterFacts.from_bytes(facts))
    server.reset()
    assert cold.take([31_234], ["text"])["text"][0].as_py() == words[31_234]
    report = server.report()
    assert report.requests == 1
    assert report.bytes_sent < 50_000
    server.reset()
    assert parquet_rows(store, data).take([7], ["text"])["text"][0].as_py() == words[7]
    report = server.report()
    assert report.kinds["PUT"] == 1
    assert report.requests == 3, "one of them wrote the file, one read its end, one read the page"
    server.reset()
    many = cold.take([5, 20_000, 59_000], ["id", "text"])
    assert many["text"].to_pylist() == [words[5], words[20_000], words[59_000]]
    assert server.report().requests <= 6


def test_facts_are_small(store: Store, rng: Random) -> None:
    table = pa.table({f"c{i}": [rng.random() for _ in range(20_000)] for i in range(10)})
    data = plain(table, write_page_index=True, data_page_size=8_000, write_batch_size=100,
                 use_dictionary=False)  # fmt: skip
    facts = parquet_rows(store, data).facts()
    pages = sum(found.shape[1] for found in facts.pages.values())
    assert pages > 150
    assert len(facts.to_bytes()) < 600 + 8 * pages
