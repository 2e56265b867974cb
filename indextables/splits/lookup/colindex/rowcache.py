"""Rows found lately, by index file, column and question.

At most 100 entries (``INDEXTABLES_ROWID_CACHE_SIZE``, else ``BUNDLEBASE_ROWID_CACHE_SIZE``; what is
not a positive number is the default) and at most 64 MiB, whichever is reached first. The entry used
longest ago goes first.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict

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
    """Least recently used rows go first."""

    def __init__(self, capacity: int | None = None, most_bytes: int = MOST_BYTES) -> None:
        self.capacity = capacity if capacity and capacity > 0 else configured_capacity()
        self.most_bytes = most_bytes
        self._entries: OrderedDict[str, Rows] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, key: str) -> Rows | None:
        with self._lock:
            found = self._entries.get(key)
            if found is not None:
                self._entries.move_to_end(key)
        METRICS.cache_used(hit=found is not None)
        return found

    def insert(self, key: str, rows: Rows) -> None:
        with self._lock:
            old = self._entries.pop(key, None)
            self._bytes += rows.nbytes - (0 if old is None else old.nbytes)
            self._entries[key] = rows
            while len(self._entries) > self.capacity or self._bytes > self.most_bytes:
                _, gone = self._entries.popitem(last=False)
                self._bytes -= gone.nbytes
            METRICS.cache_size = (len(self._entries), self.capacity)

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()
            self._bytes = 0
            METRICS.cache_size = (0, self.capacity)

    def __len__(self) -> int:
        return len(self._entries)
