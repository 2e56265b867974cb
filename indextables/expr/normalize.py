"""Normal form: one spelling for predicates that mean the same rows.

Binding promises the rows where a filter is TRUE. Since NOT stands only at leaves, FALSE and NULL
are interchangeable above them: ``x AND NULL`` is never TRUE, ``x OR NULL`` is ``x``. Within that
promise this module flattens, drops duplicates, merges ``a = 1 OR a IN (2, 3)`` into one sorted set
(and ``a != 1 AND a NOT IN (2)``), intersects sets under AND, drops ``a IS NOT NULL`` beside a leaf
that is NULL for a NULL ``a`` anyway, and gives LIKE its simplest exact form.

LIKE follows Spark: ``%`` is any run, ``_`` one character, the escape character makes the next
``%``, ``_`` or itself literal; before anything else, or at the end, it is an error.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Any, assert_never

import pyarrow as pa

from indextables.errors import PlanningError
from indextables.expr.predicate import (
    FALSE,
    NULL,
    TRUE,
    And,
    Column,
    Compare,
    Constant,
    InSet,
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

ANY_RUN, ANY_ONE = "%", "_"


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
        case And() | Or() | NullTest() | StringMatch() | TextMatch() | Undecided() | Constant():
            return None
        case _:
            assert_never(part)


def _united(groups: list[tuple[Any, ...]]) -> Iterable[Any]:
    return (v for group in groups for v in group)


def _intersected(groups: list[tuple[Any, ...]]) -> Iterable[Any]:
    return set(groups[0]).intersection(*groups[1:])


# -- LIKE -----------------------------------------------------------------------------------------


def like_parts(pattern: str, escape: str = "\\") -> list[tuple[bool, str]]:
    """The pattern as ``(is_wildcard, text)`` parts; literal runs joined, repeated ``%`` once."""
    parts: list[tuple[bool, str]] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        wild = char in (ANY_RUN, ANY_ONE) and char != escape
        if char == escape:
            at += 1
            char = _escaped(pattern, at, escape)
        at += 1
        if wild:
            if not (char == ANY_RUN and parts and parts[-1] == (True, ANY_RUN)):
                parts.append((True, char))
        elif parts and not parts[-1][0]:
            parts[-1] = (False, parts[-1][1] + char)
        else:
            parts.append((False, char))
    return parts


def _escaped(pattern: str, at: int, escape: str) -> str:
    if at == len(pattern):
        raise PlanningError(
            f"the pattern '{pattern}' ends with the escape character '{escape}'",
            hint="Double it to match it literally",
        )
    if pattern[at] not in (ANY_RUN, ANY_ONE, escape):
        raise PlanningError(
            f"the pattern '{pattern}' has '{escape}' before '{pattern[at]}'",
            hint="Only %, _ and the escape character itself can be escaped",
        )
    return pattern[at]


def like_prefix(pattern: str, escape: str = "\\") -> str:
    """The literal text every match starts with."""
    parts = like_parts(pattern, escape)
    return parts[0][1] if parts and not parts[0][0] else ""


def like_regex(pattern: str, escape: str = "\\") -> str:
    """A LIKE pattern as a regular expression over the whole value."""
    parts = like_parts(pattern, escape)
    body = "".join(
        (".*" if text == ANY_RUN else ".") if wild else re.escape(text) for wild, text in parts
    )
    return rf"(?s)\A{body}\z"


def string_match(column: Column, kind: Match, text: str, *, negated: bool = False) -> Predicate:
    """PREFIX, SUFFIX or CONTAINS; the empty text is in every value."""
    if not text:
        return FALSE if negated else not_null(column)
    return StringMatch(column, kind, text, negated=negated)


def like(column: Column, pattern: str, escape: str, *, negated: bool = False) -> Predicate:
    """LIKE in its simplest exact form."""
    parts = like_parts(pattern, escape)
    shape = "".join(text if wild else "x" for wild, text in parts)
    literal = "".join(text for wild, text in parts if not wild)
    if shape in ("", "x"):
        return Compare(column, Op.NE if negated else Op.EQ, literal)
    kinds = {"x%": Match.PREFIX, "%x": Match.SUFFIX, "%x%": Match.CONTAINS, "%": Match.CONTAINS}
    if shape in kinds:
        return string_match(column, kinds[shape], literal, negated=negated)
    spelled = "".join(text if wild else _escape(text) for wild, text in parts)
    return StringMatch(column, Match.LIKE, spelled, negated=negated)


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
