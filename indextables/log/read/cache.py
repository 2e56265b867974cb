"""What a process remembers of tables, and for how long.

An entry lives for a fixed time counted from when it was written; reading it does not prolong it,
so nothing is served for ever. Keys hold the store, the table's own id and what is cached, so a
table that was dropped and made again at the same place is another table. The latest snapshot is
checked against the log before it is served, and advanced in place of being read again. A writer
replaces what its own commit outdated; ``invalidate`` forgets a table, or everything.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

from indextables.config import Config

_CAPACITY = 256


class LogCache:
    """Entries by (table, kind, ...), each with the time after which it is gone."""

    def __init__(
        self, capacity: int = _CAPACITY, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._capacity = capacity
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: OrderedDict[tuple[Hashable, ...], tuple[float, Any]] = OrderedDict()
        self.hits = 0
        self.misses = 0

    def get(self, table: Hashable, *key: Hashable) -> Any:
        """The entry, or ``None`` when there is none or its time is over."""
        full = (table, *key)
        with self._lock:
            found = self._entries.get(full)
            if found is None or found[0] <= self._clock():
                self._entries.pop(full, None)
                self.misses += 1
                return None
            self._entries.move_to_end(full)
            self.hits += 1
            return found[1]

    def guess(self, place: str, *key: Hashable) -> Any:
        """The newest living entry of any table that was at ``place``; to be checked by the caller.

        Which table is at a place now costs a request; this says what is worth asking beside it.
        """
        with self._lock:
            for (table, *rest), (until, value) in reversed(self._entries.items()):
                is_there = isinstance(table, tuple) and table[:1] == (place,)
                if is_there and tuple(rest) == key and until > self._clock():
                    return value
        return None

    def put(self, ttl_s: float, value: Any, table: Hashable, *key: Hashable) -> None:
        """Keep ``value`` for ``ttl_s`` seconds from now; the least used entries make room."""
        if ttl_s <= 0:
            return
        full = (table, *key)
        with self._lock:
            self._entries[full] = (self._clock() + ttl_s, value)
            self._entries.move_to_end(full)
            while len(self._entries) > self._capacity:
                self._entries.popitem(last=False)

    def replace(self, value: Any, table: Hashable, *key: Hashable) -> None:
        """Swap the value of a living entry; its time is still counted from its first write."""
        full = (table, *key)
        with self._lock:
            found = self._entries.get(full)
            if found is not None and found[0] > self._clock():
                self._entries[full] = (found[0], value)

    def invalidate(self, table: Hashable | None = None) -> int:
        """Forget a table, or everything; says how many entries went."""
        with self._lock:
            gone = [key for key in self._entries if table is None or key[0] == table]
            for key in gone:
                del self._entries[key]
            return len(gone)


SHARED = LogCache()
"""The cache of this process."""


def snapshot_ttl_s(config: Config) -> float:
    """How long a snapshot may be advanced before it is read anew."""
    return _ttl_s(config, "transaction.cache.snapshot.ttl.ms")


def version_ttl_s(config: Config) -> float:
    """How long the parsed actions of a version are kept."""
    return _ttl_s(config, "transaction.cache.version.ttl.ms")


def _ttl_s(config: Config, key: str) -> float:
    """The special setting, else a general one that was given, else the special one's default."""
    if not config["transaction.cache.enabled"]:
        return 0.0
    if config.is_set(key):
        return float(config[key]) / 1000
    if config.is_set("transaction.cache.expirationSeconds"):
        return float(config["transaction.cache.expirationSeconds"])
    if config.is_set("transaction.cache.ttl.ms"):
        return float(config["transaction.cache.ttl.ms"]) / 1000
    return float(config[key]) / 1000
