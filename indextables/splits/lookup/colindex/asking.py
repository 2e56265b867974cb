"""Asking the column indexes of one split: which one, and the rows it gives.

Each column the filter asks about and that has an index in the split is a candidate; one that has
none is a miss. A candidate that would give more than ``columnIndex.selectivityThreshold`` of the
rows is left out; of the others the one with the smallest share is asked first, the first of equals.
While many rows remain, further indexes narrow them if they are not much larger. What the indexes
found may keep too much: the reader checks the whole filter again on those rows.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from indextables.config import Config
from indextables.expr.predicate import TRUE, Predicate, conjuncts
from indextables.splits.lookup.colindex.index import ColumnIndex
from indextables.splits.lookup.colindex.metrics import FALLBACK, HIT, METRICS, MISS
from indextables.splits.lookup.colindex.opening import (
    LOG,
    ROW_CACHE,
    UNREADABLE,
    IndexRefs,
    open_index,
    report_broken,
    same_kind,
)
from indextables.splits.lookup.colindex.postings import Rows
from indextables.splits.lookup.colindex.predicates import (
    IndexableFilter,
    answers_exactly,
    extract_indexable,
)
from indextables.splits.lookup.colindex.rowcache import cache_key
from indextables.splits.lookup.colindex.values import Kind, kind_of
from indextables.storage.base import Store

FEW_ENOUGH = 64
GROUP_ROWS = 8192
MUCH_LARGER = 8


@dataclass(frozen=True, slots=True)
class IndexAnswer:
    """Rows of one split, and how they were found."""

    columns: tuple[str, ...]
    rows: Rows
    num_rows: int
    candidates: int

    @property
    def text(self) -> str:
        """``column_index(email) rows=2/1,000,000 (0.0002 %) candidates=2 row_groups=2/123``

        A row group here is 8,192 neighbouring rows.
        """
        share = 100 * len(self.rows) / self.num_rows if self.num_rows else 0.0
        touched = len(np.unique(self.rows // GROUP_ROWS))
        return (
            f"column_index({', '.join(self.columns)}) rows={len(self.rows):,}/{self.num_rows:,} "
            f"({share:.3g} %) candidates={self.candidates} "
            f"row_groups={touched:,}/{-(-self.num_rows // GROUP_ROWS):,}"
        )


@dataclass(frozen=True, slots=True)
class ColumnIndexes:
    """The column indexes of one split, as far as the log names them."""

    store: Store
    reader: Any
    refs: IndexRefs | None
    config: Config

    def opened(self, column: str, kind: Kind | None) -> tuple[ColumnIndex, str] | None:
        """The index of a column and its place; one that is not there or broken is counted."""
        if kind is None or not self.config["columnIndex.enabled"]:
            return None
        if self.refs is not None and column in self.refs.definitions:
            try:
                index, place = open_index(self.store, self.reader, column, self.refs, self.config)
            except UNREADABLE as error:
                report_broken(column, error)
                return None
            if index is not None and same_kind(index.kind, kind):
                return index, f"{self.store.identity}/{place}"
        METRICS.lookup(column, MISS)
        return None

    def of(self, column: str, dtype: pa.DataType) -> ColumnIndex | None:
        """The index of a column, if it has one of its type."""
        found = self.opened(column, kind_of(dtype))
        return None if found is None else found[0]


@dataclass(frozen=True, slots=True)
class _Candidate:
    asked: IndexableFilter
    index: ColumnIndex
    place: str


class Question:
    """A filter, asked of the column indexes of a split: each is opened, and counted, once."""

    def __init__(self, indexes: ColumnIndexes, predicate: Predicate) -> None:
        self._config = indexes.config
        self._num_rows: int = indexes.reader.num_rows
        self._predicate = predicate
        self._asked = _asked_of(predicate)
        self._open = [
            _Candidate(asked, *found)
            for asked in self._asked
            if (found := indexes.opened(asked.column, asked.kind)) is not None
        ]

    def count(self) -> int | None:
        """How many rows match, where one index alone can tell."""
        if len(self._asked) != 1 or not self._open:
            return None
        if not all(map(answers_exactly, conjuncts(self._predicate))):
            return None
        (one,) = self._open
        try:
            found = one.index.count(one.asked.predicate)
        except UNREADABLE as error:
            self._pass_by(one, error)
            return None
        METRICS.lookup(one.asked.column, HIT)
        return found

    def rows(self) -> IndexAnswer | None:
        """The rows indexes give; ``None``: read the split without them."""
        shares = [(share, c) for c in list(self._open) if (share := self._share(c)) is not None]
        shares.sort(key=lambda pair: pair[0])
        answer: IndexAnswer | None = None
        for share, candidate in shares:
            if answer is not None and not _worth_it(answer, share):
                break
            rows = self._looked_up(candidate)
            if rows is not None:
                answer = self._joined(answer, candidate, share, rows, len(shares))
        return answer

    def _pass_by(self, candidate: _Candidate, error: Exception) -> None:
        """An index that cannot be read is reported, and not asked again."""
        report_broken(candidate.asked.column, error)
        self._open.remove(candidate)

    def _share(self, candidate: _Candidate) -> float | None:
        """The share of rows an index would give; ``None``: it is not worth it."""
        column, index = candidate.asked.column, candidate.index
        uniform = self._config["columnIndex.estimator"] == "uniform"
        try:
            share = (index.estimate_selectivity if uniform else index.share)(
                candidate.asked.predicate
            )
        except UNREADABLE as error:
            self._pass_by(candidate, error)
            return None
        threshold = self._config["columnIndex.selectivityThreshold"]
        if share <= threshold:
            return share
        METRICS.lookup(column, FALLBACK)
        LOG.debug(
            "Skipping index on column '%s': selectivity %.1f%% exceeds threshold %.1f%% "
            "(full scan likely faster)",
            column,
            100 * share,
            100 * threshold,
        )
        return None

    def _joined(
        self,
        answer: IndexAnswer | None,
        candidate: _Candidate,
        share: float,
        rows: Rows,
        candidates: int,
    ) -> IndexAnswer:
        column = candidate.asked.column
        if answer is None:
            LOG.debug(
                "Selected index on column '%s' with selectivity %.3g%% (best among %d candidates)",
                column,
                100 * share,
                candidates,
            )
            return IndexAnswer((column,), rows, self._num_rows, candidates)
        both = np.intersect1d(answer.rows, rows, assume_unique=True)
        return IndexAnswer((*answer.columns, column), both, self._num_rows, candidates)

    def _looked_up(self, candidate: _Candidate) -> Rows | None:
        asked, index = candidate.asked, candidate.index
        key = cache_key(candidate.place, asked.column, asked.text)
        found = ROW_CACHE.get(key)
        start = time.perf_counter()
        if found is None:
            before = index.bytes_read
            try:
                found = index.lookup(asked.predicate, self._config["columnIndex.inBatchSize"])
            except UNREADABLE as error:
                self._pass_by(candidate, error)
                return None
            METRICS.read(asked.column, index.bytes_read - before)
            ROW_CACHE.insert(key, found)
        METRICS.lookup(asked.column, HIT, 1e3 * (time.perf_counter() - start))
        return found


def _worth_it(answer: IndexAnswer, share: float) -> bool:
    have = len(answer.rows)
    return have > FEW_ENOUGH and share * answer.num_rows < MUCH_LARGER * have


_last: tuple[Predicate, list[IndexableFilter]] = (TRUE, [])


def _asked_of(predicate: Predicate) -> list[IndexableFilter]:
    """What indexes could answer; the splits of a task share their predicate."""
    global _last
    last = _last
    if last[0] is not predicate:
        last = _last = (predicate, extract_indexable(predicate))
    return last[1]
