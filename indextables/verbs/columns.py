"""Verbs that change the columns of a table; no split is rewritten."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from indextables.verbs.base import Verb, parameter, verb

if TYPE_CHECKING:
    from indextables.maintenance import columns  # noqa: F401


@verb
class AddColumn(Verb["columns.ColumnResult"]):
    """Add a column, or a field of a struct; it is NULL in the rows there are."""

    SQL = (
        "ALTER TABLE {table:path} ADD COLUMN {name:name} {type:type} "
        "[COMMENT {comment:string}] [{first:FIRST} | AFTER {after:name}]"
    )
    CLI, METHOD = "column add", "add_column"
    DOES = "maintenance.columns:add_column"
    MUTATES = True

    name: str = parameter(doc="The new column; struct.field for a field of a struct.")
    type: Any = parameter(doc="Its type as SQL spells it, or an Arrow type.")
    after: str | None = parameter(default=None, doc="The column that it follows.")
    first: bool = parameter(default=False, doc="Put it before all others.")
    comment: str | None = parameter(default=None, doc="What it means.")


@verb
class RenameColumn(Verb["columns.ColumnResult"]):
    """Rename a column, or a field of a struct, without touching a split."""

    SQL = "ALTER TABLE {table:path} RENAME COLUMN {name:name} TO {new_name:name}"
    CLI, METHOD = "column rename", "rename_column"
    DOES = "maintenance.columns:rename_column"
    MUTATES = True

    name: str = parameter(doc="The column.")
    new_name: str = parameter(doc="Its new name; of a field, the last part alone.")


@verb
class DropColumn(Verb["columns.ColumnResult"]):
    """Drop a column, or a field of a struct, without touching a split."""

    SQL = "ALTER TABLE {table:path} DROP COLUMN {name:name}"
    CLI, METHOD = "column drop", "drop_column"
    DOES = "maintenance.columns:drop_column"
    MUTATES = True

    name: str = parameter(doc="The column.")


@verb
class AlterColumnType(Verb["columns.ColumnResult"]):
    """Widen the type of a column where no value changes."""

    SQL = "ALTER TABLE {table:path} ALTER COLUMN {name:name} TYPE {type:type}"
    CLI, METHOD = "column type", "alter_column_type"
    DOES = "maintenance.columns:alter_column_type"
    MUTATES = True

    name: str = parameter(doc="The column.")
    type: Any = parameter(doc="The wider type, as SQL spells it, or an Arrow type.")
