"""Names of columns: what a user calls a column, and what files call it.

A column is named once in files, when it is added: in the rows and the index of a split, in the
statistics and partition values of the log, in cross-references, key maps and column indexes. That
*stored* name never changes and never means another column. What the user calls it may change: a
rename writes the stored name into the field's metadata in the table's schema, and touches no split.
A dropped column leaves the schema; its stored name is kept in the table's configuration, so that a
column added later under the same name gets another one. Fields of structs, also inside arrays and
maps, are named in the same way. Where nothing was renamed the two names are the same.

So there are two schemas of a table: ``Snapshot.schema`` in the user's names, whose fields know
their stored names, and ``Snapshot.stored_schema`` in those of the files. A filter is bound to
stored names (``expr/scope.py``); rows get the user's names when they leave a split
(``splits/read/access.py``) and lose them when they are written (``table/order.py``). Nothing in
between knows that a column has two names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from indextables.errors import CorruptFileError
from indextables.fitting import relabelled
from indextables.mapping import DocMapping

STORED_NAME = "indextables.columnMapping.physicalName"
"""In the metadata of a field: its name in files."""
RETIRED_NAMES = "indextables.columnMapping.retired"
"""In the configuration of a table: paths of stored names that dropped columns had, as JSON."""

Path = tuple[str, ...]


def notes_of(field: pa.Field) -> dict[str, Any]:
    """The metadata that Spark keeps with a field."""
    text = (field.metadata or {}).get(b"spark")
    return json.loads(text) if text else {}


def with_notes(field: pa.Field, notes: Mapping[str, Any]) -> pa.Field:
    """The field with other metadata of Spark's."""
    return field.with_metadata({"spark": json.dumps(notes)} if notes else None)


def stored_name(field: pa.Field) -> str:
    """The field's name in files."""
    if not field.metadata:
        return str(field.name)
    return str(notes_of(field).get(STORED_NAME, field.name))


def called(field: pa.Field, name: str) -> pa.Field:
    """The field under another name of the user's."""
    notes, stored = notes_of(field), stored_name(field)
    notes.pop(STORED_NAME, None)
    if stored != name:
        notes[STORED_NAME] = stored
    return with_notes(field, notes).with_name(name)


def is_renamed(schema: pa.Schema) -> bool:
    """Is any field called otherwise than in files?"""
    return any(stored_name(f) != f.name or _type_is_renamed(f.type) for f in schema)


def _type_is_renamed(dtype: pa.DataType) -> bool:
    return any(stored_name(f) != f.name or _type_is_renamed(f.type) for f in _inner(dtype))


def _inner(dtype: pa.DataType) -> list[pa.Field]:
    return [dtype.field(i) for i in range(dtype.num_fields)] if pa.types.is_nested(dtype) else []


# -- schemas --------------------------------------------------------------------------------------


_KEPT: dict[int, tuple[pa.Schema, pa.Schema]] = {}
_MOST_KEPT = 64


def stored_schema(schema: pa.Schema) -> pa.Schema:
    """The same columns in the names of files; the schema itself where they are the same.

    Asked once for each split that is read, so schemas seen lately are remembered.
    """
    kept = _KEPT.get(id(schema))
    if kept is not None and kept[0] is schema:
        return kept[1]
    made = pa.schema(list(map(stored_field, schema))) if is_renamed(schema) else schema
    if len(_KEPT) >= _MOST_KEPT:
        _KEPT.clear()
    _KEPT[id(schema)] = (schema, made)
    return made


def stored_field(field: pa.Field) -> pa.Field:
    """A field in the names of files."""
    notes, name = notes_of(field), stored_name(field)
    notes.pop(STORED_NAME, None)
    made = with_notes(field, notes) if field.metadata else field
    return made.with_name(name).with_type(stored_type(field.type))


def stored_type(dtype: pa.DataType) -> pa.DataType:
    """A type whose structs have the names of files."""
    if not _type_is_renamed(dtype):
        return dtype
    return rebuilt(dtype, stored_field)


def rebuilt(dtype: pa.DataType, change: Callable[[pa.Field], pa.Field]) -> pa.DataType:
    """A nested type with each field directly inside changed."""
    t = pa.types
    if t.is_struct(dtype):
        return pa.struct(list(map(change, _inner(dtype))))
    if t.is_map(dtype):
        return pa.map_(change(dtype.key_field), change(dtype.item_field))
    if t.is_list(dtype):
        return pa.list_(change(dtype.value_field))
    return dtype


