"""Running nodes: from questions to row numbers.

Row numbers come out ascending. Handing one hit to Python costs ten times more than finding it, so:
counting never makes hits; a query that matches more than half of the rows is inverted and the
few others are taken away; and where a hash table has left only a handful of candidates, the rest of
a conjunction is not run at all but verified on those rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from indextables.expr.keys import HASH_KIND
from indextables.native import hash_term, hash_terms
from indextables.splits.lookup.asks import Ask, Others, parts, to_query
from indextables.splits.lookup.hashtable import HashTable
from indextables.splits.lookup.nodes import (
    All,
    Both,
    Either,
    Hash,
    Index,
    Node,
    Nothing,
    Spans,
)
from indextables.splits.lookup.words.running import WordSearch
from indextables.splits.lookup.zones import rows_of
from indextables.splits.read.workspace import LazyIndex, parts_of, run

FEW_ROWS = 4096
FEW_KEYS = 64

Rows = NDArray[np.uint32]


class IndexSearch:
    """Runs nodes against one split; tantivy is opened by the first that words cannot answer."""

    def __init__(
        self,
        index: LazyIndex,
        words: Callable[[], WordSearch | None],
        num_rows: int,
        tables: Callable[[str], HashTable],
        path: str,
    ) -> None:
        self._index = index
        self._find_words = words
        self._num_rows = num_rows
        self._tables = tables
        self._path = path

    # -- rows -------------------------------------------------------------------------------------

    def rows(self, node: Node) -> tuple[Rows, bool]:
        """(rows of the node, whether every part of it was run)."""
        if isinstance(node, All):
            return np.arange(self._num_rows, dtype=np.uint32), True
        if isinstance(node, Nothing):
            return np.empty(0, np.uint32), True
        if isinstance(node, Hash):
            return self._hash_rows(node), True
        if isinstance(node, Spans):
            return rows_of(np.array(node.zones, np.int64), self._num_rows), True
        if isinstance(node, Index):
            return self._query_rows(node), True
        return self._both(node) if isinstance(node, Both) else self._either(node)

    def _both(self, node: Both) -> tuple[Rows, bool]:
        ordered = sorted(node.children, key=lambda c: (isinstance(c, Index), isinstance(c, Spans)))
        found, complete = self.rows(ordered[0])
        for child in ordered[1:]:
            if len(found) <= FEW_ROWS:
                return found, False
            more, known = self.rows(child)
            found = np.intersect1d(found, more, assume_unique=True)
            complete = complete and known
        return found, complete

    def _either(self, node: Either) -> tuple[Rows, bool]:
        parts = [self.rows(child) for child in node.children]
        rows = np.unique(np.concatenate([p[0] for p in parts]))
        return rows, all(p[1] for p in parts)

    def _hash_rows(self, node: Hash) -> Rows:
        return self._tables(node.column).lookup(_hashed(node.column, list(node.keys)))

    def _query_rows(self, node: Index) -> Rows:
        if (words := self._words_for(node.ask)) is not None:
            return words.rows(node.ask)
        count = self.count(node)
        total = self._num_rows
        if count == total:
            return np.arange(total, dtype=np.uint32)
        if count * 2 <= total:
            return self._hits(node.ask, count)
        others = np.ones(total, np.bool_)
        others[self._hits(Others(node.ask), total - count)] = False
        return np.flatnonzero(others).astype(np.uint32)

    def _words_for(self, ask: Ask) -> WordSearch | None:
        """The words, if they can answer an ask."""
        words = self._find_words()
        return words if words is not None and words.can_answer(ask) else None

    def lists_words(self, name: str) -> bool:
        """Can the terms of a field be listed without opening the index?"""
        words = self._find_words()
        return words is not None and words.has(name)

    def _hits(self, ask: Ask, count: int) -> Rows:
        if count == 0:
            return np.empty(0, np.uint32)
        from tantivy import Query

        flat = Query.const_score_query(to_query(ask, self._index.schema), 1.0)
        found = self._search(flat, count)
        rows = np.fromiter((address.doc for _, address in found.hits), np.uint32, count)
        if len(rows) > 1 and not bool((rows[1:] > rows[:-1]).all()):
            rows.sort()
        return rows

    # -- counts and scores ------------------------------------------------------------------------

    def count(self, node: Index) -> int:
        if (words := self._words_for(node.ask)) is not None:
            return words.count(node.ask)
        self._index.ensure(parts(node.ask))
        searcher, query = self._index.searcher, to_query(node.ask, self._index.schema)
        return int(run(lambda: searcher.search(query, 1, True), self._path).count)

    def scored(self, node: Index, limit: int) -> tuple[Rows, NDArray[np.float32]]:
        """The best rows of a query, best first."""
        self._index.ensure(parts(node.ask))
        hits = self._search(to_query(node.ask, self._index.schema), limit).hits
        rows = np.array([address.doc for _, address in hits], np.uint32)
        scores = np.array([score for score, _ in hits], np.float32)
        return rows, scores

    def _search(self, query: Any, limit: int) -> Any:
        searcher = self._index.searcher
        return run(lambda: searcher.search(query, limit, False), self._path)

    # -- dictionary -------------------------------------------------------------------------------

    def terms(self, name: str, prefix: str) -> pa.Array:
        """The terms of a field that start with a prefix."""
        words = self._find_words()
        if words is not None and words.has(name):
            return words.terms(name, prefix)
        self._index.ensure(parts_of(name))
        searcher = self._index.searcher
        found = run(lambda: searcher.terms_with_prefix(name, prefix), self._path)
        return pa.array([term for term, _ in found], pa.string())


def _hashed(column: str, keys: list[Any]) -> NDArray[np.uint64]:
    """A few keys are hashed one by one: the first list given to Arrow loads pandas."""
    if len(keys) > FEW_KEYS:
        found: NDArray[np.uint64] = hash_terms(column, keys, HASH_KIND)
        return found
    return np.array([hash_term(column, key, HASH_KIND) for key in keys], np.uint64)
