"""Field names of a search string: columns of the mapping, and paths inside JSON columns.

A name is a column, without regard to case; otherwise its first part is a JSON column and the rest a
path. A path inside structs and arrays must exist in the schema and gives the value's type; inside
maps and JSON text any path may be asked.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import tzinfo

import pyarrow as pa

from indextables.errors import AmbiguousColumnError, UnknownColumnError, did_you_mean
from indextables.expr.jsonpaths import ARRAY_PART
from indextables.expr.searchfields import SearchField
from indextables.mapping import DocMapping, FieldMapping
from indextables.naming import stored_columns, stored_name, user_mapping


class SearchScope:
    """Resolves the names of one search."""

    def __init__(self, mapping: DocMapping, schema: pa.Schema, tz: tzinfo) -> None:
        self._mapping = user_mapping(mapping, schema)
        self._schema = schema
        self._tz = tz
        self._columns = {name.lower(): name for name in schema.names}

    @property
    def names(self) -> list[str]:
        """The columns that can be searched, as the user calls them."""
        return self._mapping.names

    def field(self, name: str) -> SearchField:
        """The field of a name; unknown names are an error that lists the known ones."""
        found = self._mapping.get(name)
        if found is not None:
            return self._column(found)
        column, _, path = name.partition(".")
        found = self._mapping.get(column)
        if found is None or not path:
            raise self._unknown(name)
        if found.type != "json":
            raise self._unknown(name, f"'{found.name}' has no fields inside.")
        parts = tuple(part for part in path.split(".") if part)
        if parts and parts[0] == ARRAY_PART:
            parts = parts[1:]
        spelled, dtype = self._inside(found.name, self._type(found), parts, name)
        stored = self._stored(found)
        return SearchField(".".join([stored.name, *spelled]), stored, dtype, self._tz)

    def _stored(self, found: FieldMapping) -> FieldMapping:
        """The field under its name in files, where it is searched."""
        (name,) = stored_columns(self._schema, [found.name])
        return found if name == found.name else replace(found, name=name)

    def _type(self, found: FieldMapping) -> pa.DataType | None:
        name = self._columns.get(found.name.lower())
        return None if name is None else self._schema.field(name).type

    def _column(self, found: FieldMapping) -> SearchField:
        dtype = self._type(found)
        if found.type == "json" and dtype is not None:
            dtype = _element(dtype)
            if pa.types.is_string(dtype):
                dtype = None if pa.types.is_string(self._type(found)) else dtype
        stored = self._stored(found)
        return SearchField(stored.name, stored, dtype, self._tz)

    def _inside(
        self, column: str, dtype: pa.DataType | None, parts: tuple[str, ...], name: str
    ) -> tuple[list[str], pa.DataType | None]:
        """The path as the schema spells it, and the type at its end if there is one."""
        spelled: list[str] = []
        for depth, part in enumerate(parts):
            dtype = None if dtype is None else _element(dtype)
            if dtype is None or not pa.types.is_struct(dtype):
                return [*spelled, *parts[depth:]], _map_value(dtype, parts[depth:])
            same = [f for f in dtype.fields if f.name.lower() == part.lower()]
            if not same:
                known = [".".join([column, *spelled, f.name]) for f in dtype.fields]
                raise UnknownColumnError(
                    f"unknown field '{name}' in the search string", hint=did_you_mean(name, known)
                )
            exact = [f for f in same if f.name == part]
            if not exact and len(same) > 1:
                raise AmbiguousColumnError(
                    f"field '{name}' in the search string is ambiguous: "
                    f"{', '.join(f.name for f in same)}",
                    hint="Write the exact name",
                )
            chosen = (exact or same)[0]
            spelled.append(stored_name(chosen))
            dtype = chosen.type
        return spelled, None if dtype is None else _element(dtype)

    def _unknown(self, name: str, more: str = "") -> UnknownColumnError:
        if name.lower() in self._columns:
            more = f"'{name}' is a partition column; filter it with a SQL predicate."
        names = self._mapping.names
        near = did_you_mean(name, names)
        listed = ", ".join(names[:40]) + (", ..." if len(names) > 40 else "")
        fields = "" if near.startswith("Known") else f"Fields: {listed}."
        quoting = "Quote a word that holds a colon."
        near = near if near.endswith(("?", ".")) else f"{near}."
        hint = " ".join(filter(None, [more, near, fields, quoting]))
        return UnknownColumnError(f"unknown field '{name}' in the search string", hint=hint)


def _map_value(dtype: pa.DataType | None, parts: tuple[str, ...]) -> pa.DataType | None:
    """The type under a key of a map, if the path ends there."""
    if dtype is None or not pa.types.is_map(dtype) or len(parts) > 1:
        return None
    return _element(dtype.item_type)


def _element(dtype: pa.DataType) -> pa.DataType:
    """The type below arrays: their elements lie at the array's own path."""
    while pa.types.is_list(dtype) or pa.types.is_large_list(dtype):
        dtype = dtype.value_type
    return dtype
