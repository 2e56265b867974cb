"""The key maps of a snapshot, opened: what they cover and where their buckets are.

Opening reads the end of a file; what was read is kept in memory, least recently used out first. A
file that is missing, damaged, of another release, or that covers other splits than the log says
covers nothing: its splits are kept by a query and covered again by the next build. What is no fault
of the file (no memory, no descriptors, a store that does not answer) is no verdict on it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import TimeoutError as FutureTimeoutError

import numpy as np
from numpy.typing import NDArray

from indextables.errors import CorruptFileError, IndexTablesError
from indextables.log.actions import AddKeyMap
from indextables.log.read.facts import Fact
from indextables.log.read.view import SnapshotView
from indextables.lru import LRU
from indextables.splits.format.keymap import KeyMap, open_keymap
from indextables.storage.base import Store
from indextables.storage.pool import submit
from indextables.xref.keymaps.layout import digest_of

Key = tuple[str, str, int, str]


OPEN: LRU[Key, KeyMap] = LRU(size_of=lambda found: found.nbytes)
"""The opened key maps of this process; the latest catalog sets how many bytes they may take."""


class Catalog:
    """Opens the key maps of the tables of one store."""

    def __init__(self, store: Store, most_bytes: int) -> None:
        self.store = store
        OPEN.limit(most_bytes=most_bytes)

    def _key(self, action: AddKeyMap) -> Key:
        return (self.store.identity, action.path, action.size, action.digest)

    def is_open(self, action: AddKeyMap) -> bool:
        return self._key(action) in OPEN

    def open(self, action: AddKeyMap) -> KeyMap:
        """The map of an action, read now if it is not here."""
        return OPEN.load(self._key(action), lambda: self._read(action))

    def _read(self, action: AddKeyMap) -> KeyMap:
        found = open_keymap(
            lambda a, b: self.store.read_range(action.path, a, b), action.size, action.path
        )
        if len(found.paths) != action.splits or digest_of(found.paths) != action.digest:
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


PLACES: Fact[tuple[str, int], NDArray[np.int64]] = Fact()


def places_of(snapshot: SnapshotView, found: KeyMap) -> NDArray[np.int64]:
    """Where each covered split stands in the snapshot; -1 for those that are gone."""
    return PLACES.of(snapshot, (found.path, found.size), lambda: snapshot.indices_of(found.paths))
