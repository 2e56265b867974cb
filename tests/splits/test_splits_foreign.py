"""Splits written by JVM IndexTables: every row of every table, filters and text by scanning."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from indextables.errors import ProtocolError
from indextables.expr import ast
from indextables.expr.bind import bind
from indextables.log.log import TransactionLog
from indextables.splits.read.access import count_split, read_split
from indextables.splits.read.choose import Chooser
from indextables.splits.read.foreign import ForeignRows, restore
from indextables.splits.read.reader import SplitReader

TABLES = [
    "01_single_write",
    "02_five_appends",
    "03_with_removes",
    "04_partitioned",
    "06_schema_dedup",
    "07_two_writes_no_checkpoint",
    "09_partitioned_multi_append",
    "11_mixed_operations",
    "14_after_merge",
]


def open_table(folder: Path) -> tuple[pa.Schema, list[tuple[Any, SplitReader]]]:
    log = TransactionLog.open(str(folder))
    snapshot = log.snapshot()
    readers = [(add, SplitReader.open(log.store, add)) for add in snapshot.files()]
    return snapshot.schema, readers


@pytest.mark.interop
@pytest.mark.parametrize("name", TABLES)
def test_all_rows_come_back(name: str, interop_dir: Path) -> None:
    schema, readers = open_table(interop_dir / name)
    assert readers
    for add, reader in readers:
        assert reader.is_foreign
        batches = list(read_split(reader, schema=schema, partition_values=add.partition_values))
        table = pa.Table.from_batches(batches, schema=schema)
        assert table.num_rows == add.num_records == reader.num_rows
        for column, low in (add.min_values or {}).items():
            if column in add.partition_values:
                continue
            values = table.column(column).to_pylist()
            high = (add.max_values or {})[column]
            assert _text(min(values)) == low
            assert _text(max(values)) == high
        for column, text in add.partition_values.items():
            assert {_text(v) for v in table.column(column).to_pylist()} == {text}


def _text(value: Any) -> str:
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    return value.isoformat() if isinstance(value, date) else str(value)


@pytest.mark.interop
def test_filters_limits_and_projections(interop_dir: Path) -> None:
    schema, readers = open_table(interop_dir / "06_schema_dedup")
    predicate = bind("rating > 5.0 and title like 'Title 8%'", schema)
    total = 0
    for _, reader in readers:
        found = pa.Table.from_batches(
            read_split(reader, predicate, ["title"], schema=schema),
            schema.empty_table().select(["title"]).schema,
        )
        assert all(t.startswith("Title 8") for t in found.column("title").to_pylist())
        assert count_split(reader, predicate, schema=schema) == found.num_rows
        total += found.num_rows
        assert Chooser(reader, predicate).describe().kind == "scan"
    assert total > 0
    limited = list(read_split(readers[0][1], limit=1, schema=schema))
    assert sum(b.num_rows for b in limited) == 1


@pytest.mark.interop
def test_text_is_searched_by_scanning(interop_dir: Path) -> None:
    schema, readers = open_table(interop_dir / "06_schema_dedup")
    mapping = readers[0][1].mapping
    assert mapping.get("body") is not None
    predicate = bind("body indexquery '\"Body for 8-1\"'", schema, mapping=mapping)
    found = [
        row
        for _, reader in readers
        for batch in read_split(reader, predicate, schema=schema)
        for row in batch.to_pylist()
    ]
    assert [r["id"] for r in found] == [801]


@pytest.mark.interop
def test_scores_of_a_scanned_split_are_zero(interop_dir: Path) -> None:
    _, readers = open_table(interop_dir / "01_single_write")
    hits = [r.search(ast.Term("text", "world"), limit=3, scored=True) for _, r in readers]
    assert sum(len(h.rows) for h in hits) == 1
    assert all((h.scores == 0).all() for h in hits if h.scores is not None)


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        ({"_values": [1, None]}, pa.list_(pa.int32()), [1, None]),
        ({"a": 1.0}, pa.map_(pa.string(), pa.int64()), [("a", 1)]),
        ({"1": "x"}, pa.map_(pa.int32(), pa.string()), [(1, "x")]),
        ({"a": {"b": "x"}}, pa.struct([("a", pa.struct([("b", pa.string()), ("c", pa.int8())]))]),
         {"a": {"b": "x", "c": None}}),
        (datetime(2024, 1, 2, 3), pa.date32(), date(2024, 1, 2)),
        (datetime(2024, 1, 2, 3), pa.timestamp("us", "UTC"), datetime(2024, 1, 2, 3, tzinfo=UTC)),
        (datetime(2024, 1, 2, 3, tzinfo=UTC), pa.timestamp("us"), datetime(2024, 1, 2, 3)),
        (date(2024, 1, 2), pa.timestamp("us"), datetime(2024, 1, 2)),
        ("2024-01-02T03:00:00", pa.timestamp("us"), datetime(2024, 1, 2, 3)),
        (1.5, pa.decimal128(5, 2), Decimal("1.50")),
        ({"a": 1}, pa.string(), '{"a": 1}'),
        (7, pa.float64(), 7.0),
        (b"x", pa.binary(), b"x"),
        (None, pa.int8(), None),
    ],
)  # fmt: skip
def test_stored_values_become_values_of_the_table(
    value: Any, dtype: pa.DataType, expected: Any
) -> None:
    found = restore(value, dtype)
    assert found == expected
    assert pa.array([found], dtype)[0].as_py() == expected


@pytest.mark.interop
def test_columns_that_are_indexed_but_not_stored_are_refused(
    interop_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A companion split has the index of its columns and none of their values."""
    schema, readers = open_table(interop_dir / "01_single_write")
    add, reader = readers[0]
    source = reader.source
    plain = type(source).member

    def member(self: Any, name: str) -> bytes:
        raw = plain(self, name)
        if name != "meta.json":
            return raw
        meta = json.loads(raw)
        for field in meta["schema"]:
            field["options"]["stored"] = False
        return json.dumps(meta).encode()

    monkeypatch.setattr(type(source), "member", member)
    rows = ForeignRows(source).typed(schema)
    with pytest.raises(ProtocolError, match="indexes id, text, score without holding") as caught:
        list(rows.scan())
    assert caught.value.path == add.path
    assert rows.num_rows == add.num_records
