"""ALTER TABLE, however the table is named: Spark's list of changes, applied to the log.

All changes of a statement are one commit, or none is made. What cannot be done is refused before
anything is changed; nothing is taken and left undone. The work is that of the verbs: each change
calls its function on ``Together``, which stands for the log, gathers what they would commit and
commits it at once.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from indextables.errors import MaintenanceError
from indextables.log.actions import Action, Metadata
from indextables.log.commit.transaction import CommitResult, Transaction
from indextables.log.log import TransactionLog
from indextables.log.read.snapshot import Snapshot, VersionActions
from indextables.maintenance import columns, properties
from indextables.naming import notes_of, with_notes
from indextables.table.definition import CLUSTER_BY, LIMITED_TEXT, spelled
from indextables.types import normalize_type, schema_from_json, schema_to_json, type_from_json

Change = Mapping[str, Any]
_FIXED = ("location", "provider", "owner", "external", "is_managed_location", "table_type")


def alter(log: TransactionLog, changes: Sequence[Change]) -> None:
    """Apply the changes of one statement."""
    settings = {c["name"]: c["value"] for c in changes if c["do"] == "set"}
    raised = [name for name in settings if name.lower() in properties.PROTOCOL]
    if raised and len(settings) == len(changes):
        properties.set_properties(log, settings)
        return
    together = Together(log)
    for change in changes:
        _apply(together, change)
    together.land()


def _apply(log: Any, change: Change) -> None:
    name = ".".join(change.get("column", ()))
    match change["do"]:
        case "set":
            _set(log, change["name"], change["value"])
        case "unset":
            _set(log, change["name"], None)
        case "cluster":
            _cluster(log, tuple(change["names"]))
        case "add":
            _add(log, name, change)
        case "drop":
            _drop(log, name, bool(change["ifExists"]))
        case "rename":
            columns.rename_column(log, name, change["to"])
        case "type":
            columns.alter_column(log, name, type=normalize_type(type_from_json(change["type"])))
            _limit(log, name, change["type"])
        case "nullable":
            columns.alter_column(log, name, nullable=bool(change["nullable"]))
        case "comment":
            columns.alter_column(log, name, comment=change["comment"] or "")
        case "move":
            columns.alter_column(log, name, **_position(name, change))
        case "default":
            _default(log, name, change["default"])
        case other:
            raise MaintenanceError(f"ALTER TABLE cannot do {other}", path=log.path)


def _set(log: Any, name: str, value: str | None) -> None:
    if name.lower() == "comment":
        _commit(log, "COMMENT ON TABLE", lambda found: replace(found, description=value))
    elif name.lower() in _FIXED:
        raise MaintenanceError(
            f"'{name}' of a table cannot be changed",
            path=log.path,
            hint="Make another table where it shall be, and drop this one. Nothing was changed",
        )
    elif value is None:
        properties.unset_properties(log, [name])
    else:
        properties.set_properties(log, {name: value})


def _cluster(log: Any, names: tuple[str, ...]) -> None:
    snapshot: Snapshot = log.snapshot()
    found = spelled(names, snapshot.schema, snapshot.partition_columns)

    def change(metadata: Metadata) -> Metadata:
        known = {k: v for k, v in metadata.configuration.items() if k != CLUSTER_BY}
        more = {CLUSTER_BY: ",".join(found)} if found else {}
        return replace(metadata, configuration={**known, **more})

    _commit(log, "CLUSTER BY", change)


def _add(log: Any, name: str, change: Change) -> None:
    if change.get("default") is not None:
        raise MaintenanceError(
            f"column '{name}' cannot be added with a default: the rows there are would need it",
            path=log.path,
            hint="Add the column, which is NULL in those rows, then ALTER COLUMN ... SET DEFAULT",
        )
    if not change["nullable"]:
        raise MaintenanceError(
            f"column '{name}' cannot be added as NOT NULL: the rows there are have no value",
            path=log.path,
            hint="Leave NOT NULL out. Nothing was changed",
        )
    dtype = normalize_type(type_from_json(change["type"]))
    place = _position(name, change)
    columns.add_column(log, name, dtype, comment=change.get("comment"), **place)
    _limit(log, name, change["type"])


def _position(name: str, change: Change) -> dict[str, Any]:
    """FIRST and AFTER, which Spark says among the fields of the same struct."""
    if change.get("first"):
        return {"first": True}
    return {"after": change["after"]} if change.get("after") else {}


def _drop(log: Any, name: str, if_exists: bool) -> None:
    snapshot: Snapshot = log.snapshot()
    known = {n.lower() for n in snapshot.schema.names}
    if if_exists and name.split(".")[0].lower() not in known:
        return
    columns.drop_column(log, name)


def _limit(log: Any, name: str, dtype: Any) -> None:
    """Note the length of CHAR and VARCHAR, or take the note away where the type has none."""
    limited = isinstance(dtype, str) and "char(" in dtype
    if limited and "." in name:
        raise MaintenanceError(
            f"'{name}' cannot be {dtype.upper()}: it stands inside another column",
            path=log.path,
            hint="Use STRING there. Nothing was changed",
        )
    snapshot: Snapshot = log.snapshot()
    known = {f.name.lower(): LIMITED_TEXT in notes_of(f) for f in snapshot.schema}
    if limited or known.get(name.lower()):
        _note(log, name, {LIMITED_TEXT: dtype if limited else None})


def _default(log: Any, name: str, text: str | None) -> None:
    """What INSERT writes where it names no value; the rows there are keep theirs."""
    snapshot: Snapshot = log.snapshot()
    if name.lower() not in {n.lower() for n in snapshot.schema.names}:
        raise MaintenanceError(f"a default is for a column, and '{name}' is none", path=log.path)
    _note(log, name, {"CURRENT_DEFAULT": text or None}, {"EXISTS_DEFAULT": "NULL"} if text else {})


def _note(
    log: Any, name: str, said: Mapping[str, str | None], else_said: Mapping[str, str] | None = None
) -> None:
    """Change what Spark notes at a column; ``None`` takes a note away."""

    def change(metadata: Metadata) -> Metadata:
        fields = []
        for field in schema_from_json(metadata.schema_string):
            if field.name.lower() == name.lower():
                notes = {**(else_said or {}), **notes_of(field), **said}
                field = with_notes(field, {k: v for k, v in notes.items() if v is not None})
            fields.append(field)
        return replace(metadata, schema_string=schema_to_json(pa.schema(fields)))

    _commit(log, "ALTER COLUMN", change)


def _commit(log: Any, operation: str, change: Any) -> None:
    def actions(snapshot: Snapshot) -> list[Action]:
        return [change(snapshot.metadata)]

    log.commit(Transaction(log.snapshot(), operation, actions=actions))


class Together:
    """Stands for a log while the changes of a statement are made; ``land`` commits them all."""

    def __init__(self, log: TransactionLog) -> None:
        self._log = log
        self._parts: list[Transaction] = []
        self._state = log.writable_snapshot()
        self.path = log.path
        self.config = log.config
        self.store = log.store

    def snapshot(self, version: int | None = None) -> Snapshot:
        return self._state

    def writable_snapshot(self) -> Snapshot:
        return self._state

    def commit(self, transaction: Transaction) -> CommitResult:
        self._state, _ = _after(self._state, transaction)
        self._parts.append(transaction)
        return CommitResult(self._state.version, transaction.commit_id, 1)

    def land(self) -> None:
        """One commit of everything, on the newest version."""
        if not self._parts:
            return
        names = list(dict.fromkeys(part.operation for part in self._parts))
        told: dict[str, Any] = {}
        for part in self._parts:
            told.update(part.parameters)
        whole = Transaction(
            self._log.snapshot(), ", ".join(names), parameters=told, actions=self._folded
        )
        self._log.commit(whole)

    def _folded(self, snapshot: Snapshot) -> list[Action]:
        """The actions of all parts, each made on what those before it left."""
        others: list[Action] = []
        state = snapshot
        for part in self._parts:
            state, actions = _after(state, part)
            others += [a for a in actions if not isinstance(a, Metadata)]
        return [state.metadata, *others]


def _after(snapshot: Snapshot, part: Transaction) -> tuple[Snapshot, list[Action]]:
    """The table after a change that is not committed yet, and the actions of the change."""
    actions = part.actions_on(snapshot)
    now = int(time.time() * 1000)
    return snapshot.with_versions([VersionActions(snapshot.version + 1, now, actions)]), actions
