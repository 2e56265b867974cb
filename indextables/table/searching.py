"""Top-k search over all splits: best first, scores as each split's index gives them.

A split never holds more than ``limit`` of the answer, so each is asked for its best ``limit`` rows;
the best of all are fetched, nothing else. Scores are BM25 within a split; rows without a score
(splits scanned instead of searched) sort last. Ties are broken by split and row, so the same
question gives the same answer.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from indextables.errors import PlanningError, UnknownColumnError
from indextables.expr import ast
from indextables.expr.ast import query_fields
from indextables.expr.predicate import TRUE, TextMatch, conjunction
from indextables.expr.querystring import parse_query
from indextables.naming import stored_columns, stored_mapping
from indextables.planner import Planner
from indextables.planner.tasks import SplitTask
from indextables.splits.read.access import read_split, scored_rows
from indextables.splits.read.reader import SplitReader
from indextables.table.execute import SCORE, in_order, open_scan, output_schema, parallelism

if TYPE_CHECKING:
    from indextables.table.table import Table

SNIPPET = "_snippet"


@dataclass(frozen=True, slots=True)
class Request:
    """One search."""

    query: str
    columns: Sequence[str] | None = None
    limit: int = 10
    fields: Sequence[str] | None = None
    where: Any = None
    snippet: str | None = None


@dataclass(frozen=True, slots=True)
class _Hit:
    score: float
    split: int
    row: int


def search(table: Table, request: Request) -> pa.Table:
    """The best rows, best first."""
    if request.limit < 1:
        raise PlanningError(f"a search needs a limit of at least 1, not {request.limit}")
    planner = Planner(table)
    fields = _default_fields(table, request.fields)
    query = parse_query(
        request.query,
        default_fields=fields,
        mapping=stored_mapping(table.mapping, table.schema),
        schema=table.schema,
    )
    where = planner.bind(request.where)
    asked = query_fields(query) or stored_columns(table.schema, fields)
    text = TextMatch(query, tuple(asked), request.query, "indexquery")
    plan = planner.plan(conjunction([text, where]), columns=request.columns)
    plan.check_decidable()
    table.last_plan = plan
    found_in = [(task, split) for task in plan.tasks for split in task.splits]
    tasks = [replace(task, predicate=where, splits=(split,)) for task, split in found_in]
    splits = [split for _, split in found_in]

    def best(number: int) -> list[_Hit]:
        return _best_of_split(table, tasks[number], number, query, request.limit)

    count = parallelism(table)
    found = [hit for hits in in_order(best, range(len(splits)), count) for hit in hits]
    top = heapq.nsmallest(request.limit, found, key=lambda h: (-h.score, h.split, h.row))
    return _fetch(table, splits, top, plan.columns, query, request.snippet)


def _default_fields(table: Table, fields: Sequence[str] | None) -> list[str]:
    mapping = table.mapping
    if fields is not None:
        names = [fields] if isinstance(fields, str) else list(fields)
        for name in names:
            if mapping.get(name.split(".")[0]) is None:
                raise UnknownColumnError.of(name, mapping.names, path=table.path)
        return names
    tokenized = [f.name for f in mapping.fields if f.is_tokenized]
    return tokenized or [f.name for f in mapping.fields if f.type == "text"]


def _best_of_split(
    table: Table, task: SplitTask, number: int, query: ast.Query, limit: int
) -> list[_Hit]:
    scan = open_scan(table.store, task, task.splits[0], table.schema, table.config)
    hits = scored_rows(scan.reader, query, limit if scan.is_unfiltered else None)
    rows, scores = hits.rows, hits.scores
    if scores is None:
        scores = np.zeros(len(rows), np.float32)
    if not scan.is_unfiltered:
        keep = np.isin(rows, scan.matching_rows())
        rows, scores = rows[keep][:limit], scores[keep][:limit]
    return [_Hit(float(s), number, int(r)) for r, s in zip(rows, scores, strict=True)]


def _fetch(
    table: Table,
    splits: list[Any],
    top: list[_Hit],
    columns: Sequence[str] | None,
    query: ast.Query,
    snippet: str | None,
) -> pa.Table:
    schema = output_schema(table.schema, columns)
    extra = [snippet] if snippet and snippet not in schema.names else []
    names = [*schema.names, *extra]
    by_split: dict[int, list[int]] = {}
    for hit in top:
        by_split.setdefault(hit.split, []).append(hit.row)
    places: dict[tuple[int, int], int] = {}
    for number, rows in by_split.items():
        rows.sort()
        places.update({(number, row): len(places) + i for i, row in enumerate(rows)})

    def read(number: int) -> list[pa.RecordBatch]:
        return _rows(table, splits[number], by_split[number], names)

    parts = [p for found in in_order(read, by_split, parallelism(table)) for p in found]
    wide = pa.schema([table.schema.field(n) for n in names])
    found = pa.Table.from_batches(parts, schema=wide)
    found = found.take(pa.array([places[(h.split, h.row)] for h in top], pa.int64()))
    result = found.select(schema.names)
    result = result.append_column(SCORE, pa.array([h.score for h in top], pa.float32()))
    if snippet:
        from indextables.table.snippets import snippets

        (stored,) = stored_columns(table.schema, [snippet])
        mapping = stored_mapping(table.mapping, table.schema)
        texts = snippets(query, stored, found.column(snippet), mapping)
        result = result.append_column(SNIPPET, pa.array(texts, pa.string()))
    return result


def _rows(table: Table, split: Any, rows: list[int], names: list[str]) -> list[pa.RecordBatch]:
    reader = SplitReader.open(table.store, split, config=table.config)
    return list(
        read_split(
            reader,
            TRUE,
            names,
            partition_values=split.partition_values,
            schema=table.schema,
            only=np.asarray(rows, np.uint32),
        )
    )
