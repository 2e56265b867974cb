"""What a build has to do: which cross-references go, which splits each new one covers.

Stale means that a source split is gone. Rules, in order:

1. Forced: every cross-reference in scope is rebuilt from the splits it may cover.
2. Stale, and rebuilding on source changes: its surviving splits join those nobody covers.
3. Uncovered splits join the fullest cross-reference that still has room for all of them; if none
   has, they get cross-references of their own, at most ``max_source_splits`` each. Room is a
   matter of splits and of bytes.

``scope`` limits the work to some splits (a partition predicate): a cross-reference that covers none
of them is left alone, stale or not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from indextables.log.actions import AddFile, AddXRef


@dataclass(frozen=True, slots=True)
class PlannedXRef:
    """One cross-reference to be built, and those it replaces."""

    sources: tuple[AddFile, ...]
    replaces: tuple[AddXRef, ...] = ()
    reason: str = "replaced"

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


def evaluate_xref_rebuild(
    existing: Sequence[AddXRef],
    active: Sequence[AddFile],
    *,
    max_source_splits: int = 1024,
    max_bytes: float = math.inf,
    rebuild_on_source_change: bool = True,
    force: bool = False,
    scope: frozenset[str] | None = None,
) -> XRefRebuildPlan:
    """Decide; nothing is read or written."""
    live = {f.path: f for f in active}
    inside = frozenset(live) if scope is None else scope
    concerned = [x for x in existing if scope is None or inside.intersection(x.source_split_paths)]
    stale = [x for x in concerned if any(p not in live for p in x.source_split_paths)]
    redo = list(concerned) if force else (stale if rebuild_on_source_change else [])
    kept = [x for x in existing if x not in redo]
    covered = {p for x in kept for p in x.source_split_paths}
    orphans = [p for x in redo for p in x.source_split_paths if p in live]
    waiting = [p for p in dict.fromkeys([*orphans, *live]) if p not in covered]
    if scope is not None:
        waiting = [p for p in waiting if p in inside or p in set(orphans)]
    roomy = [x for x in kept if _has_room(x, len(waiting), max_source_splits, max_bytes)]
    planned, absorbed = _pack(waiting, redo, roomy, live, max_source_splits)
    removed = [x for x in redo if not any(x in p.replaces for p in planned)]
    unchanged = [x for x in kept if x not in absorbed]
    return XRefRebuildPlan(tuple(planned), tuple(removed), tuple(unchanged), tuple(stale))


def _has_room(xref: AddXRef, more: int, most: int, max_bytes: float) -> bool:
    """Could it take that many more splits, each as large as its own are on average?"""
    count = len(xref.source_split_paths)
    return count + more <= most and xref.size * (count + more) <= max_bytes * max(1, count)


def _pack(
    waiting: list[str],
    redo: list[AddXRef],
    roomy: list[AddXRef],
    live: dict[str, AddFile],
    most: int,
) -> tuple[list[PlannedXRef], list[AddXRef]]:
    if not waiting:
        return [], []
    absorbed: list[AddXRef] = []
    if not redo:
        fresh = [x for x in roomy if all(p in live for p in x.source_split_paths)]
        if fresh:
            absorbed = [max(fresh, key=lambda x: len(x.source_split_paths))]
            waiting = [*absorbed[0].source_split_paths, *waiting]
    replaces = tuple(redo or absorbed)
    reason = "source_changed" if redo else "replaced"
    groups = [waiting[i : i + most] for i in range(0, len(waiting), most)]
    planned = []
    for i, group in enumerate(groups):
        sources = tuple(live[p] for p in group)
        planned.append(PlannedXRef(sources, replaces if i == 0 else (), reason))
    return planned, absorbed
