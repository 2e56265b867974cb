"""Every kind of expression that Spark offers with an aggregate: pushed and right, or not pushed.

``PUSHED`` are those that tasks compute; their groups are compared with Parquet's. ``LEFT`` are
those that Spark keeps: none of them may fail to be planned. Together they name every function that
Spark's translation of expressions knows (``GeneralScalarExpression``), casts, EXTRACT and elements.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa
import pytest
from spark_world import World, bag

from indextables.table import write_table

PUSHED = (
    "id", "status", "small", "ratio", "price", "host", "ok", "day", "at", "local", "part",
    "who.age", "who.name",
    "-id", "-ratio", "id + 1", "id - 3", "id * 2", "ratio + 1.0D", "ratio * 2.0D", "ratio / 4.0D",
    "floor(CAST(id AS DOUBLE) / 100.0D)", "floor(id / 100.0D) * 100",
    "CAST(status AS BIGINT)", "CAST(small AS INT)", "CAST(id AS DOUBLE)", "CAST(at AS BIGINT)",
    "CASE WHEN ratio < 0.0D THEN 'low' WHEN ratio < 10.0D THEN 'mid' ELSE 'high' END",
    "CASE WHEN host = 'web-01' THEN id END",
    "CASE WHEN ok THEN 1 ELSE 2 END",
    "CASE WHEN NOT ok OR id > 5 AND host <> 'web-03' THEN 'a' ELSE 'b' END",
    "CASE WHEN ratio IS NULL THEN 1 WHEN ratio IS NOT NULL AND ratio >= 2.0D THEN 2 END",
    "CASE WHEN id < 10 AND id + 9223372036854775790 > 0 THEN 1 END",
    "id <= 10", "id >= 10", "id / 7", "nullif(id, 3)", "CASE WHEN ok THEN day END",
)  # fmt: skip
LEFT = (
    "-status", "-small", "-price", "status + 1", "price * 2", "price / 3", "id % 7",
    "id & 7", "id | 7", "id ^ 7", "~id", "abs(id)", "abs(ratio)", "sign(ratio)",
    "coalesce(status, 0)", "greatest(status, small)", "least(status, small)",
    "if(ok, 1, 0) + status", "status <=> 200", "status IN (200, 404)", "host IN ('web-01', 'b')",
    "id IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)",
    "log(id + 1.5)", "log10(id)", "log2(id)", "ln(id)", "exp(small)", "power(small, 2)",
    "sqrt(id)", "floor(id)", "floor(price)", "ceil(ratio)", "ceil(price)", "round(ratio, 1)",
    "round(price)", "sin(ratio)", "sinh(small)", "cos(ratio)", "cosh(small)", "tan(ratio)",
    "tanh(ratio)", "cot(ratio)", "asin(ratio)", "asinh(ratio)", "acos(ratio)", "acosh(ratio)",
    "atan(ratio)", "atanh(ratio)", "atan2(ratio, 2)", "cbrt(ratio)", "degrees(ratio)",
    "radians(ratio)", "width_bucket(ratio, 0, 10, 5)",
    "substring(host, 2, 2)", "left(host, 3)", "right(host, 2)", "upper(host)", "lower(host)",
    "bit_length(host)", "char_length(host)", "length(raw)", "concat(host, '-', part)",
    "host || message", "translate(host, 'w', 'v')", "trim(host)", "ltrim(host)", "rtrim(host)",
    "trim(BOTH 'w' FROM host)", "overlay(host PLACING '_' FROM 2)", "lpad(host, 9, '-')",
    "rpad(host, 9, '-')", "host LIKE 'web%'", "host LIKE '%1'", "host LIKE '%b%'",
    "startswith(host, 'web')", "endswith(host, '1')", "contains(host, 'b')", "host RLIKE '[0-4]$'",
    "sha1(raw)", "sha2(raw, 256)", "md5(raw)", "crc32(raw)",
    "date_add(day, 3)", "date_sub(day, 3)", "datediff(day, DATE'2024-01-05')", "trunc(day, 'MM')",
    "date_trunc('HOUR', at)", "year(day)", "quarter(day)", "month(at)", "day(day)",
    "dayofweek(day)", "dayofyear(day)", "weekofyear(day)", "weekday(day)", "hour(at)",
    "minute(local)", "second(at)", "extract(YEAROFWEEK FROM day)", "day > DATE'2024-02-01'",
    "at > TIMESTAMP'2024-01-01 13:00:00'", "price > 1.25", "at + INTERVAL 1 DAY",
    "CAST(id AS STRING)", "CAST(price AS DOUBLE)", "CAST(status AS DECIMAL(12, 2))",
    "CAST(day AS TIMESTAMP)", "CAST(day AS STRING)", "CAST(ok AS INT)", "try_cast(host AS INT)",
    "try_add(id, 1)", "try_divide(id, small)", "CAST(ratio AS FLOAT)",
    "tags[0]", "element_at(tags, 1)", "attrs['k']", "size(tags)", "array_contains(tags, 't1')",
    "struct(id, host)", "array(id, status)", "raw", "tags", "who", "who.name || 'x'", "hash(id)",
    "CASE WHEN length(host) > 3 THEN 1 ELSE 0 END",
    "collate(host, 'UTF8_LCASE')", "make_date(2024, 1, 1)",
)  # fmt: skip


def planned(world: World, expression: str, view: str = "t_driver") -> Any:
    """Groups and measures of an expression, each as far as its type goes."""
    kind = world.spark.sql(f"SELECT {expression} AS e FROM t_parquet").schema[0].dataType
    name = kind.typeName()
    asked = ["count(*) n", "count(e) c"]
    if name not in ("map", "variant", "calendarinterval"):
        asked += ["min(e) least", "max(e) most"]
    if name in ("byte", "short", "integer", "long", "float", "double", "decimal"):
        asked += ["sum(e) total", "avg(e) mean"]
    table = f"(SELECT {expression} AS e FROM {view})"
    return world.spark.sql(f"SELECT e, {', '.join(asked)} FROM {table} GROUP BY e")


def is_pushed(frame: Any) -> bool:
    plan = frame._jdf.queryExecution().sparkPlan().toString()
    return re.search(r"aggregates \[", plan) is not None


@pytest.mark.parametrize("expression", PUSHED)
def test_what_tasks_compute_is_what_spark_computes(world: World, expression: str) -> None:
    frame = planned(world, expression)
    assert is_pushed(frame)
    assert bag(frame) == bag(planned(world, expression, "t_parquet"))


@pytest.mark.parametrize("group", range(8))
def test_everything_else_is_planned_and_left_to_spark(world: World, group: int) -> None:
    assert [e for e in LEFT[group::8] if is_pushed(planned(world, e))] == []


def test_a_measure_is_never_an_exception(world: World) -> None:
    """The failure that was: a minus sign alone in a sum or a group."""
    for asked in ("sum(-id)", "max(-ratio)", "sum(-status)", "sum(-price)", "count(-small)"):
        mine, theirs = (world.spark.sql(f"SELECT {asked} FROM {v}") for v in ("t_l2", "t_parquet"))
        assert bag(mine) == bag(theirs), asked


@pytest.mark.driver_errors("overflow")
def test_a_sum_that_overflows_is_an_error_on_both_sides(world: World) -> None:
    for view in ("t_driver", "t_parquet"):
        with pytest.raises(Exception, match="overflow"):
            world.spark.sql(f"SELECT sum(id + 9223372036854775700) FROM {view}").collect()


def test_groups_of_text_with_a_collation_are_sparks(world: World, tmp_path: Any) -> None:
    note = json.dumps({"__COLLATIONS": {"s": "spark.UTF8_LCASE"}})
    schema = pa.schema([("id", pa.int64()), pa.field("s", pa.string(), metadata={"spark": note})])
    path = str(tmp_path / "t")
    write_table(pa.table({"id": [1, 2, 3], "s": ["a", "A", "B"]}, schema=schema), path)
    frame = world.spark.read.format("indextables").load(path)
    assert "collate" in frame.schema["s"].dataType.simpleString()
    assert sorted(row["count"] for row in frame.groupBy("s").count().collect()) == [1, 2]
    assert frame.filter("id <> 2").agg({"s": "min"}).collect()[0][0] == "a"
