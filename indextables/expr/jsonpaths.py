"""JSON fields: a nested value as scalars at paths.

Structs, arrays, maps and strings mapped as ``json`` are seen alike, as a bag of scalars, each at a
dotted path below the column (``""`` is the column itself):

* a struct field or a map key adds a part to the path; a dot inside a key is the same as nesting;
* the elements of an array lie at the path of the array, so ``tags:red`` asks for any element;
* nulls are absent. A path *exists* in a row where a scalar lies at it or below it; the column
  itself exists where it is not null;
* JSON text that does not parse is one string at the path of the column.

Each scalar has tokens. A string has those of the ``default`` analyzer. A number has one: its plain
decimal notation without exponent or trailing zeros, ``-0`` as ``0`` (so 1, 1.0 and 1.00 agree, and
agree with the token of the string "1"). A bool is ``true`` or ``false``. Dates and timestamps are
analysed as their ISO text. Binary values have no token.

``alternatives`` are the token sequences a typed or untyped query value stands for at a path.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from indextables.expr.analyzers import analyze
from indextables.native._f64 import format_f64, format_f64_array

ARRAY_PART = "_values"
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d{1,3})?$", re.ASCII)
_INT64 = range(-(2**63), 2**63)


class Leaf(NamedTuple):
    """All scalars of one type at one path: ``values[i]`` belongs to row ``rows[i]``."""

    path: str
    rows: NDArray[np.int64]
    values: pa.Array


def split_field(field: str) -> tuple[str, str]:
    """(column, path) of a query field; the ``_values`` part of array columns is dropped."""
    column, _, path = field.partition(".")
    if path == ARRAY_PART or path.startswith(ARRAY_PART + "."):
        path = path[len(ARRAY_PART) + 1 :]
    return column, path


def flatten(array: Any, *, is_text: bool = False) -> list[Leaf]:
    """The scalars of a column, grouped by path and type, sorted by path; rows ascend."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    rows = np.arange(len(array), dtype=np.int64)
    found = _parse(array) if is_text else list(_walk("", rows, array))
    return sorted(found, key=lambda leaf: (leaf.path, str(leaf.values.type)))


def _join(path: str, part: str) -> str:
    return f"{path}.{part}" if path else part


def _walk(path: str, rows: NDArray[np.int64], array: Any) -> Iterator[Leaf]:
    if array.null_count or pa.types.is_null(array.type):
        keep = array.is_valid()
        rows = rows[keep.to_numpy(zero_copy_only=False)]
        array = array.filter(keep)
    if len(array) == 0:
        return
    kind = array.type
    if pa.types.is_struct(kind):
        for i in range(kind.num_fields):
            yield from _walk(_join(path, kind.field(i).name), rows, array.field(i))
    elif pa.types.is_map(kind):
        yield from _walk_map(path, rows, array)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        lengths = pc.list_value_length(array).to_numpy(zero_copy_only=False)
        yield from _walk(path, np.repeat(rows, lengths), array.flatten())
    else:
        yield Leaf(path, rows, array)


def _walk_map(path: str, rows: NDArray[np.int64], array: Any) -> Iterator[Leaf]:
    offsets = np.asarray(array.offsets)
    first, count = int(offsets[0]), int(offsets[-1] - offsets[0])
    rows = np.repeat(rows, np.diff(offsets))
    coded = scalar_texts(array.keys.slice(first, count)).dictionary_encode()
    codes = coded.indices.to_numpy(zero_copy_only=False)
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(coded.dictionary) + 1))
    items = array.items.slice(first, count)
    for code, key in enumerate(coded.dictionary.to_pylist()):
        picked = order[bounds[code] : bounds[code + 1]]
        yield from _walk(_join(path, key), rows[picked], items.take(pa.array(picked)))


# -- JSON text -----------------------------------------------------------------------------------


