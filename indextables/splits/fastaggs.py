"""Aggregation inside tantivy, where it is exact.

tantivy computes in doubles, lists at most 65,000 buckets and skips documents without a value. It is
used for groups by up to two exact string columns of few distinct values, and for metrics over
numbers where no rounding can happen: counts always; minima and maxima of integers below 2^53; sums
of integers that stay below 2^53 even if every row held the largest. Sums and means of doubles are
doubles anyway; columns with NaN are left to Arrow. Rows whose group is NULL are asked separately.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from indextables.expr.predicate import TRUE, Column, NullTest, conjunction
from indextables.splits.aggregates import Aggregation, Metric, Partial, Terms, group_states
from indextables.splits.info import IndexField, SplitInfo
from indextables.splits.nodes import All, Index
from indextables.splits.workspace import FAST, run

MOST_BUCKETS = 20_000
_EXACT = 2**53


def fast_partial(reader: Any, scan: Any, aggregation: Aggregation) -> Partial | None:
    """The partial result of one split, or ``None`` where only reading columns is exact."""
    info = reader.info
    fields = _group_fields(info, aggregation)
    if not fields or not all(_is_exact(info, m) for m in aggregation.metrics):
        return None
    null_counts = [info.null_counts.get(f.column, -1) for f in fields]
    if any(n != 0 for n in null_counts) and len(fields) > 1:
        return None
    rows = _buckets(reader, scan.predicate, aggregation, fields)
    if rows is None:
        return None
    if null_counts != [0] * len(fields):
        column = Column((fields[0].column,), pa.string())
        nulls = conjunction([scan.predicate, NullTest(column, is_null=True)])
        outside = _buckets(reader, nulls, aggregation, [])
        if outside is None:
            return None
        rows += [([None], state) for _, state in outside if state["doc_count"]]
    return _as_partial(aggregation, rows)


def _group_fields(info: SplitInfo, aggregation: Aggregation) -> list[IndexField] | None:
    found = []
    for group in aggregation.groups:
        field = info.fields.get(group.column)
        if not isinstance(group, Terms) or field is None or field.kind != "term":
            return None
        if not field.fast or not field.complete:
            return None
        found.append(field)
    size = 1
    for field in found:
        size *= max(field.terms, 1)
    return found if 0 < len(found) <= 2 and size <= MOST_BUCKETS else None


def _is_exact(info: SplitInfo, metric: Metric) -> bool:
    if metric.column is None:
        return True
    field = info.fields.get(metric.column)
    if field is None:
        return False
    if metric.kind == "count":
        return field.kind in ("i64", "f64")
    if field.kind == "f64":
        return info.nan_counts.get(metric.column) == 0
    bounds = info.integers.get(metric.column)
    if field.kind != "i64" or bounds is None or not _is_integer(info, metric.column):
        return False
    largest = max(abs(bounds[0]), abs(bounds[1]))
    rows = info.num_rows if metric.kind in ("sum", "avg") else 1
    return largest * rows < _EXACT


def _is_integer(info: SplitInfo, column: str) -> bool:
    return bool(pa.types.is_integer(info.schema.field(column).type))


# -- asking ---------------------------------------------------------------------------------------


def _buckets(
    reader: Any, predicate: Any, aggregation: Aggregation, fields: list[IndexField]
) -> list[tuple[list[Any], dict[str, Any]]] | None:
    """(keys, state) of every bucket, or ``None`` if the rows are not exactly known to the index."""
    from tantivy import Query

    session = reader.session()
    found = session.find(predicate)
    if found.residual != TRUE:
        return None
    if isinstance(found.node, Index):
        query, needs = found.node.query, found.node.needs | {FAST}
    elif isinstance(found.node, All):
        query, needs = Query.all_query(), frozenset([FAST])
    else:
        return None
    session.index.ensure(needs)
    searcher = session.index.searcher
    request = _request(reader.info, aggregation, fields)
    answer = run(lambda: searcher.aggregate(query, request), reader.path)
    if not fields:
        count = session.search.count(Index(query, needs))
        return [([], {"doc_count": count, **answer})]
    return _listed(answer, len(fields), [])


def _request(info: SplitInfo, aggregation: Aggregation, fields: list[IndexField]) -> dict[str, Any]:
    request: dict[str, Any] = {}
    for number, metric in enumerate(aggregation.metrics):
        if metric.column is not None:
            request[f"m{number}"] = {"stats": {"field": info.fields[metric.column].name}}
    for field in reversed(fields):
        terms = {"field": field.name, "size": MOST_BUCKETS + 1, "segment_size": MOST_BUCKETS + 1}
        request = {"group": {"terms": terms, **({"aggs": request} if request else {})}}
    return request


def _listed(
    answer: dict[str, Any], depth: int, keys: list[Any]
) -> list[tuple[list[Any], dict[str, Any]]] | None:
    if depth == 0:
        return [(keys, answer)]
    group = answer["group"]
    if group.get("sum_other_doc_count") or group.get("doc_count_error_upper_bound"):
        return None
    found: list[tuple[list[Any], dict[str, Any]]] = []
    for bucket in group["buckets"]:
        inner = _listed(bucket, depth - 1, [*keys, bucket["key"]])
        if inner is None:
            return None
        found += inner
    return found


# -- states ---------------------------------------------------------------------------------------


def _as_partial(aggregation: Aggregation, rows: list[tuple[list[Any], dict[str, Any]]]) -> Partial:
    states: dict[str, Any] = {"rows": pa.array([s["doc_count"] for _, s in rows], pa.int64())}
    for number, metric in enumerate(aggregation.metrics):
        if metric.column is not None:
            answers = [s[f"m{number}"] for _, s in rows]
            states |= _metric_states(number, metric, aggregation, answers)
    keys = [
        pa.array([k[i] for k, _ in rows], aggregation.dtype(group.column))
        for i, group in enumerate(aggregation.groups)
    ]
    return group_states(aggregation, keys, states)


def _metric_states(
    number: int, metric: Metric, aggregation: Aggregation, answers: list[dict[str, Any]]
) -> dict[str, Any]:
    assert metric.column is not None
    name = f"m{number}"
    dtype = aggregation.dtype(metric.column)
    counts = [int(a["count"]) for a in answers]
    found: dict[str, Any] = {f"{name}_count": pa.array(counts, pa.int64())}
    if metric.kind in ("min", "max"):
        if pa.types.is_floating(dtype):
            found[f"{name}_nans"] = pa.array([0] * len(answers), pa.int64())
        found[f"{name}_{metric.kind}"] = _extremes(metric.kind, dtype, answers)
    elif metric.kind in ("sum", "avg"):
        sums = [a["sum"] if a["count"] else None for a in answers]
        if pa.types.is_floating(dtype):
            found[f"{name}_real"] = pa.array(sums, pa.float64())
        else:
            whole = [None if s is None else int(s) for s in sums]
            found[f"{name}_high"] = pa.array(
                [None if s is None else s >> 32 for s in whole], pa.int64()
            )
            found[f"{name}_low"] = pa.array(
                [None if s is None else s & 0xFFFFFFFF for s in whole], pa.int64()
            )
    return found


def _extremes(kind: str, dtype: pa.DataType, answers: list[dict[str, Any]]) -> Any:
    values = [a[kind] if a["count"] else None for a in answers]
    if pa.types.is_floating(dtype):
        return pa.array(values, pa.float64()).cast(dtype)
    return pa.array([None if v is None else int(v) for v in values], dtype)
