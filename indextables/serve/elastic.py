"""A small part of Elasticsearch's read API, so that its clients and dashboards can ask our tables.

An index is a table that is served. ``_search`` takes a query of Elasticsearch's language (see
``expr.elastic``), ``size``, ``from``, ``sort`` by one field, ``_source`` and aggregations:
``date_histogram``, ``histogram``, ``terms``, and the metrics ``stats``, ``min``, ``max``, ``avg``,
``sum``, ``value_count``, alone or inside a bucket aggregation. ``_msearch``, ``_count``,
``_mapping`` and ``_field_caps`` are there because clients call them first. What asks for more about
a hit (``highlight``, ``fields``) is ignored; anything else is an error in the form that those
clients show: nothing is skipped that would change which rows are found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from indextables.errors import IndexTablesError
from indextables.serve.questions import Questions, column_named
from indextables.splits.read.partials import DateHistogram, Group, Histogram, Terms
from indextables.table.searching import search_predicate

if TYPE_CHECKING:
    from indextables.table.table import Table

HEADERS = {"X-Elastic-Product": "Elasticsearch"}
VERSION = "8.15.0"
_READ = {"query", "size", "from", "sort", "_source", "aggs", "aggregations"}
_PASSED_OVER = {
    "track_total_hits", "timeout", "version", "track_scores", "stored_fields", "docvalue_fields",
    "fields", "highlight",
}  # fmt: skip
_UNITS = {
    "ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000,
    "w": 7 * 86_400_000_000,
}  # fmt: skip
_CALENDAR = {"second": "1s", "minute": "1m", "hour": "1h", "day": "1d"}
_METRICS = ("min", "max", "avg", "sum", "value_count", "stats")
_KINDS = {
    "string": "keyword", "boolean": "boolean", "tinyint": "byte", "smallint": "short",
    "int": "integer", "bigint": "long", "float": "float", "double": "double", "date": "date",
    "timestamp": "date", "timestamp_ntz": "date", "binary": "binary",
}  # fmt: skip

Answer = Callable[[], Any]


class ElasticError(Exception):
    """An error as clients of Elasticsearch read it."""

    def __init__(self, reason: str, kind: str = "parsing_exception", status: int = 400) -> None:
        super().__init__(reason)
        cause = {"type": kind, "reason": reason}
        self.status = status
        self.body = {"error": {"root_cause": [cause], **cause}, "status": status}


def route(
    questions: Questions, method: str, parts: list[str], given: Mapping[str, list[str]], body: bytes
) -> Answer | None:
    """What answers a request of this API; ``None`` where it is none."""
    match method, parts:
        case "GET", []:
            return _info
        case (("GET" | "POST"), [index, "_search"]):
            return lambda: search(questions, index, {**_flat(given), **_body(body)})
        case (("GET" | "POST"), [index, "_count"]):
            return lambda: _count(questions, index, _body(body))
        case (("GET" | "POST"), ["_msearch"]):
            return lambda: _many(questions, None, body)
        case (("GET" | "POST"), [index, "_msearch"]):
            return lambda: _many(questions, index, body)
        case "GET", ["_mapping"]:
            return lambda: {name: _mapping(questions, name) for name in questions.paths}
        case "GET", [index, "_mapping"] | [index]:
            return lambda: {index: _mapping(questions, index)}
        case (("GET" | "POST"), [index, "_field_caps"]):
            return lambda: _field_caps(questions, index)
        case _:
            return None


def _info() -> dict[str, Any]:
    return {
        "name": "indextables",
        "cluster_name": "indextables",
        "version": {"number": VERSION, "build_flavor": "default", "lucene_version": "tantivy"},
        "tagline": "You Know, for Search",
    }


def _body(data: bytes) -> dict[str, Any]:
    if not data.strip():
        return {}
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ElasticError(f"the body is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise ElasticError("the body is not an object")
    return found


def _flat(given: Mapping[str, list[str]]) -> dict[str, Any]:
    """Parameters in the address that mean what keys of a body mean."""
    found: dict[str, Any] = {k: int(given[k][-1]) for k in ("size", "from") if k in given}
    if given.get("q"):
        found["query"] = {"query_string": {"query": given["q"][-1]}}
    return found


def _table(questions: Questions, index: str) -> Table:
    if index not in questions.paths:
        raise ElasticError(f"no such index [{index}]", "index_not_found_exception", 404)
    return questions.table(index)


@dataclass(frozen=True)
class _Asked:
    """A search body, taken apart."""

    query: Mapping[str, Any] | None
    size: int
    start: int
    sort: tuple[str, bool] | None
    columns: list[str] | None
    aggregations: Mapping[str, Any]


def _asked(body: Mapping[str, Any], table: Table) -> _Asked:
    unknown = [k for k in body if k not in _READ and k not in _PASSED_OVER and body[k]]
    if unknown:
        raise ElasticError(f"unknown key for a search: [{unknown[0]}]")
    query = body.get("query")
    return _Asked(
        None if query in (None, {}, {"match_all": {}}) else query,
        _natural(body.get("size", 10), "size"),
        _natural(body.get("from", 0), "from"),
        _sort(body.get("sort"), table),
        _source(body.get("_source"), table),
        body.get("aggs") or body.get("aggregations") or {},
    )


def _natural(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ElasticError(f"[{name}] must be a number from 0 on, not {value!r}")
    return value


def _sort(given: Any, table: Table) -> tuple[str, bool] | None:
    """(column, descending); by score alone is no column."""
    listed = given if isinstance(given, list) else [given]
    pairs: list[tuple[str, bool]] = []
    for one in listed:
        if one in (None, "_score", "_doc") or (isinstance(one, dict) and set(one) <= {"_score"}):
            continue
        ((name, how),) = one.items() if isinstance(one, dict) else ((one, "asc"),)
        order = how.get("order", "asc") if isinstance(how, dict) else how
        if name != "_doc":
            pairs.append((column_named(table, name).name, order == "desc"))
    if len(pairs) > 1:
        raise ElasticError("only one [sort] field is supported")
    return pairs[0] if pairs else None


def _source(given: Any, table: Table) -> list[str] | None:
    if given in (None, True):
        return None
    if given is False:
        return []
    names = given.get("includes") if isinstance(given, dict) else given
    listed = [names] if isinstance(names, str) else list(names or table.schema.names)
    patterns = [re.compile(re.escape(n).replace(r"\*", ".*")) for n in listed]
    return [n for n in table.schema.names if any(p.fullmatch(n) for p in patterns)]


def search(questions: Questions, index: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to ``_search``."""
    table = _table(questions, index)
    try:
        asked = _asked(body, table)
        where = None if asked.query is None else search_predicate(table, asked.query)
        hits = list(_hits(questions, index, table, asked, where)) if asked.size else []
        found = {
            "took": 0,
            "timed_out": False,
            "_shards": {"total": 1, "successful": 1, "skipped": 0, "failed": 0},
            "hits": {
                "total": {"value": table.count(where), "relation": "eq"},
                "max_score": max((h["_score"] or 0.0 for h in hits), default=None),
                "hits": hits,
            },
        }
        if asked.aggregations:
            found["aggregations"] = {
                name: _aggregation(table, name, spec, where)
                for name, spec in asked.aggregations.items()
            }
        return found
    except IndexTablesError as error:
        raise ElasticError(str(error), "search_phase_execution_exception") from error


