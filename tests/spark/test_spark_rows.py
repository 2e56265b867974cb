"""DELETE, UPDATE, MERGE INTO and TRUNCATE through Spark SQL, for tables by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import indextables
from indextables.spark.sql.rowlevel import key_pairs, parsed, unqualified

NAME = "rows_that_change"


@pytest.fixture
def table(spark: Any, tmp_path: Path) -> Iterator[str]:
    path = str(tmp_path / "t")
    data = pa.table({"k": list(range(20)), "s": ["old"] * 20, "v": [1] * 20})
    indextables.write(data, path, rows_per_split=5)
    spark.sql(f"CREATE TABLE {NAME} USING indextables LOCATION '{path}'")
    yield path
    spark.sql(f"DROP TABLE IF EXISTS {NAME}")


def rows(path: str, where: str | None = None) -> dict[int, tuple[Any, Any]]:
    found = indextables.open(path).to_arrow(where).to_pylist()
    return {row["k"]: (row["s"], row["v"]) for row in found}


def test_delete_and_update_in_the_driver(spark: Any, table: str) -> None:
    (done,) = spark.sql(f"DELETE FROM {NAME} WHERE k IN (3, 11)").collect()
    assert (done.rows_deleted, done.splits_rewritten) == (2, 0)
    (done,) = spark.sql(f"UPDATE {NAME} AS x SET v = x.v + 1, s = 'new' WHERE x.k < 2").collect()
    assert done.rows_updated == 2
    assert rows(table, "v > 1") == {0: ("new", 2), 1: ("new", 2)}
    assert spark.table(NAME).count() == 18
    spark.sql(f"TRUNCATE TABLE {NAME}").collect()
    assert spark.table(NAME).count() == 0


def test_a_merge_with_every_clause(spark: Any, table: str) -> None:
    """A condition of a subquery too: whatever only Spark can decide, it decides."""
    spark.sql(f"DELETE FROM {NAME} WHERE k IN (SELECT 19)").collect()
    spark.sql(
        "CREATE OR REPLACE TEMP VIEW news AS SELECT * FROM VALUES "
        "(1L, 'a', 10L), (2L, 'b', 20L), (77L, 'c', 30L), (78L, 'no', 40L) AS t(k, s, v)"
    )
    (done,) = spark.sql(
        f"MERGE INTO {NAME} AS t USING news AS n ON t.k = n.k "
        "WHEN MATCHED AND n.v = 20 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET t.v = t.v + n.v, s = CASE WHEN n.v > 5 THEN 'x' ELSE 'y' END "
        "WHEN NOT MATCHED AND n.s <> 'no' THEN INSERT * "
        "WHEN NOT MATCHED BY SOURCE AND t.k > 17 THEN UPDATE SET v = -1"
    ).collect()
    assert (done.rows_updated, done.rows_deleted, done.rows_inserted) == (2, 1, 1)
    expected = {k: ("old", 1) for k in range(19) if k != 2}
    assert rows(table) == {**expected, 1: ("x", 11), 77: ("c", 30), 18: ("old", -1)}
    kinds = [r["_change_type"] for b in indextables.open(table).changes(3) for r in b.to_pylist()]
    assert sorted(kinds) == [
        "delete", "insert", "update_postimage", "update_postimage", "update_preimage",
        "update_preimage",
    ]  # fmt: skip


def test_two_rows_of_the_source_for_one_are_an_error(spark: Any, table: str) -> None:
    before, version = rows(table), indextables.open(table).version
    with pytest.raises(Exception, match="more than one row of the source"):
        spark.sql(
            f"MERGE INTO {NAME} t USING (SELECT 1 AS k UNION ALL SELECT 1) n ON t.k = n.k "
            "WHEN MATCHED THEN UPDATE SET v = 0"
        ).collect()
    assert (rows(table), indextables.open(table).version) == (before, version)


def test_the_schema_grows_where_the_statement_says_so(spark: Any, table: str) -> None:
    spark.sql(
        f"MERGE WITH SCHEMA EVOLUTION INTO {NAME} t USING "
        "(SELECT 500L AS k, 'e' AS s, 1L AS v, 2.5D AS extra) n ON t.k = n.k "
        "WHEN NOT MATCHED THEN INSERT *"
    ).collect()
    found = indextables.open(table)
    assert found.schema.names == ["k", "s", "v", "extra"]
    assert found.to_arrow("k = 500").to_pylist() == [{"k": 500, "s": "e", "v": 1, "extra": 2.5}]
    assert found.count("extra IS NULL") == 20


# -- cutting statements ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1", "DELETE t WHERE x", "UPDATE t SET", "MERGE SPLITS 'p'",
        "UPDATE t SET a.b.c = 1", "MERGE INTO t USING s ON t.k = s.k", "DELETE FROM t WHERE",
        "DELETE FROM t WHERE (a",
        "MERGE INTO t USING s ON x WHEN MATCHED THEN DELETE nonsense",
    ],
)  # fmt: skip
def test_what_does_not_fit_is_left_to_spark(text: str) -> None:
    assert parsed(text) is None


def test_the_parts_of_a_merge() -> None:
    found = parsed(
        "MERGE INTO a.b.c x USING (SELECT 1 AS k -- WHEN\n) ON x.k = source.k AND (1 = 1) "
        "WHEN MATCHED AND CASE WHEN x.k > 1 THEN TRUE END THEN UPDATE SET x.`odd, name` = f(1, 2), "
        "v = CASE WHEN s = 'WHEN' THEN 1 ELSE 2 END WHEN NOT MATCHED BY TARGET THEN "
        "INSERT (k, v) VALUES (source.k, (SELECT max(z) FROM y)) WHEN NOT MATCHED BY SOURCE "
        "THEN DELETE;"
    )
    assert found is not None
    assert (found.parts, found.alias, found.source_alias) == (("a", "b", "c"), "x", "source")
    matched, inserted, left = found.clauses
    assert matched.condition == "CASE WHEN x.k > 1 THEN TRUE END"
    assert dict(matched.values or ()) == {
        "odd, name": "f(1, 2)",
        "v": "CASE WHEN s = 'WHEN' THEN 1 ELSE 2 END",
    }
    assert dict(inserted.values or ()) == {"k": "source.k", "v": "(SELECT max(z) FROM y)"}
    assert left.values is None


def test_names_lose_the_alias_and_texts_keep_it() -> None:
    assert unqualified("t.a = 't.b' AND x.t.c > `t`.d", "t") == "a = 't.b' AND x.t.c > d"


@pytest.mark.parametrize(
    ("on", "pairs"),
    [
        ("t.k = s.j", [("k", "j")]),
        ("s.j = t.k AND t.a > 1 AND t.b = s.b", [("k", "j"), ("b", "b")]),
        ("t.k = s.j OR t.a = s.a", []),
        ("t.x BETWEEN 1 AND t.k = s.j", []),
        ("t.a = 1 AND (s.x OR t.k = s.j)", []),
        ("t.k = t.j", []),
        ("t.k = s.j + 1", []),
    ],
)
def test_keys_are_taken_only_from_what_every_match_satisfies(on: str, pairs: Any) -> None:
    assert key_pairs(on, "t", "s") == pairs
