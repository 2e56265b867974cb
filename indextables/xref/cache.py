"""Loaded cross-references, kept between queries."""

from __future__ import annotations

from indextables.lru import LRU
from indextables.xref.file import LoadedXRef

XRefCache = LRU[tuple[str, str, int], LoadedXRef]
"""Cross-references by store, path and size."""


def new_cache(max_bytes: int) -> XRefCache:
    """An empty cache of so many bytes."""
    return LRU(most_bytes=max_bytes, size_of=lambda loaded: loaded.nbytes)


SHARED = new_cache(1 << 30)
"""The cache of this process."""


def shared_cache(max_bytes: int) -> XRefCache:
    """The cache of this process; its size is what the latest caller asked for."""
    SHARED.limit(most_bytes=max_bytes)
    return SHARED
