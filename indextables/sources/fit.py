"""Values of a data file as values of a column: which field is which, and types that have grown.

A field is found by its id where the column has one and the file has any; else by the names that the
column has in files. What the file lacks is NULL. A type may only have grown: every value of the
file's type is a value of the column's. Anything else is refused: a value that would be cut is worse
than an error.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import pyarrow as pa

from indextables.buffers import text_array
from indextables.errors import SchemaMismatchError
from indextables.fitting import matched
from indextables.sources.base import id_of, names_of

_UNITS = ("s", "ms", "us", "ns")
_UUID = pa.binary(16)
"""Text is never stored in this type, so that it stands for UUIDs where text is wanted."""


def find_field(
    field_id: int | None, names: Sequence[str], given: Sequence[tuple[str, int | None]]
) -> int | None:
    """The place of a field among the names and ids of a file's fields."""
    if field_id is not None and any(found is not None for _, found in given):
        places = [i for i, (_, found) in enumerate(given) if found == field_id]
        return places[0] if places else None
    held = [name for name, _ in given]
    for name in names:
        if name in held:
            return held.index(name)
    return None if field_id is not None else matched(names[:1], held)[0]


def fit(array: pa.Array, wanted: pa.DataType, what: str) -> pa.Array:
    """The values in the type of the column; ``what`` names it in errors."""
    if array.type == wanted and not pa.types.is_nested(wanted):
        return array
    t = pa.types
    if t.is_null(array.type):
        return pa.nulls(len(array), wanted)
    if array.type == _UUID and t.is_string(wanted):
        texts = [None if v is None else str(uuid.UUID(bytes=v)) for v in array.to_pylist()]
        return text_array(texts)
    if t.is_struct(wanted) and t.is_struct(array.type):
        return _fit_struct(array, wanted, what)
    if t.is_map(wanted) and t.is_map(array.type):
        keys = fit(array.keys, wanted.key_type, f"{what}.key")
        items = fit(array.items, wanted.item_type, f"{what}.value")
        fields = [wanted.key_field, wanted.item_field]
        entries = pa.StructArray.from_arrays([keys, items], fields=fields)
        return _rewrapped(array, wanted, entries)
    if _is_list(wanted) and _is_list(array.type):
        return _rewrapped(array, wanted, fit(array.values, wanted.value_type, f"{what}.element"))
    if t.is_nested(wanted) or t.is_nested(array.type) or not grows(array.type, wanted):
        raise SchemaMismatchError(
            f"column '{what}' is {array.type} in the file, which is no smaller type of {wanted}",
            hint="Rewrite the file with the table's own writer",
        )
    try:
        return array.cast(wanted)
    except pa.ArrowInvalid as error:
        raise SchemaMismatchError(
            f"column '{what}' holds a value that {wanted} cannot: {error}"
        ) from error


def _is_list(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_list(dtype))


def _rewrapped(array: pa.Array, wanted: pa.DataType, values: pa.Array) -> pa.Array:
    """The list or map with other values of the same number."""
    valid, ends = array.buffers()[:2]
    return pa.Array.from_buffers(
        wanted, len(array), [valid, ends], array.null_count, array.offset, [values]
    )


def _fit_struct(array: pa.StructArray, wanted: pa.StructType, what: str) -> pa.Array:
    given = [(f.name, id_of(f)) for f in array.type.fields]
    children = []
    for field in wanted.fields:
        place = find_field(id_of(field), names_of(field), given)
        if place is None:
            children.append(pa.nulls(len(array), field.type))
        else:
            children.append(fit(array.field(place), field.type, f"{what}.{field.name}"))
    mask = array.is_null() if array.null_count else None
    if not children:
        return pa.StructArray.from_arrays([], fields=[], mask=array.is_null())
    return pa.StructArray.from_arrays(children, fields=list(wanted.fields), mask=mask)


def grows(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Is each value of one type a value of the other, in the same meaning?"""
    t = pa.types
    if given == wanted:
        return True
    if t.is_integer(given):
        return _integer_grows(given, wanted)
    if t.is_floating(given):
        return bool(t.is_floating(wanted) and wanted.bit_width > given.bit_width)
    if t.is_decimal(given):
        return _decimal_grows(given.precision, given.scale, wanted)
    if t.is_timestamp(given):
        return bool(t.is_timestamp(wanted))
    if t.is_date(given):
        return bool(t.is_date(wanted) or (t.is_timestamp(wanted) and wanted.tz is None))
    if t.is_time(given):
        return bool(t.is_time(wanted) and _UNITS.index(wanted.unit) >= _UNITS.index(given.unit))
    return _is_text_like(given) and _is_text_like(wanted)


def _integer_grows(given: pa.DataType, wanted: pa.DataType) -> bool:
    t = pa.types
    if given == pa.int32() and wanted in (pa.int8(), pa.int16()):
        return True  # Parquet's smallest integer; each value is checked
    if t.is_signed_integer(wanted):
        spare = t.is_unsigned_integer(given)
        return bool(wanted.bit_width >= given.bit_width + spare)
    if t.is_integer(wanted):
        return bool(t.is_unsigned_integer(given) and wanted.bit_width >= given.bit_width)
    if t.is_decimal(wanted):
        digits = {8: 3, 16: 5, 32: 10, 64: 20}[given.bit_width]
        return bool(wanted.precision - wanted.scale >= digits)
    return bool(t.is_float64(wanted) and given.bit_width <= 32)


def _decimal_grows(precision: int, scale: int, wanted: pa.DataType) -> bool:
    if not pa.types.is_decimal(wanted):
        return False
    return bool(wanted.scale >= scale and wanted.precision - wanted.scale >= precision - scale)


def _is_text_like(dtype: pa.DataType) -> bool:
    t = pa.types
    return bool(
        t.is_string(dtype)
        or t.is_large_string(dtype)
        or t.is_binary(dtype)
        or t.is_large_binary(dtype)
        or t.is_fixed_size_binary(dtype)
    )
