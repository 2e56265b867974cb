"""Filters bound to a snapshot's schema, and how they read, remembered with the snapshot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from indextables.expr.datemath import uses_now
from indextables.expr.predicate import TRUE, Predicate
from indextables.log.read.facts import Fact
from indextables.log.read.view import SnapshotView

MOST_REMEMBERED = 256
BOUND: Fact[tuple[str, str, bool, int], Predicate] = Fact(MOST_REMEMBERED)
LINES: Fact[int, tuple[Predicate, list[str]]] = Fact(MOST_REMEMBERED)
"""By the ``id`` of the predicate, which is kept beside its lines so that no other gets the id."""


def bind_cached(
    filters: Any,
    snapshot: SnapshotView,
    time_zone: str = "UTC",
    case_sensitive: bool = False,
    most_fields: int = 10,
) -> Predicate:
    """The bound predicate; filters that are text are parsed once per snapshot."""
    if filters is None:
        return TRUE
    if not isinstance(filters, str):
        if isinstance(filters, Predicate):
            return filters
        return _bind(filters, snapshot, time_zone, case_sensitive, most_fields)
    if uses_now(filters):
        return _bind(filters, snapshot, time_zone, case_sensitive, most_fields)
    key = (filters, time_zone, case_sensitive, most_fields)
    return BOUND.of(
        snapshot, key, lambda: _bind(filters, snapshot, time_zone, case_sensitive, most_fields)
    )


def lines_cached(
    predicate: Predicate, snapshot: SnapshotView, spell: Callable[[], list[str]]
) -> list[str]:
    """The lines that ``spell`` gives for a predicate, made once per bound predicate."""
    return LINES.of(snapshot, id(predicate), lambda: (predicate, spell()))[1]


def _bind(
    filters: Any, snapshot: SnapshotView, time_zone: str, case_sensitive: bool, most_fields: int
) -> Predicate:
    from indextables.expr.bind import bind

    return bind(
        filters,
        snapshot.schema,
        partition_columns=snapshot.partition_columns,
        mapping=snapshot.table_mapping,
        time_zone=time_zone,
        case_sensitive=case_sensitive,
        max_unqualified_fields=most_fields,
    )
