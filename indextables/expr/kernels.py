"""The computations behind typed expressions, one function for each operation.

Text functions whose rules are Java's (case mapping, substring) run once for each distinct value.
Integer arithmetic is checked, division by zero is an error, ``%`` keeps the dividend's sign.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.errors import EvaluationError
from indextables.expr import timetext
from indextables.expr.casting import physical_values
from indextables.expr.javaregex import to_regex

_DAY = timetext.DAY_MICROS
_UNIT_MICROS = {"hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}


def checked(compute: Callable[[], Any], what: str) -> Any:
    """Arrow's overflow and division errors as ours."""
    try:
        return compute()
    except pa.ArrowInvalid as error:
        raise EvaluationError(
            f"{what}: {error}", hint="ANSI mode treats this as an error"
        ) from error


def by_distinct(values: pa.Array, dtype: pa.DataType, change: Callable[[Any], Any]) -> pa.Array:
    """``change`` applied once to each distinct value; NULL stays NULL."""
    coded = values.dictionary_encode()
    made = [None if v is None else change(v) for v in physical_values(coded.dictionary)]
    if pa.types.is_timestamp(dtype):
        return pa.array(made, pa.int64()).view(dtype).take(coded.indices)
    return pa.array(made, dtype).take(coded.indices)


def lower(values: pa.Array) -> pa.Array:
    return by_distinct(values, pa.string(), str.lower)


def upper(values: pa.Array) -> pa.Array:
    return by_distinct(values, pa.string(), str.upper)


def trim(values: pa.Array) -> pa.Array:
    return pc.utf8_trim(values, characters=" ")


def ltrim(values: pa.Array) -> pa.Array:
    return pc.utf8_ltrim(values, characters=" ")


def rtrim(values: pa.Array) -> pa.Array:
    return pc.utf8_rtrim(values, characters=" ")


def length(values: pa.Array) -> pa.Array:
    measure = pc.binary_length if pa.types.is_binary(values.type) else pc.utf8_length
    return measure(values).cast(pa.int32())


def substring(values: pa.Array, start: pa.Array, size: pa.Array | None = None) -> pa.Array:
    sizes = [1 << 31] * len(values) if size is None else size.to_pylist()
    rows = zip(values.to_pylist(), start.to_pylist(), sizes, strict=True)
    return pa.array([_substring(*row) for row in rows], pa.string())


def _substring(text: str | None, position: int | None, size: int | None) -> str | None:
    if text is None or position is None or size is None:
        return None
    begin = position - 1 if position > 0 else len(text) + position if position < 0 else 0
    end = begin + size
    return text[max(begin, 0) : max(end, 0)] if end > begin else ""


def concat(*parts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "", null_handling="emit_null")


def rlike(values: pa.Array, pattern: str) -> pa.Array:
    return to_regex(pattern).found_in(values)


def add(left: pa.Array, right: pa.Array) -> pa.Array:
    return checked(lambda: pc.add_checked(left, right), "addition")


def subtract(left: pa.Array, right: pa.Array) -> pa.Array:
    return checked(lambda: pc.subtract_checked(left, right), "subtraction")


def multiply(left: pa.Array, right: pa.Array) -> pa.Array:
    return checked(lambda: pc.multiply_checked(left, right), "multiplication")


def divide(left: pa.Array, right: pa.Array) -> pa.Array:
    both = pc.and_(pc.is_valid(left), pc.fill_null(pc.equal(right, 0), False))
    if pc.any(both).as_py():
        raise EvaluationError("division by zero", hint="Use try_divide or guard with CASE in Spark")
    quotient = pc.divide if pa.types.is_floating(left.type) else pc.divide_checked
    return checked(lambda: quotient(left, right), "division")


def remainder(left: pa.Array, right: pa.Array) -> pa.Array:
    both = pc.and_(pc.is_valid(left), pc.fill_null(pc.equal(right, 0), False))
    if pc.any(both).as_py():
        raise EvaluationError("remainder by zero")
    valid = pc.and_(pc.is_valid(left), pc.is_valid(right))
    a = pc.fill_null(left, 0).to_numpy(zero_copy_only=False)
    b = pc.fill_null(right, 1).to_numpy(zero_copy_only=False)
    with np.errstate(invalid="ignore"):
        result = np.fmod(a, np.where(b == 0, 1, b))
    return pc.if_else(valid, pa.array(result, left.type), pa.scalar(None, left.type))


def absolute(values: pa.Array) -> pa.Array:
    return checked(lambda: pc.abs_checked(values), "abs")


def negative(values: pa.Array) -> pa.Array:
    return checked(lambda: pc.negate_checked(values), "negation")


def date_part(values: pa.Array, name: str) -> pa.Array:
    places = {"year": 0, "month": 1, "day": 2}

    def part(days: int) -> int:
        civil = timetext.civil_from_days(days)
        return (civil[1] - 1) // 3 + 1 if name == "quarter" else civil[places[name]]

    return by_distinct(values, pa.int32(), part)


def time_part(values: pa.Array, name: str, zone: str) -> pa.Array:
    tz = timetext.zone(zone)
    size, modulus = _UNIT_MICROS[name], 24 if name == "hour" else 60
    return by_distinct(
        values,
        pa.int32(),
        lambda instant: timetext.instant_to_local(instant, tz) // size % modulus,
    )


def date_trunc(values: pa.Array, unit: str, zone: str) -> pa.Array:
    tz = timetext.zone(zone)

    def cut(instant: int) -> int:
        wall = timetext.instant_to_local(instant, tz)
        if unit not in _UNIT_MICROS:
            return timetext.day_start(_first_day(wall // _DAY, unit), tz)
        target = wall - wall % _UNIT_MICROS[unit]
        same_offset = instant - (wall - target)
        kept = timetext.instant_to_local(same_offset, tz) == target
        return same_offset if kept else timetext.local_to_instant(target, tz)

    return by_distinct(values, values.type, cut)


def _first_day(days: int, unit: str) -> int:
    if unit == "day":
        return days
    if unit == "week":
        return days - (days + 3) % 7
    year, month, _ = timetext.civil_from_days(days)
    first = {"year": 1, "quarter": (month - 1) // 3 * 3 + 1, "month": month}[unit]
    return timetext.days_from_civil(year, first, 1)
