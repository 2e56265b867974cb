"""Evaluating a bound predicate over Arrow rows, three-valued, with Spark's ideas of order.

NaN equals NaN and is greater than every other number; ``-0.0`` equals ``0.0``; FLOAT is compared
as the double it is; text and binary compare by their bytes; decimals, dates and timestamps by
their physical integers. A NULL value makes a leaf NULL, except for null tests and text searches.
A field of a NULL struct is NULL.

AND and OR follow Kleene. An ``Undecided`` leaf is computed only for the rows the other operands
leave open, as Spark's short circuit does, so that a cast never fails on a row that another operand
excluded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from indextables.buffers import ALWAYS, NEVER, numbers_of, scalar_of
from indextables.errors import PlanningError
from indextables.expr import functions, textmatch
from indextables.expr.arrays import read_column
from indextables.expr.casting import decimal_array
from indextables.expr.predicate import (
    And,
    Compare,
    Constant,
    InSet,
    Leaf,
    Like,
    Match,
    NullTest,
    Op,
    Or,
    Predicate,
    StringMatch,
    TextMatch,
    Truth,
    Undecided,
    leaves,
)
from indextables.mapping import DocMapping

_COMPARE: dict[Op, Callable[[Any, Any], Any]] = {
    Op.EQ: pc.equal,
    Op.NE: pc.not_equal,
    Op.LT: pc.less,
    Op.LE: pc.less_equal,
    Op.GT: pc.greater,
    Op.GE: pc.greater_equal,
}
_MATCH: dict[Match, Callable[[Any, str], Any]] = {
    Match.PREFIX: pc.starts_with,
    Match.SUFFIX: pc.ends_with,
    Match.CONTAINS: pc.match_substring,
}
_TRUTH = {Truth.TRUE: True, Truth.FALSE: False, Truth.NULL: None}


def can_evaluate(predicate: Predicate) -> bool:
    """Whether every leaf can be computed here."""
    return all(not isinstance(p, Undecided) or p.expression is not None for p in leaves(predicate))


def evaluate(
    predicate: Predicate, batch: pa.RecordBatch | pa.Table, *, mapping: DocMapping | None = None
) -> pa.BooleanArray:
    """TRUE, FALSE or NULL for each row."""
    if isinstance(predicate, And | Or):
        return _combine(predicate, batch, mapping)
    return _leaf(predicate, batch, mapping)


def matching_rows(
    predicate: Predicate, batch: pa.RecordBatch | pa.Table, *, mapping: DocMapping | None = None
) -> NDArray[np.int64]:
    """The numbers of the rows where the predicate is TRUE, ascending."""
    truth = evaluate(predicate, batch, mapping=mapping)
    rows: NDArray[np.int64] = numbers_of(pc.indices_nonzero(truth)).view(np.int64)
    return rows


def _combine(
    predicate: And | Or, batch: pa.RecordBatch | pa.Table, mapping: DocMapping | None
) -> pa.BooleanArray:
    conjunctive = isinstance(predicate, And)
    join = pc.and_kleene if conjunctive else pc.or_kleene
    late = [p for p in predicate.children if _is_late(p)]
    result = _constant(conjunctive, batch.num_rows)
    for child in predicate.children:
        if not _is_late(child):
            result = join(result, evaluate(child, batch, mapping=mapping))
    for child in late:
        result = _where_open(child, batch, mapping, result, conjunctive)
    return result


def _is_late(predicate: Predicate) -> bool:
    return any(isinstance(leaf, Undecided) for leaf in leaves(predicate))


def _where_open(
    child: Predicate,
    batch: pa.RecordBatch | pa.Table,
    mapping: DocMapping | None,
    result: pa.BooleanArray,
    conjunctive: bool,
) -> pa.BooleanArray:
    """Join one more operand, computed only where ``result`` does not decide alone."""
    join = pc.and_kleene if conjunctive else pc.or_kleene
    decided = ALWAYS if not conjunctive else NEVER
    open_rows = pc.fill_null(pc.not_equal(result, decided), ALWAYS)
    if pc.all(open_rows, min_count=0).as_py():
        return join(result, evaluate(child, batch, mapping=mapping))
    part = evaluate(child, batch.filter(open_rows), mapping=mapping)
    return pc.replace_with_mask(result, open_rows, join(result.filter(open_rows), part))


def _constant(value: bool | None, rows: int) -> pa.BooleanArray:
    return pa.repeat(scalar_of(value, pa.bool_()), rows)


def _leaf(
    leaf: Leaf, batch: pa.RecordBatch | pa.Table, mapping: DocMapping | None
) -> pa.BooleanArray:
    match leaf:
        case Compare():
            return _compare(leaf, read_column(batch, leaf.column))
        case InSet():
            return _in_set(leaf, read_column(batch, leaf.column))
        case StringMatch() | Like():
            return _pattern(leaf, read_column(batch, leaf.column))
        case NullTest():
            values = read_column(batch, leaf.column)
            return pc.is_null(values) if leaf.is_null else pc.is_valid(values)
        case TextMatch():
            return _text(leaf, batch, mapping)
        case Undecided():
            return _undecided(leaf, batch)
        case Constant():
            return _constant(_TRUTH[leaf.truth], batch.num_rows)
        case _:
            assert_never(leaf)


# -- leaves ---------------------------------------------------------------------------------------


def _physical(values: pa.Array) -> pa.Array:
    """Dates and timestamps as integers, FLOAT as DOUBLE; no copy for the first two."""
    dtype = values.type
    if pa.types.is_date32(dtype):
        return values.view(pa.int32())
    if pa.types.is_timestamp(dtype):
        return values.view(pa.int64())
    return values.cast(pa.float64()) if pa.types.is_float32(dtype) else values


def _scalar(value: Any, dtype: pa.DataType) -> pa.Scalar:
    if not pa.types.is_decimal(dtype):
        return scalar_of(value, dtype)
    return decimal_array([value], dtype)[0]


def _compare(leaf: Compare, values: pa.Array) -> pa.BooleanArray:
    values = _physical(values)
    if pa.types.is_floating(values.type):
        return _compare_floating(leaf.op, values, float(leaf.value))
    return _COMPARE[leaf.op](values, _scalar(leaf.value, values.type))


def _compare_floating(op: Op, values: pa.Array, value: float) -> pa.BooleanArray:
    nan = pc.is_nan(values)
    if value == value:
        result = _COMPARE[op](values, value)
        return pc.or_(result, nan) if op in (Op.GT, Op.GE) else result
    if op in (Op.EQ, Op.GE):
        return nan
    if op in (Op.NE, Op.LT):
        return pc.invert(nan)
    return pc.equal(nan, nan) if op is Op.LE else pc.not_equal(nan, nan)


def _in_set(leaf: InSet, values: pa.Array) -> pa.BooleanArray:
    values = _physical(values)
    if pa.types.is_floating(values.type):
        found = _in_floating(leaf.values, values)
    elif pa.types.is_decimal(values.type):
        found = pc.is_in(values, value_set=decimal_array(list(leaf.values), values.type))
    else:
        found = pc.is_in(values, value_set=pa.array(leaf.values, values.type))
    if leaf.negated:
        found = pc.invert(found)
    return _null_where_null(found, values)


def _in_floating(wanted: tuple[float, ...], values: pa.Array) -> pa.BooleanArray:
    zero_made_positive = pc.add(values, 0.0)
    numbers = pa.array([v + 0.0 for v in wanted if v == v], pa.float64())
    found = pc.is_in(zero_made_positive, value_set=numbers)
    if any(v != v for v in wanted):
        found = pc.or_(found, pc.fill_null(pc.is_nan(values), False))
    return found


def _null_where_null(found: pa.BooleanArray, values: pa.Array) -> pa.BooleanArray:
    if values.null_count == 0:
        return found
    return pc.if_else(pc.is_valid(values), found, pa.scalar(None, pa.bool_()))


def _pattern(leaf: StringMatch | Like, values: pa.Array) -> pa.BooleanArray:
    if isinstance(leaf, Like):
        found = pc.match_substring_regex(values, leaf.pattern.regex)
    else:
        found = _MATCH[leaf.kind](values, leaf.text)
    return pc.invert(found) if leaf.negated else found


def _text(
    leaf: TextMatch, batch: pa.RecordBatch | pa.Table, mapping: DocMapping | None
) -> pa.BooleanArray:
    if mapping is None:
        raise PlanningError(
            f"{leaf!r} cannot be evaluated without the document mapping",
            hint="Pass the mapping of the split the rows come from",
        )
    found = textmatch.match_rows(leaf.query, batch, mapping)
    return pa.array(~found if leaf.negated else found)


def _undecided(leaf: Undecided, batch: pa.RecordBatch | pa.Table) -> pa.BooleanArray:
    if leaf.expression is None:
        raise PlanningError(
            f"'{leaf.text}' cannot be decided without Spark",
            hint="Read through Spark, or write the filter with simpler operators",
        )
    found = functions.compute(leaf.expression, batch)
    return pc.invert(found) if leaf.negated else found
