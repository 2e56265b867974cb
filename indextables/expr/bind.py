"""Binding: an unbound filter and a schema become the predicate the planner works with.

Names are resolved, literals converted once to the column's physical type, NOT is pushed to the
leaves by De Morgan with three-valued logic kept, constants folded. The result is TRUE for exactly
the rows where the filter is TRUE. What needs more than ``column op literal`` (functions, casts
that lose information, two columns, collations) is an ``Undecided`` leaf; it carries an expression
of ``indextables.expr.functions`` where that module can compute it as Spark would.

NULL literals: ``= NULL`` is never TRUE; NULL is dropped from ``IN`` but makes ``NOT IN`` never
TRUE; ``<=> NULL`` is ``IS NULL``; ``NOT (a <=> v)`` is ``a IS NULL OR a != v``.

A cast around the column is looked through where it changes no value (INT to BIGINT, DECIMAL to a
wider one, DATE to TIMESTAMP), because analysed Catalyst trees are full of them; a cast to DOUBLE
is inverted: the values whose double compares so are a range.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import tzinfo
from enum import Enum
from typing import Any

import pyarrow as pa

from indextables.errors import PlanningError, TypeMismatchError, require_characters
from indextables.expr import filters as f
from indextables.expr import timetext
from indextables.expr.functions import compile_condition, fold_constant
from indextables.expr.ipbind import address_test, is_address, is_network
from indextables.expr.leaves import compare, from_span
from indextables.expr.literals import (
    Kind,
    Scalar,
    Span,
    UndecidableLiteralError,
    cast_scalar,
    domain,
    double_preimage,
    mismatch,
    scalar_of,
    to_double,
)
from indextables.expr.normalize import all_of, any_of, in_set, included, like, string_match
from indextables.expr.predicate import (
    FALSE,
    NULL,
    TRUE,
    Column,
    Compare,
    Match,
    NullTest,
    Op,
    Predicate,
    Undecided,
)
from indextables.expr.scope import NotAColumnError, Scope
from indextables.expr.searchbind import bind_text
from indextables.expr.widening import is_widening
from indextables.mapping import DocMapping
from indextables.types import type_name

_OPS = {
    f.EqualTo: Op.EQ,
    f.GreaterThan: Op.GT,
    f.GreaterThanOrEqual: Op.GE,
    f.LessThan: Op.LT,
    f.LessThanOrEqual: Op.LE,
}
_MIRROR = {Op.EQ: Op.EQ, Op.NE: Op.NE, Op.LT: Op.GT, Op.GT: Op.LT, Op.LE: Op.GE, Op.GE: Op.LE}
_MATCHES = {
    f.StringStartsWith: Match.PREFIX,
    f.StringEndsWith: Match.SUFFIX,
    f.StringContains: Match.CONTAINS,
}


def bind(
    source: Any,
    schema: pa.Schema,
    *,
    partition_columns: Iterable[str] = (),
    mapping: DocMapping | None = None,
    time_zone: str = "UTC",
    case_sensitive: bool = False,
    max_unqualified_fields: int = 10,
) -> Predicate:
    """The predicate that a filter, in any form ``parse_filters`` takes, means for this schema."""
    scope = Scope(
        schema=schema,
        partition_columns=frozenset(p.lower() for p in partition_columns),
        mapping=mapping,
        tz=timetext.zone(time_zone),
        zone_name=time_zone,
        case_sensitive=case_sensitive,
        max_unqualified_fields=max_unqualified_fields,
    )
    return _bind(f.parse_filters(source), scope, negated=False)


def _bind(node: f.Expression, scope: Scope, negated: bool) -> Predicate:
    if isinstance(node, f.And | f.Or):
        parts = [_bind(child, scope, negated) for child in node.parts]
        return all_of(parts) if isinstance(node, f.And) != negated else any_of(parts)
    if isinstance(node, f.Not):
        return _bind(node.child, scope, not negated)
    if isinstance(node, f.AlwaysTrue | f.AlwaysFalse):
        return TRUE if isinstance(node, f.AlwaysTrue) != negated else FALSE
    if isinstance(node, f.TextFilter):
        return bind_text(node, scope, negated)
    try:
        return _bind_leaf(node, scope, negated)
    except (UndecidableLiteralError, NotAColumnError):
        return _undecided(node, scope, negated)


def _bind_leaf(node: f.Expression, scope: Scope, negated: bool) -> Predicate:
    if not isinstance(node, f.Attribute) and not node.references():
        constant = fold_constant(node, scope)
        return _truth(constant, negated) if constant else _undecided(node, scope, negated)
    if isinstance(node, f.Comparison) and type(node) in _OPS:
        return _comparison(node, _OPS[type(node)], scope, negated)
    if isinstance(node, f.EqualNullSafe):
        return _null_safe(node, scope, negated)
    if isinstance(node, f.In):
        return _in(node, scope, negated)
    if isinstance(node, f.IsNull | f.IsNotNull):
        return _null_test(node, scope, isinstance(node, f.IsNull) != negated)
    if isinstance(node, f.Like) and not node.ignore_case:
        column, pattern = _text_operands(node, node.left, node.pattern, scope)
        return NULL if pattern is None else like(column, pattern, node.escape, negated=negated)
    if isinstance(node, f.Comparison) and type(node) in _MATCHES:
        column, text = _text_operands(node, node.left, node.right, scope)
        if text is None:
            return NULL
        return string_match(column, _MATCHES[type(node)], text, negated=negated)
    if isinstance(node, f.Attribute):
        return _boolean_column(node, scope, negated)
    return _undecided(node, scope, negated)


# -- operands -------------------------------------------------------------------------------------


def _constant(node: f.Expression, scope: Scope) -> Scalar | None:
    """The literal's value, also through casts and foldable functions."""
    if isinstance(node, f.Lit):
        return scalar_of(node, scope.tz)
    if isinstance(node, f.Attribute) or node.references():
        return None
    return _negative_integer(node) or fold_constant(node, scope)


