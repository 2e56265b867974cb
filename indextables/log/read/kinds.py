"""What kind of table a log describes, and whether this release can read it.

The log says which splits are live; what a split holds depends on the kind of table. The splits of
a *companion* table of JVM IndexTables hold an index only, and the rows stay in a Delta, Iceberg or
Parquet table. Read as an ordinary table it would have the right number of rows, every value NULL
and no match for any filter. Its protocol is the one of ordinary tables, so the protocol does not
keep anybody away; this module does. Companions of our own name the feature ``companion`` in their
protocol; what can be read of them, and how, ``indextables.companion`` decides.

``kind_of`` names the kind and ``READABLE`` lists the kinds that can be read: who teaches this
release another kind adds it there. An unknown kind is refused, never read as if it were known.
"""

from __future__ import annotations

from indextables.errors import ProtocolError
from indextables.log.actions.protocol import COMPANION as FEATURE
from indextables.log.actions.protocol import is_companion, supports
from indextables.log.read.columns import Segment
from indextables.log.read.facts import Fact
from indextables.log.read.snapshot import Snapshot

ORDINARY = "ordinary"
COMPANION = "companion"
OWN_COMPANION = "companion of ours"
READABLE = frozenset((ORDINARY, OWN_COMPANION))

_PROVIDERS = frozenset(("indextables", "tantivy4spark"))
_COMPANION_LISTS = ("companionSourceFiles",)
_COMPANION_TEXTS = ("companionFastFieldMode",)


def kind_of(snapshot: Snapshot) -> str:
    """``ordinary``, ``companion`` (ours or not), or the name of an unknown format."""
    metadata = snapshot.metadata
    if metadata.format_provider.lower() not in _PROVIDERS:
        return metadata.format_provider
    if is_companion(metadata) and supports(snapshot.protocol, FEATURE):
        return OWN_COMPANION
    known = () if snapshot.is_unread else snapshot.segments
    if is_companion(metadata) or any(map(_has_companion_splits, known)):
        return COMPANION
    return ORDINARY


def check_kind(snapshot: Snapshot, path: str) -> None:
    """Refuse a table whose kind this release does not read."""
    kind = kind_of(snapshot)
    if kind in READABLE:
        return
    if kind == COMPANION:
        raise ProtocolError(
            "the table is a companion of another table: its splits hold an index, not the rows",
            path=path,
            version=snapshot.version,
            hint="Read the table it was built for, this one with JVM IndexTables, or build a "
            "companion of ours: indextables.index(source, at)",
        )
    raise ProtocolError(
        f"the table has the format '{kind}', which this release does not know",
        path=path,
        version=snapshot.version,
        hint="Read it with the program that wrote it",
    )


COMPANION_SPLITS: Fact[None, bool] = Fact()


def _has_companion_splits(segment: Segment) -> bool:
    return COMPANION_SPLITS.of(segment, None, lambda: _names_sources(segment))


def _names_sources(segment: Segment) -> bool:
    lists = (segment.raw_lists(name) for name in _COMPANION_LISTS)
    texts = (segment.texts(name) for name in _COMPANION_TEXTS)
    return any(column is not None for column in (*lists, *texts))
