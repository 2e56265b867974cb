"""What reaches the scan: splits opened, columns read, filters, limits and aggregates pushed."""

from __future__ import annotations

import re
from typing import Any

import pytest
from spark_world import World, bag

import indextables.spark as it


def scan_text(frame: Any) -> str:
    """The line of the scan in the physical plan."""
    text = frame._jdf.queryExecution().executedPlan().toString()
    return "\n".join(line for line in text.splitlines() if "indextables" in line)


def plan_of(world: World, frame: Any) -> Any:
    frame.collect()
    return it.last_plan(world.spark)


def test_a_needle_opens_one_split(world: World) -> None:
    frame = world.frame("l2").filter("id = 77").select("host")
    plan = plan_of(world, frame)
    assert len(plan) == 1
    assert plan.columns == ("host",)
    assert plan.report.splits_total == 16
    assert plan.splits[0].min_values["id"] == "75"
    text = scan_text(frame)
    assert "layer 2" in text
    assert "splits 1 of 16 (15 pruned)" in text


def test_partition_filters_prune_exactly(world: World) -> None:
    plan = plan_of(world, world.frame("l2").filter("part = 'a'").select("id"))
    assert {s.partition_values["part"] for s in plan.splits} == {"a"}
    assert len(plan) == 4


def test_whole_boolean_trees_prune(world: World) -> None:
    where = "(id < 10 and status = 200) or (id > 390 and (ok or host = 'web-01'))"
    plan = plan_of(world, world.frame("l2").filter(where).select("id"))
    assert len(plan) == 2


def test_exact_filters_leave_nothing_to_spark(world: World) -> None:
    frame = world.frame("l2").filter("id < 5 or host like 'web-0%'").select("id")
    text = frame._jdf.queryExecution().executedPlan().toString()
    assert "Filter (" not in text
    assert "pushed [" in text


def test_other_expressions_stay_with_spark_and_still_prune(world: World) -> None:
    frame = world.frame("l2").filter("id < 5 and upper(host) = 'WEB-01'").select("id")
    text = frame._jdf.queryExecution().executedPlan().toString()
    assert "Filter" in text
    assert "upper" in text
    assert len(plan_of(world, frame)) == 1


def test_only_asked_columns_are_read(world: World) -> None:
    frame = world.frame("l2").filter("status = 500").select("host")
    assert plan_of(world, frame).columns == ("host",)
    assert "columns [host]" in scan_text(frame)


def test_nested_pruning(world: World) -> None:
    frame = world.frame("l2").select("who.age")
    assert "struct<age:int>" in scan_schema(frame)


def scan_schema(frame: Any) -> str:
    plan = frame._jdf.queryExecution().optimizedPlan()
    return str(plan.collectLeaves().head().schema().simpleString())


def test_count_of_no_columns(world: World) -> None:
    frame = world.frame("l2").filter("status = 500")
    assert frame.count() == world.data.to_pandas().status.eq(500).sum()


def test_limit_reaches_the_scan(world: World) -> None:
    frame = world.frame("l2").select("id").limit(3)
    assert len(frame.collect()) == 3
    plan = it.last_plan(world.spark)
    assert plan is not None
    assert plan.limit == 3
    assert len(plan) == 1
    assert "limit 3" in scan_text(frame)


def test_limit_is_not_pushed_past_a_filter_of_spark(world: World) -> None:
    frame = world.frame("l2").filter("upper(host) = 'WEB-01'").select("id").limit(3)
    assert len(frame.collect()) == 3
    assert "limit" not in scan_text(frame)


def test_count_comes_from_the_log(world: World) -> None:
    frame = world.frame("l2").groupBy().count()
    text = frame._jdf.queryExecution().executedPlan().toString()
    assert "BatchScan" not in text
    assert frame.collect()[0][0] == 400


def test_count_with_partition_filter_comes_from_the_log(world: World) -> None:
    frame = world.frame("l2").filter("part = 'a'").groupBy().count()
    assert "BatchScan" not in frame._jdf.queryExecution().executedPlan().toString()
    assert frame.collect()[0][0] == 100


def test_aggregates_are_pushed(world: World) -> None:
    frame = world.frame("l2").groupBy("status").agg({"id": "max", "*": "count"})
    text = scan_text(frame)
    assert re.search(r"aggregates \[.*max\(id\).* by status\]", text)
    assert len(frame.collect()) == 4


