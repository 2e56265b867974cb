"""Normal form: one form for all predicates that select the same rows.

Binding promises the rows where a filter is TRUE. Since NOT stands only at leaves, FALSE and NULL
are interchangeable above them: ``x AND NULL`` is never TRUE, ``x OR NULL`` is ``x``. Within that
promise this module flattens, drops duplicates, merges ``a = 1 OR a IN (2, 3)`` into one sorted set
(and ``a != 1 AND a NOT IN (2)``), intersects sets under AND, drops ``a IS NOT NULL`` beside a leaf
that is NULL for a NULL ``a`` anyway, and gives LIKE its simplest exact form: an equality without
wildcards, a prefix, a suffix or a text anywhere where ``%`` stands only at the ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, assert_never

import pyarrow as pa

from indextables.expr.like import LikePattern
from indextables.expr.predicate import (
    FALSE,
    NULL,
    TRUE,
    And,
    Column,
    Compare,
    Constant,
    InSet,
    Like,
    Match,
    NullTest,
    Op,
    Or,
    Predicate,
    StringMatch,
    TextMatch,
    Undecided,
    ValueTest,
)


def not_null(column: Column) -> Predicate:
    return NullTest(column, is_null=False)


def in_set(column: Column, values: Iterable[Any], *, negated: bool = False) -> Predicate:
    """``column [NOT] IN values`` in its simplest form; the values hold no NULL."""
    distinct = _sorted_distinct(values)
    if not distinct:
        return not_null(column) if negated else FALSE
    if len(distinct) == 1:
        return Compare(column, Op.NE if negated else Op.EQ, distinct[0])
    if pa.types.is_boolean(column.dtype):
        return FALSE if negated else not_null(column)
    return InSet(column, tuple(distinct), negated)


def _sorted_distinct(values: Iterable[Any]) -> list[Any]:
    """Sorted, each once; ``-0.0`` is ``0.0``, NaN comes last."""
    found = list(dict.fromkeys(v + 0.0 if isinstance(v, float) else v for v in values))
    if any(isinstance(v, float) and v != v for v in found):
        return [*sorted(v for v in found if v == v), math.nan]
    if found and isinstance(found[0], str):
        return sorted(found, key=str.encode)
    return sorted(found)


def all_of(parts: Iterable[Predicate]) -> Predicate:
    """AND in normal form."""
    kept = [p for p in _flat(parts, And) if p != TRUE]
    if FALSE in kept or NULL in kept:
        return FALSE if FALSE in kept else NULL
    kept = _merge(kept, _united, negated=True)
    kept = _merge(kept, _intersected)
    if FALSE in kept:
        return FALSE
    strict = {p.column for p in kept if isinstance(p, ValueTest)}
    kept = [
        p for p in kept if not (isinstance(p, NullTest) and not p.is_null and p.column in strict)
    ]
    if len(kept) < 2:
        return kept[0] if kept else TRUE
    return And(tuple(kept))


def any_of(parts: Iterable[Predicate]) -> Predicate:
    """OR in normal form."""
    flat = _flat(parts, Or)
    if TRUE in flat:
        return TRUE
    kept = [p for p in flat if p not in (FALSE, NULL)]
    if not kept:
        return NULL if NULL in flat else FALSE
    kept = _merge(kept, _united)
    return kept[0] if len(kept) == 1 else Or(tuple(dict.fromkeys(kept)))


def _flat(parts: Iterable[Predicate], kind: type[And] | type[Or]) -> list[Predicate]:
    found: dict[Predicate, None] = {}
    for part in parts:
        inner = part.children if isinstance(part, kind) else (part,)
        found.update(dict.fromkeys(inner))
    return list(found)


def _merge(
    parts: list[Predicate],
    join: Callable[[list[tuple[Any, ...]]], Iterable[Any]],
    *,
    negated: bool = False,
) -> list[Predicate]:
    """Replace the set-like parts of each column by their join, at the place of the first."""
    groups: dict[Column, list[tuple[Any, ...]]] = {}
    for part in parts:
        values = included(part, negated=negated)
        if values is not None and isinstance(part, Compare | InSet):
            groups.setdefault(part.column, []).append(values)
    if all(len(group) == 1 for group in groups.values()):
        return parts
    joined = {c: in_set(c, join(group), negated=negated) for c, group in groups.items()}
    merged: dict[Predicate, None] = {}
    for part in parts:
        if isinstance(part, Compare | InSet) and included(part, negated=negated) is not None:
            part = joined[part.column]
        merged[part] = None
    return list(merged)


def included(part: Predicate, *, negated: bool = False) -> tuple[Any, ...] | None:
    """The values of which the part asks for one (``negated``: for none), if that is all it says."""
    match part:
        case Compare():
            return (part.value,) if part.op is (Op.NE if negated else Op.EQ) else None
        case InSet():
            return part.values if part.negated is negated else None
        case StringMatch() | Like() | NullTest() | TextMatch() | Undecided() | Constant():
            return None
        case And() | Or():
            return None
        case _:
            assert_never(part)


def _united(groups: list[tuple[Any, ...]]) -> Iterable[Any]:
    return (v for group in groups for v in group)


def _intersected(groups: list[tuple[Any, ...]]) -> Iterable[Any]:
    return set(groups[0]).intersection(*groups[1:])


# -- LIKE -----------------------------------------------------------------------------------------


def string_match(column: Column, kind: Match, text: str, *, negated: bool = False) -> Predicate:
    """PREFIX, SUFFIX or CONTAINS; the empty text is in every value."""
    if not text:
        return FALSE if negated else not_null(column)
    return StringMatch(column, kind, text, negated=negated)


def like(column: Column, pattern: str, escape: str, *, negated: bool = False) -> Predicate:
    """LIKE in its simplest exact form."""
    parsed = LikePattern.parse(pattern, escape)
    shape = parsed.spelled(lambda _: "x", "%", "_")
    literal = parsed.spelled(str, "", "")
    if shape in ("", "x"):
        return Compare(column, Op.NE if negated else Op.EQ, literal)
    kinds = {"x%": Match.PREFIX, "%x": Match.SUFFIX, "%x%": Match.CONTAINS, "%": Match.CONTAINS}
    if shape in kinds:
        return string_match(column, kinds[shape], literal, negated=negated)
    return Like(column, parsed, negated)
