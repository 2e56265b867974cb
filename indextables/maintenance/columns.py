"""Adding, renaming, dropping and altering columns: changes of the schema alone.

No split is read or written: a column keeps the name it has in files (``indextables.naming``), and
the rows of older splits are brought to the table's schema when they are read. A new column is NULL
in them. A dropped column stays in them, unread, until they are merged or deleted. Older versions of
the table keep their own schema.

A field of a struct is named by its path (``address.city``); a column whose own name contains a dot
is found first. A type may be widened where every value stays what it is: integers to larger ones,
FLOAT to DOUBLE, DECIMAL to more digits at the same scale. Anything else would change how values
are spelled in indexes that are already written, and is refused.

A rename or a drop raises the protocol by the feature ``columnMapping`` in its own commit, so that a
release that does not know it refuses the table instead of reading other columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from indextables.clustering import cluster_columns, with_columns
from indextables.columnindex.manage import dropping, without_index
from indextables.config import Config
from indextables.errors import MaintenanceError, UnknownColumnError, require_characters
from indextables.log.actions import Action, Metadata
from indextables.log.commit.gate import mutates
from indextables.log.commit.transaction import Transaction
from indextables.log.log import TransactionLog
from indextables.log.read.snapshot import TABLE_MAPPING, Snapshot
from indextables.maintenance.rows import Row
from indextables.mapping import DocMapping
from indextables.naming import (
    called,
    newly_named,
    notes_of,
    plain_field,
    rebuilt,
    retired_paths,
    stored_mapping,
    stored_name,
    with_notes,
    with_retired,
)
from indextables.types import normalize_type, schema_to_json, type_from_text, type_name

Fields = list[pa.Field]
Change = Callable[[Fields], Fields]
ITEMS = ("element", "key", "value")
"""Names of what is inside arrays and maps, as Spark's paths spell them."""


@dataclass(frozen=True)
class ColumnResult(Row):
    """ALTER TABLE ... ADD, RENAME, DROP and ALTER COLUMN."""

    table_path: str
    status: str
    column: str
    type: str
    version: int


@mutates("ADD COLUMN")
def add_column(
    log: TransactionLog,
    name: str,
    type: str | pa.DataType,
    after: str | None = None,
    first: bool = False,
    comment: str | None = None,
) -> ColumnResult:
    """Add a nullable column, or a field of a struct; it is NULL in the rows there are."""
    _check_name(name.rsplit(".", 1)[-1])
    dtype = normalize_type(type_from_text(type) if isinstance(type, str) else type)
    made = plain_field(_commented(pa.field(name.rsplit(".", 1)[-1], dtype), comment))

    def change(snapshot: Snapshot) -> Metadata:
        path = _parent_of(snapshot.schema, name)
        if not path:
            _check_free(list(snapshot.schema), name, name)
        field = made.with_name(name) if not path else made
        stored = tuple(map(stored_name, _fields(snapshot.schema, path))) if path else ()
        retired = retired_paths(snapshot.metadata.configuration)

        def insert(fields: Fields) -> Fields:
            _check_free(fields, field.name, name)
            fresh = newly_named(field, fields, retired, stored)
            return _placed([*fields, fresh], fresh, after, first)

        schema = _changed(snapshot.schema, path, insert)
        return _mapped(snapshot, _with_schema(snapshot.metadata, schema), schema)

    return _commit(log, "ADD COLUMN", name, change, {"type": type_name(dtype)})


@mutates("RENAME COLUMN")
def rename_column(log: TransactionLog, name: str, new_name: str) -> ColumnResult:
    """Call a column, or a field of a struct, otherwise; no split is touched."""
    _check_name(new_name)

    def change(snapshot: Snapshot) -> Metadata:
        path = _resolved(snapshot.schema, name)

        def rename(fields: Fields) -> Fields:
            others = [f for f in fields if f.name != path[-1]]
            _check_free(others, new_name, new_name)
            return [called(f, new_name) if f.name == path[-1] else f for f in fields]

        schema = _changed(snapshot.schema, path[:-1], rename)
        metadata = _with_schema(snapshot.metadata, schema)
        if len(path) > 1:
            return metadata
        metadata = _reclustered(snapshot, metadata, {path[0].lower(): new_name})
        parts = [
            new_name if p.lower() == path[0].lower() else p for p in snapshot.partition_columns
        ]
        return replace(metadata, partition_columns=tuple(parts))

    shown = ".".join([*name.split(".")[:-1], new_name]) if "." in name else new_name
    return _commit(log, "RENAME COLUMN", shown, change, {"from": name})


