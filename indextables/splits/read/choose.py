"""The one choice of how the rows of a split are found.

A predicate can be answered by several members of a split. The cheapest that is there is taken:

1. *Column indexes* know how many rows they would give before they list any. One that alone is exact
   counts; one below ``columnIndex.selectivityThreshold`` lists its rows. A few rows are simply
   checked. Of more rows, whatever else the split has may take away what it can.
2. *Codes* answer tests of coded columns exactly, at the same small cost whatever matches.
3. A reader of many splits (``spare_index``) leaves the index of a small split closed: reading its
   filter columns costs less than opening it.
4. In a split that is not local, codes that came with its footer and bounds of zones are taken
   before anything that would have to be fetched.
5. *Hash tables, index terms and bounds of zones* are what the predicate compiles to
   (``lookup.predicates``). If that is a large share of the split and the predicate needs no text,
   reading the filter columns is cheaper than listing rows.
6. A *scan* reads the filter columns of all rows, or of those that zones and codes leave.

Row finding, counting, aggregates and explanations all ask here. Splits of foreign writers have no
member to ask but column indexes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indextables.expr.predicate import (
    TRUE,
    Predicate,
    TextMatch,
    leaves,
    referenced_columns,
)
from indextables.lazy import lazily
from indextables.splits.lookup.coded import coded_mask, coded_rows, is_coded, split_coded
from indextables.splits.lookup.colindex.asking import ColumnIndexes, IndexAnswer, Question
from indextables.splits.lookup.nodes import All, Index, Node, Nothing, Spans, has_hash
from indextables.splits.lookup.search import FEW_ROWS
from indextables.splits.read.reader import SplitReader

Rows = NDArray[np.uint32]

SCAN_SHARE = 0.03
SCAN_ROWS = 4096


@dataclass(frozen=True, slots=True)
class AccessPlan:
    """How a split will be read: ``kind`` is ``column_index``, ``search`` or ``scan``."""

    kind: str
    detail: str
    exact: bool


@dataclass(frozen=True, slots=True)
class Candidates:
    """Rows to look at (``None``: all, in order) and what to check on them."""

    rows: Rows | None
    residual: Predicate


@dataclass(frozen=True, slots=True)
class Way:
    """The chosen way: what it is called, how it lists candidates, how many match if it knows."""

    plan: AccessPlan
    find: Callable[[], Candidates]
    count: int | None = None


class Chooser:
    """Chooses for one predicate, in which what is the same in all rows is decided already."""

    def __init__(
        self,
        reader: SplitReader,
        predicate: Predicate,
        indexes: ColumnIndexes | None = None,
        only: Rows | None = None,
        spare_index: bool = False,
    ) -> None:
        self._reader = reader
        self._predicate = predicate
        self._indexes = indexes
        self._only = only
        self._spare_index = spare_index
        self._chosen: Way | None = None  # until it is taken: an open index hangs on it

    def candidates(self) -> Candidates:
        """The rows that can match, and what is left to check on them."""
        way, self._chosen = self._chosen or self._way(), None
        found = way.find()
        if self._only is None:
            return found
        rows = self._only if found.rows is None else np.intersect1d(found.rows, self._only)
        return Candidates(rows, found.residual)

    def count(self) -> int | None:
        """How many rows match, where a member can tell without rows being listed."""
        if self._only is not None:
            return None
        way = self._way(counting=True)
        self._chosen = way if way.count is None else None
        return way.count

    def describe(self) -> AccessPlan:
        """What the split can be asked; whether that is worth it, the number of rows decides."""
        return self._way(sized=False).plan

    @lazily
    def indexed(self) -> IndexAnswer | None:
        """The rows column indexes give, if they are worth asking."""
        return None if self._question is None else self._question.rows()

    @lazily
    def _question(self) -> Question | None:
        if self._indexes is None or self._predicate == TRUE:
            return None
        return Question(self._indexes, self._predicate)

    # -- the choice -------------------------------------------------------------------------------

    def _way(self, *, counting: bool = False, sized: bool = True) -> Way:
        predicate, reader = self._predicate, self._reader
        if predicate == TRUE:
            return self._scan("all rows", count=reader.num_rows)
        if self._only is not None and len(self._only) <= FEW_ROWS:
            return self._scan("given rows")
        if counting and self._question and (known := self._question.count()) is not None:
            plan = AccessPlan("column_index", "count", True)
            return Way(plan, lambda: Candidates(None, predicate), known)
        found = self.indexed
        if found is not None and (len(found.rows) <= FEW_ROWS or reader.is_foreign):
            plan = AccessPlan("column_index", found.text, False)
            return Way(plan, lambda: Candidates(found.rows, predicate))
        if reader.is_foreign:
            return self._scan("written by another program: rows are scanned")
        way = (
            self._coded(counting)
            or self._spared()
            or self._at_hand()
            or self._searched(counting, sized)
        )
        return way if found is None else _narrowed(way, found)

    def _scan(self, detail: str, count: int | None = None) -> Way:
        plan = AccessPlan("scan", detail, True)
        return Way(plan, lambda: Candidates(None, self._predicate), count)

    def _coded(self, counting: bool) -> Way | None:
        predicate, reader = self._predicate, self._reader
        if not is_coded(predicate, reader):
            return None
        known = int(np.count_nonzero(coded_mask(predicate, reader))) if counting else None
        plan = AccessPlan("search", "codes", True)
        return Way(plan, lambda: Candidates(coded_rows(predicate, reader), TRUE), known)

    @property
    def spares_index(self) -> bool:
        """Is the index left closed, the filter columns being read faster than it is opened?"""
        if not self._spare_index or self._reader.num_rows > SCAN_ROWS:
            return False
        return not self._reader.has_open_index and not self._needs_text

    @property
    def _needs_text(self) -> bool:
        return any(isinstance(leaf, TextMatch) for leaf in leaves(self._predicate))

    def _spared(self) -> Way | None:
        return self._scan("too few rows to open the index") if self.spares_index else None

    def _at_hand(self) -> Way | None:
        """Codes that came with the footer, before an index that would have to be fetched."""
        reader = self._reader
        if reader.source.is_mapped or self._needs_text:
            return None
        coded, others = split_coded(self._predicate, reader)
        if coded == TRUE or not reader.has_codes_at_hand(referenced_columns(coded)):
            return None
        session = reader.session(others)
        found = session.find(others)
        if found.residual == TRUE or not isinstance(found.node, Spans | All):
            return None
        plan = AccessPlan("search", f"codes, then filter {others!r}", False)
        return Way(plan, lambda: self._scanned(session))

    def _searched(self, counting: bool, sized: bool) -> Way:
        reader = self._reader
        session = reader.session(self._predicate)
        found = session.find(self._predicate)
        exact = found.residual == TRUE
        known = session.count(found.node, reader.num_rows) if counting and exact else None
        plan = _described(found.node, found.residual)
        if known is None and sized and self._prefers_scan(found.node, session):
            return Way(plan, lambda: self._scanned(session))
        return Way(plan, lambda: self._found(session, found), known)

    def _found(self, session: Any, found: Any) -> Candidates:
        rows, complete = session.search.rows(found.node)
        return Candidates(rows, found.residual if complete else self._predicate)

    def _prefers_scan(self, node: Node, session: Any) -> bool:
        if isinstance(node, All):
            return True
        if not isinstance(node, Index) or self._needs_text:
            return False
        return bool(session.search.count(node) > SCAN_SHARE * self._reader.num_rows)

    def _scanned(self, session: Any) -> Candidates:
        """The rows of the zones and codes that a predicate allows, to be filtered."""
        coded, others = split_coded(self._predicate, self._reader)
        node = session.find(others).node
        spans = session.search.rows(node)[0] if isinstance(node, Spans) else None
        if coded == TRUE:
            return Candidates(spans, others)
        mask = coded_mask(coded, self._reader)
        rows = np.flatnonzero(mask).astype(np.uint32) if spans is None else spans[mask[spans]]
        return Candidates(rows, others)


def _narrowed(way: Way, indexed: IndexAnswer) -> Way:
    """A way whose rows are among those that column indexes found."""

    def find() -> Candidates:
        found = way.find()
        if found.rows is None:
            return Candidates(indexed.rows, found.residual)
        return Candidates(np.intersect1d(found.rows, indexed.rows), found.residual)

    return Way(AccessPlan("column_index", indexed.text, False), find, way.count)


# -- what is expected -----------------------------------------------------------------------------


def _described(node: Node, residual: Predicate) -> AccessPlan:
    exact = residual == TRUE
    if isinstance(node, Nothing):
        return AccessPlan("search", "no row can match", True)
    if isinstance(node, All):
        return AccessPlan("scan", f"filter {residual!r}", exact)
    how = "hash table" if has_hash(node) else "index"
    how = "bounds of zones" if isinstance(node, Spans) else how
    return AccessPlan("search", how if exact else f"{how}, then filter {residual!r}", exact)
