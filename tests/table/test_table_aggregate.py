"""Aggregates equal DuckDB's over the same rows, with and without a filter, at any cardinality."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

import indextables
from indextables.errors import PlanningError, UnknownColumnError
from indextables.splits.read.partials import DateHistogram, Histogram, Ranges

DATA = pa.table(
    {
        "k": [f"g{i % 7}" if i % 11 else None for i in range(500)],
        "many": [f"key-{i}" for i in range(500)],
        "n": [2**60 + i for i in range(500)],
        "x": [i / 4 if i % 13 else None for i in range(500)],
        "ts": pa.array([i * 3_600_000_000 for i in range(500)], pa.timestamp("us", "UTC")),
        "p": [f"p{i % 3}" for i in range(500)],
    }
)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> indextables.Table:
    path = str(tmp_path_factory.mktemp("aggregates") / "table")
    indextables.write(DATA, path, partition_by=["p"], rows_per_split=60)
    return indextables.open(path)


def duck(sql: str) -> list[tuple[object, ...]]:
    connection = duckdb.connect()
    connection.register("data", DATA)
    return connection.execute(sql).fetchall()


def as_rows(found: pa.Table) -> list[tuple[object, ...]]:
    return sorted((tuple(r.values()) for r in found.to_pylist()), key=repr)


@pytest.mark.parametrize("where", [None, "x > 50", "k = 'g3'", "p = 'p1' AND x IS NOT NULL"])
def test_totals(table: indextables.Table, where: str | None) -> None:
    found = table.aggregate(
        {
            "rows": "count",
            "values": ("count", "x"),
            "low": ("min", "x"),
            "high": ("max", "n"),
            "mean": ("avg", "x"),
        },
        where=where,
    )
    clause = f"WHERE {where}" if where else ""
    expected = duck(f"SELECT count(*), count(x), min(x), max(n), avg(x) FROM data {clause}")
    assert as_rows(found)[0] == pytest.approx(expected[0])


@pytest.mark.parametrize("key", ["k", "p", "many"])
def test_groups(table: indextables.Table, key: str) -> None:
    found = table.aggregate({"rows": "count", "top": ("max", "x")}, group_by=[key])
    expected = duck(f"SELECT {key}, count(*), max(x) FROM data GROUP BY 1")
    assert as_rows(found) == sorted(expected, key=repr)


def test_two_keys_and_a_filter(table: indextables.Table) -> None:
    found = table.aggregate({"rows": "count"}, group_by=["p", "k"], where="x < 60")
    expected = duck("SELECT p, k, count(*) FROM data WHERE x < 60 GROUP BY 1, 2")
    assert as_rows(found) == sorted(expected, key=repr)


def test_integer_sums_are_exact_beyond_doubles(table: indextables.Table) -> None:
    found = table.aggregate({"total": ("sum", "n")}, where="many IN ('key-1', 'key-2')")
    assert found["total"].to_pylist() == [2**61 + 3]


def test_buckets(table: indextables.Table) -> None:
    found = table.aggregate({"rows": "count"}, group_by=[Histogram("x", 25.0)])
    expected = duck("SELECT floor(x / 25) * 25, count(*) FROM data GROUP BY 1")
    assert as_rows(found) == sorted(expected, key=repr)
    days = table.aggregate({"rows": "count"}, group_by=[DateHistogram("ts", 86_400_000_000)])
    assert sum(days["rows"].to_pylist()) == 500
    assert days.num_rows == 21
    named = Ranges("x", (("low", None, 10.0), ("high", 10.0, None)))
    ranges = table.aggregate({"rows": "count"}, group_by=[named])
    assert dict(as_rows(ranges))["low"] == sum(
        1 for v in DATA["x"].to_pylist() if v is not None and v < 10
    )


def test_nothing_matches(table: indextables.Table) -> None:
    found = table.aggregate({"rows": "count", "low": ("min", "x")}, where="many = 'absent'")
    assert found.to_pylist() == [{"rows": 0, "low": None}]
    assert table.aggregate({"rows": "count"}, ["k"], where="many = 'absent'").num_rows == 0


def test_mistakes(table: indextables.Table) -> None:
    with pytest.raises(UnknownColumnError):
        table.aggregate({"a": ("max", "nope")})
    with pytest.raises(PlanningError):
        table.aggregate({"a": ("median", "x")})
    with pytest.raises(PlanningError):
        table.aggregate({"a": ("sum", "k")})
