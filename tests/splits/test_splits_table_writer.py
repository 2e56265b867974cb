"""Rows find their partition, splits roll, uploads are named safely and undone on abort."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indextables.config import Config
from indextables.errors import SchemaMismatchError, UnknownColumnError
from indextables.mapping import DocMapping
from indextables.splits.format.partition_values import escape, partition_array, partition_texts
from indextables.splits.read.access import read_split
from indextables.splits.read.reader import SplitReader
from indextables.splits.write import table_writer
from indextables.splits.write.table_writer import TableWriter
from indextables.storage.base import Store, open_store
from indextables.storage.paths import safe_path


def write(
    table: pa.Table, partitions: tuple[str, ...], folder: Path, **config: Any
) -> tuple[Store, list[Any], DocMapping]:
    store = open_store(str(folder))
    mapping = DocMapping.for_schema(table.schema, partitions)
    writer = TableWriter(table.schema, partitions, mapping, Config(config), store, job_id="j")
    for batch in table.to_batches(max_chunksize=1000):
        writer.write(batch)
    return store, writer.finish(), mapping


def read_all(store: Store, adds: list[Any], schema: pa.Schema) -> pa.Table:
    parts = [
        batch for add in adds for batch in read_split(SplitReader.open(store, add), schema=schema)
    ]
    return pa.Table.from_batches(parts, schema=schema)


def test_rows_are_routed_by_all_partition_columns(tmp_path: Path, rng: random.Random) -> None:
    rows = 3000
    table = pa.table(
        {
            "a": list(range(rows)),
            "p": [rng.choice(["x", "y/z", None, "a=b%", ""]) for _ in range(rows)],
            "q": pa.array([rng.choice([1, 10, None]) for _ in range(rows)], pa.int32()),
        }
    )
    store, adds, _ = write(table, ("p", "Q"), tmp_path)
    assert len(adds) == len({(r["p"], r["q"]) for r in table.to_pylist()})
    assert sum(add.num_records for add in adds) == rows
    found = read_all(store, adds, table.schema)
    assert sorted(found.to_pylist(), key=lambda r: r["a"]) == table.to_pylist()
    for add in adds:
        part = read_all(store, [add], table.schema)
        assert part.column("a").to_pylist() == sorted(part.column("a").to_pylist())
    folders = {add.path.rsplit("/", 1)[0] for add in adds}
    assert "p=y%2Fz/q=1" in folders
    assert "p=__HIVE_DEFAULT_PARTITION__/q=__HIVE_DEFAULT_PARTITION__" in folders
    nulls = next(a for a in adds if a.partition_values == {"p": None, "q": None})
    assert "HIVE" in nulls.path


def test_splits_roll_by_rows_and_by_size(tmp_path: Path) -> None:
    table = pa.table({"a": list(range(2500)), "s": ["text of some length"] * 2500})
    store, adds, _ = write(table, (), tmp_path / "rows", **{"write.rowsPerSplit": 1000})
    assert [add.num_records for add in adds] == [1000, 1000, 500]
    assert read_all(store, adds, table.schema).equals(table)
    _, adds, _ = write(table, (), tmp_path / "size", **{"write.targetSplitSize": "10k"})
    assert len(adds) > 2


def test_many_partitions_stay_within_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_writer, "WAITING_BYTES", 2000)
    table = pa.table({"p": [i % 20 for i in range(4000)], "a": list(range(4000))})
    store, adds, _ = write(table, ("p",), tmp_path)
    assert len(adds) >= 20
    found = read_all(store, adds, table.schema)
    assert sorted(found.column("a").to_pylist()) == list(range(4000))


def test_an_action_says_all_about_its_split(tmp_path: Path) -> None:
    table = pa.table({"p": ["x"], "a": [7]})
    store, (add,), mapping = write(table, ("p",), tmp_path)
    assert add.partition_values == {"p": "x"}
    assert add.size == store.stat(add.path).size
    assert add.footer_end_offset == add.size
    assert add.has_footer_offsets
    assert add.min_values == add.max_values == {"a": "7"}
    assert add.doc_mapping_json == mapping.to_json()
    assert add.data_change


def test_abort_leaves_nothing(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "t"))
    schema = pa.schema([("a", pa.int64())])
    mapping = DocMapping.for_schema(schema)
    config = Config({"write.rowsPerSplit": 10})
    writer = TableWriter(schema, (), mapping, config, store, job_id="j")
    writer.write(pa.record_batch({"a": list(range(25))}))
    assert len(list(store.list(recursive=True))) == 2
    writer.abort()
    assert list(store.list(recursive=True)) == []
    assert writer.finish() == []


def test_no_rows_no_splits(tmp_path: Path) -> None:
    schema = pa.schema([("a", pa.int64())])
    store = open_store(str(tmp_path))
    writer = TableWriter(schema, (), DocMapping.for_schema(schema), None, store)
    writer.write(pa.record_batch({"a": pa.array([], pa.int64())}))
    assert writer.finish() == []


def test_wrong_columns_are_refused(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False), ("p", pa.string())])
    store = open_store(str(tmp_path))

    def writer(partitions: tuple[str, ...]) -> TableWriter:
        mapping = DocMapping.for_schema(schema, [p for p in partitions if p in schema.names])
        return TableWriter(schema, partitions, mapping, None, store)

    with pytest.raises(UnknownColumnError, match="'zz'"):
        writer(("zz",))
    with pytest.raises(SchemaMismatchError, match="not a partition column"):
        writer(("a", "p"))
    with pytest.raises(UnknownColumnError, match="'extra'"):
        writer(()).write(pa.record_batch({"a": [1], "p": ["x"], "extra": [1]}))
    with pytest.raises(SchemaMismatchError, match="no column p"):
        writer(()).write(pa.record_batch({"a": [1]}))
    with pytest.raises(SchemaMismatchError, match="may not be null"):
        writer(()).write(pa.record_batch({"a": pa.array([None], pa.int64()), "p": ["x"]}))
    with pytest.raises(SchemaMismatchError, match="stands for NULL"):
        writer(("p",)).write(pa.record_batch({"a": [1], "p": ["__HIVE_DEFAULT_PARTITION__"]}))


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (date(1969, 12, 31), pa.date32(), "1969-12-31"),
        (
            datetime(2024, 1, 2, 3, 4, 5, 600, UTC),
            pa.timestamp("us", "UTC"),
            "2024-01-02 03:04:05.0006",
        ),
        (datetime(1900, 1, 1), pa.timestamp("us"), "1900-01-01 00:00:00"),
        (Decimal("1.50"), pa.decimal128(5, 2), "1.50"),
        (True, pa.bool_(), "true"),
        (-0.0, pa.float64(), "0.0"),
        (2**62, pa.int64(), str(2**62)),
        ("ü/=", pa.string(), "ü/="),
        (None, pa.int8(), None),
    ],
)
def test_partition_values_round_trip(value: Any, dtype: pa.DataType, text: str | None) -> None:
    array = pa.array([value], dtype)
    assert partition_texts(array, "c") == [text]
    assert partition_array(text, dtype, 2, "p").to_pylist() == [value, value]


@pytest.mark.parametrize("dtype", [pa.binary(), pa.list_(pa.int8()), pa.null()])
def test_some_types_cannot_partition(dtype: pa.DataType) -> None:
    with pytest.raises(SchemaMismatchError, match="cannot be a partition column"):
        partition_texts(pa.nulls(1, dtype), "c")


@given(st.text(max_size=20), st.text(max_size=20))
def test_folder_names_are_safe_and_distinct(one: str, two: str) -> None:
    name = f"p={escape(one)}"
    assert safe_path(name) == name
    assert "/" not in name
    assert (escape(one) == escape(two)) == (one == two)
