"""Elasticsearch queries over a table, against the plain oracle; search strings with dates."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import indextables
from indextables.errors import PlanningError
from indextables.expr.datemath import fixed_now

sys.path.insert(0, str(Path(__file__).parents[1] / "expr"))

from elastic_oracle import NOW, ROWS, corpus, holds

CORPUS = corpus()
NOW_MICROS = int(NOW.timestamp()) * 1_000_000


@pytest.fixture(scope="module", params=[12, 5])
def table(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Any:
    path = str(tmp_path_factory.mktemp("elastic") / "table")
    data = pa.Table.from_pylist(ROWS)
    indextables.write(data, path, text=["msg", "title"], rows_per_split=request.param)
    return indextables.open(path)


def found(table: Any, query: Any) -> list[int]:
    with fixed_now(NOW_MICROS):
        return sorted(table.search(query, columns=["id"], limit=100)["id"].to_pylist())


def test_the_corpus_is_large_enough() -> None:
    assert len(CORPUS) >= 200
    matching = [sum(holds(query, row) for row in ROWS) for query in CORPUS]
    assert sum(0 < count < len(ROWS) for count in matching) > 150


def test_every_query_finds_the_rows_of_the_oracle(table: Any) -> None:
    wrong = []
    for query in CORPUS:
        expected = [row["id"] for row in ROWS if holds(query, row)]
        got = found(table, query)
        if got != expected:
            wrong.append((query, got, expected))
    assert not wrong, (len(wrong), wrong[:5])


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("ts:[now-1d TO now]", [0, 1, 2, 3, 10]),
        ("ts:>=now/d", [0, 1, 10]),
        ("ts:[2024-01-01||/y TO now-1M/M]", [6, 7]),
        ("ts:now-1d/d", [2, 3]),
        ("ts:{now-1h TO *}", [0, 10]),
        ("_exists_:n -_exists_:ok", [3, 8]),
        ("msg:(quick brown fox)@2", [0, 1, 8]),
        ("(fox OR disk OR title:quick)@2", [0]),
        ("msg:(quick fox -brown)@1", []),
        ("quik~1*", [0, 1, 8, 11]),
        ("msg:(fox^3 OR disk)", [0, 2, 8, 10]),
        ('msg:"fox quick"~2 OR host:a\\*b', [8]),
    ],
)
def test_search_strings(table: Any, query: str, rows: list[int]) -> None:
    with fixed_now(NOW_MICROS):
        got = table.search(query, fields=["msg"], columns=["id"], limit=100)["id"].to_pylist()
        where = query.replace("'", "''")
        assert table.count(f"msg INDEXQUERY '{where}'") == len(rows)
    assert sorted(got) == rows


@pytest.mark.parametrize(
    ("text", "operator", "rows"),
    [
        ("fox disk", "OR", [0, 2, 8, 10]),
        ("fox disk", "AND", []),
        ("+quick fox", "OR", [0, 1, 8]),
        ("quick AND brown fox", "OR", [0, 1, 8]),
        ("quick -fox", "OR", [1]),
        ("title:disk* timeout", "OR", [2, 3, 4, 10]),
    ],
)
def test_query_strings_join_by_or(table: Any, text: str, operator: str, rows: list[int]) -> None:
    body = {"query": text, "default_field": "msg", "default_operator": operator}
    assert found(table, {"query_string": body}) == rows


def test_a_whole_body_may_stand_around_the_query(table: Any) -> None:
    assert found(table, {"query": {"match": {"msg": "fox"}}}) == [0, 8]
    with pytest.raises(PlanningError, match="aggs"):
        table.search({"query": {"match_all": {}}, "aggs": {}})


def test_filters_do_not_score(table: Any) -> None:
    plain = table.search({"match": {"msg": "fox"}}, limit=5)["_score"].to_pylist()
    both = {"bool": {"must": {"match": {"msg": "fox"}}, "filter": {"match": {"msg": "quick"}}}}
    assert table.search(both, limit=5)["_score"].to_pylist() == pytest.approx(plain)
    boosted = {"match": {"msg": {"query": "fox", "boost": 2}}}
    twice = table.search(boosted, limit=5)["_score"].to_pylist()
    assert twice == pytest.approx([2 * score for score in plain])


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"geo_distance": {}}, "geo_distance.*Known"),
        ({"match": {"msg": {"query": "x", "analyzer": "y"}}}, "analyzer"),
        ({"match": {"nofield": "x"}}, "nofield"),
        ({"match": {}}, "one field"),
        ({"match": {"n": "abc"}}, "abc"),
        ({}, "one key"),
        ({"bool": {"musst": []}}, "musst"),
        ({"terms": {"host": "web-1"}}, "list"),
        ({"fuzzy": {"msg": {"value": "x", "fuzziness": 5}}}, "fuzziness"),
        ({"range": {"ts": {"gte": "now-1x"}}}, "now-1x"),
        ({"bool": {"should": [], "minimum_should_match": "many"}}, "many"),
        ({"script": {"source": "1"}}, "script"),
        ({"nested": {}}, "nested"),
    ],
)
def test_what_is_not_known_is_named(table: Any, query: Any, words: str) -> None:
    with pytest.raises(PlanningError, match=words):
        table.search(query)


def test_now_is_read_again_for_every_search(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    indextables.write(pa.table({"ts": [NOW], "m": ["x"]}), path, text=["m"])
    table = indextables.open(path)
    where = "m INDEXQUERY 'ts:[now-1h TO now]'"
    with fixed_now(NOW_MICROS):
        assert table.count(where) == 1
    with fixed_now(NOW_MICROS + 2 * 3_600_000_000):
        assert table.count(where) == 0