def _hits(
    questions: Questions, index: str, table: Table, asked: _Asked, where: Any
) -> Iterator[dict[str, Any]]:
    most = asked.start + asked.size
    if asked.sort is not None:
        column, descending = asked.sort
        found = table.top(column, most, descending=descending, columns=None, where=where)
    elif asked.query is not None:
        found = table.search(asked.query, None, most)
    else:
        found = table.to_arrow(None, None, most)
    shown = found.slice(asked.start)
    for number, row in enumerate(questions.plain_rows(shown), asked.start):
        score = row.pop("_score", None if asked.sort else 1.0)
        kept = row if asked.columns is None else {k: row[k] for k in asked.columns}
        hit = {"_index": index, "_id": str(number), "_score": score, "_source": kept}
        if asked.sort is not None:
            hit["sort"] = [row[asked.sort[0]]]
        yield hit


# -- aggregations ---------------------------------------------------------------------------------


def _aggregation(table: Table, name: str, spec: Mapping[str, Any], where: Any) -> dict[str, Any]:
    inner = spec.get("aggs") or spec.get("aggregations") or {}
    kinds = [k for k in spec if k not in ("aggs", "aggregations", "meta")]
    if len(kinds) != 1:
        raise ElasticError(f"aggregation [{name}] needs exactly one type")
    kind, body = kinds[0], spec[kinds[0]]
    if kind in _METRICS:
        metrics = dict(_metrics(table, name, kind, body))
        row = table.aggregate(metrics, where=where).to_pylist()[0]
        return _metric_answer(name, kind, row)
    group = _group(table, name, kind, body)
    subs = {sub: _sub(table, name, sub, inner[sub]) for sub in inner}
    metrics = {"doc_count": "count"}
    for sub, sub_kind, column in subs.values():
        metrics.update(_metrics(table, sub, sub_kind, {"field": column}))
    found = table.aggregate(metrics, [group], where=where).to_pylist()
    return _buckets(kind, body, found, list(subs.values()))


def _sub(table: Table, outer: str, name: str, spec: Mapping[str, Any]) -> tuple[str, str, str]:
    kinds = [k for k in spec if k in _METRICS]
    if len(kinds) != 1 or len(spec) != 1:
        raise ElasticError(f"[{name}] inside [{outer}] must be one of {', '.join(_METRICS)}")
    return name, kinds[0], _field(table, name, spec[kinds[0]])


def _field(table: Table, name: str, body: Mapping[str, Any]) -> str:
    if not isinstance(body, Mapping) or "field" not in body:
        raise ElasticError(f"aggregation [{name}] needs a [field]")
    return str(column_named(table, str(body["field"]).removesuffix(".keyword")).name)


