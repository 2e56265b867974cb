"""Using indexes in a read: which one, and the rows it gives.

Each column the filter asks about and that has an index in the split is a candidate. One that would
give more than ``columnIndex.selectivityThreshold`` of the rows is left out; of the others the one
with the smallest share is asked first, the first of equals. While many rows remain, further indexes
narrow them if they are not much larger. What the index found is a hint: the reader checks the whole
filter again on those rows.

An index that is missing, damaged or of another split is a warning and a count, and the split is
read as if it had none. It never fails a query.
"""

from __future__ import annotations

import logging
import struct
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from indextables.columnindex.index import ColumnIndex
from indextables.columnindex.layout import sidecar_path, split_number
from indextables.columnindex.metrics import ERROR, FALLBACK, HIT, METRICS, MISS
from indextables.columnindex.postings import Rows
from indextables.columnindex.predicates import (
    IndexableFilter,
    answers_exactly,
    extract_indexable,
)
from indextables.columnindex.rowcache import RowIdCache, cache_key
from indextables.columnindex.values import Kind
from indextables.config import Config
from indextables.errors import IndexTablesError, ObjectNotFoundError
from indextables.expr.predicate import Predicate, conjuncts
from indextables.splits.format import members
from indextables.splits.read.reader import SplitReader
from indextables.storage.base import Store
from indextables.storage.machine import machine_error

LOG = logging.getLogger("indextables.columnindex")
MOST_OPEN = 256
FEW_ENOUGH = 64
GROUP_ROWS = 8192
MUCH_LARGER = 8
UNREADABLE = (
    IndexTablesError,
    ValueError,
    IndexError,
    OverflowError,
    OSError,
    MemoryError,
    struct.error,
    pa.ArrowException,
)


