"""Small answers are read by the driver, and only those; the rows are the same."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from spark_world import ALL_IN_DRIVER, ALL_IN_TASKS, World, bag

from indextables.config import Config
from indextables.expr.predicate import TRUE, And, Column, Compare, InSet, Op, TextMatch
from indextables.planner.tasks import SplitTask
from indextables.spark.driver import quick
from indextables.spark.driver.quick import is_cheap, is_searched
from indextables.splits.read.source import SplitRef

KNOWN, TASKS = "KnownRowsExec", "PythonInputPartition"


def reads_in(frame: Any) -> set[str]:
    """How the scans of a query get their rows: known at once, or by tasks."""
    leaves = frame._jdf.queryExecution().sparkPlan().collectLeaves()
    found = set()
    for i in range(leaves.size()):
        scan = leaves.apply(i)
        if scan.getClass().getSimpleName() == KNOWN:
            found.add(KNOWN if scan.rows().size() else "")
            continue
        parts = scan.inputPartitions()
        found |= {parts.apply(k).getClass().getSimpleName() for k in range(parts.size())}
    return found


def jobs_of(spark: Any, work: Any) -> int:
    """How many Spark jobs some work starts."""
    context = spark.sparkContext
    context.setJobGroup("counted", "")
    try:
        work()
        return len(context.statusTracker().getJobIdsForGroup("counted"))
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)


def test_a_needle_is_read_by_the_driver(world: World) -> None:
    needle = world.frame("l2").filter("id = 77")
    assert reads_in(needle) == {KNOWN}
    assert [row.id for row in needle.collect()] == [77]
    assert jobs_of(world.spark, needle.collect) == 0
    assert jobs_of(world.spark, world.frame("l2", **ALL_IN_TASKS).filter("id = 77").collect) == 1


def test_known_rows_say_what_a_scan_says(world: World) -> None:
    plan = world.frame("l2").filter("id = 77")._jdf.queryExecution().toString()
    assert "layer 2" in plan
    assert "splits 1 of 16" in plan
    assert "pushed [id IS NOT NULL, id = 77]" in plan


def test_rows_under_expressions_are_known_too(world: World) -> None:
    computed = world.frame("l2").filter("id = 77 and length(host) > 3").selectExpr("id + 1 as next")
    assert reads_in(computed) == {KNOWN}
    assert [row.next for row in computed.collect()] == [78]
    assert reads_in(world.frame("l2").groupBy().count()) == {KNOWN}


@pytest.mark.parametrize(
    "condition", ["id < 30", "message = 'disk full 8'", "part is null and small > 0", "id = 1"]
)
def test_every_type_is_the_same_from_driver_and_tasks(world: World, condition: str) -> None:
    driver = world.frame("l2", **ALL_IN_DRIVER).filter(condition)
    tasks = world.frame("l2", **ALL_IN_TASKS).filter(condition)
    assert (reads_in(driver), reads_in(tasks)) == ({KNOWN}, {TASKS})
    assert driver.schema == tasks.schema
    assert bag(driver) == bag(tasks) != []


def test_large_answers_go_to_tasks(world: World) -> None:
    few = {**ALL_IN_DRIVER, "spark.indextables.read.driver.maxRows": 10}
    assert reads_in(world.frame("l2", **few).filter("id < 11")) == {TASKS}
    assert reads_in(world.frame("l2", **few).filter("id < 10")) == {KNOWN}
    assert world.frame("l2", **few).filter("id < 11").count() == 11


def test_answers_too_heavy_for_a_task_go_to_tasks(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quick, "LARGEST_ANSWER", 100)
    assert reads_in(world.frame("l2").filter("id = 78")) == {TASKS}


def test_no_rows_are_no_partition(world: World) -> None:
    nothing = world.frame("l2").filter("id = 77 and host = 'nobody'")
    assert reads_in(nothing) == {""}
    assert nothing.collect() == []


def test_limits_and_batches_without_columns(world: World) -> None:
    frame = world.frame("l2")
    assert len(frame.limit(5).collect()) == 5
    few = {**ALL_IN_DRIVER, "spark.indextables.read.driver.maxRows": 60}
    many = world.frame("l2", **few).filter("id >= 0").limit(60)
    assert reads_in(many) == {KNOWN}
    assert len(many.collect()) == 60
    assert frame.filter("id in (1, 2, 399)").selectExpr("1 as one").count() == 3
    assert [r.one for r in frame.filter("id < 3").selectExpr("1 as one").collect()] == [1, 1, 1]


def test_aggregates_of_few_splits(world: World) -> None:
    query = "select count(*) n, max(price) p, sum(small) s from {t} where id between 30 and 60"
    found = bag(world.spark.sql(query.format(t="t_driver")))
    assert found == bag(world.spark.sql(query.format(t="t_parquet")))


def test_what_fails_in_the_driver_is_left_to_tasks(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise OSError("no route")

    monkeypatch.setattr(quick, "_collected", fails)
    frame = world.frame("l2").filter("id = 79")
    assert reads_in(frame) == {TASKS}
    assert [row.id for row in frame.collect()] == [79]


def task(size: int, predicate: Any = TRUE, limit: int | None = None, rows: int = 10) -> SplitTask:
    return SplitTask((SplitRef("s", size, num_records=rows),), predicate, limit=limit)


def test_what_is_cheap() -> None:
    column = Column(("n",), pa.int64())
    value: Any = 1
    equal, less = Compare(column, Op.EQ, value), Compare(column, Op.LT, value)
    config, large = Config(), 100 << 20
    assert is_cheap([task(10)], config)
    assert not is_cheap([task(10)] * 17, config)
    assert not is_cheap([task(10, rows=1001)], config)
    assert not is_cheap([task(10, rows=-1)], config)
    assert is_cheap([task(large, limit=20, rows=10**6)], config)
    assert is_cheap([task(10, less)], config)
    assert not is_cheap([task(large, less)], config)
    assert is_cheap([task(large, And((less, equal)))], config)
    assert not is_cheap([task(2 << 30, equal)], config)
    assert not is_cheap([task(large, equal)], config, aggregated=True)
    assert not is_cheap([task(10)], Config({"read.driver.maxSplits": 0}))


def test_what_an_index_finds() -> None:
    any_: Any = Column(("n",), pa.int64())
    assert is_searched(InSet(any_, (1,)))
    assert is_searched(TextMatch(any_, ("message",), "x"))
    assert not is_searched(InSet(any_, (1,), negated=True))
    assert not is_searched(TextMatch(any_, ("message",), "x", negated=True))
    assert not is_searched(TRUE)
