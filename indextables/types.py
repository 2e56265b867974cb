"""Spark's types as Arrow types, and Spark's schema JSON.

The package works with Arrow: every Spark SQL type has exactly one Arrow type here, and a schema is
a ``pyarrow.Schema``. Two kinds of timestamps are kept apart: ``TIMESTAMP`` is ``timestamp[us,
UTC]`` (an instant), ``TIMESTAMP_NTZ`` is ``timestamp[us]`` (a wall clock). Input in a richer Arrow
vocabulary (large strings, dictionaries, views, other time units) is normalised once, here, and
only where no value can change.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa

from indextables.errors import SchemaMismatchError

_SIMPLE: dict[str, pa.DataType] = {
    "string": pa.string(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "binary": pa.binary(),
    "void": pa.null(),
    "null": pa.null(),
}
_ALIASES = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}
_NAMES = {v: k for k, v in _SIMPLE.items() if k != "null"}
_SQL_NAMES = {
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
}
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(-?\d+)\s*\)$")
_CHAR = re.compile(r"(var)?char\(\d+\)$")


def schema_from_json(text: str) -> pa.Schema:
    """The Arrow schema of a Spark ``StructType`` JSON."""
    try:
        document = json.loads(text)
        return pa.schema(_struct_fields(document))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise SchemaMismatchError(f"schema text is not a Spark struct: {error}") from error


def schema_to_json(schema: pa.Schema) -> str:
    """The Spark ``StructType`` JSON of an Arrow schema, in Spark's compact form."""
    return json.dumps(_struct_json(list(schema)), separators=(",", ":"), ensure_ascii=False)


def type_from_json(node: Any) -> pa.DataType:
    """The Arrow type of one node of Spark's type JSON."""
    if isinstance(node, str):
        return _simple_type(node)
    kind = node["type"]
    if kind == "struct":
        return pa.struct(_struct_fields(node))
    if kind == "array":
        item = pa.field("element", type_from_json(node["elementType"]), node["containsNull"])
        return pa.list_(item)
    if kind == "map":
        value = pa.field("value", type_from_json(node["valueType"]), node["valueContainsNull"])
        return pa.map_(type_from_json(node["keyType"]), value)
    if kind == "udt":
        return type_from_json(node["sqlType"])
    raise SchemaMismatchError(f"type '{kind}' is not supported")


def type_from_text(text: str) -> pa.DataType:
    """The Arrow type of what SQL writes: ``bigint``, ``array<string>``, ``struct<a: int>``."""
    kind, _, rest = text.strip().partition("<")
    inner = rest.rpartition(">")
    if not rest:
        return _simple_type(kind.strip())
    parts = _listed(inner[0])
    kind = kind.strip().lower()
    if inner[2].strip() or not inner[1]:
        raise SchemaMismatchError(f"type '{text}' is not supported")
    if kind == "array" and len(parts) == 1:
        return pa.list_(pa.field("element", type_from_text(parts[0])))
    if kind == "map" and len(parts) == 2:
        return pa.map_(type_from_text(parts[0]), pa.field("value", type_from_text(parts[1])))
    if kind == "struct" and all(parts):
        named = [re.split(r"\s*:\s*|\s+", part.strip(), maxsplit=1) for part in parts]
        if all(len(pair) == 2 for pair in named):
            return pa.struct([(name.strip("`"), type_from_text(kind)) for name, kind in named])
    raise SchemaMismatchError(f"type '{text}' is not supported")


def _listed(text: str) -> list[str]:
    """What stands between commas, outside of brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _simple_type(name: str) -> pa.DataType:
    lowered = _ALIASES.get(name.lower(), name.lower())
    if lowered in _SIMPLE:
        return _SIMPLE[lowered]
    if lowered == "decimal":
        return pa.decimal128(10, 0)
    if match := _DECIMAL.match(lowered):
        return pa.decimal128(int(match[1]), int(match[2]))
    if _CHAR.match(lowered) or lowered.startswith("string collate"):
        return pa.string()
    raise SchemaMismatchError(f"type '{name}' is not supported")


def _struct_fields(node: dict[str, Any]) -> list[pa.Field]:
    if node.get("type") != "struct":
        raise SchemaMismatchError("schema text is not a Spark struct")
    return [_struct_field(f) for f in node["fields"]]


def _struct_field(node: dict[str, Any]) -> pa.Field:
    dtype = type_from_json(node["type"])
    nullable = bool(node.get("nullable", True)) or dtype == pa.null()
    metadata = {"spark": json.dumps(node["metadata"])} if node.get("metadata") else None
    return pa.field(node["name"], dtype, nullable, metadata)


def type_to_json(dtype: pa.DataType) -> Any:
    """Spark's JSON node for an Arrow type."""
    if dtype in _NAMES:
        return _NAMES[dtype]
    if pa.types.is_decimal128(dtype):
        return f"decimal({dtype.precision},{dtype.scale})"
    if pa.types.is_struct(dtype):
        return _struct_json([dtype.field(i) for i in range(dtype.num_fields)])
    if pa.types.is_map(dtype):
        return {
            "type": "map",
            "keyType": type_to_json(dtype.key_type),
            "valueType": type_to_json(dtype.item_type),
            "valueContainsNull": dtype.item_field.nullable,
        }
    if pa.types.is_list(dtype):
        return {
            "type": "array",
            "elementType": type_to_json(dtype.value_type),
            "containsNull": dtype.value_field.nullable,
        }
    raise SchemaMismatchError(f"Arrow type '{dtype}' has no Spark type")