PUSHED = [
    ("sum(price)", ""),
    ("avg(price), max(price)", ""),
    ("max(ratio), min(ratio), count(ratio)", ""),
    ("sum(case when ok then 1.5D else 0D end)", ""),
    ("count(*), min(id)", "ratio"),
    ("count(*)", "who.name"),
    ("max(who.age), count(who.name)", "status"),
    ("count(*), sum(price)", "indextables_histogram(id, 30)"),
    ("count(*)", "indextables_histogram(ratio, 2.5)"),
    ("count(*), avg(id)", "indextables_date_histogram(at, '1h'), ok"),
    ("count(*)", "indextables_range(id, 'low', NULL, 10, 'high', 390, NULL)"),
]


@pytest.mark.parametrize(("functions", "keys"), PUSHED)
def test_measures_and_keys_that_are_pushed(world: World, functions: str, keys: str) -> None:
    columns = f"{keys}, {functions}" if keys else functions
    query = f"select {columns} from {{t}}" + (f" group by {keys}" if keys else "")
    frame = world.spark.sql(query.format(t="t_l2"))
    assert "aggregates [" in scan_text(frame)
    assert bag(frame) == bag(world.spark.sql(query.format(t="t_parquet")))


@pytest.mark.parametrize("function", ["count(distinct id)", "max(upper(host))", "max(tags[0])"])
def test_what_tasks_cannot_do_exactly_is_not_pushed(world: World, function: str) -> None:
    frame = world.frame("l2").selectExpr(function)
    assert "aggregates" not in scan_text(frame)


def test_decimal_sums_wider_than_their_column(spark: Any, tmp_path: Any) -> None:
    path = str(tmp_path / "wide")
    rows = spark.range(0, 100, 1, 2).selectExpr(
        "cast(if(id < 99, 9.9, -9.9) as decimal(2,1)) d", "id % 2 k", "id"
    )
    rows.write.format("indextables").save(path)
    table = spark.read.format("indextables").load(path)
    frame = table.selectExpr("sum(d)", "avg(d)", "count(*)", "sum(id)", "max(id)")
    assert "aggregates [" in scan_text(frame)
    assert bag(frame) == bag(rows.selectExpr("sum(d)", "avg(d)", "count(*)", "sum(id)", "max(id)"))


def test_sums_that_wrap_round_are_left_to_spark(world: World) -> None:
    world.spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        assert "aggregates" not in scan_text(world.frame("l2").selectExpr("sum(id)"))
    finally:
        world.spark.conf.unset("spark.sql.ansi.enabled")


@pytest.mark.driver_errors("does not fit a BIGINT")
def test_a_sum_that_overflows_fails_as_in_spark(world: World, spark: Any, tmp_path: Any) -> None:
    path = str(tmp_path / "big")
    spark.range(3).selectExpr(f"id + {2**62} as n").write.format("indextables").save(path)
    with pytest.raises(Exception, match=r"(?i)overflow|BIGINT"):
        spark.read.format("indextables").load(path).selectExpr("sum(n)").collect()


def test_statistics_let_small_tables_be_broadcast(world: World) -> None:
    big = world.frame("l2").select("id", "status")
    small = world.frame("l2").filter("id < 5").select("id", "host")
    text = big.join(small, "id")._jdf.queryExecution().executedPlan().toString()
    assert "BroadcastHashJoin" in text


def test_tasks_are_packed(world: World) -> None:
    frame = world.frame("l2").select("id")
    assert frame.rdd.getNumPartitions() <= 16
    few = world.frame("l2", **{"spark.indextables.read.splitsPerTask": "8"}).select("id")
    assert few.rdd.getNumPartitions() <= 4


def test_nothing_to_read_starts_no_task(world: World) -> None:
    frame = world.frame("l2").filter("id > 100000").select("id")
    assert frame.rdd.getNumPartitions() == 0
    assert frame.collect() == []


def test_layer_one_prunes_by_what_is_fixed_at_load(world: World) -> None:
    frame = world.frame("l1", where="id < 10", columns="id,host")
    assert frame.columns == ["id", "host"]
    assert frame.count() == 10
    assert frame.rdd.getNumPartitions() == 1


def test_read_function(world: World) -> None:
    frame = it.read(world.spark, world.path, where="id < 10", columns=["host"])
    assert frame.columns == ["host"]
    assert frame.count() == 10
    assert it.read(world.spark, world.path, version=0).count() == 0
