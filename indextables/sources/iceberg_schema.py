"""Columns, constants and bounds of an Iceberg table.

The identity of a column is its field id. Files that have no ids (they were written before the table
was an Iceberg table) are read by the table's name mapping; where there is none, they are refused:
names alone do not say which column is meant.

Bounds are single values in Iceberg's binary form, of the type that the column had when the file was
written; a shorter number is one of a smaller type. A lower bound of text may be cut off, and an
upper bound that was cut off was made larger, so both hold.
"""

from __future__ import annotations

import json
import re
import struct
import uuid
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from indextables.errors import CorruptFileError, ProtocolError
from indextables.sources.base import UNMAPPED, SourceColumn, nested_field

NAME_MAPPING = "schema.name-mapping.default"
_SIMPLE: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "timestamp_ns": pa.timestamp("ns"),
    "timestamptz_ns": pa.timestamp("ns", "UTC"),
    "string": pa.string(),
    "uuid": pa.string(),
    "binary": pa.binary(),
    "unknown": pa.null(),
}
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)$")
_FIXED = re.compile(r"fixed\[\s*\d+\s*\]$")
_EPOCH = datetime(1970, 1, 1)

Names = Mapping[int, tuple[str, ...]]


def columns_of(schema: Mapping[str, Any], names: Names | None) -> list[SourceColumn]:
    """The columns of a schema; ``names`` are those of the name mapping, by field id."""
    try:
        return [_column(node, names) for node in schema["fields"]]
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        raise CorruptFileError(
            f"the schema of the Iceberg table does not parse: {error!r}"
        ) from None


def _column(node: Mapping[str, Any], names: Names | None) -> SourceColumn:
    field_id = int(node["id"])
    known = ("",) if names is None else names.get(field_id) or (UNMAPPED,)
    default = node.get("initial-default")
    return SourceColumn(
        node["name"],
        _type(node["type"], names, node["name"]),
        str(field_id),
        known[0],
        field_id=field_id,
        nullable=not node.get("required", False),
        default=None if default is None else _constant(default, node["type"]),
        comment=node.get("doc"),
        aliases=known[1:],
    )


def _type(node: Any, names: Names | None, where: str) -> pa.DataType:
    if isinstance(node, str):
        return _simple(node, where)
    kind = node["type"]
    if kind == "struct":
        return pa.struct([_field(f, names, where) for f in node["fields"]])
    if kind == "list":
        return pa.list_(pa.field("element", _type(node["element"], names, f"{where}.element")))
    if kind == "map":
        value = pa.field("value", _type(node["value"], names, f"{where}.value"))
        return pa.map_(_type(node["key"], names, f"{where}.key"), value)
    return _simple(str(kind), where)


def _field(node: Mapping[str, Any], names: Names | None, where: str) -> pa.Field:
    inside = f"{where}.{node['name']}"
    if node.get("initial-default") is not None:
        raise ProtocolError(f"the field '{inside}' inside a struct has a default value")
    field_id = int(node["id"])
    known = () if names is None else names.get(field_id) or (UNMAPPED,)
    dtype = _type(node["type"], names, inside)
    return nested_field(node["name"], dtype, field_id=field_id, names=known)


def _simple(text: str, where: str) -> pa.DataType:
    if text in _SIMPLE:
        return _SIMPLE[text]
    if found := _DECIMAL.match(text):
        return pa.decimal128(int(found[1]), int(found[2]))
    if _FIXED.match(text):
        return pa.binary()
    raise ProtocolError(f"column '{where}' has the type '{text}', which is not understood")


def _constant(value: Any, kind: Any) -> Any:
    """A default value in Iceberg's JSON form."""
    if not isinstance(kind, str):
        raise ProtocolError("a default value of a nested type")
    if kind == "date":
        return date.fromisoformat(value)
    if kind == "time":
        return time.fromisoformat(value)
    if kind.startswith("timestamp"):
        found = datetime.fromisoformat(value)
        return found.astimezone(UTC) if found.tzinfo else found
    if kind.startswith("decimal"):
        return Decimal(value)
    if kind == "binary" or kind.startswith("fixed"):
        return bytes.fromhex(value)
    return float(value) if kind in ("float", "double") else value


def mapped_names(properties: Mapping[str, str]) -> dict[int, tuple[str, ...]] | None:
    """The names of fields in files without ids, by field id; ``None`` without a mapping."""
    text = properties.get(NAME_MAPPING)
    if text is None:
        return None
    found: dict[int, tuple[str, ...]] = {}
    try:
        waiting = list(json.loads(text))
        while waiting:
            node = waiting.pop()
            if node.get("field-id") is not None:
                found[int(node["field-id"])] = tuple(node.get("names") or ())
            waiting += node.get("fields") or ()
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptFileError(f"the name mapping of the Iceberg table: {error!r}") from None
    return found


# -- values ---------------------------------------------------------------------------------------


def partition_value(value: Any, dtype: pa.DataType) -> Any:
    """A value of a partition, as Avro gives it, in the type of its column."""
    t = pa.types
    if value is None:
        return None
    if t.is_string(dtype):
        return str(value)
    if t.is_date(dtype) and isinstance(value, int):
        return date(1970, 1, 1) + timedelta(days=value)
    if t.is_timestamp(dtype):
        if isinstance(value, int):
            value = _EPOCH + timedelta(microseconds=value)
        if not isinstance(value, datetime) and isinstance(value, date):
            value = datetime(value.year, value.month, value.day)
        plain = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        return plain.replace(tzinfo=UTC) if dtype.tz else plain
    if t.is_time(dtype) and isinstance(value, int):
        return (_EPOCH + timedelta(microseconds=value)).time()
    return value


def bound(data: bytes | None, dtype: pa.DataType, is_uuid: bool = False) -> Any:
    """A bound in Iceberg's binary form; ``None`` where it proves nothing."""
    try:
        return None if data is None else _bound(bytes(data), dtype, is_uuid)
    except (ValueError, struct.error, OverflowError):
        return None


def _bound(data: bytes, dtype: pa.DataType, is_uuid: bool) -> Any:
    t = pa.types
    if t.is_boolean(dtype):
        return data != b"\0"
    if t.is_integer(dtype):
        return _integer(data)
    if t.is_floating(dtype):
        value = struct.unpack("<f" if len(data) == 4 else "<d", data)[0]
        return None if value != value else value
    if t.is_string(dtype):
        return str(uuid.UUID(bytes=data)) if is_uuid else data.decode("utf-8")
    if t.is_decimal(dtype):
        return Decimal(int.from_bytes(data, "big", signed=True)).scaleb(-dtype.scale)
    if t.is_date(dtype):
        return date(1970, 1, 1) + timedelta(days=_integer(data))
    if t.is_timestamp(dtype) and dtype.unit == "us":
        step = timedelta(days=1) if len(data) == 4 else timedelta(microseconds=1)
        found = _EPOCH + _integer(data) * step
        return found.replace(tzinfo=UTC) if dtype.tz else found
    return data if t.is_binary(dtype) else None


def _integer(data: bytes) -> int:
    if len(data) not in (4, 8):
        raise ValueError("a number of 4 or 8 bytes")
    return int.from_bytes(data, "little", signed=True)