def plain_field(field: pa.Field) -> pa.Field:
    """A field of given data, without the stored names of the table it was read from."""
    if not field.metadata and not pa.types.is_nested(field.type):
        return field
    notes = notes_of(field)
    if notes.pop(STORED_NAME, None) is not None:
        field = with_notes(field, notes)
    return field.with_type(rebuilt(field.type, plain_field))


def stored_columns(schema: pa.Schema, columns: Iterable[str]) -> list[str]:
    """Columns by their names in files; a name that the schema does not have stays as it is."""
    if stored_schema(schema) is schema:
        return list(columns)
    names = {f.name.lower(): stored_name(f) for f in schema if stored_name(f) != f.name}
    return [names.get(c.lower(), c) for c in columns]


def user_name(schema: pa.Schema, stored: str) -> str:
    """What the user calls a column of files; a dropped one keeps its stored name."""
    return next((f.name for f in schema if stored_name(f) == stored), stored)


# -- values ---------------------------------------------------------------------------------------


def stored_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Rows in the names of files; ``schema`` is theirs, in the user's names."""
    target = stored_schema(schema)
    return batch if target is schema else _as(batch, target)


def user_batch(batch: pa.RecordBatch, fields: Sequence[pa.Field]) -> pa.RecordBatch:
    """Rows in the user's names, ``fields`` being those of the columns, in order."""
    return _as(batch, pa.schema(list(fields))) if batch.num_columns else batch


def _as(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    arrays = [relabelled(a, f.type) for a, f in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


# -- document mappings ----------------------------------------------------------------------------


def user_mapping(mapping: DocMapping, schema: pa.Schema) -> DocMapping:
    """The mapping of files in the user's names."""
    if stored_schema(schema) is schema:
        return mapping
    names = {stored_name(f).lower(): f.name for f in schema}
    return DocMapping(
        tuple(replace(f, name=names.get(f.name.lower(), f.name)) for f in mapping.fields)
    )


def stored_mapping(mapping: DocMapping, schema: pa.Schema) -> DocMapping:
    """The mapping of the user's columns in the names of files."""
    if stored_schema(schema) is schema:
        return mapping
    names = stored_columns(schema, mapping.names)
    pairs = zip(mapping.fields, names, strict=True)
    return DocMapping(tuple(replace(f, name=name) for f, name in pairs))


# -- new columns ----------------------------------------------------------------------------------


def retired_paths(configuration: Mapping[str, str]) -> set[Path]:
    """Paths of the stored names that must not be used again, in lower case."""
    return {tuple(name.lower() for name in path) for path in _retired(configuration)}


def with_retired(configuration: Mapping[str, str], path: Sequence[str]) -> dict[str, str]:
    """The configuration after a column with this path of stored names was dropped."""
    listed = [*_retired(configuration), list(path)]
    return {**configuration, RETIRED_NAMES: json.dumps(listed)}


def _retired(configuration: Mapping[str, str]) -> list[list[str]]:
    try:
        listed = json.loads(configuration.get(RETIRED_NAMES, "[]"))
        return [[str(name) for name in path] for path in listed]
    except (ValueError, TypeError, RecursionError) as error:
        raise CorruptFileError(
            f"property '{RETIRED_NAMES}' is malformed: {error}",
            hint="Run DOCTOR on the table, or restore an older version",
        ) from error


def newly_named(
    field: pa.Field, beside: Iterable[pa.Field], retired: set[Path], parent: Path = ()
) -> pa.Field:
    """A new field under a stored name that nothing in files has: its own, or with a number."""
    above = tuple(name.lower() for name in parent)
    taken = {stored_name(f).lower() for f in beside}
    taken |= {path[-1] for path in retired if path[:-1] == above}
    numbers = (n for n in range(2, len(taken) + 3))
    free = (n for n in [field.name, *(f"{field.name}_{n}" for n in numbers)])
    chosen = next(name for name in free if name.lower() not in taken)
    return called(field.with_name(chosen), field.name) if chosen != field.name else field


def grown(before: pa.Schema, after: pa.Schema, configuration: Mapping[str, str]) -> pa.Schema:
    """A schema that gained columns at its end, each under a stored name of its own."""
    if len(before) == len(after):
        return after
    retired = retired_paths(configuration)
    fields: list[pa.Field] = list(after)[: len(before)]
    for field in list(after)[len(before) :]:
        fields.append(newly_named(field, fields, retired))
    return pa.schema(fields)
