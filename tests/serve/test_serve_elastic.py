"""Elasticsearch's own Python client over the console's server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from elasticsearch import BadRequestError, Elasticsearch, NotFoundError

import indextables
from indextables.serve.http import Console
from indextables.table.table import Table


@pytest.fixture(scope="module")
def client(console: Console) -> Iterator[Elasticsearch]:
    made = Elasticsearch(f"http://127.0.0.1:{console.port}", bearer_auth=console.token)
    yield made
    made.close()


@pytest.fixture(scope="module")
def table(tables: list[Path]) -> Table:
    return indextables.open(tables[0])


def total(answer: Any) -> int:
    return int(answer["hits"]["total"]["value"])


def test_who_it_is_and_what_it_has(client: Elasticsearch) -> None:
    assert client.info()["tagline"] == "You Know, for Search"
    properties = client.indices.get_mapping(index="events")["events"]["mappings"]["properties"]
    assert properties["message"] == {"type": "text"}
    assert properties["ts"] == {"type": "date"}
    caps = client.field_caps(index="events", fields="*")["fields"]
    assert caps["host"]["keyword"]["aggregatable"]
    assert client.indices.exists(index="events")


@pytest.mark.parametrize(
    ("query", "where"),
    [
        ({"match": {"message": "timeout"}}, "message TEXTSEARCH 'timeout'"),
        ({"term": {"host": "web-1"}}, "host = 'web-1'"),
        ({"range": {"status": {"gte": 404, "lt": 500}}}, "status >= 404 AND status < 500"),
        (
            {
                "bool": {
                    "must": [{"match": {"message": "disk"}}],
                    "must_not": [{"term": {"status": 500}}],
                }
            },
            "message TEXTSEARCH 'disk' AND NOT status = 500",
        ),
        (
            {"query_string": {"query": "message:login AND host:web-2"}},
            "message TEXTSEARCH 'login' AND host = 'web-2'",
        ),
        ({"match_all": {}}, "TRUE"),
    ],
)
def test_queries_count_what_sql_counts(
    client: Elasticsearch, table: Table, query: dict[str, Any], where: str
) -> None:
    answer = client.search(index="events", query=query, size=3)
    assert total(answer) == table.count(where) > 0
    assert len(answer["hits"]["hits"]) == 3
    assert client.count(index="events", query=query)["count"] == table.count(where)


def test_pages_sorting_and_sources(client: Elasticsearch, table: Table) -> None:
    newest = client.search(index="events", sort=[{"ts": "desc"}], size=2, source=["ts", "host"])
    hits = newest["hits"]["hits"]
    assert [set(hit["_source"]) for hit in hits] == [{"ts", "host"}] * 2
    assert hits[0]["_source"]["ts"] > hits[1]["_source"]["ts"]
    query = {"match": {"message": "timeout"}}
    first = client.search(index="events", query=query, size=4)["hits"]["hits"]
    second = client.search(index="events", query=query, size=2, from_=2)["hits"]["hits"]
    assert [h["_source"] for h in second] == [h["_source"] for h in first[2:]]
    assert client.search(index="events", size=0)["hits"]["hits"] == []


def test_aggregations(client: Elasticsearch, table: Table) -> None:
    answer = client.search(
        index="events",
        size=0,
        query={"match": {"message": "timeout"}},
        aggs={
            "hosts": {
                "terms": {"field": "host", "size": 2},
                "aggs": {"s": {"stats": {"field": "status"}}},
            },
            "days": {"date_histogram": {"field": "ts", "fixed_interval": "1d"}},
            "codes": {"histogram": {"field": "status", "interval": 100}},
            "worst": {"max": {"field": "status"}},
        },
    )  # fmt: skip
    found, count = answer["aggregations"], total(answer)
    hosts = found["hosts"]
    assert len(hosts["buckets"]) == 2
    assert sum(b["doc_count"] for b in hosts["buckets"]) + hosts["sum_other_doc_count"] == count
    best = hosts["buckets"][0]
    where = f"message TEXTSEARCH 'timeout' AND host = '{best['key']}'"
    assert best["s"]["count"] == table.count(where)
    assert sum(b["doc_count"] for b in found["days"]["buckets"]) == count
    assert found["days"]["buckets"][0]["key"] == 1714521600000
    assert {b["key"] for b in found["codes"]["buckets"]} <= {200.0, 400.0, 500.0}
    assert found["worst"]["value"] == 500


def test_many_searches_at_once(client: Elasticsearch) -> None:
    answers = client.msearch(
        searches=[
            {"index": "events"},
            {"query": {"match": {"message": "disk"}}, "size": 1},
            {"index": "nowhere"},
            {"query": {"match_all": {}}},
        ]
    )["responses"]
    assert total(answers[0]) > 0
    assert answers[1]["error"]["type"] == "index_not_found_exception"


def test_an_empty_table(client: Elasticsearch) -> None:
    assert total(client.search(index="empty")) == 0
    stats = client.search(index="empty", size=0, aggs={"s": {"stats": {"field": "n"}}})
    assert stats["aggregations"]["s"]["count"] == 0


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"query": {"geo_shape": {}}}, "geo_shape"),
        ({"query": {"match": {"nope": "x"}}}, "nope"),
        ({"aggs": {"p": {"percentiles": {"field": "status"}}}}, "percentiles"),
        ({"suggest": {"text": "x"}}, "suggest"),
        ({"size": -1}, "size"),
        ({"sort": ["host", "ts"]}, "one [sort]"),
    ],
)
def test_what_is_not_there_is_an_error(
    client: Elasticsearch, body: dict[str, Any], says: str
) -> None:
    with pytest.raises(BadRequestError) as raised:
        client.search(index="events", body=body)
    assert says in str(raised.value.body)


def test_other_indexes_are_not_found(client: Elasticsearch) -> None:
    with pytest.raises(NotFoundError):
        client.search(index="other")
    assert not client.indices.exists(index="other")
