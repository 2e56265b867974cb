"""Rows come back as they were written: all types, scans, scattered rows, evolved schemas."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from splitkit import SCHEMA, finish_split, open_split, random_table, same, tables

from indextables.config import Config
from indextables.errors import IndexTablesError, SchemaMismatchError, UnknownColumnError
from indextables.expr.predicate import TRUE
from indextables.mapping import DocMapping
from indextables.splits.read.access import read_split
from indextables.splits.write.split_writer import SplitWriter


@settings(max_examples=40)
@given(table=tables(), data=st.data())
def test_rows_of_all_types_come_back_identical(table: pa.Table, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        reader = open_split(table, Path(folder))
        assert reader.num_rows == table.num_rows
        assert reader.schema.equals(table.schema)
        found = pa.Table.from_batches(read_split(reader, batch_rows=5), schema=table.schema)
        for name in table.schema.names:
            assert same(found.column(name), table.column(name)), name
        rows = data.draw(st.lists(st.integers(0, table.num_rows - 1), min_size=1, max_size=6))
        taken = reader.rows.take(np.array(rows, np.uint32), ["s", "f64", "st"])
        expected = table.select(["s", "f64", "st"]).take(rows)
        for name in ("s", "f64", "st"):
            assert same(taken.column(name), expected.column(name))


def test_columns_may_be_chosen_and_ordered(tmp_path: Path, rng: object) -> None:
    table = pa.table({"a": [1, 2, 3], "b": ["x", None, "z"]})
    reader = open_split(table, tmp_path)
    found = pa.Table.from_batches(read_split(reader, columns=["b", "a"]))
    assert found.equals(table.select(["b", "a"]))
    with pytest.raises(UnknownColumnError, match="Known names: a, b"):
        list(read_split(reader, columns=["nope"]))


def test_no_columns_still_count_rows(tmp_path: Path) -> None:
    reader = open_split(pa.table({"a": list(range(100))}), tmp_path)
    batches = list(read_split(reader, columns=[], batch_rows=30))
    assert [b.num_rows for b in batches] == [30, 30, 30, 10]
    assert all(b.num_columns == 0 for b in batches)


def test_limit_stops_early(tmp_path: Path) -> None:
    reader = open_split(pa.table({"a": list(range(10_000))}), tmp_path)
    found = pa.Table.from_batches(read_split(reader, limit=7))
    assert found.column("a").to_pylist() == list(range(7))
    assert list(read_split(reader, limit=0)) == []


def test_columns_added_later_are_null_and_wider_types_are_cast(tmp_path: Path) -> None:
    old = pa.table({"a": pa.array([1, None], pa.int32()), "f": pa.array([0.5, None], pa.float32())})
    reader = open_split(old, tmp_path)
    schema = pa.schema(
        [
            ("new", pa.string()),
            ("A", pa.int64()),
            ("f", pa.float64()),
            ("more", pa.list_(pa.int8())),
        ]
    )
    found = pa.Table.from_batches(read_split(reader, schema=schema), schema=schema)
    assert found.to_pylist() == [
        {"new": None, "A": 1, "f": 0.5, "more": None},
        {"new": None, "A": None, "f": None, "more": None},
    ]


def test_a_type_that_cannot_be_cast_is_an_error(tmp_path: Path) -> None:
    reader = open_split(pa.table({"a": ["x"]}), tmp_path)
    with pytest.raises(SchemaMismatchError, match="string in the split and int64"):
        list(read_split(reader, schema=pa.schema([("a", pa.int64())])))


def test_partition_columns_are_constants(tmp_path: Path) -> None:
    reader = open_split(pa.table({"a": [1, 2]}), tmp_path)
    schema = pa.schema([("p", pa.date32()), ("a", pa.int64()), ("q", pa.string())])
    values = {"p": "1969-12-31", "q": None}
    batches = read_split(reader, schema=schema, partition_values=values)
    rows = pa.Table.from_batches(batches).to_pylist()
    assert [str(r["p"]) for r in rows] == ["1969-12-31"] * 2
    assert [r["q"] for r in rows] == [None, None]


def test_equal_rows_give_equal_bytes(tmp_path: Path, rng: object) -> None:
    import random

    table = random_table(random.Random(5), 3000)
    first, second = finish_split(table), finish_split(table)
    assert Path(first.local_path).read_bytes() == Path(second.local_path).read_bytes()
    first.discard()
    second.discard()
    assert not Path(first.local_path).parent.exists()


def test_many_batches_equal_one(tmp_path: Path) -> None:
    import random

    table = random_table(random.Random(6), 40_000)
    chunks = pa.Table.from_batches(table.to_batches(max_chunksize=777))
    whole, parts = open_split(table, tmp_path), open_split(chunks, tmp_path)
    left = pa.Table.from_batches(read_split(whole))
    right = pa.Table.from_batches(read_split(parts))
    assert all(same(left.column(n), right.column(n)) for n in table.schema.names)
    assert all(same(left.column(n), table.column(n)) for n in table.schema.names)


def test_a_split_needs_rows_and_fitting_batches(tmp_path: Path) -> None:
    mapping = DocMapping.for_schema(SCHEMA)
    with pytest.raises(IndexTablesError, match="at least one row"):
        SplitWriter(SCHEMA, mapping, work_dir=str(tmp_path)).finish()
    schema = pa.schema([("a", pa.int8())])
    writer = SplitWriter(schema, DocMapping.for_schema(schema), work_dir=str(tmp_path))
    with pytest.raises(SchemaMismatchError, match="no column a"):
        writer.write(pa.record_batch({"b": [1]}))
    with pytest.raises(SchemaMismatchError, match="does not fit"):
        writer.write(pa.record_batch({"a": [1000]}))
    writer.write(pa.record_batch({"a": [5]}))
    writer.abort()
    assert list(tmp_path.iterdir()) == []


def test_offsets_in_the_log_are_not_needed(tmp_path: Path) -> None:
    from indextables.splits.read.reader import SplitReader
    from indextables.splits.read.source import SplitRef

    reader = open_split(pa.table({"a": [1, 2]}), tmp_path)
    again = SplitReader(reader.source.store, SplitRef(reader.path, reader.ref.size), Config())
    assert again.num_rows == 2
    assert pa.Table.from_batches(read_split(again, TRUE)).column("a").to_pylist() == [1, 2]
