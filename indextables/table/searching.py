"""Top-k search over all splits: best first, scored as one index over all live rows would.

The statistics of the whole table come first (``table.statistics``). They also bound what a split
can reach: the sum of the weights of the words it holds. Splits are asked in the order of these
bounds, a few at a time, each for its best ``limit`` rows; once the worst of the best rows so far is
better than the bound of the next split, neither it nor any later one is opened. Then the rows
themselves are fetched, nothing else. Ties are broken by split and row, so the same question gives
the same answer.

``statistics="local"`` scores each split by its own statistics alone and asks every split: cheaper
where a table has many splits and no cross-reference, but scores of different splits do not compare.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import pyarrow as pa

from indextables.config import checked_count
from indextables.errors import PlanningError, UnknownColumnError, placed
from indextables.expr import ast
from indextables.expr.ast import query_fields
from indextables.expr.elastic import parse_elastic
from indextables.expr.predicate import TRUE, TextMatch, conjunction
from indextables.expr.querystring import parse_query, quoted
from indextables.expr.similarity import Statistics
from indextables.naming import stored_columns, stored_mapping
from indextables.planner import Planner
from indextables.planner.tasks import SplitTask
from indextables.splits.read.access import SplitScan, read_split, scored_rows
from indextables.splits.read.ranking import Ranker
from indextables.splits.read.reader import Hits, SplitReader
from indextables.table.execute import SCORE, in_order, open_scan, output_schema, parallelism
from indextables.table.paging import Cursor, cursor_of, marked, search_id
from indextables.table.statistics import gather, highest

if TYPE_CHECKING:
    from indextables.table.table import Table

SNIPPET = "_snippet"
STATISTICS = ("global", "local")


@dataclass(frozen=True, slots=True)
class Request:
    """One search."""

    query: str | Mapping[str, Any] | ast.Query
    columns: Sequence[str] | None = None
    limit: int = 10
    fields: Sequence[str] | None = None
    where: Any = None
    snippet: str | None = None
    statistics: str = "global"
    offset: int = 0
    after: pa.Table | None = None
    literal: bool = False


@dataclass(frozen=True, slots=True)
class _Hit:
    score: float
    split: int
    row: int


def search(table: Table, request: Request) -> pa.Table:
    """The best rows, best first."""
    limit = checked_count(request.limit, "the limit of a search", least=1)
    if request.statistics not in STATISTICS:
        raise PlanningError(
            f"statistics='{request.statistics}' is not known", hint=f"Use one of {STATISTICS}"
        )
    planner = Planner(table, xref_router=table.xref_router)
    query, fields = _parsed(table, request)
    where = planner.bind(request.where)
    text = _as_condition(table, request, query, fields)
    plan = planner.plan(conjunction([text, where]), columns=request.columns)
    plan.check_decidable()
    table.last_plan = plan
    found_in = [(task, split) for task in plan.tasks for split in task.splits]
    tasks = [
        replace(task, predicate=where, splits=(split,), row_blocks={}) for task, split in found_in
    ]
    splits = [split for _, split in found_in]
    this = search_id(request.query, request.fields, where, request.statistics, request.literal)
    skipped = _skipped(table, request, this)
    search = _Search(table, tasks, query, limit + skipped)
    with placed(table.path):
        top = search.local() if request.statistics == "local" else search.ranked()
        page = _fetch(table, splits, top[skipped:], plan.columns, query, request.snippet)
    return marked(page, Cursor(table.version, this, skipped + page.num_rows))


def _skipped(table: Table, request: Request, search: str) -> int:
    """How many of the best rows come before the page."""
    offset = checked_count(request.offset, "the offset of a search")
    if request.after is None:
        return offset
    if offset:
        raise PlanningError("offset and search_after are two ways to say the same: use one")
    return cursor_of(request.after).follows(table.version, search)


def _parsed(table: Table, request: Request) -> tuple[ast.Query, list[str]]:
    fields = _default_fields(table, request.fields)
    mapping = stored_mapping(table.mapping, table.schema)
    known: dict[str, Any] = {"mapping": mapping, "schema": table.schema}
    if isinstance(request.query, str):
        asked = quoted(request.query) if request.literal else request.query
        return parse_query(asked, default_fields=fields, **known), fields
    if isinstance(request.query, Mapping):
        return parse_elastic(request.query, default_fields=fields, **known), fields
    if isinstance(request.query, get_args(ast.Query)):
        return request.query, fields
    raise PlanningError(
        f"a search cannot be a {type(request.query).__name__}",
        hint="Give a search string, or a query of Elasticsearch as a dict",
    )


def search_predicate(table: Table, query: str | Mapping[str, Any]) -> TextMatch:
    """The condition that a search asks of rows, to be counted or joined with others."""
    request = Request(query)
    return _as_condition(table, request, *_parsed(table, request))


def _as_condition(table: Table, request: Request, query: ast.Query, fields: list[str]) -> TextMatch:
    asked = query_fields(query) or stored_columns(table.schema, fields)
    return TextMatch(query, tuple(asked), str(request.query), "indexquery")


class _Search:
    """One query over the splits of a plan."""

    def __init__(self, table: Table, tasks: list[SplitTask], query: ast.Query, limit: int) -> None:
        self._table = table
        self._tasks = tasks
        self._query = query
        self._limit = limit
        self._at_once = parallelism(table)

    def local(self) -> list[_Hit]:
        """The best rows by the statistics of each split."""
        found = in_order(self._best_locally, range(len(self._tasks)), self._at_once)
        return self._top([hit for hits in found for hit in hits])

    def ranked(self) -> list[_Hit]:
        """The best rows by the statistics of the table."""
        if not self._tasks:
            return []
        gathered = gather(self._table, self._query)
        bounds = [highest(self._query, gathered, t.splits[0].path) for t in self._tasks]
        order = sorted(range(len(bounds)), key=lambda number: -bounds[number])
        top: list[_Hit] = []
        for start in range(0, len(order), self._at_once):
            group = order[start : start + self._at_once]
            if len(top) == self._limit:
                group = [n for n in group if bounds[n] >= top[-1].score]
            if not group:
                break

            def best(number: int) -> list[_Hit]:
                return self._best(number, gathered.statistics)

            found = in_order(best, group, self._at_once)
            top = self._top([*top, *(hit for hits in found for hit in hits)])
        return top

    def _top(self, found: list[_Hit]) -> list[_Hit]:
        return heapq.nsmallest(self._limit, found, key=lambda h: (-h.score, h.split, h.row))

    def _open(self, number: int) -> SplitScan:
        task, table = self._tasks[number], self._table
        return open_scan(table.store, task, task.splits[0], table.schema, table.config)

    def _best(self, number: int, statistics: Statistics) -> list[_Hit]:
        scan = self._open(number)
        ranker = Ranker(scan.narrowed(stored=True), statistics)
        hits = ranker.best(self._query, self._limit if scan.is_unfiltered else None)
        return self._kept(scan, number, hits)

    def _best_locally(self, number: int) -> list[_Hit]:
        scan = self._open(number)
        hits = scored_rows(scan.reader, self._query, self._limit if scan.is_unfiltered else None)
        return self._kept(scan, number, hits)

    def _kept(self, scan: SplitScan, number: int, hits: Hits) -> list[_Hit]:
        """The hits that the filter keeps too."""
        rows, scores = hits.rows, hits.scores
        if scores is None:
            scores = np.zeros(len(rows), np.float32)
        if not scan.is_unfiltered and len(rows):
            keep = np.isin(rows, scan.matching_rows())
            rows, scores = rows[keep][: self._limit], scores[keep][: self._limit]
        return [_Hit(float(s), number, int(r)) for r, s in zip(rows, scores, strict=True)]


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
