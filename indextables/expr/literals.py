"""A literal meets a column: converted once, by Spark's rules, to the column's physical type.

Integers, decimals, dates and timestamps are all points on a line of whole numbers (the unscaled
number, days, microseconds). A literal falls on that line as a ``Span``: the points equal to it.
``5`` against an INT is the span 5..5; ``1.5`` is empty and lies between 1 and 2; a DOUBLE against
a DECIMAL column is every decimal whose double is that one, because Spark compares the two as
doubles. From the span each operator follows without rounding: ``x < 1.5`` is ``x <= 1``,
``x = 1.5`` is never true, ``x < 3000000000`` on an INT is ``x IS NOT NULL``.

What converts how:

* a string literal is parsed as the column's type; text that does not parse is an error, as under
  ANSI mode; a number against a string column casts the column, which cannot be undone: undecided;
* BIGINT against DOUBLE or FLOAT is compared exactly, also above 2**53, whichever of the two is the
  literal; a decimal literal is rounded to the nearest double, as Spark does;
* a naive datetime or a timestamp text without zone is read in the session's zone; a DATE against
  a TIMESTAMP is the first instant of that day there; an instant against TIMESTAMP_NTZ depends on
  the zone's history row by row: undecided;
* FLOAT is compared as the double it is; NaN equals NaN and is greater than every other number;
  ``-0.0`` is ``0.0``.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from datetime import date, datetime, tzinfo
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any

import pyarrow as pa

from indextables.errors import TypeMismatchError, require_characters
from indextables.expr import timetext
from indextables.expr.filters import Lit
from indextables.types import type_name


class Kind(Enum):
    """What a literal is before it meets a column."""

    NULL = "null"
    BOOLEAN = "boolean"
    INTEGER = "bigint"
    DECIMAL = "decimal"
    DOUBLE = "double"
    STRING = "string"
    BINARY = "binary"
    DATE = "date"
    TIMESTAMP = "timestamp"
    NTZ = "timestamp_ntz"
    NESTED = "nested value"


class SessionText(str):
    """Timestamp text already in the session's zone; a wall time shown twice is undecided."""

    __slots__ = ()


class UndecidableLiteralError(Exception):
    """Comparing would need a cast of the column; never leaves this package."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A literal with its kind; ``value`` is physical (days, microseconds, ``Fraction``)."""

    kind: Kind
    value: Any


@dataclass(frozen=True, slots=True)
class Span:
    """The points ``low..high`` equal a literal; empty if ``high == low - 1``."""

    low: int
    high: int


def scalar_of(literal: Lit, tz: tzinfo) -> Scalar:
    """The literal's kind and physical value."""
    value = _plain(literal.value)
    if value is None:
        return Scalar(Kind.NULL, None)
    if literal.dtype is not None:
        return _typed(value, literal.dtype, tz)
    if isinstance(value, bool):
        return Scalar(Kind.BOOLEAN, value)
    if isinstance(value, int):
        return Scalar(Kind.INTEGER, value)
    if isinstance(value, float):
        return Scalar(Kind.DOUBLE, clean_float(value))
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, str):
        require_characters(value)
        return Scalar(Kind.STRING, value)
    if isinstance(value, bytes):
        return Scalar(Kind.BINARY, value)
    if isinstance(value, datetime):
        if value.tzinfo is None:
            return Scalar(Kind.NTZ, timetext.wall_micros(value))
        return Scalar(Kind.TIMESTAMP, timetext.instant_micros(value))
    if isinstance(value, date):
        return Scalar(Kind.DATE, value.toordinal() - date(1970, 1, 1).toordinal())
    if isinstance(value, tuple):
        return Scalar(Kind.NESTED, value)
    raise TypeMismatchError(f"a literal cannot be a {type(value).__name__}")


def _plain(value: Any) -> Any:
    if isinstance(value, pa.Scalar):
        return value.as_py()
    if type(value).__module__ == "numpy":
        if type(value).__name__ == "datetime64":
            value = value.astype("datetime64[us]")
        return value.item()
    return value


def _decimal(value: Decimal) -> Scalar:
    if not value.is_finite():
        raise TypeMismatchError(f"decimal literal {value} is not a number")
    return Scalar(Kind.DECIMAL, Fraction(value))


