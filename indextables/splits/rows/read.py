"""Reading rows: by number or in order, asking for all ranges of a call at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from indextables.buffers import number_array
from indextables.errors import CorruptFileError, IndexTablesError
from indextables.native._rows_blocks import Spans
from indextables.splits.rows.decode import Fetched, TooMuchText, build
from indextables.splits.rows.fetch import NO_ROWS, Column, Fetcher, ReadRanges
from indextables.splits.rows.layout import parse_directory, stored_streams
from indextables.splits.rows.project import Projected, project

Array = np.ndarray[Any, Any]


class RowsReader:
    """Reads rows by number or in order; safe to share between threads."""

    def __init__(
        self,
        read_ranges: ReadRanges,
        directory: bytes | memoryview,
        payload_length: int,
        *,
        path: str | None = None,
        payload: memoryview | bytes | None = None,
    ) -> None:
        """``read_ranges`` gets ``(start, end)`` pairs relative to the start of the payload.

        ``payload`` is the whole payload where it is in memory or mapped; then no ranges are read.
        """
        self._path = path
        self._directory = d = parse_directory(directory, path)
        if d.payload_length != payload_length or (
            payload is not None and len(payload) != payload_length
        ):
            raise CorruptFileError(
                f"rows are {payload_length} bytes long, their directory says {d.payload_length}",
                path=path,
            )
        self._roots = d.roots
        self._blocks = d.blocks_per_chunk
        self._chunk_start = np.zeros(len(d.chunk_rows) + 1, np.int64)
        np.cumsum(d.chunk_rows, out=self._chunk_start[1:])
        self._plans: dict[tuple[str, ...] | None, tuple[list[Projected], pa.Schema]] = {}
        self._columns: dict[int, Column] = {}
        streams, totals = stored_streams(self._roots), self._blocks.sum(axis=1)
        self._fetcher = Fetcher(read_ranges, d, streams, totals, path=path, payload=payload)

    @property
    def schema(self) -> pa.Schema:
        return self._directory.schema

    @property
    def num_rows(self) -> int:
        return int(self._directory.num_rows)

    @property
    def columns(self) -> list[str]:
        return list(self._directory.schema.names)

    def take(self, rows: Any, columns: Sequence[str] | None = None) -> pa.RecordBatch:
        """The rows with these numbers, in the order given."""
        wanted = self._row_numbers(rows)
        order = None
        if len(wanted) > 1 and bool(np.any(wanted[1:] < wanted[:-1])):
            order = np.argsort(wanted, kind="stable")
            wanted = wanted[order]
        try:
            batch = self._read(columns, len(wanted), lambda c: c.locate(wanted))
        except TooMuchText as error:
            raise IndexTablesError(error.message, path=self._path, hint=error.hint) from error
        if order is None:
            return batch
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        return batch.take(number_array(back))

    def scan(
        self,
        columns: Sequence[str] | None = None,
        batch_rows: int = 65_536,
        row_range: tuple[int, int] | None = None,
        without: Array = NO_ROWS,
    ) -> Iterator[pa.RecordBatch]:
        """The rows in order, in batches made of at most ``batch_rows`` neighbours.

        ``without`` are rows that are left out, ascending: they are skipped as blocks are decoded,
        which costs next to nothing, and a block in which no row is left is not even read.
        """
        first, last = (0, self.num_rows) if row_range is None else row_range
        if not 0 <= first <= last <= self.num_rows:
            raise IndexTablesError(
                f"row range [{first}, {last}) is outside the {self.num_rows} rows", path=self._path
            )
        if batch_rows < 1:
            raise IndexTablesError(f"batch_rows must be positive, not {batch_rows}")
        self._plan(columns)
        return self._batches(columns, batch_rows, first, last, without)

    def _batches(
        self, columns: Sequence[str] | None, batch_rows: int, first: int, last: int, without: Array
    ) -> Iterator[pa.RecordBatch]:
        at = first
        while at < last:
            chunk = int(np.searchsorted(self._chunk_start, at, side="right")) - 1
            stop = min(at + batch_rows, last, int(self._chunk_start[chunk + 1]))
            yield from self._range(columns, at, stop, without)
            at = stop

    def _range(
        self, columns: Sequence[str] | None, start: int, stop: int, without: Array
    ) -> Iterator[pa.RecordBatch]:
        """One batch of neighbouring rows, or several where its text would not fit one array."""
        gone = without
        if len(without):
            gone = without[slice(*np.searchsorted(without, np.array([start, stop], np.uint32)))]
        left = stop - start - len(gone)
        try:
            yield self._read(columns, left, lambda c: c.between(start, stop, gone))
        except TooMuchText:
            if stop - start == 1:
                raise
            middle = (start + stop) // 2
            yield from self._range(columns, start, middle, gone)
            yield from self._range(columns, middle, stop, gone)

    def _row_numbers(self, rows: Any) -> Array:
        numbers = np.asarray(rows)
        if numbers.size == 0:
            return np.zeros(0, np.uint32)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
            raise IndexTablesError("row numbers must be a one-dimensional array of integers")
        if int(numbers.min()) < 0 or int(numbers.max()) >= self.num_rows:
            raise IndexTablesError(
                f"row numbers {numbers.min()} to {numbers.max()} do not all lie in the "
                f"{self.num_rows} rows",
                path=self._path,
            )
        return np.ascontiguousarray(numbers, np.uint32)

    def _plan(self, columns: Sequence[str] | None) -> tuple[list[Projected], pa.Schema]:
        key = None if columns is None else tuple(columns)
        if key not in self._plans:
            self._plans[key] = project(self._directory.schema, self._roots, key, self._path)
        return self._plans[key]

    def _column(self, index: int) -> Column:
        if index not in self._columns:
            self._columns[index] = Column(
                self._directory, index, self._chunk_start, self._blocks[index]
            )
        return self._columns[index]

    def _read(
        self, columns: Sequence[str] | None, rows: int, where: Callable[[Column], Any]
    ) -> pa.RecordBatch:
        nodes, schema = self._plan(columns)
        if not nodes:
            return _only_rows(rows)
        located: dict[bytes, tuple[Array, Spans]] = {}
        needs = []
        for node in nodes:
            column = self._column(node.stream.column)
            if column.shape not in located:
                located[column.shape] = where(column)
            blocks = located[column.shape][0]
            needs += [(s, column, blocks) for s in node.walk() if s.index >= 0]
        fetched = self._fetcher.fetch(needs)
        arrays = [
            self._array(n, fetched, located[self._column(n.stream.column).shape][1]) for n in nodes
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _array(self, node: Projected, fetched: dict[int, Fetched], spans: Spans) -> pa.Array:
        try:
            return build(node, fetched, spans)
        except CorruptFileError as error:
            raise CorruptFileError(
                f"column '{node.stream.name}': {error.reason}", offset=error.offset, path=self._path
            ) from error


def _only_rows(rows: int) -> pa.RecordBatch:
    """A batch of no columns that still knows how many rows it has."""
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), rows, [None]))
