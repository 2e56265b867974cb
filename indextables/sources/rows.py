"""Rows of one Parquet file by number: the interface of ``splits/rows/read.py`` over foreign files.

Columns are those of a table (``SourceColumn``), named by their identities; the file may call them
differently, lack some (NULL, or the column's default), hold them in smaller types, or leave values
to the partition it belongs to. Numbers count from the first row of the file; deleted rows have
numbers like all others.

``take`` reads the pages that hold the rows and nothing else, with one call to the store. ``scan``
reads row groups one after another, each with one call, or windows of one where it is large; the
next is read while one is decoded.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from indextables.buffers import number_array
from indextables.errors import (
    CorruptFileError,
    IndexTablesError,
    ProtocolError,
    UnknownColumnError,
)
from indextables.sources import pages
from indextables.sources.base import SourceColumn
from indextables.sources.fit import find_field, fit
from indextables.sources.footer import SIZE, FooterFacts, read_facts, read_pages
from indextables.storage import pool
from indextables.storage.base import Store

WINDOW_BYTES = 64 << 20
"""A row group whose wanted columns are larger is read in parts, where it has an offset index."""

Rows = NDArray[np.int64]


class ParquetRows:
    """Reads rows by number or in order; safe to share between threads."""

    def __init__(
        self,
        store: Store,
        path: str,
        size: int,
        columns: Sequence[SourceColumn],
        *,
        partition: Mapping[str, Any] | None = None,
        facts: FooterFacts | None = None,
        hidden: Sequence[SourceColumn] = (),
        trust_size: bool = True,
    ) -> None:
        """``path`` is relative to the store; ``partition`` holds constants by identity.

        ``hidden`` columns are read when they are asked for and are not in the schema. Writers of
        Iceberg note wrong sizes of files that never change: with ``trust_size=False`` the store is
        asked where the noted size leads nowhere.
        """
        self._trust_size = trust_size
        self._store, self._path, self._size = store, path, size
        self._columns = {column.identity: column for column in (*columns, *hidden)}
        self._shown = [column.identity for column in columns]
        self._partition = dict(partition or {})
        self._facts = facts
        self._tail: tuple[int, bytes] = (size, b"")
        self._types: dict[int, pa.DataType] = {}
        self._places: dict[str, int | None] = {}
        self.schema = pa.schema([column.field for column in columns])

    # -- facts ------------------------------------------------------------------------------------

    @property
    def _known(self) -> FooterFacts:
        if self._facts is None:
            try:
                found, start, tail = read_facts(self._store, self._path, self._size)
            except CorruptFileError:
                size = self._store.stat(self._path).size
                if self._trust_size or size == self._size:
                    raise
                found, start, tail = read_facts(self._store, self._path, size)
            self._tail, self._facts = (start, tail), found
        return self._facts

    @property
    def num_rows(self) -> int:
        return self._known.num_rows

    def facts(self, columns: Sequence[str] | None = None) -> FooterFacts:
        """What to keep so that rows of these columns (all of them) need no other read."""
        places = [self._place(c) for c in self._wanted(columns)]
        held = [place for place in places if place is not None]
        return self._with_pages(held).only(held)

    def _with_pages(self, places: Sequence[int]) -> FooterFacts:
        facts = self._known
        leaves = [leaf for p in places for leaf in range(*facts.columns[p].leaves)]
        if facts.missing(leaves):
            facts = read_pages(self._store, self._path, facts, leaves, self._tail)
            self._facts = facts
        return facts

    # -- columns ----------------------------------------------------------------------------------

    def _wanted(self, columns: Sequence[str] | None) -> list[SourceColumn]:
        if columns is None:
            columns = self._shown
        for name in columns:
            if name not in self._columns:
                raise UnknownColumnError.of(name, self._columns, path=self._path)
        return [self._columns[name] for name in columns]

    def _place(self, column: SourceColumn) -> int | None:
        """Which column of the file it is; ``None`` where its value is a constant."""
        if column.identity in self._partition:
            return None
        if column.identity not in self._places:
            given = [(c.name, c.field_id) for c in self._known.columns]
            if not column.physical and all(field_id is None for _, field_id in given):
                raise ProtocolError(
                    "the file has no field ids and the table has no name mapping",
                    path=self._path,
                    hint="Set the property schema.name-mapping.default of the table",
                )
            found = find_field(column.field_id, column.file_names, given)
            self._places[column.identity] = found
        return self._places[column.identity]

    def _file_type(self, place: int) -> pa.DataType:
        if place not in self._types:
            self._types[place] = pages.arrow_fields(self._known, [place], self._path)[0].type
        return self._types[place]

    def _constant(self, column: SourceColumn, count: int) -> pa.Array:
        value = self._partition.get(column.identity, column.default)
        if value is None:
            return pa.nulls(count, column.type)
        return pa.repeat(pa.scalar(value, column.type), count)

    def _batch(
        self, columns: Sequence[SourceColumn], arrays: Mapping[int, pa.Array], count: int
    ) -> pa.RecordBatch:
        if not columns:
            empty = pa.Array.from_buffers(pa.struct([]), count, [None])
            return pa.RecordBatch.from_struct_array(empty)
        made = []
        for column in columns:
            place = self._place(column)
            if place is None:
                made.append(self._constant(column, count))
            else:
                made.append(self._fitted(arrays[place], column))
        return pa.RecordBatch.from_arrays(made, schema=pa.schema([c.field for c in columns]))

    def _fitted(self, array: pa.Array, column: SourceColumn) -> pa.Array:
        try:
            return fit(array, column.type, column.name)
        except IndexTablesError as error:
            error.path = error.path or self._path
            raise

    # -- rows by number ---------------------------------------------------------------------------

    def take(self, rows: Any, columns: Sequence[str] | None = None) -> pa.RecordBatch:
        """The rows with these numbers, in the order given."""
        wanted = self._wanted(columns)
        numbers = self._row_numbers(rows)
        if not len(numbers):
            return self._batch(wanted, self._none(wanted), 0)
        unique, back = np.unique(numbers, return_inverse=True)
        arrays = self._read(wanted, unique)
        batch = self._batch(wanted, arrays, len(unique))
        if len(unique) == len(numbers) and bool((back == np.arange(len(back))).all()):
            return batch
        return batch.take(number_array(back.astype(np.int64)))

    def _none(self, wanted: Sequence[SourceColumn]) -> dict[int, pa.Array]:
        places = {self._place(c) for c in wanted} - {None}
        return {p: pa.nulls(0, self._file_type(p)) for p in places if p is not None}

    def _row_numbers(self, rows: Any) -> Rows:
        numbers = np.asarray(rows)
        if numbers.size == 0:
            return np.zeros(0, np.int64)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
            raise IndexTablesError("row numbers must be a one-dimensional array of integers")
        if int(numbers.min()) < 0 or int(numbers.max()) >= self.num_rows:
            raise IndexTablesError(
                f"row numbers {numbers.min()} to {numbers.max()} do not all lie in the "
                f"{self.num_rows} rows",
                path=self._path,
            )
        return numbers.astype(np.int64)

    def _read(self, wanted: Sequence[SourceColumn], rows: Rows) -> dict[int, pa.Array]:
        """Ascending rows of the columns that the file has, in its own types."""
        places = sorted({p for p in map(self._place, wanted) if p is not None})
        facts = self._with_pages(places)
        plans = {
            place: [
                pages.plan_leaf(facts, leaf, rows) for leaf in range(*facts.columns[place].leaves)
            ]
            for place in places
        }
        blobs = self._fetch([r for p in places for plan in plans[p] for r in plan.ranges])
        found = {}
        for place in places:
            parts = []
            for plan in plans[place]:
                mine = [next(blobs) for _ in plan.ranges]
                parts.append(
                    pages.decode(
                        lambda p=place, n=plan, b=mine: pages.read_leaf(facts, p, n, b), self._path
                    )
                )
            found[place] = parts[0] if len(parts) == 1 else self._joined(parts, place)
        return found

    def _joined(self, parts: Sequence[pa.Array], place: int) -> pa.Array:
        dtype = self._file_type(place)
        return pages.decode(lambda: pages.joined(parts, dtype), self._path)

    def _fetch(self, ranges: Sequence[tuple[int, int]]) -> Iterator[bytes]:
        if self._trust_size and any(end > self._size for _, end in ranges):
            raise CorruptFileError("a page lies behind the end of the file", path=self._path)
        return iter(self._store.read_ranges(self._path, ranges))

    # -- rows in order ----------------------------------------------------------------------------

    def scan(
        self,
        columns: Sequence[str] | None = None,
        batch_rows: int = 65_536,
        row_range: tuple[int, int] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The rows in order, in batches of at most ``batch_rows``."""
        first, last = (0, self.num_rows) if row_range is None else row_range
        if not 0 <= first <= last <= self.num_rows:
            raise IndexTablesError(
                f"row range [{first}, {last}) is outside the {self.num_rows} rows", path=self._path
            )
        if batch_rows < 1:
            raise IndexTablesError(f"batch_rows must be positive, not {batch_rows}")
        return self._batches(self._wanted(columns), batch_rows, first, last)

    def _batches(
        self, wanted: Sequence[SourceColumn], batch_rows: int, first: int, last: int
    ) -> Iterator[pa.RecordBatch]:
        places = sorted({p for p in map(self._place, wanted) if p is not None})
        if not places:
            for at in range(first, last, batch_rows):
                yield self._batch(wanted, {}, min(batch_rows, last - at))
            return
        windows = self._windows(places, first, last)
        coming: Future[list[bytes]] | None = None
        for number, window in enumerate(windows):
            blobs = coming.result() if coming else self._window_bytes(places, window)
            ahead = windows[number + 1 : number + 2]
            coming = (
                pool.submit(lambda w: self._window_bytes(places, w), ahead[0]) if ahead else None
            )
            yield from self._decoded(wanted, places, window, blobs, batch_rows)

    def _windows(self, places: Sequence[int], first: int, last: int) -> list[tuple[int, int]]:
        """Ranges of rows that are read at once: row groups, or parts of them."""
        facts = self._known
        leaves = [leaf for p in places for leaf in range(*facts.columns[p].leaves)]
        found = []
        for group in range(facts.groups):
            start, end = (int(facts.group_starts[group + i]) for i in (0, 1))
            lo, hi = max(start, first), min(end, last)
            if lo >= hi:
                continue
            weight = int(facts.chunks[SIZE, group, leaves].sum()) * (hi - lo) // (end - start)
            parts = max(1, min(weight // WINDOW_BYTES, hi - lo))
            if parts > 1:
                facts = self._with_pages(places)
                parts = parts if all((group, leaf) in facts.pages for leaf in leaves) else 1
            cuts = [lo + (hi - lo) * i // parts for i in range(parts + 1)]
            found += list(itertools.pairwise(cuts))
        return found

    def _is_group(self, window: tuple[int, int]) -> int | None:
        starts = self._known.group_starts
        group = int(np.searchsorted(starts, window[0], side="right")) - 1
        return group if (int(starts[group]), int(starts[group + 1])) == window else None

    def _window_bytes(self, places: Sequence[int], window: tuple[int, int]) -> list[bytes]:
        return list(self._fetch(self._window_ranges(places, window)))

    def _window_ranges(
        self, places: Sequence[int], window: tuple[int, int]
    ) -> list[tuple[int, int]]:
        group = self._is_group(window)
        if group is None:
            return []
        facts = self._known
        leaves = [leaf for p in places for leaf in range(*facts.columns[p].leaves)]
        whole = [pages.whole_chunk(facts, group, leaf) for leaf in leaves]
        return [r for picked in whole for r in (picked.dictionary, *picked.data)]

    def _decoded(
        self,
        wanted: Sequence[SourceColumn],
        places: Sequence[int],
        window: tuple[int, int],
        blobs: Sequence[bytes],
        batch_rows: int,
    ) -> Iterator[pa.RecordBatch]:
        group = self._is_group(window)
        if group is None:
            arrays = self._read(wanted, np.arange(*window, dtype=np.int64))
            for at in range(0, window[1] - window[0], batch_rows):
                part = {p: array.slice(at, batch_rows) for p, array in arrays.items()}
                yield self._batch(wanted, part, min(batch_rows, window[1] - window[0] - at))
            return
        facts = self._known
        opened = pages.decode(lambda: pages.read_group(facts, places, group, blobs), self._path)
        batches = opened.iter_batches(batch_size=batch_rows, use_threads=False)
        while (batch := pages.decode(lambda: next(batches, None), self._path)) is not None:
            arrays = dict(zip(places, batch.columns, strict=True))
            yield self._batch(wanted, arrays, batch.num_rows)
