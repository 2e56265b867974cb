"""The rows of a split that are in files of the source, by the split's own row numbers.

The files of a split stand one after another: row 0 is the first row of the first file. A question
for some rows is cut up by file, the files are asked side by side, and the parts are put together in
the order that was asked for. A file that the source has given up is never opened: its rows are
gone, and what stands in their place, NULL, is left out by the caller, who knows which rows are
deleted.

Columns have the source's types of now, also in a split that was written when they were narrower.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from indextables.buffers import flag_array, number_array
from indextables.fitting import fitted
from indextables.mapping import DocMapping
from indextables.sources.base import SourceFile
from indextables.splits.read.columns import empty_batch
from indextables.storage import pool

AT_ONCE = 8
Opener = Callable[[SourceFile], Any]
"""Rows of one file: ``scan(columns, batch_rows, row_range)`` and ``take(rows, columns)``."""


class SourceRows:
    """Rows of several files; a file that is ``None`` is gone and has NULLs only."""

    def __init__(
        self,
        schema: pa.Schema,
        files: Sequence[SourceFile | None],
        counts: Sequence[int],
        open_file: Opener,
        mapping: DocMapping | None = None,
    ) -> None:
        self.schema = schema
        self._types = {f.name.lower(): f for f in schema}
        self._files = list(files)
        self._starts = np.concatenate([[0], np.cumsum(np.asarray(counts, np.int64))])
        self._open_file = open_file
        self._opened: dict[int, Any] = {}
        self.mapping = mapping or DocMapping(())

    @property
    def num_rows(self) -> int:
        return int(self._starts[-1])

    def typed(self, schema: pa.Schema) -> SourceRows:
        """The same rows in the types of a table, of the columns that it has in common."""
        common = pa.schema([f for f in schema if f.name.lower() in self._types])
        counts = np.diff(self._starts).tolist()
        return SourceRows(common, self._files, counts, self._open_file, self.mapping)

    # -- rows -------------------------------------------------------------------------------------

    def take(self, rows: Any, columns: Sequence[str] | None = None) -> pa.RecordBatch:
        """Some rows, in the order they are asked for."""
        fields = self._fields(columns)
        wanted = np.asarray(rows, np.int64)
        if not fields:
            return empty_batch(len(wanted))
        order = np.argsort(wanted, kind="stable")
        parts = list(self._by_file(wanted[order]))
        found = pool.in_order(lambda part: self._taken(*part, fields), parts, AT_ONCE)
        batch = _joined(list(found), fields)
        if len(wanted) < 2 or bool((order[1:] > order[:-1]).all()):
            return batch
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        return batch.take(number_array(back))

    def scan(
        self,
        columns: Sequence[str] | None = None,
        batch_rows: int = 65_536,
        row_range: tuple[int, int] | None = None,
        without: Any = None,
    ) -> Iterator[pa.RecordBatch]:
        """Neighbouring rows, in batches; ``without`` are rows that are left out, ascending."""
        fields = self._fields(columns)
        first, last = row_range or (0, self.num_rows)
        gone = np.empty(0, np.int64) if without is None else np.asarray(without, np.int64)
        if not fields:
            yield empty_batch(last - first - len(_between(gone, first, last)))
            return
        number = int(np.searchsorted(self._starts, first, side="right")) - 1
        while first < last:
            stop = min(last, int(self._starts[number + 1]))
            left_out = _between(gone, first, stop)
            if len(left_out) < stop - first:
                base = int(self._starts[number])
                span = first - base, stop - base
                yield from self._scanned(number, span, fields, batch_rows, left_out - base)
            first, number = stop, number + 1

    def _by_file(self, rows: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
        numbers = np.searchsorted(self._starts, rows, side="right") - 1
        edges = np.flatnonzero(np.diff(numbers, prepend=-1, append=len(self._starts)))
        for start, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            number = int(numbers[start])
            yield number, rows[start:stop] - self._starts[number]

    def _fields(self, columns: Sequence[str] | None) -> list[pa.Field]:
        return list(self.schema) if columns is None else [self._types[c.lower()] for c in columns]

    # -- one file ---------------------------------------------------------------------------------

    def _taken(
        self, number: int, rows: NDArray[np.int64], fields: Sequence[pa.Field]
    ) -> pa.RecordBatch:
        file = self._files[number]
        if file is None:
            return _blank(len(rows), fields)
        opened = self._opened_file(number, file)
        return _shaped(opened.take(rows, [f.name for f in fields]), fields)

    def _scanned(
        self,
        number: int,
        span: tuple[int, int],
        fields: Sequence[pa.Field],
        batch_rows: int,
        gone: NDArray[np.int64],
    ) -> Iterator[pa.RecordBatch]:
        file = self._files[number]
        if file is None:
            yield _blank(span[1] - span[0] - len(gone), fields)
            return
        opened, at = self._opened_file(number, file), span[0]
        for batch in opened.scan([f.name for f in fields], batch_rows, span):
            left_out = _between(gone, at, at + batch.num_rows) - at
            at += batch.num_rows
            if len(left_out):
                keep = np.ones(batch.num_rows, np.bool_)
                keep[left_out] = False
                batch = batch.filter(flag_array(keep))
            yield _shaped(batch, fields)

    def _opened_file(self, number: int, file: SourceFile) -> Any:
        if number not in self._opened:
            self._opened[number] = self._open_file(file)
        return self._opened[number]


def _between(rows: NDArray[np.int64], first: int, last: int) -> NDArray[np.int64]:
    start, stop = np.searchsorted(rows, [first, last])
    return rows[start:stop]


def _shaped(batch: pa.RecordBatch, fields: Sequence[pa.Field]) -> pa.RecordBatch:
    """The batch in our types."""
    arrays = [fitted(a, f.type) for a, f in zip(batch.columns, fields, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(list(fields)))


def _blank(rows: int, fields: Sequence[pa.Field]) -> pa.RecordBatch:
    arrays = [pa.nulls(rows, f.type) for f in fields]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(list(fields)))


def _joined(parts: Sequence[pa.RecordBatch], fields: Sequence[pa.Field]) -> pa.RecordBatch:
    if not parts:
        return _blank(0, fields)
    return parts[0] if len(parts) == 1 else pa.concat_batches(parts)
