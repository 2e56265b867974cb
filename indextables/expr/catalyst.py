"""Catalyst expressions as JSON: our own nested form, and ``Expression.toJSON``.

**Nested form.** One object for each expression, or a list of them (a conjunction). ``op`` is the
simple name of the Catalyst class; ``children`` its operands in Catalyst's order. A node may carry
``sql``, its text for display.

* ``{"op": "attr", "name": ["a", "b"], "type": T}``: a column or struct field. ``type`` may be left
  out.
* ``{"op": "lit", "type": T, "value": V}``: a literal; ``V`` is ``null`` for NULL. For ``string``
  the text; ``boolean`` true or false; integers a number or its text; ``float`` and ``double`` a
  number or ``"NaN"``, ``"Infinity"``, ``"-Infinity"``; ``decimal(p,s)`` its plain text;
  ``date`` days since 1970-01-01; ``timestamp`` microseconds since the epoch, UTC;
  ``timestamp_ntz`` microseconds of the wall clock; ``binary`` base64. ``void`` is NULL.
* ``{"op": "Cast", "type": T, "children": [x], "mode": "ansi" | "legacy" | "try"}``.
* ``{"op": "In", "children": [x, v1, v2, ...]}``, or for long lists
  ``{"op": "InSet", "type": T, "children": [x], "values": [V1, null, ...]}`` with the values spelled
  as in ``lit``.
* ``{"op": "Like", "children": [x, pattern], "escape": "\\\\"}``.
* ``{"op": "PythonUDF", "name": "textsearch", "children": [x, lit]}``, and ``ScalaUDF`` and
  ``UnresolvedFunction`` likewise; also the text functions themselves,
  ``{"op": "textsearch", "children": [...]}``.
* Everything else: ``EqualTo``, ``EqualNullSafe``, ``LessThan``, ``LessThanOrEqual``,
  ``GreaterThan``, ``GreaterThanOrEqual``, ``And``, ``Or``, ``Not``, ``IsNull``, ``IsNotNull``,
  ``StartsWith``, ``EndsWith``, ``Contains``, ``RLike``, ``CaseWhen``, ``If``, ``Coalesce``,
  ``Add``, ``Lower``, ... in Catalyst's operand order. An unknown ``op`` is kept as text.

``T`` is Spark's type JSON: a name such as ``"long"`` or ``"decimal(10,2)"``, or an object.

**toJSON form.** A pre-order list of objects with ``class`` and ``num-children``. It has lost some
things, and what is lost is never guessed: LIKE's escape character, binary literals and the values
of ``InSet`` make the leaf unsupported; timestamps are text in the session's zone.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from indextables.errors import IndexTablesError, PlanningError
from indextables.expr import filters as f
from indextables.expr.literals import SessionText
from indextables.types import type_from_json

_COMPARISONS: dict[str, type[f.Comparison]] = {
    "EqualTo": f.EqualTo,
    "EqualNullSafe": f.EqualNullSafe,
    "GreaterThan": f.GreaterThan,
    "GreaterThanOrEqual": f.GreaterThanOrEqual,
    "LessThan": f.LessThan,
    "LessThanOrEqual": f.LessThanOrEqual,
    "StartsWith": f.StringStartsWith,
    "EndsWith": f.StringEndsWith,
    "Contains": f.StringContains,
    "StringStartsWith": f.StringStartsWith,
    "StringEndsWith": f.StringEndsWith,
    "StringContains": f.StringContains,
    "RLike": f.RLike,
}
_FUNCTIONS = {
    "Lower": "lower", "Upper": "upper", "Length": "length", "Substring": "substring",
    "StringTrim": "trim", "StringTrimLeft": "ltrim", "StringTrimRight": "rtrim",
    "Concat": "concat", "Coalesce": "coalesce", "NullIf": "nullif", "Abs": "abs",
    "Year": "year", "Month": "month", "DayOfMonth": "day", "Hour": "hour", "Minute": "minute",
    "Second": "second", "TruncTimestamp": "date_trunc", "IsNaN": "isnan",
    "Add": "+", "Subtract": "-", "Multiply": "*", "Divide": "/", "Remainder": "%",
    "IntegralDivide": "div", "UnaryMinus": "negative", "CaseWhen": "case", "If": "case",
}  # fmt: skip
_UDFS = ("PythonUDF", "ScalaUDF", "UnresolvedFunction")


def is_catalyst_json(source: Any) -> bool:
    """Whether a decoded object looks like either form."""
    first = source[0] if isinstance(source, list) and source else source
    return isinstance(first, dict) and ("op" in first or "class" in first)


def is_catalyst_text(text: str) -> bool:
    """Whether a text is one of the forms rather than SQL."""
    head = text.lstrip()[:32].replace(" ", "")
    return head.startswith(('{"', '[{"'))


def from_json(source: Any) -> f.Expression:
    """The filter of either form, as text or decoded."""
    if isinstance(source, str):
        try:
            source = json.loads(source)
        except (ValueError, RecursionError) as error:
            raise PlanningError(f"the Catalyst JSON is malformed: {error}") from error
    try:
        if isinstance(source, list) and source and "class" in source[0]:
            return _from_preorder(source)
        if isinstance(source, list):
            parts = [_from_nested(node) for node in source]
            return parts[0] if len(parts) == 1 else f.And(*parts) if parts else f.AlwaysTrue()
        return _from_nested(source)
    except RecursionError as error:
        raise PlanningError("the Catalyst JSON is nested too deeply") from error
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise PlanningError(f"the Catalyst JSON is malformed: {error!r}") from error


# -- the nested form ------------------------------------------------------------------------------


def _from_nested(node: dict[str, Any]) -> f.Expression:
    op = node["op"]
    if op == "attr":
        return _collated(f.Attribute(tuple(node["name"])), node.get("type"))
    if op == "lit":
        return _collated(_literal(node["value"], node["type"]), node["type"])
    children = [_from_nested(child) for child in node.get("children", ())]
    if op == "InSet":
        return f.In(children[0], [_literal(v, node["type"]) for v in node["values"]])
    if op == "Like":
        return f.Like(children[0], children[1], node.get("escape", "\\"))
    if op == "Cast":
        mode = node.get("mode", "ansi")
        target = type_from_json(node["type"])
        return f.Cast(children[0], target, lenient=mode == "try", legacy=mode == "legacy")
    return _build(op, children, node.get("name"), node.get("sql"))


def _collated(made: f.Expression, type_node: Any) -> f.Expression:
    """Text of another order than its bytes' is wrapped, so that nothing here compares it."""
    words = type_node.lower().split() if isinstance(type_node, str) else []
    if "collate" in words and words[-1] != "utf8_binary":
        return f.Function("collate", (made,))
    return made


