"""What an overwrite replaces is what its condition says, whatever the values hold.

Conditions go from Spark to the writer as trees. Each test keeps one row in every other partition;
a condition that was read as anything else would replace one of those, or keep the one it named.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812

import indextables

EVIL = [
    "C:\\new",
    "C:\new",
    "it's",
    "x\\' OR p IS NOT NULL) -- ",
    "' OR p IS NOT NULL) -- ",
    "back\\",
    "line\nbreak \\n",
    'a"b`c%',
    "Zoë ☃ 𝔘",
    None,
]
UTC = datetime.UTC
TYPED: dict[str, tuple[pa.DataType, str, list[Any]]] = {
    "date": (pa.date32(), "date", [datetime.date(1969, 12, 31), datetime.date(2024, 2, 29), None]),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        "timestamp",
        [
            datetime.datetime(2024, 2, 29, 23, 59, 59, 999999, UTC),
            datetime.datetime(2024, 3, 1, tzinfo=UTC),
            None,
        ],
    ),
    "decimal": (pa.decimal128(20, 4), "decimal(20,4)", [Decimal("1.5000"), Decimal("-1.5"), None]),
}


def fill(path: str, values: list[Any], dtype: pa.DataType | None = None) -> None:
    """One row for each partition; its id is the value's place in the list."""
    p = pa.array(values, dtype or pa.string())
    data = pa.table({"id": pa.array(range(len(values)), pa.int64()), "p": p})
    indextables.write(data, path, partition_by=["p"])


def rows(path: str) -> dict[Any, list[int]]:
    found: dict[Any, list[int]] = {}
    for row in indextables.open(path).to_arrow().to_pylist():
        found.setdefault(row["p"], []).append(row["id"])
    return found


def expected(values: list[Any], replaced: Any) -> dict[Any, list[int]]:
    return {v: [99] if v == replaced else [i] for i, v in enumerate(values)}


def new_row(spark: Any, value: Any, kind: str = "string") -> Any:
    return spark.createDataFrame([(99, value)], f"id bigint, p {kind}")


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "table")


@pytest.mark.parametrize("value", [EVIL[0], EVIL[3], EVIL[6], None], ids=repr)
def test_overwrite_by_condition(spark: Any, path: str, value: str | None) -> None:
    fill(path, EVIL)
    condition = F.col("p").isNull() if value is None else F.col("p") == value
    new_row(spark, value).writeTo(f"indextables.`{path}`").overwrite(condition)
    assert rows(path) == expected(EVIL, value)


@pytest.mark.parametrize("kind", list(TYPED))
def test_overwrite_by_typed_condition(spark: Any, path: str, kind: str) -> None:
    dtype, name, values = TYPED[kind]
    fill(path, values, dtype)
    for value in values[:2]:
        condition = F.col("p") == F.lit(value).cast(name)
        new_row(spark, value, name).writeTo(f"indextables.`{path}`").overwrite(condition)
    assert rows(path) == {values[0]: [99], values[1]: [99], None: [2]}


CONDITIONS: list[tuple[str, Callable[[], Any], str]] = [
    ("startswith", lambda: F.col("p").startswith("C:\\n"), "C:\\new"),
    ("in", lambda: F.col("p").isin("it's", "no\\'such"), "it's"),
    ("null-safe", lambda: F.col("p").eqNullSafe("back\\"), "back\\"),
    ("and", lambda: (F.col("p") >= "back") & (F.col("p") < "back]"), "back\\"),
    ("or", lambda: F.col("p").contains('"b`c%') | (F.col("p") == "its"), 'a"b`c%'),
]


@pytest.mark.parametrize("case", CONDITIONS, ids=lambda case: case[0])
def test_overwrite_by_other_conditions(
    spark: Any, path: str, case: tuple[str, Callable[[], Any], str]
) -> None:
    fill(path, EVIL)
    new_row(spark, case[2]).writeTo(f"indextables.`{path}`").overwrite(case[1]())
    assert rows(path) == expected(EVIL, case[2])


def test_insert_overwrite_partition(spark: Any, path: str) -> None:
    fill(path, EVIL)
    spark.sql(f"insert overwrite indextables.`{path}` partition (p='C:\\\\new') select 99L")
    assert rows(path) == expected(EVIL, "C:\\new")
    spark.sql(f"insert overwrite indextables.`{path}` partition (p='it\\'s') select 99L")
    assert rows(path)["it's"] == [99]
    spark.sql(f"insert overwrite indextables.`{path}` partition (p=null) select 99L")
    assert rows(path) == {**expected(EVIL, "C:\\new"), "it's": [99], None: [99]}


def test_insert_overwrite_partition_of_a_date(spark: Any, path: str) -> None:
    dtype, _, values = TYPED["date"]
    fill(path, values, dtype)
    spark.sql(f"insert overwrite indextables.`{path}` partition (p=date'2024-02-29') select 99L")
    assert rows(path) == expected(values, values[1])


def test_dynamic_overwrite(spark: Any, path: str) -> None:
    fill(path, EVIL)
    chosen = ["C:\\new", "' OR p IS NOT NULL) -- ", None]
    frame = spark.createDataFrame([(99, v) for v in chosen], "id bigint, p string")
    frame.writeTo(f"indextables.`{path}`").overwritePartitions()
    assert rows(path) == {v: [99] if v in chosen else [i] for i, v in enumerate(EVIL)}


def test_a_users_own_text_is_read_once(spark: Any, path: str) -> None:
    fill(path, EVIL)
    new_row(spark, "C:\\new").write.format("indextables").mode("overwrite").option(
        "replaceWhere", r"p = 'C:\\new'"
    ).save(path)
    assert rows(path) == expected(EVIL, "C:\\new")


def test_a_users_own_text_is_read_in_the_sessions_zone(spark: Any, path: str) -> None:
    dtype, name, values = TYPED["timestamp"]
    fill(path, values, dtype)
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    try:
        new_row(spark, values[1], name).write.format("indextables").mode("overwrite").option(
            "replaceWhere", "p = timestamp'2024-03-01 05:30:00'"
        ).save(path)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert rows(path) == expected(values, values[1])


def test_an_overwrite_that_cannot_be_decided_changes_nothing(spark: Any, path: str) -> None:
    fill(path, EVIL)
    version = indextables.open(path).version
    target = new_row(spark, "it's").writeTo(f"indextables.`{path}`")
    with pytest.raises(Exception, match="only partition columns"):
        target.overwrite(F.col("id") == 3)
    with pytest.raises(Exception, match=r"(?i)cannot"):
        target.overwrite(F.length("p") == 4)
    assert indextables.open(path).version == version


def test_a_filter_object_is_read_as_it_is(spark: Any, path: str) -> None:
    from indextables.expr.column import col

    fill(path, EVIL)
    for i, value in enumerate(EVIL[:-1]):
        frame = indextables.read(spark, path, where=col("p") == value)
        assert [(r.id, r.p) for r in frame.collect()] == [(i, value)]
