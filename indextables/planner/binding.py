"""Filters bound to a snapshot's schema, and how they read, remembered with the snapshot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from indextables.expr.predicate import TRUE, Predicate

MOST_REMEMBERED = 256


def bind_cached(
    filters: Any,
    snapshot: Any,
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
    key = ("planner.bind", filters, time_zone, case_sensitive, most_fields)
    found: Predicate | None = snapshot.derived.get(key)
    if found is None:
        found = _bind(filters, snapshot, time_zone, case_sensitive, most_fields)
        _remember(snapshot.derived, key, found)
    return found


def lines_cached(predicate: Predicate, snapshot: Any, spell: Callable[[], list[str]]) -> list[str]:
    """The lines that ``spell`` gives for a predicate, made once per bound predicate."""
    key = ("planner.lines", id(predicate))
    known = snapshot.derived.get(key)
    if known is None or known[0] is not predicate:
        known = (predicate, spell())
        _remember(snapshot.derived, key, known)
    lines: list[str] = known[1]
    return lines


def _bind(
    filters: Any, snapshot: Any, time_zone: str, case_sensitive: bool, most_fields: int
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


def _remember(derived: dict[Any, Any], key: tuple[Any, ...], found: Any) -> None:
    """Keep the newest few; a snapshot is planned over with few distinct texts at a time."""
    kept = [k for k in list(derived) if isinstance(k, tuple) and k[0] == key[0]]
    for old in kept[: max(0, len(kept) - MOST_REMEMBERED + 1)]:
        derived.pop(old, None)
    derived[key] = found
