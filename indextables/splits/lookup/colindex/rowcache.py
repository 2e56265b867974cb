"""Rows found lately, by index file, column and question.

At most 100 entries (``INDEXTABLES_ROWID_CACHE_SIZE``, else ``BUNDLEBASE_ROWID_CACHE_SIZE``; what is
not a positive number is the default) and at most 64 MiB, whichever is reached first.
"""

from __future__ import annotations

import os

from indextables.lru import LRU
from indextables.splits.lookup.colindex.metrics import METRICS
from indextables.splits.lookup.colindex.postings import Rows

DEFAULT_CAPACITY = 100
MOST_BYTES = 64 << 20
VARIABLES = ("INDEXTABLES_ROWID_CACHE_SIZE", "BUNDLEBASE_ROWID_CACHE_SIZE")


def configured_capacity() -> int:
    """The number of entries the environment asks for."""
    for name in VARIABLES:
        text = os.environ.get(name, "").strip()
        if text.isdigit() and int(text) > 0:
            return int(text)
    return DEFAULT_CAPACITY


def cache_key(index_path: str, column: str, predicate: str) -> str:
    return f"{index_path}#{column}#{predicate}"


class RowIdCache:
    """Rows by question, counted in the metrics of column indexes."""

    def __init__(self, capacity: int | None = None, most_bytes: int = MOST_BYTES) -> None:
        self.capacity = capacity if capacity and capacity > 0 else configured_capacity()
        self.most_bytes = most_bytes
        self._kept: LRU[str, Rows] = LRU(
            self.capacity, most_bytes=most_bytes, size_of=lambda rows: rows.nbytes
        )

    def get(self, key: str) -> Rows | None:
        found = self._kept.get(key)
        METRICS.cache_used(hit=found is not None)
        return found

    def insert(self, key: str, rows: Rows) -> None:
        """Keep rows, unless they alone are more than the cache may hold."""
        if rows.nbytes <= self.most_bytes:
            self._kept.put(key, rows)
            METRICS.cache_size = (len(self._kept), self.capacity)

    def clear(self) -> int:
        """Drop all rows; says how many entries there were."""
        METRICS.cache_size = (0, self.capacity)
        return self._kept.clear()

    def __len__(self) -> int:
        return len(self._kept)
