"""A second cache level on local disk for ranges of remote, immutable files.

Split files never change and have unique names, so a block of one, once fetched, is right for
ever. A read is cut into blocks; those on disk are used, the missing ones are fetched together
(one request where they are near) and kept. A range that is short beside a block is cut into small
ones instead, so that a few bytes do not cost a block; they are kept under a name of their own, and
found in a large block too where there is one. Threads that need the same missing block wait for one
fetch. The cache may be slow, full, broken or gone: the read is then served by the store itself.
Errors of the store are passed on and never cached.

Where the size of a file is known (from the log, from ``stat``, from an upload) its last block is
fetched to the end of the file; where it is not, only what was asked for is fetched and kept.
"""

from __future__ import annotations

import builtins
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from functools import partial
from typing import Any

from indextables.config import Config
from indextables.lru import LRU
from indextables.storage.base import ObjectInfo, Store
from indextables.storage.blockfiles import BlockFolder, CacheStats, Usage
from indextables.storage.ranges import check_range
from indextables.storage.wrapped import WrappedStore

__all__ = ["CacheStats", "CachingStore", "DiskCache", "cached", "default_cache", "flush"]

CACHED_SUFFIXES = (".split", ".idx")
MIN_BLOCK, MAX_BLOCK = 4 << 10, 4 << 20
FINE_BLOCK = 16 << 10
_SHORT = 2
"""A range of less than one block in so many is short."""
_REMEMBERED_SIZES = 200_000
_REMEMBERED_LANDINGS = 4096
_ADMISSION_SHARE = 4

_FINE = "|fine"

Range = tuple[int, int]
Slot = tuple[int, int]
"""(size of the block, number of it)."""
Fetch = Callable[[Sequence[Range]], builtins.list[bytes]]


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """What identifies a cache: processes with equal settings share the folder."""

    path: str
    max_bytes: int
    block_bytes: int = 256 << 10


@dataclass(slots=True)
class _Flight:
    """A block that some thread is fetching now."""

    length: int
    data: Future[bytes]


_caches: weakref.WeakSet[DiskCache] = weakref.WeakSet()


