"""DuckDB, Polars and pyarrow over a table: their answers are those over the same rows in memory.

Each engine judges itself: random conditions are asked of the table, where filters and columns are
pushed down, and of an Arrow table with the same rows.
"""

from __future__ import annotations

import datetime
import pickle
import random
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

import indextables
from indextables.table.interchange import arrow_filters, polars_scan
from indextables.table.table import Table

HOSTS = ["web-1", "web-2", "db-1", "Web-1", "", "ü"]
REALS = [0.0, -0.0, 1.5, float("nan"), float("inf"), -3.25]
MOMENT = datetime.datetime(2024, 5, 1, 12)
PIECES = 5
TREES = 60


def rows_of(number: int) -> pa.Table:
    rng = random.Random(number)
    count = 40
    return pa.table(
        {
            "id": pa.array(range(number * count, (number + 1) * count), pa.int64()),
            "host": pa.array([rng.choice([*HOSTS, None]) for _ in range(count)], pa.string()),
            "x": pa.array([rng.choice([*REALS, None]) for _ in range(count)], pa.float64()),
            "day": pa.array([datetime.date(2024, 5, 1 + number)] * count, pa.date32()),
            "ts": pa.array(
                [MOMENT + datetime.timedelta(hours=number * count + i) for i in range(count)],
                pa.timestamp("us"),
            ),
            "s": pa.array([{"k": i % 3} for i in range(count)], pa.struct([("k", pa.int64())])),
            "m": pa.array([f"word{i} common" for i in range(count)], pa.string()),
        }
    )


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    return pa.concat_tables([rows_of(n) for n in range(PIECES)])


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    path = tmp_path_factory.mktemp("engines") / "t"
    for n in range(PIECES):
        indextables.write(rows_of(n), path, text=["m"])
    return indextables.open(path)


def same(found: pa.Table, wanted: pa.Table) -> bool:
    """The same rows in any order; NaN equals NaN."""
    return sorted(map(repr, found.to_pylist())) == sorted(map(repr, wanted.to_pylist()))


# -- pyarrow --------------------------------------------------------------------------------------


def arrow_leaf(rng: random.Random) -> Any:
    column, values = rng.choice(
        [
            ("id", [-1, 0, 57, 199, 1000]),
            ("host", HOSTS),
            ("x", [0.0, 1.5, float("nan")]),
            ("day", [datetime.date(2024, 5, 2), datetime.date(2025, 1, 1)]),
            ("ts", [MOMENT + datetime.timedelta(hours=h) for h in (0, 80, 1000)]),
        ]
    )
    left, right = pc.field(column), pc.scalar(rng.choice(values))
    kind = rng.randrange(10)
    if kind < 6:
        both = rng.choice([(left, right), (right, left)])
        return rng.choice(
            [
                lambda a, b: a == b,
                lambda a, b: a != b,
                lambda a, b: a < b,
                lambda a, b: a <= b,
                lambda a, b: a > b,
                lambda a, b: a >= b,
            ]
        )(*both)
    return [
        left.is_null(),
        left.is_valid(),
        left.isin(rng.sample(values, 2)),
        pc.starts_with(pc.field("host"), "web"),
    ][kind - 6]


def arrow_tree(rng: random.Random, depth: int) -> Any:
    if depth == 0:
        return arrow_leaf(rng)
    left, right = arrow_tree(rng, depth - 1), arrow_tree(rng, depth - 1)
    return rng.choice([left & right, left | right, ~left])


def test_random_filters_of_pyarrow(table: Table, rows: pa.Table, rng: random.Random) -> None:
    whole = ds.dataset(rows)
    pushed = 0
    for _ in range(TREES):
        tree = arrow_tree(rng, rng.randrange(3))
        columns = rng.choice([None, ["id"], ["host", "id"]])
        found = table.dataset().to_table(columns=columns, filter=tree)
        assert same(found, whole.to_table(columns=columns, filter=tree)), tree
        assert table.dataset().count_rows(tree) == whole.count_rows(tree), tree
        pushed += arrow_filters.to_filter(tree) is not None
    assert pushed > TREES / 4


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        (pc.field("id") == 7, "id = 7"),
        (pc.scalar(7) > pc.field("id"), "id < 7"),
        ((pc.field("id") == 7) & (pc.field("x").is_nan()), "id = 7"),
        (pc.field("id").isin([1, 2]), "id IN (1, 2)"),
        (pc.field(("s", "k")) == 1, "s.k = 1"),
        (pc.field("host").is_null(), "host IS NULL"),
        (pc.field("id") != 3, "NOT (id = 3)"),
    ],
    ids=str,
)
def test_what_is_pushed_down(expression: Any, wanted: str) -> None:
    assert repr(arrow_filters.to_filter(expression)) == wanted


@pytest.mark.parametrize(
    "expression",
    [
        pc.field("x").is_nan(),
        (pc.field("id") == 7) | pc.field("x").is_nan(),
        ~(pc.field("id") == 7),
        pc.field("id").isin([1, None]),
        pc.field("x") == float("nan"),
        pc.field("id") == pc.field("x"),
        pc.add(pc.field("id"), 1) == 3,
    ],
    ids=str,
)
def test_what_is_not_understood_keeps_every_row(expression: Any) -> None:
    assert arrow_filters.to_filter(expression) is None


