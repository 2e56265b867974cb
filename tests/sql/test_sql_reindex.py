"""REINDEX builds what is missing of the defined indexes, and nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import indextables
from indextables import columnindex
from indextables.errors import IndexTablesError


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    columnindex.forget_indexes()
    yield
    columnindex.forget_indexes()


def rows(start: int, count: int = 50) -> pa.Table:
    numbers = range(start, start + count)
    return pa.table({"id": list(numbers), "name": [f"n{i % 7}" for i in numbers]})


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Two splits without an index; the table's name has a quote."""
    place = str(tmp_path / "it's")
    indextables.write(rows(0), place)
    indextables.write(rows(50), place)
    return place


def reindex(path: str, rest: str = "") -> list[dict[str, Any]]:
    quoted = path.replace("'", "''")
    found: list[dict[str, Any]] = indextables.sql(None, f"REINDEX '{quoted}' {rest}").to_pylist()
    return found


def done(made: list[dict[str, Any]]) -> Counter[tuple[str, str]]:
    return Counter((row["column"], row["action"]) for row in made)


def used(path: str, where: str) -> int:
    """How many splits answer by an index, after comparing the answer with that of a scan."""
    table = indextables.open(path)
    plain = {"spark.indextables.columnIndex.enabled": "false"}
    scanned = indextables.open(path, options=plain).to_arrow(where)
    order = [("id", "ascending")]
    assert table.to_arrow(where).sort_by(order).equals(scanned.sort_by(order))
    return str(table.explain(where)).count("column_index(")


def test_a_table_without_indexes_has_nothing_to_build(path: str) -> None:
    assert reindex(path) == []


def test_defined_indexes_are_built(path: str) -> None:
    table = indextables.open(path)
    table.define_index("id")
    table.define_index("name")
    made = reindex(path)
    assert done(made) == {("id", "created"): 2, ("name", "created"): 2}
    assert {row["split_path"] for row in made} == {f.path for f in table.snapshot.files()}
    by_column = {row["column"]: row for row in made}
    assert (by_column["id"]["cardinality"], by_column["id"]["rows"]) == (50, 50)
    assert by_column["name"]["cardinality"] == 7
    for row in made:
        assert row["table_path"] == path
        assert (Path(path) / row["index_path"]).stat().st_size == row["size_bytes"] > 0
    assert used(path, "id = 77") == 1
    assert indextables.open(path).index_lookup("id", eq=77)


def test_only_the_named_columns(path: str) -> None:
    table = indextables.open(path)
    table.define_index("id")
    table.define_index("name")
    assert done(reindex(path, "ON DATA (NAME)")) == {("name", "created"): 2}
    assert done(reindex(path)) == {("name", "unchanged"): 2, ("id", "created"): 2}


@pytest.mark.parametrize("column", ["nope", "name"], ids=["unknown", "not indexed"])
def test_columns_without_an_index(path: str, column: str) -> None:
    indextables.open(path).define_index("id")
    before = indextables.open(path).version
    with pytest.raises(IndexTablesError, match=f"No index found for column '{column}'"):
        reindex(path, f"ON (id, {column})")
    assert indextables.open(path).version == before
    assert done(reindex(path)) == {("id", "created"): 2}


def test_twice_is_once(path: str) -> None:
    indextables.open(path).define_index("id")
    first = reindex(path)
    version = indextables.open(path).version
    data = {row["index_path"]: (Path(path) / row["index_path"]).read_bytes() for row in first}
    again = reindex(path)
    assert done(again) == {("id", "unchanged"): 2}
    assert indextables.open(path).version == version
    facts = ("column", "split_path", "cardinality", "rows", "size_bytes")
    key = [sorted(tuple(row[f] for f in facts) for row in made) for made in (first, again)]
    assert key[0] == key[1]
    assert data == {p: (Path(path) / p).read_bytes() for p in data}


def test_after_an_append_and_a_delete(path: str) -> None:
    table = indextables.open(path)
    table.create_index("id")
    indextables.write(rows(100), path)
    indextables.open(path).delete("id IN (3, 60, 120)")
    for number in (3, 4, 60, 61, 120, 121):
        assert used(path, f"id = {number}") <= 1
    made = reindex(path)
    assert {row["split_path"] for row in made} == {
        f.path for f in indextables.open(path).snapshot.files()
    }
    assert sum(row["rows"] for row in made) == 150, "an index counts the deleted rows too"
    assert used(path, "id = 61") == used(path, "id = 121") == 1
    assert indextables.open(path).to_arrow("id IN (3, 60, 120)").num_rows == 0
    assert done(reindex(path)).keys() == {("id", "unchanged")}


@pytest.mark.parametrize("damage", ["gone", "cut"])
def test_spoilt_files_are_built_again(path: str, damage: str) -> None:
    indextables.open(path).define_index("id")
    made = reindex(path)
    spoilt = Path(path) / made[0]["index_path"]
    good = spoilt.read_bytes()
    if damage == "gone":
        spoilt.unlink()
    else:
        spoilt.write_bytes(good[: len(good) // 2])
    columnindex.forget_indexes()
    assert done(reindex(path)) == {("id", "created"): 1, ("id", "unchanged"): 1}
    assert spoilt.read_bytes() == good
    assert used(path, "id = 10") == 1


def test_a_path_without_a_table(tmp_path: Path) -> None:
    with pytest.raises(IndexTablesError):
        reindex(str(tmp_path / "nowhere"))