def _struct_json(fields: list[pa.Field]) -> dict[str, Any]:
    return {
        "type": "struct",
        "fields": [
            {
                "name": f.name,
                "type": type_to_json(f.type),
                "nullable": f.nullable,
                "metadata": json.loads((f.metadata or {}).get(b"spark", b"{}")),
            }
            for f in fields
        ],
    }


def type_name(dtype: pa.DataType) -> str:
    """The type as a Spark SQL user writes it: ``bigint``, ``array<string>``, ``decimal(10,2)``."""
    if dtype in _SQL_NAMES:
        return _SQL_NAMES[dtype]
    if pa.types.is_struct(dtype):
        inner = ",".join(f"{f.name}:{type_name(f.type)}" for f in dtype.fields)
        return f"struct<{inner}>"
    if pa.types.is_map(dtype):
        return f"map<{type_name(dtype.key_type)},{type_name(dtype.item_type)}>"
    if pa.types.is_list(dtype):
        return f"array<{type_name(dtype.value_type)}>"
    return str(type_to_json(dtype))


def normalize_type(dtype: pa.DataType) -> pa.DataType:
    """The Spark-shaped Arrow type that holds every value of ``dtype`` unchanged."""
    t = pa.types
    if dtype in _NAMES or t.is_decimal128(dtype):
        return dtype
    if t.is_large_string(dtype) or t.is_string_view(dtype):
        return pa.string()
    if t.is_large_binary(dtype) or t.is_binary_view(dtype) or t.is_fixed_size_binary(dtype):
        return pa.binary()
    if t.is_dictionary(dtype):
        return normalize_type(dtype.value_type)
    if t.is_unsigned_integer(dtype) and dtype.bit_width < 64:
        return {8: pa.int16(), 16: pa.int32(), 32: pa.int64()}[dtype.bit_width]
    if t.is_float16(dtype):
        return pa.float32()
    if t.is_timestamp(dtype):
        return pa.timestamp("us", "UTC" if dtype.tz else None)
    if t.is_date64(dtype):
        return pa.date32()
    if t.is_decimal(dtype) and dtype.precision <= 38:
        return pa.decimal128(dtype.precision, dtype.scale)
    if t.is_struct(dtype):
        return pa.struct([normalize_field(f) for f in _distinct(dtype.fields)])
    if t.is_map(dtype):
        return pa.map_(normalize_type(dtype.key_type), normalize_field(dtype.item_field, "value"))
    if t.is_list(dtype) or t.is_large_list(dtype) or t.is_fixed_size_list(dtype):
        return pa.list_(normalize_field(dtype.value_field, "element"))
    raise SchemaMismatchError(
        f"Arrow type '{dtype}' cannot be stored", hint="Cast the column to a Spark SQL type first"
    )


def _distinct(fields: list[pa.Field]) -> list[pa.Field]:
    """Fields of a struct may differ by case alone; one name twice could not be asked for."""
    names = [field.name for field in fields]
    for name in names:
        if names.count(name) > 1:
            raise SchemaMismatchError(
                f"duplicate field '{name}' in a struct", hint="Rename one of the two"
            )
    return fields


def normalize_field(field: pa.Field, name: str | None = None) -> pa.Field:
    """``field`` with its type normalised; only Spark's own metadata is kept."""
    kept = {k: v for k, v in (field.metadata or {}).items() if k == b"spark"}
    try:
        dtype = normalize_type(field.type)
    except SchemaMismatchError as error:
        error.message = f"column '{field.name}': {error.message}"
        raise
    return pa.field(name or field.name, dtype, field.nullable, kept or None)


def normalize_schema(schema: pa.Schema) -> pa.Schema:
    """The schema a table stores for data of this schema; duplicate names are an error."""
    seen: dict[str, str] = {}
    for name in schema.names:
        if name.lower() in seen:
            raise SchemaMismatchError(
                f"duplicate column '{name}' (also '{seen[name.lower()]}')",
                hint="Column names must differ by more than case",
            )
        seen[name.lower()] = name
    return pa.schema([normalize_field(f) for f in schema])
