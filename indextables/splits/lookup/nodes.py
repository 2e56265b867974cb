"""What an index is asked, after translation: a small tree of row sources.

A node stands for a set of rows that *contains* every row wanted; it is ``exact`` if it is equal to
the wanted set. That one rule decides everything: a conjunction may drop parts it cannot answer, a
disjunction may not, and only an exact node can be inverted. Rows of an inexact node are
verified against the rows member.

``Index`` is what the index is asked (``asks``), ``Hash`` a look-up in a hash table,
``Spans`` the rows of some zones, ``All`` and ``Nothing`` are what they say. Index parts side by
side are joined into one ask, which zones narrow where they are few.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from indextables.splits.lookup.asks import Ask, InZones, Joined, Others


@dataclass(frozen=True, slots=True)
class All:
    """Every row."""

    exact: bool = True


@dataclass(frozen=True, slots=True)
class Nothing:
    """No row."""

    exact: bool = True


@dataclass(frozen=True, slots=True)
class Index:
    """Rows that the index finds."""

    ask: Ask
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Hash:
    """Rows whose column may hold one of the values with these key texts."""

    column: str
    keys: tuple[str, ...]
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Spans:
    """Rows of the zones whose bounds allow a number."""

    zones: tuple[int, ...]
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Both:
    """Rows in all children; at most one child is an ``Index``."""

    children: tuple[Node, ...]
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Either:
    """Rows in any child; at most one child is an ``Index``."""

    children: tuple[Node, ...]
    exact: bool = True


Node: TypeAlias = All | Nothing | Index | Hash | Spans | Both | Either

UNKNOWN = All(exact=False)


def inexact(node: Node) -> Node:
    """The same rows, to be verified."""
    return node if not node.exact or isinstance(node, Nothing) else replace(node, exact=False)


def intersect(nodes: Iterable[Node]) -> Node:
    """Rows in all of them."""
    given = list(nodes)
    flat = [c for n in given for c in (n.children if isinstance(n, Both) else (n,))]
    if any(isinstance(n, Nothing) for n in flat):
        return Nothing()
    exact = all(n.exact for n in given)
    kept = _narrowed([n for n in flat if not isinstance(n, All)])
    if any(isinstance(n, Nothing) for n in kept):
        return Nothing()
    return _joined(kept, "Must", Both, exact) if kept else All(exact)


def _narrowed(nodes: list[Node]) -> list[Node]:
    """Zones that all of a conjunction allow, handed to the index if it is asked anyway."""
    spans = [n for n in nodes if isinstance(n, Spans)]
    if not spans:
        return nodes
    zones = set(spans[0].zones).intersection(*(s.zones for s in spans[1:]))
    common = replace(spans[0], zones=tuple(sorted(zones)))
    others = [n for n in nodes if not isinstance(n, Spans)]
    if not zones:
        return [Nothing()]
    if any(isinstance(n, Index) for n in others):
        return [*others, Index(InZones(common.zones), exact=False)]
    return [*others, common]


def unite(nodes: Iterable[Node]) -> Node:
    """Rows in any of them."""
    given = [n for n in nodes if not isinstance(n, Nothing)]
    flat = [c for n in given for c in (n.children if isinstance(n, Either) else (n,))]
    whole = [n for n in flat if isinstance(n, All)]
    if whole:
        return All(any(n.exact for n in whole))
    exact = all(n.exact for n in given)
    return _joined(flat, "Should", Either, exact) if flat else Nothing()


Occur = Literal["Must", "Should"]


def _joined(nodes: Sequence[Node], occur: Occur, kind: type[Both | Either], exact: bool) -> Node:
    merged = _merge_indexes(nodes, occur)
    if len(merged) > 1:
        return kind(tuple(merged), exact)
    return merged[0] if exact else inexact(merged[0])


def _merge_indexes(nodes: Sequence[Node], occur: Occur) -> list[Node]:
    found = [n for n in nodes if isinstance(n, Index)]
    others: list[Node] = [n for n in nodes if not isinstance(n, Index)]
    if not found:
        return others
    if len(found) == 1:
        return [found[0], *others]
    ask = Joined(occur, tuple(n.ask for n in found))
    return [Index(ask, all(n.exact for n in found)), *others]


def complement(node: Node) -> Node:
    """Rows that are not in it; unknown unless the node is exact and in the index."""
    if not node.exact:
        return UNKNOWN
    if isinstance(node, All):
        return Nothing()
    if isinstance(node, Nothing):
        return All()
    return Index(Others(node.ask)) if isinstance(node, Index) else UNKNOWN


def has_hash(node: Node) -> bool:
    """Does a hash table narrow the rows down?"""
    if isinstance(node, Both):
        return any(has_hash(c) for c in node.children)
    if isinstance(node, Either):
        return all(has_hash(c) for c in node.children)
    return isinstance(node, Hash)
