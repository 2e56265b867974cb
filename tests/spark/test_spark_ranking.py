"""Relevance in Spark: scores of the whole table, and the best rows pushed down."""

from __future__ import annotations

from typing import Any

import pytest
from spark_world import World

import indextables

QUERIES = ["timeout OR pool", "disk", '"connection timeout" OR pool^2', "timeout -pool"]


def scores_of(frame: Any) -> dict[int, float]:
    return {row.id: row._score for row in frame.collect()}


def scored(world: World, query: str, more: str = "", view: str = "t_l2") -> Any:
    text = query.replace("'", "''")
    where = f"message TEXTSEARCH '{text}'"
    return world.spark.sql(f"SELECT id, _score FROM {view} WHERE {where} {more}")


@pytest.mark.parametrize("query", QUERIES)
def test_scores_are_those_of_the_table(world: World, query: str) -> None:
    table = indextables.open(world.path)
    found = table.search(query, fields=["message"], columns=["id"], limit=10_000)
    expected = dict(zip(found["id"].to_pylist(), found["_score"].to_pylist(), strict=True))
    assert expected
    for path in ("l2", "driver"):
        frame = world.frame(path).filter(f"textsearch(message, '{query}')").select("id", "_score")
        assert scores_of(frame) == pytest.approx(expected, rel=1e-6), path


@pytest.mark.parametrize("order", ["_score DESC", "_score DESC, id", "_score DESC, id DESC"])
@pytest.mark.parametrize("limit", [1, 5, 1000])
def test_the_best_rows_are_pushed_down(world: World, order: str, limit: int) -> None:
    view = f"indextables.`{world.path}`"
    found = scored(world, "timeout OR pool", f"ORDER BY {order} LIMIT {limit}", view)
    everything = sorted(
        scores_of(scored(world, "timeout OR pool", view=view)).items(),
        key=lambda item: (-item[1], -item[0] if "id DESC" in order else item[0]),
    )
    rows = found.collect()
    assert [r._score for r in rows] == pytest.approx([s for _, s in everything[:limit]], rel=1e-6)
    if "id" in order:
        assert [r.id for r in rows] == [i for i, _ in everything[:limit]]
    plan = found._jdf.queryExecution().toString()
    assert f"best {limit} by _score" in plan


def test_other_orders_are_not_pushed_down(world: World) -> None:
    view = f"indextables.`{world.path}`"
    for order in ("_score", "id, _score DESC"):
        found = scored(world, "timeout", f"ORDER BY {order} LIMIT 3", view)
        assert "by _score" not in found._jdf.queryExecution().toString()
        assert len(found.collect()) == 3
