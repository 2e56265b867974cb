"""File entries as an Arrow table, for users who want to look at a table's files with a tool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from indextables.log.read.columns import ENTRY_FIELDS, MAP_FIELDS, UNKNOWN, EntryField

if TYPE_CHECKING:
    from indextables.log.read.snapshot import Snapshot

_MAP = pa.map_(pa.string(), pa.string())
_LIST = pa.list_(pa.string())


def entries_to_arrow(snapshot: Snapshot) -> pa.Table:
    """One row per live file, one column per field of the log, in the log's names."""
    rich = _rich_fields(snapshot)
    columns = {f.name: _column(snapshot, f, rich) for f in ENTRY_FIELDS}
    return pa.table(columns)


def _column(snapshot: Snapshot, field: EntryField, rich: dict[str, list[Any]]) -> Any:
    if field.kind in ("text", "vector"):
        return snapshot.text_column(field.name).to_arrow().cast(pa.string())
    if field.kind == "int":
        values = pa.array(snapshot.int_column(field.name))
        return pc.if_else(pc.equal(values, UNKNOWN), pa.scalar(None, pa.int64()), values)
    if field.kind == "bool":
        return pa.array(snapshot.int_column(field.name) == 1)
    return pa.array(rich[field.name], _MAP if field.kind == "map" else _LIST)


def _rich_fields(snapshot: Snapshot) -> dict[str, list[Any]]:
    """Maps and lists, taken from the typed actions."""
    kinds = [f for f in ENTRY_FIELDS if f.kind in ("map", "list")]
    found: dict[str, list[Any]] = {f.name: [] for f in kinds}
    for add in snapshot.files():
        for field in kinds:
            value = getattr(add, field.attr)
            if value is not None:
                value = _listed(field.name, value)
            found[field.name].append(value)
    return found


def _listed(name: str, value: Any) -> list[Any]:
    if name in MAP_FIELDS:
        return list(value.items())
    return sorted(value) if isinstance(value, frozenset) else list(value)