@dataclass(frozen=True, slots=True)
class IndexRefs:
    """The indexes of some splits as the log knows them; small and picklable."""

    definitions: Mapping[str, str] = field(default_factory=dict)
    """Index id by column."""
    sidecars: Mapping[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    """(path, size) by (column, split path)."""

    @classmethod
    def of(cls, snapshot: Any, splits: Any = None) -> IndexRefs | None:
        """What a snapshot knows (of some splits); ``None`` where no index is defined."""
        known = getattr(snapshot, "indexes", None)
        if known is None or not known.definitions:
            return None
        chosen = None if splits is None else set(splits)
        files = {
            key: (file.path, file.size)
            for key, file in known.files.items()
            if chosen is None or key[1] in chosen
        }
        return cls({c: d.id for c, d in known.definitions.items()}, files)


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
class _Candidate:
    asked: IndexableFilter
    index: ColumnIndex
    place: str
    share: float


_open: OrderedDict[tuple[str, ...], ColumnIndex | None] = OrderedDict()
_lock = threading.Lock()
ROW_CACHE = RowIdCache()


def forget_indexes() -> None:
    """Drop every open index and all cached rows of this process."""
    with _lock:
        _open.clear()
    ROW_CACHE.clear()


# -- finding indexes ------------------------------------------------------------------------------


def open_index(
    store: Store, reader: SplitReader, column: str, refs: IndexRefs, config: Config
) -> tuple[ColumnIndex | None, str]:
    """The index of a column of a split (``None``: there is none), and where it lives."""
    named = refs.sidecars.get((column, reader.path))
    member = members.column_index(column)
    if named is not None:
        place = named[0]
    elif reader.source.has(member):
        place = f"{reader.path}!{member}"
    elif config["columnIndex.discover"] and column in refs.definitions:
        place = sidecar_path(refs.definitions[column], reader.path)
    else:
        return None, ""
    key = (store.identity, reader.path, column, place, "" if named is None else "named")
    with _lock:
        if key in _open:
            _open.move_to_end(key)
            return _open[key], place
    found = _opened(store, reader, place, member, None if named is None else named[1])
    if found is not None:
        METRICS.read(column, found.bytes_read)
    with _lock:
        _open[key] = found
        while len(_open) > MOST_OPEN:
            _open.popitem(last=False)
    return found, place


def _opened(
    store: Store, reader: SplitReader, place: str, member: str, size: int | None
) -> ColumnIndex | None:
    if place.endswith(f"!{member}"):
        start, end = reader.source.range_of(member)
        return ColumnIndex.open(
            lambda ranges: reader.source.member_ranges(member, ranges),
            end - start,
            num_rows=reader.num_rows,
            path=reader.path,
        )
    if size is None:
        try:
            size = store.stat(place).size
        except ObjectNotFoundError:
            return None
    return ColumnIndex.open(
        lambda ranges: store.read_ranges(place, ranges),
        size,
        num_rows=reader.num_rows,
        block_id=split_number(reader.path),
        path=place,
    )


# -- choosing -------------------------------------------------------------------------------------


def find_rows(
    store: Store, reader: SplitReader, predicate: Predicate, refs: IndexRefs | None, config: Config
) -> IndexAnswer | None:
    """The rows indexes give for a filter; ``None``: read the split without them."""
    if refs is None or not config["columnIndex.enabled"]:
        return None
    asked = [f for f in extract_indexable(predicate) if f.column in refs.definitions]
    found = [c for f in asked if (c := _candidate(store, reader, f, refs, config)) is not None]
    found.sort(key=lambda c: c.share)
    answer: IndexAnswer | None = None
    for candidate in found:
        if answer is not None and not _worth_it(answer, candidate):
            break
        rows = _looked_up(candidate, config)
        if rows is None:
            continue
        answer = _joined(answer, candidate, rows, len(found), reader.num_rows)
    return answer


def _worth_it(answer: IndexAnswer, candidate: _Candidate) -> bool:
    have = len(answer.rows)
    return have > FEW_ENOUGH and candidate.share * answer.num_rows < MUCH_LARGER * have


def _joined(
    answer: IndexAnswer | None, candidate: _Candidate, rows: Rows, candidates: int, num_rows: int
) -> IndexAnswer:
    column = candidate.asked.column
    if answer is None:
        LOG.debug(
            "Selected index on column '%s' with selectivity %.3g%% (best among %d candidates)",
            column,
            100 * candidate.share,
            candidates,
        )
        return IndexAnswer((column,), rows, num_rows, candidates)
    both = np.intersect1d(answer.rows, rows, assume_unique=True)
    return IndexAnswer((*answer.columns, column), both, num_rows, candidates)


def _candidate(
    store: Store, reader: SplitReader, asked: IndexableFilter, refs: IndexRefs, config: Config
) -> _Candidate | None:
    try:
        index, place = open_index(store, reader, asked.column, refs, config)
        if index is None or not same_kind(index.kind, asked.kind):
            METRICS.lookup(asked.column, MISS)
            return None
        if config["columnIndex.estimator"] == "uniform":
            share = index.estimate_selectivity(asked.predicate)
        else:
            share = index.share(asked.predicate)
    except UNREADABLE as error:
        report_broken(asked.column, error)
        return None
    threshold = config["columnIndex.selectivityThreshold"]
    if share > threshold:
        METRICS.lookup(asked.column, FALLBACK)
        LOG.debug(
            "Skipping index on column '%s': selectivity %.1f%% exceeds threshold %.1f%% "
            "(full scan likely faster)",
            asked.column,
            100 * share,
            100 * threshold,
        )
        return None
    return _Candidate(asked, index, f"{store.identity}/{place}", share)


def same_kind(index: Kind, asked: Kind) -> bool:
    """Whether an index of one kind answers questions of another."""
    whole = (Kind.INT, Kind.UINT)
    return index == asked or (index in whole and asked in whole)


def _looked_up(candidate: _Candidate, config: Config) -> Rows | None:
    asked = candidate.asked
    key = cache_key(candidate.place, asked.column, asked.text)
    found = ROW_CACHE.get(key)
    start = time.perf_counter()
    if found is None:
        before = candidate.index.bytes_read
        try:
            found = candidate.index.lookup(asked.predicate, config["columnIndex.inBatchSize"])
        except UNREADABLE as error:
            report_broken(asked.column, error)
            return None
        METRICS.read(asked.column, candidate.index.bytes_read - before)
        ROW_CACHE.insert(key, found)
    METRICS.lookup(asked.column, HIT, 1e3 * (time.perf_counter() - start))
    return found


def report_broken(column: str, error: Exception) -> None:
    """An index could not be used: warn and count; a machine that ran short broke no index."""
    if (short := machine_error(error)) is not None:
        METRICS.lookup(column, FALLBACK)
        LOG.warning("The index on column '%s' was not asked: %s", column, short)
        return
    METRICS.lookup(column, ERROR)
    LOG.warning(
        "Index lookup failed for column '%s': %s. Falling back to full scan.", column, error
    )


def explain_rows(
    store: Store, splits: Any, predicate: Predicate, refs: IndexRefs | None, config: Config
) -> list[str]:
    """What the indexes of some splits would give, a line for each split that would use one."""
    lines = []
    for split in splits:
        reader = SplitReader.open(store, split, config=config)
        found = find_rows(store, reader, predicate, refs, config)
        if found is not None:
            lines.append(f"{split.path} {found.text}")
    return lines


# -- answers from the index alone -----------------------------------------------------------------


def count_rows(
    store: Store, reader: SplitReader, predicate: Predicate, refs: IndexRefs | None, config: Config
) -> int | None:
    """How many rows match, where one index alone can tell."""
    if refs is None or not config["columnIndex.enabled"]:
        return None
    asked = extract_indexable(predicate)
    if len(asked) != 1 or asked[0].column not in refs.definitions:
        return None
    if not all(map(answers_exactly, conjuncts(predicate))):
        return None
    column = asked[0].column
    try:
        index, _ = open_index(store, reader, column, refs, config)
        if index is None or not same_kind(index.kind, asked[0].kind):
            METRICS.lookup(column, MISS)
            return None
        found = index.count(asked[0].predicate)
    except UNREADABLE as error:
        report_broken(column, error)
        return None
    METRICS.lookup(column, HIT)
    return found
