"""What is computed once from something that never changes: a snapshot, or a segment of the log.

A module that computes such a value declares a ``Fact`` with the types of its keys and values, for
example the typed bounds of a column by the column's name and type. The value is computed at the
first call for a key and kept with the snapshot. Facts of different modules cannot collide, and the
type checker knows what comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Generic, Protocol, TypeVar

from indextables.lru import LRU

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Fact(Generic[K, V]):
    """One kind of value. ``most`` bounds how many are kept with each snapshot."""

    def __init__(self, most: int | None = None) -> None:
        self.most = most

    def of(self, holder: HasFacts, key: K, compute: Callable[[], V]) -> V:
        """The value of a key, computed now if it is not known yet."""
        return holder.facts.cache(self).load(key, compute)


class Facts:
    """All that was computed from one snapshot or segment."""

    def __init__(self) -> None:
        self._caches: dict[Fact[Any, Any], LRU[Any, Any]] = {}

    def cache(self, fact: Fact[K, V]) -> LRU[K, V]:
        """The values of one kind."""
        found = self._caches.get(fact)
        return self._caches.setdefault(fact, LRU(fact.most)) if found is None else found

    def __len__(self) -> int:
        return sum(map(len, self._caches.values()))


class HasFacts(Protocol):
    """Whatever keeps facts: it must never change."""

    @property
    def facts(self) -> Facts: ...