def _build(op: str, children: list[f.Expression], name: Any, sql: Any) -> f.Expression:
    """The rules both forms share, by simple class name."""
    if op in _COMPARISONS:
        return _COMPARISONS[op](children[0], children[1])
    if op in ("And", "Or"):
        return f.And(*children) if op == "And" else f.Or(*children)
    if op == "Not":
        return f.Not(children[0])
    if op in ("IsNull", "IsNotNull"):
        return f.IsNull(children[0]) if op == "IsNull" else f.IsNotNull(children[0])
    if op == "In":
        return f.In(children[0], children[1:])
    if op in _FUNCTIONS:
        return _function(op, children)
    called = str(name).split(".")[-1] if op in _UDFS else op
    text = f.text_call(called, children)
    return text if text is not None else _unsupported(op, children, sql)


def _function(op: str, children: list[f.Expression]) -> f.Expression:
    if op == "CaseWhen" and len(children) % 2 == 0:
        children = [*children, f.Lit(None)]
    return f.Function(_FUNCTIONS[op], tuple(children))


def _unsupported(op: str, children: list[f.Expression], sql: Any) -> f.Expression:
    text = sql or f"{op}({', '.join(map(repr, children))})"
    paths = dict.fromkeys(path for child in children for path in child.references())
    return f.Unsupported(str(text), tuple(f.Attribute(path) for path in paths))


def _literal(value: Any, type_node: Any) -> f.Expression:
    try:
        dtype = type_from_json(type_node)
    except IndexTablesError:
        return f.Unsupported(f"literal of type {type_node}")
    if value is None or pa.types.is_null(dtype):
        return f.Lit(None)
    return _typed_literal(value, dtype, _NESTED_READERS)


