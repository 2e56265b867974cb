"""Access paths: from a predicate to the rows of one split that satisfy it.

1. What is the same in all rows (partition columns, columns added later) is decided first.
2. The rows that can match are found in the cheapest way (``choose``).
3. What that left open is evaluated on the filter columns of those rows alone.
4. The other columns are read only for rows that survived.

Deleted rows are left out here and nowhere else, before anything is read for them: every row, count,
aggregate and score of a split comes from a ``SplitScan``. What a member of the split says about all
its rows (a count, an end, a summary) is used only where no row is gone, or where those that are
gone can be subtracted.

The rows that come back satisfy the predicate exactly, in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from indextables.buffers import flags_of, number_array
from indextables.errors import PlanningError
from indextables.expr import ast
from indextables.expr.evaluate import can_evaluate, evaluate
from indextables.expr.predicate import TRUE, Predicate, referenced_columns
from indextables.lazy import lazily
from indextables.naming import stored_columns, stored_schema, user_batch
from indextables.native._rows_blocks import rows_left
from indextables.splits.lookup.colindex.asking import ColumnIndexes
from indextables.splits.lookup.folding import fold
from indextables.splits.lookup.nodes import Both, Index, Node
from indextables.splits.read.choose import Candidates, Chooser, Rows
from indextables.splits.read.columns import Shaper, empty_batch
from indextables.splits.read.narrowing import narrowed_lists
from indextables.splits.read.reader import Hits, SplitReader, as_predicate
from indextables.splits.read.summary import first_rows

FEW_COLUMNS = 3
DENSE_SHARE = 0.3
FIRST_ROWS = 4096
FEW_CANDIDATES = 8
NO_ROWS = np.empty(0, np.uint32)


class Part:
    """Rows that are read at once: any, or neighbours without those that are deleted."""

    __slots__ = ("_rows", "count", "first", "gone", "stop", "together")

    def __init__(self, rows: Rows) -> None:
        self._rows: Rows | None = rows
        self.count = len(rows)
        self.first, self.stop = (int(rows[0]), int(rows[-1]) + 1) if self.count else (0, 0)
        self.together = self.stop - self.first == self.count > 1
        self.gone: Rows = rows[:0]

    @classmethod
    def between(cls, first: int, stop: int, gone: Rows) -> Part:
        """The rows from ``first`` to ``stop`` without ``gone``, which lie between them."""
        made = cls(gone[:0])
        made._rows, made.together, made.gone = None, True, gone
        made.first, made.stop, made.count = first, stop, stop - first - len(gone)
        return made

    @property
    def rows(self) -> Rows:
        """The row numbers, ascending; most readers want none."""
        if self._rows is None:
            self._rows = rows_left(self.first, self.stop, self.gone)
        return self._rows

    def at(self, places: NDArray[np.int64]) -> Part:
        """Some of the rows."""
        return Part(self.rows[places])


Piece = tuple[Part, NDArray[np.int64] | None, pa.RecordBatch]
"""A part, the places in it that were kept (``None``: all), and what was read of those."""


class SplitScan:
    """One read of one split.

    The schema and the columns that are asked for have the user's names, and so have the rows that
    come back. The predicate has the names of files, and so has everything in between.
    """

    def __init__(
        self,
        reader: SplitReader,
        predicate: Predicate,
        *,
        schema: pa.Schema | None = None,
        partition_values: Mapping[str, str | None] | None = None,
        only: NDArray[Any] | None = None,
        indexes: ColumnIndexes | None = None,
        spare_index: bool = False,
        near: Rows | None = None,
    ) -> None:
        """``near`` are neighbouring rows outside of which none matches; they are read at once."""
        self.schema = schema if schema is not None else reader.schema
        table = stored_schema(self.schema)
        values = reader.ref.partition_values if partition_values is None else partition_values
        self.reader = reader
        self._partition_values = values
        stored = reader.foreign.typed(table).schema if reader.is_foreign else reader.schema
        self.shaper = Shaper(stored, table, values, reader.path)
        folded = narrowed_lists(fold(predicate, self.shaper), reader)
        self.predicate = predicate if folded is predicate or folded == predicate else folded
        self.only = None if only is None else np.asarray(only, np.uint32)
        self._near = near is not None and only is None
        if self._near:
            self.only = near
        self.deleted: Rows | None = reader.deleted
        self.indexes = indexes
        self.chooser = Chooser(reader, self.predicate, indexes, self.only, spare_index)
        if not can_evaluate(self.predicate):
            raise PlanningError(f"the predicate cannot be evaluated here: {self.predicate!r}")

    @lazily
    def rows(self) -> Any:
        """The rows, which what members can tell does not need."""
        reader = self.reader
        return reader.foreign.typed(self.shaper.schema) if reader.is_foreign else reader.rows

    def narrowed(
        self, predicate: Predicate = TRUE, only: NDArray[Any] | None = None, *, stored: bool = False
    ) -> SplitScan:
        """The same split under another predicate; ``stored``: columns by their names in files."""
        schema, values = self.shaper.schema if stored else self.schema, self._partition_values
        return SplitScan(self.reader, predicate, schema=schema, partition_values=values, only=only)

    def on(self, reader: SplitReader) -> SplitScan:
        """The same question to another reader of the same rows."""
        schema, values = self.schema, self._partition_values
        return SplitScan(
            reader, self.predicate, schema=schema, partition_values=values, only=self.only
        )

    def of_deleted_rows(self) -> SplitScan:
        """The deleted rows, to take what they hold away from what the split says of all."""
        whole = self.reader.narrowed(self.reader.ref.physical())
        schema, values = self.shaper.schema, self._partition_values
        return SplitScan(whole, TRUE, schema=schema, partition_values=values, only=self.deleted)

    @property
    def deleted_key(self) -> str:
        """Different for each set of deleted rows."""
        vector = self.reader.ref.vector
        return "" if vector is None else vector.unique_id

    # -- which rows -------------------------------------------------------------------------------

    @property
    def is_whole(self) -> bool:
        """Is every row of the split asked for, none of them being deleted?"""
        return self.is_unfiltered and self.deleted is None

    @property
    def is_unfiltered(self) -> bool:
        """Is every row asked for that is not deleted?"""
        return self.predicate == TRUE and self.only is None

    def count(self) -> int:
        """How many rows satisfy the predicate."""
        known = self.chooser.count()
        if known is None or not self.can_subtract:
            return sum(map(len, self.matching()))
        return known if self.deleted is None else known - self._deleted_matches(self.deleted)

    @property
    def can_subtract(self) -> bool:
        """Can deleted rows still be read, to take them away from what the split says of all?

        A file of another table is not to be read once that table has given it up.
        """
        return self.deleted is None or self.reader.ref.origin is None

    def _deleted_matches(self, deleted: Rows) -> int:
        """How many of the deleted rows satisfied the predicate."""
        if self.predicate == TRUE:
            return len(deleted)
        found = self._checked(deleted, self.predicate, (), self.reader.config["read.batchRows"])
        return sum(batch.num_rows for _, _, batch in found)

    def _candidates(self) -> Candidates:
        """The rows that can match; ``None`` still means all, of which deleted ones are left out
        as they are read."""
        found = self.chooser.candidates()
        if self.deleted is None or found.rows is None:
            return found
        return Candidates(without_rows(found.rows, self.deleted), found.residual)

    def keep_first(self, column: str, count: int, *, descending: bool) -> None:
        """Read no more than the first rows in the order of a column, where an index names them."""
        (name,) = self._stored([column])
        if self.is_unfiltered and self.indexes and self.shaper.stored_name(name):
            dtype = self.shaper.field(name).type
            most = count if self.deleted is None else count + len(self.deleted)
            self.only = first_rows(self.indexes, name, dtype, most, descending)
            self.chooser = Chooser(self.reader, TRUE, only=self.only)

    def in_rows(self, column: str) -> str | None:
        """The name of a column in the rows of this split; ``None`` if they do not have it."""
        return self.shaper.stored_name(*self._stored([column]))

    def _stored(self, columns: Sequence[str]) -> list[str]:
        return stored_columns(self.schema, columns)

    def _named(self, columns: Sequence[str], batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns under the user's names."""
        if self.shaper.schema is self.schema:
            return batch
        return user_batch(batch, [self.schema.field(c) for c in columns])

    def matching(self) -> Iterator[Rows]:
        """Row numbers that satisfy the predicate, ascending, in pieces."""
        for rows, _ in self.pieces((), self.reader.config["read.batchRows"]):
            yield rows

    def matching_rows(self) -> Rows:
        """Row numbers that satisfy the predicate, ascending."""
        return np.concatenate([np.empty(0, np.uint32), *self.matching()])

    def pieces(
        self, columns: Sequence[str], batch_rows: int
    ) -> Iterator[tuple[Rows, pa.RecordBatch]]:
        """(row numbers, columns) of the rows that satisfy the predicate, in pieces."""
        stored = self._stored(columns)
        for part, kept, batch in self._filtered(self._candidates(), stored, batch_rows):
            rows = part.rows if kept is None else part.rows[kept]
            yield rows, self._named(columns, batch)

    # -- filter columns, then the rest ------------------------------------------------------------

    def batches(
        self, columns: Sequence[str], limit: int | None, batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        if limit is not None and limit <= 0:
            return
        found = self._candidates()
        left = limit
        for _, _, batch in self._filtered(found, self._stored(columns), batch_rows, limit):
            if left is not None:
                batch = batch.slice(0, left)
                left -= batch.num_rows
            if batch.num_rows:
                yield self._named(columns, batch)
            if left is not None and left <= 0:
                return

    def _filtered(
        self,
        found: Candidates,
        columns: Sequence[str],
        batch_rows: int,
        limit: int | None = None,
    ) -> Iterator[Piece]:
        if found.residual == TRUE:
            yield from self._unfiltered(found.rows, columns, batch_rows, limit)
            return
        yield from self._checked(found.rows, found.residual, columns, batch_rows, limit)

    def _checked(
        self,
        candidates: Rows | None,
        residual: Predicate,
        columns: Sequence[str],
        batch_rows: int,
        limit: int | None = None,
    ) -> Iterator[Piece]:
        """Those of some rows (``None``: all that are not deleted) that satisfy a predicate."""
        needed = [c for c in referenced_columns(residual) if self._is_known(c)]
        if self._reads_together(candidates, needed, columns):
            needed = self._with_columns(needed, columns)
        for part in self._parts(candidates, batch_rows, limit):
            filters = self._read(needed, part)
            truth = evaluate(residual, filters, mapping=self.reader.mapping)
            kept = np.flatnonzero(flags_of(truth))
            if len(kept) == 0:
                continue
            yield part, kept, self._complete(columns, filters, needed, part, kept)

    def _reads_together(
        self, candidates: Rows | None, needed: Sequence[str], columns: Sequence[str]
    ) -> bool:
        """Is all read at once: of a few rows everything, of a small split a few columns?"""
        if self._near or (candidates is not None and len(candidates) <= FEW_CANDIDATES):
            return True
        far = candidates is not None and not self.reader.source.is_mapped
        return (far or self.chooser.spares_index) and len(set(columns) - set(needed)) <= FEW_COLUMNS

    def _with_columns(self, needed: list[str], columns: Sequence[str]) -> list[str]:
        """Both, each once: a second trip to the rows costs more than a few rows too many."""
        have = {self.shaper.field(c).name for c in needed}
        return needed + [c for c in columns if self.shaper.field(c).name not in have]

    def _is_known(self, column: str) -> bool:
        return column.lower() in {n.lower() for n in self.shaper.schema.names}

    def _unfiltered(
        self, rows: Rows | None, columns: Sequence[str], batch_rows: int, limit: int | None
    ) -> Iterator[Piece]:
        if rows is not None and limit is not None:
            rows = rows[:limit]
        for part in self._parts(rows, batch_rows, limit):
            yield part, None, self._read(columns, part)

    def _complete(
        self,
        columns: Sequence[str],
        filters: pa.RecordBatch,
        needed: Sequence[str],
        part: Part,
        kept: NDArray[np.int64],
    ) -> pa.RecordBatch:
        """The asked columns of the surviving rows, reusing those that were filtered by."""
        have = {self.shaper.field(c).name for c in needed}
        fields = [self.shaper.field(c) for c in columns]
        missing = [f.name for f in fields if f.name not in have]
        everything = len(kept) == part.count
        picked = filters if everything else filters.take(number_array(kept))
        if not missing:
            rest = empty_batch(len(kept))
        elif everything or (part.together and len(kept) > DENSE_SHARE * part.count):
            rest = self._read(missing, part)
            rest = rest if everything else rest.take(number_array(kept))
        else:
            rest = self._read(missing, part.at(kept))
        if not fields:
            return empty_batch(len(kept))
        arrays = [(picked if f.name in have else rest).column(f.name) for f in fields]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    def _parts(self, rows: Rows | None, batch_rows: int, limit: int | None) -> Iterator[Part]:
        """Rows to read at once, growing where a limit may end the read."""
        total = self.rows.num_rows if rows is None else len(rows)
        size = batch_rows if limit is None else min(batch_rows, max(FIRST_ROWS, 2 * limit))
        start = 0
        while start < total:
            stop = min(start + size, total)
            if rows is None:
                yield from self._neighbours(start, stop)
            else:
                yield Part(rows[start:stop])
            start, size = stop, min(2 * size, batch_rows)

    def _neighbours(self, start: int, stop: int) -> Iterator[Part]:
        """The rows from ``start`` to ``stop`` that are not deleted, if there are any."""
        gone = NO_ROWS if self.deleted is None else _between(self.deleted, start, stop)
        if len(gone) < stop - start:
            yield Part.between(start, stop, gone)

    def _read(self, columns: Sequence[str], part: Part) -> pa.RecordBatch:
        """Columns of the table for these rows."""
        names = self.shaper.stored_names(columns)
        first, span = part.first, part.stop - part.first
        if not names:
            return self.shaper.shape(None, columns, part.count)
        if part.together:
            stored = self._span(names, first, span, part.gone)
        elif part.count > 1 and part.count > DENSE_SHARE * span:
            places = number_array(part.rows - np.uint32(first))
            stored = self._span(names, first, span, NO_ROWS).take(places)
        else:
            stored = self.rows.take(part.rows, names)
        return self.shaper.shape(stored, columns, part.count)

    def _span(self, names: list[str], first: int, count: int, gone: Rows) -> pa.RecordBatch:
        """Neighbouring rows, without some."""
        parts = list(self.rows.scan(names, count, (first, first + count), gone))
        return parts[0] if len(parts) == 1 else pa.concat_batches(parts)


def _between(rows: Rows, first: int, stop: int) -> Rows:
    """Those of ascending rows that are not less than ``first`` and less than ``stop``."""
    low, high = np.searchsorted(rows, np.array([first, stop], np.uint32))
    return rows[low:high]


def without_rows(rows: Rows, deleted: Rows) -> Rows:
    """Rows (in any order) that are not among the deleted, which ascend."""
    places = np.minimum(np.searchsorted(deleted, rows), len(deleted) - 1)
    found: Rows = rows[deleted[places] != rows]
    return found


# -- what others call -----------------------------------------------------------------------------


def read_split(
    reader: SplitReader,
    predicate: Predicate = TRUE,
    columns: Sequence[str] | None = None,
    *,
    limit: int | None = None,
    batch_rows: int | None = None,
    **options: Any,
) -> Iterator[pa.RecordBatch]:
    """The rows of a split that satisfy ``predicate``, in order, as batches of table columns.

    ``options`` are those of ``SplitScan``; ``only`` limits the read to some rows.
    """
    scan = SplitScan(reader, predicate, **options)
    names = list(scan.schema.names if columns is None else columns)
    yield from scan.batches(names, limit, batch_rows or reader.config["read.batchRows"])


def count_split(reader: SplitReader, predicate: Predicate = TRUE, **options: Any) -> int:
    """How many rows of a split satisfy ``predicate``."""
    return SplitScan(reader, predicate, **options).count()


def matching_rows(reader: SplitReader, predicate: Predicate, **options: Any) -> Rows:
    """The row numbers that satisfy ``predicate``, ascending."""
    return SplitScan(reader, predicate, **options).matching_rows()


def scored_rows(reader: SplitReader, query: ast.Query, limit: int | None) -> Hits:
    """The best rows of a query, best first (ties by row number)."""
    if reader.is_foreign:
        rows = matching_rows(reader, as_predicate(query))[:limit]
        return Hits(rows, np.zeros(len(rows), np.float32))
    session = reader.session(as_predicate(query), scored=True)
    node = session.queries.compile(query)
    if isinstance(node, Index) and node.exact:
        gone = reader.deleted
        wanted = reader.num_rows if limit is None else max(limit, 1)
        wanted = wanted if gone is None else min(wanted + len(gone), reader.num_rows)
        rows, scores = session.search.scored(node, wanted)
        if gone is not None:
            there = ~np.isin(rows, gone)
            rows, scores = rows[there], scores[there]
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
