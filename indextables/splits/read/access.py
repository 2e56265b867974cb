"""Access paths: from a predicate to the rows of one split that satisfy it.

1. What is the same in all rows (partition columns, columns added later) is decided first.
2. Tests of coded columns alone are looked up (``coded``). Otherwise the index says which rows can
   match (``predicates``), or a column index did (``row_hint``). If that is a large share of the
   split and the predicate needs no text, reading the filter columns is cheaper than listing rows:
   the rows that coded tests leave are scanned instead. A reader of many splits
   (``spare_index``) also scans a split of so few rows that opening its index costs more.
3. What the index left open is evaluated on the filter columns of those rows alone.
4. The other columns are read only for rows that survived.

The rows that come back satisfy the predicate exactly, in order. Splits of foreign writers are
always scanned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from indextables.errors import PlanningError
from indextables.expr import ast
from indextables.expr.evaluate import can_evaluate, evaluate
from indextables.expr.predicate import (
    TRUE,
    Predicate,
    TextMatch,
    leaves,
    referenced_columns,
)
from indextables.splits.lookup.coded import coded_mask, coded_rows, is_coded, split_coded
from indextables.splits.lookup.folding import fold
from indextables.splits.lookup.nodes import All, Both, Index, Node, Nothing, Spans, has_hash
from indextables.splits.lookup.search import FEW_ROWS
from indextables.splits.read.columns import Shaper, empty_batch
from indextables.splits.read.reader import Hits, SplitReader, as_predicate

Rows = NDArray[np.uint32]

SCAN_SHARE = 0.03
SCAN_ROWS = 4096
FEW_COLUMNS = 3
DENSE_SHARE = 0.3
FIRST_ROWS = 4096
FEW_CANDIDATES = 8


@dataclass(frozen=True, slots=True)
class AccessPlan:
    """How a split will be read: ``kind`` is ``column_index``, ``search`` or ``scan``."""

    kind: str
    detail: str
    exact: bool


@dataclass(frozen=True, slots=True)
class _Candidates:
    """Rows to look at (``None``: all, in order) and what to check on them."""

    rows: Rows | None
    residual: Predicate


class SplitScan:
    """One read of one split."""

    def __init__(
        self,
        reader: SplitReader,
        predicate: Predicate,
        *,
        schema: pa.Schema | None = None,
        partition_values: Mapping[str, str | None] | None = None,
        row_hint: NDArray[Any] | None = None,
        spare_index: bool = False,
    ) -> None:
        table = schema if schema is not None else reader.schema
        self.reader = reader
        self.rows = reader.foreign.typed(table) if reader.is_foreign else reader.rows
        self.shaper = Shaper(self.rows.schema, table, partition_values or {}, reader.path)
        self.predicate = fold(predicate, self.shaper)
        self._spare_index = spare_index
        self._hint = None if row_hint is None else np.asarray(row_hint, np.uint32)
        if not can_evaluate(self.predicate):
            raise PlanningError(f"the predicate cannot be evaluated here: {self.predicate!r}")

    # -- which rows -------------------------------------------------------------------------------

    def candidates(self, limit: int | None = None) -> _Candidates:
        predicate = self.predicate
        if self._hint is not None and (predicate == TRUE or len(self._hint) <= FEW_ROWS):
            return _Candidates(self._hint, predicate)
        if predicate == TRUE or self.reader.is_foreign:
            return _Candidates(self._hint, predicate)
        if is_coded(predicate, self.reader):
            return self._hinted(coded_rows(predicate, self.reader), TRUE)
        if self.spares_index:
            return _Candidates(self._hint, predicate)
        session = self.reader.session(predicate)
        found = session.find(predicate)
        if self._prefers_scan(found.node, session):
            return self._scanned(session)
        rows, complete = session.search.rows(found.node)
        return self._hinted(rows, found.residual if complete else predicate)

    def _scanned(self, session: Any) -> _Candidates:
        """The rows of the zones and codes that a predicate allows, to be filtered."""
        coded, others = split_coded(self.predicate, self.reader)
        node = session.find(others).node
        spans = session.search.rows(node)[0] if isinstance(node, Spans) else None
        if coded == TRUE:
            return _Candidates(self._hint, others) if spans is None else self._hinted(spans, others)
        mask = coded_mask(coded, self.reader)
        rows = np.flatnonzero(mask).astype(np.uint32) if spans is None else spans[mask[spans]]
        return self._hinted(rows, others)

    def _hinted(self, rows: Rows, residual: Predicate) -> _Candidates:
        if self._hint is not None:
            rows = np.intersect1d(rows, self._hint)
        return _Candidates(rows, residual)

    @property
    def spares_index(self) -> bool:
        """Is the index left closed, the filter columns being read faster than it is opened?"""
        if not self._spare_index or self.reader.num_rows > SCAN_ROWS:
            return False
        if self.reader.has_open_index:
            return False
        return not any(isinstance(leaf, TextMatch) for leaf in leaves(self.predicate))

    def _prefers_scan(self, node: Node, session: Any) -> bool:
        if isinstance(node, All):
            return True
        if not isinstance(node, Index) or any(
            isinstance(leaf, TextMatch) for leaf in leaves(self.predicate)
        ):
            return False
        return bool(session.search.count(node) > SCAN_SHARE * self.reader.num_rows)

    def matching(self) -> Iterator[Rows]:
        """Row numbers that satisfy the predicate, ascending, in pieces."""
        for rows, _ in self.pieces((), self.reader.config["read.batchRows"]):
            yield rows

    def pieces(
        self, columns: Sequence[str], batch_rows: int
    ) -> Iterator[tuple[Rows, pa.RecordBatch]]:
        """(row numbers, columns) of the rows that satisfy the predicate, in pieces."""
        yield from self._filtered(self.candidates(), columns, batch_rows)

    # -- filter columns, then the rest ------------------------------------------------------------

    def batches(
        self, columns: Sequence[str], limit: int | None, batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        found = self.candidates(limit)
        left = limit
        for rows, batch in self._filtered(found, columns, batch_rows, limit):
            if left is not None:
                rows, batch = rows[:left], batch.slice(0, left)
                left -= len(rows)
            if len(rows):
                yield batch
            if left is not None and left <= 0:
                return

    def _filtered(
        self,
        found: _Candidates,
        columns: Sequence[str],
        batch_rows: int,
        limit: int | None = None,
    ) -> Iterator[tuple[Rows, pa.RecordBatch]]:
        if found.residual == TRUE:
            yield from self._unfiltered(found.rows, columns, batch_rows, limit)
            return
        needed = [c for c in referenced_columns(found.residual) if self._is_known(c)]
        if self._reads_together(found, needed, columns):
            needed = self._with_columns(needed, columns)
        for rows, whole in self._pieces(found.rows, batch_rows, limit):
            filters = self._read(needed, rows, whole)
            truth = evaluate(found.residual, filters, mapping=self.reader.mapping)
            keep = pc.fill_null(truth, False)
            kept = np.flatnonzero(keep.to_numpy(zero_copy_only=False))
            if len(kept) == 0:
                continue
            yield rows[kept], self._complete(columns, filters, needed, rows, kept, whole)

    def _reads_together(
        self, found: _Candidates, needed: Sequence[str], columns: Sequence[str]
    ) -> bool:
        """Is all read at once: of a few rows everything, of a small split a few columns?"""
        if found.rows is not None and len(found.rows) <= FEW_CANDIDATES:
            return True
        return self.spares_index and len(set(columns) - set(needed)) <= FEW_COLUMNS

    def _with_columns(self, needed: list[str], columns: Sequence[str]) -> list[str]:
        """Both, each once: a second trip to the rows costs more than a few rows too many."""
        have = {self.shaper.field(c).name for c in needed}
        return needed + [c for c in columns if self.shaper.field(c).name not in have]

    def _is_known(self, column: str) -> bool:
        return column.lower() in {n.lower() for n in self.shaper.schema.names}

    def _unfiltered(
        self, rows: Rows | None, columns: Sequence[str], batch_rows: int, limit: int | None
    ) -> Iterator[tuple[Rows, pa.RecordBatch]]:
        if rows is not None and limit is not None:
            rows = rows[:limit]
        for part, whole in self._pieces(rows, batch_rows, limit):
            yield part, self._read(columns, part, whole)

    def _complete(
        self,
        columns: Sequence[str],
        filters: pa.RecordBatch,
        needed: Sequence[str],
        rows: Rows,
        kept: NDArray[np.int64],
        whole: bool,
    ) -> pa.RecordBatch:
        """The asked columns of the surviving rows, reusing those that were filtered by."""
        have = {self.shaper.field(c).name for c in needed}
        fields = [self.shaper.field(c) for c in columns]
        missing = [f.name for f in fields if f.name not in have]
        everything = len(kept) == len(rows)
        picked = filters if everything else filters.take(pa.array(kept))
        if not missing:
            rest = empty_batch(len(kept))
        elif everything or (whole and len(kept) > DENSE_SHARE * len(rows)):
            rest = self._read(missing, rows, whole)
            rest = rest if everything else rest.take(pa.array(kept))
        else:
            rest = self._read(missing, rows[kept], False)
        if not fields:
            return empty_batch(len(kept))
        arrays = [(picked if f.name in have else rest).column(f.name) for f in fields]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    def _pieces(
        self, rows: Rows | None, batch_rows: int, limit: int | None
    ) -> Iterator[tuple[Rows, bool]]:
        """(row numbers, whether they are neighbours), growing where a limit may end the read."""
        total = self.rows.num_rows if rows is None else len(rows)
        size = batch_rows if limit is None else min(batch_rows, max(FIRST_ROWS, 2 * limit))
        start = 0
        while start < total:
            stop = min(start + size, total)
            if rows is None:
                yield np.arange(start, stop, dtype=np.uint32), True
            else:
                part = rows[start:stop]
                together = int(part[-1]) - int(part[0]) + 1 == len(part) > 1
                yield part, together
            start, size = stop, min(2 * size, batch_rows)

    def _read(self, columns: Sequence[str], rows: Rows, whole: bool) -> pa.RecordBatch:
        """Columns of the table for these rows."""
        names = self.shaper.stored_names(columns)
        count = len(rows)
        if not names:
            return self.shaper.shape(None, columns, count)
        span = int(rows[-1]) - int(rows[0]) + 1 if count else 0
        if count > 1 and (whole or count > DENSE_SHARE * span):
            stored = self._span(names, int(rows[0]), span)
            if span > count:
                stored = stored.take(pa.array(rows - rows[0]))
        else:
            stored = self.rows.take(rows, names)
        return self.shaper.shape(stored, columns, count)

    def _span(self, names: list[str], first: int, count: int) -> pa.RecordBatch:
        parts = list(self.rows.scan(names, count, (first, first + count)))
        return parts[0] if len(parts) == 1 else _joined(parts)


def _joined(parts: list[pa.RecordBatch]) -> pa.RecordBatch:
    table = pa.Table.from_batches(parts).combine_chunks()
    return table.to_batches()[0]


# -- what others call -----------------------------------------------------------------------------


def read_split(
    reader: SplitReader,
    predicate: Predicate = TRUE,
    columns: Sequence[str] | None = None,
    *,
    limit: int | None = None,
    partition_values: Mapping[str, str | None] | None = None,
    schema: pa.Schema | None = None,
    batch_rows: int | None = None,
    row_hint: NDArray[Any] | None = None,
    spare_index: bool = False,
) -> Iterator[pa.RecordBatch]:
    """The rows of a split that satisfy ``predicate``, in order, as batches of table columns.

    ``schema`` is the table's; ``row_hint`` are row numbers that a column index found.
    """
    values = reader.ref.partition_values if partition_values is None else partition_values
    scan = SplitScan(
        reader,
        predicate,
        schema=schema,
        partition_values=values,
        row_hint=row_hint,
        spare_index=spare_index,
    )
    names = list(scan.shaper.schema.names if columns is None else columns)
    if limit is not None and limit <= 0:
        return
    yield from scan.batches(names, limit, batch_rows or reader.config["read.batchRows"])


def count_split(
    reader: SplitReader,
    predicate: Predicate = TRUE,
    *,
    partition_values: Mapping[str, str | None] | None = None,
    schema: pa.Schema | None = None,
    row_hint: NDArray[Any] | None = None,
    spare_index: bool = False,
) -> int:
    """How many rows of a split satisfy ``predicate``."""
    values = reader.ref.partition_values if partition_values is None else partition_values
    scan = SplitScan(
        reader,
        predicate,
        schema=schema,
        partition_values=values,
        row_hint=row_hint,
        spare_index=spare_index,
    )
    if scan.predicate == TRUE and row_hint is None:
        return reader.num_rows
    if row_hint is None and is_coded(scan.predicate, reader):
        return int(np.count_nonzero(coded_mask(scan.predicate, reader)))
    if row_hint is None and not reader.is_foreign and not scan.spares_index:
        session = reader.session(scan.predicate)
        found = session.find(scan.predicate)
        known = session.count(found.node, reader.num_rows) if found.residual == TRUE else None
        if known is not None:
            return known
    return sum(len(rows) for rows in scan.matching())


def count_rows(reader: SplitReader, predicate: Predicate) -> int:
    return count_split(reader, predicate, partition_values={})


def matching_rows(reader: SplitReader, predicate: Predicate, **options: Any) -> Rows:
    """The row numbers that satisfy ``predicate``, ascending."""
    parts = list(SplitScan(reader, predicate, **options).matching())
    return np.concatenate(parts) if parts else np.empty(0, np.uint32)


def scored_rows(reader: SplitReader, query: ast.Query, limit: int | None) -> Hits:
    """The best rows of a query, best first (ties by row number)."""
    if reader.is_foreign:
        rows = matching_rows(reader, as_predicate(query))[:limit]
        return Hits(rows, np.zeros(len(rows), np.float32))
    session = reader.session(as_predicate(query), scored=True)
    node = session.queries.compile(query)
    if isinstance(node, Index) and node.exact:
        wanted = reader.num_rows if limit is None else max(limit, 1)
        rows, scores = session.search.scored(node, wanted)
        return Hits(rows[:limit], scores[:limit])
    rows = matching_rows(reader, as_predicate(query))
    scores = np.zeros(len(rows), np.float32)
    ranking = _ranking(node)
    if ranking is not None:
        ranked, found = session.search.scored(ranking, reader.num_rows)
        by_row = np.zeros(reader.num_rows, np.float32)
        by_row[ranked] = found
        scores = by_row[rows]
    order = np.argsort(-scores, kind="stable")[:limit]
    return Hits(rows[order], scores[order])


def _ranking(node: Node) -> Index | None:
    """The part of a node that can say how good its rows are."""
    parts = node.children if isinstance(node, Both) else (node,)
    return next((part for part in parts if isinstance(part, Index)), None)


def describe_access(
    reader: SplitReader, predicate: Predicate, *, row_hint: bool = False
) -> AccessPlan:
    """How a predicate would be answered."""
    if row_hint:
        return AccessPlan("column_index", "rows of a column index", False)
    if reader.is_foreign:
        return AccessPlan("scan", "written by another program: rows are scanned", True)
    if predicate == TRUE:
        return AccessPlan("scan", "all rows", True)
    if is_coded(predicate, reader):
        return AccessPlan("search", "codes", True)
    found = reader.session().find(predicate)
    if isinstance(found.node, Nothing):
        return AccessPlan("search", "no row can match", True)
    if isinstance(found.node, All):
        return AccessPlan("scan", f"filter {found.residual!r}", found.residual == TRUE)
    how = "hash table" if has_hash(found.node) else "index"
    how = "bounds of zones" if isinstance(found.node, Spans) else how
    rest = "" if found.residual == TRUE else f", then filter {found.residual!r}"
    return AccessPlan("search", f"{how}{rest}", found.residual == TRUE)
