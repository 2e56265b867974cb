"""Group keys and measures that are expressions, computed in tasks as Spark would compute them.

Spark offers ``floor(x / 100) * 100`` or ``CASE WHEN x < 10 THEN 'low' END`` as a tree of its own
expressions. What is computed here is what Arrow computes to the same bits: fields of structs,
literals, comparisons and three-valued logic (NaN is the greatest number and equals itself),
arithmetic on doubles, checked arithmetic on BIGINTs, FLOOR of doubles, CASE (whose branches see
only the rows that take them), and the casts between whole numbers, doubles and moments that lose
nothing or lose it as Spark does. An overflow is an error. Functions are known by name and number
of arguments. Anything else makes the whole tree unknown, and Spark computes it; so do expressions
where ANSI rules are switched off, and text with a collation. ``Computed.of`` is the one place where
that is decided: whatever goes wrong while it tries the tree on no rows means "not ours".
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.errors import EvaluationError
from indextables.expr.scope import has_collation
from indextables.fitting import matched
from indextables.types import type_from_json

SECOND = 1_000_000
LOG = logging.getLogger("indextables.spark")


class UnknownExpressionError(Exception):
    """The tree holds something that only Spark can compute."""


@dataclass(frozen=True)
class Computed:
    """An expression over the columns of a table; picklable."""

    node: Mapping[str, Any]
    dtype: pa.DataType
    text: str

    @classmethod
    def of(cls, node: Mapping[str, Any], schema: pa.Schema, ansi: bool = True) -> Computed | None:
        """The expression, if every part of it is known."""
        if not ansi and node["op"] != "field":
            return None
        try:
            bound = _bound(node, schema)
            empty = pa.RecordBatch.from_arrays([pa.nulls(0, f.type) for f in schema], schema=schema)
            return cls(bound, _value(bound, empty).type, _text(bound))
        except (UnknownExpressionError, pa.ArrowException):
            return None
        except Exception as error:
            LOG.info("an expression is left to Spark: %r", error)
            return None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table that it reads."""
        return tuple(dict.fromkeys(_roots(self.node)))

    @property
    def column(self) -> str | None:
        """The column of the table that it is, if it is one."""
        path: list[str] = self.node.get("path", [])
        return path[0] if len(path) == 1 else None

    def over(self, batch: Any) -> Any:
        """Its value for each row."""
        return _value(self.node, batch)


def _bound(node: Mapping[str, Any], schema: pa.Schema) -> dict[str, Any]:
    """The tree with names as the table spells them and types as Arrow's."""
    if node["op"] == "field":
        return {"op": "field", "path": _path(list(node["name"]), schema)}
    found: dict[str, Any] = {"op": node["op"]}
    if "type" in node:
        found["type"] = _type(node["type"])
    if node["op"] == "lit":
        found["value"] = _literal(node["value"], found["type"])
    found["children"] = [_bound(child, schema) for child in node.get("children", ())]
    return found


def _type(node: Any) -> pa.DataType:
    dtype = type_from_json(node)
    if pa.types.is_nested(dtype):
        raise UnknownExpressionError
    return dtype


def _literal(value: Any, dtype: pa.DataType) -> Any:
    if value is None or pa.types.is_boolean(dtype) or pa.types.is_string(dtype):
        return value
    if pa.types.is_floating(dtype):
        return float(value)
    if pa.types.is_integer(dtype):
        return int(value)
    raise UnknownExpressionError


def _path(names: list[str], schema: Any) -> list[str]:
    found = []
    fields = list(schema)
    for name in names:
        place = matched([name], [field.name for field in fields])[0]
        if place is None:
            raise UnknownExpressionError
        field = fields[place]
        if has_collation(field):
            raise UnknownExpressionError
        found.append(field.name)
        fields = list(field.type.fields) if pa.types.is_struct(field.type) else []
    return found


def _roots(node: Mapping[str, Any]) -> list[str]:
    if node["op"] == "field":
        return [node["path"][0]]
    return [name for child in node["children"] for name in _roots(child)]


