"""Column indexes through Spark: built in its tasks, and every query as without them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import indextables
from indextables.splits.lookup.colindex import compact
from indextables.splits.lookup.colindex.layout import split_number
from indextables.splits.lookup.colindex.postings import build_postings

COLUMNS = ("email", "n", "x", "at", "flag")
QUERIES = (
    "email = 'u7@x'",
    "email IN ('u1@x', 'u2@x', 'u2@x', 'nobody')",
    "email LIKE 'u12%'",
    "email IS NULL AND n > 3",
    "email <=> 'u5@x'",
    "n BETWEEN 4 AND 6 AND x > 0",
    "x = 'NaN'",
    "x = -0.0D AND n = 1",
    "at < TIMESTAMP '1970-01-01 00:00:00.000050'",
    "flag AND n = 7",
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    where = str(tmp_path_factory.mktemp("columnindex") / "t")
    odd = [0.0, -0.0, float("nan"), 1.5, None]
    count = 400
    rows = pa.table(
        {
            "id": pa.array(range(count)),
            "email": pa.array([None if i % 11 == 3 else f"u{i % 170}@x" for i in range(count)]),
            "n": pa.array([i % 13 for i in range(count)], pa.int32()),
            "x": pa.array([odd[i % 5] for i in range(count)], pa.float64()),
            "at": pa.array([i * 7 % 400 for i in range(count)], pa.timestamp("us", "UTC")),
            "flag": pa.array([i % 17 == 0 for i in range(count)]),
        }
    )
    indextables.write(rows, where, rows_per_split=150)
    return where


FEW = (0, 7)
"""The plain data source plans every scan in a process of its own, and Spark keeps its filters."""


def answers(
    spark: Any, path: str, layer: str, which: Any, enabled: bool = True
) -> list[tuple[int, int]]:
    """Some queries in one job: (query, id) pairs."""
    reader = spark.read.format(layer)
    reader = reader.option("spark.indextables.columnIndex.enabled", str(enabled).lower())
    reader.load(path).createOrReplaceTempView("indexed")
    parts = [f"SELECT {i} AS q, id FROM indexed WHERE {QUERIES[i]}" for i in which]
    return sorted((r.q, r.id) for r in spark.sql(" UNION ALL ".join(parts)).collect())


def of_table(table: indextables.Table) -> list[tuple[int, int]]:
    pairs = [(i, row) for i, q in enumerate(QUERIES) for row in table.to_arrow(q)["id"].to_pylist()]
    return sorted(pairs)


def test_queries_with_and_without_index_are_equal(spark: Any, path: str) -> None:
    table = indextables.open(path)
    plain = of_table(table)
    assert {i for i, _ in plain} == set(range(len(QUERIES)))

    context = spark.sparkContext
    context.setJobGroup("column index", "built in tasks")
    for column in COLUMNS:
        made = indextables.sql(spark, f"CREATE INDEX ON '{path}' ({column})").collect()
        assert [r.action for r in made] == ["created"] * table.snapshot.num_files
    jobs = context.statusTracker().getJobIdsForGroup("column index")
    context.setLocalProperty("spark.jobGroup.id", None)
    assert len(jobs) == len(COLUMNS)

    table = indextables.open(path)
    assert all(c.percent == 100 for c in table.index_coverage())
    assert "column_index(email)" in table.explain(QUERIES[0])
    assert of_table(table) == plain
    for enabled in (True, False):
        assert answers(spark, path, "indextables", range(len(QUERIES)), enabled) == plain
    some = answers(spark, path, "indextables_python", FEW)
    assert some == [pair for pair in plain if pair[0] in FEW]


def test_tasks_build_what_threads_build_and_readers_use_it(spark: Any, tmp_path: Path) -> None:
    where = str(tmp_path / "t")
    indextables.write(pa.table({"id": range(90), "n": range(90)}), where, rows_per_split=30)
    table = indextables.open(where)
    made = table.create_index("n")
    bytes_of = {r.index_path: table.store.read(r.index_path) for r in made}
    again = indextables.open(where).rebuild_index("n", spark=spark)
    assert {r.action for r in again} == {"rebuilt"}
    assert {r.index_path: table.store.read(r.index_path) for r in again} == bytes_of

    # An index that knows nothing of the row hides it: the proof that tasks ask the index.
    for row in again:
        wrong = build_postings(pa.array([-1 - i for i in range(row.rows)]))
        data = compact.encode(wrong, extra={"split": split_number(row.split_path)})
        table.store.put(row.index_path, data)
    indextables.columnindex.forget_indexes()
    for enabled, expected in (("true", []), ("false", [40])):
        reader = spark.read.format("indextables")
        reader = reader.option("spark.indextables.columnIndex.enabled", enabled)
        assert [r.n for r in reader.load(where).where("n = 40").collect()] == expected
        rows = reader.load(where)
        groups = rows.where("id >= 0").groupBy("n").count().collect()
        keys = [-1 - i for i in range(30)] * 3 if expected == [] else list(range(90))
        assert sorted((r.n, r["count"]) for r in groups) == sorted(Counter(keys).items())
        filtered = rows.where("n = 40").groupBy("id").count().collect()
        assert [(r.id, r["count"]) for r in filtered] == [(n, 1) for n in expected]
