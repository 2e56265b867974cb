"""Writing tables: modes, partitions, evolution, time travel; every row comes back."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import indextables
from indextables.errors import (
    ConfigError,
    PlanningError,
    SchemaMismatchError,
    TableExistsError,
    TableNotFoundError,
    UnknownColumnError,
)


def rows(table: indextables.Table, where: str | None = None) -> list[dict[str, object]]:
    found = table.to_arrow(where=where).to_pylist()
    return sorted(found, key=lambda r: r["id"])


def people(*ids: int, day: str = "mon") -> pa.Table:
    return pa.table(
        {"id": list(ids), "name": [f"n{i}" for i in ids], "day": [day] * len(ids)},
        schema=pa.schema([("id", pa.int64()), ("name", pa.string()), ("day", pa.string())]),
    )


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "table")


def test_append_overwrite_and_time_travel(path: str) -> None:
    indextables.write(people(1, 2), path)
    indextables.write(people(3), path)
    assert [r["id"] for r in rows(indextables.open(path))] == [1, 2, 3]
    indextables.write(people(9), path, mode="overwrite")
    assert [r["id"] for r in rows(indextables.open(path))] == [9]
    assert [r["id"] for r in rows(indextables.open(path, version=2))] == [1, 2, 3]
    assert [e.operation for e in indextables.open(path).history(2)] == ["overwrite", "append"]


def test_error_and_ignore_modes(path: str) -> None:
    indextables.write(people(1), path, mode="error")
    with pytest.raises(TableExistsError, match="append"):
        indextables.write(people(2), path, mode="error")
    result = indextables.write(people(2), path, mode="ignore")
    assert result.version == 1
    assert indextables.open(path).count() == 1
    with pytest.raises(ConfigError, match="unknown mode"):
        indextables.write(people(2), path, mode="upsert")


def test_missing_table_says_so(path: str) -> None:
    with pytest.raises(TableNotFoundError, match="no transaction log"):
        indextables.open(path)


def test_partitions_replace_where_and_dynamic_overwrite(path: str) -> None:
    indextables.write(people(1, 2, day="mon"), path, partition_by=["day"])
    indextables.write(people(3, day="tue"), path)
    indextables.write(people(4, day="tue"), path, mode="overwrite", replace_where="day = 'tue'")
    assert [r["id"] for r in rows(indextables.open(path))] == [1, 2, 4]
    with pytest.raises(SchemaMismatchError, match="outside replace_where"):
        indextables.write(people(5, day="wed"), path, mode="overwrite", replace_where="day='tue'")
    indextables.write(
        people(7, day="mon"),
        path,
        mode="overwrite",
        options={"spark.indextables.write.partitionOverwriteMode": "dynamic"},
    )
    assert [r["id"] for r in rows(indextables.open(path))] == [4, 7]
    with pytest.raises(PlanningError, match="only partition columns"):
        indextables.write(people(1), path, mode="overwrite", replace_where="id = 1")


@pytest.mark.parametrize("value", ["a/b", "x=y", "ü ñ", "", "%41", "..", None])
def test_awkward_partition_values(path: str, value: str | None) -> None:
    data = pa.table({"id": [1], "p": pa.array([value], pa.string())})
    indextables.write(data, path, partition_by=["p"])
    table = indextables.open(path)
    assert table.to_arrow().to_pylist() == [{"id": 1, "p": value}]
    where = "p IS NULL" if value is None else f"p = '{value}'"
    assert table.count(where) == 1


def test_merge_schema_is_opt_in(path: str) -> None:
    indextables.write(people(1), path)
    wider = people(2).append_column("age", pa.array([40], pa.int32()))
    with pytest.raises(SchemaMismatchError, match="no column 'age'"):
        indextables.write(wider, path)
    indextables.write(wider, path, merge_schema=True)
    table = indextables.open(path)
    assert [(r["id"], r["age"]) for r in rows(table)] == [(1, None), (2, 40)]
    assert table.count("age IS NULL") == 1
    assert table.count("age = 40") == 1
    assert indextables.open(path, version=1).schema.names == ["id", "name", "day"]


def test_type_conflicts_write_nothing(path: str) -> None:
    indextables.write(people(1), path)
    bad = pa.table({"id": ["one"], "name": ["x"], "day": ["mon"]})
    with pytest.raises(SchemaMismatchError, match="bigint in the table and string"):
        indextables.write(bad, path)
    assert indextables.open(path).version == 1
    narrow = pa.table({"id": pa.array([5], pa.int16()), "name": ["x"], "day": ["mon"]})
    indextables.write(narrow, path)
    assert indextables.open(path).count("id = 5") == 1


def test_mistakes_in_options_are_told(path: str) -> None:
    with pytest.raises(UnknownColumnError, match="Did you mean 'name'"):
        indextables.write(people(1), path, text=["nmae"])
    with pytest.raises(ConfigError, match="unknown setting"):
        indextables.write(people(1), path, options={"spark.indextables.write.rowsPerSplt": 5})
    indextables.write(people(1), path, text=["name"])
    with pytest.raises(ConfigError, match="is indexed as"):
        indextables.write(people(1), path, ip=["name"])


def test_rows_per_split_rolls(path: str) -> None:
    indextables.write(people(*range(25)), path, rows_per_split=10)
    table = indextables.open(path)
    assert sorted(f.num_records for f in table.snapshot.files()) == [5, 10, 10]
    assert len(table) == 25


def test_small_index_memory_rolls_splits_and_never_segments(path: str) -> None:
    count = 120_000
    data = pa.table({"id": range(count), "msg": [f"word{i} common" for i in range(count)]})
    options = {"spark.indextables.indexWriter.heapSize": "1M"}
    indextables.write(data, path, text=["msg"], options=options)
    table = indextables.open(path)
    assert [f.num_records for f in table.snapshot.files()] == [65_536, count - 65_536]
    assert table.count("msg TEXTSEARCH 'common'") == count
    found = table.to_arrow("msg TEXTSEARCH 'word70000'").to_pylist()
    assert found == [{"id": 70_000, "msg": "word70000 common"}]


def test_readers_of_every_kind(path: str) -> None:
    reader = pa.RecordBatchReader.from_batches(people(1).schema, people(1, 2).to_batches())
    indextables.write(reader, path)
    indextables.write(people(3).to_batches()[0], path)
    indextables.write([{"id": 4, "name": "n4", "day": "mon"}], path)
    table = indextables.open(path)
    assert table.scan().read_all().num_rows == 4
    assert table.to_arrow(columns=[]).num_rows == 4
    assert table.to_arrow(limit=2).num_rows == 2
    with pytest.raises(ConfigError, match="cannot write"):
        indextables.write(42, path)


def test_repr_and_html_do_no_io(path: str) -> None:
    indextables.write(people(1, 2), path, partition_by=["day"])
    table = indextables.open(path)
    text = repr(table)
    assert "2 rows" in text
    assert "partitions day" in text
    assert len(text.splitlines()) <= 6
    assert "<table" in table._repr_html_()


def test_diff_names_what_changed(path: str) -> None:
    indextables.write(people(1, 2), path)
    indextables.write(people(3), path)
    change = indextables.open(path).diff(1)
    assert (len(change.added), len(change.removed), change.rows_added) == (1, 0, 1)
    assert "v1 -> v2" in repr(change)


def test_failed_write_leaves_the_table_alone(path: str) -> None:
    indextables.write(people(1), path)

    def broken() -> object:
        yield people(2).to_batches()[0]
        raise RuntimeError("source failed")

    reader = pa.RecordBatchReader.from_batches(people(1).schema, broken())
    with pytest.raises(RuntimeError, match="source failed"):
        indextables.write(reader, path)
    assert indextables.open(path).version == 1
    assert len(list(Path(path).glob("*.split"))) == 1


def test_a_table_without_splits_remembers_how_it_is_indexed(path: str) -> None:
    indextables.write(pa.table({"m": ["big fox"], "n": ["x"]}), path, text=["m"])
    indextables.open(path).delete("true")
    empty = indextables.open(path)
    assert empty.snapshot.num_files == 0
    assert empty.mapping.get("m").is_tokenized
    assert empty.count("m TEXTSEARCH 'fox'") == 0
    indextables.write(pa.table({"m": ["small fox"], "n": ["y"]}), path)
    assert indextables.open(path).count("m TEXTSEARCH 'fox'") == 1


def test_options_may_still_change_a_table_without_splits(path: str) -> None:
    indextables.write(pa.table({"m": ["big fox"]}), path)
    indextables.open(path).delete("true")
    indextables.write(pa.table({"m": ["big fox"]}), path, text=["m"])
    assert indextables.open(path).count("m TEXTSEARCH 'fox'") == 1
    with pytest.raises(ConfigError, match="is indexed as"):
        indextables.write(pa.table({"m": ["big fox"]}), path, ip=["m"])