def _text(node: Mapping[str, Any]) -> str:
    if node["op"] == "field":
        return ".".join(node["path"])
    if node["op"] == "lit":
        return str(node["value"])
    return f"{node['op'].lower()}({', '.join(map(_text, node['children']))})"


# -- values ---------------------------------------------------------------------------------------


def _value(node: Mapping[str, Any], batch: Any) -> Any:
    op = node["op"]
    if op == "field":
        found = batch.column(node["path"][0])
        for name in node["path"][1:]:
            found = pc.struct_field(found, name)
        return found
    if op == "lit":
        return pa.repeat(pa.scalar(node["value"], node["type"]), batch.num_rows)
    children = node["children"]
    if op == "CASE_WHEN" and len(children) > 1:
        return _case(children, batch)
    if op in _SHORT and len(children) == 2:
        return _short(op, children[0], children[1], batch)
    if op == "CAST" and len(children) == 1:
        return _cast(_value(children[0], batch), node["type"])
    compute = _FUNCTIONS.get((op, len(children)))
    if compute is None or (op == "/" and not _is_nonzero(children[1])):
        raise UnknownExpressionError
    return compute(*[_value(child, batch) for child in children])


def _is_nonzero(node: Mapping[str, Any]) -> bool:
    """Division by zero is an error in Spark, so a divisor must be known not to be zero."""
    return node["op"] == "lit" and bool(node["value"])


def _cast(values: Any, wanted: pa.DataType) -> Any:
    t, given = pa.types, values.type
    if given == wanted:
        return values
    if t.is_integer(given) and t.is_integer(wanted) and given.bit_width <= wanted.bit_width:
        return values.cast(wanted)
    if t.is_integer(given) and t.is_float64(wanted):
        return values.cast(wanted, safe=False)
    if t.is_float32(given) and t.is_float64(wanted):
        return values.cast(wanted)
    if t.is_timestamp(given) and given.tz and t.is_int64(wanted):
        return _floored(values.cast(pa.int64()), SECOND)
    if t.is_int64(given) and t.is_timestamp(wanted) and wanted.tz:
        return pc.multiply_checked(values, SECOND).cast(wanted)
    raise UnknownExpressionError


def _floored(values: Any, step: int) -> Any:
    """Whole numbers divided by ``step``, rounded down."""
    mask = values.is_null().to_numpy(zero_copy_only=False)
    numbers = pc.fill_null(values, 0).to_numpy(zero_copy_only=False)
    return pa.array(np.floor_divide(numbers, step), pa.int64(), mask=mask)


def _floor(values: Any) -> Any:
    """FLOOR of doubles is a BIGINT."""
    _all(values, kind=pa.types.is_float64)
    mask = values.is_null().to_numpy(zero_copy_only=False)
    numbers = np.floor(pc.fill_null(values, 0.0).to_numpy(zero_copy_only=False))
    if not np.all(np.abs(numbers) < 2.0**63):
        raise EvaluationError(
            "FLOOR of a number that no BIGINT holds: overflow",
            hint="Leave out NaN, infinities and numbers beyond 2^63 in WHERE",
        )
    return pa.array(numbers.astype(np.int64), pa.int64(), mask=mask)


def _all(*values: Any, kind: Callable[[pa.DataType], bool]) -> None:
    if not all(kind(v.type) for v in values):
        raise UnknownExpressionError


def _arithmetic(real: Any, whole: Any) -> Callable[[Any, Any], Any]:
    def compute(left: Any, right: Any) -> Any:
        if pa.types.is_float64(left.type) and pa.types.is_float64(right.type):
            return real(left, right)
        _all(left, right, kind=pa.types.is_int64)
        return whole(left, right)

    return compute


def _negated(values: Any) -> Any:
    if pa.types.is_float64(values.type):
        return pc.negate(values)
    _all(values, kind=pa.types.is_int64)
    return pc.negate_checked(values)


