"""Expressions beyond ``column op literal``, computed as Spark would, or not at all.

An ``Undecided`` leaf may carry a typed expression (``indextables.expr.typed``): casts between
simple types, arithmetic on integers and doubles, ``lower upper trim length substring concat
coalesce nullif abs isnan year month day quarter hour minute second date_trunc to_date date_add
date_sub add_months datediff array_contains size get_json_object``, dates and timestamps moved by
intervals, CASE and IF, comparisons of two columns, LIKE, ILIKE, RLIKE. Only what gives Spark's
answer in ANSI mode for every value is here; everything else has no expression, and a reader without
Spark refuses the filter. CASE, COALESCE, AND and OR compute an operand only for the rows that
reach it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from indextables.errors import EvaluationError, TypeMismatchError
from indextables.expr import filters as f
from indextables.expr import intervals, kernels, nested, timetext
from indextables.expr.arrays import read_column
from indextables.expr.casting import array_of, cast_array, decimal_array, physical_values
from indextables.expr.coercion import NotComputableError, family
from indextables.expr.like import LikePattern
from indextables.expr.literals import (
    Kind,
    Scalar,
    cast_scalar,
    clean_float,
    scalar_of,
)
from indextables.expr.scope import Scope
from indextables.expr.typed import Compiler
from indextables.expr.typednode import KINDS, Typed


@lru_cache(maxsize=1)
def _one_row() -> pa.RecordBatch:
    return pa.record_batch({"": pa.array([True])})


def compile_condition(node: f.Expression, scope: Scope) -> Typed | None:
    """A computable form of a condition, ``None`` where Spark's answer cannot be given here."""
    try:
        return Compiler(scope).condition(node)
    except NotComputableError:
        return None


def fold_constant(node: f.Expression, scope: Scope) -> Scalar | None:
    """The value of an expression that reads no column, ``None`` if it cannot be computed."""
    if isinstance(node, f.Lit):
        return scalar_of(node, scope.tz)
    if isinstance(node, f.Cast) and not (node.lenient or node.legacy):
        inner = fold_constant(node.child, scope)
        return None if inner is None else cast_scalar(inner, node.dtype, scope.tz)
    try:
        made = Compiler(scope).compile(node)
        value = physical_values(compute(made, _one_row()))[0]
    except NotComputableError:
        return None
    except EvaluationError as error:
        raise TypeMismatchError(error.message, hint=error.hint) from error
    kind = KINDS.get(family(made.dtype))
    if value is None or kind is None:
        return Scalar(Kind.NULL, None) if value is None else None
    return Scalar(kind, clean_float(value) if kind is Kind.DOUBLE else value)


# -- computing ------------------------------------------------------------------------------------


def compute(node: Typed, batch: pa.RecordBatch | pa.Table) -> pa.Array:
    """The expression's value for each row."""
    if node.op == "column":
        assert node.column is not None
        return read_column(batch, node.column)
    if node.op == "literal":
        return _literal(node, batch.num_rows)
    if node.op in _LAZY:
        return _LAZY[node.op](node, batch)
    args = [compute(arg, batch) for arg in node.args]
    if node.op in ("cast", "try_cast"):
        tz = timetext.zone(node.value or "UTC")
        return cast_array(args[0], node.dtype, tz, lenient=node.op == "try_cast")
    if node.op in _COMPARE:
        return _compare(node.op, args[0], args[1])
    if node.op in _WITH_VALUE:
        return _WITH_VALUE[node.op](args[0], node.value)
    return _PLAIN[node.op](*args)


def _literal(node: Typed, rows: int) -> pa.Array:
    if node.value is None:
        return pa.nulls(rows, node.dtype)
    if pa.types.is_decimal(node.dtype):
        return decimal_array([node.value] * rows, node.dtype)
    return pa.repeat(array_of([node.value], node.dtype)[0], rows)


def _and(node: Typed, batch: pa.RecordBatch | pa.Table) -> pa.Array:
    return _kleene(node, batch, deciding=False)


def _or(node: Typed, batch: pa.RecordBatch | pa.Table) -> pa.Array:
    return _kleene(node, batch, deciding=True)


def _kleene(node: Typed, batch: pa.RecordBatch | pa.Table, deciding: bool) -> pa.Array:
    join = pc.or_kleene if deciding else pc.and_kleene
    result = compute(node.args[0], batch)
    for arg in node.args[1:]:
        open_rows = pc.fill_null(pc.not_equal(result, deciding), True)
        part = compute(arg, batch.filter(open_rows))
        result = pc.replace_with_mask(result, open_rows, join(result.filter(open_rows), part))
    return result