def _parse(array: Any) -> list[Leaf]:
    found: dict[tuple[str, str], tuple[list[int], list[Any]]] = {}
    for row, text in enumerate(array.to_pylist()):
        if text is not None:
            for path, kind, value in _scalars("", load_json(text)):
                rows, values = found.setdefault((path, kind), ([], []))
                rows.append(row)
                values.append(value)
    return [
        Leaf(path, np.array(rows, np.int64), pa.array(values, _KINDS[kind]))
        for (path, kind), (rows, values) in found.items()
    ]


_KINDS = {
    "string": pa.string(),
    "int": pa.int64(),
    "float": pa.float64(),
    "bool": pa.bool_(),
    "big": pa.decimal128(38, 0),
}


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def load_json(text: str) -> Any:
    """The value of a JSON text; a text that is not JSON is itself a string."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return text


def _scalars(path: str, value: Any) -> Iterator[tuple[str, str, Any]]:
    stack = [(path, value)]
    while stack:
        at, node = stack.pop()
        if isinstance(node, dict):
            stack.extend((_join(at, key), child) for key, child in reversed(node.items()))
        elif isinstance(node, list):
            stack.extend((at, child) for child in reversed(node))
        elif node is not None:
            kind, scalar = _scalar_kind(node)
            yield at, kind, scalar


def _scalar_kind(node: Any) -> tuple[str, Any]:
    if isinstance(node, bool):
        return "bool", node
    if isinstance(node, int):
        if node in _INT64:
            return "int", node
        return ("big", Decimal(node)) if abs(node) < 10**38 else ("string", str(node))
    if isinstance(node, float):
        return "float", node
    return "string", _clean(node)


def _clean(text: str) -> str:
    """JSON escapes can spell lone surrogates, which no UTF-8 column can hold."""
    return text.encode("utf-8", "replace").decode()


# -- texts and tokens ----------------------------------------------------------------------------


def is_analysed(dtype: pa.DataType) -> bool:
    """Are scalars of this type cut by the analyzer (rather than one token each)?"""
    t = pa.types
    return bool(t.is_string(dtype) or t.is_large_string(dtype) or t.is_temporal(dtype))


def scalar_texts(values: Any) -> pa.Array:
    """The text of each scalar: the token of numbers and bools, what the analyzer cuts of others."""
    t = pa.types
    kind = values.type
    if t.is_floating(kind):
        return format_f64_array(pc.add(values.cast(pa.float64()), 0.0)).cast(pa.string())
    if t.is_decimal(kind):
        return _decimal_texts(values)
    if t.is_binary(kind) or t.is_large_binary(kind):
        return pa.array([v.hex() for v in values.to_pylist()], pa.string())
    if t.is_date(kind):
        return pc.strftime(values, format="%Y-%m-%d")
    if t.is_timestamp(kind):
        plain = values.cast(pa.int64()).cast(pa.timestamp(kind.unit))
        return pc.strftime(plain, format="%Y-%m-%dT%H:%M:%S")
    return values.cast(pa.string())


def _decimal_texts(values: Any) -> pa.Array:
    coded = values.dictionary_encode()
    texts = [decimal_text(v) for v in coded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(coded.indices)


def decimal_text(value: Decimal) -> str:
    """Plain notation without trailing zeros."""
    text = format(value, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def token(value: Any) -> str:
    """The token of a scalar that a query names."""
    return value if isinstance(value, str) else number_text(value)


def number_text(value: int | float) -> str:
    """The token of a number (or bool)."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    return format_f64(value + 0.0)


def alternatives(value: Any) -> list[tuple[str, ...]]:
    """Token sequences a value may be indexed as; ``FullText`` matches if any of them does.

    An untyped text may be words, a number or both: ``3.14`` is the words 3 and 14 side by side,
    or the number. An empty list means that nothing can match.
    """
    if not isinstance(value, str):
        return [(number_text(value),)]
    found = [tuple(analyze("default", value))]
    if _NUMBER.match(value):
        found.append((decimal_text(Decimal(value)),))
        found.append((format_f64(float(value) + 0.0),))
    return [tokens for tokens in dict.fromkeys(found) if tokens]
