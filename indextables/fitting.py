"""Which field of a struct is which, and nested values brought to another type of the same shape.

Fields are matched by name: the exact name first, and among the fields that are then left on both
sides the only one that differs by case alone. So ``x`` and ``X`` in one struct stay apart, and an
``X`` of the data finds the ``x`` of the table. A field that nothing matches is NULL. Arrow's cast
of structs knows exact names only and would make the second case NULL as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa


def matched(wanted: Sequence[str], given: Sequence[str]) -> list[int | None]:
    """For each wanted name the place of the given one that it means."""
    exact = {name: place for place, name in enumerate(given)}
    free: dict[str, list[int]] = {}
    for name in set(given) - set(wanted):
        free.setdefault(name.lower(), []).append(exact[name])
    claims: dict[str, int] = {}
    for name in set(wanted) - exact.keys():
        claims[name.lower()] = claims.get(name.lower(), 0) + 1
    found: list[int | None] = []
    for name in wanted:
        places = free.get(name.lower(), [])
        only = len(places) == 1 and claims.get(name.lower()) == 1
        found.append(exact[name] if name in exact else places[0] if only else None)
    return found


Matching = Callable[[Sequence[str], Sequence[str]], Sequence[int | None]]


def _in_order(wanted: Sequence[str], given: Sequence[str]) -> Sequence[int]:
    return range(len(wanted))


def fitted(array: Any, wanted: pa.DataType, match: Matching = matched) -> Any:
    """The array as a type that differs by struct fields, letter case and width of numbers."""
    if array.type == wanted:
        return array
    t = pa.types
    if t.is_struct(wanted) and t.is_struct(array.type):
        return _fitted_struct(array, wanted, match)
    if t.is_map(wanted) and t.is_map(array.type):
        return _fitted_map(array, wanted, match)
    if t.is_list(wanted) and t.is_list(array.type):
        return _fitted_list(array, wanted, match)
    return array.cast(wanted)


def relabelled(array: Any, wanted: pa.DataType) -> Any:
    """The array as a type that differs by the names of fields alone, field for field in order."""
    return fitted(array, wanted, _in_order)


def _fitted_struct(array: pa.StructArray, wanted: pa.StructType, match: Matching) -> pa.Array:
    places = match(_names(wanted), _names(array.type))
    parts = [
        pa.nulls(len(array), inner.type)
        if place is None
        else fitted(array.field(place), inner.type, match)
        for inner, place in zip(wanted.fields, places, strict=True)
    ]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(parts, fields=list(wanted.fields), mask=mask)


def _names(dtype: pa.StructType) -> list[str]:
    return [field.name for field in dtype.fields]


def _fitted_list(array: pa.ListArray, wanted: pa.ListType, match: Matching) -> pa.Array:
    array = _compact(array)
    mask = array.is_null() if array.null_count else None
    values = fitted(array.values, wanted.value_type, match)
    return pa.ListArray.from_arrays(array.offsets, values, type=wanted, mask=mask)


def _fitted_map(array: pa.MapArray, wanted: pa.MapType, match: Matching) -> pa.Array:
    array = _compact(array)
    mask = array.is_null() if array.null_count else None
    keys = fitted(array.keys, wanted.key_type, match)
    items = fitted(array.items, wanted.item_type, match)
    return pa.MapArray.from_arrays(array.offsets, keys, items, type=wanted, mask=mask)


def _compact(array: pa.Array) -> pa.Array:
    """The array at offset zero, which building one from parts with a mask needs."""
    return pa.concat_arrays([array.slice(0, 0), array]) if array.offset else array
