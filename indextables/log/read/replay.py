"""Versions on top of a snapshot: which files they add, hide, and bring back.

All actions of the new versions are folded into one set of files first (the latest action per path
wins, an add moves its path to the end), then the paths they touched are looked up below, once, in
bulk. The new files become one segment, packed when it is large. Small segments at the end are
merged as they come, each merge at least doubling them, so a table that is refreshed a million
times has a few dozen segments, not a million.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from indextables.log.actions import AddFile, RemoveFile
from indextables.log.checkpoint.encode import pack_adds
from indextables.log.read.columns import Mask, RowSegment, Segment, hash_paths
from indextables.log.read.ledger import Ledger
from indextables.native._textunpack import repeated_hashes

PACK_FROM = 8192


class Tail:
    """The files that some versions add and the paths they touch."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.adds: dict[str, AddFile] = {}
        self.touched: dict[str, None] = {}

    def apply(self, version: int, timestamp_ms: int, actions: Iterable[object]) -> None:
        """Fold in one version."""
        batch = list(actions)
        self.ledger = self.ledger.applied(batch)  # type: ignore[arg-type]
        for action in batch:
            if isinstance(action, AddFile):
                self.touched[action.path] = None
                self.adds.pop(action.path, None)
                self.adds[action.path] = _stamped(action, version, timestamp_ms)
            elif isinstance(action, RemoveFile):
                self.touched[action.path] = None
                self.adds.pop(action.path, None)


def _stamped(add: AddFile, version: int, timestamp_ms: int) -> AddFile:
    if add.added_at_version is None or add.added_at_timestamp is None:
        return add.stamped(version, timestamp_ms)
    return add


def hide(segments: list[Segment], live: list[Mask | None], paths: list[str]) -> None:
    """Mark these paths dead wherever they are; masks are copied, never changed in place."""
    if not paths:
        return
    hashes = hash_paths(paths)
    for k, segment in enumerate(segments):
        rows = segment.find(paths, hashes)
        rows = rows[rows >= 0]
        if len(rows):
            mask = live[k]
            mask = np.ones(segment.n, np.bool_) if mask is None else mask.copy()
            mask[rows] = False
            live[k] = mask


def append_rows(segments: list[Segment], live: list[Mask | None], adds: list[AddFile]) -> None:
    """Put new files at the end, merging small segments of typed actions on the way."""
    if not adds:
        return
    while segments:
        last, mask = segments[-1], live[-1]
        if not isinstance(last, RowSegment) or last.n > 2 * len(adds):
            break
        adds = [a for row, a in enumerate(last.adds) if mask is None or mask[row]] + adds
        segments.pop()
        live.pop()
    new = pack_adds(adds) if len(adds) >= PACK_FROM else [RowSegment(adds)]
    segments += new
    live += [None] * len(new)


def hide_earlier_duplicates(segments: list[Segment], live: list[Mask | None]) -> None:
    """Of entries with the same path the last one counts; foreign states may hold several."""
    twice = repeated_hashes([segment.sorted_hashes() for segment in segments])
    if not len(twice):
        return
    seen: set[str] = set()
    for k in range(len(segments) - 1, -1, -1):
        suspects = np.flatnonzero(np.isin(segments[k].path_hashes(), twice))
        for row in suspects[::-1].tolist():
            path = segments[k].path(row)
            if path in seen:
                _hide_row(segments, live, k, row)
            elif (mask := live[k]) is None or mask[row]:
                seen.add(path)


def _hide_row(segments: list[Segment], live: list[Mask | None], k: int, row: int) -> None:
    mask = live[k]
    mask = np.ones(segments[k].n, np.bool_) if mask is None else mask.copy()
    mask[row] = False
    live[k] = mask