def _typed(value: Any, dtype: pa.DataType, tz: tzinfo) -> Scalar:
    t = pa.types
    if t.is_decimal(dtype) and isinstance(value, int):
        return Scalar(Kind.DECIMAL, Fraction(value, 1) / Fraction(10) ** dtype.scale)
    if t.is_float32(dtype) and isinstance(value, int | float):
        return Scalar(Kind.DOUBLE, clean_float(as_float32(float(value))))
    if t.is_date(dtype) and isinstance(value, int):
        return Scalar(Kind.DATE, value)
    if t.is_timestamp(dtype) and isinstance(value, int):
        return Scalar(Kind.TIMESTAMP if dtype.tz else Kind.NTZ, value)
    if isinstance(value, SessionText) and dtype.tz:
        wall = timetext.parse_timestamp(value, None)
        if wall is not None and timetext.is_repeated(wall, tz):
            raise UndecidableLiteralError(f"'{value}' happens twice in the session's zone")
    inner = scalar_of(Lit(value), tz)
    return inner if inner.kind is Kind.NESTED else cast_scalar(inner, dtype, tz)


def cast_scalar(scalar: Scalar, dtype: pa.DataType, tz: tzinfo) -> Scalar:
    """``CAST(literal AS dtype)``, for the casts that a predicate can hold; errors as under ANSI."""
    t = pa.types
    if scalar.kind is Kind.NULL or t.is_null(dtype):
        return Scalar(Kind.NULL, None)
    if t.is_integer(dtype):
        return Scalar(Kind.INTEGER, _to_integer(scalar, dtype))
    if t.is_floating(dtype):
        value = to_double(scalar)
        return Scalar(Kind.DOUBLE, as_float32(value) if t.is_float32(dtype) else value)
    if t.is_decimal(dtype):
        return Scalar(Kind.DECIMAL, _to_decimal(scalar, dtype))
    if t.is_boolean(dtype):
        return Scalar(Kind.BOOLEAN, to_boolean(scalar))
    if t.is_date(dtype):
        return Scalar(Kind.DATE, _to_date(scalar, tz))
    if t.is_timestamp(dtype):
        kind = Kind.TIMESTAMP if dtype.tz else Kind.NTZ
        return Scalar(kind, _to_timestamp(scalar, kind, tz))
    if t.is_binary(dtype) and scalar.kind in (Kind.STRING, Kind.BINARY):
        return Scalar(Kind.BINARY, to_bytes(scalar))
    if t.is_string(dtype) and scalar.kind in (Kind.STRING, Kind.INTEGER, Kind.BOOLEAN):
        text = scalar.value if scalar.kind is Kind.STRING else str(scalar.value).lower()
        return Scalar(Kind.STRING, text)
    raise UndecidableLiteralError(f"cast of {scalar.kind.value} to {type_name(dtype)}")


def mismatch(scalar: Scalar, dtype: pa.DataType) -> TypeMismatchError:
    """The error for a literal that can never be compared with such a column."""
    shown = f"'{scalar.value}'" if scalar.kind is Kind.STRING else scalar.kind.value
    wanted = type_name(dtype)
    return TypeMismatchError(
        f"cannot compare {wanted} with {shown}",
        hint=f"Write a literal of type {wanted}, or cast the column",
    )


# -- points on the line ---------------------------------------------------------------------------


def domain(dtype: pa.DataType) -> tuple[int, int]:
    """The least and the greatest physical value of a discrete type."""
    t = pa.types
    if t.is_integer(dtype):
        return -(1 << (dtype.bit_width - 1)), (1 << (dtype.bit_width - 1)) - 1
    if t.is_decimal(dtype):
        return -(10**dtype.precision) + 1, 10**dtype.precision - 1
    if t.is_date(dtype):
        return timetext.INT32_MIN, timetext.INT32_MAX
    return timetext.INT64_MIN, timetext.INT64_MAX


def span_of(scalar: Scalar, dtype: pa.DataType, tz: tzinfo) -> Span:
    """Where the literal lies on the line of a discrete column type."""
    t = pa.types
    if t.is_integer(dtype):
        return _integer_span(scalar, dtype)
    if t.is_decimal(dtype):
        return _decimal_span(scalar, dtype)
    if t.is_date(dtype):
        return _date_span(scalar, dtype, tz)
    return _timestamp_span(scalar, dtype, tz)


def _integer_span(scalar: Scalar, dtype: pa.DataType) -> Span:
    if scalar.kind is Kind.STRING:
        return _point(parse_integer(scalar, dtype))
    if scalar.kind in (Kind.INTEGER, Kind.DECIMAL):
        return _rational(Fraction(scalar.value))
    if scalar.kind is Kind.DOUBLE:
        return _double_exact(scalar.value, dtype)
    raise mismatch(scalar, dtype)