def _case(node: Typed, batch: pa.RecordBatch | pa.Table) -> pa.Array:
    pairs = list(zip(node.args[:-1:2], node.args[1::2], strict=False))
    result = pa.nulls(batch.num_rows, node.dtype)
    left = pa.repeat(pa.scalar(True), batch.num_rows)
    for test, value in pairs:
        reached = batch.filter(left)
        hit = pc.fill_null(compute(test, reached), False)
        taken = pc.replace_with_mask(pa.repeat(pa.scalar(False), batch.num_rows), left, hit)
        result = pc.replace_with_mask(result, taken, compute(value, batch.filter(taken)))
        left = pc.and_not(left, taken)
    return pc.replace_with_mask(result, left, compute(node.args[-1], batch.filter(left)))


def _coalesce(node: Typed, batch: pa.RecordBatch | pa.Table) -> pa.Array:
    result = compute(node.args[0], batch)
    for arg in node.args[1:]:
        missing = pc.is_null(result)
        result = pc.replace_with_mask(result, missing, compute(arg, batch.filter(missing)))
    return result


def _compare(op: str, left: pa.Array, right: pa.Array) -> pa.Array:
    if op == "<=>":
        same = pc.fill_null(_compare("=", left, right), False)
        return pc.or_(same, pc.and_(pc.is_null(left), pc.is_null(right)))
    if not pa.types.is_floating(left.type):
        return _COMPARE[op](left, right)
    a, b = pc.is_nan(left), pc.is_nan(right)
    if op == "=":
        return pc.or_(pc.equal(left, right), pc.and_(a, b))
    if op in ("<", "<="):
        op, left, right, a, b = ">" if op == "<" else ">=", right, left, b, a
    greater = pc.or_(pc.greater(left, right), pc.and_(a, pc.invert(b)))
    return greater if op == ">" else pc.or_(greater, _compare("=", left, right))


def _like(values: pa.Array, pattern: LikePattern) -> pa.Array:
    return pc.match_substring_regex(values, pattern.regex)


_LAZY: dict[str, Callable[[Typed, Any], pa.Array]] = {
    "and": _and,
    "or": _or,
    "case": _case,
    "coalesce": _coalesce,
}
_COMPARE: dict[str, Any] = {
    "=": pc.equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
    "<=>": None,
}
_WITH_VALUE: dict[str, Callable[[pa.Array, Any], pa.Array]] = {
    "like": _like,
    "rlike": kernels.rlike,
    "startswith": lambda values, text: pc.starts_with(values, text),
    "endswith": lambda values, text: pc.ends_with(values, text),
    "contains": lambda values, text: pc.match_substring(values, text),
    "hour": lambda values, zone: kernels.time_part(values, "hour", zone),
    "minute": lambda values, zone: kernels.time_part(values, "minute", zone),
    "second": lambda values, zone: kernels.time_part(values, "second", zone),
    "date_trunc": lambda values, how: kernels.date_trunc(values, *how),
    "moved": lambda values, how: intervals.moved(values, *how),
    "get_json_object": nested.get_json_object,
}
_PLAIN: dict[str, Callable[..., pa.Array]] = {
    "not": pc.invert,
    "is_null": pc.is_null,
    "isnan": lambda values: pc.fill_null(pc.is_nan(values), False),
    "lower": kernels.lower,
    "upper": kernels.upper,
    "trim": kernels.trim,
    "ltrim": kernels.ltrim,
    "rtrim": kernels.rtrim,
    "length": kernels.length,
    "substring": kernels.substring,
    "concat": kernels.concat,
    "abs": kernels.absolute,
    "negative": kernels.negative,
    "+": kernels.add,
    "-": kernels.subtract,
    "*": kernels.multiply,
    "/": kernels.divide,
    "div": kernels.divide,
    "%": kernels.remainder,
    "year": lambda values: kernels.date_part(values, "year"),
    "month": lambda values: kernels.date_part(values, "month"),
    "day": lambda values: kernels.date_part(values, "day"),
    "quarter": lambda values: kernels.date_part(values, "quarter"),
    "add_days": intervals.moved_days,
    "add_months": intervals.moved_months,
    "datediff": intervals.days_between,
    "array_contains": nested.array_contains,
    "size": nested.size,
}