@mutates("DROP COLUMN")
def drop_column(log: TransactionLog, name: str) -> ColumnResult:
    """Take a column, or a field of a struct, out of the table; its index goes with it."""

    def change(snapshot: Snapshot) -> Metadata:
        path = _resolved(snapshot.schema, name)
        _check_droppable(snapshot, path)

        def drop(fields: Fields) -> Fields:
            return [f for f in fields if f.name != path[-1]]

        stored = tuple(map(stored_name, _fields(snapshot.schema, path)))
        metadata = _with_schema(snapshot.metadata, _changed(snapshot.schema, path[:-1], drop))
        metadata = replace(metadata, configuration=with_retired(metadata.configuration, stored))
        if len(path) == 1:
            metadata = _reclustered(snapshot, metadata, {path[0].lower(): ""})
        if len(stored) == 1 and stored[0] in snapshot.indexes.definitions:
            metadata = without_index(snapshot, metadata, stored[0])
        return metadata

    def more(snapshot: Snapshot) -> list[Action]:
        path = _resolved(snapshot.schema, name)
        stored = stored_name(_fields(snapshot.schema, path)[-1])
        indexed = len(path) == 1 and stored in snapshot.indexes.definitions
        return [dropping(snapshot, stored)] if indexed else []

    return _commit(log, "DROP COLUMN", name, change, {}, more)


@mutates("ALTER COLUMN")
def alter_column_type(log: TransactionLog, name: str, type: str | pa.DataType) -> ColumnResult:
    """Widen the type of a column where no value changes."""
    return alter_column(log, name, type=type)


@mutates("ALTER COLUMN")
def alter_column(
    log: TransactionLog,
    name: str,
    *,
    type: str | pa.DataType | None = None,
    comment: str | None = None,
    nullable: bool | None = None,
    after: str | None = None,
    first: bool = False,
) -> ColumnResult:
    """Change the type, the comment, the place of a column, or let it be NULL."""
    dtype = normalize_type(type_from_text(type)) if isinstance(type, str) else type

    def change(snapshot: Snapshot) -> Metadata:
        path = _resolved(snapshot.schema, name)

        def alter(fields: Fields) -> Fields:
            old = next(f for f in fields if f.name == path[-1])
            new = old if dtype is None else _widened(snapshot, path, old, dtype)
            new = _commented(new, comment)
            new = new if nullable is None else _nullable(new, nullable, name)
            return _placed([new if f.name == old.name else f for f in fields], new, after, first)

        return _with_schema(snapshot.metadata, _changed(snapshot.schema, path[:-1], alter))

    given = {"type": None if dtype is None else type_name(dtype), "comment": comment}
    return _commit(log, "ALTER COLUMN", name, change, {k: v for k, v in given.items() if v})


# -- the commit -----------------------------------------------------------------------------------


def _commit(
    log: TransactionLog,
    operation: str,
    column: str,
    change: Callable[[Snapshot], Metadata],
    parameters: dict[str, str],
    more: Callable[[Snapshot], list[Action]] = lambda snapshot: [],
) -> ColumnResult:
    base = log.snapshot()

    def actions(snapshot: Snapshot) -> list[Action]:
        made = change(snapshot)
        return [] if made == snapshot.metadata else [made, *more(snapshot)]

    if not actions(base):
        return _result(log, base, "no_action", column)
    done = log.commit(
        Transaction(base, operation, parameters={"column": column, **parameters}, actions=actions)
    )
    return _result(log, log.snapshot(version=done.version), "success", column)


def _result(log: TransactionLog, snapshot: Snapshot, status: str, column: str) -> ColumnResult:
    try:
        dtype = type_name(_fields(snapshot.schema, _resolved(snapshot.schema, column))[-1].type)
    except UnknownColumnError:
        dtype = ""
    return ColumnResult(log.path, status, column, dtype, snapshot.version)