def _double_exact(value: float, dtype: pa.DataType) -> Span:
    low, high = domain(dtype)
    if value != value or value == math.inf:
        return Span(high + 1, high)
    if value == -math.inf:
        return Span(low, low - 1)
    return _rational(Fraction(value))


def _decimal_span(scalar: Scalar, dtype: pa.DataType) -> Span:
    if scalar.kind in (Kind.INTEGER, Kind.DECIMAL):
        return _rational(Fraction(scalar.value) * Fraction(10) ** dtype.scale)
    if scalar.kind in (Kind.DOUBLE, Kind.STRING):
        return double_preimage(to_double(scalar), dtype)
    raise mismatch(scalar, dtype)


def double_preimage(value: float, dtype: pa.DataType) -> Span:
    """The integers or decimals that Spark's cast to DOUBLE turns into ``value``."""
    low, high = domain(dtype)
    if not math.isfinite(value):
        return _double_exact(value, dtype)
    scale = dtype.scale if pa.types.is_decimal(dtype) else 0
    return Span(
        _first(low, high, lambda u: as_double(u, scale) >= value),
        _first(low, high, lambda u: as_double(u, scale) > value) - 1,
    )


def as_double(unscaled: int, scale: int) -> float:
    """The double nearest to ``unscaled / 10**scale``."""
    return unscaled / 10**scale if scale >= 0 else float(unscaled * 10**-scale)


def _first(low: int, high: int, holds: Any) -> int:
    """The least point of ``low..high`` where a rising test holds, ``high + 1`` if none."""
    high += 1
    while low < high:
        middle = (low + high) // 2
        if middle < high and holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _date_span(scalar: Scalar, dtype: pa.DataType, tz: tzinfo) -> Span:
    if scalar.kind is Kind.DATE:
        return _point(scalar.value)
    if scalar.kind is Kind.STRING:
        return _point(_to_date(scalar, tz))
    if scalar.kind is Kind.NTZ:
        return _rational(Fraction(scalar.value, timetext.DAY_MICROS))
    if scalar.kind is Kind.TIMESTAMP:
        day = timetext.day_of(scalar.value, tz)
        exact = timetext.day_start(day, tz) == scalar.value
        return Span(day, day) if exact else Span(day + 1, day)
    raise mismatch(scalar, dtype)


def _timestamp_span(scalar: Scalar, dtype: pa.DataType, tz: tzinfo) -> Span:
    kind = Kind.TIMESTAMP if dtype.tz else Kind.NTZ
    if kind is Kind.NTZ and scalar.kind is Kind.TIMESTAMP:
        raise UndecidableLiteralError("an instant against a wall clock")
    if scalar.kind in (kind, Kind.NTZ, Kind.DATE, Kind.STRING):
        return _point(_to_timestamp(scalar, kind, tz))
    raise mismatch(scalar, dtype)


def _point(value: int) -> Span:
    return Span(value, value)


def _rational(value: Fraction) -> Span:
    return Span(math.ceil(value), math.floor(value))


# -- single conversions ---------------------------------------------------------------------------


def clean_float(value: float) -> float:
    """One NaN and one zero."""
    return math.nan if value != value else value + 0.0