class DiskCache:
    """Blocks of remote files on local disk; see the module's docstring."""

    def __init__(self, settings: CacheSettings, **tuning: Any) -> None:
        if not MIN_BLOCK <= settings.block_bytes <= MAX_BLOCK:
            raise ValueError(f"block size {settings.block_bytes} is outside 4 KB .. 4 MB")
        self.settings = settings
        self._folder = BlockFolder(settings.path, settings.max_bytes, **tuning)
        self._flights: dict[tuple[str, Slot], _Flight] = {}
        self._landed: dict[str, int] = {}
        self._lock = threading.Lock()
        self._fine = min(FINE_BLOCK, settings.block_bytes)
        _caches.add(self)

    @property
    def stats(self) -> CacheStats:
        return self._folder.stats

    def usage(self) -> Usage:
        return self._folder.usage()

    def flush(self) -> Usage:
        """Empty the cache; what was removed."""
        return self._folder.flush()

    def drop(self, key: str) -> None:
        self._folder.drop(key)
        self._folder.drop(key + _FINE)

    def has(self, key: str, size: int) -> bool:
        """Does a whole file of this size lie on disk?"""
        grain = self._grain(size)
        return self._folder.has(self._name(key, grain), range(-(-size // grain)))

    def _grain(self, length: int) -> int:
        """The size of the blocks that a range of this length is cut into."""
        return (
            self.settings.block_bytes
            if _SHORT * length >= self.settings.block_bytes
            else self._fine
        )

    def _name(self, key: str, grain: int) -> str:
        """What blocks of a size are kept under."""
        return key if grain == self.settings.block_bytes else key + _FINE

    def read_ranges(
        self, key: str, ranges: Sequence[Range], fetch: Fetch, size: int | None = None
    ) -> builtins.list[bytes]:
        """The asked ranges of the file ``key``; ``fetch`` reads what is not on disk."""
        needs = self._needs(ranges)
        if sum(needs.values()) > self.settings.max_bytes // _ADMISSION_SHARE:
            self.stats.add(bypassed=1)
            return fetch(ranges)
        blocks = self._blocks(key, needs, fetch, size)
        return [self._cut(blocks, start, end) for start, end in ranges]

    def _needs(self, ranges: Sequence[Range]) -> dict[Slot, int]:
        """Of each touched block, how many of its first bytes are needed."""
        needs: dict[Slot, int] = {}
        for start, end in ranges:
            size = self._grain(end - start)
            for index in range(start // size, -(-end // size) if end > start else 0):
                slot = (size, index)
                needs[slot] = max(needs.get(slot, 0), min(size, end - index * size))
        return needs

    def _blocks(
        self, key: str, needs: dict[Slot, int], fetch: Fetch, size: int | None
    ) -> dict[Slot, bytes]:
        before = self._landed.get(key, 0)
        blocks, missing = self._on_disk(key, needs)
        lengths = {slot: self._length(slot, needs[slot], size) for slot in missing}
        mine, others = self._claim(key, lengths, blocks, before)
        try:
            blocks |= self._fetch(key, {index: mine[index].length for index in mine}, fetch)
        finally:
            self._land(key, mine, blocks)
        for index, flight in others.items():
            landed = _wait_for(flight)
            if landed is None or len(landed) < needs[index]:
                blocks |= self._fetch(key, {index: lengths[index]}, fetch)
            else:
                blocks[index] = landed
        return blocks

    def _on_disk(
        self, key: str, needs: dict[Slot, int]
    ) -> tuple[dict[Slot, bytes], builtins.list[Slot]]:
        blocks: dict[Slot, bytes] = {}
        for slot, need in needs.items():
            data = self._load(key, slot, need)
            if data is not None:
                blocks[slot] = data
        missing = [slot for slot in needs if slot not in blocks]
        self.stats.add(
            hits=len(blocks),
            misses=len(missing),
            hit_bytes=sum(needs[index] for index in blocks),
        )
        return blocks, missing

    def _load(self, key: str, slot: Slot, need: int) -> bytes | None:
        """A block from disk: a small one also as a part of the large one it lies in."""
        grain, index = slot
        data = self._folder.load(self._name(key, grain), index, need)
        if data is not None or grain == self.settings.block_bytes:
            return data
        whole, inside = divmod(index * grain, self.settings.block_bytes)
        data = self._folder.load(key, whole, inside + need)
        return None if data is None else data[inside : inside + grain]

    def _length(self, slot: Slot, need: int, size: int | None) -> int:
        grain, index = slot
        return need if size is None else max(need, min(grain, size - index * grain))

    def _claim(
        self, key: str, lengths: dict[Slot, int], blocks: dict[Slot, bytes], before: int
    ) -> tuple[dict[Slot, _Flight], dict[Slot, _Flight]]:
        """Which missing blocks this thread fetches, and which it waits for.

        A block that landed between the look at the disk and the claim is taken from disk, so
        that threads which start together cause one fetch. ``before`` is how many flights of the
        file had landed before that look.
        """
        mine: dict[Slot, _Flight] = {}
        others: dict[Slot, _Flight] = {}
        with self._lock:
            for index, length in lengths.items():
                flight = self._flights.get((key, index))
                if flight is not None and flight.length >= length:
                    others[index] = flight
                else:
                    mine[index] = self._flights[key, index] = _Flight(length, Future())
            settled = self._landed.get(key, 0) == before
        for index in () if settled else builtins.list(mine):
            data = self._load(key, index, mine[index].length)
            if data is not None:
                blocks[index] = data
                self._land(key, {index: mine.pop(index)}, blocks)
        return mine, others

    def _fetch(self, key: str, lengths: dict[Slot, int], fetch: Fetch) -> dict[Slot, bytes]:
        if not lengths:
            return {}
        wanted = [(size * i, size * i + length) for (size, i), length in lengths.items()]
        fetched = dict(zip(lengths, fetch(wanted), strict=True))
        self.stats.add(fetched_bytes=sum(map(len, fetched.values())))
        for (size, index), data in fetched.items():
            self._folder.save(self._name(key, size), index, data)
        return fetched

    def _land(self, key: str, flights: dict[Slot, _Flight], blocks: dict[Slot, bytes]) -> None:
        """End the flights of this thread; a failed one makes the waiting threads fetch."""
        with self._lock:
            if len(self._landed) >= _REMEMBERED_LANDINGS:
                self._landed.clear()
            self._landed[key] = self._landed.get(key, 0) + len(flights)
            for index, flight in flights.items():
                if self._flights.get((key, index)) is flight:
                    del self._flights[key, index]
        for index, flight in flights.items():
            if index in blocks:
                flight.data.set_result(blocks[index])
            else:
                flight.data.cancel()

    def _cut(self, blocks: dict[Slot, bytes], start: int, end: int) -> bytes:
        size = self._grain(end - start)
        if start == end:
            return b""
        first, last = start // size, (end - 1) // size
        if first == last:
            return blocks[size, first][start - first * size : end - first * size]
        parts = [blocks[size, first][start - first * size :]]
        parts += [blocks[size, index] for index in range(first + 1, last)]
        parts.append(blocks[size, last][: end - last * size])
        return b"".join(parts)

    def _renew_locks(self) -> None:
        self._lock = threading.Lock()
        self._flights, self._landed = {}, {}
        self._folder.renew_locks()


@dataclass(frozen=True, slots=True)
class WholeFiles:
    """Small remote files that are always wanted whole (cross-references), kept on local disk."""

    store: Store
    cache: DiskCache

    def read(self, path: str, size: int) -> bytes:
        source = self.store.inner if isinstance(self.store, CachingStore) else self.store
        fetch: Fetch = partial(source.read_ranges, path)
        return self.cache.read_ranges(_key(source, path), [(0, size)], fetch, size)[0]

    def has(self, path: str, size: int) -> bool:
        return self.cache.has(_key(self.store, path), size)

    def drop(self, path: str) -> None:
        """Forget a file that turned out to be broken."""
        self.cache.drop(_key(self.store, path))


class CachingStore(WrappedStore):
    """A store whose range reads of split and index files go through a disk cache."""

    def __init__(self, inner: Store, cache: DiskCache) -> None:
        super().__init__(inner)
        self.cache = cache
        self._sizes: LRU[str, int] = LRU(_REMEMBERED_SIZES)

    def remember_size(self, path: str, size: int) -> None:
        """Tell the cache where a file ends (the log knows), so that its tail is kept whole."""
        self._sizes.put(path, size)

    def read_range(self, path: str, start: int, end: int) -> bytes:
        if not path.endswith(CACHED_SUFFIXES):
            return self.inner.read_range(path, start, end)
        return self.read_ranges(path, [(start, end)])[0]

    def read_ranges(self, path: str, ranges: Sequence[Range]) -> builtins.list[bytes]:
        if not path.endswith(CACHED_SUFFIXES):
            return self.inner.read_ranges(path, ranges)
        for start, end in ranges:
            check_range(path, start, end)
        return self.cache.read_ranges(
            self._key(path),
            ranges,
            lambda wanted: self.inner.read_ranges(path, wanted),
            self._sizes.get(path),
        )

    def stat(self, path: str) -> ObjectInfo:
        info = self.inner.stat(path)
        self.remember_size(path, info.size)
        return info

    def put(self, path: str, data: bytes) -> None:
        self._forget(path)
        self.inner.put(path, data)

    def put_file(self, path: str, local_path: str) -> None:
        self._forget(path)
        self.inner.put_file(path, local_path)

    def delete(self, paths: Sequence[str]) -> None:
        self.inner.delete(paths)
        for path in paths:
            self._forget(path)

    def _key(self, path: str) -> str:
        return _key(self, path)

    def _forget(self, path: str) -> None:
        self._sizes.remove(path)
        if path.endswith(CACHED_SUFFIXES):
            self.cache.drop(self._key(path))

    def __reduce__(self) -> tuple[Any, ...]:
        return _rewrap, (self.inner, self.cache.settings)


def _key(store: Store, path: str) -> str:
    return f"{store.identity}|{path}"


# -- the caches of this process -----------------------------------------------------------------

_shared: dict[CacheSettings, DiskCache] = {}
_shared_lock = threading.Lock()


def default_cache(config: Config | None = None) -> DiskCache | None:
    """The process's cache for these settings; nothing when it is switched off."""
    chosen = config or Config()
    if not chosen["cache.disk.enabled"]:
        return None
    return _share(_settings(chosen))


def xref_files(store: Store, config: Config) -> WholeFiles | None:
    """The cross-references of a remote store as local disk keeps them; with the disk cache, unless
    that is asked for or refused by itself."""
    wanted = config["xref.localCache.enabled"]
    if not config.is_set("xref.localCache.enabled"):
        wanted = config["cache.disk.enabled"]
    if not wanted or not store.capabilities.remote:
        return None
    return WholeFiles(store, _share(_settings(config, config["xref.localCache.directory"])))


def _settings(config: Config, folder: str | None = None) -> CacheSettings:
    base = config["cache.directoryPath"] or _user_cache_folder()
    place = folder or config["cache.disk.path"] or os.path.join(base, "splits")
    return CacheSettings(place, config["cache.disk.maxSize"], config["cache.disk.blockSize"])


def cached(store: Store, config: Config | None = None) -> Store:
    """The store behind the process's cache, where a cache helps: remote and switched on."""
    if not store.capabilities.remote or isinstance(store, CachingStore):
        return store
    cache = default_cache(config)
    return store if cache is None else CachingStore(store, cache)


def flush(config: Config | None = None) -> Usage:
    """Empty the cache of these settings; what was removed."""
    cache = default_cache(config)
    return Usage(0, 0, 0) if cache is None else cache.flush()


def _share(settings: CacheSettings) -> DiskCache:
    with _shared_lock:
        if settings not in _shared:
            _shared[settings] = DiskCache(settings)
        return _shared[settings]


def _rewrap(inner: Store, settings: CacheSettings) -> CachingStore:
    return CachingStore(inner, _share(settings))


def _user_cache_folder() -> str:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "indextables")


def _wait_for(flight: _Flight) -> bytes | None:
    """The block another thread fetched, or nothing when that thread failed."""
    try:
        return flight.data.result()
    except CancelledError:
        return None


def _start_anew_after_fork() -> None:
    global _shared_lock
    _shared_lock = threading.Lock()
    for cache in _caches:
        cache._renew_locks()


os.register_at_fork(after_in_child=_start_anew_after_fork)
