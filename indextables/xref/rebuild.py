"""What a build has to do: which cross-references go, which splits each new one covers.

Stale means that a source split is gone. Rules, in order:

1. Forced: every cross-reference in scope is rebuilt from the splits it may cover.
2. Stale, and rebuilding on source changes: its surviving splits join those that are not covered.
3. Uncovered splits join the fullest cross-reference that can still take all of them; if none
   has, they get cross-references of their own, at most ``max_source_splits`` each. Capacity is a
   matter of splits and of bytes.

Splits are told apart by their numbers in the snapshot; only those that are to be covered become
objects, so a plan that finds little to do costs little, however large the table is.

``scope`` limits the work to some splits (a partition predicate): a cross-reference that covers none
of them is left alone, stale or not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from indextables.log.actions import AddFile, AddXRef


@dataclass(frozen=True, slots=True)
class PlannedXRef:
    """One cross-reference to be built, and those it replaces."""

    sources: tuple[AddFile, ...]
    replaces: tuple[AddXRef, ...] = ()

    @property
    def action(self) -> str:
        return "rebuilt" if self.replaces else "created"


@dataclass(frozen=True)
class XRefRebuildPlan:
    """Everything one run has to do."""

    to_build: tuple[PlannedXRef, ...] = ()
    to_remove: tuple[AddXRef, ...] = ()
    unchanged: tuple[AddXRef, ...] = ()
    stale: tuple[AddXRef, ...] = field(default=())


class LiveSplits(Protocol):
    """The splits of a table by number, as a snapshot has them."""

    @property
    def num_files(self) -> int: ...
    def indices_of(self, paths: Any) -> NDArray[np.int64]: ...
    def file(self, i: int) -> AddFile: ...


class _Listed:
    """A list of splits, asked as a snapshot is."""

    def __init__(self, adds: Sequence[AddFile]) -> None:
        self._adds = {add.path: add for add in adds}
        self._numbers = {path: i for i, path in enumerate(self._adds)}
        self._paths = list(self._adds)
        self.num_files = len(self._paths)

    def indices_of(self, paths: Any) -> NDArray[np.int64]:
        return np.array([self._numbers.get(path, -1) for path in paths], np.int64)

    def file(self, i: int) -> AddFile:
        return self._adds[self._paths[i]]


@dataclass(frozen=True)
class _Known:
    """A cross-reference and where its source splits stand; -1 for those that are gone."""

    xref: AddXRef
    places: NDArray[np.int64]

    @property
    def is_stale(self) -> bool:
        return bool((self.places < 0).any())

    @property
    def live(self) -> NDArray[np.int64]:
        return self.places[self.places >= 0]


def evaluate_xref_rebuild(
    existing: Sequence[AddXRef],
    active: LiveSplits | Sequence[AddFile],
    *,
    max_source_splits: int = 1024,
    max_bytes: float = math.inf,
    rebuild_on_source_change: bool = True,
    force: bool = False,
    scope: frozenset[str] | None = None,
) -> XRefRebuildPlan:
    """Decide; nothing is read or written."""
    live: LiveSplits = _Listed(active) if isinstance(active, Sequence) else active
    known = [_Known(x, live.indices_of(x.source_split_paths)) for x in existing]
    concerned = [
        k for k in known if scope is None or not scope.isdisjoint(k.xref.source_split_paths)
    ]
    stale = [k for k in concerned if k.is_stale]
    redo = concerned if force else (stale if rebuild_on_source_change else [])
    again = {id(k) for k in redo}
    kept = [k for k in known if id(k) not in again]
    waiting = _waiting(live, kept, redo, scope)
    planned, absorbed = _pack(waiting, redo, kept, live, max_source_splits, max_bytes)
    replaced = {id(x) for p in planned for x in p.replaces}
    return XRefRebuildPlan(
        tuple(planned),
        tuple(k.xref for k in redo if id(k.xref) not in replaced),
        tuple(k.xref for k in kept if k is not absorbed),
        tuple(k.xref for k in stale),
    )


def _waiting(
    live: LiveSplits, kept: list[_Known], redo: list[_Known], scope: frozenset[str] | None
) -> NDArray[np.int64]:
    """The splits to cover: first those of cross-references that go, then those without one."""
    free = np.ones(live.num_files, np.bool_)
    for one in kept:
        free[one.live] = False
    orphans = np.concatenate([np.empty(0, np.int64), *(one.live for one in redo)])
    orphans = orphans[np.sort(np.unique(orphans, return_index=True)[1])]
    orphans = orphans[free[orphans]]
    free[orphans] = False
    if scope is not None:
        inside = live.indices_of(list(scope))
        mask = np.zeros(live.num_files, np.bool_)
        mask[inside[inside >= 0]] = True
        free &= mask
    return np.concatenate([orphans, np.flatnonzero(free)])


def _has_room(xref: AddXRef, more: int, most: int, max_bytes: float) -> bool:
    """Could it take that many more splits, each as large as its own are on average?"""
    count = len(xref.source_split_paths)
    return count + more <= most and xref.size * (count + more) <= max_bytes * max(1, count)


def _pack(
    waiting: NDArray[np.int64],
    redo: list[_Known],
    kept: list[_Known],
    live: LiveSplits,
    most: int,
    max_bytes: float,
) -> tuple[list[PlannedXRef], _Known | None]:
    """What to build, and the cross-reference that takes the new splits in."""
    if not len(waiting):
        return [], None
    absorbed: _Known | None = None
    if not redo:
        room = [
            k for k in kept if not k.is_stale and _has_room(k.xref, len(waiting), most, max_bytes)
        ]
        if room:
            absorbed = max(room, key=lambda k: len(k.places))
            waiting = np.concatenate([absorbed.places, waiting])
    replaces = tuple(k.xref for k in redo or ([absorbed] if absorbed else []))
    planned = []
    for start in range(0, len(waiting), most):
        sources = tuple(live.file(int(i)) for i in waiting[start : start + most])
        planned.append(PlannedXRef(sources, replaces if start == 0 else ()))
    return planned, absorbed
