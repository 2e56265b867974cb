"""The key maps of a snapshot, opened: what they cover and where their buckets are.

Opening reads the end of a file; what was read is kept in memory, least recently used out first. A
file that is missing, damaged, of another release, or that covers other splits than the log says
covers nothing: its splits are kept by a query and covered anew by the next build. What is no fault
of the file (no memory, no descriptors, a store that does not answer) is no verdict on it.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indextables.errors import CorruptFileError, IndexTablesError
from indextables.log.actions import AddKeyMap
from indextables.splits.format.keymap import KeyMap, open_keymap
from indextables.storage.base import Store
from indextables.storage.pool import submit
from indextables.xref.keymaps.layout import digest_of

Key = tuple[str, str, int, str]


class OpenMaps:
    """Opened key maps, kept between queries; thread-safe, bounded by bytes."""

    def __init__(self) -> None:
        self._found: OrderedDict[Key, KeyMap] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Key) -> KeyMap | None:
        with self._lock:
            found = self._found.get(key)
            if found is not None:
                self._found.move_to_end(key)
            return found

    def keep(self, key: Key, found: KeyMap, most: int) -> None:
        with self._lock:
            self._found[key] = found
            total = sum(m.nbytes for m in self._found.values())
            while total > most and len(self._found) > 1:
                _, old = self._found.popitem(last=False)
                total -= old.nbytes

    def clear(self) -> None:
        with self._lock:
            self._found.clear()


OPEN = OpenMaps()


class Catalog:
    """Opens the key maps of the tables of one store."""

    def __init__(self, store: Store, most_bytes: int, opened: OpenMaps = OPEN) -> None:
        self.store = store
        self._most = most_bytes
        self._open = opened

    def _key(self, action: AddKeyMap) -> Key:
        return (self.store.identity, action.path, action.size, action.digest)

    def is_open(self, action: AddKeyMap) -> bool:
        return self._open.get(self._key(action)) is not None

    def open(self, action: AddKeyMap) -> KeyMap:
        """The map of an action, read now if it is not here."""
        key = self._key(action)
        found = self._open.get(key)
        if found is None:
            found = open_keymap(
                lambda a, b: self.store.read_range(action.path, a, b), action.size, action.path
            )
            if len(found.paths) != action.splits or digest_of(found.paths) != action.digest:
                raise CorruptFileError(
                    "the key map covers other splits than the log says", path=action.path
                )
            self._open.keep(key, found, self._most)
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


def places_of(snapshot: Any, found: KeyMap) -> NDArray[np.int64]:
    """Where each covered split stands in the snapshot; -1 for those that are gone."""
    key = ("keymap.places", found.path, found.size)
    known: NDArray[np.int64] | None = snapshot.derived.get(key)
    if known is None:
        known = snapshot.derived[key] = snapshot.indices_of(found.paths)
    return known
