"""The one cache of the package: values by key, the least recently used dropped first.

The bound is a number of entries, a number of bytes, or both; the newest entry stays even if it
alone exceeds the bytes, since its caller holds it anyway. Threads share a cache freely. ``load``
makes a missing value once: other threads that ask for the same key wait for it, and threads that
ask for other keys do not. A value that could not be made leaves nothing behind, and the next caller
tries again.

A forked child starts with empty caches and fresh locks. What its parent held is neither used nor
freed there: open clients and indexes have threads that do not exist in the child, and closing them
would wait for these threads forever.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_MISSING: Any = object()
_every: weakref.WeakSet[LRU[Any, Any]] = weakref.WeakSet()
_inherited: list[Any] = []


class CacheUse(NamedTuple):
    """How a cache was used since it was made, and what it holds now."""

    hits: int
    misses: int
    evicted: int
    entries: int
    nbytes: int


class LRU(Generic[K, V]):
    """At most ``most`` entries and ``most_bytes`` bytes; ``None`` sets no bound.

    ``size_of`` measures a value when it is put. With ``grows``, all values are measured again at
    every put, for values that become larger while they are held.
    """

    def __init__(
        self,
        most: int | None = None,
        *,
        most_bytes: int | None = None,
        size_of: Callable[[V], int] | None = None,
        grows: bool = False,
    ) -> None:
        self.most = most
        self.most_bytes = most_bytes
        self._size_of = size_of
        self._grows = grows
        self._hits = self._misses = self._evicted = 0
        self._start_empty()
        _every.add(self)

    def _start_empty(self) -> None:
        self._lock = threading.Lock()
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._being_made: dict[K, threading.Lock] = {}
        self._nbytes = 0

    # -- reading --------------------------------------------------------------------------------

    def get(self, key: K) -> V | None:
        """The value, now the most recently used; ``None`` where there is none."""
        found = self._find(key)
        return None if found is _MISSING else found

    def load(self, key: K, make: Callable[[], V]) -> V:
        """The value, made now if it is not here."""
        found = self._find(key)
        if found is not _MISSING:
            return found
        with self._lock:
            turn = self._being_made.setdefault(key, threading.Lock())
        with turn:
            with self._lock:
                if key in self._entries:
                    return self._entries[key][0]
            try:
                made = make()
                self.put(key, made)
            finally:
                with self._lock:
                    self._being_made.pop(key, None)
        return made

    def _find(self, key: K) -> V:
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                self._misses += 1
                missing: V = _MISSING
                return missing
            self._hits += 1
            self._entries.move_to_end(key)
            return found[0]

    def items(self) -> list[tuple[K, V]]:
        """All entries, the most recently used first."""
        with self._lock:
            return [(key, value) for key, (value, _) in reversed(self._entries.items())]

    def __contains__(self, key: object) -> bool:
        """Whether a key is here, without counting as a use of it."""
        return key in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def use(self) -> CacheUse:
        with self._lock:
            self._measure()
            entries = len(self._entries)
            return CacheUse(self._hits, self._misses, self._evicted, entries, self._nbytes)

    # -- changing -------------------------------------------------------------------------------

    def put(self, key: K, value: V) -> None:
        """Keep a value in the place of an earlier one; others are dropped to stay in bounds."""
        size = 0 if self._size_of is None else self._size_of(value)
        with self._lock:
            gone = self._remove(key)
            self._entries[key] = value, size
            self._nbytes += size
            gone += self._evict()
        del gone

    def limit(self, *, most: int | None = None, most_bytes: int | None = None) -> None:
        """Set other bounds."""
        with self._lock:
            self.most, self.most_bytes = most, most_bytes
            gone = self._evict()
        del gone

    def remove(self, key: K) -> None:
        """Drop an entry if it is here."""
        with self._lock:
            gone = self._remove(key)
        del gone

    def remove_if(self, unwanted: Callable[[K, V], bool]) -> int:
        """Drop the entries that a test names; says how many."""
        with self._lock:
            keys = [key for key, (value, _) in self._entries.items() if unwanted(key, value)]
            gone = [value for key in keys for value in self._remove(key)]
        return len(gone)

    def clear(self) -> int:
        """Drop everything; says how many entries there were."""
        return self.remove_if(lambda key, value: True)

    def _remove(self, key: K) -> list[V]:
        """What is dropped, for the caller to let go of when the lock is free again."""
        if key not in self._entries:
            return []
        value, size = self._entries.pop(key)
        self._nbytes -= size
        return [value]

    def _evict(self) -> list[V]:
        self._measure()
        gone: list[V] = []
        while len(self._entries) > 1 and self._is_over():
            gone += self._remove(next(iter(self._entries)))
            self._evicted += 1
        return gone

    def _is_over(self) -> bool:
        too_many = self.most is not None and len(self._entries) > self.most
        return too_many or (self.most_bytes is not None and self._nbytes > self.most_bytes)

    def _measure(self) -> None:
        if self._grows and self._size_of is not None:
            for key, (value, _) in self._entries.items():
                self._entries[key] = value, self._size_of(value)
            self._nbytes = sum(size for _, size in self._entries.values())

    def __repr__(self) -> str:
        return f"LRU({self.use})"


def _after_fork() -> None:
    for cache in list(_every):
        _inherited.append(cache._entries)
        cache._start_empty()


os.register_at_fork(after_in_child=_after_fork)
