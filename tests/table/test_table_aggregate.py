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
        table.aggregate({"a": ("mode", "x")})
    with pytest.raises(PlanningError):
        table.aggregate({"a": ("sum", "k")})


EXPRESSIONS = {
    "count(*)": "count(*)",
    "sum(x * 2)": "sum(x * 2)",
    "avg(length(many))": "avg(length(many))",
    "max(upper(k))": "max(upper(k))",
    "count(DISTINCT k)": "count(DISTINCT k)",
    "count(DISTINCT x % 5)": "count(DISTINCT x % 5)",
    "count(CASE WHEN x > 50 THEN 1 END)": "count(CASE WHEN x > 50 THEN 1 END)",
    "median(x)": "quantile_cont(x, 0.5)",
    "percentile(x, 0.95)": "quantile_cont(x, 0.95)",
    "percentile(x, 0)": "min(x)",
    "percentile(x, 1.0)": "max(x)",
}


@pytest.mark.parametrize("where", [None, "x > 50", "k = 'g3'", "x > 1e6"])
@pytest.mark.parametrize("key", [None, "k", "p", "date_trunc('day', ts)"])
def test_expressions(table: indextables.Table, key: str | None, where: str | None) -> None:
    groups = [] if key is None else [key]
    found = table.aggregate({f"a{i}": text for i, text in enumerate(EXPRESSIONS)}, groups, where)
    keys = "" if key is None else f"{key}, "
    clause = f"WHERE {where}" if where else ""
    grouped = "" if key is None else f"GROUP BY {key}"
    connection = duckdb.connect()
    wall = DATA.column("ts").cast(pa.timestamp("us"))
    connection.register("data", DATA.set_column(DATA.column_names.index("ts"), "ts", wall))
    asked = f"SELECT {keys}{', '.join(EXPRESSIONS.values())} FROM data {clause} {grouped}"
    expected = sorted(
        connection.execute(asked).fetchall(), key=lambda row: repr(row[: len(groups)])
    )
    mine = sorted(
        map(tuple, (r.values() for r in found.to_pylist())), key=lambda row: repr(row[:1])
    )
    for ours, theirs in zip(mine, expected, strict=True):
        assert ours[len(groups) :] == pytest.approx(theirs[len(groups) :]), (ours, theirs)
        assert [str(v)[:10] for v in ours[: len(groups)]] == [
            str(v)[:10] for v in theirs[: len(groups)]
        ]


def test_forms_of_aggregates(table: indextables.Table) -> None:
    forms = ["count", "max(x)", ("min", "x"), ("median", "x"), ("percentile", "x", 0.9)]
    named = table.aggregate(forms)
    assert named.column_names == ["count(*)", "max(x)", "min(x)", "median(x)", "percentile(x)"]
    one = table.aggregate("count(DISTINCT k)")
    assert one.to_pylist() == [{"count(DISTINCT k)": 7}]
    assert table.aggregate({"d": ("count_distinct", "k")}).to_pylist() == [{"d": 7}]


def test_public_histograms(table: indextables.Table) -> None:
    hours = table.aggregate({"n": "count"}, [indextables.date_histogram("ts", "12h")])
    assert hours.num_rows == 42
    assert set(hours["n"].to_pylist()) == {12, 8}
    weeks = table.aggregate({"n": "count"}, [indextables.date_histogram("ts", "7d", name="w")])
    calendar = table.aggregate({"n": "count"}, [indextables.date_histogram("ts", "week", name="w")])
    assert as_rows(weeks) == as_rows(calendar)
    months = table.aggregate({"n": "count"}, indextables.date_histogram("ts", "month"))
    assert months.column_names == ["ts", "n"]
    wide = table.aggregate({"n": "count"}, indextables.histogram("x", 50))
    assert as_rows(wide) == sorted(
        duck("SELECT floor(x / 50) * 50, count(*) FROM data GROUP BY 1"), key=repr
    )
    for bad in ("1 fortnight", "0h", "", 5, None):
        with pytest.raises(PlanningError, match="not a span"):
            indextables.date_histogram("ts", bad)  # type: ignore[arg-type]
    for bad_width in (0, -1, "5", True, float("nan")):
        with pytest.raises(PlanningError, match="interval above 0"):
            indextables.histogram("x", bad_width)  # type: ignore[arg-type]


def test_expressions_over_a_renamed_column(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("renamed") / "t"
    indextables.write(pa.table({"a": [1, 2, 3]}), path)
    table = indextables.open(path)
    table.rename_column("a", "b")
    indextables.write(pa.table({"b": [4]}), path)
    found = indextables.open(path).aggregate(["sum(b + 1)", "count(DISTINCT b)", "median(b * 2)"])
    assert as_rows(found) == [(14, 4, 5.0)]