def _reclustered(snapshot: Snapshot, metadata: Metadata, changes: Mapping[str, str]) -> Metadata:
    """The metadata with the columns to cluster by renamed, or without those that go."""
    now = cluster_columns(snapshot.schema, Config(), metadata.configuration)
    new = [name for column in now if (name := changes.get(column.lower(), column))]
    if list(now) == new:
        return metadata
    return replace(metadata, configuration=with_columns(metadata.configuration, new))


def _with_schema(metadata: Metadata, schema: pa.Schema) -> Metadata:
    return replace(metadata, schema_string=schema_to_json(schema))


def _mapped(snapshot: Snapshot, metadata: Metadata, schema: pa.Schema) -> Metadata:
    """The metadata with a mapping for new columns, which no split has yet."""
    text = metadata.configuration.get(TABLE_MAPPING)
    known = DocMapping(()) if text is None else DocMapping.from_json(text)
    fresh = stored_mapping(DocMapping.for_schema(schema, snapshot.partition_columns), schema)
    fields = [known.get(f.name) or f for f in fresh.fields]
    configuration = {**metadata.configuration, TABLE_MAPPING: DocMapping(tuple(fields)).to_json()}
    return replace(metadata, configuration=configuration)


# -- paths ----------------------------------------------------------------------------------------


def _resolved(schema: pa.Schema, name: str) -> tuple[str, ...]:
    """The path that a name means, in the table's spelling: a column, or fields inside one."""
    parts = [name] if _named(list(schema), name) is not None else name.split(".")
    path: list[str] = []
    fields: Fields = list(schema)
    for part in parts:
        found = _named(fields, part)
        if found is None:
            known = [".".join([*path, f.name]) for f in fields]
            raise UnknownColumnError.of(name, known)
        path.append(found.name)
        fields = _inside(found.type)
    return tuple(path)


def _named(fields: Fields, name: str) -> pa.Field | None:
    exact = [f for f in fields if f.name == name]
    same = exact or [f for f in fields if f.name.lower() == name.lower()]
    return same[0] if len(same) == 1 else None


def _inside(dtype: pa.DataType) -> Fields:
    return (
        [dtype.field(i) for i in range(dtype.num_fields)]
        if pa.types.is_struct(dtype)
        else _items(dtype)
    )


def _items(dtype: pa.DataType) -> Fields:
    if pa.types.is_map(dtype):
        return [dtype.key_field.with_name("key"), dtype.item_field.with_name("value")]
    return [dtype.value_field.with_name("element")] if pa.types.is_list(dtype) else []


def _parent_of(schema: pa.Schema, name: str) -> tuple[str, ...]:
    """The path of the struct that a new field goes into; empty for a column."""
    parent, dot, _ = name.rpartition(".")
    if not dot or _named(list(schema), parent.split(".")[0]) is None:
        return ()
    path = _resolved(schema, parent)
    if not pa.types.is_struct(_fields(schema, path)[-1].type):
        raise MaintenanceError(
            f"'{parent}' is no struct", hint="Name a field of a struct, or a new column"
        )
    return path


def _fields(schema: pa.Schema, path: Sequence[str]) -> Fields:
    found: Fields = []
    fields: Fields = list(schema)
    for name in path:
        found.append(next(f for f in fields if f.name == name))
        fields = _inside(found[-1].type)
    return found


def _changed(schema: pa.Schema, path: Sequence[str], change: Change) -> pa.Schema:
    """The schema with the fields directly below a path changed."""
    return pa.schema(_below(list(schema), tuple(path), change))


def _below(fields: Fields, path: tuple[str, ...], change: Change) -> Fields:
    if not path:
        return change(fields)
    return [
        f.with_type(_retyped(f.type, path[1:], change)) if f.name == path[0] else f for f in fields
    ]