def _divided(left: Any, right: Any) -> Any:
    _all(left, right, kind=pa.types.is_float64)
    return pc.divide(left, right)


def _comparison(compare: Any) -> Callable[[Any, Any], Any]:
    def compute(left: Any, right: Any) -> Any:
        if left.type != right.type:
            raise UnknownExpressionError
        if not pa.types.is_floating(left.type):
            return compare(left, right)
        return compare(*_ranked(left, right))

    return compute


def _ranked(left: Any, right: Any) -> tuple[Any, Any]:
    """Two columns of numbers as -1, 0 or 1 and 0, which compare as Spark compares the numbers."""
    one, other = pc.is_nan(left), pc.is_nan(right)
    less = pc.or_(pc.less(left, right), pc.and_(other, pc.invert(one)))
    more = pc.or_(pc.greater(left, right), pc.and_(one, pc.invert(other)))
    rank = pc.subtract(more.cast(pa.int8()), less.cast(pa.int8()))
    return rank, pa.repeat(pa.scalar(0, pa.int8()), len(rank))


def _short(op: str, left: Mapping[str, Any], right: Mapping[str, Any], batch: Any) -> Any:
    """AND, OR: the right side sees only the rows that the left side has not decided."""
    first = _flat(_value(left, batch))
    _all(first, kind=pa.types.is_boolean)
    decided = pc.fill_null(pc.invert(first) if op == "AND" else first, False)
    places = np.flatnonzero(~decided.to_numpy(zero_copy_only=False).astype(bool))
    second = _flat(_value(right, batch.take(pa.array(places))))
    _all(second, kind=pa.types.is_boolean)
    where = np.full(batch.num_rows, len(places))
    where[places] = np.arange(len(places))
    spread = pa.concat_arrays([second, pa.nulls(1, pa.bool_())]).take(pa.array(where))
    return _SHORT[op](first, spread)


def _case(children: Sequence[Mapping[str, Any]], batch: Any) -> Any:
    """CASE WHEN: conditions and values in turn, perhaps with an ELSE at the end."""
    left = np.arange(batch.num_rows)
    places, parts = [], []
    for i in range(0, len(children) - 1, 2):
        rest = batch.take(pa.array(left))
        truth = pc.fill_null(_value(children[i], rest), False).to_numpy(zero_copy_only=False)
        chosen = np.flatnonzero(truth)
        places.append(left[chosen])
        parts.append(_value(children[i + 1], rest.take(pa.array(chosen))))
        left = left[~truth.astype(bool)]
    places.append(left)
    rest = batch.take(pa.array(left))
    last = _value(children[-1], rest) if len(children) % 2 else pa.nulls(len(left), parts[0].type)
    parts.append(last)
    if any(part.type != last.type for part in parts):
        raise UnknownExpressionError
    order = np.argsort(np.concatenate(places), kind="stable")
    return pa.concat_arrays([_flat(part) for part in parts]).take(pa.array(order))


def _flat(values: Any) -> Any:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


_SHORT = {"AND": pc.and_kleene, "OR": pc.or_kleene}
_FUNCTIONS: dict[tuple[str, int], Callable[..., Any]] = {
    ("+", 2): _arithmetic(pc.add, pc.add_checked),
    ("-", 2): _arithmetic(pc.subtract, pc.subtract_checked),
    ("-", 1): _negated,
    ("*", 2): _arithmetic(pc.multiply, pc.multiply_checked),
    ("/", 2): _divided,
    ("FLOOR", 1): _floor,
    ("NOT", 1): pc.invert,
    ("IS_NULL", 1): pc.is_null,
    ("IS_NOT_NULL", 1): pc.is_valid,
    ("=", 2): _comparison(pc.equal),
    ("<>", 2): _comparison(pc.not_equal),
    ("<", 2): _comparison(pc.less),
    ("<=", 2): _comparison(pc.less_equal),
    (">", 2): _comparison(pc.greater),
    (">=", 2): _comparison(pc.greater_equal),
}
"""What is computed, by Spark's name of it and its number of arguments."""