# -- DuckDB ---------------------------------------------------------------------------------------


def test_duckdb_reads_a_table_and_pushes_into_its_dataset(table: Table, rows: pa.Table) -> None:
    events = table
    assert events.version == PIECES
    assert duckdb.sql("SELECT count(*), max(id) FROM events").fetchall() == [(200, 199)]
    logs = table.dataset()
    assert duckdb.sql("SELECT id FROM logs WHERE id = 57").fetchall() == [(57,)]
    assert logs.last_plan is not None
    assert len(logs.last_plan.splits) == 1
    assert tuple(logs.last_plan.columns or ()) == ("id",)
    hits = table.dataset("m TEXTSEARCH 'word7'")
    assert hits.count_rows() == PIECES
    found = duckdb.sql("SELECT day, count(*) AS n FROM hits WHERE id < 100 GROUP BY day").fetchall()
    assert sorted(n for _, n in found) == [1, 1, 1]


@pytest.mark.parametrize(
    "condition",
    [
        "id IN (3, 77) OR host = 'ü'",
        "host IS NULL AND x > 1.0",
        "host <> 'db-1'",
        "day = DATE '2024-05-03' AND id % 7 = 0",
        "s.k = 2 AND id BETWEEN 30 AND 130",
        "ts >= TIMESTAMP '2024-05-05 00:00:00'",
        "host LIKE 'web%'",
    ],
)
def test_duckdb_finds_the_same_rows(table: Table, rows: pa.Table, condition: str) -> None:
    logs = table.dataset()
    assert logs.schema.names == rows.column_names
    wanted = duckdb.sql(f"SELECT id, host FROM rows WHERE {condition} ORDER BY id").fetchall()
    assert duckdb.sql(f"SELECT id, host FROM logs WHERE {condition} ORDER BY id").fetchall() == (
        wanted
    )
    assert wanted


# -- Polars ---------------------------------------------------------------------------------------


def polars_leaf(rng: random.Random) -> pl.Expr:
    return rng.choice(
        [
            pl.col("id") == rng.randrange(220),
            pl.col("id") >= rng.randrange(220),
            pl.lit(rng.randrange(200)) > pl.col("id"),
            pl.col("host") == rng.choice(HOSTS),
            pl.col("host").is_in(rng.sample(HOSTS, 2)),
            pl.col("host").str.starts_with("web"),
            pl.col("host").str.contains("eb-", literal=True),
            pl.col("host").is_null(),
            pl.col("x") > 1.0,
            pl.col("x").is_nan(),
            pl.col("day") <= datetime.date(2024, 5, 2),
            pl.col("ts") > MOMENT + datetime.timedelta(hours=60),
        ]
    )


def test_random_filters_of_polars(
    table: Table, rows: pa.Table, rng: random.Random, tmp_path: Path
) -> None:
    frame = pl.from_arrow(rows).lazy()  # type: ignore[union-attr]
    scanned = indextables.scan_polars(Path(table.path.removeprefix("file://")))
    pushed = 0
    for _ in range(TREES):
        tree = polars_leaf(rng)
        for _ in range(rng.randrange(3)):
            other = polars_leaf(rng)
            tree = rng.choice([tree & other, tree | other, ~tree])
        columns = rng.choice([["id"], ["host", "id"]])
        found = scanned.filter(tree).select(columns).collect()
        assert found.sort("id").equals(frame.filter(tree).select(columns).collect().sort("id"))
        pushed += polars_scan.to_filter(tree) is not None
    assert pushed > TREES / 4
    assert scanned.head(3).collect().height == 3
    assert scanned.select(pl.len()).collect().item() == 200


def test_polars_searches_text(table: Table) -> None:
    path = table.path.removeprefix("file://")
    found = indextables.scan_polars(path, where="m TEXTSEARCH 'word7'").collect()
    assert found["m"].to_list() == ["word7 common"] * PIECES
    assert table.to_polars("id < 3")["id"].to_list() == [0, 1, 2]


# -- Arrow itself ---------------------------------------------------------------------------------


def test_a_table_is_an_arrow_stream_and_a_schema(table: Table, rows: pa.Table) -> None:
    assert same(pa.table(table), rows)
    assert pa.schema(table) == table.schema
    assert same(pa.RecordBatchReader.from_stream(table).read_all(), rows)


def test_a_table_and_its_dataset_can_be_pickled(table: Table) -> None:
    older = table.at(version=2)
    again = pickle.loads(pickle.dumps(older))
    assert (again.version, again.count()) == (2, older.count())
    assert pickle.loads(pickle.dumps(table.dataset("id < 5"))).count_rows() == 5


def test_an_empty_table_and_answers_without_rows(tmp_path: Path) -> None:
    indextables.write(rows_of(0).slice(0, 0), tmp_path / "t", text=["m"])
    table = indextables.open(tmp_path / "t")
    logs = table.dataset()
    assert duckdb.sql("SELECT * FROM logs WHERE id = 1").fetchall() == []
    assert logs.to_table(filter=pc.field("id") > 5).num_rows == 0
    assert indextables.scan_polars(tmp_path / "t").collect().height == 0
    assert pa.table(table).num_rows == 0
    assert table.to_polars().height == 0
