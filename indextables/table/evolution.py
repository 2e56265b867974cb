"""How data meets the schema of its table.

Names are matched without case and keep the table's spelling. A missing nullable column is filled
with NULL, a missing required one is an error. An unknown column is an error, or becomes a new
nullable column when the caller asked to merge schemas. Types must be equal or widen without loss
into the table's type; the table's own types never change. All of this is decided before a byte is
written.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from indextables.errors import SchemaMismatchError
from indextables.fitting import fitted, matched
from indextables.types import normalize_schema, type_name

_WIDENS: dict[pa.DataType, tuple[pa.DataType, ...]] = {
    pa.int8(): (pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()),
    pa.int16(): (pa.int32(), pa.int64(), pa.float32(), pa.float64()),
    pa.int32(): (pa.int64(), pa.float64()),
    pa.float32(): (pa.float64(),),
}


def evolved_schema(table: pa.Schema, data: pa.Schema, *, merge: bool) -> pa.Schema:
    """The table's schema after this write; raises when the data does not fit."""
    incoming = {f.name.lower(): f for f in normalize_schema(data)}
    for column in table:
        given = incoming.pop(column.name.lower(), None)
        if given is None and not column.nullable:
            raise SchemaMismatchError(f"column '{column.name}' is required and missing in the data")
        if given is not None and not widens(given.type, column.type):
            raise SchemaMismatchError(
                f"column '{column.name}' is {type_name(column.type)} in the table "
                f"and {type_name(given.type)} in the data",
                hint="Cast it before writing; nothing was written",
            )
    if incoming and not merge:
        names = ", ".join(f"'{f.name}'" for f in incoming.values())
        raise SchemaMismatchError(
            f"the table has no column {names}",
            hint="Drop it, or let the table grow with merge_schema=True",
        )
    added = [f.with_nullable(True) for f in incoming.values()]
    return pa.schema([*table, *added])


def widens(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Does every value of ``given`` fit ``wanted`` unchanged?"""
    if given == wanted or pa.types.is_null(given) or wanted in _WIDENS.get(given, ()):
        return True
    t = pa.types
    if t.is_decimal(given) and t.is_decimal(wanted):
        whole = wanted.precision - wanted.scale >= given.precision - given.scale
        return bool(whole and wanted.scale >= given.scale)
    if t.is_struct(given) and t.is_struct(wanted):
        return _struct_widens(given, wanted)
    if t.is_map(given) and t.is_map(wanted):
        return widens(given.key_type, wanted.key_type) and widens(given.item_type, wanted.item_type)
    if t.is_list(given) and t.is_list(wanted):
        return widens(given.value_type, wanted.value_type)
    return False


def _struct_widens(given: pa.StructType, wanted: pa.StructType) -> bool:
    places = matched([f.name for f in given.fields], [f.name for f in wanted.fields])
    return all(
        place is not None and widens(field.type, wanted.field(place).type)
        for field, place in zip(given.fields, places, strict=True)
    )


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with exactly the table's columns, order and types; absent ones are NULL."""
    by_name = {name.lower(): i for i, name in enumerate(batch.schema.names)}
    arrays = []
    for field in schema:
        i = by_name.get(field.name.lower())
        if i is None:
            arrays.append(pa.nulls(batch.num_rows, field.type))
        else:
            arrays.append(_cast(batch.column(i), field))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _check_text(array: Any, field: pa.Field) -> None:
    """Arrow does not check its buffers; bytes that are not UTF-8 must not be committed."""
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        raise SchemaMismatchError(
            f"column '{field.name}' holds damaged values: {error}",
            hint="Text must be UTF-8; nothing was committed",
        ) from None


def _cast(array: Any, field: pa.Field) -> Any:
    _check_text(array, field)
    if not field.nullable and array.null_count:
        raise SchemaMismatchError(f"column '{field.name}' is required and holds NULL")
    if array.type == field.type:
        return array
    try:
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        return fitted(array, field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaMismatchError(
            f"column '{field.name}' does not fit {type_name(field.type)}: {error}",
            hint="Cast or round it before writing; nothing was committed",
        ) from error
