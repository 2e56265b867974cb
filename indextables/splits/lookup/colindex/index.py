"""One open index: rows, counts and summaries of a column of one split.

The format is sniffed from the first bytes. Answers are exact: rows ascend and are distinct, counts
are those of the rows. ``estimate_selectivity`` gives the seed's numbers, which assume that all
values are equally frequent; ``share`` gives the true share of rows, which is as cheap to know.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from indextables.errors import CorruptFileError
from indextables.splits.lookup.colindex import bbidx1, compact
from indextables.splits.lookup.colindex.blocks import BlockIndex, Fetch
from indextables.splits.lookup.colindex.postings import NO_ROWS, Postings, Rows, build_postings
from indextables.splits.lookup.colindex.predicates import (
    Exact,
    In,
    IndexPredicate,
    IsNull,
    Nothing,
    Range,
)
from indextables.splits.lookup.colindex.values import Key, Kind, value_of

IN_BATCH = 1000
MANY_VALUES = 16


class ColumnIndex:
    """Value to rows, for one column of one split."""

    def __init__(self, form: Postings | BlockIndex, size: int = 0) -> None:
        self._form = form
        self._size = size
        self._lock = threading.Lock()
        self.kind: Kind = form.kind
        self.num_rows = form.num_rows

    @classmethod
    def build(cls, column: Any) -> ColumnIndex:
        """The index of a column in memory."""
        return cls(build_postings(column))

    @classmethod
    def open(
        cls, fetch: Fetch, size: int, *, num_rows: int, block_id: int = 0, path: str | None = None
    ) -> ColumnIndex:
        """The index in a file, checked against the split it is for."""
        if size < len(compact.MAGIC):
            raise CorruptFileError("shorter than an index", offset=0, path=path)
        magic = bytes(fetch([(0, len(compact.MAGIC))])[0])
        if magic == compact.MAGIC:
            form = BlockIndex(fetch, size, path)
            if form.num_rows != num_rows:
                raise CorruptFileError("the index is of another number of rows", path=path)
            if form.facts.get("split") not in (None, block_id):
                raise CorruptFileError("the index belongs to another split", path=path)
            return cls(form, size)
        return cls(bbidx1.decode(fetch([(0, size)])[0], num_rows, block_id, path), size)

    @classmethod
    def from_bytes(cls, data: Any, *, num_rows: int, block_id: int = 0) -> ColumnIndex:
        """The index in a buffer."""
        view = memoryview(data)
        return cls.open(
            lambda ranges: [view[a:b] for a, b in ranges],
            len(view),
            num_rows=num_rows,
            block_id=block_id,
        )

    # -- summaries --------------------------------------------------------------------------------

    @property
    def distinct(self) -> int:
        """Distinct values, Null not among them."""
        return self._form.distinct

    @property
    def cardinality(self) -> int:
        """Distinct values, Null being one."""
        return self.distinct + (len(self._form.nulls) > 0)

    @property
    def null_count(self) -> int:
        return len(self._form.nulls)

    @property
    def nulls(self) -> Rows:
        """Rows of Null."""
        return self._form.nulls

    @property
    def bytes_read(self) -> int:
        return self._form.bytes_read if isinstance(self._form, BlockIndex) else self._size

    def min(self) -> Any:
        """The smallest value; ``None`` where all are Null."""
        return self._value(0) if self.distinct else None

    def max(self) -> Any:
        """The largest value; ``None`` where all are Null."""
        return self._value(self.distinct - 1) if self.distinct else None

    def key_at(self, position: int) -> Key:
        """The key of the value at a position, Null not counted."""
        return self._form.key_at(position)

    def _value(self, position: int) -> Any:
        return value_of(self.kind, self.key_at(position))

    def top(self, count: int, *, descending: bool = False) -> Rows:
        """Rows of the first values in order (ties by row), Null left out."""
        found: list[Rows] = []
        left = count
        order = range(self.distinct)
        for position in reversed(order) if descending else order:
            if left <= 0:
                break
            rows = self._form.rows_between(position, position + 1)[:left]
            found.append(rows)
            left -= len(rows)
        return np.concatenate([NO_ROWS, *found])

    # -- look-ups ---------------------------------------------------------------------------------

    def flat(self) -> Postings:
        """The whole index in memory."""
        if isinstance(self._form, Postings):
            return self._form
        with self._lock:
            return self._form.flat

    def exact(self, key: Key) -> Rows:
        """Rows with one value, ascending."""
        if isinstance(self._form, BlockIndex):
            return self._form.exact(key)
        start, stop = self._form.lower(key), self._form.upper(key)
        return self._form.rows_between(start, stop)

    def lookup(self, predicate: IndexPredicate, batch: int = IN_BATCH) -> Rows:
        """Rows that satisfy a predicate, ascending."""
        match predicate:
            case Exact(key):
                return self.exact(key)
            case In(keys):
                return self._any_of(keys, batch)
            case Range():
                return np.sort(self._form.rows_between(*self._span(predicate)))
            case IsNull():
                return self._form.nulls
            case Nothing():
                return NO_ROWS

    def _any_of(self, keys: Sequence[Key], batch: int) -> Rows:
        """Rows of some values: at once over the decoded index, else ``batch`` values at a time."""
        if self._goes_flat(keys):
            flat = self.flat()
            return flat.rows_of(flat.positions_of(keys))
        step = max(batch, 1)
        parts = [self._of_batch(keys[i : i + step]) for i in range(0, len(keys), step)]
        if len(parts) == 1:
            return parts[0]
        return np.unique(np.concatenate([NO_ROWS, *parts]))

    def _of_batch(self, keys: Sequence[Key]) -> Rows:
        parts = [self.exact(key) for key in sorted(set(keys))]
        found: Rows = np.sort(np.concatenate([NO_ROWS, *parts]))
        return found

    def _goes_flat(self, keys: Sequence[Key]) -> bool:
        if isinstance(self._form, Postings):
            return True
        return len(keys) >= MANY_VALUES and self._form.wants_flat(keys)

    def _span(self, predicate: Range) -> tuple[int, int]:
        form = self._form
        start, stop = 0, self.distinct
        if predicate.low is not None:
            start = form.upper(predicate.low) if predicate.low_open else form.lower(predicate.low)
        if predicate.high is not None:
            stop = form.lower(predicate.high) if predicate.high_open else form.upper(predicate.high)
        return start, max(start, stop)

    # -- counts -----------------------------------------------------------------------------------

    def count(self, predicate: IndexPredicate) -> int:
        """How many rows satisfy a predicate; no row is listed."""
        match predicate:
            case Exact(key):
                return self._count_one(key)
            case In(keys):
                return self._count_many(keys)
            case Range():
                start, stop = self._span(predicate)
                return self._form.rows_before(stop) - self._form.rows_before(start)
            case IsNull():
                return self.null_count
            case Nothing():
                return 0

    def _count_one(self, key: Key) -> int:
        if isinstance(self._form, BlockIndex):
            return self._form.count(key)
        return self._form.rows_before(self._form.upper(key)) - self._form.rows_before(
            self._form.lower(key)
        )

    def _count_many(self, keys: Sequence[Key]) -> int:
        if self._goes_flat(keys):
            flat = self.flat()
            at = flat.positions_of(keys)
            return int((flat.offsets[at + 1] - flat.offsets[at]).sum())
        return sum(map(self._count_one, set(keys)))

    def share(self, predicate: IndexPredicate) -> float:
        """The true share of rows."""
        return self.count(predicate) / self.num_rows if self.num_rows else 0.0

    def estimate_selectivity(self, predicate: IndexPredicate) -> float:
        """The seed's estimate: every value is equally frequent."""
        if self.num_rows == 0 or self.cardinality == 0 or isinstance(predicate, Nothing):
            return 0.0
        if isinstance(predicate, In):
            return min(len(predicate.keys) / self.cardinality, 1.0)
        if isinstance(predicate, Range):
            start, stop = self._span(predicate)
            return (stop - start) / self.cardinality
        return 1.0 / self.cardinality
