"""Columns that change inside: an index of a field is not asked about another of its name."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import indextables
from indextables.companion.columns import inner_identity
from indextables.errors import IndexTablesError
from indextables.sources.base import SourceColumn, nested_field


def column(*ids: int) -> SourceColumn:
    inner = [nested_field(f"f{n}", pa.int32(), field_id=one) for n, one in enumerate(ids)]
    return SourceColumn("s", pa.struct(inner), "1", "s", 1)


def test_another_field_of_the_same_name_is_another() -> None:
    assert inner_identity([column(2, 3)], ["1"]) == inner_identity([column(2, 3)], ["1"])
    assert inner_identity([column(2, 3)], ["1"]) != inner_identity([column(2, 4)], ["1"])


def test_columns_without_fields_and_columns_that_are_not_held_do_not_count() -> None:
    plain = SourceColumn("n", pa.int64(), "9", "n", 9)
    assert inner_identity([plain], ["9"]) == ""
    assert inner_identity([plain, column(2)], ["9"]) == ""
    assert inner_identity([plain, column(2)], ["1", "9"]) == inner_identity([column(2)], ["1"])


@pytest.fixture
def iceberg(tmp_path: Path) -> object:
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/w")
    catalog.create_namespace("db")
    rows = pa.table({"id": pa.array([1, 2], pa.int32()), "s": [{"a": 7, "b": 1}, {"a": 8, "b": 2}]})
    table = catalog.create_table("db.t", rows.schema)
    table.append(rows)
    yield table
    catalog.engine.dispose()


def test_a_field_that_was_dropped_and_added_again_is_empty(iceberg: object, tmp_path: Path) -> None:
    from pyiceberg.types import LongType

    table: object = iceberg
    at = str(tmp_path / "companion")
    source = table.location().removeprefix("file://")  # type: ignore[attr-defined]
    indextables.index(source, at)
    assert indextables.open(at).count("s.a = 7") == 1
    with table.update_schema(allow_incompatible_changes=True) as change:  # type: ignore[attr-defined]
        change.delete_column("s.a")
    with table.update_schema() as change:  # type: ignore[attr-defined]
        change.add_column(("s", "a"), LongType())
    with table.update_schema() as change:  # type: ignore[attr-defined]
        change.move_first("s.a")
    for _ in range(2):
        opened = indextables.open(at)
        assert opened.count("s.a = 7") == 0
        assert opened.count("s.a IS NULL") == 2
        assert opened.count("s.b = 2") == 1
        opened.sync()


def test_another_way_of_indexing_is_refused_and_the_same_syncs(tmp_path: Path) -> None:
    source, at = tmp_path / "source", str(tmp_path / "companion")
    source.mkdir()
    pq.write_table(pa.table({"m": ["two words"], "n": [1]}), source / "a.parquet")
    indextables.index(str(source), at, text=["m"])
    pq.write_table(pa.table({"m": ["more words"], "n": [2]}), source / "b.parquet")
    assert indextables.index(str(source), at, text=["m"]).count("m TEXTSEARCH 'words'") == 2
    assert indextables.index(str(source), at).snapshot.lag.uncovered == 0
    for other in ({"text": ["n", "m"]}, {"exclude": ["n"]}, {"columns": ["n"]}, {"json": ["m"]}):
        with pytest.raises(IndexTablesError):
            indextables.index(str(source), at, **other)