def _typed_literal(
    value: Any, dtype: pa.DataType, readers: Mapping[str, Callable[[Any, pa.DataType], f.Lit]]
) -> f.Expression:
    t = pa.types
    try:
        if t.is_boolean(dtype):
            return f.Lit(value if isinstance(value, bool) else str(value).lower() == "true")
        if t.is_integer(dtype):
            return f.Lit(int(value))
        if t.is_floating(dtype):
            return f.Lit(_float(value), dtype)
        if t.is_decimal(dtype):
            return f.Lit(Decimal(str(value)))
        if t.is_string(dtype):
            return f.Lit(str(value))
        kind = "date" if t.is_date(dtype) else "timestamp" if t.is_timestamp(dtype) else "binary"
        if kind != "binary" or t.is_binary(dtype):
            return readers[kind](value, dtype)
    except (ValueError, InvalidOperation, binascii.Error, _LostError):
        pass
    return f.Unsupported(f"literal {value!r} of type {dtype}")


def _float(value: Any) -> float:
    words = {"Infinity": "inf", "-Infinity": "-inf"}
    return float(words.get(value, value) if isinstance(value, str) else value)


def _nested_time(value: Any, dtype: pa.DataType) -> f.Lit:
    return f.Lit(int(value), dtype)


def _nested_binary(value: Any, dtype: pa.DataType) -> f.Lit:
    return f.Lit(base64.b64decode(value, validate=True))


class _LostError(Exception):
    """The text form does not hold the value."""


def _text_date(value: Any, dtype: pa.DataType) -> f.Lit:
    return f.Lit(str(value), dtype)


def _text_timestamp(value: Any, dtype: pa.DataType) -> f.Lit:
    if dtype.tz is None:
        return f.Lit(int(value), dtype)
    return f.Lit(SessionText(value), dtype)


def _text_binary(value: Any, dtype: pa.DataType) -> f.Lit:
    raise _LostError


_NESTED_READERS = {"date": _nested_time, "timestamp": _nested_time, "binary": _nested_binary}
_TEXT_READERS = {"date": _text_date, "timestamp": _text_timestamp, "binary": _text_binary}


# -- the pre-order form ---------------------------------------------------------------------------


def _from_preorder(nodes: list[dict[str, Any]]) -> f.Expression:
    expression, end = _subtree(nodes, 0)
    if end != len(nodes):
        raise PlanningError("the Catalyst JSON is malformed: nodes are left over")
    return expression


def _subtree(nodes: list[dict[str, Any]], at: int) -> tuple[f.Expression, int]:
    """The expression that starts at ``at``, and the index after it."""
    node = nodes[at]
    at += 1
    children: list[f.Expression] = []
    for _ in range(node["num-children"]):
        child, at = _subtree(nodes, at)
        children.append(child)
    return _text_node(node, children), at


def _text_node(node: dict[str, Any], children: list[f.Expression]) -> f.Expression:
    op = node["class"].rsplit(".", 1)[-1]
    if op == "AttributeReference":
        return f.Attribute((node["name"],))
    if op == "GetStructField" and isinstance(children[0], f.Attribute) and node.get("name"):
        return f.Attribute((*children[0].path, node["name"]))
    if op == "Literal":
        return _text_literal(node)
    if op == "Alias":
        return children[0]
    if op == "Cast":
        return f.Cast(children[0], type_from_json(node["dataType"]))
    if op == "Between":
        return _between(node)
    if op in ("InSet", "Like"):
        return _unsupported(op, children, None)
    return _build(op, children, node.get("name"), None)


def _text_literal(node: dict[str, Any]) -> f.Expression:
    try:
        dtype = type_from_json(node["dataType"])
    except IndexTablesError:
        return f.Unsupported(f"literal of type {node['dataType']}")
    if node["value"] is None or pa.types.is_null(dtype):
        return f.Lit(None)
    return _typed_literal(node["value"], dtype, _TEXT_READERS)


def _between(node: dict[str, Any]) -> f.Expression:
    value, low, high = (_from_preorder(node[key]) for key in ("input", "lower", "upper"))
    return f.And(f.GreaterThanOrEqual(value, low), f.LessThanOrEqual(value, high))