def as_float32(value: float) -> float:
    """The nearest FLOAT, as a double."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def to_double(scalar: Scalar) -> float:
    """The literal as DOUBLE."""
    if scalar.kind is Kind.DOUBLE:
        return float(scalar.value)
    if scalar.kind in (Kind.INTEGER, Kind.DECIMAL):
        try:
            return clean_float(float(scalar.value))
        except OverflowError:
            return math.inf if scalar.value > 0 else -math.inf
    if scalar.kind is Kind.STRING:
        return _parse_double(scalar.value)
    raise mismatch(scalar, pa.float64())


def _parse_double(text: str) -> float:
    body = text.strip()
    special = {"inf": math.inf, "infinity": math.inf, "nan": math.nan}
    unsigned = body.lower().lstrip("+-") if body[:1] in ("+", "-") else body.lower()
    if unsigned in special and not (unsigned == "nan" and body[:1] in ("+", "-")):
        return -special[unsigned] if body.startswith("-") else special[unsigned]
    number = body[:-1] if body[-1:] in ("d", "D", "f", "F") else body
    try:
        if "_" in number or not number.isascii() or not number[-1:] or number[-1:].isalpha():
            raise ValueError
        return clean_float(float(number))
    except ValueError:
        raise TypeMismatchError(f"'{text}' is not a number") from None


def parse_integer(scalar: Scalar, dtype: pa.DataType) -> int:
    """A string literal as BIGINT: ANSI takes no fraction and no overflow."""
    body = scalar.value.strip()
    digits = body[1:] if body[:1] in ("+", "-") else body
    if not (digits.isascii() and digits.isdigit()):
        raise mismatch(scalar, dtype)
    value = int(body)
    if not timetext.INT64_MIN <= value <= timetext.INT64_MAX:
        raise mismatch(scalar, dtype)
    return value


def to_boolean(scalar: Scalar) -> bool:
    """The literal as BOOLEAN; numbers are not."""
    if scalar.kind is Kind.BOOLEAN:
        return bool(scalar.value)
    if scalar.kind is Kind.STRING:
        word = scalar.value.strip().lower()
        if word in ("t", "true", "y", "yes", "1"):
            return True
        if word in ("f", "false", "n", "no", "0"):
            return False
    raise mismatch(scalar, pa.bool_())


def to_bytes(scalar: Scalar) -> bytes:
    """The literal as BINARY; a string is its UTF-8 bytes."""
    if scalar.kind is Kind.BINARY:
        return bytes(scalar.value)
    if scalar.kind is Kind.STRING:
        return bytes(scalar.value.encode())
    raise mismatch(scalar, pa.binary())


def _to_integer(scalar: Scalar, dtype: pa.DataType) -> int:
    if scalar.kind is Kind.STRING:
        value = parse_integer(scalar, dtype)
    elif scalar.kind in (Kind.INTEGER, Kind.DECIMAL) or (
        scalar.kind is Kind.DOUBLE and math.isfinite(scalar.value)
    ):
        value = int(scalar.value)
    else:
        raise mismatch(scalar, dtype)
    low, high = domain(dtype)
    if not low <= value <= high:
        raise TypeMismatchError(f"{value} does not fit {type_name(dtype)}")
    return value


def _to_decimal(scalar: Scalar, dtype: pa.DataType) -> Fraction:
    if scalar.kind is Kind.STRING:
        try:
            exact = Fraction(Decimal(scalar.value.strip()))
        except (ArithmeticError, ValueError):
            raise mismatch(scalar, dtype) from None
    elif scalar.kind is Kind.DOUBLE and math.isfinite(scalar.value):
        exact = Fraction(repr(scalar.value))
    elif scalar.kind in (Kind.INTEGER, Kind.DECIMAL):
        exact = Fraction(scalar.value)
    else:
        raise mismatch(scalar, dtype)
    unscaled = abs(exact) * Fraction(10) ** dtype.scale
    rounded = math.floor(unscaled + Fraction(1, 2))
    if rounded > domain(dtype)[1]:
        raise TypeMismatchError(f"{float(exact)} does not fit {type_name(dtype)}")
    unit: Fraction = Fraction(10) ** dtype.scale
    return Fraction(rounded if exact >= 0 else -rounded) / unit


def _to_date(scalar: Scalar, tz: tzinfo) -> int:
    if scalar.kind is Kind.DATE:
        return int(scalar.value)
    if scalar.kind is Kind.NTZ:
        return int(scalar.value // timetext.DAY_MICROS)
    if scalar.kind is Kind.TIMESTAMP:
        return timetext.day_of(scalar.value, tz)
    days = timetext.parse_date(scalar.value) if scalar.kind is Kind.STRING else None
    if days is None:
        raise mismatch(scalar, pa.date32())
    return days


def _to_timestamp(scalar: Scalar, kind: Kind, tz: tzinfo) -> int:
    dtype = pa.timestamp("us", "UTC" if kind is Kind.TIMESTAMP else None)
    if scalar.kind is kind:
        return int(scalar.value)
    if scalar.kind is Kind.DATE:
        if kind is Kind.NTZ:
            return int(scalar.value * timetext.DAY_MICROS)
        return timetext.day_start(scalar.value, tz)
    if scalar.kind is Kind.NTZ:
        return timetext.local_to_instant(scalar.value, tz)
    if scalar.kind is Kind.TIMESTAMP:
        return timetext.instant_to_local(scalar.value, tz)
    micros = None
    if scalar.kind is Kind.STRING:
        micros = timetext.parse_timestamp(scalar.value, tz if kind is Kind.TIMESTAMP else None)
    if micros is None:
        raise mismatch(scalar, dtype)
    return micros
