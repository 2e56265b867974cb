"""One comparison of a column with a literal as a predicate in its simplest exact form.

Comparisons that a type's range already decides become constants: TRUE for every value is
``IS NOT NULL`` (a NULL value never matches), TRUE for none is FALSE.
"""

from __future__ import annotations

import math
from datetime import tzinfo

import pyarrow as pa

from indextables.expr.literals import (
    Kind,
    Scalar,
    Span,
    UndecidableLiteralError,
    domain,
    mismatch,
    span_of,
    to_boolean,
    to_bytes,
    to_double,
)
from indextables.expr.normalize import all_of, any_of, not_null
from indextables.expr.predicate import FALSE, NULL, Column, Compare, Op, Predicate


def is_discrete(dtype: pa.DataType) -> bool:
    """Whether the type's values are whole numbers on a line."""
    t = pa.types
    return bool(
        t.is_integer(dtype) or t.is_decimal(dtype) or t.is_date(dtype) or t.is_timestamp(dtype)
    )


def compare(column: Column, op: Op, scalar: Scalar, tz: tzinfo) -> Predicate:
    """``column op literal``; a NULL literal is never TRUE."""
    dtype, t = column.dtype, pa.types
    if scalar.kind is Kind.NULL or t.is_null(dtype):
        return NULL
    if scalar.kind is Kind.NESTED and t.is_nested(dtype):
        raise UndecidableLiteralError("nested values are not compared here")
    if is_discrete(dtype):
        return from_span(column, op, span_of(scalar, dtype, tz))
    if t.is_floating(dtype):
        value = to_double(_no_boolean(scalar, dtype))
        if scalar.kind is Kind.INTEGER and value != scalar.value:
            return _between_doubles(column, op, scalar.value, value)
        return _floating(column, op, value)
    if t.is_boolean(dtype):
        return _boolean(column, op, to_boolean(scalar))
    if t.is_string(dtype):
        return Compare(column, op, _text(scalar))
    if t.is_binary(dtype):
        return Compare(column, op, to_bytes(scalar))
    raise mismatch(scalar, dtype)


def _no_boolean(scalar: Scalar, dtype: pa.DataType) -> Scalar:
    if scalar.kind not in (Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE, Kind.STRING):
        raise mismatch(scalar, dtype)
    return scalar


def _text(scalar: Scalar) -> str:
    if scalar.kind is Kind.STRING:
        return str(scalar.value)
    if scalar.kind is Kind.BINARY:
        try:
            return str(scalar.value.decode())
        except UnicodeDecodeError:
            raise UndecidableLiteralError("bytes that are no text") from None
    if scalar.kind is Kind.NESTED:
        raise mismatch(scalar, pa.string())
    raise UndecidableLiteralError(f"a string column against {scalar.kind.value}")


def from_span(column: Column, op: Op, span: Span) -> Predicate:
    """``column op literal`` for a literal that equals the points of a span."""
    if op is Op.EQ:
        return _equal(column, span)
    if op is Op.NE:
        return _unequal(column, span)
    if op is Op.LT:
        return _below(column, Op.LE, span.high) if _empty(span) else _below(column, op, span.low)
    if op is Op.LE:
        return _below(column, op, span.high)
    if op is Op.GT:
        return _above(column, Op.GE, span.low) if _empty(span) else _above(column, op, span.high)
    return _above(column, op, span.low)


def _empty(span: Span) -> bool:
    return span.high < span.low


def _equal(column: Column, span: Span) -> Predicate:
    low, high = domain(column.dtype)
    first, last = max(span.low, low), min(span.high, high)
    if first > last:
        return FALSE
    if first == last:
        return Compare(column, Op.EQ, first)
    return all_of([_above(column, Op.GE, first), _below(column, Op.LE, last)])


def _unequal(column: Column, span: Span) -> Predicate:
    low, high = domain(column.dtype)
    first, last = max(span.low, low), min(span.high, high)
    if first > last:
        return not_null(column)
    if first == last:
        return Compare(column, Op.NE, first)
    return any_of([_below(column, Op.LT, first), _above(column, Op.GT, last)])


def _below(column: Column, op: Op, bound: int) -> Predicate:
    low, high = domain(column.dtype)
    last = bound if op is Op.LE else bound - 1
    if last < low:
        return FALSE
    return not_null(column) if last >= high else Compare(column, op, bound)


def _above(column: Column, op: Op, bound: int) -> Predicate:
    low, high = domain(column.dtype)
    first = bound if op is Op.GE else bound + 1
    if first > high:
        return FALSE
    return not_null(column) if first <= low else Compare(column, op, bound)


def _between_doubles(column: Column, op: Op, value: int, nearest: float) -> Predicate:
    """Against a whole number that no double equals: its neighbours decide, nothing is rounded."""
    if op is Op.EQ:
        return FALSE
    if op is Op.NE:
        return not_null(column)
    if op in (Op.LT, Op.LE):
        below = nearest if nearest < value else math.nextafter(nearest, -math.inf)
        return _floating(column, Op.LE, below)
    above = nearest if nearest > value else math.nextafter(nearest, math.inf)
    return _floating(column, Op.GE, above)


def _floating(column: Column, op: Op, value: float) -> Predicate:
    if value == value:
        if value == -math.inf and op is Op.LT:
            return FALSE
        if value == -math.inf and op is Op.GE:
            return not_null(column)
        return Compare(column, op, value)
    if op is Op.GT:
        return FALSE
    if op is Op.LE:
        return not_null(column)
    same = {Op.EQ: Op.EQ, Op.GE: Op.EQ, Op.NE: Op.NE, Op.LT: Op.NE}[op]
    return Compare(column, same, math.nan)


def _boolean(column: Column, op: Op, value: bool) -> Predicate:
    true_for = [v for v in (False, True) if _holds(v, op, value)]
    if len(true_for) == 1:
        return Compare(column, Op.EQ, true_for[0])
    return not_null(column) if true_for else FALSE


def _holds(left: bool, op: Op, right: bool) -> bool:
    if op is Op.EQ:
        return left == right
    if op is Op.NE:
        return left != right
    if op in (Op.LT, Op.LE):
        return left < right or (op is Op.LE and left == right)
    return left > right or (op is Op.GE and left == right)
