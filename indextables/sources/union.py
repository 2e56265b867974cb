"""The type that holds the values of two: what a column of files with different schemas is."""

from __future__ import annotations

import pyarrow as pa

from indextables.errors import SchemaMismatchError
from indextables.sources.fit import grows


def united(a: pa.DataType, b: pa.DataType, name: str, first: str, second: str) -> pa.DataType:
    """The smallest of the two types that holds the other's values, field by field in structs."""
    t = pa.types
    if a == b or t.is_null(b):
        return a
    if t.is_null(a):
        return b
    if t.is_struct(a) and t.is_struct(b):
        return pa.struct(_united_fields(a, b, name, first, second))
    if t.is_map(a) and t.is_map(b):
        key = united(a.key_type, b.key_type, f"{name}.key", first, second)
        item = united(a.item_type, b.item_type, f"{name}.value", first, second)
        return pa.map_(key, a.item_field.with_type(item).with_nullable(True))
    if t.is_list(a) and t.is_list(b):
        inner = united(a.value_type, b.value_type, f"{name}.element", first, second)
        return pa.list_(a.value_field.with_type(inner).with_nullable(True))
    if not (t.is_nested(a) or t.is_nested(b)):
        for small, large in ((a, b), (b, a)):
            if grows(small, large):
                return large
        if both := _larger_than_both(a, b):
            return both
    raise SchemaMismatchError(
        f"column '{name}' is {a} in '{first}' and {b} in '{second}'",
        hint="Index the two kinds of files as two tables, or rewrite one of them",
    )


def _united_fields(
    a: pa.StructType, b: pa.StructType, name: str, first: str, second: str
) -> list[pa.Field]:
    fields = {f.name: f for f in a.fields}
    for other in b.fields:
        mine = fields.get(other.name, other)
        dtype = united(mine.type, other.type, f"{name}.{other.name}", first, second)
        fields[other.name] = pa.field(other.name, dtype)
    return list(fields.values())


def _larger_than_both(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """A third type: a decimal with the digits of both, a double for an INT and a FLOAT."""
    t = pa.types
    if t.is_decimal(a) and t.is_decimal(b):
        scale = max(a.scale, b.scale)
        digits = max(a.precision - a.scale, b.precision - b.scale) + scale
        return pa.decimal128(digits, scale) if digits <= 38 else None
    if grows(a, pa.float64()) and grows(b, pa.float64()):
        return pa.float64()
    return None
