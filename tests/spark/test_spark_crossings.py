"""How often a query goes from Spark's JVM to Python, and that handles are only a convenience."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from spark_world import ALL_IN_DRIVER, ALL_IN_TASKS, World, bag

from indextables.spark.driver.session import _bridges


def crossings(world: World, work: Callable[[], Any]) -> dict[str, int]:
    """The questions that some work asked, by their verb."""
    asked = _bridges[world.spark].crossings
    asked.clear()
    work()
    return dict(asked)


LOAD, OPEN, PLAN, AGGREGATE = ({verb: 1} for verb in ("describe", "open", "plan", "aggregate"))
WAYS = {"driver": ALL_IN_DRIVER, "tasks": ALL_IN_TASKS}


@pytest.mark.parametrize("way", WAYS)
def test_three_for_a_filtered_query(world: World, way: str) -> None:
    def query() -> None:
        assert world.frame("l2", **WAYS[way]).filter("id BETWEEN 5 AND 9").count() == 5

    def rows() -> None:
        assert len(world.frame("l2", **WAYS[way]).filter("id > 390").select("host").collect()) == 9

    assert crossings(world, rows) == {**LOAD, **OPEN, **PLAN}
    assert crossings(world, query) == {**LOAD, **OPEN, **AGGREGATE, **PLAN}


@pytest.mark.parametrize("way", WAYS)
def test_all_kinds_of_queries(world: World, way: str) -> None:
    frame = world.frame("l2", **WAYS[way])
    known = crossings(world, lambda: world.frame("l2", **WAYS[way]).count())
    assert known == {**LOAD, **AGGREGATE}, "the log knows the count"
    assert crossings(world, frame.collect) == PLAN
    assert crossings(world, frame.filter("id > 3").limit(2).collect) == {**OPEN, **PLAN}
    assert crossings(world, frame.groupBy("host").count().collect) == {**AGGREGATE, **PLAN}
    assert crossings(world, frame.groupBy("host").avg("id").collect) == {"aggregate": 2, **PLAN}
    assert crossings(world, frame.filter("id = 3").explain) == {**OPEN, **PLAN}
    joined = frame.filter("id < 9").join(frame.filter("id < 5"), "host")
    assert crossings(world, joined.collect) == {"open": 2, "plan": 2}


def test_sql_over_the_catalog(world: World) -> None:
    text = f"SELECT host FROM indextables.`{world.path}` WHERE id = 7"
    found = crossings(world, lambda: world.spark.sql(text).collect())
    assert found == {**LOAD, **OPEN, **PLAN}


def test_a_scan_that_was_forgotten_is_told_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_bridges[world.spark].opened._by_handle, "most", 1)
    view = world.frame("l2")
    parts = [view.filter(f"id = {i}").select("id") for i in range(4)]
    counts = [view.filter(f"id < {i}").groupBy("part").count().select("count") for i in (30, 150)]
    whole = parts[0]
    for part in parts[1:] + counts:
        whole = whole.union(part)
    seen: list[int] = []
    asked = crossings(world, lambda: seen.extend(row.id for row in whole.collect()))
    assert sorted(seen) == [0, 1, 2, 3, 30, 50, 100]
    assert asked["plan"] > 6, "some were asked for twice"


def test_equal_scans_share_a_plan_and_versions_do_not(world: World, tmp_path: Any) -> None:
    from indextables.table import write_table

    path = str(tmp_path / "t")
    write_table(world.data.slice(0, 20).drop_columns(["attrs"]), path)
    frame = world.spark.read.format("indextables").load(path)
    assert len(frame.filter("id < 100").collect()) == 20
    first = _bridges[world.spark].last_plan
    assert len(frame.filter("id < 100").collect()) == 20
    assert _bridges[world.spark].last_plan is first
    write_table(world.data.slice(50, 20).drop_columns(["attrs"]), path, mode="append")
    assert len(frame.filter("id < 100").collect()) == 40
    assert len(frame.collect()) == 40
    assert frame.count() == 40


JOINS = (
    "SELECT a.id, b.host FROM {t} a JOIN {t} b ON a.host = b.host WHERE a.id < 5 AND b.id < 9",
    "SELECT count(DISTINCT host) FROM {t} WHERE id < 20",
    "SELECT count(DISTINCT host), count(DISTINCT status), sum(id) FROM {t} WHERE id < 20",
    "SELECT host, collect_set(id) IS NULL FROM {t} WHERE id < 9 GROUP BY host",
    "SELECT id, row_number() OVER (PARTITION BY host ORDER BY id) FROM {t} WHERE id < 20",
    "SELECT * FROM (SELECT id FROM {t} WHERE id < 9) JOIN (SELECT count(*) n FROM {t}) ON id < n",
    "SELECT DISTINCT host FROM {t} WHERE id < 20 ORDER BY host",
    "SELECT (SELECT max(id) FROM {t} WHERE id < 9) + id FROM {t} WHERE id IN (3, 4)",
)


def assert_fit_for_executors(world: World, frame: Any) -> None:
    """What tasks may carry of a plan names none of our classes, which executors do not have."""
    serialize = world.spark._jvm.org.apache.spark.util.Utils.serialize
    leaves = frame._jdf.queryExecution().sparkPlan().collectLeaves()
    for i in range(leaves.size()):
        assert leaves.apply(i).getClass().getName() == "io.indextables.KnownRowsExec"
        sent = bytes(serialize(leaves.apply(i)))
        assert b"LocalTableScanExec" in sent
        assert b"io.indextables" not in sent


@pytest.mark.parametrize("query", JOINS)
def test_known_rows_compile(world: World, query: str) -> None:
    """Generated code over rows that the driver read; the session takes no fallback."""
    assert world.spark.conf.get("spark.sql.codegen.fallback") == "false"
    mine = world.spark.sql(query.format(t="t_driver"))
    assert "KnownRows" in mine._jdf.queryExecution().executedPlan().toString()
    assert_fit_for_executors(world, mine)
    assert bag(mine) == bag(world.spark.sql(query.format(t="t_parquet")))
