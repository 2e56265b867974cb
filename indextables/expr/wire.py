"""A filter on its way through an option of Spark, which holds nothing but text.

The tree travels as JSON, class by class and field by field, and is built again from exactly that:
no value is ever rendered as SQL and parsed. ``{"filter": "EqualTo", "left": ..., "right": ...}``;
what JSON does not know (dates, decimals, bytes, types) is an object of one key that names its kind.
A text that a user wrote is never in this form: it is no SQL.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime
import json
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa

from indextables.errors import PlanningError
from indextables.expr import filters as f
from indextables.types import type_from_json, type_to_json

_HEAD = '{"filter": '
_CLASSES: dict[str, type[f.Expression]] = {
    cls.__name__: cls
    for cls in (
        f.AlwaysFalse, f.AlwaysTrue, f.And, f.Attribute, f.Cast, f.EqualNullSafe, f.EqualTo,
        f.FieldMatch, f.Function, f.GreaterThan, f.GreaterThanOrEqual, f.In, f.IndexQuery,
        f.IsNotNull, f.IsNull, f.LessThan, f.LessThanOrEqual, f.Like, f.Lit, f.Not, f.Or, f.RLike,
        f.StringContains, f.StringEndsWith, f.StringStartsWith, f.TextSearch,
    )
}  # fmt: skip
_READERS: dict[str, Callable[[Any], Any]] = {
    "tuple": lambda items: tuple(map(_decoded, items)),
    "bytes": lambda text: base64.b64decode(text, validate=True),
    "decimal": Decimal,
    "float": float,
    "moment": datetime.datetime.fromisoformat,
    "date": datetime.date.fromisoformat,
    "type": type_from_json,
}


def to_text(expression: f.Expression) -> str:
    """The filter as text that ``parse_filters`` takes."""
    return json.dumps(_encoded(expression))


def is_wire_text(text: str) -> bool:
    """Was this text made by ``to_text``?"""
    return text.startswith(_HEAD)


def from_text(text: str) -> f.Expression:
    """The filter that ``to_text`` was given."""
    try:
        found = _decoded(json.loads(text))
    except (ValueError, KeyError, TypeError, ArithmeticError, RecursionError) as error:
        raise PlanningError(f"the filter in the option is malformed: {error!r}") from error
    if not isinstance(found, f.Expression):
        raise PlanningError("the filter in the option is malformed")
    return found


def _encoded(value: Any) -> Any:
    if isinstance(value, f.Expression):
        return _tree(value)
    if value is None or type(value) in (bool, int, str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, tuple):
        return {"tuple": [_encoded(item) for item in value]}
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    if isinstance(value, datetime.datetime):
        return {"moment": value.isoformat()}
    if isinstance(value, datetime.date):
        return {"date": value.isoformat()}
    if isinstance(value, pa.DataType):
        return {"type": type_to_json(value)}
    raise PlanningError(
        f"a filter with {value!r} cannot be sent to Spark", hint="Use a SQL predicate"
    )


def _tree(expression: f.Expression) -> dict[str, Any]:
    name = type(expression).__name__
    if _CLASSES.get(name) is not type(expression):
        raise PlanningError(
            f"{expression!r} cannot be sent to Spark", hint="Use filter() of the DataFrame"
        )
    names = [field.name for field in dataclasses.fields(expression)]  # type: ignore[arg-type]
    return {"filter": name, **{n: _encoded(getattr(expression, n)) for n in names}}


def _decoded(node: Any) -> Any:
    if not isinstance(node, dict):
        return node
    if "filter" not in node:
        [(kind, value)] = node.items()
        return _READERS[kind](value)
    cls = _CLASSES[node["filter"]]
    made = cls.__new__(cls)
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        object.__setattr__(made, field.name, _decoded(node[field.name]))
    return made
