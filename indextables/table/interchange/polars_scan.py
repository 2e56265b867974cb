"""``scan_polars``: a table as a Polars ``LazyFrame`` that asks for columns, rows and a predicate.

Polars hands its predicate to the source as an expression, whose tree it can write as JSON. What is
understood of it becomes a filter of ours and finds splits and rows; the whole predicate is then
applied by Polars to every batch, so the answer is exactly Polars'. As everywhere, what is not
understood may only keep too much.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from indextables.errors import MissingLibraryError
from indextables.expr import filters as f
from indextables.table import execute
from indextables.table.interchange.outputs import pushed_plan

if TYPE_CHECKING:
    from indextables.table.table import Table

_EPOCH = datetime.datetime(1970, 1, 1)
_UNITS = {"Microseconds": 1, "Milliseconds": 1000}


def polars() -> Any:
    """The library, or an error that says how to get it."""
    try:
        import polars as library
        import polars.io.plugins
    except ImportError:
        raise MissingLibraryError.of("Polars", "polars") from None
    return library


def scan(table: Table, where: Any = None) -> Any:
    """A ``LazyFrame`` over a table."""
    library = polars()
    empty = library.from_arrow(table.schema.empty_table())

    def source(
        with_columns: list[str] | None, predicate: Any, n_rows: int | None, batch_size: int | None
    ) -> Iterator[Any]:
        wanted = None if predicate is None else to_filter(predicate)
        limit = n_rows if predicate is None else None
        plan = pushed_plan(table, where, wanted, with_columns, limit)
        for batch in execute.batches(table, plan, batch_size):
            frame = library.from_arrow(pa.Table.from_batches([batch]))
            yield frame if predicate is None else frame.filter(predicate)

    return library.io.plugins.register_io_source(source, schema=empty.schema)


def to_filter(predicate: Any) -> f.Filter | None:
    """Our filter for rows that may satisfy a Polars expression; ``None``: all rows."""
    try:
        tree = json.loads(predicate.meta.serialize(format="json"))
        return _filter(tree)
    except Exception:  # a tree of another release of Polars: every row may match
        return None


_OPERATORS: dict[str, tuple[Callable[..., f.Filter], str]] = {
    "Eq": (f.EqualTo, "Eq"),
    "Lt": (f.LessThan, "Gt"),
    "LtEq": (f.LessThanOrEqual, "GtEq"),
    "Gt": (f.GreaterThan, "Lt"),
    "GtEq": (f.GreaterThanOrEqual, "LtEq"),
}


def _filter(tree: Any) -> f.Filter | None:
    match tree:
        case {"BinaryExpr": {"left": left, "op": "And", "right": right}}:
            parts = [part for part in (_filter(left), _filter(right)) if part is not None]
            return f.And(*parts) if len(parts) == 2 else next(iter(parts), None)
        case {"BinaryExpr": {"left": left, "op": "Or", "right": right}}:
            one, other = _filter(left), _filter(right)
            return None if one is None or other is None else f.Or(one, other)
        case {"BinaryExpr": {"left": {"Column": name}, "op": str(op), "right": value}}:
            return _compared(op, name, value)
        case {"BinaryExpr": {"left": value, "op": str(op), "right": {"Column": name}}}:
            return _compared(_OPERATORS[op][1], name, value) if op in _OPERATORS else None
        case {"Function": {"input": [{"Column": name}, *rest], "function": function}}:
            return _called(function, f.Attribute((name,)), rest)
        case _:
            return None


def _compared(op: str, name: str, literal: Any) -> f.Filter | None:
    value = _value(literal)
    if op not in _OPERATORS or value is None:
        return None
    return _OPERATORS[op][0](f.Attribute((name,)), value)


def _called(function: Any, column: f.Attribute, rest: list[Any]) -> f.Filter | None:
    match function, rest:
        case {"Boolean": "IsNull"}, []:
            return f.IsNull(column)
        case {"Boolean": "IsNotNull"}, []:
            return f.IsNotNull(column)
        case {"StringExpr": "StartsWith"}, [value] if isinstance(_value(value), str):
            return f.StringStartsWith(column, _value(value))
        case {"StringExpr": {"Contains": {"literal": True}}}, [value] if isinstance(
            _value(value), str
        ):
            return f.StringContains(column, _value(value))
        case {"Boolean": {"IsIn": {"nulls_equal": False}}}, [
            {"Literal": {"Scalar": {"List": data}}}
        ]:
            values = pa.ipc.open_stream(bytes(data)).read_all().column(0).to_pylist()
            flat = values[0] if values and isinstance(values[0], list) else values
            known = all(isinstance(v, int | str) and not isinstance(v, bool) for v in flat)
            return f.In(column, flat) if known else None
        case _:
            return None


def _value(tree: Any) -> Any:
    """The Python value of a literal; ``None`` for what is compared otherwise here."""
    match tree:
        case {"Literal": {"Dyn": {"Int": int(value)}}}:
            return value
        case {"Literal": {"Dyn": {"Float": float(value)}}} if value == value:
            return value
        case {"Literal": {"Scalar": {"String": str(value)}}}:
            return value
        case {"Literal": {"Scalar": {"Boolean": bool(value)}}}:
            return value
        case {"Literal": {"Scalar": {"Date": int(days)}}}:
            return _EPOCH.date() + datetime.timedelta(days=days)
        case {"Literal": {"Scalar": {"Datetime": [int(count), str(unit), None]}}} if unit in _UNITS:
            return _EPOCH + datetime.timedelta(microseconds=count * _UNITS[unit])
        case _:
            return None
