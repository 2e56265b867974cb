"""Tables with column indexes answer every query as tables without them."""

from __future__ import annotations

import logging
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import indextables
from indextables import columnindex
from indextables.errors import IndexTablesError, MaintenanceError
from indextables.splits.lookup.colindex.metrics import METRICS

COLUMNS = ("email", "n", "x", "flag", "at", "day")


def make(count: int, rng: random.Random, part: str) -> pa.Table:
    def maybe(value: Any) -> Any:
        return None if rng.random() < 0.1 else value

    floats = [0.0, -0.0, math.nan, 1.5, -2.5, math.inf]
    return pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "email": pa.array([maybe(f"u{rng.randrange(count)}@x.org") for _ in range(count)]),
            "n": pa.array([maybe(rng.randrange(-20, 20)) for _ in range(count)], pa.int32()),
            "x": pa.array([maybe(rng.choice(floats)) for _ in range(count)], pa.float64()),
            "flag": pa.array([maybe(rng.random() < 0.02) for _ in range(count)]),
            "at": pa.array(
                [maybe(rng.randrange(1000)) for _ in range(count)], pa.timestamp("us", "UTC")
            ),
            "day": pa.array([maybe(rng.randrange(300)) for _ in range(count)], pa.date32()),
            "part": pa.array([part] * count),
        }
    )


@pytest.fixture
def path(tmp_path: Path, rng: random.Random) -> str:
    """Two splits with sidecars to come, in two partitions."""
    where = str(tmp_path / "t")
    indextables.write(make(700, rng, "a"), where, partition_by="part")
    indextables.write(make(300, rng, "b"), where, partition_by="part")
    return where


QUERIES = [
    "email = 'u7@x.org'",
    "email IN ('u1@x.org', 'u2@x.org', 'u2@x.org', 'nobody')",
    "email LIKE 'u12%'",
    "email IS NULL",
    "email <=> 'u5@x.org'",
    "email > 'u95' AND n > 3",
    "n = 5",
    "n BETWEEN 4 AND 6 AND x > 0",
    "n IN (1, 2, 3) OR n = 7",
    "x = 'NaN'",
    "x > 1.5",
    "x = 0.0",
    "flag = true",
    "at < TIMESTAMP '1970-01-01 00:00:00.000050Z'",
    "day = DATE '1970-02-01'",
    "n > 5 AND n < 5",
    "email = 'u7@x.org' AND part = 'a'",
    "n != 5 AND email = 'u9@x.org'",
]


def answers(path: str) -> list[Any]:
    table = indextables.open(path)
    order = [("part", "ascending"), ("id", "ascending")]
    found = []
    for query in QUERIES:
        rows = table.to_arrow(query).sort_by(order)
        assert table.count(query) == rows.num_rows, query
        found.append(str(rows.to_pylist()))
    return found


@pytest.mark.parametrize("format", ["bbidx1", "bbidx2"])
def test_queries_with_and_without_index_are_equal(
    path: str, rng: random.Random, format: str
) -> None:
    plain = answers(path)
    table = indextables.open(path, options={"columnIndex.format": format})
    for column in COLUMNS:
        table.create_index(column)
    METRICS.reset()
    assert answers(path) == plain
    hits = sum(n for (_, outcome), n in METRICS.lookups.items() if outcome == "hit")
    assert hits > 10
    assert not any(outcome == "error" for _, outcome in METRICS.lookups)


def test_new_splits_carry_their_index(path: str, rng: random.Random) -> None:
    indextables.open(path).define_index("email")
    indextables.write(make(400, rng, "a"), path)
    table = indextables.open(path)
    assert str(table.index_coverage("email")) == "email: 1/3 (33.33%)"
    rows = table.index_splits()
    assert sorted(r.action for r in rows) == ["created", "created", "unchanged"]
    assert {r.action for r in indextables.open(path).index_splits()} == {"unchanged"}
    assert indextables.open(path).index_coverage("email").covered == 3
    (info,) = indextables.open(path).indexes()
    assert (info.column, info.files, info.splits) == ("email", 2, 3)


def test_each_split_gives_its_own_rows(path: str) -> None:
    table = indextables.open(path)
    table.create_index("n")
    table = indextables.open(path)
    for split, rows in table.index_lookup("n", eq=5).items():
        part = "a" if "part=a" in split else "b"
        values = table.to_arrow(f"part = '{part}'").sort_by("id")["n"].to_pylist()
        assert rows.tolist() == [i for i, v in enumerate(values) if v == 5]
    both = table.index_lookup("n", isin=[1, 2])
    assert sum(map(len, both.values())) == table.count("n IN (1, 2)")
    between = table.index_lookup("n", between=(1, 3))
    assert sum(map(len, between.values())) == table.count("n BETWEEN 1 AND 3")
    with pytest.raises(MaintenanceError, match="nothing to look up"):
        table.index_lookup("n")


def test_definitions(path: str) -> None:
    table = indextables.open(path)
    table.create_index("EMAIL")
    with pytest.raises(IndexTablesError, match="Index already exists for column 'email'"):
        table.create_index("email")
    with pytest.raises(IndexTablesError, match="No index found for column 'nonexistent'"):
        table.drop_index("nonexistent")
    with pytest.raises(IndexTablesError, match="nope"):
        table.define_index("nope")
    with pytest.raises(IndexTablesError, match="partition column"):
        table.define_index("part")
    assert table.drop_index("email").action == "dropped"
    assert not list(table.store.list("_colindex", recursive=True))
    table = indextables.open(path)
    assert table.indexes() == []
    table.create_index("email")
    assert len(indextables.open(path).indexes()) == 1


