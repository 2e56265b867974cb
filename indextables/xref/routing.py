"""Which router a snapshot gets: one for what the table has, none where it has nothing."""

from __future__ import annotations

from indextables.config import Config
from indextables.log.read.view import SnapshotView
from indextables.storage.base import Store
from indextables.xref.keymaps.router import KeyMapRouter
from indextables.xref.router import XRefQueryRouter


def router_of(
    store: Store, snapshot: SnapshotView, config: Config
) -> KeyMapRouter | XRefQueryRouter | None:
    """The router of a snapshot; ``None`` where there is nothing to route by."""
    if snapshot.keymaps:
        return KeyMapRouter(store, config)
    return XRefQueryRouter(store, config) if snapshot.xrefs else None
