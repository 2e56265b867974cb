"""What a process remembers of tables, and for how long.

An entry lives for a fixed time counted from when it was written; reading it does not prolong it,
so nothing is served for ever. Keys hold the store, the table's own id and what is cached, so a
table that was dropped and made again at the same place is another table. The latest snapshot is
checked against the log before it is served, and advanced in place of being read again. A writer
replaces what its own commit outdated; ``invalidate`` forgets a table, or everything.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from indextables.config import Config
from indextables.lru import LRU

if TYPE_CHECKING:
    from indextables.log.read.snapshot import Snapshot, VersionActions

_CAPACITY = 256
V = TypeVar("V")


class Timed(Generic[V]):
    """Values of one kind by table and version, each with the time after which it is gone."""

    def __init__(self, capacity: int, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._kept: LRU[tuple[Hashable, int], tuple[float, V]] = LRU(capacity)
        self.hits = 0
        self.misses = 0

    def get(self, table: Hashable, version: int = 0) -> V | None:
        """The value, or ``None`` when there is none or its time is over."""
        found = self._kept.get((table, version))
        if found is None or found[0] <= self._clock():
            self._kept.remove((table, version))
            self.misses += 1
            return None
        self.hits += 1
        return found[1]

    def guess(self, place: str) -> V | None:
        """The newest living value of any table that was at ``place``; to be checked by the caller.

        Which table is at a place now costs a request; this says what is worth asking beside it.
        """
        for (table, _), (until, value) in self._kept.items():
            if isinstance(table, tuple) and table[:1] == (place,) and until > self._clock():
                return value
        return None

    def put(self, ttl_s: float, value: V, table: Hashable, version: int = 0) -> None:
        """Keep ``value`` for ``ttl_s`` seconds from now."""
        if ttl_s > 0:
            self._kept.put((table, version), (self._clock() + ttl_s, value))

    def replace(self, value: V, table: Hashable, version: int = 0) -> None:
        """Swap a living value; its time is still counted from its first write."""
        found = self._kept.get((table, version))
        if found is not None and found[0] > self._clock():
            self._kept.put((table, version), (found[0], value))

    def invalidate(self, table: Hashable | None = None) -> int:
        """Forget a table, or everything; says how many entries went."""
        return self._kept.remove_if(lambda key, value: table is None or key[0] == table)


class LogCache:
    """The latest snapshots, older ones by version, and the actions of single versions."""

    def __init__(
        self, capacity: int = _CAPACITY, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.latest: Timed[Snapshot] = Timed(capacity, clock)
        self.snapshots: Timed[Snapshot] = Timed(capacity, clock)
        self.versions: Timed[VersionActions] = Timed(capacity, clock)

    @property
    def _kinds(self) -> tuple[Timed[Any], ...]:
        return self.latest, self.snapshots, self.versions

    @property
    def hits(self) -> int:
        return sum(kind.hits for kind in self._kinds)

    @property
    def misses(self) -> int:
        return sum(kind.misses for kind in self._kinds)

    def invalidate(self, table: Hashable | None = None) -> int:
        """Forget a table, or everything; says how many entries went."""
        return sum(kind.invalidate(table) for kind in self._kinds)


SHARED = LogCache()
"""The cache of this process."""


def snapshot_ttl_s(config: Config) -> float:
    """How long a snapshot may be advanced before it is read again."""
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
