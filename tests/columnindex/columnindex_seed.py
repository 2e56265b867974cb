"""Ranges as the seed writes them: closed, with the extremes of the type where an end is open."""

from __future__ import annotations

from typing import Any

from indextables.splits.lookup.colindex.predicates import IndexableFilter, Range
from indextables.splits.lookup.colindex.values import Kind, value_of

LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1
EXTREMES: dict[Kind, tuple[Any, Any]] = {
    Kind.INT: (LOWEST, HIGHEST),
    Kind.UINT: (LOWEST, HIGHEST),
    Kind.TIMESTAMP: (LOWEST, HIGHEST),
    Kind.FLOAT: (float("-inf"), float("inf")),
    Kind.TEXT: ("", "\U0010ffff" * 1000),
    Kind.BOOL: (False, True),
}


def seed_range(asked: IndexableFilter) -> tuple[Any, Any]:
    """The ends of a range."""
    found = asked.predicate
    if not isinstance(found, Range):
        raise TypeError(f"{found!r} is not a range")
    lowest, highest = EXTREMES[asked.kind]
    low = lowest if found.low is None else value_of(asked.kind, found.low)
    high = highest if found.high is None else value_of(asked.kind, found.high)
    return low, high