def test_rebuilding_writes_the_same_bytes(path: str) -> None:
    table = indextables.open(path)
    first = {r.index_path: table.store.read(r.index_path) for r in table.create_index("email")}
    rows = indextables.open(path).rebuild_index("email")
    assert {r.action for r in rows} == {"rebuilt"}
    assert {r.index_path: table.store.read(r.index_path) for r in rows} == first


def test_where_and_dry_run(path: str) -> None:
    table = indextables.open(path)
    table.define_index("email")
    foreseen = table.index_splits(dry_run=True)
    assert [r.action for r in foreseen] == ["would_create"] * 2
    (row,) = table.index_splits(where="part = 'b'")
    assert row.action == "created"
    assert "part=b" in row.split_path
    described = columnindex.describe_indexes(table.log)
    assert sorted(described["action"].to_pylist()) == ["unchanged", "would_create"]
    assert described.column_names[:4] == ["table_path", "column", "action", "split_path"]


@pytest.mark.parametrize("damage", ["truncated", "empty", "missing", "garbage", "misplaced"])
def test_broken_files_fall_back(path: str, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    table = indextables.open(path)
    expected = table.count("email = 'u7@x.org'"), table.count("email IS NULL")
    paths = [r.index_path for r in table.create_index("email")]
    whole = [table.store.read(p) for p in paths]
    columnindex.forget_indexes()
    for p, data, other in zip(paths, whole, reversed(whole), strict=True):
        if damage == "missing":
            table.store.delete([p])
            continue
        spoilt = {
            "truncated": data[:-9],
            "empty": b"",
            "garbage": bytes(len(data)),
            "misplaced": other,
        }
        table.store.put(p, spoilt[damage])
    table = indextables.open(path)
    with caplog.at_level(logging.WARNING):
        found = table.to_arrow("email = 'u7@x.org'").num_rows, table.count("email IS NULL")
    assert found == expected
    assert METRICS.lookups[("email", "error")] > 0
    assert "Falling back to full scan" in caplog.text


def test_the_threshold(tmp_path: Path) -> None:
    where = str(tmp_path / "t")
    values = np.repeat(np.arange(5), 20)
    indextables.write(pa.table({"v": values, "rare": [i == 3 for i in range(100)]}), where)
    indextables.open(where).create_index("v")
    indextables.open(where).create_index("rare")

    def outcome(query: str, **options: Any) -> set[str]:
        METRICS.reset()
        table = indextables.open(where, options={f"columnIndex.{k}": v for k, v in options.items()})
        assert table.to_arrow(query).num_rows == table.to_arrow(query).num_rows > 0
        return {o for _, o in METRICS.lookups}

    assert outcome("v = 1") == {"hit"}
    assert outcome("v IN (1, 2)") == {"fallback"}
    assert outcome("v = 1", estimator="uniform") == {"hit"}
    assert outcome("rare = true") == {"hit"}
    assert outcome("rare = true", estimator="uniform") == {"fallback"}
    assert outcome("v = 1", enabled=False) == set()


def test_the_best_of_several(path: str, caplog: pytest.LogCaptureFixture) -> None:
    table = indextables.open(path)
    table.create_index("n")
    table.create_index("email")
    with caplog.at_level(logging.DEBUG, "indextables.columnindex"):
        indextables.open(path).to_arrow("n = 5 AND email = 'u7@x.org' AND part = 'a'")
    chosen = [m for m in caplog.messages if m.startswith("Selected index")]
    assert chosen
    assert all("'email'" in m and "among 2 candidates" in m for m in chosen)


def test_merged_and_purged(path: str, rng: random.Random) -> None:
    table = indextables.open(path)
    table.create_index("email")
    indextables.write(make(200, rng, "a"), path)
    plain = answers(path)
    indextables.open(path).merge()
    table = indextables.open(path)
    assert table.index_coverage("email").percent == 100.0
    assert answers(path) == plain
    assert table.prune_stale_indexes() == 1
    assert table.prune_stale_indexes() == 0
    assert answers(path) == plain


def test_sql_and_explain(path: str) -> None:
    table = indextables.open(path)
    made = indextables.sql(None, f"CREATE INDEX ON '{path}' (email)")
    assert made.num_rows == 2
    text = indextables.open(path).explain("email = 'u7@x.org' AND part = 'a'")
    assert "column_index(email) rows=" in text
    assert "/700 (" in text
    assert "candidates=1 row_groups=" in text
    assert indextables.sql(None, f"DESCRIBE INDEXTABLES INDEXES '{path}'").num_rows == 2
    assert indextables.sql(None, f"INDEX SPLITS FOR '{path}' FORCE REBUILD").num_rows == 2
    assert indextables.sql(None, f"DROP INDEX ON '{path}' (email)")["action"].to_pylist() == [
        "dropped"
    ]
    assert table.version < indextables.open(path).version


def test_tasks_take_their_indexes_along(path: str) -> None:
    import pickle

    from indextables.table.execute import read_task

    indextables.open(path).create_index("email")
    table = indextables.open(path)
    query = "email = 'u7@x.org'"
    expected = table.count(query)
    columnindex.forget_indexes()
    METRICS.reset()
    tasks = pickle.loads(pickle.dumps(table.plan(query).tasks))
    batches = [b for t in tasks for b in read_task(table.store, t, table.schema, table.config)]
    assert sum(b.num_rows for b in batches) == expected
    assert METRICS.lookups[("email", "hit")] == len(tasks)
