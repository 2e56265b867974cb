"""Every query of the corpus gives the rows of the Parquet copy, on both layers."""

from __future__ import annotations

import re
from typing import Any

import pytest
from spark_corpus import FILTERS, QUERIES, TEXT
from spark_world import WAYS, World, bag

_expected: dict[str, list[str]] = {}


def expected(world: World, query: str) -> list[str]:
    if query not in _expected:
        _expected[query] = bag(world.spark.sql(query.format(t="t_parquet")))
    return _expected[query]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("condition", FILTERS)
def test_filter(world: World, way: str, condition: str) -> None:
    query = "select id, host from {t} where " + condition
    assert bag(world.spark.sql(query.format(t=f"t_{way}"))) == expected(world, query)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("query", QUERIES)
def test_query(world: World, way: str, query: str) -> None:
    assert bag(world.spark.sql(query.format(t=f"t_{way}"))) == expected(world, query)


def words(text: str | None) -> list[str]:
    return re.findall(r"\w+", (text or "").lower())


def matching(world: World, oracle: Any) -> list[int]:
    data = world.data.select(["id", "message"]).to_pylist()
    return [row["id"] for row in data if oracle(words(row["message"]))]


@pytest.mark.parametrize("way", WAYS[1:])
@pytest.mark.parametrize(("condition", "oracle"), TEXT)
def test_full_text(world: World, way: str, condition: str, oracle: Any) -> None:
    found = world.spark.sql(f"select id from t_{way} where {condition}").collect()
    assert sorted(r.id for r in found) == matching(world, oracle)


@pytest.mark.parametrize(("condition", "oracle"), TEXT[:9])
def test_full_text_fixed_at_load(world: World, condition: str, oracle: Any) -> None:
    found = world.frame("l1", where=condition).select("id").collect()
    assert sorted(r.id for r in found) == matching(world, oracle)


def test_the_corpus_is_large_enough() -> None:
    assert len(FILTERS) + len(QUERIES) + len(TEXT) >= 200
