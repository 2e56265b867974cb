"""One DataFrame, many queries: what one query filters, no other query may lose."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from spark_world import LAYERS, World

pytestmark = pytest.mark.parametrize("layer", LAYERS)


@pytest.fixture
def frame(world: World, layer: str) -> Any:
    return world.frame(layer).select("id", "status")


def ids(frame: Any) -> list[int]:
    return sorted(row[0] for row in frame.collect())


ALL = list(range(400))


def test_filtered_then_unfiltered(frame: Any) -> None:
    assert ids(frame.filter("id = 1")) == [1]
    assert ids(frame) == ALL


def test_unfiltered_then_filtered_then_another(frame: Any) -> None:
    assert frame.count() == 400
    assert ids(frame.filter("id = 3")) == [3]
    assert ids(frame.filter("id = 1 or id = 2")) == [1, 2]


def test_union_of_two_filters(frame: Any) -> None:
    assert ids(frame.filter("id = 1").union(frame.filter("id = 2"))) == [1, 2]


def test_union_with_everything(frame: Any) -> None:
    assert len(ids(frame.filter("id = 1").union(frame))) == 401


def test_self_join(frame: Any) -> None:
    x, y = frame.filter("id = 1").alias("x"), frame.filter("id = 5").alias("y")
    found = x.crossJoin(y).selectExpr("x.id", "y.id").collect()
    assert [tuple(r) for r in found] == [(1, 5)]


def test_scalar_subquery_in_a_view(frame: Any, world: World, layer: str) -> None:
    frame.createOrReplaceTempView(f"leak_{layer}")
    query = "select id, (select count(*) from leak_{0}) n from leak_{0} where id = 1"
    assert [tuple(r) for r in world.spark.sql(query.format(layer)).collect()] == [(1, 400)]
    again = world.spark.sql(f"select count(*) from leak_{layer}").collect()[0][0]
    assert again == 400


def test_in_subquery_and_cte(world: World, layer: str) -> None:
    query = """with a as (select id from t_{0} where id < 5), b as (select id from t_{0})
    select count(*) from b where id not in (select id from a)"""
    assert world.spark.sql(query.format(layer)).collect()[0][0] == 395


def test_catalog_statement_with_two_scans(world: World, layer: str) -> None:
    query = "select id from t_{0} where id = 1 union all select id from t_{0} where id = 2"
    assert ids(world.spark.sql(query.format(layer))) == [1, 2]


def test_cached_filter_leaves_the_frame_alone(frame: Any) -> None:
    kept = frame.filter("id < 3").cache()
    assert kept.count() == 3
    assert frame.count() == 400
    assert ids(frame.filter("id = 9")) == [9]
    kept.unpersist()


def test_cached_frame_answers_filters(frame: Any) -> None:
    kept = frame.cache()
    assert ids(kept.filter("id = 9")) == [9]
    assert kept.count() == 400
    kept.unpersist()


def test_limits_do_not_leak(frame: Any) -> None:
    assert len(frame.limit(3).collect()) == 3
    assert frame.count() == 400


def test_two_threads(frame: Any) -> None:
    def query(i: int) -> list[int]:
        return ids(frame.filter(f"id = {i}")) if i % 3 else ids(frame)

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(query, range(6)))
    assert found == [[i] if i % 3 else ALL for i in range(6)]
