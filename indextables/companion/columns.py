"""The columns of a source as columns of a table of ours.

The name of a column in files is its identity in the source, which survives renaming; what the user
calls it is its name in the source now. So a column that was renamed, widened, or dropped and added
again is right in splits that were written before, by the rules for tables of our own (``naming``).

A split can be used as long as every column it has is the same or was widened as our own columns
may be. A column of another type, a struct whose fields changed (also where a field gave way to
another of its name and type), a default for rows that are older than their column: the index may be
wrong about those, so its files are read as if no split covered them, until they are indexed again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from indextables.errors import SchemaMismatchError
from indextables.naming import called
from indextables.sources.base import SourceColumn, id_of, names_of
from indextables.types import normalize_type

_WIDER = {
    pa.int8(): (pa.int16(), pa.int32(), pa.int64()),
    pa.int16(): (pa.int32(), pa.int64()),
    pa.int32(): (pa.int64(),),
    pa.float32(): (pa.float64(),),
}


def readable(columns: Iterable[SourceColumn]) -> tuple[list[SourceColumn], dict[str, str]]:
    """The columns that our types can hold, in those types; why the others cannot, by name."""
    kept, others = [], {}
    for column in columns:
        try:
            dtype = normalize_type(column.type)
        except SchemaMismatchError as error:
            others[column.name] = error.message
            continue
        kept.append(_typed(column, dtype))
    return kept, others


def _typed(column: SourceColumn, dtype: pa.DataType) -> SourceColumn:
    from dataclasses import replace

    return column if column.type == dtype else replace(column, type=dtype)


def table_schema(columns: Iterable[SourceColumn]) -> pa.Schema:
    """The schema of the companion: names of the source, stored under identities."""
    return pa.schema([called(pa.field(c.identity, c.type), c.name) for c in columns])


def fits(split: pa.Schema, columns: Sequence[SourceColumn]) -> bool:
    """Is what a split of this schema says still true of these columns?"""
    held = {f.name: f.type for f in split}
    for column in columns:
        known = held.get(column.identity)
        if known is None:
            if column.default is not None:
                return False
        elif not _same_or_wider(known, column.type):
            return False
    return True


def inner_identity(columns: Iterable[SourceColumn], held: Iterable[str]) -> str:
    """The same for as long as the fields inside of these columns are; empty where there are none.

    ``held`` are the columns that count, by identity. The columns are those of the source itself:
    our own types do not keep what files call a field.
    """
    wanted = set(held)
    found = {
        column.identity: list(_inner(column.type))
        for column in columns
        if column.identity in wanted
    }
    known = sorted((name, fields) for name, fields in found.items() if fields)
    return hashlib.sha256(repr(known).encode()).hexdigest()[:16] if known else ""


def _inner(dtype: pa.DataType) -> Iterator[tuple[int | None, tuple[str, ...]]]:
    for number in range(dtype.num_fields):
        field = dtype.field(number)
        yield id_of(field), names_of(field)
        yield from _inner(field.type)


def _same_or_wider(known: pa.DataType, now: pa.DataType) -> bool:
    if known == now or now in _WIDER.get(known, ()):
        return True
    if pa.types.is_decimal(known) and pa.types.is_decimal(now):
        return bool(known.scale == now.scale and now.precision >= known.precision)
    return False