def _negative_integer(node: f.Expression) -> Scalar | None:
    """A minus before digits is part of the number, however long it is."""
    if isinstance(node, f.Function) and node.name == "negative" and len(node.args) == 1:
        digits = node.args[0]
        if isinstance(digits, f.Lit) and digits.dtype is None and type(digits.value) is int:
            return Scalar(Kind.INTEGER, -digits.value)
    return None


def _peel(node: f.Expression, scope: Scope) -> tuple[Column, list[pa.DataType]] | None:
    """The column under casts, and the types it passes through, innermost first."""
    casts: list[pa.DataType] = []
    while isinstance(node, f.Cast) and not node.lenient:
        casts.append(node.dtype)
        node = node.child
    if not isinstance(node, f.Attribute):
        return None
    column = scope.column(node.path)
    if scope.is_collated(column):
        raise UndecidableLiteralError("collated text")
    casts.reverse()
    return column, casts


class _View(Enum):
    """How a comparison sees the column."""

    PLAIN = "by its value"
    DOUBLE = "rounded to a double"
    DAY = "by its day"


@dataclass(frozen=True)
class _Target:
    """A column ready to be compared, perhaps seen through casts."""

    column: Column
    seen_as: pa.DataType
    view: _View
    scope: Scope

    @classmethod
    def of(cls, node: f.Expression, scope: Scope) -> _Target | None:
        peeled = _peel(node, scope)
        if peeled is None:
            return None
        column, casts = peeled
        current = column.dtype
        for index, dtype in enumerate(casts):
            if index == 0 == len(casts) - 1 and (view := _rounding(current, dtype)):
                return cls(column, current, view, scope)
            if not is_widening(current, dtype):
                return None
            current = dtype
        return cls(column, current, _View.PLAIN, scope)

    def compare(self, op: Op, scalar: Scalar) -> Predicate:
        if scalar.kind is Kind.NULL:
            return NULL
        if self.view is _View.DOUBLE:
            span = double_preimage(to_double(scalar), self.column.dtype)
            return from_span(self.column, op, span)
        if self.view is _View.DAY:
            return from_span(self.column, op, _day_span(scalar, self.column.dtype, self.scope.tz))
        if scalar.kind is Kind.STRING and is_address(self.scope.mapping, self.column.path):
            ranged = address_test(self.column, op, str(scalar.value))
            if ranged is not None:
                return ranged
        if self.seen_as != self.column.dtype:
            scalar = _as_compared(scalar, self.seen_as, self.scope)
        return compare(self.column, op, scalar, self.scope.tz)


