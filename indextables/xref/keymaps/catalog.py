"""The key maps of a snapshot, opened: what they cover and where their buckets are.

A map is one file, or several that share the hashes (shards). The first one names the splits; of the
others only those are opened that hold a key of the query.

Opening reads the end of a file; what was read is kept in memory, least recently used out first. A
file that is missing, damaged, of another release, or that covers other splits than the log says
covers nothing: its splits are kept by a query and covered again by the next build. What is no fault
of the file (no memory, no descriptors, a store that does not answer) is no verdict on it.
"""

from __future__ import annotations

import time
from base64 import b64decode
from collections.abc import Sequence
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass

import numpy as np
import zstandard
from numpy.typing import NDArray

from indextables.errors import CorruptFileError, IndexTablesError
from indextables.log.actions import AddKeyMap
from indextables.log.read.facts import Fact
from indextables.log.read.view import SnapshotView
from indextables.lru import LRU
from indextables.splits.format.keymap import MOST_SHARD_BITS, KeyMap, open_keymap
from indextables.storage.base import Store
from indextables.storage.pool import submit

PATHS_AT_ONCE = 100_000
Key = tuple[str, str, int, str]


OPEN: LRU[Key, KeyMap] = LRU(size_of=lambda found: found.nbytes)
"""The opened key maps of this process; the latest catalog sets how many bytes they may take."""


@dataclass(frozen=True, slots=True)
class Files:
    """The files of one map, in the order of their shards."""

    actions: tuple[AddKeyMap, ...]

    @property
    def first(self) -> AddKeyMap:
        return self.actions[0]

    @property
    def paths(self) -> list[str]:
        return [action.path for action in self.actions]

    @property
    def size(self) -> int:
        return sum(action.size for action in self.actions)

    def of(self, key: int) -> AddKeyMap:
        """The file that holds a 64-bit key hash."""
        return self.actions[key >> (64 - self.first.shard_bits)]


def grouped(actions: Sequence[AddKeyMap]) -> tuple[list[Files], list[AddKeyMap]]:
    """The maps of a snapshot, and the files of those of which a shard is missing."""
    groups: dict[tuple[str, int, int], dict[int, AddKeyMap]] = {}
    whole, stray = [], []
    for action in actions:
        if not action.shard_bits:
            whole.append(Files((action,)))
            continue
        group = groups.setdefault((action.digest, action.splits, action.shard_bits), {})
        if action.shard in group or action.shard >= 1 << min(action.shard_bits, MOST_SHARD_BITS):
            stray.append(action)
        group.setdefault(action.shard, action)
    for (_, _, bits), group in groups.items():
        if bits <= MOST_SHARD_BITS and sorted(group) == list(range(1 << bits)):
            whole.append(Files(tuple(group[number] for number in sorted(group))))
        else:
            stray += [a for a in group.values() if a not in stray]
    return whole, stray


class Catalog:
    """Opens the key maps of the tables of one store."""

    def __init__(self, store: Store, most_bytes: int, near: Store | None = None) -> None:
        """``near`` reads what opens maps: the same store, perhaps behind the disk cache."""
        self.store = store
        self._near = near or store
        OPEN.limit(most_bytes=most_bytes)

    def _key(self, action: AddKeyMap) -> Key:
        return (self.store.identity, action.path, action.size, action.digest)

    def is_open(self, action: AddKeyMap) -> bool:
        return self._key(action) in OPEN

    def open(self, action: AddKeyMap) -> KeyMap:
        """The map of an action, read now if it is not here."""
        return OPEN.load(self._key(action), lambda: self._read(action))

    def _read(self, action: AddKeyMap) -> KeyMap:
        def read(start: int, end: int) -> bytes:
            return self._near.read_range(action.path, start, end)

        found = open_keymap(read, action.size, action.path, action.tail, _opening(action))
        told = (action.splits, action.digest, action.shard, action.shard_bits)
        if told != (found.splits, found.digest, found.shard.number, found.shard.bits):
            raise CorruptFileError(
                "the key map covers other splits than the log says", path=action.path
            )
        return found

    def open_all(
        self, actions: Sequence[AddKeyMap], timeout: float | None = None
    ) -> list[KeyMap | Exception]:
        """Every map, or why it cannot be used; those not here are read side by side."""
        coming = [None if self.is_open(a) else submit(self.open, a) for a in actions]
        deadline = None if timeout is None else time.monotonic() + timeout
        found: list[KeyMap | Exception] = []
        try:
            for action, future in zip(actions, coming, strict=True):
                left = None if deadline is None else max(0.0, deadline - time.monotonic())
                try:
                    found.append(self.open(action) if future is None else future.result(left))
                except FutureTimeoutError:
                    found.append(TimeoutError("timed out"))
                except (IndexTablesError, OSError, MemoryError) as error:
                    found.append(error)
        finally:
            for future in coming:
                if future is not None:
                    future.cancel()
        return found


def _opening(action: AddKeyMap) -> bytes:
    """The end of a map as the log has it; nothing where it does not, or not as it should."""
    if not action.opening:
        return b""
    try:
        packed = b64decode(action.opening, validate=True)
        return zstandard.ZstdDecompressor().decompress(packed, max_output_size=action.tail)
    except (ValueError, zstandard.ZstdError):
        return b""


PLACES: Fact[tuple[str, int], NDArray[np.int64]] = Fact()


def places_of(snapshot: SnapshotView, found: KeyMap) -> NDArray[np.int64]:
    """Where each covered split stands in the snapshot; -1 for those that are gone."""
    return PLACES.of(snapshot, (found.path, found.size), lambda: _places(snapshot, found))


def _places(snapshot: SnapshotView, found: KeyMap) -> NDArray[np.int64]:
    places = [snapshot.indices_of(some) for some in found.some_paths(PATHS_AT_ONCE)]
    return np.concatenate([np.empty(0, np.int64), *places])
