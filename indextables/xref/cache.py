"""Loaded cross-references, kept between queries: least recently used out first, by bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from indextables.xref.file import LoadedXRef

Key = tuple[str, str, int]


class XRefCache:
    """Thread-safe; a file that is being loaded is loaded once."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._loaded: OrderedDict[Key, LoadedXRef] = OrderedDict()
        self._locks: dict[Key, threading.Lock] = {}
        self._lock = threading.Lock()
        self.hits = 0
        self.misses = 0

    @property
    def nbytes(self) -> int:
        with self._lock:
            return sum(x.nbytes for x in self._loaded.values())

    def __len__(self) -> int:
        return len(self._loaded)

    def holds(self, key: Key) -> bool:
        with self._lock:
            return key in self._loaded

    def get(self, key: Key, load: Callable[[], LoadedXRef]) -> LoadedXRef:
        """The cross-reference, loaded now if it is not here."""
        with self._lock:
            found = self._loaded.get(key)
            if found is not None:
                self._loaded.move_to_end(key)
                self.hits += 1
                return found
            own = self._locks.setdefault(key, threading.Lock())
        with own:
            with self._lock:
                if key in self._loaded:
                    return self._loaded[key]
            loaded = load()
            self._keep(key, loaded)
            return loaded

    def _keep(self, key: Key, loaded: LoadedXRef) -> None:
        with self._lock:
            self.misses += 1
            self._loaded[key] = loaded
            self._locks.pop(key, None)
            total = sum(x.nbytes for x in self._loaded.values())
            while total > self.max_bytes and len(self._loaded) > 1:
                _, old = self._loaded.popitem(last=False)
                total -= old.nbytes

    def clear(self) -> None:
        with self._lock:
            self._loaded.clear()


_shared: XRefCache | None = None


def shared_cache(max_bytes: int) -> XRefCache:
    """The cache of this process; its size is what the latest caller asked for."""
    global _shared
    if _shared is None:
        _shared = XRefCache(max_bytes)
    _shared.max_bytes = max_bytes
    return _shared
