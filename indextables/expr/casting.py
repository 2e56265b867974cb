"""CAST over Arrow arrays, as Spark's ANSI mode does it.

Where Arrow's cast is the same (integers growing, FLOAT to DOUBLE) it is used; every other pair goes
value by value through the rules for literals, once for each distinct value. A value that cannot be
cast raises ``EvaluationError``, or is NULL under ``try_cast``.
"""

from __future__ import annotations

from datetime import tzinfo
from fractions import Fraction
from typing import Any

import pyarrow as pa

from indextables.errors import EvaluationError, TypeMismatchError
from indextables.expr import timetext
from indextables.expr.coercion import family
from indextables.expr.literals import Kind, Scalar, cast_scalar, clean_float
from indextables.types import type_name

_KINDS = {
    "int": Kind.INTEGER,
    "float": Kind.DOUBLE,
    "double": Kind.DOUBLE,
    "string": Kind.STRING,
    "bool": Kind.BOOLEAN,
    "date": Kind.DATE,
    "ts": Kind.TIMESTAMP,
    "ntz": Kind.NTZ,
    "binary": Kind.BINARY,
}


def cast_array(values: pa.Array, dtype: pa.DataType, tz: tzinfo, lenient: bool) -> pa.Array:
    """The values as ``dtype``."""
    source = values.type
    if pa.types.is_null(source):
        return pa.nulls(len(values), dtype)
    if _arrow_does_it(source, dtype):
        return values.cast(dtype)
    coded = values.dictionary_encode()
    distinct = physical_values(coded.dictionary)
    made = [_cast_one(v, source, dtype, tz, lenient) for v in distinct]
    return array_of(made, dtype).take(coded.indices)


def _arrow_does_it(source: pa.DataType, target: pa.DataType) -> bool:
    a, b = family(source), family(target)
    if a == b == "int":
        return bool(target.bit_width >= source.bit_width)
    if a == "int" and b == "double":
        return bool(source.bit_width <= 32)
    return (a, b) in (("float", "double"), ("bool", "int"), ("string", "binary"))


def physical_values(array: pa.Array) -> list[Any]:
    """The values as bound literals hold them: days, microseconds, exact fractions."""
    kind = family(array.type)
    if kind == "date":
        return list(array.view(pa.int32()).to_pylist())
    if kind in ("ts", "ntz"):
        return list(array.view(pa.int64()).to_pylist())
    if kind == "decimal":
        return [None if v is None else Fraction(v) for v in array.to_pylist()]
    return list(array.to_pylist())


def array_of(values: list[Any], dtype: pa.DataType) -> pa.Array:
    """An array of physical values; decimals are given as fractions."""
    kind = family(dtype)
    if kind == "date":
        return pa.array(values, pa.int32()).view(dtype)
    if kind in ("ts", "ntz"):
        return pa.array(values, pa.int64()).view(dtype)
    if kind == "decimal":
        scale = Fraction(10) ** dtype.scale
        return decimal_array([None if v is None else int(v * scale) for v in values], dtype)
    return pa.array(values, dtype)


def decimal_array(unscaled: list[int | None], dtype: pa.DataType) -> pa.Array:
    """Unscaled integers as decimals of a type."""
    raw = b"".join((v or 0).to_bytes(16, "little", signed=True) for v in unscaled)
    valid = pa.array([v is not None for v in unscaled], pa.bool_())
    buffers = [valid.buffers()[1], pa.py_buffer(raw)]
    return pa.Array.from_buffers(dtype, len(unscaled), buffers)


def _cast_one(
    value: Any, source: pa.DataType, dtype: pa.DataType, tz: tzinfo, lenient: bool
) -> Any:
    if value is None:
        return None
    try:
        if family(dtype) == "string":
            return text_of(value, source, tz)
        scalar = Scalar(_KINDS.get(family(source), Kind.DECIMAL), value)
        if scalar.kind is Kind.DOUBLE:
            scalar = Scalar(Kind.DOUBLE, clean_float(value))
        return cast_scalar(scalar, dtype, tz).value
    except TypeMismatchError as error:
        if lenient:
            return None
        raise EvaluationError(
            f"{value!r} cannot be cast to {type_name(dtype)}", hint="Use try_cast to get NULL"
        ) from error


def text_of(value: Any, source: pa.DataType, tz: tzinfo) -> str:
    """``CAST(value AS STRING)``."""
    kind = family(source)
    if kind == "bool":
        return "true" if value else "false"
    if kind == "date":
        return timetext.format_date(value)
    if kind in ("ts", "ntz"):
        wall = timetext.instant_to_local(value, tz) if kind == "ts" else value
        return timetext.format_wall(wall)
    if kind == "decimal":
        unscaled = int(value * 10**source.scale)
        digits = str(abs(unscaled)).rjust(source.scale + 1, "0")
        sign = "-" if unscaled < 0 else ""
        whole, part = digits[: len(digits) - source.scale], digits[len(digits) - source.scale :]
        return sign + whole + ("." + part if source.scale else "")
    return str(value)
