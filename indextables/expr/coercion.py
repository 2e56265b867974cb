"""Common types of two operands and castable pairs, as Spark's ANSI mode sees them.

Only what can be computed exactly is answered; ``NotComputableError`` leaves the rest to Spark.
"""

from __future__ import annotations

import pyarrow as pa

TIMESTAMP = pa.timestamp("us", "UTC")
NTZ = pa.timestamp("us")
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}
_CASTS: dict[str, frozenset[str]] = {
    "int": frozenset({"int", "decimal", "float", "double", "string"}),
    "decimal": frozenset({"int", "decimal", "double", "string"}),
    "float": frozenset({"float", "double", "int"}),
    "double": frozenset({"float", "double", "int"}),
    "string": frozenset(
        {"string", "int", "decimal", "float", "double", "bool", "date", "ts", "ntz", "binary"}
    ),
    "bool": frozenset({"bool", "string", "int"}),
    "date": frozenset({"date", "ts", "ntz", "string"}),
    "ts": frozenset({"ts", "date", "ntz", "string"}),
    "ntz": frozenset({"ntz", "date", "ts", "string"}),
    "binary": frozenset({"binary"}),
    "null": frozenset({"int", "decimal", "float", "double", "string", "bool", "date", "ts", "ntz"}),
}


class NotComputableError(Exception):
    """Spark's answer cannot be given here; never leaves this package."""


def family(dtype: pa.DataType) -> str:
    """The type's kind, widths and scales aside."""
    t = pa.types
    if t.is_integer(dtype):
        return "int"
    if t.is_decimal(dtype):
        return "decimal"
    if t.is_timestamp(dtype):
        return "ts" if dtype.tz else "ntz"
    tests = {
        "float": t.is_float32,
        "double": t.is_float64,
        "string": t.is_string,
        "bool": t.is_boolean,
        "date": t.is_date32,
        "binary": t.is_binary,
        "null": t.is_null,
    }
    for name, test in tests.items():
        if test(dtype):
            return name
    return "nested"


def is_castable(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether the cast can be computed exactly as Spark does."""
    if family(source) == "decimal" and family(target) == "string" and source.scale > 6:
        return False
    return source == target or family(target) in _CASTS.get(family(source), frozenset())


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The type in which two operands are compared."""
    if left == right:
        return left
    a, b = family(left), family(right)
    if "null" in (a, b):
        return right if a == "null" else left
    if a == b == "int":
        return left if left.bit_width > right.bit_width else right
    numbers = ("int", "decimal", "float", "double")
    if a in numbers and b in numbers:
        if {a, b} <= {"int", "decimal"}:
            return _common_decimal(_as_decimal(left), _as_decimal(right))
        return pa.float64()
    if "string" in (a, b):
        return _beside_string(right if a == "string" else left)
    if {a, b} <= {"date", "ts", "ntz"}:
        return TIMESTAMP if "ts" in (a, b) else NTZ
    raise NotComputableError


def common_of(dtypes: list[pa.DataType]) -> pa.DataType:
    """The common type of several operands."""
    result = dtypes[0]
    for dtype in dtypes[1:]:
        result = common_type(result, dtype)
    return result


def _beside_string(other: pa.DataType) -> pa.DataType:
    kind = family(other)
    if kind == "int":
        return pa.int64()
    if kind in ("decimal", "float", "double"):
        return pa.float64()
    if kind in ("bool", "date", "ts", "ntz", "binary"):
        return other
    raise NotComputableError


def _as_decimal(dtype: pa.DataType) -> pa.DataType:
    if pa.types.is_decimal(dtype):
        return dtype
    return pa.decimal128(_DIGITS[dtype.bit_width], 0)


def _common_decimal(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    scale = max(left.scale, right.scale)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    if whole + scale > 38:
        raise NotComputableError
    return pa.decimal128(whole + scale, scale)
