"""Upserts: what is asked for, what the feed says, and which files they write."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import indextables
from indextables.errors import PlanningError, UnknownColumnError
from indextables.table.table import Table


def people(*rows: tuple[int, str, int]) -> pa.Table:
    ids, names, numbers = zip(*rows, strict=True)
    return pa.table({"id": list(ids), "name": list(names), "n": list(numbers)})


@pytest.fixture
def path(tmp_path: Path) -> str:
    made = str(tmp_path / "t")
    indextables.write(people(*((i, f"p{i % 3}", i) for i in range(50))), made, rows_per_split=10)
    return made


def kinds(path: str) -> dict[str, list[int]]:
    table = indextables.open(path)
    found: dict[str, list[int]] = {}
    for batch in table.changes(table.version):
        for row in batch.to_pylist():
            found.setdefault(row["_change_type"], []).append(row["id"])
    return {kind: sorted(ids) for kind, ids in found.items()}


def test_signature() -> None:
    given = inspect.signature(Table.upsert).parameters
    assert list(given) == ["self", "data", "on", "update", "insert", "delete"]
    assert (given["update"].default, given["insert"].default) == (None, True)
    assert given["delete"].default is None
    assert all(given[n].kind is inspect.Parameter.KEYWORD_ONLY for n in ("update", "insert"))


def test_updated_and_new_rows_share_a_split(path: str) -> None:
    before = indextables.open(path)
    data = people((3, "x", 0), (17, "y", 0), (100, "z", 0), (44, "w", 0), (101, "v", 0))
    done = before.upsert(data, on="id")
    assert (done.rows_updated, done.rows_inserted, done.rows_deleted) == (3, 2, 0)
    after = indextables.open(path)
    assert after.snapshot.num_files == before.snapshot.num_files + 1
    assert kinds(path) == {
        "update_preimage": [3, 17, 44],
        "update_postimage": [3, 17, 44],
        "insert": [100, 101],
    }
    after.delete("id = 100")
    assert kinds(path) == {"delete": [100]}


@pytest.mark.parametrize(
    "options", [{"partition_by": ["name"]}, {"options": {"spark.indextables.write.clusterBy": "n"}}]
)
def test_tables_that_reorder_rows(tmp_path: Path, options: dict[str, Any]) -> None:
    made = str(tmp_path / "t")
    indextables.write(people(*((i, f"p{i % 3}", -i) for i in range(30))), made, **options)
    data = people((5, "p0", 900), (100, "p1", -900), (6, "p9", 3), (101, "p2", 5))
    indextables.open(made).upsert(data, on="id")
    assert kinds(made) == {
        "update_preimage": [5, 6],
        "update_postimage": [5, 6],
        "insert": [100, 101],
    }


def test_new_rows_in_several_splits(path: str) -> None:
    small = indextables.open(path, options={"spark.indextables.write.rowsPerSplit": "4"})
    data = people(*((i, "new", i) for i in range(44, 59)))
    small.upsert(data, on="id")
    assert kinds(path) == {
        "update_preimage": list(range(44, 50)),
        "update_postimage": list(range(44, 50)),
        "insert": list(range(50, 59)),
    }


def test_two_rows_of_the_data_for_one_of_the_table(path: str) -> None:
    table = indextables.open(path)
    twice = people((3, "x", 0), (3, "y", 0))
    with pytest.raises(PlanningError, match="more than one row of the data"):
        table.upsert(twice, on="id")
    assert table.refresh().version == table.version
    table.upsert(twice, on="id", update=False)
    assert table.refresh().version == table.version
    news = people((300, "x", 0), (300, "y", 0))
    assert table.upsert(news, on="id").rows_inserted == 2


def test_several_rows_of_the_table_for_one_of_the_data(path: str) -> None:
    done = indextables.open(path).upsert(
        pa.table({"name": ["p1"], "n": [7]}), on="name", update={"n": "source.n"}
    )
    assert (done.rows_updated, done.rows_inserted) == (17, 0)
    assert indextables.open(path).count("n = 7 AND name = 'p1'") == 17


def test_keys_and_columns_that_do_not_exist(path: str) -> None:
    table = indextables.open(path)
    with pytest.raises(UnknownColumnError):
        table.upsert(people((1, "x", 0)), on="nothing")
    with pytest.raises(PlanningError, match="no key column"):
        table.upsert(pa.table({"name": ["x"]}), on="id")
    with pytest.raises(PlanningError, match="key columns"):
        table.upsert(people((1, "x", 0)), on=[])


def test_conditions(path: str) -> None:
    table = indextables.open(path)
    data = people((1, "x", 1), (2, "x", 2), (3, "x", 3), (200, "x", 1), (201, "x", 2))
    done = table.upsert(
        data, on=["id"], delete="source.n = 2", update={"n": "n * 10"}, insert="n = 1"
    )
    assert (done.rows_updated, done.rows_deleted, done.rows_inserted) == (2, 1, 1)
    after = indextables.open(path).to_arrow("id < 4 OR id > 100").sort_by("id").to_pylist()
    assert [(r["id"], r["n"]) for r in after] == [(0, 0), (1, 10), (3, 30), (200, 1)]
    assert kinds(path)["delete"] == [2]