def _rounding(source: pa.DataType, target: pa.DataType) -> _View | None:
    """A cast that joins values, yet in a way that can be inverted."""
    t = pa.types
    if t.is_float64(target) and (t.is_int64(source) or t.is_decimal(source)):
        return _View.DOUBLE
    return _View.DAY if t.is_date(target) and t.is_timestamp(source) else None


def _day_span(scalar: Scalar, dtype: pa.DataType, tz: tzinfo) -> Span:
    """The moments whose day is the literal's; undecided where the zone repeats a midnight."""
    if scalar.kind is Kind.STRING:
        scalar = cast_scalar(scalar, pa.date32(), tz)
    if scalar.kind is not Kind.DATE:
        raise UndecidableLiteralError("a day against another type")
    ends = []
    for day in (scalar.value, scalar.value + 1):
        start = day * timetext.DAY_MICROS if dtype.tz is None else timetext.day_start(day, tz)
        if dtype.tz is not None and not timetext.stays_after(start, tz):
            raise UndecidableLiteralError("a midnight that happens twice")
        ends.append(start)
    return Span(ends[0], ends[1] - 1)


def _as_compared(scalar: Scalar, dtype: pa.DataType, scope: Scope) -> Scalar:
    """The literal as Spark reads it beside a value already cast to ``dtype``."""
    if pa.types.is_timestamp(dtype):
        if scalar.kind is Kind.TIMESTAMP and dtype.tz is None:
            raise UndecidableLiteralError("an instant against a wall clock")
        return cast_scalar(scalar, dtype, scope.tz)
    if pa.types.is_decimal(dtype) and scalar.kind in (Kind.DOUBLE, Kind.STRING):
        raise UndecidableLiteralError("a decimal compared as double")
    if scalar.kind is Kind.STRING and pa.types.is_floating(dtype):
        return Scalar(Kind.DOUBLE, to_double(scalar))
    return scalar


# -- leaves ---------------------------------------------------------------------------------------


def _comparison(node: f.Comparison, op: Op, scope: Scope, negated: bool) -> Predicate:
    if negated:
        op = op.opposite
    left, right = node.left, node.right
    scalar = _constant(right, scope)
    if scalar is None:
        left, right, op = right, left, _MIRROR[op]
        scalar = _constant(right, scope)
    if scalar is None:
        return _undecided(node, scope, negated)
    folded = _compare_condition(left, op, scalar, scope)
    if folded is not None:
        return folded
    target = _Target.of(left, scope)
    return _undecided(node, scope, negated) if target is None else target.compare(op, scalar)


def _compare_condition(
    node: f.Expression, op: Op, scalar: Scalar, scope: Scope
) -> Predicate | None:
    """``(condition) = TRUE`` and similar functions."""
    if isinstance(node, f.Filter) and scalar.kind is Kind.BOOLEAN and op in (Op.EQ, Op.NE):
        return _bind(node, scope, (op is Op.EQ) != scalar.value)
    return None


def _null_safe(node: f.EqualNullSafe, scope: Scope, negated: bool) -> Predicate:
    left, right = node.left, node.right
    scalar = _constant(right, scope)
    if scalar is None:
        left, right, scalar = right, left, _constant(left, scope)
    if scalar is None:
        return _undecided(node, scope, negated)
    if scalar.kind is Kind.NULL:
        return _bind(f.IsNotNull(left) if negated else f.IsNull(left), scope, negated=False)
    if isinstance(left, f.Filter):
        if negated:
            return _undecided(node, scope, negated)
        return _bind(f.EqualTo(left, right), scope, negated)
    target = _Target.of(left, scope)
    if target is None:
        return _undecided(node, scope, negated)
    same = target.compare(Op.NE if negated else Op.EQ, scalar)
    return any_of([NullTest(target.column, is_null=True), same]) if negated else same


def _in(node: f.In, scope: Scope, negated: bool) -> Predicate:
    if not node.values:
        return TRUE if negated else FALSE
    target = _Target.of(node.left, scope)
    if target is None:
        return _undecided(node, scope, negated)
    ready = _ready_values(node, target)
    if ready is not None:
        missing = (
            NULL if any(v.value is None for v in node.values if isinstance(v, f.Lit)) else None
        )
        sets = [in_set(target.column, ready, negated=negated)]
        parts = sets if missing is None else [*sets, missing]
        return all_of(parts) if negated else any_of(parts)
    op = Op.NE if negated else Op.EQ
    plain: list[Any] = []
    others: list[Predicate] = []
    for value in node.values:
        scalar = _constant(value, scope)
        if scalar is None:
            others.append(_bind(f.EqualTo(node.left, value), scope, negated))
            continue
        part = target.compare(op, scalar)
        values = included(part, negated=negated)
        if values is None:
            others.append(part)
        else:
            plain.extend(values)
    if plain:
        others.insert(0, in_set(target.column, plain, negated=negated))
    return all_of(others) if negated else any_of(others)


