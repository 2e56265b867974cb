"""Could a file hold rows that match? Decided by its partition values alone.

Used to see whether a file that somebody else added meanwhile concerns a transaction. The answer
may only err towards yes: a column that is not a partition column, a value that cannot be read as
its type, a predicate nobody can decide here, all mean that it could.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping

import pyarrow as pa

from indextables.expr.predicate import (
    And,
    Column,
    Compare,
    Constant,
    InSet,
    Literal,
    NullTest,
    Op,
    Or,
    Predicate,
    Truth,
)

_EPOCH = datetime.date(1970, 1, 1)


def could_match(predicate: Predicate, values: Mapping[str, str | None]) -> bool:
    """Could a row of a file with these partition values satisfy the predicate?"""
    if isinstance(predicate, And):
        return all(could_match(child, values) for child in predicate.children)
    if isinstance(predicate, Or):
        return any(could_match(child, values) for child in predicate.children)
    if isinstance(predicate, Constant):
        return predicate.truth is Truth.TRUE
    if not isinstance(predicate, Compare | InSet | NullTest):
        return True
    if not _is_known(predicate.column, values):
        return True
    text = values[predicate.column.root]
    if isinstance(predicate, NullTest):
        return (text is None) == predicate.is_null
    return text is not None and _value_could_match(predicate, text)


def _is_known(column: Column, values: Mapping[str, str | None]) -> bool:
    return column.is_partition and len(column.path) == 1 and column.root in values


def _value_could_match(predicate: Compare | InSet, text: str) -> bool:
    value = _physical(text, predicate.column.dtype)
    if value is None:
        return True
    if isinstance(predicate, InSet):
        return (value in predicate.values) != predicate.negated
    return _compare(value, predicate.op, predicate.value)


def _physical(text: str, dtype: pa.DataType) -> Literal | None:
    """The value as predicates spell literals; ``None`` when this module cannot tell."""
    kinds = pa.types
    try:
        if kinds.is_string(dtype):
            return text
        if kinds.is_integer(dtype):
            return int(text)
        if kinds.is_boolean(dtype):
            return {"true": True, "false": False}.get(text.lower())
        if kinds.is_date(dtype):
            return (datetime.date.fromisoformat(text) - _EPOCH).days
    except ValueError:
        return None
    return None


def _compare(left: Literal, op: Op, right: Literal) -> bool:
    if type(left) is not type(right):
        return True
    if isinstance(left, str):
        left, right = left.encode(), str(right).encode()
    outcomes = {
        Op.EQ: left == right,
        Op.NE: left != right,
        Op.LT: left < right,  # type: ignore[operator]
        Op.LE: left <= right,  # type: ignore[operator]
        Op.GT: left > right,  # type: ignore[operator]
        Op.GE: left >= right,  # type: ignore[operator]
    }
    return outcomes[op]
