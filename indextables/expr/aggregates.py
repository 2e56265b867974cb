"""Aggregates as SQL text: ``count(DISTINCT host)``, ``sum(bytes * 8)``, ``percentile(ms, 0.95)``.

The argument may be any expression that can be computed here (``expr.functions``).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from typing import Any

import pyarrow as pa
import sqlglot.expressions as exp

from indextables.errors import PlanningError
from indextables.expr import filters as f
from indextables.expr.coercion import NotComputableError
from indextables.expr.scope import Scope, has_collation
from indextables.expr.sqlconvert import Converter
from indextables.expr.sqltext import parse_statement
from indextables.expr.typed import Compiler
from indextables.expr.typednode import Typed

_KINDS = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
    exp.Median: "median",
    exp.Quantile: "percentile",
}
KNOWN = "count, count(DISTINCT x), min, max, sum, avg, median, percentile(x, 0.9)"


@dataclass(frozen=True, slots=True)
class Call:
    """One aggregate: its kind, what it is of (``None``: rows), and where in the order (0 to 1)."""

    kind: str
    argument: f.Expression | None = None
    place: float | None = None


def parse_aggregate(text: str) -> Call:
    """The aggregate that a text such as ``sum(x + 1)`` means."""
    node, strings = parse_statement(f"SELECT {text}")
    items = node.expressions if isinstance(node, exp.Select) else []
    if len(items) != 1 or len([v for k, v in node.args.items() if v and k != "expressions"]):
        raise PlanningError(f"'{text}' is not one aggregate", hint=f"Known are {KNOWN}")
    call = items[0]
    kind = _KINDS.get(type(call))
    if kind is None:
        raise PlanningError(f"'{text}' is not an aggregate known here", hint=f"Known are {KNOWN}")
    return _call(kind, call, Converter(strings), text)


def _call(kind: str, call: Any, convert: Converter, text: str) -> Call:
    inner = call.this
    if isinstance(inner, exp.Distinct):
        if kind != "count" or len(inner.expressions) != 1:
            raise PlanningError(
                f"'{text}': DISTINCT is known for the count of one expression",
                hint="Write count(DISTINCT x)",
            )
        return Call("count_distinct", convert.value(inner.expressions[0]))
    if kind == "count" and isinstance(inner, exp.Star | exp.Literal):
        return Call("count")
    if call.args.get("expressions"):
        raise PlanningError(f"'{text}' has too many arguments", hint=f"Known are {KNOWN}")
    if kind == "percentile":
        return Call(kind, convert.value(inner), _place(call.args.get("quantile"), text))
    return Call(kind, convert.value(inner))


def _place(node: Any, text: str) -> float:
    try:
        place = float(node.this)
    except (AttributeError, TypeError, ValueError):
        place = -1.0
    if not 0 <= place <= 1:
        raise PlanningError(
            f"'{text}': a percentile needs a number from 0 to 1", hint="Write percentile(x, 0.95)"
        )
    return place


def compiled(expression: f.Expression, schema: pa.Schema, shown: str) -> Typed:
    """The expression over the columns of a result, under their names there."""
    collated = {f.name for f in schema if has_collation(f)}
    plain = [pa.field(f.name, f.type) for f in schema if f.name not in collated]
    scope = Scope(schema=pa.schema(plain), tz=UTC)
    try:
        return Compiler(scope).compile(expression)
    except NotComputableError:
        raise PlanningError(
            f"cannot compute '{shown}' here",
            hint="Run the query through Spark or DuckDB, or rewrite the expression",
        ) from None