def _ready_values(node: f.In, target: _Target) -> list[Any] | None:
    """The values of a long list that need no conversion: text for text, integers that fit."""
    dtype = target.column.dtype
    if target.view is not _View.PLAIN or target.seen_as != dtype:
        return None
    values: list[Any] = [
        v.value if type(v) is f.Lit and v.dtype is None else v for v in node.values
    ]
    kinds = set(map(type, values)) - {type(None)}
    if pa.types.is_string(dtype) and kinds <= {str}:
        texts = [v for v in values if v is not None]
        if is_address(target.scope.mapping, target.column.path) and any(map(is_network, texts)):
            return None
        require_characters("".join(texts))
        return texts
    if pa.types.is_integer(dtype) and kinds <= {int}:
        low, high = domain(dtype)
        return [v for v in values if v is not None and low <= v <= high]
    return None


def _null_test(node: f.IsNull | f.IsNotNull, scope: Scope, is_null: bool) -> Predicate:
    scalar = _constant(node.child, scope)
    if scalar is not None:
        return TRUE if (scalar.kind is Kind.NULL) == is_null else FALSE
    child = node.child
    if isinstance(child, f.Attribute):
        return NullTest(scope.column(child.path), is_null)
    peeled = _peel(child, scope)
    if peeled is not None and _keeps_nulls(*peeled):
        return NullTest(peeled[0], is_null)
    plain = f.IsNull(child)
    return _undecided(plain, scope, negated=not is_null)


def _keeps_nulls(column: Column, casts: list[pa.DataType]) -> bool:
    current = column.dtype
    for dtype in casts:
        if not is_widening(current, dtype):
            return False
        current = dtype
    return True


def _text_operands(
    node: f.Expression, left: f.Expression, right: f.Expression, scope: Scope
) -> tuple[Column, str | None]:
    scalar = _constant(right, scope)
    peeled = _peel(left, scope)
    if scalar is None or peeled is None or peeled[1]:
        raise UndecidableLiteralError("not a column and a text")
    column = peeled[0]
    if not pa.types.is_string(column.dtype):
        if pa.types.is_nested(column.dtype):
            raise TypeMismatchError(f"cannot match {type_name(column.dtype)}: {node!r}")
        raise UndecidableLiteralError("text match on another type")
    if scalar.kind is Kind.NULL:
        return column, None
    if scalar.kind is not Kind.STRING:
        raise mismatch(scalar, column.dtype)
    return column, str(scalar.value)


def _boolean_column(node: f.Attribute, scope: Scope, negated: bool) -> Predicate:
    column = scope.column(node.path)
    if not pa.types.is_boolean(column.dtype):
        raise TypeMismatchError(
            f"'{column.name}' is {type_name(column.dtype)}, a condition must be boolean"
        )
    return Compare(column, Op.EQ, not negated)


def _truth(scalar: Scalar, negated: bool) -> Predicate:
    if scalar.kind is Kind.NULL:
        return NULL
    if scalar.kind is not Kind.BOOLEAN:
        raise TypeMismatchError(f"a condition must be boolean, not {scalar.kind.value}")
    return TRUE if scalar.value != negated else FALSE


def _undecided(node: f.Expression, scope: Scope, negated: bool) -> Predicate:
    """A leaf for the engine above; its columns must exist all the same."""
    names = []
    for path in node.references():
        try:
            names.append(scope.column(path).name)
        except NotAColumnError:
            names.append(scope.column(path[:1]).name)
    if any(isinstance(part, f.TextFilter) for part in node.walk()):
        raise PlanningError(
            f"a text search cannot stand inside {node!r}",
            hint="Combine text searches with AND, OR and NOT only",
        )
    expression = compile_condition(node, scope)
    text = repr(node if expression is None else expression)
    return Undecided(text, tuple(dict.fromkeys(names)), negated, expression)