def _metrics(
    table: Table, name: str, kind: str, body: Mapping[str, Any]
) -> Iterator[tuple[str, Any]]:
    column = _field(table, name, body)
    parts = ("count", "min", "max", "avg", "sum") if kind == "stats" else (kind,)
    for part in parts:
        function = "count" if part == "value_count" else part
        yield f"{name}.{part}", (function, column)


def _metric_answer(name: str, kind: str, row: Mapping[str, Any]) -> dict[str, Any]:
    if kind == "stats":
        return {p: _number(row[f"{name}.{p}"]) for p in ("count", "min", "max", "avg", "sum")}
    return {"value": _number(row[f"{name}.{kind}"])}


def _number(value: Any) -> Any:
    if value is None or isinstance(value, int | float):
        return value
    return value.timestamp() * 1000 if hasattr(value, "timestamp") else float(value)


def _group(table: Table, name: str, kind: str, body: Mapping[str, Any]) -> Group:
    column = _field(table, name, body)
    if kind == "terms":
        return Terms(column, name="key")
    if kind == "histogram":
        return Histogram(column, float(body["interval"]), name="key")
    if kind == "date_histogram":
        return DateHistogram(column, _width(name, body), name="key")
    raise ElasticError(f"unknown aggregation type [{kind}]")


def _width(name: str, body: Mapping[str, Any]) -> int:
    text = body.get("fixed_interval") or body.get("calendar_interval") or body.get("interval")
    match = re.fullmatch(r"([1-9][0-9]*)(ms|s|m|h|d|w)", _CALENDAR.get(str(text), str(text)))
    if match is None:
        raise ElasticError(
            f"[{name}]: the interval {text!r} is not supported; use a number and ms, s, m, h, d, w"
        )
    return int(match[1]) * _UNITS[match[2]]


def _buckets(
    kind: str,
    body: Mapping[str, Any],
    rows: list[dict[str, Any]],
    subs: list[tuple[str, str, str]],
) -> dict[str, Any]:
    rows = [row for row in rows if row["key"] is not None and row["doc_count"] >= _least(body)]
    if kind == "terms":
        rows.sort(key=lambda row: (-row["doc_count"], str(row["key"])))
    else:
        rows.sort(key=lambda row: row["key"])
    size = _natural(body.get("size", 10), "size") if kind == "terms" else len(rows)
    buckets = []
    for row in rows[:size]:
        bucket = {**_key(row["key"]), "doc_count": row["doc_count"]}
        for sub, sub_kind, _ in subs:
            bucket[sub] = _metric_answer(sub, sub_kind, row)
        buckets.append(bucket)
    if kind != "terms":
        return {"buckets": buckets}
    rest = sum(row["doc_count"] for row in rows[size:])
    return {"doc_count_error_upper_bound": 0, "sum_other_doc_count": rest, "buckets": buckets}


def _least(body: Mapping[str, Any]) -> int:
    return max(1, int(body.get("min_doc_count", 1)))


def _key(value: Any) -> dict[str, Any]:
    if hasattr(value, "isoformat"):
        moment = pa.scalar(value).cast(pa.timestamp("ms"))
        return {"key": moment.value, "key_as_string": value.isoformat()}
    return {"key": value}


# -- the rest -------------------------------------------------------------------------------------


def _count(questions: Questions, index: str, body: Mapping[str, Any]) -> dict[str, Any]:
    found = search(questions, index, {**body, "size": 0})
    return {"count": found["hits"]["total"]["value"], "_shards": found["_shards"]}


def _many(questions: Questions, index: str | None, data: bytes) -> dict[str, Any]:
    lines = [line for line in data.split(b"\n") if line.strip()]
    if not lines or len(lines) % 2:
        raise ElasticError("a multi search is pairs of lines: a header and a body")
    answers = []
    for head, body in zip(lines[::2], lines[1::2], strict=True):
        try:
            named = _body(head).get("index", index)
            name = named[0] if isinstance(named, list) and len(named) == 1 else named
            answers.append({**search(questions, str(name), _body(body)), "status": 200})
        except ElasticError as error:
            answers.append(error.body)
    return {"took": 0, "responses": answers}


def _kind(questions: Questions, index: str) -> Iterator[tuple[str, str]]:
    _table(questions, index)
    for column in questions.describe(index)["columns"]:
        kind = "text" if column["indexed"] == "text" else _KINDS.get(column["type"], "object")
        yield column["name"], "ip" if column["indexed"] == "ip" else kind


def _mapping(questions: Questions, index: str) -> dict[str, Any]:
    kinds = {name: {"type": kind} for name, kind in _kind(questions, index)}
    return {"mappings": {"properties": kinds}}


def _field_caps(questions: Questions, index: str) -> dict[str, Any]:
    fields = {
        name: {kind: {"type": kind, "searchable": True, "aggregatable": kind != "text"}}
        for name, kind in _kind(questions, index)
    }
    return {"indices": [index], "fields": fields}
