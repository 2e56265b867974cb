"""A filter of pyarrow as one of ours, so that DuckDB and pyarrow can push theirs down.

An expression of ``pyarrow.compute`` cannot be looked into, but it can be serialised: that gives an
Arrow file whose schema metadata lists the nodes in order (``call``, ``field_ref``, ``literal``,
``options``, ``end``) and whose columns hold the literals. The list is read through Arrow's C data
interface, since ``Schema.metadata`` is a dict and would keep only one node of each kind.

The result may only keep too much: what is not understood becomes ``None``, which stands for "any
row", and the caller applies the whole expression to the rows again. ``None`` beside an AND is
left out; an OR over it is ``None`` as well, and so is every NOT.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from indextables.expr import filters as f


@dataclass(frozen=True, slots=True)
class _Column:
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Value:
    value: Any


_Node = f.Filter | _Column | _Value | None


def to_filter(expression: Any) -> f.Filter | None:
    """Our filter for rows that may satisfy a pyarrow expression; ``None``: all rows."""
    if expression is None:
        return None
    try:
        batch = _serialised(expression)
        found = _Reader(iter(_pairs(batch.schema)), batch).node()
    except (pa.ArrowException, ValueError, LookupError, StopIteration):
        return None
    return found if isinstance(found, f.Filter) else None


def columns_of(expression: Any) -> set[str] | None:
    """Names of the columns that a pyarrow expression reads; ``None`` where that is not known."""
    if expression is None:
        return set()
    try:
        pairs = _pairs(_serialised(expression).schema)
    except (pa.ArrowException, ValueError, LookupError):
        return None
    return {text for kind, text in pairs if kind == "field_ref"}


def _serialised(expression: Any) -> pa.RecordBatch:
    (data,) = expression.__reduce__()[1]
    return pa.ipc.open_file(data).get_batch(0)


class _ArrowSchema(ctypes.Structure):
    _fields_ = (
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_void_p),
    )


def _pairs(schema: pa.Schema) -> list[tuple[str, str]]:
    """Keys and values of a schema's metadata, in order, doubles included."""
    capsule = schema.__arrow_c_schema__()
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype = ctypes.c_void_p
    pointer_of.argtypes = (ctypes.py_object, ctypes.c_char_p)
    address = _ArrowSchema.from_address(pointer_of(capsule, b"arrow_schema")).metadata
    if not address:
        return []

    def number() -> int:
        nonlocal address
        found = ctypes.c_int32.from_address(address).value
        address += 4
        return found

    def text() -> str:
        nonlocal address
        length = number()
        found = ctypes.string_at(address, length).decode()
        address += length
        return found

    return [(text(), text()) for _ in range(number())]


class _Reader:
    """Rebuilds the tree from its list of nodes."""

    def __init__(self, pairs: Iterator[tuple[str, str]], literals: pa.RecordBatch) -> None:
        self.pairs = pairs
        self.literals = literals

    def node(self) -> _Node:
        return self._node(*next(self.pairs))

    def _node(self, kind: str, text: str) -> _Node:
        match kind:
            case "field_ref":
                return _Column((text,))
            case "nested_field_ref":
                return self._nested(int(text))
            case "literal":
                return _Value(self.literals.column(int(text))[0])
            case "call":
                return self._call(text)
            case _:
                raise ValueError(f"node {kind!r}")

    def _nested(self, count: int) -> _Column:
        parts = [self.node() for _ in range(count)]
        return _Column(tuple(name for p in parts if isinstance(p, _Column) for name in p.path))

    def _call(self, name: str) -> _Node:
        arguments: list[_Node] = []
        options: dict[str, Any] = {}
        for kind, text in self.pairs:
            if kind == "end":
                return _apply(name, arguments, options)
            if kind == "options":
                options = self.literals.column(int(text))[0].as_py()
            else:
                arguments.append(self._node(kind, text))
        raise ValueError("no end")


_COMPARISONS: dict[str, tuple[Callable[..., f.Filter], str]] = {
    "equal": (f.EqualTo, "equal"),
    "less": (f.LessThan, "greater"),
    "less_equal": (f.LessThanOrEqual, "greater_equal"),
    "greater": (f.GreaterThan, "less"),
    "greater_equal": (f.GreaterThanOrEqual, "less_equal"),
}


def _apply(name: str, arguments: list[_Node], options: dict[str, Any]) -> _Node:
    match name, arguments:
        case (("and_kleene" | "and"), [left, right]):
            parts = [part for part in (left, right) if isinstance(part, f.Filter)]
            return f.And(*parts) if len(parts) == 2 else next(iter(parts), None)
        case (("or_kleene" | "or"), [f.Filter() as left, f.Filter() as right]):
            return f.Or(left, right)
        case ("is_valid", [_Column(path)]):
            return f.IsNotNull(f.Attribute(path))
        case ("is_null", [_Column(path)]) if not options.get("nan_is_null"):
            return f.IsNull(f.Attribute(path))
        case ("is_in", [_Column(path)]):
            values = [value for value in options["value_set"] if value is not None]
            nulls = len(values) < len(options["value_set"])
            return None if nulls else f.In(f.Attribute(path), values)
        case ("if_else", [f.IsNotNull(), f.Filter() as then, _Value(otherwise)]):
            return then if not otherwise.is_valid else None
        case ("starts_with", [_Column(path)]) if not options.get("ignore_case"):
            return f.StringStartsWith(f.Attribute(path), options["pattern"])
        case ("match_substring", [_Column(path)]) if not options.get("ignore_case"):
            return f.StringContains(f.Attribute(path), options["pattern"])
        case _:
            return _comparison(name, arguments)


def _comparison(name: str, arguments: list[_Node]) -> f.Filter | None:
    if name == "not_equal":
        equal = _comparison("equal", arguments)
        return None if equal is None else f.Not(equal)
    if name not in _COMPARISONS:
        return None
    match arguments:
        case [_Column(path), _Value(value)]:
            kind = _COMPARISONS[name][0]
        case [_Value(value), _Column(path)]:
            kind = _COMPARISONS[_COMPARISONS[name][1]][0]
        case _:
            return None
    plain = _plain(value)
    return None if plain is None else kind(f.Attribute(path), plain)


def _plain(value: pa.Scalar) -> Any:
    """The Python value of a literal; ``None`` for NULL, NaN and types that we compare otherwise."""
    dtype = value.type
    known = (
        pa.types.is_integer(dtype)
        or pa.types.is_string(dtype)
        or pa.types.is_large_string(dtype)
        or pa.types.is_boolean(dtype)
        or pa.types.is_date32(dtype)
    )
    if known:
        return value.as_py()
    if pa.types.is_timestamp(dtype) and dtype.tz in (None, "UTC") and dtype.unit != "ns":
        return value.as_py()
    if pa.types.is_float64(dtype) and value.is_valid and value.as_py() == value.as_py():
        return value.as_py()
    return None