def _retyped(dtype: pa.DataType, path: tuple[str, ...], change: Change) -> pa.DataType:
    t = pa.types
    if t.is_struct(dtype):
        return pa.struct(_below(_inside(dtype), path, change))
    if not path or path[0] not in ITEMS:
        raise MaintenanceError("the path leads into a type without fields")
    inner = {"element": 0, "value": 0, "key": 1}[path[0]]
    seen = iter([1, 0] if t.is_map(dtype) else [0])
    return rebuilt(
        dtype,
        lambda f: f.with_type(_retyped(f.type, path[1:], change)) if next(seen) == inner else f,
    )


# -- rules ----------------------------------------------------------------------------------------


def _check_name(name: str) -> None:
    require_characters(name)
    if not name.strip():
        raise MaintenanceError("a column needs a name", hint="Give it one that is not blank")


def _check_free(fields: Fields, name: str, shown: str) -> None:
    if any(f.name.lower() == name.lower() for f in fields):
        raise MaintenanceError(
            f"there is a column '{shown}' already",
            hint="Column names must differ by more than case",
        )


def _check_droppable(snapshot: Snapshot, path: tuple[str, ...]) -> None:
    partitions = {p.lower() for p in snapshot.partition_columns}
    name = ".".join(path)
    if len(path) == 1 and path[0].lower() in partitions:
        raise MaintenanceError(
            f"'{name}' is a partition column: splits hold its values in their place only",
            hint="Write the rows to a new table that is partitioned otherwise",
        )
    beside = _inside(_fields(snapshot.schema, path)[-2].type) if len(path) > 1 else snapshot.schema
    left = [f for f in beside if f.name != path[-1] and f.name.lower() not in partitions]
    if not left:
        raise MaintenanceError(
            f"'{name}' is the last column" + (" of its struct" if len(path) > 1 else ""),
            hint="Drop what holds it instead" if len(path) > 1 else "Add another column first",
        )
    if path[-1] in ITEMS and len(path) > 1 and beside is not snapshot.schema:
        holder = _fields(snapshot.schema, path)[-2].type
        if not pa.types.is_struct(holder):
            raise MaintenanceError(f"'{name}' is what an array or a map holds, not a field")


def _placed(fields: Fields, moved: pa.Field, after: str | None, first: bool) -> Fields:
    """The fields with one moved to the front, or behind another."""
    if not first and after is None:
        return fields
    others = [f for f in fields if f.name != moved.name]
    if first:
        return [moved, *others]
    before = _named(others, (after or "").rsplit(".", 1)[-1])
    if before is None:
        raise UnknownColumnError.of(after or "", [f.name for f in others])
    at = others.index(before) + 1
    return [*others[:at], moved, *others[at:]]


def _commented(field: pa.Field, comment: str | None) -> pa.Field:
    if comment is None:
        return field
    notes = notes_of(field)
    return with_notes(field, {**notes, "comment": comment} if comment else _without(notes))


def _without(notes: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in notes.items() if key != "comment"}


def _nullable(field: pa.Field, nullable: bool, name: str) -> pa.Field:
    if field.nullable and not nullable:
        raise MaintenanceError(
            f"'{name}' may hold NULL in rows that are there",
            hint="A column can be made nullable, not required",
        )
    return field.with_nullable(nullable)


_WIDER = {
    pa.int8(): (pa.int16(), pa.int32(), pa.int64()),
    pa.int16(): (pa.int32(), pa.int64()),
    pa.int32(): (pa.int64(),),
    pa.float32(): (pa.float64(),),
}


def _widened(
    snapshot: Snapshot, path: tuple[str, ...], old: pa.Field, dtype: pa.DataType
) -> pa.Field:
    name = ".".join(path)
    if old.type == dtype:
        return old
    if len(path) == 1 and path[0].lower() in {p.lower() for p in snapshot.partition_columns}:
        raise MaintenanceError(f"'{name}' is a partition column; its type cannot change")
    t = pa.types
    wider = dtype in _WIDER.get(old.type, ())
    if t.is_decimal(old.type) and t.is_decimal(dtype):
        wider = dtype.scale == old.type.scale and dtype.precision >= old.type.precision
    if not wider:
        raise MaintenanceError(
            f"'{name}' is {type_name(old.type)} and cannot become {type_name(dtype)}",
            hint="Integers and FLOAT can be widened, DECIMAL at the same scale; for anything else "
            "add a column and fill it",
        )
    return old.with_type(dtype)
